package staging

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// goneLeft lists what is to be removed in the background.
func (e *env) goneLeft(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), gonePrefix) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// TestPublishedOfMany: the file is clean at once and goes on under its id, its directory
// goes in the background, and what an Area that ended leaves of that goes with the next.
func TestPublishedOfMany(t *testing.T) {
	e := newEnv(t)
	release := make(chan struct{})
	stop := false
	e.area.opts.Step = func(op, path string) error {
		if op == "rmdir" && strings.Contains(path, gonePrefix) {
			<-release
			if stop {
				return os.ErrClosed
			}
		}
		return nil
	}
	var files []*File
	for i := range 3 {
		at := objectstore.Location{Bucket: e.dir, Key: fmt.Sprintf("t/f%d", i)}
		f, err := e.area.Create(t.Context(), NewWrite{Target: at, Path: "t/f", Cond: objectstore.Cond{IfNoneMatch: true}})
		if err == nil {
			_, err = f.WriteAt(t.Context(), []byte("bytes"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		z, err := f.Freeze(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		z.PublishedOfMany(objectstore.Object{Location: at, Size: 5, ETag: "x"}, false)
		z.Release()
		files = append(files, f)
	}
	if left := e.goneLeft(t); len(left) != 3 {
		t.Errorf("%q wait to be removed, want 3", left)
	}
	p := make([]byte, 5)
	if _, err := files[0].ReadAt(t.Context(), p, 0); err != nil || string(p) != "bytes" || files[0].Dirty() {
		t.Errorf("a published file: %q, %v, dirty %v", p, err, files[0].Dirty())
	}
	if _, err := files[0].WriteAt(t.Context(), []byte("B"), 0); err != nil {
		t.Errorf("its next version: %v", err)
	}
	if _, err := os.Stat(files[0].SpoolPath()); err != nil {
		t.Errorf("its next version is not on disk: %v", err)
	}
	stop = true // the process ends
	close(release)
	e.reopen(t)
	swept := make(chan struct{})
	go func() { e.area.work.wait.Wait(); close(swept) }()
	select {
	case <-swept:
	case <-time.After(time.Minute):
	}
	if left := e.goneLeft(t); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if all := e.area.Files(); len(all) != 1 || all[0].ID() != files[0].ID() {
		t.Errorf("%d writes are found, want the next version", len(all))
	}
}
