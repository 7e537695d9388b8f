package commit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

func TestRecoverKeepsWhatWasNotBeingPublished(t *testing.T) {
	w := newWorld(t, adopt)
	for _, s := range []staging.State{staging.Staged, staging.Torn, staging.Failed} {
		if err := w.create(nil, string(s)).SetState(s, "planted"); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	live := w.create(nil, "of this mount")
	report, err := w.c.Recover(t.Context())
	if err != nil || len(report.Kept) != 3 || len(report.Finished)+len(report.Redone)+len(report.Lost) != 0 || w.lake() != "absent" {
		t.Errorf("Recover: %+v, %v; the lake has %q", report, err, w.lake())
	}
	if bytesOf(t, live) != "of this mount" {
		t.Error("a living write was touched")
	}
}

func TestRecoverLostAndReplaced(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "x")
	if err := os.Remove(filepath.Join(w.dir, f.ID(), "data")); err != nil {
		t.Fatal(err)
	}
	w.object("another's")
	w.restart()
	report, err := w.c.Recover(t.Context())
	if err != nil || len(report.Lost) != 1 || len(w.leftovers()) != 0 || w.lake() != "another's" {
		t.Errorf("Recover: %+v, %v", report, err)
	}
}

func TestRecoverWithTheStoreDownKeeps(t *testing.T) {
	w := newWorld(t, put)
	f := w.create(nil, "x")
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err = z.SetState(staging.Publishing, "", true); err != nil {
		t.Fatal(err)
	}
	z.Release()
	w.restart()
	w.before = func(string) error { return objectstore.ErrUnavailable }
	report, err := w.c.Recover(t.Context())
	if err != nil || len(report.Kept) != 1 || len(w.leftovers()) != 1 {
		t.Errorf("Recover: %+v, %v", report, err)
	}
}

