package staging

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// holes makes the object "f" of size bytes: data at off, and no more.
func (e *env) holes(t *testing.T, size int64, data string, off int64) objectstore.Object {
	t.Helper()
	file, err := os.Create(filepath.Join(e.root, "f"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte(data), off)
	if err = errors.Join(err, file.Truncate(size), file.Close()); err != nil {
		t.Fatal(err)
	}
	obj, err := e.store.Stat(t.Context(), e.loc("f"))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// adopted publishes f by a rename, as objectstore.Adopter does.
func (e *env) adopted(t *testing.T, f *File) {
	t.Helper()
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer z.Release()
	err = errors.Join(z.Seal(t.Context()), os.Rename(z.Path, filepath.Join(e.root, "f")))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := e.store.Stat(t.Context(), e.loc("f"))
	if err != nil {
		t.Fatal(err)
	}
	z.Published(obj, true)
}

// A byte changed in a file of holes does not fill them, whoever the base is: an
// object, or the spool that was published before.
func TestSparseBaseStaysSparse(t *testing.T) {
	const size = 4 << 30
	e := newEnv(t)
	base := e.holes(t, size, "head", 0)
	f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base})
	for round, off := range []int64{size / 2, size/2 + 10*blockSize} {
		mustWrite(t, f, off, "x")
		if err := f.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, _ := f.allocated(); n > 4<<20 || n == 0 {
			t.Errorf("round %d: %d bytes on disk", round, n)
		}
		e.adopted(t, f)
	}
	if f.Size() != size {
		t.Errorf("size %d, want %d", f.Size(), int64(size))
	}
	for off, want := range map[int64]string{0: "head\x00", size / 2: "x\x00", size/2 + 10*blockSize - 1: "\x00x\x00", size - 1: "\x00"} {
		got := make([]byte, len(want))
		if n, _ := f.ReadAt(t.Context(), got, off); n != len(want) || string(got) != want {
			t.Errorf("at %d: %q, want %q", off, got[:n], want)
		}
	}
}

// A crash between the bytes of a block and its mark leaves bytes that nobody
// acknowledged, where the older object has a hole.
func TestSparseFillOverUnmarkedBytes(t *testing.T) {
	e := newEnv(t)
	base := e.holes(t, 3*blockSize+1, "e", 3*blockSize)
	want := append(make([]byte, 3*blockSize), 'e')
	f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base})
	mustWrite(t, f, 10, "x")
	want[10] = 'x'
	if _, err := f.cur.spool.file.WriteAt(bytes.Repeat([]byte{7}, 100), blockSize+5); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	f = only(t, e.area)
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, f); !bytes.Equal(got, want) {
		t.Errorf("the fill left what a crash had cut off: at %d", bytes.IndexByte(got, 7))
	}
}

// A published spool that another program cut is an error, not zeros.
func TestSparseBaseCutByAnother(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{Target: e.loc("f")})
	mustWrite(t, f, 3*blockSize, "end")
	e.adopted(t, f)
	if err := os.Truncate(filepath.Join(e.root, "f"), blockSize); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, f, 3*blockSize, "END")
	if err := f.Sync(t.Context()); err == nil {
		t.Error("Sync filled with zeros what is gone")
	}
}
