package commit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestRenameWhoseSourceIsWrittenAnew: the removal of the old name was not answered,
// the rename failed for its caller, and the old name was written anew with the same
// bytes, whose ETag is the same. The next mount must not take it for the source.
func TestRenameWhoseSourceIsWrittenAnew(t *testing.T) {
	withID := func(id string) map[string]string { return map[string]string{objectstore.MetaWriteID: id} }
	for _, tt := range []struct {
		name  string
		was   map[string]string
		now   map[string]string
		known bool // the metadata, when the rename begins
	}{
		{"ours, by us", withID("one"), withID("two"), false},
		{"ours, by us, metadata known", withID("one"), withID("two"), true},
		{"ours, by others", withID("one"), nil, false},
		{"others', by us", nil, withID("two"), false},
		{"others', by others", nil, nil, false},
		{"others', by others, metadata known", nil, nil, true},
		{"ours, by the same write", withID("one"), withID("one"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flat)
				src := w.mem.put(w.loc(target), []byte("x"), tt.was)
				if !tt.known {
					src.Meta = nil
				}
				w.halfRenamed(src)
				w.mem.put(w.loc(target), []byte("x"), tt.now)
				w.wantRecovered("x/x")
				w.close()
			})
		})
	}
}

// TestRenameWhoseSourceIsTheSame: it goes, with the times that a store tells.
func TestRenameWhoseSourceIsTheSame(t *testing.T) {
	id := map[string]string{objectstore.MetaWriteID: "one"}
	for _, tt := range []struct {
		name string
		meta map[string]string
		told func(src *objectstore.Object) // what was known of it
	}{
		{"as looked at", nil, func(*objectstore.Object) {}},
		{"as listed", id, func(o *objectstore.Object) { o.Meta, o.ModTime = nil, o.ModTime.Add(time.Minute) }},
		{"as answered to its write", id, func(o *objectstore.Object) { o.ModTime = o.ModTime.Add(time.Second) }},
		{"as answered to its write, early", id, func(o *objectstore.Object) { o.ModTime = o.ModTime.Add(-2 * time.Second) }},
		{"to the second", nil, func(o *objectstore.Object) { o.ModTime = o.ModTime.Truncate(time.Second) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				<-time.After(300 * time.Millisecond) // of the fake clock: a fraction
				w := newWorld(t, flat)
				src := w.mem.put(w.loc(target), []byte("x"), tt.meta)
				tt.told(&src)
				w.halfRenamed(src)
				w.wantRecovered("absent/x")
				w.close()
			})
		})
	}
}

// halfRenamed is a rename that fails for its caller after the copy.
func (w *world) halfRenamed(src objectstore.Object) {
	w.t.Helper()
	w.before = func(op string) error {
		if op == "delete" {
			return objectstore.ErrUnavailable
		}
		return nil
	}
	if _, err := w.mv(src, objectstore.Cond{IfNoneMatch: true}); !errors.Is(err, objectstore.ErrUnavailable) {
		w.t.Errorf("rename: %v, want ErrUnavailable", err)
	}
	w.before = nil
}

// wantRecovered checks that the next mount has finished the rename.
func (w *world) wantRecovered(names string) {
	w.t.Helper()
	w.restart()
	report, err := w.c.Recover(w.t.Context())
	if err != nil || len(report.Finished) != 1 || w.names() != names || len(w.leftovers()) > 0 {
		w.t.Errorf("Recover: %+v, %v; names %s, want %s; %q staged", report, err, w.names(), names, w.leftovers())
	}
}

// TestRenameTakenBackMeetsAnother: the copy is the only one of the source's bytes
// that is surely the renamed one; it stays.
func TestRenameTakenBackMeetsAnother(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	w.before = func(op string) error {
		if op == "delete" {
			w.mem.put(src.Location, []byte("x"), nil)
			return objectstore.ErrPermission
		}
		return nil
	}
	if _, err := w.mv(src, objectstore.Cond{}); !errors.Is(err, objectstore.ErrPermission) || w.names() != "x/x" {
		t.Errorf("got %v, names %s; want ErrPermission, x/x", err, w.names())
	}
	if n := w.count("store delete"); n != 1 {
		t.Errorf("%d removals were asked for, want that of the source alone", n)
	}
}