func TestPublishAbortSave(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "torn")
	if err := f.SetState(staging.Torn, "killed"); err != nil {
		t.Fatal(err)
	}
	w.restart()
	id, out := f.ID(), t.TempDir()
	saved, err := w.c.Save(t.Context(), id, out)
	path := saved.Path
	if err != nil || path != filepath.Join(out, "f") || saved.Partial {
		t.Fatalf("Save: %+v, %v", saved, err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "torn" {
		t.Errorf("saved %q", raw)
	}
	if again, err := w.c.Save(t.Context(), id, out); err != nil || filepath.Base(again.Path) != "f~"+id[:8] {
		t.Errorf("Save beside it: %+v, %v", again, err)
	}
	if _, err := w.c.Save(t.Context(), id, out); !errors.Is(err, os.ErrExist) {
		t.Errorf("Save over a file: %v, want ErrExist", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "torn" {
		t.Errorf("a second Save made it %q", raw)
	}
	g, _ := w.area.Find(id)
	g.Acquire()
	if err := w.c.Abort(t.Context(), id); !errors.Is(err, ErrBusy) {
		t.Errorf("Abort of an open file: %v", err)
	}
	g.Release()
	if err := w.c.Publish(t.Context(), id, nil); err != nil || w.lake() != "torn" || len(w.leftovers()) != 0 {
		t.Errorf("Publish: %v, the lake has %q, %q staged", err, w.lake(), w.leftovers())
	}
	h := w.create(nil, "more")
	if err := w.c.Abort(t.Context(), h.ID()); err != nil || len(w.leftovers()) != 0 {
		t.Errorf("Abort: %v, %q staged", err, w.leftovers())
	}
	for _, err := range []error{w.c.Publish(t.Context(), id, nil), w.c.Abort(t.Context(), id)} {
		if !errors.Is(err, ErrNoWrite) {
			t.Errorf("of a write that is gone: %v", err)
		}
	}
}

func TestSaveOfADamagedWrite(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "precious")
	if err := os.WriteFile(filepath.Join(w.dir, f.ID(), "write.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if _, err := w.c.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Publish(t.Context(), f.ID(), nil); !errors.Is(err, staging.ErrDamaged) {
		t.Errorf("Publish: %v, want ErrDamaged", err)
	}
	saved, err := w.c.Save(t.Context(), f.ID(), t.TempDir())
	path := saved.Path
	if raw, _ := os.ReadFile(path); err != nil || string(raw) != "precious" || filepath.Base(path) != f.ID() {
		t.Errorf("Save: %q, %v, %q", path, err, raw)
	}
}

func TestRenameWithoutAnAtomicOneIsCrossDevice(t *testing.T) {
	w := newWorld(t, put)
	if _, err := w.c.Rename(t.Context(), Move{From: w.object("x"), To: w.loc("t/g")}); !errors.Is(err, objectstore.ErrCrossDevice) {
		t.Errorf("Rename: %v", err)
	}
}

func TestRenameSettlesALostAnswer(t *testing.T) {
	w := newWorld(t, adopt)
	src := w.object("x")
	w.answer = func(op string) error {
		if op == "rename" {
			return objectstore.ErrUnavailable
		}
		return nil
	}
	obj, err := w.c.Rename(t.Context(), Move{From: src, To: w.loc("t/g"), Cond: objectstore.Cond{IfNoneMatch: true}})
	if err != nil || obj.Key != "t/g" || w.lake() != "absent" {
		t.Errorf("Rename: %+v, %v", obj, err)
	}
	w.answer = nil
	if _, err := w.c.Rename(t.Context(), Move{From: src, To: w.loc("t/g")}); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("Rename of what is gone: %v, want ErrChanged", err)
	}
}

func TestSaveKeepsHoles(t *testing.T) {
	const size = 256 << 20
	w := newWorld(t, adopt)
	f := w.create(nil, "head")
	if err := f.Truncate(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	saved, err := w.c.Save(t.Context(), f.ID(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(saved.Path, &st); err != nil || st.Size != size || st.Blocks*512 > 4<<20 {
		t.Errorf("saved %d bytes, %d on disk, %v", st.Size, st.Blocks*512, err)
	}
}

// TestRecoverTwoAppends: of two writes that a kill left behind one version, one was
// being published. The other can be read, and published, all the same.
func TestRecoverTwoAppends(t *testing.T) {
	for _, way := range []string{flat, parts} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.object("one\n")
			base := w.stat()
			var files []*staging.File
			for _, line := range []string{"two\n", "three\n"} {
				n := w.newWrite(&base)
				n.Append = true // opened with O_APPEND
				f, err := w.area.Create(t.Context(), n)
				if err == nil {
					_, err = f.Append(t.Context(), []byte(line))
				}
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
			}
			w.before = func(op string) error {
				if op == "put" {
					w.dead = true
					return errDead
				}
				return nil
			}
			_, _ = w.c.Commit(t.Context(), files[0])
			w.before = nil
			w.restart()
			report, err := w.c.Recover(t.Context())
			if err != nil || w.lake() != "one\ntwo\n" || len(report.Kept) != 1 {
				t.Fatalf("Recover: %+v, %v; there is %q", report, err, w.lake())
			}
			kept, _ := w.area.Find(report.Kept[0].ID)
			if got := bytesOf(t, kept); got != "one\ntwo\nthree\n" {
				t.Errorf("what is staged reads %q", got)
			}
			if err := w.c.Publish(t.Context(), kept.ID(), nil); err != nil || w.lake() != "one\ntwo\nthree\n" {
				t.Errorf("Publish: %v; there is %q", err, w.lake())
			}
		})
	}
}

// TestSaveOfWhatIsLeft: the version that a write changed was replaced or removed
// before its bytes were read. What was written is saved, and not as the file.
func TestSaveOfWhatIsLeft(t *testing.T) {
	const block = 128 << 10
	old := strings.Repeat("older\n", 100_000)
	for _, way := range ways() {
		for what, theirs := range map[string]string{"replaced": strings.Repeat("theirs\n", 100_000), "removed": ""} {
			t.Run(way+", "+what, func(t *testing.T) {
				w := newWorld(t, way)
				w.object(old)
				base := w.stat()
				f, err := w.area.Create(t.Context(), w.newWrite(&base))
				if err == nil {
					err = write(w, f, "mine", block+10)
				}
				if err != nil {
					t.Fatal(err)
				}
				want := make([]byte, len(old))
				copy(want[block:2*block], bytesOf(t, f)[block:])
				w.restart()
				if theirs == "" {
					w.remove()
				} else {
					w.object(theirs)
				}
				dir := t.TempDir()
				saved, err := w.c.Save(t.Context(), f.ID(), dir)
				if err != nil || !saved.Partial || saved.Path != filepath.Join(dir, "f.partial") || saved.Size != base.Size ||
					!slices.Equal(saved.Own, []staging.Range{{From: block, To: 2 * block}}) {
					t.Errorf("Save: %+v, %v", saved, err)
				}
				if raw, err := os.ReadFile(filepath.Join(dir, "f.partial")); err != nil || string(raw) != string(want) {
					t.Errorf("saved are %d bytes, %v; want what was written, and zeros", len(raw), err)
				}
				if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
					t.Errorf("the directory has %v, %v", entries, err)
				}
				if again, err := w.c.Save(t.Context(), f.ID(), dir); err != nil || again.Path != filepath.Join(dir, "f~"+f.ID()[:8]+".partial") {
					t.Errorf("Save beside it: %+v, %v", again, err)
				}
				if _, err := w.c.Save(t.Context(), f.ID(), dir); !errors.Is(err, os.ErrExist) {
					t.Errorf("Save over both: %v, want ErrExist", err)
				}
			})
		}
	}
}

// TestSaveOfNothingOfItsOwn: a copy by reference whose source is gone. A file of zeros
// would be no help.
func TestSaveOfNothingOfItsOwn(t *testing.T) {
	w := newWorld(t, flat)
	src := w.object("source\n")
	f := w.create(nil, "")
	if n, err := f.CopyFrom(t.Context(), src, 0, 0, src.Size); n != src.Size || err != nil {
		t.Fatalf("CopyFrom: %d, %v", n, err)
	}
	w.restart()
	w.remove()
	dir := t.TempDir()
	if saved, err := w.c.Save(t.Context(), f.ID(), dir); !errors.Is(err, errOlderGone) {
		t.Errorf("Save: %+v, %v; want errOlderGone", saved, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestPartialNameFits(t *testing.T) {
	for base, want := range map[string]string{
		"f.csv":                  "f.csv.partial",
		strings.Repeat("x", 255): strings.Repeat("x", 247) + ".partial",
		strings.Repeat("é", 127): strings.Repeat("é", 123) + ".partial",
	} {
		if got := PartialName(base); got != want {
			t.Errorf("PartialName(%q) is %q, want %q", base, got, want)
		}
	}
}
