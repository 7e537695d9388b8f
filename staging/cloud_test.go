package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Idle connections of package s3test.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// cloud is a store in memory that takes objects in parts. It holds the area to what
// it promises of uploads: each request for one finds a record in dir that names it.
type cloud struct {
	objectstore.Store // nil: nothing else may be called

	tb  testing.TB
	dir string // the staging directory
	// before is called ahead of the effect of each request, without mu, and may block
	// or return its error; number is the part's. Of a part half of the bytes are read
	// by then.
	before func(ctx context.Context, op string, number int) error

	mu      sync.Mutex
	crashed bool // what was done is asked for again
	tag     int
	objects map[objectstore.Location]cloudObject
	uploads map[string]*cloudUpload
	flying  map[string]int // requests of parts, by upload
	log     []string       // "part 2", "copy 3 0+100", "abort", …
	reads   int64          // bytes of objects that were read
}

type cloudObject struct {
	objectstore.Object
	data []byte
}

type cloudUpload struct {
	objectstore.Upload
	parts map[int][]byte
	tags  map[int]string
}

func (c *cloud) request(ctx context.Context, op string, number int) error {
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if before != nil {
		if err := before(ctx, op, number); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *cloud) hook(before func(ctx context.Context, op string, number int) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

// take returns what was logged since the last take, sorted.
func (c *cloud) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	slices.Sort(log)
	return log
}

func (c *cloud) note(format string, args ...any) { c.log = append(c.log, fmt.Sprintf(format, args...)) }

// isNamed looks for the upload in the records on disk. One is torn if it was written
// while it was read: its file is the next one's.
func (c *cloud) isNamed(u objectstore.Upload) (named, torn bool) {
	records, _ := filepath.Glob(filepath.Join(c.dir, "*", recordName))
	for _, path := range records {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		rec, err := parseRecord(filepath.Base(filepath.Dir(path)), raw)
		if err != nil {
			torn = true
		} else if rec.Upload != nil && *rec.Upload == u || slices.Contains(rec.Aborts, u) {
			return true, false
		}
	}
	return false, torn
}

// named fails the test if no record on disk names the upload. It looks again as long
// as records are being written.
func (c *cloud) named(op string, u objectstore.Upload) {
	named, torn := c.isNamed(u)
	for n := 0; torn && n < 10; n++ {
		named, torn = c.isNamed(u)
	}
	if !named {
		c.tb.Errorf("%s of upload %s, which no record names", op, u.ID)
	}
}

func (c *cloud) newTag() string {
	c.tag++
	return fmt.Sprint("tag", c.tag)
}

func (c *cloud) set(loc objectstore.Location, data []byte, meta map[string]string) objectstore.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	tag := c.newTag()
	o := objectstore.Object{Location: loc, Size: int64(len(data)), ETag: tag, Match: tag, Meta: meta}
	c.objects[loc] = cloudObject{o, data}
	return o
}

func (c *cloud) content(loc objectstore.Location) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[loc].data
}

// left lists the uploads that were begun and neither completed nor aborted.
func (c *cloud) left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.uploads))
}

func (c *cloud) Stat(_ context.Context, loc objectstore.Location) (objectstore.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.objects[loc]; ok {
		return o.Object, nil
	}
	return objectstore.Object{}, objectstore.ErrNotExist
}

func (c *cloud) Read(_ context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.objects[o.Location]
	if now.ETag != o.ETag {
		return now.Object, nil, objectstore.ErrChanged
	}
	c.reads += n
	return now.Object, io.NopCloser(io.NewSectionReader(bytes.NewReader(now.data), off, n)), nil
}

func (c *cloud) Put(ctx context.Context, loc objectstore.Location, r io.ReaderAt, size int64, opts objectstore.PutOptions) (objectstore.Object, error) {
	if err := c.request(ctx, "put", 0); err != nil {
		return objectstore.Object{}, err
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); int64(n) < size {
		return objectstore.Object{}, err
	}
	return c.set(loc, data, opts.Meta), nil
}

