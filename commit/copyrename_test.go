package commit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	newName = "t/g"
	newPath = "db/t/g"
)

// names is what is at the old and the new name.
func (w *world) names() string {
	return w.mem.at(w.loc(target)) + "/" + w.mem.at(w.loc(newName))
}

// source is a published object with metadata, as a listing tells it.
func (w *world) source() objectstore.Object {
	o := w.mem.put(w.loc(target), []byte("x"), map[string]string{objectstore.MetaMode: "640", objectstore.MetaWriteID: "old"})
	o.Meta = nil
	return o
}

// mv renames the source under cond.
func (w *world) mv(src objectstore.Object, cond objectstore.Cond) (objectstore.Object, error) {
	return w.c.Rename(w.t.Context(), Move{From: src, To: w.loc(newName), Cond: cond, Path: newPath})
}

func TestRenameByCopy(t *testing.T) {
	for _, tt := range []struct {
		name    string
		over    string // what is at the new name
		prepare func(w *world, src *objectstore.Object, old objectstore.Object) objectstore.Cond
		want    error
		names   string
	}{
		{"to a free name", "", func(*world, *objectstore.Object, objectstore.Object) objectstore.Cond {
			return objectstore.Cond{}
		}, nil, "absent/x"},
		{"over what is there", "y", func(*world, *objectstore.Object, objectstore.Object) objectstore.Cond {
			return objectstore.Cond{}
		}, nil, "absent/x"},
		{"over what was seen", "y", func(_ *world, _ *objectstore.Object, old objectstore.Object) objectstore.Cond {
			return objectstore.Cond{IfMatch: old.Match}
		}, nil, "absent/x"},
		{"over another's", "y", func(w *world, _ *objectstore.Object, old objectstore.Object) objectstore.Cond {
			w.mem.put(w.loc(newName), []byte("z"), nil)
			return objectstore.Cond{IfMatch: old.Match}
		}, objectstore.ErrChanged, "x/z"},
		{"not over anything", "y", func(*world, *objectstore.Object, objectstore.Object) objectstore.Cond {
			return objectstore.Cond{IfNoneMatch: true}
		}, objectstore.ErrExist, "x/y"},
		{"of what was replaced", "", func(w *world, _ *objectstore.Object, _ objectstore.Object) objectstore.Cond {
			w.mem.put(w.loc(target), []byte("z"), nil)
			return objectstore.Cond{IfNoneMatch: true}
		}, objectstore.ErrChanged, "z/absent"},
		{"of what was replaced, metadata known", "", func(w *world, src *objectstore.Object, _ objectstore.Object) objectstore.Cond {
			w.mem.put(w.loc(target), []byte("z"), nil)
			src.Meta = map[string]string{}
			return objectstore.Cond{IfNoneMatch: true}
		}, objectstore.ErrChanged, "z/absent"},
		{"of what was removed", "", func(w *world, _ *objectstore.Object, _ objectstore.Object) objectstore.Cond {
			w.mem.remove(w.loc(target))
			return objectstore.Cond{}
		}, objectstore.ErrChanged, "absent/absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, flat)
			src := w.source()
			var old objectstore.Object
			if tt.over != "" {
				old = w.mem.put(w.loc(newName), []byte(tt.over), nil)
			}
			obj, err := w.mv(src, tt.prepare(w, &src, old))
			if !errors.Is(err, tt.want) || w.names() != tt.names {
				t.Errorf("got %v, names %s; want %v, %s", err, w.names(), tt.want, tt.names)
			}
			if left := w.leftovers(); len(left) > 0 {
				t.Errorf("left in the staging directory: %q", left)
			}
			if err != nil {
				return
			}
			if id := obj.Meta[objectstore.MetaWriteID]; !anyID.MatchString(id) || obj.Meta[objectstore.MetaMode] != "640" {
				t.Errorf("metadata of the copy: %v", obj.Meta)
			}
			if obj.Location != w.loc(newName) || obj.Size != 1 || obj.ETag != src.ETag {
				t.Errorf("object: %+v", obj)
			}
		})
	}
}

func TestRenameToItself(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	if obj, err := w.c.Rename(t.Context(), Move{From: src, To: src.Location}); err != nil || obj.Location != src.Location {
		t.Errorf("got %+v, %v", obj, err)
	}
	if _, err := w.c.Rename(t.Context(), Move{From: src, To: src.Location, Cond: objectstore.Cond{IfNoneMatch: true}}); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("NOREPLACE: got %v, want ErrExist", err)
	}
	if w.names() != "x/absent" {
		t.Errorf("names: %s", w.names())
	}
}

// TestRenameWhoseAnswersAreLost: each step takes effect, and answers late or
// with a failure.
func TestRenameWhoseAnswersAreLost(t *testing.T) {
	for _, cond := range []objectstore.Cond{{}, {IfNoneMatch: true}} {
		for _, when := range []string{"before", "after"} {
			for _, lost := range []string{"copy", "delete"} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, flat)
					src, left := w.source(), 2
					fail := func(op string) error {
						if op == lost && left > 0 {
							left--
							return objectstore.ErrUnavailable
						}
						return nil
					}
					if when == "before" {
						w.before = fail
					} else {
						w.answer = fail
					}
					if _, err := w.mv(src, cond); err != nil || w.names() != "absent/x" || len(w.leftovers()) > 0 {
						t.Errorf("%s of %s lost, %+v: %v, names %s", when, lost, cond, err, w.names())
					}
					w.close()
				})
			}
		}
	}
}

