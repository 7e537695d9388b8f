package objectstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestFolderPutKeepsHoles(t *testing.T) {
	const size, at1 = 1 << 30, 600 << 20
	dir := t.TempDir()
	src, err := os.Create(filepath.Join(t.TempDir(), "src"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	if err = src.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err = src.WriteAt([]byte("x"), at1); err != nil {
		t.Fatal(err)
	}
	f := newFolder(t, dir)
	o, err := f.Put(t.Context(), at(dir, "f"), src, size, objectstore.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err = unix.Stat(dir+"/f", &st); err != nil || st.Size != size || o.Size != size || st.Blocks*512 > 4<<20 {
		t.Errorf("%d bytes, %d on disk, %v", st.Size, st.Blocks*512, err)
	}
	pin, err := objectstore.Pin(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pin.Close() }()
	var b [3]byte
	if _, err = pin.ReadAt(t.Context(), b[:], at1-1); err != nil || b != [3]byte{0, 'x', 0} {
		t.Errorf("reads %q, %v", b, err)
	}
	seeker, ok := pin.(objectstore.DataSeeker)
	if !ok {
		t.Fatal("a pinned file knows no holes")
	}
	if next, nerr := seeker.NextData(t.Context(), at1+4<<20); nerr != nil || next != size {
		t.Errorf("NextData past the last data: %d, %v; want the size", next, nerr)
	}
	_, err = f.Put(t.Context(), at(dir, "g"), src, size+1, objectstore.PutOptions{})
	if err == nil {
		t.Error("Put took a source that is shorter than it says")
	}
	if err = os.Truncate(dir+"/f", 5); err != nil {
		t.Fatal(err)
	}
	_, err = seeker.NextData(t.Context(), 0)
	wantErr(t, "NextData of a changed file", err, objectstore.ErrChanged)
}
