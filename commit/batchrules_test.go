package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// failing lets calls of the store fail, as its caller sees them.
type failing struct {
	ops  []string
	err  error
	from int // the first of them that fails; 0: the first
	seen int
}

func (f *failing) next(op string) error {
	if slices.Contains(f.ops, op) {
		if f.seen++; f.seen > f.from {
			return f.err
		}
	}
	return nil
}

// TestRule26OneTarget: no two files of a commit name one target, though it is among
// what an overwrite removes.
func TestRule26OneTarget(t *testing.T) {
	for _, way := range ways() {
		w := newWorld(t, way)
		old := w.listed()
		members := w.stageBatch(3)
		members[2].To = members[0].To
		w.take()
		if _, err := w.c.PublishAll(t.Context(), members, Together{Clear: old}); !errors.Is(err, objectstore.ErrExist) {
			t.Errorf("%s: PublishAll: %v, want ErrExist", way, err)
		}
		if log := w.take(); log != "\n" {
			t.Errorf("%s: done all the same:\n%s", way, log)
		}
	}
}

// TestRule27InsideItsTable: an overwrite removes nothing where a file of it leaves its
// table, or what it is to remove is no file.
func TestRule27InsideItsTable(t *testing.T) {
	for name, spoil := range map[string]func(w *world, all []Member, old []objectstore.Object){
		"another table": func(w *world, all []Member, _ []objectstore.Object) { all[1].To.Target = w.loc("u/f") },
		"upwards":       func(w *world, all []Member, _ []objectstore.Object) { all[1].To.Target = w.loc("t/../f") },
		"a directory":   func(w *world, _ []Member, old []objectstore.Object) { old[1].Location = w.loc("t/dt=1/") },
		"no version":    func(_ *world, _ []Member, old []objectstore.Object) { old[1].ETag = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, flat)
			old, members := w.listed(), w.stageBatch(3)
			spoil(w, members, old)
			w.take()
			if objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old}); err == nil || objects != nil {
				t.Errorf("PublishAll: %v, %v", objects, err)
			}
			if log := w.take(); log != "\n" {
				t.Errorf("done all the same:\n%s", log)
			}
		})
	}
}

// TestRule28TakesBack: an append whose last file cannot be published takes back every
// other one, and the one whose outcome nobody knows, on the evidence of its write id.
func TestRule28TakesBack(t *testing.T) {
	for _, way := range []string{put, flat} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, way)
				w.c.atOnce = 1
				members := w.stageBatch(4)
				lost := &failing{ops: []string{"put"}, err: objectstore.ErrUnavailable, from: 2}
				looks := &failing{ops: []string{"stat"}, err: objectstore.ErrUnavailable}
				w.answer = lost.next // the third took effect, and nobody is told
				w.before = func(op string) error {
					if w.count("store delete") > 0 || lost.seen <= 2 {
						return nil
					}
					return looks.next(op)
				}
				w.c.retry = 1
				objects, err := w.c.PublishAll(t.Context(), members, Together{})
				if objects != nil || !errors.Is(err, objectstore.ErrUnavailable) || !errors.Is(err, errHalf) {
					t.Errorf("PublishAll: %v, %v", objects, err)
				}
				if w.there(batchKey(2)) != batchData(2) {
					t.Errorf("the lost one is %q: the test is none", w.there(batchKey(2)))
				}
				w.before, w.answer = nil, nil
				w.c.FinishRenames(t.Context())
				if w.checkAllOrNone(4, "taken back") {
					t.Error("published after an error")
				}
				w.close()
			})
		})
	}
}

// TestRule29KeepsWhatIsPublished: the files of an overwrite that ended half done are
// published, or staged as they were; and the rest goes on as a commit of its own.
func TestRule29KeepsWhatIsPublished(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.c.atOnce = 1
			old := w.listed()
			w.others(batchKey(2))
			members := w.stageBatch(4)
			objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true})
			if !errors.Is(err, objectstore.ErrExist) || errors.Is(err, errSome) || len(objects) != 4 || isUnregistered(err) {
				t.Fatalf("PublishAll: %v, %v", objects, err)
			}
			if there := w.checkOverwrite(4, "half done"); !slices.Equal(there, []int{0, 1}) {
				t.Errorf("published: %v", there)
			}
			if !w.knows("db/"+batchKey(0), batchKey(0)) {
				t.Error("what is published is in no partition of the catalog")
			}
			var rest []Member
			for i, m := range members {
				if published := objects[i].ETag != ""; published == m.File.Dirty() {
					t.Errorf("file %d: dirty %v, object %+v", i, m.File.Dirty(), objects[i])
				}
				if m.File.Dirty() {
					rest = append(rest, m)
				} else if err := m.File.Drop(); err != nil {
					t.Error(err)
				}
			}
			w.removeKey(batchKey(2))
			if _, err := w.c.PublishAll(t.Context(), rest, Together{}); err != nil || len(w.checkOverwrite(4, "then")) != 4 {
				t.Errorf("the rest: %v", err)
			}
		})
	}
}

