package staging

import (
	"bytes"
	"context"
	"errors"
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
	cloud     *cloud // in the place of store; nil: a folder is the store
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

func newEnv(tb testing.TB) *env {
	tb.Helper()
	top := tb.TempDir()
	e := &env{root: filepath.Join(top, "lake"), dir: filepath.Join(top, "staging")}
	if err := os.Mkdir(e.root, 0o755); err != nil {
		tb.Fatal(err)
	}
	folder, err := objectstore.NewFolder(e.root)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = folder.Close() })
	e.store = &countingStore{Folder: folder}
	e.opts = Options{Store: e.store}
	e.open(tb)
	tb.Cleanup(func() { _ = e.area.Close() })
	return e
}

func (e *env) open(tb testing.TB) {
	tb.Helper()
	area, err := Open(e.dir, e.opts)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	e.area = area
}

// reopen is what a new process finds: the descriptors are closed, nothing is
// synced or tidied up.
func (e *env) reopen(tb testing.TB) {
	tb.Helper()
	if err := e.area.Close(); err != nil {
		tb.Fatalf("Close: %v", err)
	}
	e.open(tb)
}

func (e *env) loc(key string) objectstore.Location {
	return objectstore.Location{Bucket: e.root, Key: key}
}

// object puts bytes into the store, as "f".
func (e *env) object(tb testing.TB, data []byte) objectstore.Object {
	tb.Helper()
	if e.cloud != nil {
		return e.cloud.set(e.loc("f"), bytes.Clone(data), nil)
	}
	if err := os.WriteFile(filepath.Join(e.root, "f"), data, 0o644); err != nil {
		tb.Fatal(err)
	}
	o, err := e.store.Stat(tb.Context(), e.loc("f"))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func (e *env) create(tb testing.TB, w NewWrite) *File {
	tb.Helper()
	if w.Target.Key == "" {
		w.Target = e.loc("t/f")
	}
	if w.Path == "" {
		w.Path = "db/t/f"
	}
	f, err := e.area.Create(tb.Context(), w)
	if err != nil {
		tb.Fatalf("Create: %v", err)
	}
	return f
}

func readAll(tb testing.TB, f *File) []byte {
	tb.Helper()
	p := make([]byte, f.Size()+10)
	n, err := f.ReadAt(tb.Context(), p, 0)
	if !errors.Is(err, io.EOF) {
		tb.Fatalf("ReadAt of all: %d, %v; want io.EOF", n, err)
	}
	return p[:n]
}

func mustWrite(tb testing.TB, f *File, off int64, data string) {
	tb.Helper()
	if n, err := f.WriteAt(tb.Context(), []byte(data), off); n != len(data) || err != nil {
		tb.Fatalf("WriteAt(%d): %d, %v", off, n, err)
	}
}

func only(tb testing.TB, a *Area) *File {
	tb.Helper()
	files := a.Files()
	if len(files) != 1 {
		tb.Fatalf("%d writes in the area, want 1", len(files))
	}
	return files[0]
}

func names(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
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
