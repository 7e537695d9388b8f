package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// bucket is a store over a network: objects by key, of which the newest version
// alone can be read.
type bucket struct {
	objectstore.Store // nil: nothing else may be called

	mu   sync.Mutex
	data map[string][]byte
	tags map[string]int
	gets int
}

func (b *bucket) object(key string) objectstore.Object {
	tag := fmt.Sprint(b.tags[key])
	return objectstore.Object{
		Location: objectstore.Location{Bucket: "lake", Key: key}, Size: int64(len(b.data[key])), ETag: tag, Match: tag,
	}
}

func (b *bucket) put(key string, data []byte) objectstore.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data[key] = data
	b.tags[key]++
	return b.object(key)
}

func (b *bucket) Read(_ context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gets++
	now := b.object(o.Key)
	if now.ETag != o.ETag {
		return now, nil, objectstore.ErrChanged
	}
	return now, io.NopCloser(io.NewSectionReader(bytes.NewReader(b.data[o.Key]), off, n)), nil
}

// copyEnv is a bucket with the object "src" and a staging area.
type copyEnv struct {
	bucket *bucket
	src    objectstore.Object
	data   []byte // src's
	dir    string
	area   *Area
	step   func(op, path string) error
}

func newCopyEnv(t *testing.T, size int) *copyEnv {
	t.Helper()
	e := &copyEnv{
		bucket: &bucket{data: map[string][]byte{}, tags: map[string]int{}},
		data:   make([]byte, size), dir: filepath.Join(t.TempDir(), "staging"),
	}
	_, _ = rand.NewChaCha8([32]byte{2}).Read(e.data)
	e.src = e.bucket.put("src", e.data)
	e.open(t)
	t.Cleanup(func() { _ = e.area.Close() })
	return e
}