// TestRule29RefusedRemovals: nothing is published where something may not be removed.
func TestRule29RefusedRemovals(t *testing.T) {
	for _, way := range ways() {
		for _, from := range []int{0, 1} {
			for name, cause := range map[string]error{"refused": objectstore.ErrPermission, "down": objectstore.ErrUnavailable} {
				t.Run(fmt.Sprintf("%s/%s from %d", way, name, from), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, way)
						w.c.atOnce = 1
						old, members := w.listed(), w.stageBatch(3)
						w.take()
						fail := &failing{ops: []string{"delete"}, err: cause, from: from}
						w.before = fail.next
						objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old})
						w.before = nil
						if !errors.Is(err, cause) || objects != nil || errors.Is(err, errSome) {
							t.Errorf("PublishAll: %v, %v", objects, err)
						}
						if w.count("store put")+w.count("store adopt") != 0 || len(w.checkOverwrite(3, name)) != 0 {
							t.Error("published")
						}
						if gone := w.there(oldKey) == "absent"; gone != (from == 1) || w.there(batchKey(0)) != theirFile {
							t.Errorf("old: %q, %q", w.there(oldKey), w.there(batchKey(0)))
						}
						w.checkStaged(3, name)
						// Once it may be, it is done, with a listing of what is left.
						if _, err := w.c.PublishAll(t.Context(), members, Together{Clear: old}); err != nil || len(w.checkOverwrite(3, "then")) != 3 {
							t.Errorf("then: %v", err)
						}
						w.close()
					})
				})
			}
		}
	}
}

// TestRule29LostAnswers lets each call of the store and the catalog fail once, before or
// after it took effect: an overwrite succeeds, or ends with all in one place.
func TestRule29LostAnswers(t *testing.T) {
	for _, way := range ways() {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fails %v", way, fails), func(t *testing.T) {
				for k := 1; faultyOverwrite(t, way, fails, k, false); k++ {
					faultyOverwrite(t, way, fails, k, true)
				}
			})
		}
	}
}

func faultyOverwrite(t *testing.T, way string, fails bool, k int, effect bool) bool {
	t.Helper()
	failed := ""
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, way)
		w.c.atOnce = 1
		old := w.listed()
		if fails {
			w.others(batchKey(2))
		}
		members := w.stageBatch(3)
		calls := 0
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
		objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true})
		when := fmt.Sprintf("call %d, %s, effect %v: %v", k, failed, effect, err)
		w.before, w.answer = nil, nil
		if !fails && (err != nil) != (failed == "register") || len(objects) != 3 {
			t.Error(when)
		}
		if failed == "register" && !fails && !isUnregistered(err) {
			t.Errorf("%s: want a *RegisterError", when)
		}
		w.c.FinishRenames(t.Context())
		if failed := w.area.AbortUploads(t.Context()); failed != nil {
			t.Error(failed)
		}
		there := w.checkOverwrite(3, when)
		for i, o := range objects {
			if (o.ETag != "") != slices.Contains(there, i) {
				t.Errorf("%s: object %d is %+v, published are %v", when, i, o, there)
			}
		}
		w.close()
	})
	return failed != ""
}

