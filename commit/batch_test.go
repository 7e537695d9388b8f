package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// theirFile is what others have at the target of a batch's last file.
const theirFile = "another's"

func batchKey(i int) string  { return fmt.Sprintf("t/dt=1/f%d", i) }
func batchFrom(i int) string { return fmt.Sprintf("t/_temporary/0/f%d", i) }

// batchData is what the files of a batch have: the second one goes in parts.
func batchData(i int) string {
	if i == 1 {
		return large
	}
	return fmt.Sprintf("file %d\n", i)
}

// member stages a file in a staging tree, to be published out of it.
func (w *world) member(i int) (Member, error) {
	n := w.newWrite(nil)
	n.Target, n.Path, n.Hold, n.Attributes.Mode = w.loc(batchFrom(i)), "db/"+batchFrom(i), staging.Local, 0o440
	f, err := w.area.Create(w.t.Context(), n)
	if err == nil {
		err = write(w, f, batchData(i), 0)
	}
	to := n
	to.Target, to.Path, to.Hold = w.loc(batchKey(i)), "db/"+batchKey(i), staging.Unheld
	return Member{File: f, To: to, Data: true}, err
}

// stageBatch stages the files of a batch.
func (w *world) stageBatch(n int) []Member {
	w.t.Helper()
	all := make([]Member, n)
	for i := range all {
		var err error
		if all[i], err = w.member(i); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// others puts another's object at a key.
func (w *world) others(key string) {
	w.t.Helper()
	if w.mem != nil {
		w.mem.put(w.loc(key), []byte(theirFile), nil)
		return
	}
	path := filepath.Join(w.root, key)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(theirFile), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// removeKey is what others do.
func (w *world) removeKey(key string) {
	w.t.Helper()
	if w.mem != nil {
		w.mem.remove(w.loc(key))
	} else if err := os.Remove(filepath.Join(w.root, key)); err != nil {
		w.t.Fatal(err)
	}
}

// published lists which files of a batch of n the lake has, with their bytes.
func (w *world) published(n int) (there []int) {
	w.t.Helper()
	for i := range n {
		switch got := w.there(batchKey(i)); got {
		case batchData(i):
			there = append(there, i)
		case "absent", theirFile:
		default:
			w.t.Errorf("%s has %d bytes %.40q", batchKey(i), len(got), got)
		}
	}
	return there
}

// checkAllOrNone holds that the lake has all files of a batch, and nothing is staged,
// or none, and all are staged where they were.
func (w *world) checkAllOrNone(n int, when string) (all bool) {
	w.t.Helper()
	there := w.published(n)
	if left := len(w.area.Batches()); left != 0 {
		w.t.Errorf("%s: %d batches are left", when, left)
	}
	if len(there) == n {
		if left := w.leftovers(); len(left) != 0 {
			w.t.Errorf("%s: all published, and %q are staged", when, left)
		}
		if !w.knows("db/"+batchKey(0), batchKey(0)) {
			w.t.Errorf("%s: published, and the partition is not registered", when)
		}
		return true
	}
	if len(there) != 0 {
		w.t.Errorf("%s: %v of %d files are published", when, there, n)
	}
	w.checkStaged(n, when)
	return false
}

// checkStaged holds that all files of a batch are staged where they were.
func (w *world) checkStaged(n int, when string) {
	w.t.Helper()
	files := w.area.Files()
	for i := range n {
		at := slices.IndexFunc(files, func(f *staging.File) bool { return f.Record().Target == w.loc(batchFrom(i)) })
		if at < 0 {
			w.t.Errorf("%s: file %d is not staged where it was", when, i)
			continue
		}
		r := files[at].Record()
		if got := bytesOf(w.t, files[at]); got != batchData(i) || r.Hold != staging.Local || r.Path != "db/"+batchFrom(i) {
			w.t.Errorf("%s: file %d: %d bytes %.40q, %+v", when, i, len(got), got, r)
		}
		if r.State != staging.Staged && r.State != staging.Failed {
			w.t.Errorf("%s: file %d is %s", when, i, r.State)
		}
	}
	if w.parts != nil && w.parts.left() > w.lostUploads() {
		w.t.Errorf("%s: %d uploads are left in the store, %d that nobody can know", when, w.parts.left(), w.lostUploads())
	}
}

func TestPublishAll(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			members := w.stageBatch(40)
			objects, err := w.c.PublishAll(t.Context(), members, Together{})
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range members {
				now, err := w.backing().Stat(t.Context(), w.loc(batchKey(i)))
				if err != nil || objects[i].ETag != now.ETag || objects[i].Location != now.Location {
					t.Errorf("object %d is %+v, there is %+v, %v", i, objects[i], now, err)
				}
				if m.File.Dirty() || bytesOf(t, m.File) != batchData(i) || m.File.Record().Path != "db/"+batchKey(i) {
					t.Errorf("file %d: dirty %v, %+v", i, m.File.Dirty(), m.File.Record())
				}
				if err := m.File.Drop(); err != nil {
					t.Error(err)
				}
			}
			if n := w.count("catalog register"); n != 1 {
				t.Errorf("%d registrations of one partition", n)
			}
			w.checkAllOrNone(40, "after PublishAll")
		})
	}
}

