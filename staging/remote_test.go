package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// remote is a store over a network with one object: each read is a request, and
// an older version is gone once its name is replaced.
type remote struct {
	objectstore.Store // nil: nothing else may be called

	mu   sync.Mutex
	data []byte
	tag  int
	gets []string
}

var remoteLoc = objectstore.Location{Bucket: "lake", Key: "t/f"}

func (r *remote) object() objectstore.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	tag := fmt.Sprint(r.tag)
	return objectstore.Object{Location: remoteLoc, Size: int64(len(r.data)), ETag: tag, Match: tag}
}

// replace is what another does.
func (r *remote) replace(data []byte) objectstore.Object {
	r.mu.Lock()
	r.data = data
	r.tag++
	r.mu.Unlock()
	return r.object()
}

func (r *remote) Stat(context.Context, objectstore.Location) (objectstore.Object, error) {
	if o := r.object(); o.Size > 0 {
		return o, nil
	}
	return objectstore.Object{}, objectstore.ErrNotExist
}

func (r *remote) Read(_ context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	now := r.object()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gets = append(r.gets, fmt.Sprintf("%d+%d", off, n))
	if o.ETag != now.ETag {
		return now, nil, objectstore.ErrChanged
	}
	return now, io.NopCloser(io.NewSectionReader(bytes.NewReader(r.data), off, n)), nil
}

// take returns the ranges asked for since the last take.
func (r *remote) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	gets := r.gets
	r.gets = nil
	return gets
}

// newRemote is a staging area over a remote object of size bytes.
func newRemote(t *testing.T, size int) (*remote, *Area) {
	t.Helper()
	r := &remote{data: make([]byte, size)}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(r.data)
	area, err := Open(t.TempDir()+"/staging", Options{Store: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = area.Close() })
	return r, area
}

// edit begins a write over the remote object.
func (r *remote) edit(t *testing.T, area *Area, appending bool) *File {
	t.Helper()
	base := r.object()
	f, err := area.Create(t.Context(), NewWrite{
		Target: remoteLoc, Path: "t/f", Base: &base, Cond: objectstore.Cond{IfMatch: base.Match}, Append: appending,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sealed returns the bytes of f that a publish would send.
func sealed(t *testing.T, f *File) []byte {
	t.Helper()
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer z.Release()
	if err := z.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, z.Size)
	if n, err := z.ReaderAt().ReadAt(raw, 0); int64(n) < z.Size {
		t.Fatal(err)
	}
	return raw
}

const mib = 1 << 20

func TestRemoteObjectsAreReadByFewRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		size   int
		change func(ctx context.Context, f *File, want []byte) ([]byte, error)
		gets   []string
	}{
		{"append", 64*mib + 5, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			_, err := f.Append(ctx, []byte("line\n"))
			return append(want, "line\n"...), err
		}, []string{"67108864+5", "0+67108864"}},
		{"append behind whole blocks", 2 * mib, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			_, err := f.Append(ctx, []byte("line\n"))
			return append(want, "line\n"...), err
		}, []string{"0+2097152"}},
		{"cut to nothing and write", 8 * mib, func(ctx context.Context, f *File, _ []byte) ([]byte, error) {
			err := f.Truncate(ctx, 0)
			if err == nil {
				_, err = f.WriteAt(ctx, []byte("new"), 0)
			}
			return []byte("new"), err
		}, nil},
		{"write whole blocks of the start", 3 * blockSize, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			_, err := f.WriteAt(ctx, make([]byte, 2*blockSize), 0)
			return append(make([]byte, 2*blockSize), want[2*blockSize:]...), err
		}, []string{"262144+131072"}},
		{"write all", 3*blockSize + 7, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			_, err := f.WriteAt(ctx, make([]byte, len(want)), 0)
			return make([]byte, len(want)), err
		}, nil},
		{"a patch in the middle", 32 * mib, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			_, err := f.WriteAt(ctx, []byte("x"), 16*mib+1)
			want[16*mib+1] = 'x'
			return want, err
		}, []string{"16777216+131072", "0+16777216", "16908288+16646144"}},
		{"cut in the middle", 32 * mib, func(ctx context.Context, f *File, want []byte) ([]byte, error) {
			return want[:3*mib], f.Truncate(ctx, 3*mib)
		}, []string{"0+3145728"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, area := newRemote(t, tt.size)
			f := r.edit(t, area, false)
			want, err := tt.change(t.Context(), f, bytes.Clone(r.data))
			if err != nil {
				t.Fatal(err)
			}
			if got := sealed(t, f); !bytes.Equal(got, want) {
				t.Errorf("the spool has %d bytes, want %d, or others", len(got), len(want))
			}
			if got := r.take(); !slices.Equal(got, tt.gets) {
				t.Errorf("requests: got %v, want %v", got, tt.gets)
			}
		})
	}
}