// TestRule29UnclearOfAnOverwrite: a file whose publish nobody answers for is told to be
// staged, and is not published later.
func TestRule29UnclearOfAnOverwrite(t *testing.T) {
	for _, way := range []string{put, flat} {
		for _, then := range []string{"the mount", "the next mount", "publish again"} {
			t.Run(way+"/"+then, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, way)
					w.c.atOnce, w.c.retry = 1, 1
					old, members := w.listed(), w.stageBatch(3)
					lost := &failing{ops: []string{"put"}, err: objectstore.ErrUnavailable, from: 1}
					w.answer = lost.next
					w.before = func(op string) error {
						if op == "stat" && lost.seen > 1 {
							return objectstore.ErrUnavailable
						}
						return nil
					}
					objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old})
					if !errors.Is(err, objectstore.ErrUnavailable) || !errors.Is(err, errSome) || len(objects) != 3 || objects[0].ETag == "" || objects[1].ETag != "" {
						t.Fatalf("PublishAll: %v, %v", objects, err)
					}
					if !slices.Equal(w.published(3), []int{0, 1}) || len(w.area.Batches()) != 1 {
						t.Fatalf("published: %v; the test is none", w.published(3))
					}
					w.answer, w.before = nil, nil
					switch then {
					case "the mount":
						w.c.FinishRenames(t.Context())
					case "publish again":
						if _, err := w.c.PublishAll(t.Context(), members[1:], Together{}); err != nil || len(w.checkOverwrite(3, then)) != 3 {
							t.Errorf("PublishAll: %v", err)
						}
						w.close()
						return
					default:
						w.restart()
						if _, err := w.c.Recover(t.Context()); err != nil {
							t.Error(err)
						}
					}
					if there := w.checkOverwrite(3, then); !slices.Equal(there, []int{0}) {
						t.Errorf("published: %v", there)
					}
					w.close()
				})
			})
		}
	}
}

// killedClear is an overwrite whose process ends at its second removal.
func (w *world) killedClear(members []Member, old []objectstore.Object) (id string) {
	w.t.Helper()
	w.c.atOnce = 1
	done := 0
	w.before = func(op string) error {
		if op == "delete" {
			if done++; done == 2 {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.dead = true
				return errDead
			}
		}
		return nil
	}
	if _, err := w.c.PublishAll(w.t.Context(), members, Together{Clear: old, RegisterLast: true}); err == nil {
		w.t.Fatal("published")
	}
	w.before = nil
	w.restart()
	w.c.atOnce = 1
	all := w.area.Batches()
	if len(all) != 1 || all[0].Record().State != staging.BatchClearing || len(all[0].Record().Clear) != len(old) {
		w.t.Fatalf("batches: %d", len(all))
	}
	return all[0].Record().ID
}

// TestRule30ByHand: a person decides on an overwrite whose mount ended while it removed.
func TestRule30ByHand(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			old, members := w.listed(), w.stageBatch(3)
			id := w.killedClear(members, old)
			if err := w.c.Abort(t.Context(), members[0].File.ID()); !errors.Is(err, staging.ErrBatched) {
				t.Errorf("Abort of one file: %v, want ErrBatched", err)
			}
			if err := w.c.Abort(t.Context(), id); err != nil || len(w.published(3)) != 0 {
				t.Errorf("Abort: %v, published %v", err, w.published(3))
			}
			w.checkStaged(3, "given up")
			if w.there(oldKey) != "absent" || w.there(batchKey(0)) != theirFile {
				t.Errorf("old: %q, %q; more was removed, or the test is none", w.there(oldKey), w.there(batchKey(0)))
			}

			w = newWorld(t, way)
			old, members = w.listed(), w.stageBatch(3)
			id = w.killedClear(members, old)
			w.others(replacedKey + ".new")
			if err := w.c.Publish(t.Context(), id, nil); err != nil || len(w.checkOverwrite(3, "published by hand")) != 3 {
				t.Errorf("Publish: %v", err)
			}
		})
	}
}

// TestRule30AbortWhilePublishing: what of an overwrite is published stays, for what was
// there before is gone.
func TestRule30AbortWhilePublishing(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			w.c.atOnce = 1
			old, members := w.listed(), w.stageBatch(3)
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
			if _, err := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true}); err == nil {
				t.Fatal("published")
			}
			w.before = nil
			w.restart()
			id := w.area.Batches()[0].Record().ID
			if err := w.c.Abort(t.Context(), id); err != nil {
				t.Errorf("Abort: %v", err)
			}
			if there := w.checkOverwrite(3, "aborted"); !slices.Equal(there, []int{0}) || !w.knows("db/"+batchKey(0), batchKey(0)) {
				t.Errorf("published: %v", there)
			}
		})
	}
}

