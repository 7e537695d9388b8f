package staging

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// env is a folder as the store, and a staging directory beside it.
type env struct {
	root, dir string
	store     *countingStore
	area      *Area
	opts      Options
}

// countingStore counts the opens of versions, and the bytes read are the
// folder's own business.
type countingStore struct {
	*objectstore.Folder
	opens atomic.Int64
}

func (s *countingStore) OpenObject(ctx context.Context, o objectstore.Object) (*os.File, error) {
	s.opens.Add(1)
	return s.Folder.OpenObject(ctx, o)
}

func newEnv(t testing.TB) *env {
	t.Helper()
	top := t.TempDir()
	e := &env{root: filepath.Join(top, "lake"), dir: filepath.Join(top, "staging")}
	if err := os.Mkdir(e.root, 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := objectstore.NewFolder(e.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	e.store = &countingStore{Folder: folder}
	e.opts = Options{Store: e.store}
	e.open(t)
	t.Cleanup(func() { _ = e.area.Close() })
	return e
}

func (e *env) open(t testing.TB) {
	t.Helper()
	area, err := Open(e.dir, e.opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	e.area = area
}

// reopen is what a new process finds: the descriptors are closed, nothing is
// synced or tidied up.
func (e *env) reopen(t testing.TB) {
	t.Helper()
	if err := e.area.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	e.open(t)
}

func (e *env) loc(key string) objectstore.Location {
	return objectstore.Location{Bucket: e.root, Key: key}
}

// object puts bytes into the store.
func (e *env) object(t testing.TB, key string, data []byte) objectstore.Object {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.root, key), data, 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := e.store.Stat(t.Context(), e.loc(key))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (e *env) create(t testing.TB, w NewWrite) *File {
	t.Helper()
	if w.Target.Key == "" {
		w.Target = e.loc("t/f")
	}
	if w.Path == "" {
		w.Path = "db/t/f"
	}
	f, err := e.area.Create(t.Context(), w)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return f
}

func readAll(t testing.TB, f *File) []byte {
	t.Helper()
	p := make([]byte, f.Size()+10)
	n, err := f.ReadAt(t.Context(), p, 0)
	if err != io.EOF {
		t.Fatalf("ReadAt of all: %d, %v; want io.EOF", n, err)
	}
	return p[:n]
}

func mustWrite(t testing.TB, f *File, off int64, data string) {
	t.Helper()
	if n, err := f.WriteAt(t.Context(), []byte(data), off); n != len(data) || err != nil {
		t.Fatalf("WriteAt(%d): %d, %v", off, n, err)
	}
}

func only(t testing.TB, a *Area) *File {
	t.Helper()
	files := a.Files()
	if len(files) != 1 {
		t.Fatalf("%d writes in the area, want 1", len(files))
	}
	return files[0]
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), sparePrefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

var day = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