func (e *copyEnv) open(t *testing.T) {
	t.Helper()
	area, err := Open(e.dir, Options{Store: e.bucket, Step: func(op, path string) error {
		if e.step == nil {
			return nil
		}
		return e.step(op, path)
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.area = area
}

func (e *copyEnv) reopen(t *testing.T) *File {
	t.Helper()
	if err := e.area.Close(); err != nil {
		t.Fatal(err)
	}
	e.open(t)
	return only(t, e.area)
}

// create begins a new file; with base one over an object of that many bytes.
func (e *copyEnv) create(t *testing.T, base int) *File {
	t.Helper()
	w := NewWrite{Target: objectstore.Location{Bucket: "lake", Key: "dst"}, Path: "t/dst", Cond: objectstore.Cond{IfNoneMatch: true}}
	if base > 0 {
		o := e.bucket.put("dst", bytes.Repeat([]byte("o"), base))
		w.Base, w.Cond = &o, objectstore.Cond{IfMatch: o.Match}
	}
	f, err := e.area.Create(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustCopy(t *testing.T, f *File, src objectstore.Object, off, n int64) {
	t.Helper()
	if got, err := f.CopyFrom(t.Context(), src, off, off, n); got != n || err != nil {
		t.Fatalf("CopyFrom(%d, %d): %d, %v", off, n, got, err)
	}
}

func mustEqual(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: %d bytes, want %d; or others", what, len(got), len(want))
	}
}

// wholeCopy is what a publish would be told.
func wholeCopy(t *testing.T, f *File) (objectstore.Object, bool) {
	t.Helper()
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer z.Release()
	return z.WholeCopy()
}

func TestCopyFromReadsNothing(t *testing.T) {
	const size = 3*blockSize + 100
	for _, base := range []int{0, 2 * blockSize} {
		t.Run(fmt.Sprint(base), func(t *testing.T) {
			e := newCopyEnv(t, size)
			f := e.create(t, base)
			before := f.Record()
			if base > 0 {
				if err := f.Truncate(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			mustCopy(t, f, e.src, 0, blockSize+7)
			mustCopy(t, f, e.src, blockSize+7, 5)
			if _, whole := wholeCopy(t, f); whole {
				t.Error("the first bytes are taken for all")
			}
			if n, err := f.CopyFrom(t.Context(), e.src, blockSize+12, blockSize+12, 1<<40); n != size-blockSize-12 || err != nil {
				t.Errorf("to the end: %d, %v", n, err)
			}
			if n, err := f.CopyFrom(t.Context(), e.src, size, size, 1); n != 0 || err != nil {
				t.Errorf("past the end: %d, %v", n, err)
			}
			if src, whole := wholeCopy(t, f); !whole || src.Location != e.src.Location || src.ETag != e.src.ETag {
				t.Errorf("WholeCopy: %+v, %v", src, whole)
			}
			if e.bucket.gets != 0 {
				t.Errorf("%d reads", e.bucket.gets)
			}
			f = e.reopen(t)
			if got := f.Record(); got.Cond != before.Cond || (got.Base == nil) != (base == 0) || got.Base != nil && got.Base.ETag != before.Base.ETag {
				t.Errorf("base %+v under %+v, before %+v under %+v", got.Base, got.Cond, before.Base, before.Cond)
			}
			if _, whole := wholeCopy(t, f); !whole {
				t.Error("no whole copy after a crash")
			}
			mustEqual(t, "read", readAll(t, f), e.data)
			mustEqual(t, "sealed", sealed(t, f), e.data)
			if _, whole := wholeCopy(t, f); whole {
				t.Error("a whole copy whose bytes are in the spool")
			}
		})
	}
}

func TestCopyFromRefuses(t *testing.T) {
	e := newCopyEnv(t, 3*blockSize)
	other := e.bucket.put("other", e.data)
	prepare := func(t *testing.T, f *File) {
		t.Helper()
		mustCopy(t, f, e.src, 0, blockSize)
	}
	for _, tt := range []struct {
		name    string
		before  func(*testing.T, *File)
		src     objectstore.Object
		off, at int64
	}{
		{"elsewhere", nil, e.src, 10, 0},
		{"behind a hole", nil, e.src, 10, 10},
		{"after a write", func(t *testing.T, f *File) { t.Helper(); mustWrite(t, f, 0, "x") }, e.src, 1, 1},
		{"another source", prepare, other, blockSize, blockSize},
		{"another version", prepare, objectstore.Object{Location: e.src.Location, Size: e.src.Size, ETag: "old"}, blockSize, blockSize},
		{"over the copy", prepare, e.src, 0, 0},
		{"after a gap", prepare, e.src, 2 * blockSize, 2 * blockSize},
		{"no version", nil, objectstore.Object{Location: e.src.Location, Size: e.src.Size}, 0, 0},
		{"changed since", func(t *testing.T, f *File) { t.Helper(); prepare(t, f); mustWrite(t, f, 3, "x") }, e.src, blockSize, blockSize},
		{"synced", func(t *testing.T, f *File) {
			t.Helper()
			prepare(t, f)
			if err := f.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, e.src, blockSize, blockSize},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := e.create(t, 0)
			if tt.before != nil {
				tt.before(t, f)
			}
			changes, bytes := f.Changes(), readAll(t, f)
			n, err := f.CopyFrom(t.Context(), tt.src, tt.off, tt.at, 100)
			if n != 0 || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("got %d, %v", n, err)
			}
			if f.Changes() != changes || f.Poisoned() != nil {
				t.Errorf("changed, or poisoned: %v", f.Poisoned())
			}
			mustEqual(t, "bytes", readAll(t, f), bytes)
		})
	}
}

// TestCopyFromASourceThatGoes holds that bytes of two versions are never mixed.
func TestCopyFromASourceThatGoes(t *testing.T) {
	e := newCopyEnv(t, 3*blockSize)
	f := e.create(t, 0)
	mustCopy(t, f, e.src, 0, 3*blockSize)
	mustWrite(t, f, 5, "patched")
	newer := e.bucket.put("src", bytes.Repeat([]byte("n"), 3*blockSize))
	if n, err := f.ReadAt(t.Context(), make([]byte, 10), 2*blockSize); n != 0 || !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("read: %d, %v", n, err)
	}
	if err := f.Sync(t.Context()); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("sync: %v", err)
	}
	if f.Poisoned() != nil {
		t.Errorf("poisoned: %v", f.Poisoned())
	}
	// A file that begins anew takes the newer one.
	if err := f.Truncate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, f, newer, 0, newer.Size)
	mustEqual(t, "newer", sealed(t, f), bytes.Repeat([]byte("n"), 3*blockSize))
}

// TestCopyFromIsNoAppend holds that a copy is not put behind another's version, also
// if the file was opened to append.
func TestCopyFromIsNoAppend(t *testing.T) {
	e := newCopyEnv(t, 100)
	f, err := e.area.Create(t.Context(), NewWrite{Target: objectstore.Location{Bucket: "lake", Key: "dst"}, Path: "t/dst", Append: true})
	if err != nil {
		t.Fatal(err)
	}
	mustCopy(t, f, e.src, 0, 100)
	if _, err := f.Append(t.Context(), []byte("more")); err != nil {
		t.Fatal(err)
	}
	if f.Record().Append || e.reopen(t).Record().Append {
		t.Error("it only appended, says the record")
	}
}

func TestCopyFromPublished(t *testing.T) {
	e := newCopyEnv(t, blockSize+9)
	for _, fill := range []bool{false, true} {
		f := e.create(t, 0)
		mustCopy(t, f, e.src, 0, e.src.Size)
		z, err := f.Freeze(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if fill {
			if err := z.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		obj := e.bucket.put("dst", e.data)
		z.Published(obj, false)
		z.Release()
		if r := f.Record(); r.Copied != nil || r.CopiedSize != 0 || r.Base == nil || r.Base.ETag != obj.ETag {
			t.Errorf("published: copied %v %d, base %v", r.Copied, r.CopiedSize, r.Base)
		}
		mustEqual(t, "read after the publish", readAll(t, f), e.data)
		mustWrite(t, f, 1, "next")
		want := append([]byte(nil), e.data...)
		copy(want[1:], "next")
		mustEqual(t, "the next version", sealed(t, f), want)
		if err := f.Drop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopyFromCutOff ends the process before each change of the disk: the file is
// as before or as after, and what it is filled with is no longer than it.
func TestCopyFromCutOff(t *testing.T) {
	cut := errors.New("cut off")
	for _, base := range []int{0, 2 * blockSize} {
		for at := 1; ; at++ {
			e := newCopyEnv(t, 3*blockSize+1)
			f := e.create(t, base)
			if err := f.Truncate(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			steps := 0
			e.step = func(string, string) error {
				if steps++; steps >= at {
					return cut
				}
				return nil
			}
			_, err := f.CopyFrom(t.Context(), e.src, 0, 0, blockSize+1)
			half := err == nil
			if half {
				_, err = f.CopyFrom(t.Context(), e.src, blockSize+1, blockSize+1, blockSize)
			}
			done := err == nil
			e.step = nil
			f = e.reopen(t)
			n := f.Size()
			if n != 0 && n != blockSize+1 && n != 2*blockSize+1 || half && n == 0 || done && n != 2*blockSize+1 {
				t.Fatalf("base %d, step %d: %d bytes", base, at, n)
			}
			mustEqual(t, "read", readAll(t, f), e.data[:n])
			mustEqual(t, "sealed", sealed(t, f), e.data[:n])
			z, err := f.Freeze(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			path := z.Path
			z.Release()
			if st, err := os.Stat(path); err != nil || st.Size() != n {
				t.Fatalf("base %d, step %d: the spool has %d bytes, %v", base, at, st.Size(), err)
			}
			if done {
				break
			}
		}
	}
}

// TestCopyFromModel does random operations on copies and on bytes in memory.
func TestCopyFromModel(t *testing.T) {
	for seed := range 30 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			e := newCopyEnv(t, 4*blockSize+77)
			m := &copyModel{t: t, e: e, rnd: rand.New(rand.NewPCG(uint64(seed), 2))}
			base := m.rnd.IntN(2) * 3 * blockSize
			m.data = bytes.Repeat([]byte("o"), base)
			m.f = e.create(t, base)
			for range 60 {
				m.step()
				mustEqual(t, strings.Join(m.log, ", "), readAll(t, m.f), m.data)
			}
		})
	}
}

type copyModel struct {
	t    *testing.T
	e    *copyEnv
	rnd  *rand.Rand
	f    *File
	data []byte
	log  []string
}

func (m *copyModel) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *copyModel) offset() int64 {
	return max(0, int64(m.rnd.IntN(6))*blockSize+int64(m.rnd.IntN(3)-1)*int64(m.rnd.IntN(100)))
}

func (m *copyModel) step() {
	ctx := m.t.Context()
	var err error
	switch m.rnd.IntN(12) {
	case 0, 1:
		m.note("begin anew")
		err = m.f.Truncate(ctx, 0)
		m.data = nil
		m.copy()
	case 2, 3, 4:
		m.copy()
	case 5:
		p, off := bytes.Repeat([]byte("w"), m.rnd.IntN(2*blockSize)+1), m.offset()
		m.note("write %d+%d", off, len(p))
		_, err = m.f.WriteAt(ctx, p, off)
		m.resize(max(int64(len(m.data)), off+int64(len(p))))
		copy(m.data[off:], p)
	case 6:
		m.note("append")
		_, err = m.f.Append(ctx, []byte("appended"))
		m.data = append(m.data, "appended"...)
	case 7:
		size := m.offset()
		m.note("truncate %d", size)
		err = m.f.Truncate(ctx, size)
		m.resize(size)
	case 8:
		off := m.offset()
		m.note("allocate %d", off)
		err = m.f.Allocate(ctx, off, 100, false)
		m.resize(max(int64(len(m.data)), off+100))
	case 9:
		m.note("sync")
		err = m.f.Sync(ctx)
	case 10:
		if m.f.Dirty() && m.f.Touched() {
			m.note("crash")
			m.f = m.e.reopen(m.t)
		}
	case 11:
		err = m.publish()
	}
	if err != nil {
		m.t.Fatalf("%q: %v", m.log, err)
	}
}

func (m *copyModel) resize(size int64) {
	if n := int64(len(m.data)); size > n {
		m.data = append(m.data, make([]byte, size-n)...)
	}
	m.data = m.data[:size:size]
}

// copy copies from the end on, as cp does.
func (m *copyModel) copy() {
	at, n := int64(len(m.data)), int64(m.rnd.IntN(2*blockSize)+1)
	got, err := m.f.CopyFrom(m.t.Context(), m.e.src, at, at, n)
	m.note("copy %d+%d: %d %v", at, n, got, err != nil)
	if at == 0 && (err != nil || got != n) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
		m.t.Fatalf("%q: %v", m.log, err)
	}
	if got > 0 {
		m.data = append(m.data, m.e.data[at:at+got]...)
	}
}

func (m *copyModel) publish() error {
	m.note("publish")
	z, err := m.f.Freeze(m.t.Context())
	if err != nil {
		return err
	}
	defer z.Release()
	if z.Clean {
		return nil
	}
	if src, whole := z.WholeCopy(); whole {
		m.note("whole copy")
		mustEqual(m.t, strings.Join(m.log, ", "), m.e.bucket.data[src.Key], m.data)
	} else if err := z.Fill(m.t.Context()); err != nil {
		return err
	}
	z.Published(m.e.bucket.put("dst", append([]byte(nil), m.data...)), false)
	return nil
}
