package commit

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// newS3World is a mount of a bucket of a real server.
func newS3World(t *testing.T, server *s3test.Server, name string) *world {
	t.Helper()
	store, err := objectstore.NewS3(objectstore.S3Options{Config: server.Config(), Endpoint: server.Endpoint, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, way: flat, root: name, dir: filepath.Join(t.TempDir(), "staging"), real: store}
	w.area, err = staging.Open(w.dir, staging.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	w.c = New(Options{Store: store, Area: w.area})
	t.Cleanup(func() {
		w.close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestS3Appenders(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	const lines = 50
	server := s3test.Versity(t)
	name := server.Bucket(t)
	first, second := newS3World(t, server, name), newS3World(t, server, name)
	appendBoth(t, lines, first.echo, second.echo)
	checkLines(t, string(server.Get(t, name, target)), lines)
	if left := len(first.leftovers()) + len(second.leftovers()); left != 0 {
		t.Errorf("%d writes are left staged", left)
	}
}

func TestS3PublishAndOverwrite(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := s3test.Versity(t)
	name := server.Bucket(t)
	w := newS3World(t, server, name)
	f := w.create(nil, "one")
	if _, err := w.c.Commit(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := write(w, f, "two", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Commit(t.Context(), f); err != nil || string(server.Get(t, name, target)) != "two" {
		t.Fatalf("overwrite: %v", err)
	}
	if _, err := w.c.Commit(t.Context(), w.create(nil, "three")); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("another's new file: got %v, want ErrExist", err)
	}
	base := w.stat()
	stale := w.create(&base, "three")
	server.Put(t, name, target, []byte("theirs"))
	if _, err := w.c.Commit(t.Context(), stale); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("over another's version: got %v, want ErrChanged", err)
	}
	if got := string(server.Get(t, name, target)); got != "theirs" {
		t.Errorf("there is %q", got)
	}
}

func TestS3Rename(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := s3test.Versity(t)
	name := server.Bucket(t)
	w := newS3World(t, server, name)
	server.Put(t, name, target, []byte("x"))
	src := w.stat()
	server.Put(t, name, newName, []byte("there"))
	if _, err := w.mv(src, objectstore.Cond{IfNoneMatch: true}); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("over another's: got %v, want ErrExist", err)
	}
	moved, err := w.mv(src, objectstore.Cond{})
	if err != nil || string(server.Get(t, name, newName)) != "x" || !anyID.MatchString(moved.Meta[objectstore.MetaWriteID]) {
		t.Errorf("got %+v, %v", moved, err)
	}
	if _, gone := w.real.Stat(t.Context(), src.Location); !errors.Is(gone, objectstore.ErrNotExist) {
		t.Errorf("the old name: %v, want ErrNotExist", gone)
	}
	if n := len(w.area.Renames()); n != 0 {
		t.Errorf("%d renames are noted", n)
	}
}
