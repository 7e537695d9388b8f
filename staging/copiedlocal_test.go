package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestCopyFromAFolder holds copies of any range to any place to what a read and a
// write would have made.
func TestCopyFromAFolder(t *testing.T) {
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			e := newEnv(t)
			m := &model{t: t, e: e, rnd: rand.New(rand.NewPCG(uint64(seed), 3))}
			m.data = m.bytes(4*blockSize + 11)
			src := m.sparseObject()
			from := m.data
			path := filepath.Join(e.root, "older")
			m.data = m.bytes(3 * blockSize)
			if err := os.WriteFile(path, m.data, 0o600); err != nil {
				t.Fatal(err)
			}
			base, err := e.store.Stat(t.Context(), e.loc("older"))
			if err != nil {
				t.Fatal(err)
			}
			m.f = e.create(t, NewWrite{Target: e.loc("older"), Base: &base})
			for range 12 {
				off, at, n := min(m.offset(), src.Size), m.offset(), int64(m.rnd.IntN(2*blockSize))
				got, err := m.f.CopyFrom(t.Context(), src, off, at, n)
				m.log = append(m.log, fmt.Sprintf("copy %d to %d: %d", off, at, got))
				if want := min(n, src.Size-off); err != nil || got != want {
					t.Fatalf("%q: %d, %v; want %d", m.log, got, err, want)
				}
				if got > 0 {
					m.grow(at + got)
					copy(m.data[at:], from[off:off+got])
				}
				if m.rnd.IntN(5) == 0 && m.f.Dirty() {
					m.crash()
				}
				m.compare()
			}
			if _, whole := wholeCopy(t, m.f); whole {
				t.Error("a reference")
			}
			mustEqual(t, "sealed", sealed(t, m.f), m.data)
		})
	}
}

func TestCopyFromAFolderKeepsHoles(t *testing.T) {
	e := newEnv(t)
	const size = 64 << 20
	src := e.object(t, []byte("head"))
	if err := os.Truncate(filepath.Join(e.root, "f"), size); err != nil {
		t.Fatal(err)
	}
	src, err := e.store.Stat(t.Context(), src.Location)
	if err != nil {
		t.Fatal(err)
	}
	f := e.create(t, NewWrite{})
	if n, err := f.CopyFrom(t.Context(), src, 0, 0, size); n != size || err != nil {
		t.Fatal(n, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(e.dir, f.ID(), dataName), &st); err != nil {
		t.Fatal(err)
	}
	if st.Size != size || st.Blocks*512 > 1<<20 {
		t.Errorf("the spool is %d bytes long and takes %d", st.Size, st.Blocks*512)
	}
	want := make([]byte, size)
	copy(want, "head")
	mustEqual(t, "bytes", readAll(t, f), want)
}

func TestCopyFromAFolderWhoseObjectIsReplaced(t *testing.T) {
	e := newEnv(t)
	src := e.object(t, []byte("older"))
	f := e.create(t, NewWrite{})
	if err := os.Rename(filepath.Join(e.root, "f"), filepath.Join(e.root, "g")); err != nil {
		t.Fatal(err)
	}
	e.object(t, []byte("newer"))
	if n, err := f.CopyFrom(t.Context(), src, 0, 0, 5); n != 0 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %d, %v", n, err)
	}
	if f.Touched() || f.Poisoned() != nil {
		t.Errorf("changed, or poisoned: %v", f.Poisoned())
	}
}

// TestCopyFromAFolderChangedInPlace has another write to the source while it is
// copied: what was copied may be of both versions, and is not published.
func TestCopyFromAFolderChangedInPlace(t *testing.T) {
	e := newEnv(t)
	armed := false
	e.opts.Step = func(op, _ string) error {
		if armed && op == "write" {
			return os.WriteFile(filepath.Join(e.root, "f"), []byte("later"), 0o600)
		}
		return nil
	}
	e.reopen(t)
	src := e.object(t, []byte("older"))
	f := e.create(t, NewWrite{})
	armed = true
	if n, err := f.CopyFrom(t.Context(), src, 0, 0, 5); n != 0 || !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("got %d, %v", n, err)
	}
	armed = false
	z, err := f.Freeze(t.Context())
	if !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("Freeze: %v", err)
	}
	if err == nil {
		z.Release()
	}
}

func TestCopyFromGivenUp(t *testing.T) {
	e := newEnv(t)
	src := e.object(t, make([]byte, 100))
	f := e.create(t, NewWrite{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := f.CopyFrom(ctx, src, 0, 0, 100); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d, %v", n, err)
	}
	if f.Poisoned() != nil || f.Size() != 0 {
		t.Errorf("poisoned: %v; %d bytes", f.Poisoned(), f.Size())
	}
}

func TestCopyFromPoisoned(t *testing.T) {
	e := newCopyEnv(t, 100)
	f := e.create(t, 0)
	poison := errors.New("the disk")
	e.step = func(string, string) error { return poison }
	if n, err := f.CopyFrom(t.Context(), e.src, 0, 0, 100); n != 0 || !errors.Is(err, poison) {
		t.Errorf("got %d, %v", n, err)
	}
	e.step = nil
	if n, err := f.CopyFrom(t.Context(), e.src, 0, 0, 100); n != 0 || !errors.Is(err, poison) {
		t.Errorf("again: %d, %v", n, err)
	}
}

func TestCopyFromS3(t *testing.T) {
	server := s3test.Fresh(t)
	bucket := server.Bucket(t)
	data := make([]byte, 5*blockSize+3)
	_, _ = rand.NewChaCha8([32]byte{4}).Read(data)
	server.Put(t, bucket, "src", data)
	store, err := objectstore.NewS3(objectstore.S3Options{Config: server.Config(), Endpoint: server.Endpoint, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	src, err := store.Stat(t.Context(), objectstore.Location{Bucket: bucket, Key: "src"})
	if err != nil {
		t.Fatal(err)
	}
	area, err := Open(filepath.Join(t.TempDir(), "staging"), Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = area.Close() }()
	f, err := area.Create(t.Context(), NewWrite{Target: objectstore.Location{Bucket: bucket, Key: "dst"}, Path: "t/dst"})
	if err != nil {
		t.Fatal(err)
	}
	for off := int64(0); off < src.Size; {
		n, err := f.CopyFrom(t.Context(), src, off, off, 2*blockSize-1)
		if n <= 0 || err != nil {
			t.Fatal(n, err)
		}
		off += n
	}
	mustEqual(t, "read", readAll(t, f), data)
	mustWrite(t, f, blockSize+4, "patched")
	copy(data[blockSize+4:], "patched")
	mustEqual(t, "sealed", sealed(t, f), data)

	server.Put(t, bucket, "src", bytes.Repeat([]byte("n"), len(data)))
	if err := f.Truncate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, f, src, 0, src.Size)
	if err := f.Sync(t.Context()); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("Sync of a source that was replaced: %v", err)
	}
}
