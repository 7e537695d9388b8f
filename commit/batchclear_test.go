package commit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Keys of the lake that an overwrite of "t/dt=1" meets.
const (
	oldKey      = "t/dt=1/old"      // listed, and to go
	replacedKey = "t/dt=1/replaced" // listed, and replaced by others since
	laterKey    = "t/dt=1/later"    // written by others since
)

// laterFile is what others have written since the listing.
const laterFile = "what others have written since"

// place puts an object of others at a key.
func (w *world) place(key, data string) {
	w.t.Helper()
	if w.mem != nil {
		w.mem.put(w.loc(key), []byte(data), nil)
		return
	}
	path := filepath.Join(w.root, key)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(data), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// listed puts old files there, the first member's name among them, and is the listing of
// them: what others do since is done.
func (w *world) listed() []objectstore.Object {
	w.t.Helper()
	var all []objectstore.Object
	for _, key := range []string{oldKey, replacedKey, batchKey(0)} {
		w.place(key, theirFile)
		o, err := w.backing().Stat(w.t.Context(), w.loc(key))
		if err != nil {
			w.t.Fatal(err)
		}
		o.Match, o.Meta = "", nil // a listing has none
		all = append(all, o)
	}
	w.place(replacedKey, laterFile)
	w.place(laterKey, laterFile)
	return all
}

// checkOverwrite holds that what others have written since the listing is there, that
// each of n files is published or staged where it was, and none both; and that the old
// files are all there, and nothing is published, or are gone.
func (w *world) checkOverwrite(n int, when string) (published []int) {
	w.t.Helper()
	for _, key := range []string{replacedKey, laterKey} {
		if got := w.there(key); got != laterFile {
			w.t.Errorf("%s: %s is %q: others wrote it after the listing", when, key, got)
		}
	}
	published = w.published(n)
	old := 0
	for _, key := range []string{oldKey, batchKey(0)} {
		if w.there(key) == theirFile {
			old++
		}
	}
	if old == 2 && len(published) > 0 || len(published) > 0 && old > 0 {
		w.t.Errorf("%s: %v are published, and %d old files are there", when, published, old)
	}
	var staged []int
	for _, f := range w.area.Files() {
		for i := range n {
			if f.Dirty() && f.Record().Target == w.loc(batchFrom(i)) && f.Record().Hold == staging.Local && bytesOf(w.t, f) == batchData(i) {
				staged = append(staged, i)
			}
		}
	}
	slices.Sort(staged)
	for i := range n {
		if slices.Contains(published, i) == slices.Contains(staged, i) {
			w.t.Errorf("%s: published %v, staged %v; file %d is both or neither", when, published, staged, i)
		}
	}
	if left := len(w.area.Batches()); left != 0 {
		w.t.Errorf("%s: %d batches are left", when, left)
	}
	return published
}

func TestRule30ClearsFirst(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			old := w.listed()
			members := w.stageBatch(3)
			var steps []int
			objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true, Progress: func(done, total int) {
				if total != 6 {
					t.Errorf("%d steps in all", total)
				}
				steps = append(steps, done)
			}})
			if err != nil || len(objects) != 3 {
				t.Fatalf("PublishAll: %v, %v", objects, err)
			}
			if !slices.Equal(steps, []int{1, 2, 3, 4, 5, 6}) {
				t.Errorf("progress: %v", steps)
			}
			for i, m := range members {
				if m.File.Dirty() || objects[i].Location != w.loc(batchKey(i)) {
					t.Errorf("file %d: dirty %v, object %+v", i, m.File.Dirty(), objects[i])
				}
			}
			if all := w.checkOverwrite(3, "overwritten"); len(all) != 3 || w.there(oldKey) != "absent" {
				t.Errorf("published: %v; old: %q", all, w.there(oldKey))
			}
			if left := w.leftovers(); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestRule30EmptiesWithNoFiles: a replacement of a table by nothing.
