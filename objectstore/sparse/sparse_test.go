package sparse_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

func create(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func allocated(t *testing.T, f *os.File) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// Whatever was in the file before, it holds what was written, zeros too.
func TestWriteAtOverOldBytes(t *testing.T) {
	const size = 600_000
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f, want := create(t), make([]byte, size)
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			off := rnd.IntN(size)
			p := make([]byte, rnd.IntN(min(200_000, size-off))+1)
			for range rnd.IntN(3) {
				at := rnd.IntN(len(p))
				for i := at; i < min(len(p), at+40_000); i++ {
					p[i] = byte(rnd.Uint32())
				}
			}
			if err := sparse.WriteAt(f, p, int64(off)); err != nil {
				t.Fatal(err)
			}
			copy(want[off:], p)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: the bytes differ, %v", seed, err)
		}
	}
}

func TestWriterKeepsHoles(t *testing.T) {
	f := create(t)
	w := sparse.Writer{File: f}
	want := append(make([]byte, 8<<20), 'x')
	want = append(want, make([]byte, 16<<20)...)
	_, err := w.Write(want[:20<<20])
	if err == nil {
		err = w.Skip(int64(len(want) - 20<<20))
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if n := allocated(t, f); n > 1<<20 {
		t.Errorf("%d bytes on disk for one that is not zero", n)
	}
	for off, want := range map[int64]int64{9 << 20: int64(len(want)), 1 << 30: 1 << 30} {
		if got := sparse.NextData(f, off); got != want {
			t.Errorf("NextData(%d) = %d, want %d", off, got, want)
		}
	}
}
