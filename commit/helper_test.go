package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// errDead is what every step answers once the process has ended.
var errDead = errors.New("the process has ended")

// world is a lake and a staging directory. Each call of the store and each
// change of the staging directory is a step: it is noted, and the process can
// be made to end before or after it.
type world struct {
	t         testing.TB
	root, dir string
	folder    *objectstore.Folder
	mem       *bucket           // in the folder's place, if the way is "flat" or "parts"
	parts     *bucketOfParts    // mem, if the way is "parts"
	real      objectstore.Store // neither: a server
	partSize  int64             // of its uploads; 0: they grow
	way       string
	area      *staging.Area
	c         *Committer
	check     string
	logger    *slog.Logger

	mu  sync.Mutex
	log []string
	// registered are the paths whose partitions the catalog was made to know, and
	// where it was told that they lie.
	registered map[string]objectstore.Location
	steps      int
	dieAt      int // 0: never
	dead       bool
	unnamed    int // uploads that were begun, and that no record names yet
	lost       int // those of processes that ended then
	// answer may put another answer in the place of a store call's, after its
	// effect or, with before, without it.
	before, answer func(op string) error
}

// The ways of a world's store.
const (
	adopt = "adopt" // a folder
	put   = "put"   // a folder that only knows Put
	flat  = "flat"  // a bucket: names, ETags and metadata as S3 has them, no files
	parts = "parts" // a bucket that takes multipart uploads
)

func ways() []string { return []string{adopt, put, flat, parts} }

func newWorld(tb testing.TB, way string) *world {
	tb.Helper()
	top := tb.TempDir()
	w := &world{t: tb, root: filepath.Join(top, "lake"), dir: filepath.Join(top, "staging"), way: way}
	if way == flat || way == parts {
		w.root, w.mem = "lake", newBucket()
		w.parts = newBucketOfParts(w.mem)
		tb.Cleanup(func() { w.close() })
		w.start()
		return w
	}
	if err := os.MkdirAll(filepath.Join(w.root, "t"), 0o755); err != nil {
		tb.Fatal(err)
	}
	folder, err := objectstore.NewFolder(w.root)
	if err != nil {
		tb.Fatal(err)
	}
	w.folder = folder
	tb.Cleanup(func() {
		w.close()
		_ = folder.Close()
	})
	w.start()
	return w
}

// start is a new process.
func (w *world) start() {
	w.t.Helper()
	w.mu.Lock()
	w.dead, w.dieAt = false, 0
	w.lost, w.unnamed = w.lost+w.unnamed, 0
	w.mu.Unlock()
	var store objectstore.Store
	switch w.way {
	case adopt:
		store = adopting{&calls{w: w, Store: w.folder}}
	case put:
		store = &calls{w: w, Store: w.folder}
	case flat:
		store = removing{&calls{w: w, Store: w.mem}}
	case parts:
		store = uploading{removing{&calls{w: w, Store: w.mem}}}
	}
	area, err := staging.Open(w.dir, staging.Options{Store: store, Meta: Meta, PartSize: partSize, Parallel: 1, Step: func(op, path string) error {
		return w.step("disk " + op + " " + strings.TrimPrefix(path, w.dir+"/"))
	}})
	if err != nil {
		w.t.Fatalf("staging.Open: %v", err)
	}
	w.area = area
	w.c = New(Options{Store: store, Area: area, CheckFormat: w.check, Registrar: registering{w}, Log: w.logger})
}

// close ends the process; what it had on disk stays as it is.
func (w *world) close() { _ = w.area.Close() }

func (w *world) restart() { w.close(); w.start() }

// step is one chance to die.
func (w *world) step(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errDead
	}
	w.steps++
	if w.steps == w.dieAt {
		w.dead = true
		return errDead
	}
	if strings.HasPrefix(what, "disk rename ") && strings.HasSuffix(what, "write.json.tmp") {
		w.unnamed = 0
	}
	w.log = append(w.log, what)
	return nil
}