// TestPublishAllAgain: what was taken back is published once nothing is in its way, and
// a file that was published together with others goes on as any.
func TestPublishAllAgain(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			members := w.stageBatch(3)
			w.others(batchKey(2))
			if _, err := w.c.PublishAll(t.Context(), members, Together{}); !errors.Is(err, objectstore.ErrExist) {
				t.Errorf("PublishAll over another's file: %v, want ErrExist", err)
			}
			if w.checkAllOrNone(3, "after a failure") || w.there(batchKey(2)) != theirFile {
				t.Errorf("published, or another's file is gone: %q", w.there(batchKey(2)))
			}
			for i, m := range members {
				if m.File.Record().State != staging.Staged || !m.File.Dirty() {
					t.Errorf("file %d: %+v", i, m.File.Record())
				}
			}
			w.removeKey(batchKey(2))
			objects, err := w.c.PublishAll(t.Context(), members, Together{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := members[0].File.Append(t.Context(), []byte("more\n")); err != nil {
				t.Fatal(err)
			}
			if obj, err := w.c.Commit(t.Context(), members[0].File); err != nil || obj.ETag == objects[0].ETag {
				t.Errorf("the next version: %+v, %v", obj, err)
			}
			if got, want := w.there(batchKey(0)), batchData(0)+"more\n"; got != want {
				t.Errorf("the next version is %q", got)
			}
		})
	}
}

// TestPublishAllChecksFirst: nothing is asked of the store, or the catalog, for a batch
// that cannot be published.
func TestPublishAllChecksFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(w *world, all []Member) []Member
		want  error
	}{
		"format": {func(_ *world, all []Member) []Member { all[2].To.Format = "parquet"; return all }, ErrFormat},
		"empty": {func(w *world, all []Member) []Member {
			all[2].To.Format = "parquet"
			if err := all[2].File.Truncate(w.t.Context(), 0); err != nil {
				w.t.Fatal(err)
			}
			return all
		}, ErrEmpty},
		"one target": {func(_ *world, all []Member) []Member { all[2].To = all[1].To; return all }, objectstore.ErrExist},
		"one file":   {func(_ *world, all []Member) []Member { all[2].File = all[1].File; return all }, objectstore.ErrExist},
		"outside of its table": {func(w *world, all []Member) []Member {
			all[2].To.Target = w.loc("u/f")
			return all
		}, objectstore.ErrName},
		"over a version": {func(_ *world, all []Member) []Member {
			all[2].To.Cond = objectstore.Cond{IfMatch: "x"}
			return all
		}, errors.ErrUnsupported},
		"dropped": {func(w *world, all []Member) []Member {
			if err := all[2].File.Drop(); err != nil {
				w.t.Fatal(err)
			}
			return all
		}, staging.ErrDropped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, put)
			members := tt.spoil(w, w.stageBatch(3))
			w.take()
			if _, err := w.c.PublishAll(t.Context(), members, Together{}); !errors.Is(err, tt.want) {
				t.Errorf("PublishAll: %v, want %v", err, tt.want)
			}
			if log := w.take(); log != "\n" {
				t.Errorf("done all the same:\n%s", log)
			}
			if _, err := w.c.Commit(t.Context(), members[0].File); err != nil { // it is not held
				t.Errorf("Commit: %v", err)
			}
		})
	}
}