// TestRule30RecoveryMeetsTheStore: the recovery of an overwrite waits for a store that is
// down, and gives up where a removal is refused.
func TestRule30RecoveryMeetsTheStore(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, way)
			id := w.killedClear(w.stageBatch(3), w.listed())
			w.before, w.c.retry = func(string) error { return objectstore.ErrUnavailable }, 1
			report, err := w.c.Recover(t.Context())
			if err != nil || len(report.Kept) != 4 || len(w.area.Batches()) != 1 {
				t.Errorf("Recover: %+v, %v", report, err)
			}
			if err = w.c.Publish(t.Context(), id, nil); !errors.Is(err, objectstore.ErrUnavailable) {
				t.Errorf("Publish: %v, want ErrUnavailable", err)
			}
			refused := &failing{ops: []string{"delete"}, err: objectstore.ErrPermission}
			w.before = refused.next
			report, err = w.c.Recover(t.Context())
			if err != nil || len(report.Kept) != 3 || len(w.published(3)) != 0 {
				t.Errorf("Recover: %+v, %v; published %v", report, err, w.published(3))
			}
			w.checkStaged(3, "refused")
			w.checkOverwrite(3, "refused")
		})
	}
}

// TestRule29Ended: the caller of an overwrite gives up, while it removes or publishes.
func TestRule29Ended(t *testing.T) {
	for _, way := range ways() {
		for _, at := range []string{"delete", "put", "adopt"} {
			t.Run(way+"/"+at, func(t *testing.T) {
				w := newWorld(t, way)
				w.c.atOnce = 1
				old, members := w.listed(), w.stageBatch(3)
				ctx, cancel := context.WithCancel(t.Context())
				w.answer = func(op string) error {
					if op == at {
						cancel()
					}
					return nil
				}
				objects, err := w.c.PublishAll(ctx, members, Together{Clear: old})
				w.answer = nil
				if ctx.Err() == nil {
					cancel()
					return // this store is not asked so
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("PublishAll: %v", err)
				}
				w.c.FinishRenames(t.Context())
				there := w.checkOverwrite(3, "ended")
				for i := range there {
					if len(objects) != 3 || objects[there[i]].ETag == "" {
						t.Errorf("published %v, told %v", there, objects)
					}
				}
			})
		}
	}
}

// TestRegisterLast: the catalog is told when all is published, of each partition once; what it
// does not take is told beside the objects.
func TestRegisterLast(t *testing.T) {
	for _, way := range ways() {
		w := newWorld(t, way)
		w.c.atOnce = 1
		members := w.stageBatch(3)
		w.take()
		if _, err := w.c.PublishAll(t.Context(), members, Together{RegisterLast: true}); err != nil {
			t.Fatal(err)
		}
		log := w.take()
		last := max(strings.LastIndex(log, "store put"), strings.LastIndex(log, "store adopt"), strings.LastIndex(log, "store complete"))
		if at := strings.Index(log, "catalog register"); at < last || strings.Count(log, "catalog register") != 1 {
			t.Errorf("%s: registered at %d of\n%s", way, at, log)
		}
		w = newWorld(t, way)
		members = w.stageBatch(3)
		refused := &failing{ops: []string{"register"}, err: objectstore.ErrPermission}
		w.before = refused.next
		objects, err := w.c.PublishAll(t.Context(), members, Together{RegisterLast: true})
		if !isUnregistered(err) || !errors.Is(err, objectstore.ErrPermission) || len(objects) != 3 || len(w.published(3)) != 3 {
			t.Errorf("%s: PublishAll: %v, %v", way, objects, err)
		}
		if left := w.leftovers(); len(left) != 0 || len(w.area.Batches()) != 0 {
			t.Errorf("%s: left: %q", way, left)
		}
	}
}

// TestRegisterLastAfterACrash: a process that ends between the last publish and the
// registration leaves that to the next, which tries until the catalog answers.
func TestRegisterLastAfterACrash(t *testing.T) {
	for _, way := range ways() {
		w := newWorld(t, way)
		members := w.stageBatch(3)
		w.before = func(op string) error {
			if op == "register" {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.dead = true
				return errDead
			}
			return nil
		}
		if _, err := w.c.PublishAll(t.Context(), members, Together{RegisterLast: true}); err == nil {
			t.Fatal("registered")
		}
		w.restart()
		w.before = func(op string) error {
			if op == "register" {
				return objectstore.ErrUnavailable
			}
			return nil
		}
		if report, err := w.c.Recover(t.Context()); err != nil || len(w.area.Batches()) != 1 || len(w.published(3)) != 3 {
			t.Errorf("%s: Recover: %+v, %v", way, report, err)
		}
		w.before = nil
		w.restart()
		if _, err := w.c.Recover(t.Context()); err != nil || !w.checkAllOrNone(3, way) {
			t.Errorf("%s: Recover: %v", way, err)
		}
	}
}
