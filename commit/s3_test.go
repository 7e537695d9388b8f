package commit

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
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
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorldOn(t, store, name)
}

// newWorldOn is a mount of a bucket of a store.
func newWorldOn(t *testing.T, store objectstore.Store, name string) *world {
	t.Helper()
	w := &world{t: t, way: flat, root: name, dir: filepath.Join(t.TempDir(), "staging"), real: store}
	if err := w.openS3(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// openS3 is a new process of it.
func (w *world) openS3() (err error) {
	w.area, err = staging.Open(w.dir, staging.Options{Store: w.real, Meta: Meta, PartSize: w.partSize})
	if err == nil {
		w.c = New(Options{Store: w.real, Area: w.area})
	}
	return err
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

// TestS3AppendersWhoseAnswersAreLost: every third answer to a put is lost, before
// or after it took effect, while two append. Each line is there once.
func TestS3AppendersWhoseAnswersAreLost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	const lines = 20
	server := s3test.Versity(t)
	name := server.Bucket(t)
	var worlds []*world
	for _, fault := range []faulty.Fault{faulty.LoseAnswer{}, faulty.LoseAnswerBefore{}} {
		proxy := faulty.New(t, server)
		var n atomic.Int64
		lose := proxy.Add(faulty.Rule{Op: "PutObject", If: func(*faulty.Request) bool { return n.Add(1)%3 == 0 }, Fault: fault})
		t.Cleanup(func() {
			if lose.Hits() == 0 {
				t.Error("no answer was lost")
			}
		})
		worlds = append(worlds, newS3World(t, proxy.Server(), name))
	}
	appendBoth(t, lines, worlds[0].echo, worlds[1].echo)
	checkLines(t, string(server.Get(t, name, target)), lines)
}

// TestS3AppendIsFewRequests: an append to a large object is not a request a block.
func TestS3AppendIsFewRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	const size = 64 << 20
	server := s3test.Versity(t)
	name := server.Bucket(t)
	server.Put(t, name, target, make([]byte, size-1))
	proxy := faulty.New(t, server)
	w := newS3World(t, proxy.Server(), name)
	if err := w.echo("line\n"); err != nil {
		t.Fatal(err)
	}
	if got := len(server.Get(t, name, target)); got != size+4 {
		t.Errorf("%d bytes are there, want %d", got, size+4)
	}
	// One of the copies asks whether the store looks at the condition on them.
	for op, want := range map[string]int{"GetObject": 1, "UploadPartCopy": 2, "UploadPart": 1, "PutObject": 0} {
		if got := proxy.Count(op); got != want {
			t.Errorf("%s: %d requests, want %d", op, got, want)
		}
	}
}