// TestPublishAllUnregistered: the catalog does not take the partition.
func TestPublishAllUnregistered(t *testing.T) {
	w := newWorld(t, put)
	members := w.stageBatch(3)
	w.before = func(op string) error {
		if op == "register" {
			return objectstore.ErrPermission
		}
		return nil
	}
	if _, err := w.c.PublishAll(t.Context(), members, Together{}); !errors.Is(err, objectstore.ErrPermission) || w.count("store put") != 0 {
		t.Errorf("PublishAll: %v, %d puts", err, w.count("store put"))
	}
	w.checkStaged(3, "unregistered")
	for i := range members {
		members[i].Data = false // hidden, say
	}
	if _, err := w.c.PublishAll(t.Context(), members, Together{}); err != nil {
		t.Errorf("PublishAll of no data: %v", err)
	}
}

// TestPublishAllWithTheStoreDown: what was published cannot be taken back. It is known
// on disk, and done as soon as the store answers: before the files are published anew,
// by the mount, or by the next one.
func TestPublishAllWithTheStoreDown(t *testing.T) {
	for _, way := range ways() {
		for _, then := range []string{"publish again", "publish one", "the mount", "the next mount"} {
			t.Run(way+"/"+then, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, way)
					w.c.atOnce = 1
					members := w.stageBatch(3)
					w.others(batchKey(2))
					w.before = func(op string) error {
						if op == "delete" || op == "return" {
							return objectstore.ErrUnavailable
						}
						return nil
					}
					if _, err := w.c.PublishAll(t.Context(), members, Together{}); !errors.Is(err, objectstore.ErrExist) || !errors.Is(err, errHalf) {
						t.Errorf("PublishAll: %v, want ErrExist and errHalf", err)
					}
					if n := len(w.area.Batches()); n != 1 || len(w.published(3)) != 2 {
						t.Errorf("%d batches, published %v; want what could not be taken back", n, w.published(3))
					}
					w.c.FinishRenames(t.Context()) // no better
					w.before = nil
					w.removeKey(batchKey(2))
					switch then {
					case "publish again":
						if _, err := w.c.PublishAll(t.Context(), members, Together{}); err != nil || len(w.published(3)) != 3 {
							t.Errorf("PublishAll: %v, published %v", err, w.published(3))
						}
					case "publish one":
						if _, err := w.c.Commit(t.Context(), members[0].File); err != nil || len(w.published(3)) != 0 || w.there(batchFrom(0)) != batchData(0) {
							t.Errorf("Commit: %v, published %v", err, w.published(3))
						}
					case "the mount":
						w.c.FinishRenames(t.Context())
						if w.checkAllOrNone(3, then) {
							t.Error("published after an error")
						}
					default:
						w.restart()
						report, err := w.c.Recover(t.Context())
						if err != nil || len(report.Kept) != 3 || w.checkAllOrNone(3, then) {
							t.Errorf("Recover: %+v, %v", report, err)
						}
					}
					if n := len(w.area.Batches()); n != 0 {
						t.Errorf("%d batches are left", n)
					}
					w.close()
				})
			})
		}
	}
}

// TestPublishAllEnded: the caller gives up. All or none, by the next look at the store.
func TestPublishAllEnded(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.c.atOnce = 1
			members := w.stageBatch(3)
			ctx, cancel := context.WithCancel(t.Context())
			w.answer = func(op string) error {
				if op == "adopt" || op == "put" {
					cancel()
				}
				return nil
			}
			_, err := w.c.PublishAll(ctx, members, Together{})
			w.answer = nil
			if !errors.Is(err, context.Canceled) {
				t.Errorf("PublishAll: %v", err)
			}
			w.c.FinishRenames(t.Context())
			w.checkAllOrNone(3, "ended")
		})
	}
}

// TestCrashInABatch ends the process at every step of a publish of three files, and its
// recovery at some of its own: all or none, and nothing is lost.
func TestCrashInABatch(t *testing.T) {
	for _, way := range ways() {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fails %v", way, fails), func(t *testing.T) {
				steps := playBatch(t, way, fails, 0, 0)
				if steps < 8 {
					t.Fatalf("%d steps: the seams are gone", steps)
				}
				for k := 1; k <= steps; k++ {
					playBatch(t, way, fails, k, 0)
				}
				if testing.Short() {
					return
				}
				for k := 1; k <= steps; k += 3 {
					for j := 1; playBatch(t, way, fails, k, j) >= j; {
						j += 2
					}
				}
			})
		}
	}
}

