package commit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/staging"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// golden compares the operations since the last take with testdata/NAME.golden.
func golden(t *testing.T, w *world, name string) {
	t.Helper()
	goldenText(t, w.take(), name)
}

// goldenText compares got with testdata/NAME.golden.
func goldenText(t *testing.T, got, name string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: operations\n%s\nwant\n%s", name, got, want)
	}
}

// TestGoldenOperations holds the order, and the number, of what a publish asks
// of the store and the disk: for each kind by rename and by Put.
func TestGoldenOperations(t *testing.T) {
	for _, way := range ways() {
		for _, s := range scenarios() {
			t.Run(way+"/"+s.name, func(t *testing.T) {
				w := newWorld(t, way)
				if s.before != "absent" {
					w.object(s.before)
				}
				if err := s.run(w, new(outcome)); err != nil {
					t.Fatal(err)
				}
				golden(t, w, way+"-"+map[string]string{
					"new": "publish", "overwrite": "overwrite", "patch": "patch", "append behind another's": "append", "large": "large", "append to a large one": "large-append", "patch of a large one": "large-patch", "two versions": "versions",
				}[s.name])
			})
		}
	}
}

func TestGoldenSmallFile(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "small")
	if _, err := w.c.Commit(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	golden(t, w, "adopt-small")
}

func TestGoldenRename(t *testing.T) {
	w := newWorld(t, adopt)
	src := w.object("x")
	if _, err := w.c.Rename(t.Context(), Move{From: src, To: w.loc(newName), Cond: w.newWrite(nil).Cond, Path: newPath}); err != nil {
		t.Fatal(err)
	}
	golden(t, w, "rename")
}

func TestGoldenRenameByCopy(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	if _, err := w.mv(src, w.newWrite(nil).Cond); err != nil {
		t.Fatal(err)
	}
	golden(t, w, "flat-rename")
}

func TestGoldenRecovery(t *testing.T) {
	for _, tt := range []struct {
		name    string
		way     string
		prepare func(w *world)
	}{
		{"recover-staged", adopt, func(w *world) { w.create(nil, "x") }},
		{"recover-adopted", adopt, func(w *world) {
			f := w.create(nil, "x")
			w.answer = func(op string) error {
				if op == "adopt" {
					w.dead = true
				}
				return nil
			}
			_, _ = w.c.Commit(w.t.Context(), f)
		}},
		{"recover-put-done", put, func(w *world) {
			f := w.create(nil, "x")
			w.answer = func(op string) error {
				if op == "put" {
					w.dead = true
				}
				return nil
			}
			_, _ = w.c.Commit(w.t.Context(), f)
		}},
		{"recover-put-not-begun", put, func(w *world) {
			f := w.create(nil, "x")
			z, err := f.Freeze(w.t.Context())
			if err == nil {
				err = z.SetState(staging.Publishing, "", true)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			z.Release()
		}},
		{"recover-rename-copied", flat, func(w *world) {
			w.answer = func(op string) error {
				if op == "copy" {
					w.dead = true
				}
				return nil
			}
			_, _ = w.mv(w.source(), w.newWrite(nil).Cond)
		}},
		{"recover-rename-not-begun", flat, func(w *world) {
			w.before = func(op string) error {
				if op == "copy" {
					w.dead = true
					return errDead
				}
				return nil
			}
			_, _ = w.mv(w.source(), w.newWrite(nil).Cond)
			w.before = nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.way)
			tt.prepare(w)
			w.answer = nil
			w.restart()
			w.take()
			if _, err := w.c.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			golden(t, w, tt.name)
		})
	}
}