// TestRenameWhoseSourceIsReplaced: another writes the old name between the two
// steps; it stays there.
func TestRenameWhoseSourceIsReplaced(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	w.answer = func(op string) error {
		if op == "copy" {
			w.mem.put(src.Location, []byte("theirs"), nil)
		}
		return nil
	}
	if _, err := w.mv(src, objectstore.Cond{}); err != nil || w.names() != "theirs/x" || len(w.leftovers()) > 0 {
		t.Errorf("%v, names %s, %q staged", err, w.names(), w.leftovers())
	}
}

func TestRenameWhoseRemovalIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		over  string
		cond  func(old objectstore.Object) objectstore.Cond
		names string
	}{
		{"a new name is taken back", "", func(objectstore.Object) objectstore.Cond { return objectstore.Cond{IfNoneMatch: true} }, "x/absent"},
		{"a free name is taken back", "", func(objectstore.Object) objectstore.Cond { return objectstore.Cond{} }, "x/absent"},
		{"what replaced something stays", "y", func(o objectstore.Object) objectstore.Cond { return objectstore.Cond{IfMatch: o.Match} }, "x/x"},
		{"what replaced anything stays", "y", func(objectstore.Object) objectstore.Cond { return objectstore.Cond{} }, "x/x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, flat)
			src := w.source()
			var old objectstore.Object
			if tt.over != "" {
				old = w.mem.put(w.loc(newName), []byte(tt.over), nil)
			}
			refused := false
			w.before = func(op string) error {
				if op == "delete" && !refused {
					refused = true
					return objectstore.ErrPermission
				}
				return nil
			}
			if _, err := w.mv(src, tt.cond(old)); !errors.Is(err, objectstore.ErrPermission) || w.names() != tt.names {
				t.Errorf("got %v, names %s; want ErrPermission, %s", err, w.names(), tt.names)
			}
			if left := w.leftovers(); len(left) > 0 {
				t.Errorf("left in the staging directory: %q", left)
			}
		})
	}
}

func TestRenameThatCannotBeTakenBack(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	w.before = func(op string) error {
		if op == "delete" {
			return objectstore.ErrPermission
		}
		return nil
	}
	_, err := w.mv(src, objectstore.Cond{IfNoneMatch: true})
	if !errors.Is(err, objectstore.ErrPermission) || w.names() != "x/x" || len(w.leftovers()) > 0 {
		t.Errorf("%v, names %s, %q staged", err, w.names(), w.leftovers())
	}
}

// TestRenameTheStoreStopsAnswering: what is half done is finished by the next
// mount, whatever others did meanwhile.
func TestRenameTheStoreStopsAnswering(t *testing.T) {
	for _, tt := range []struct {
		name      string
		down      map[string]bool // calls without an answer; they take effect if told so
		effect    bool
		meanwhile func(w *world)
		names     string
		finished  int
	}{
		{"the removal", map[string]bool{"delete": true}, false, nil, "absent/x", 1},
		{"the removal, which was done", map[string]bool{"delete": true}, true, nil, "absent/x", 1},
		{"the copy", map[string]bool{"copy": true, "stat": true}, false, nil, "x/absent", 0},
		{"the copy, which was done", map[string]bool{"copy": true, "stat": true}, true, nil, "absent/x", 1},
		{"the removal, the source replaced", map[string]bool{"delete": true}, false, func(w *world) {
			w.mem.put(w.loc(target), []byte("theirs"), nil)
		}, "theirs/x", 1},
		{"the removal, the copy replaced", map[string]bool{"delete": true}, false, func(w *world) {
			w.mem.put(w.loc(newName), []byte("theirs"), nil)
		}, "x/theirs", 0},
		{"the removal, the copy removed", map[string]bool{"delete": true}, false, func(w *world) {
			w.mem.remove(w.loc(newName))
		}, "x/absent", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flat)
				src := w.source()
				src.Meta = map[string]string{objectstore.MetaWriteID: "old"}
				down := func(op string) error {
					if tt.down[op] {
						return objectstore.ErrUnavailable
					}
					return nil
				}
				if tt.effect {
					w.answer = down
				} else {
					w.before = down
				}
				if _, err := w.mv(src, objectstore.Cond{IfNoneMatch: true}); !errors.Is(err, objectstore.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
				if tt.meanwhile != nil {
					tt.meanwhile(w)
				}
				w.restart()
				report, err := w.c.Recover(t.Context())
				if err != nil || len(report.Kept) != 1 && tt.down["stat"] {
					t.Errorf("Recover while it is down: %+v, %v", report, err)
				}
				w.before, w.answer = nil, nil
				w.restart()
				again, err := w.c.Recover(t.Context())
				finished := len(report.Finished) + len(again.Finished)
				undone := len(report.Undone) + len(again.Undone)
				if err != nil || finished != tt.finished || undone != 1-tt.finished || w.names() != tt.names {
					t.Errorf("Recover: %+v, then %+v, %v; names %s, want %s", report, again, err, w.names(), tt.names)
				}
				if left := w.leftovers(); len(left) > 0 {
					t.Errorf("left in the staging directory: %q", left)
				}
				w.close()
			})
		})
	}
}