// playBatch publishes three files with an end at step k (0: none), recovers with an end
// at step j of that, recovers again, and checks. It returns the steps of the publish,
// or with j those of the recovery.
func playBatch(t *testing.T, way string, fails bool, k, j int) int {
	t.Helper()
	w := newWorld(t, way)
	w.c.atOnce = 1
	if fails {
		w.others(batchKey(2))
	}
	members := w.stageBatch(3)
	w.steps, w.dieAt = 0, k
	_, err := w.c.PublishAll(t.Context(), members, Together{})
	if k == 0 && fails != (err != nil) {
		t.Fatalf("undisturbed: %v", err)
	}
	acknowledged := err == nil
	steps := w.steps
	when := fmt.Sprintf("step %d, recovery's %d", k, j)
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
	all := w.checkAllOrNone(3, when)
	switch {
	case fails && (all || w.there(batchKey(2)) != theirFile):
		t.Errorf("%s: published over another's file", when)
	case acknowledged && !all:
		t.Errorf("%s: acknowledged, and not there", when)
	}
	before, kept := w.published(3), w.leftovers()
	if err := recoverIt(0); err != nil || !slices.Equal(w.published(3), before) || !slices.Equal(w.leftovers(), kept) {
		t.Errorf("%s: a second Recover is not harmless: %v", when, err)
	}
	w.close()
	return steps
}

// TestFaultInABatch lets each call of the store fail once, before or after it took
// effect: the publish is tried again, and succeeds.
func TestFaultInABatch(t *testing.T) {
	for _, way := range ways() {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fails %v", way, fails), func(t *testing.T) {
				for k := 1; faultyBatch(t, way, fails, k, false); k++ {
					faultyBatch(t, way, fails, k, true)
				}
			})
		}
	}
}

func faultyBatch(t *testing.T, way string, fails bool, k int, effect bool) bool {
	t.Helper()
	calls, failed := 0, ""
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, way)
		w.c.atOnce = 1
		if fails {
			w.others(batchKey(2))
		}
		members := w.stageBatch(3)
		fail := func(op string) error {
			if calls++; calls == k {
				failed = op
				return objectstore.ErrUnavailable
			}
			return nil
		}
		if effect {
			w.answer = fail
		} else {
			w.before = fail
		}
		_, err := w.c.PublishAll(t.Context(), members, Together{})
		when := fmt.Sprintf("call %d, %s, effect %v: %v", k, failed, effect, err)
		w.before, w.answer = nil, nil
		if !fails && err != nil && failed != "register" {
			t.Error(when)
		}
		w.c.FinishRenames(t.Context())
		if failed := w.area.AbortUploads(t.Context()); failed != nil {
			t.Error(failed)
		}
		if n := len(w.published(3)); (err == nil) != (n == 3) || err != nil && n != 0 {
			t.Errorf("%s: %d are published", when, n)
		}
		if err != nil {
			w.checkAllOrNone(3, when)
		}
		w.close()
	})
	return failed != ""
}

// TestRecoverDamagedBatch: a power loss damaged a file that was to be published with
// others. None is.
func TestRecoverDamagedBatch(t *testing.T) {
	for _, way := range []string{put, flat, parts} {
		for _, at := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s/%d", way, at), func(t *testing.T) {
				w := newWorld(t, way)
				w.c.atOnce = 1
				members := w.stageBatch(3)
				w.before = func(op string) error {
					if op == "put" && w.count("store put") == 2 {
						w.dead = true
						return errDead
					}
					return nil
				}
				if _, err := w.c.PublishAll(t.Context(), members, Together{}); err == nil {
					t.Fatal("published")
				}
				w.before = nil
				there := w.published(3)
				path := filepath.Join(w.dir, members[at].File.ID(), "data")
				if err := os.WriteFile(path, []byte(strings.Repeat("?", len(batchData(at)))), 0o600); err != nil {
					t.Fatal(err)
				}
				w.restart()
				report, err := w.c.Recover(t.Context())
				all := len(w.published(3)) == 3
				if done := slices.Contains(there, at); err != nil || all != done {
					t.Errorf("Recover: %+v, %v; %v were published, %v are", report, err, there, w.published(3))
				}
				if !all && (len(w.published(3)) != 0 || len(report.Kept) != 3) {
					t.Errorf("published %v, kept %+v", w.published(3), report.Kept)
				}
				for _, r := range report.Kept {
					damaged := r.ID == members[at].File.ID() // the others are the job's, as they were
					if (r.State == staging.Failed) != damaged || (r.Error != "") != damaged || r.Hold != staging.Local {
						t.Errorf("kept as %+v", r)
					}
				}
			})
		}
	}
}