// call is a store call: one chance to die before it, one after it.
func (w *world) call(op, what string, do func() error) error {
	kind := "store "
	if op == "register" {
		kind = "catalog "
	}
	if err := w.step(kind + op + " " + what); err != nil {
		return err
	}
	if w.before != nil {
		if err := w.before(op); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if w.answer != nil {
		if err := w.answer(op); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	if w.steps == w.dieAt {
		w.dead = true
		return errDead
	}
	return nil
}

// registering is a catalog, step by step.
type registering struct{ w *world }

func (r registering) Register(ctx context.Context, path string, at objectstore.Location) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.w.call("register", path, func() error {
		r.w.mu.Lock()
		defer r.w.mu.Unlock()
		if r.w.registered == nil {
			r.w.registered = make(map[string]objectstore.Location)
		}
		r.w.registered[path] = at
		return nil
	})
}

func (r registering) RegisterAll(ctx context.Context, at map[string]objectstore.Location) error {
	problems := byPath{}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if err := r.Register(ctx, path, at[path]); err != nil {
			problems[path] = err
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// byPath are the errors of a RegisterAll.
type byPath map[string]error

func (e byPath) Error() string            { return fmt.Sprint(map[string]error(e)) }
func (e byPath) ByPath() map[string]error { return e }

// knows tells whether the catalog knows the partition of what is at key.
func (w *world) knows(path, key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.registered[path]
	if ok && at != w.loc(key) {
		w.t.Errorf("%s was registered at %v", path, at)
	}
	return ok
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// take returns the log so far, ids named A, B, … in their order, and begins anew.
func (w *world) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := map[string]string{}
	text := anyID.ReplaceAllStringFunc(strings.Join(w.log, "\n"), func(id string) string {
		if ids[id] == "" {
			ids[id] = string(rune('A' + len(ids)))
		}
		return ids[id]
	})
	w.log = nil
	return strings.ReplaceAll(text, w.dir, "STAGING") + "\n"
}

func (w *world) count(op string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, line := range w.log {
		if strings.HasPrefix(line, op+" ") {
			n++
		}
	}
	return n
}

// calls is a store as a plain Store, step by step.
type calls struct {
	w *world
	objectstore.Store
}

func (s *calls) Stat(ctx context.Context, loc objectstore.Location) (o objectstore.Object, err error) {
	err = s.w.call("stat", loc.Key, func() (err error) { o, err = s.Store.Stat(ctx, loc); return err })
	return o, err
}

func (s *calls) Read(ctx context.Context, o objectstore.Object, off, n int64) (now objectstore.Object, body io.ReadCloser, err error) {
	err = s.w.call("read", fmt.Sprintf("%s %d+%d", o.Key, off, n), func() (err error) {
		now, body, err = s.Store.Read(ctx, o, off, n)
		return err
	})
	return now, body, err
}

func (s *calls) Put(ctx context.Context, loc objectstore.Location, r io.ReaderAt, size int64, opts objectstore.PutOptions) (o objectstore.Object, err error) {
	err = s.w.call("put", fmt.Sprintf("%s size=%d %s", loc.Key, size, condition(opts.Cond)), func() (err error) {
		o, err = s.Store.Put(ctx, loc, r, size, opts)
		return err
	})
	return o, err
}

func (s *calls) Copy(ctx context.Context, dst objectstore.Location, src objectstore.Object, opts objectstore.PutOptions) (o objectstore.Object, err error) {
	err = s.w.call("copy", src.Key+" "+dst.Key+" "+condition(opts.Cond), func() (err error) {
		o, err = s.Store.Copy(ctx, dst, src, opts)
		return err
	})
	return o, err
}

func (s *calls) Delete(ctx context.Context, locs []objectstore.Location) iter.Seq2[objectstore.Location, error] {
	return func(yield func(objectstore.Location, error) bool) {
		for _, loc := range locs {
			err := s.w.call("delete", loc.Key, func() error {
				return first(s.Store.Delete(ctx, []objectstore.Location{loc}))
			})
			if !yield(loc, err) {
				return
			}
		}
	}
}

// removing has what a rename by copy needs.
type removing struct{ *calls }

func (s removing) DeleteVersion(ctx context.Context, o objectstore.Object) error {
	return s.w.call("delete", o.Key, func() error { return s.w.mem.DeleteVersion(ctx, o) })
}

func condition(c objectstore.Cond) string {
	switch {
	case c.IfNoneMatch:
		return "if-none-match"
	case c.IfMatch != "":
		return "if-match"
	}
	return "always"
}

// adopting is the folder as it is.
type adopting struct{ *calls }

func (s adopting) OpenObject(ctx context.Context, o objectstore.Object) (f *os.File, err error) {
	err = s.w.call("open", o.Key, func() (err error) { f, err = s.w.folder.OpenObject(ctx, o); return err })
	return f, err
}

func (s adopting) Adopt(ctx context.Context, loc objectstore.Location, path string, opts objectstore.PutOptions) (o objectstore.Object, err error) {
	err = s.w.call("adopt", loc.Key+" "+condition(opts.Cond)+" "+path, func() (err error) {
		o, err = s.w.folder.Adopt(ctx, loc, path, opts)
		return err
	})
	return o, err
}

func (s adopting) Return(ctx context.Context, o objectstore.Object, path string) error {
	return s.w.call("return", o.Key+" "+path, func() error { return s.w.folder.Return(ctx, o, path) })
}

func (s adopting) Rename(ctx context.Context, dst objectstore.Location, src objectstore.Object, cond objectstore.Cond) (o objectstore.Object, err error) {
	err = s.w.call("rename", src.Key+" "+dst.Key+" "+condition(cond), func() (err error) {
		o, err = s.w.folder.Rename(ctx, dst, src, cond)
		return err
	})
	return o, err
}

func (w *world) loc(key string) objectstore.Location {
	return objectstore.Location{Bucket: w.root, Key: key}
}

const target = "t/f"

// backing is the store without the steps.
func (w *world) backing() objectstore.Store {
	switch {
	case w.real != nil:
		return w.real
	case w.mem != nil:
		return w.mem
	}
	return w.folder
}

// remove is what others do to the target.
func (w *world) remove() {
	w.t.Helper()
	if w.mem != nil {
		w.mem.remove(w.loc(target))
		return
	}
	if err := os.Remove(filepath.Join(w.root, target)); err != nil {
		w.t.Fatal(err)
	}
}

// newWrite is for a name that is free, or over base.
func (w *world) newWrite(base *objectstore.Object) staging.NewWrite {
	n := staging.NewWrite{
		Target: w.loc(target), Prefix: w.loc("t/"), Path: "db/t/f", Base: base,
		Cond: objectstore.Cond{IfNoneMatch: true}, Attributes: staging.Attributes{Mode: 0o640},
	}
	if base != nil {
		n.Cond = objectstore.Cond{IfMatch: base.Match}
	}
	return n
}

// create begins a write of the data, over base.
func (w *world) create(base *objectstore.Object, data string) *staging.File {
	w.t.Helper()
	f, err := w.area.Create(w.t.Context(), w.newWrite(base))
	if err == nil && base != nil {
		err = f.Truncate(w.t.Context(), 0)
	}
	if err == nil {
		_, err = f.WriteAt(w.t.Context(), []byte(data), 0)
	}
	if err != nil {
		w.t.Fatalf("create: %v", err)
	}
	return f
}

// object is what others put at the target, by rename.
func (w *world) object(data string) objectstore.Object {
	w.t.Helper()
	if w.mem != nil {
		return w.mem.put(w.loc(target), []byte(data), nil)
	}
	path := filepath.Join(w.root, target)
	if err := os.WriteFile(path+".new", []byte(data), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
	o, err := w.folder.Stat(w.t.Context(), w.loc(target))
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// lake returns what a reader sees at the target; "absent" if nothing.
func (w *world) lake() string { return w.there(target) }

// there is what is at key; "absent" if nothing.
func (w *world) there(key string) string {
	if w.mem != nil {
		return w.mem.at(w.loc(key))
	}
	raw, err := os.ReadFile(filepath.Join(w.root, key))
	if errors.Is(err, os.ErrNotExist) {
		return "absent"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

func bytesOf(tb testing.TB, f *staging.File) string {
	tb.Helper()
	raw, err := io.ReadAll(io.NewSectionReader(fileReader(func(p []byte, off int64) (int, error) {
		return f.ReadAt(tb.Context(), p, off)
	}), 0, f.Size()))
	if err != nil {
		tb.Fatalf("read of a staged file: %v", err)
	}
	return string(raw)
}

// leftovers lists the staging directory, its lock aside.
func (w *world) leftovers() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != "lock" && !strings.HasPrefix(e.Name(), "spare.") { // empty directories for the next
			names = append(names, e.Name())
		}
	}
	return names
}