func TestRemoteRebaseIsOneRequest(t *testing.T) {
	r, area := newRemote(t, 5*mib)
	f := r.edit(t, area, true)
	if _, err := f.Append(t.Context(), []byte("mine\n")); err != nil {
		t.Fatal(err)
	}
	theirs := append(bytes.Clone(r.data), "theirs\n"...)
	now := r.replace(theirs)
	r.take()
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = z.Rebase(t.Context(), now)
	z.Release()
	if got, want := r.take(), []string{fmt.Sprintf("0+%d", now.Size)}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("Rebase: %v, requests %v, want %v", err, got, want)
	}
	if got := sealed(t, f); !bytes.Equal(got, append(theirs, "mine\n"...)) {
		t.Errorf("the spool has %d bytes, want %d, or others", len(got), len(theirs)+5)
	}
}

// TestAppendAfterTheOlderObjectIsGone: another appended between the open and the
// first write. The file begins again as what is there now.
func TestAppendAfterTheOlderObjectIsGone(t *testing.T) {
	for name, prepare := range map[string]func(f *File) error{
		"at once":        func(*File) error { return nil },
		"with a spool":   func(f *File) error { _, err := f.Append(t.Context(), nil); return err },
		"cut to its end": func(f *File) error { return f.Truncate(t.Context(), f.Size()) },
	} {
		t.Run(name, func(t *testing.T) {
			r, area := newRemote(t, blockSize+5)
			f := r.edit(t, area, true)
			if err := prepare(f); err != nil {
				t.Fatal(err)
			}
			theirs := append(bytes.Clone(r.data), "theirs\n"...)
			now := r.replace(theirs)
			if n, err := f.Append(t.Context(), []byte("mine\n")); n != 5 || err != nil {
				t.Fatalf("Append: %d, %v", n, err)
			}
			if rec := f.Record(); rec.Base.ETag != now.ETag || rec.Cond.IfMatch != now.Match || !rec.Append {
				t.Errorf("record: %+v", rec)
			}
			if got := sealed(t, f); !bytes.Equal(got, append(theirs, "mine\n"...)) {
				t.Errorf("the spool has %d bytes, want %d, or others", len(got), len(theirs)+5)
			}
		})
	}
}

func TestWriteElsewhereAfterTheOlderObjectIsGone(t *testing.T) {
	r, area := newRemote(t, blockSize+5)
	for name, change := range map[string]func(f *File) error{
		"write":  func(f *File) error { _, err := f.WriteAt(t.Context(), []byte("x"), 3); return err },
		"cut":    func(f *File) error { return f.Truncate(t.Context(), 3) },
		"remove": func(f *File) error { r.replace(nil); _, err := f.Append(t.Context(), []byte("x")); return err },
	} {
		f := r.edit(t, area, name == "remove")
		r.replace(append(bytes.Clone(r.data), "theirs\n"...))
		if err := change(f); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("%s: got %v, want ErrChanged", name, err)
		}
		r.replace(make([]byte, blockSize+5))
	}
}

// TestSyncOfAnAppendWhoseOlderObjectIsGone: what was appended is durable, and
// goes behind the new version, after a restart too.
func TestSyncOfAnAppendWhoseOlderObjectIsGone(t *testing.T) {
	r, area := newRemote(t, 3*blockSize+5)
	f := r.edit(t, area, true)
	if _, err := f.Append(t.Context(), []byte("mine\n")); err != nil {
		t.Fatal(err)
	}
	now := r.replace([]byte("theirs\n"))
	if err := f.Sync(t.Context()); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	id, dir := f.ID(), area.dir
	if err := area.Close(); err != nil {
		t.Fatal(err)
	}
	area, err := Open(dir, Options{Store: r})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = area.Close() }()
	f, ok := area.Find(id)
	if !ok || !f.Record().Append || f.Record().Whole {
		t.Fatalf("after a restart: %v, %+v", ok, f.Record())
	}
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = z.Rebase(t.Context(), now)
	z.Release()
	if got := sealed(t, f); err != nil || string(got) != "theirs\nmine\n" {
		t.Errorf("Rebase: %v, %q", err, got)
	}
}