// TestRecoverBatchWithTheStoreDown: the next mount goes on with it.
func TestRecoverBatchWithTheStoreDown(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.killedBatch(w.stageBatch(3))
			w.restart()
			w.before = func(string) error { return objectstore.ErrUnavailable }
			w.c.retry = 1
			report, err := w.c.Recover(t.Context())
			if err != nil || len(report.Kept) != 4 || len(w.area.Batches()) != 1 {
				t.Errorf("Recover: %+v, %v", report, err)
			}
			id := w.area.Batches()[0].Record().ID
			file := w.area.Files()[0].ID()
			if err := w.c.Publish(t.Context(), id, nil); !errors.Is(err, objectstore.ErrUnavailable) {
				t.Errorf("Publish: %v, want ErrUnavailable", err)
			}
			for _, err := range []error{w.c.Publish(t.Context(), file, nil), w.c.Abort(t.Context(), file)} {
				if !errors.Is(err, staging.ErrBatched) || !strings.Contains(err.Error(), id) {
					t.Errorf("of one file: %v, want ErrBatched and the id of all", err)
				}
			}
			w.before = nil
			if err := w.c.Publish(t.Context(), id, nil); err != nil || !w.checkAllOrNone(3, "published by hand") {
				t.Errorf("Publish: %v", err)
			}
		})
	}
}

// killedBatch is a PublishAll whose process ends at its second publish.
func (w *world) killedBatch(members []Member) {
	w.t.Helper()
	w.c.atOnce = 1
	done := 0
	w.before = func(op string) error {
		if op == "put" || op == "adopt" || op == "complete" {
			if done++; done == 2 {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.dead = true
				return errDead
			}
		}
		return nil
	}
	if _, err := w.c.PublishAll(w.t.Context(), members, Together{}); err == nil {
		w.t.Fatal("published")
	}
	w.before = nil
}

func TestAbortBatch(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.killedBatch(w.stageBatch(3))
			w.restart()
			id := w.area.Batches()[0].Record().ID
			if err := w.c.Abort(t.Context(), id); err != nil || w.checkAllOrNone(3, "aborted") {
				t.Errorf("Abort: %v", err)
			}
			for _, f := range w.area.Files() {
				if err := w.c.Abort(t.Context(), f.ID()); err != nil {
					t.Errorf("Abort of one file: %v", err)
				}
			}
			if left := w.leftovers(); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestAbortOfAPublishedBatch: what is left here of files that are published goes, and
// who asked is told.
func TestAbortOfAPublishedBatch(t *testing.T) {
	w := newWorld(t, put)
	m := w.stageBatch(1)[0]
	to := placeOf(m.To)
	note, err := w.area.NewBatch(staging.BatchPlan{Members: []staging.BatchMember{{ID: m.File.ID(), From: to, To: to, Size: m.File.Size()}}})
	if err == nil {
		err = note.Begin()
	}
	if err == nil {
		err = note.SetState(staging.BatchMoved, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.c.Abort(t.Context(), note.Record().ID); !errors.Is(err, objectstore.ErrExist) || len(w.leftovers()) != 0 {
		t.Errorf("Abort: %v, %q are left", err, w.leftovers())
	}
}

// TestExpireLeavesBatches: a file that is to be published with others does not age.
func TestExpireLeavesBatches(t *testing.T) {
	w := newWorld(t, put)
	w.killedBatch(w.stageBatch(3))
	w.restart()
	w.close()
	area, err := staging.Open(w.dir, staging.Options{Store: w.folder, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer area.Close() //nolint:errcheck // a test's
	if gone := area.Expire(t.Context()); len(gone) != 0 {
		t.Errorf("dropped: %+v", gone)
	}
}

func TestGoldenBatch(t *testing.T) {
	for _, way := range ways() {
		for name, prepare := range map[string]func(w *world){
			"batch":        func(*world) {},
			"batch-failed": func(w *world) { w.others(batchKey(2)) },
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				w := newWorld(t, way)
				w.c.atOnce = 1
				prepare(w)
				members := w.stageBatch(3)
				w.take()
				_, err := w.c.PublishAll(t.Context(), members, Together{})
				if (err != nil) != (name == "batch-failed") {
					t.Fatal(err)
				}
				golden(t, w, way+"-"+name)
			})
		}
	}
}

func TestGoldenBatchRecovery(t *testing.T) {
	for _, way := range []string{adopt, flat} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.killedBatch(w.stageBatch(3))
			w.restart()
			w.c.atOnce = 1
			w.take()
			if _, err := w.c.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			golden(t, w, "recover-batch-"+way)
		})
	}
}
