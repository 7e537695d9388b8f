package staging

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// rename is what a rename does to the store: the object has a new key, and a tag of
// its own.
func (e *copyEnv) rename(old objectstore.Object, key string) objectstore.Object {
	e.bucket.tags[key] += 5
	now := e.bucket.put(key, e.bucket.data[old.Key])
	e.bucket.remove(old.Key)
	return now
}

func (b *bucket) remove(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.data, key)
	b.tags[key]++
}

func (b *bucket) reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gets
}

// overOlder begins a write over an object of e's data.
func (e *copyEnv) overOlder(t *testing.T) (*File, objectstore.Object) {
	t.Helper()
	old := e.bucket.put("dst", e.data)
	f, err := e.area.Create(t.Context(), NewWrite{
		Target: old.Location, Path: "t/dst", Base: &old, Cond: objectstore.Cond{IfMatch: old.Match},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, old
}

func (e *copyEnv) move(t *testing.T, old objectstore.Object, key string) objectstore.Object {
	t.Helper()
	m, err := e.area.BeginMove(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	defer m.End()
	now := e.rename(old, key)
	m.Moved(now)
	return now
}

const moveSize = 5*blockSize + 77

// TestMovedBase: what is under a spool is read at its new name, by a later process too.
func TestMovedBase(t *testing.T) {
	for name, before := range map[string]func(f *File){
		"untouched": func(*File) {},
		"patched":   func(f *File) { mustWrite(t, f, 0, "PATCH") },
	} {
		t.Run(name, func(t *testing.T) {
			e := newCopyEnv(t, moveSize)
			f, old := e.overOlder(t)
			before(f)
			now := e.move(t, old, "moved")
			want := readAll(t, f)
			mustEqual(t, "after the rename", want[5:], e.data[5:])
			mustWrite(t, f, 3*blockSize+9, "second")
			copy(want[3*blockSize+9:], "second")
			rec := f.Record()
			if rec.Base.Location != now.Location || rec.Base.ETag != now.ETag || rec.Cond.IfMatch != now.Match || rec.Base.Size != moveSize {
				t.Errorf("base %+v, condition %+v; want those of %+v", rec.Base, rec.Cond, now)
			}
			f = e.reopen(t)
			mustEqual(t, "after a restart", readAll(t, f), want)
			mustEqual(t, "to be published", sealed(t, f), want)
		})
	}
}

// TestMovedSource: a copy reads its source where it is now, and goes on from there.
func TestMovedSource(t *testing.T) {
	e := newCopyEnv(t, moveSize)
	f := e.create(t, 0)
	mustCopy(t, f, e.src, 0, 2*blockSize)
	cond := f.Record().Cond
	now := e.move(t, e.src, "moved")
	mustEqual(t, "half of it", readAll(t, f), e.data[:2*blockSize])
	mustCopy(t, f, now, 2*blockSize, moveSize-2*blockSize)
	if src, whole := wholeCopy(t, f); !whole || src.Location != now.Location || f.Record().Cond != cond {
		t.Errorf("a copy of %+v (%v), condition %+v; want one of %+v, %+v", src, whole, f.Record().Cond, now, cond)
	}
	f = e.reopen(t)
	mustEqual(t, "after a restart", readAll(t, f), e.data)
}

// TestMovedOther leaves files alone that lie over another version.
func TestMovedOther(t *testing.T) {
	e := newCopyEnv(t, moveSize)
	f, old := e.overOlder(t)
	other := old
	other.ETag += "x"
	e.bucket.put("moved", e.data)
	m, err := e.area.BeginMove(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer m.End()
	mustWrite(t, f, 0, "PATCH") // does not wait
	m.Moved(e.bucket.object("moved"))
	if rec := f.Record(); rec.Base.Location != old.Location {
		t.Errorf("it lies over %+v", rec.Base)
	}
}

// TestReadsWaitForAMove: between the removal of the old name and Moved nothing fails.
func TestReadsWaitForAMove(t *testing.T) {
	e := newCopyEnv(t, moveSize)
	f, old := e.overOlder(t)
	m, err := e.area.BeginMove(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	defer m.End()
	now := e.rename(old, "moved")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.WriteAt(ctx, []byte("x"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a write goes on: %v", err)
	}
	got, done, gets := make([]byte, moveSize), make(chan struct{}), e.bucket.reads()
	go func() {
		defer close(done)
		if n, err := f.ReadAt(t.Context(), got, 0); n != moveSize {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}()
	for e.bucket.reads() == gets { // it meets no object
		runtime.Gosched()
	}
	m.Moved(now)
	m.End()
	within(t, done, "the read")
	mustEqual(t, "read", got, e.data)
	mustWrite(t, f, 1, "x")
}

// TestDetach: a file has what it needs when its older object goes.
func TestDetach(t *testing.T) {
	for name, begin := range map[string]func(e *copyEnv) (*File, objectstore.Object){
		"untouched": func(e *copyEnv) (*File, objectstore.Object) { return e.overOlder(t) },
		"patched": func(e *copyEnv) (*File, objectstore.Object) {
			f, old := e.overOlder(t)
			mustWrite(t, f, 0, string(e.data[:5]))
			return f, old
		},
		"a copy": func(e *copyEnv) (*File, objectstore.Object) {
			f := e.create(t, 0)
			mustCopy(t, f, e.src, 0, moveSize)
			return f, e.src
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newCopyEnv(t, moveSize)
			f, old := begin(e)
			if err := e.area.Detach(t.Context(), old, time.Minute); err != nil {
				t.Fatal(err)
			}
			e.bucket.remove(old.Key)
			mustEqual(t, "read", readAll(t, f), e.data)
			mustWrite(t, f, 2*blockSize+1, "x")
			want := bytes.Clone(e.data)
			want[2*blockSize+1] = 'x'
			mustEqual(t, "after a restart", readAll(t, e.reopen(t)), want)
		})
	}
}

// TestDetachFails: a file whose object cannot be read is as before, and no large
// object is fetched.
func TestDetachFails(t *testing.T) {
	e := newCopyEnv(t, moveSize)
	f, old := e.overOlder(t)
	mustWrite(t, f, 0, "PATCH")
	large := old
	large.Size = DetachMax + 1
	if err := e.area.Detach(t.Context(), large, time.Minute); err != nil {
		t.Errorf("of a large object: %v", err)
	}
	e.bucket.remove("dst")
	if err := e.area.Detach(t.Context(), old, time.Minute); err == nil {
		t.Error("the object is gone, and it is fetched")
	}
	if err := f.Poisoned(); err != nil {
		t.Errorf("poisoned: %v", err)
	}
	mustWrite(t, f, 0, "again")
}