// TestRenameCrashAtEveryStep ends the process before and after each step of a
// rename and of its recovery: the bytes are always at one name at least, and at
// one in the end.
func TestRenameCrashAtEveryStep(t *testing.T) {
	for _, way := range []string{flat, parts} {
		for _, over := range []bool{false, true} {
			steps := playRename(t, way, over, 0, 0)
			if steps < 8 {
				t.Fatalf("%d steps: the seams are gone", steps)
			}
			for k := 1; k <= steps; k++ {
				for j := 0; playRename(t, way, over, k, j) >= j && j < 20; {
					j++
				}
			}
		}
	}
}

func playRename(t *testing.T, way string, over bool, k, j int) int {
	t.Helper()
	w := newWorld(t, way)
	src, cond, old := w.source(), objectstore.Cond{IfNoneMatch: true}, "absent"
	if over {
		old = "y"
		cond = objectstore.Cond{IfMatch: w.mem.put(w.loc(newName), []byte(old), nil).Match}
	}
	allowed := map[string]bool{"x/" + old: true, "x/x": true, "absent/x": true}
	when := fmt.Sprintf("%s, over %v, step %d, recovery's %d", way, over, k, j)
	w.steps, w.dieAt = 0, k
	_, err := w.mv(src, cond)
	if k == 0 && err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	steps, done := w.steps, err == nil
	if !allowed[w.names()] {
		t.Fatalf("%s: names %s", when, w.names())
	}
	if j > 0 {
		w.restart()
		w.steps, w.dieAt = 0, j
		_, _ = w.c.Recover(t.Context())
		steps = w.steps
		if !allowed[w.names()] {
			t.Fatalf("%s: names in recovery %s", when, w.names())
		}
	}
	w.restart()
	if _, err := w.c.Recover(t.Context()); err != nil {
		t.Fatalf("%s: Recover: %v", when, err)
	}
	if got := w.names(); got != "absent/x" && (done || got != "x/"+old) {
		t.Errorf("%s: acknowledged %v, names %s", when, done, got)
	}
	if w.names() == "absent/x" && !w.knows(newPath, newName) {
		t.Errorf("%s: renamed, and the partition is not registered", when)
	}
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("%s: left in the staging directory: %q", when, left)
	}
	if left := w.parts.left(); left > w.lostUploads() {
		t.Errorf("%s: %d uploads are left in the store, %d that nobody can know", when, left, w.lostUploads())
	}
	w.close()
	return steps
}

func TestPublishAndAbortOfAKeptRename(t *testing.T) {
	for name, tt := range map[string]struct {
		act   func(ctx context.Context, c *Committer, id string) error
		names string
	}{
		"publish": {func(ctx context.Context, c *Committer, id string) error { return c.Publish(ctx, id, nil) }, "absent/x"},
		"abort":   {func(ctx context.Context, c *Committer, id string) error { return c.Abort(ctx, id) }, "x/x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, flat)
			src := w.source()
			w.answer = func(op string) error {
				if op == "copy" {
					w.dead = true
				}
				return nil
			}
			_, _ = w.mv(src, objectstore.Cond{})
			w.answer = nil
			w.restart()
			kept := w.area.Renames()
			if len(kept) != 1 {
				t.Fatalf("%d renames are noted, want 1", len(kept))
			}
			if err := tt.act(t.Context(), w.c, kept[0].Record().ID); err != nil || w.names() != tt.names || len(w.leftovers()) > 0 {
				t.Errorf("%v, names %s, want %s; %q staged", err, w.names(), tt.names, w.leftovers())
			}
		})
	}
}

// TestSameBytesTwice: a store may give two versions with the same bytes the same
// ETag. The write id tells that an answer was lost of a version that was made.
func TestSameBytesTwice(t *testing.T) {
	for _, base := range []map[string]string{nil, {objectstore.MetaWriteID: "another"}} {
		w := newWorld(t, flat)
		old := w.mem.put(w.loc(target), []byte("same"), base)
		f := w.create(&old, "same")
		lost := false
		w.answer = func(op string) error {
			if op == "put" && !lost {
				lost = true
				return objectstore.ErrUnavailable
			}
			return nil
		}
		obj, err := w.c.Commit(t.Context(), f)
		if err != nil || obj.Meta[objectstore.MetaWriteID] != f.ID() || w.count("store put") != 1 {
			t.Errorf("base %v: %+v, %v after %d puts, want 1", base, obj, err, w.count("store put"))
		}
		// The next version of the same bytes: its base bears our id too.
		lost = false
		if err := f.Truncate(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := write(w, f, "same", 0); err != nil {
			t.Fatal(err)
		}
		if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "same" || f.Dirty() {
			t.Errorf("base %v, once more: %v", base, err)
		}
	}
}