func TestRule30EmptiesWithNoFiles(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			for k := 0; ; k++ {
				w := newWorld(t, way)
				w.c.atOnce = 1
				old := w.listed()
				w.steps, w.dieAt = 0, k
				objects, err := w.c.PublishAll(t.Context(), nil, Together{Clear: old, Path: "db/t/dt=1"})
				steps := w.steps
				if err == nil && len(objects) != 0 {
					t.Errorf("objects of nothing: %v", objects)
				}
				w.restart()
				if _, failed := w.c.Recover(t.Context()); failed != nil {
					t.Fatal(failed)
				}
				gone := w.there(oldKey) == "absent" && w.there(batchKey(0)) == "absent"
				intact := w.there(oldKey) == theirFile && w.there(batchKey(0)) == theirFile
				if err == nil && !gone || !gone && !intact || w.there(laterKey) != laterFile || w.there(replacedKey) != laterFile {
					t.Errorf("step %d, %v: %q, %q, %q", k, err, w.there(oldKey), w.there(batchKey(0)), w.there(replacedKey))
				}
				if left := w.leftovers(); len(left) != 0 {
					t.Errorf("step %d: left: %q", k, left)
				}
				w.close()
				if k > steps {
					return
				}
			}
		})
	}
}

// TestRule29CrashInAnOverwrite ends the process at every step of an overwrite by three
// files, and its recovery at some of its own: the old files and the new ones are never
// lost both, and what others wrote is not touched.
func TestRule29CrashInAnOverwrite(t *testing.T) {
	for _, way := range ways() {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fails %v", way, fails), func(t *testing.T) {
				steps := playOverwrite(t, way, fails, 0, 0)
				if steps < 14 {
					t.Fatalf("%d steps: the seams are gone", steps)
				}
				for k := 1; k <= steps; k++ {
					playOverwrite(t, way, fails, k, 0)
				}
				if testing.Short() {
					return
				}
				for k := 1; k <= steps; k += 3 {
					for j := 1; playOverwrite(t, way, fails, k, j) >= j; {
						j += 2
					}
				}
			})
		}
	}
}

// playOverwrite is playBatch of an overwrite.
func playOverwrite(t *testing.T, way string, fails bool, k, j int) int {
	t.Helper()
	w := newWorld(t, way)
	w.c.atOnce = 1
	old := w.listed()
	if fails {
		w.others(batchKey(2))
	}
	members := w.stageBatch(3)
	w.steps, w.dieAt = 0, k
	objects, told := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true})
	when := fmt.Sprintf("step %d, recovery's %d", k, j)
	if k == 0 {
		checkUndisturbed(t, w, fails, objects, told)
	}
	steps := w.steps
	recoverIt := func(dieAt int) error {
		w.restart()
		w.c.atOnce = 1
		w.steps, w.dieAt = 0, dieAt
		_, err := w.c.Recover(t.Context())
		return err
	}
	if j > 0 {
		_ = recoverIt(j)
		steps = w.steps
	}
	if err := recoverIt(0); err != nil {
		t.Fatalf("%s: Recover: %v", when, err)
	}
	there := w.checkOverwrite(3, when)
	switch {
	case fails && (slices.Contains(there, 2) || w.there(batchKey(2)) != theirFile):
		t.Errorf("%s: published over another's file", when)
	case !fails && len(there) != 0 && len(there) != 3:
		t.Errorf("%s: %v are published", when, there)
	case !fails && len(there) == 0 && (w.there(oldKey) != theirFile || w.there(batchKey(0)) != theirFile):
		t.Errorf("%s: nothing is published, and old files are gone", when)
	case !fails && told == nil && len(there) != 3:
		t.Errorf("%s: acknowledged, and not there", when)
	}
	for _, i := range there {
		if !w.knows("db/"+batchKey(0), batchKey(0)) && !w.knows("db/"+batchKey(i), batchKey(i)) {
			t.Errorf("%s: published, and the partition is not registered", when)
		}
	}
	before, kept := w.published(3), w.leftovers()
	if err := recoverIt(0); err != nil || !slices.Equal(w.published(3), before) || !slices.Equal(w.leftovers(), kept) {
		t.Errorf("%s: a second Recover is not harmless: %v", when, err)
	}
	w.close()
	return steps
}

// checkUndisturbed is what a PublishAll that nothing happened to has answered.
func checkUndisturbed(t *testing.T, w *world, fails bool, objects []objectstore.Object, err error) {
	t.Helper()
	if fails != (err != nil) || fails && !errors.Is(err, objectstore.ErrExist) || len(objects) != 3 {
		t.Fatalf("undisturbed: %v, %v", objects, err)
	}
	for i, o := range objects {
		if gone := o.ETag == ""; gone != (fails && i == 2) {
			t.Errorf("object %d: %+v", i, o)
		}
	}
	w.checkOverwrite(3, "undisturbed")
}