func (c *cloud) CreateUpload(ctx context.Context, loc objectstore.Location, _ objectstore.PutOptions) (objectstore.Upload, error) {
	if err := c.request(ctx, "create", 0); err != nil {
		return objectstore.Upload{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("create")
	c.tag++
	u := objectstore.Upload{Location: loc, ID: fmt.Sprintf("u%04d", c.tag)}
	c.uploads[u.ID] = &cloudUpload{u, make(map[int][]byte), make(map[int]string)}
	return u, nil
}

func (c *cloud) fly(u objectstore.Upload, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying[u.ID] += n
}

func (c *cloud) UploadPart(ctx context.Context, u objectstore.Upload, number int, r io.ReaderAt, size int64) (objectstore.Part, error) {
	c.fly(u, 1)
	defer c.fly(u, -1)
	c.named("part", u)
	data := make([]byte, size)
	half := size / 2
	if n, err := r.ReadAt(data[:half], 0); int64(n) < half {
		return objectstore.Part{}, err
	}
	if err := c.request(ctx, "part", number); err != nil {
		return objectstore.Part{}, err
	}
	if n, err := r.ReadAt(data[half:], half); int64(n) < size-half {
		return objectstore.Part{}, err
	}
	return c.add(u, number, data, fmt.Sprintf("part %d", number))
}

func (c *cloud) add(u objectstore.Upload, number int, data []byte, note string) (objectstore.Part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.uploads[u.ID]
	if up == nil {
		return objectstore.Part{}, fmt.Errorf("part: %w", objectstore.ErrNoUpload)
	}
	c.note("%s", note)
	up.parts[number], up.tags[number] = data, c.newTag()
	return objectstore.Part{Number: number, Size: int64(len(data)), ETag: up.tags[number]}, nil
}

func (c *cloud) CopyPart(ctx context.Context, u objectstore.Upload, number int, src objectstore.Object, off, n int64) (objectstore.Part, error) {
	c.fly(u, 1)
	defer c.fly(u, -1)
	c.named("copy", u)
	if err := c.request(ctx, "copy", number); err != nil {
		return objectstore.Part{}, err
	}
	c.mu.Lock()
	now := c.objects[src.Location]
	c.mu.Unlock()
	if now.ETag != src.ETag {
		return objectstore.Part{}, objectstore.ErrChanged
	}
	return c.add(u, number, bytes.Clone(now.data[off:off+n]), fmt.Sprintf("copy %d %d+%d", number, off, n))
}

func (c *cloud) CompleteUpload(ctx context.Context, u objectstore.Upload, parts []objectstore.Part, opts objectstore.PutOptions) (objectstore.Object, error) {
	if err := c.request(ctx, "complete", 0); err != nil {
		return objectstore.Object{}, err
	}
	c.mu.Lock()
	up := c.uploads[u.ID]
	var data []byte
	last, right := 0, up != nil
	for _, p := range parts {
		right = right && p.Number > last && up.tags[p.Number] == p.ETag && int64(len(up.parts[p.Number])) == p.Size
		if right {
			data = append(data, up.parts[p.Number]...)
		}
		last = p.Number
	}
	if right {
		c.note("complete")
		delete(c.uploads, u.ID)
	}
	c.mu.Unlock()
	if !right {
		return objectstore.Object{}, fmt.Errorf("complete: %w", objectstore.ErrNoUpload)
	}
	return c.set(u.Location, data, opts.Meta), nil
}

func (c *cloud) AbortUpload(ctx context.Context, u objectstore.Upload) error {
	c.named("abort", u)
	if err := c.request(ctx, "abort", 0); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flying[u.ID] > 0 {
		c.tb.Errorf("abort of upload %s with %d parts under way", u.ID, c.flying[u.ID])
	}
	if c.uploads[u.ID] == nil && !c.crashed {
		c.tb.Errorf("abort of upload %s, which is not there", u.ID)
	}
	c.note("abort")
	delete(c.uploads, u.ID)
	return nil
}

// newCloud is a staging area over a cloud, with parts of partSize bytes.
func newCloud(tb testing.TB, partSize int64) (*cloud, *env) {
	tb.Helper()
	c := &cloud{
		tb: tb, dir: filepath.Join(tb.TempDir(), "staging"), objects: make(map[objectstore.Location]cloudObject),
		uploads: make(map[string]*cloudUpload), flying: make(map[string]int),
	}
	e := &env{dir: c.dir, root: "lake", cloud: c}
	e.opts = Options{Store: c, PartSize: partSize, Parallel: 4, Memory: budget.New(16 * partMemory)}
	e.open(tb)
	tb.Cleanup(func() {
		_ = e.area.Close()
		if used := e.opts.Memory.Used(); used != 0 {
			tb.Errorf("%d bytes of memory are still taken", used)
		}
	})
	return c, e
}

// quiet waits until the background has nothing to do.
func (e *env) quiet(tb testing.TB) {
	tb.Helper()
	done := make(chan struct{})
	go func() { e.area.work.wait.Wait(); close(done) }()
	within(tb, done, "the end of the background's work")
}

func within(tb testing.TB, done <-chan struct{}, what string) {
	tb.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		tb.Fatalf("waited a minute for %s", what)
	}
}

func (c *cloud) publish(ctx context.Context, z *Frozen) error { return publishTo(ctx, c, z) }

// inParts is a store that takes objects in parts.
type inParts interface {
	objectstore.Store
	objectstore.Multipart
}

// publishTo is what package commit does with a Frozen.
func publishTo(ctx context.Context, c inParts, z *Frozen) error {
	opts := objectstore.PutOptions{Cond: z.Record.Cond, Meta: map[string]string{objectstore.MetaWriteID: z.Record.ID}}
	var obj objectstore.Object
	if !z.TakesParts() {
		err := errors.Join(z.Fill(ctx), z.Secure(ctx), z.SetState(Publishing, "", false))
		if err == nil {
			obj, err = c.Put(ctx, z.Record.Target, z.ReaderAt(), z.Size, opts)
		}
		if err != nil {
			return err
		}
		z.Published(obj, false)
		return nil
	}
	u, parts, err := z.Upload(ctx)
	if err == nil {
		err = errors.Join(z.Secure(ctx), z.SetState(Publishing, "", true))
	}
	if err == nil {
		obj, err = c.CompleteUpload(ctx, u, parts, opts)
	}
	if err == nil {
		z.Published(obj, false)
	}
	return err
}

func (c *cloud) publishFile(tb testing.TB, f *File) {
	tb.Helper()
	z := freeze(tb, f)
	defer z.Release()
	if err := c.publish(tb.Context(), z); err != nil {
		tb.Fatalf("publish: %v", err)
	}
}

func freeze(tb testing.TB, f *File) *Frozen {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	z, err := f.Freeze(ctx)
	if err != nil {
		tb.Fatalf("Freeze: %v", err)
	}
	return z
}
