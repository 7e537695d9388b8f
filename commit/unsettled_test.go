package commit

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// blind makes a store that answers no put and no look; they take effect if told so.
func (w *world) blind(effect bool) {
	down := func(op string) error {
		if op == "put" || op == "stat" {
			return objectstore.ErrUnavailable
		}
		return nil
	}
	w.see()
	if effect {
		w.answer = down
	} else {
		w.before = down
	}
}

// see ends that.
func (w *world) see() { w.before, w.answer = nil, nil }

// unsettled publishes f on a blind store, for a caller who is told that it failed.
func (w *world) unsettled(f *staging.File, effect bool) {
	w.t.Helper()
	w.blind(effect)
	_, err := w.c.Commit(w.t.Context(), f)
	w.see()
	rec := f.Record()
	if !errors.Is(err, objectstore.ErrUnavailable) || rec.State != staging.Failed || !rec.Unsettled || rec.Error == "" {
		w.t.Errorf("Commit: %v, record %+v", err, rec)
	}
	w.take()
}

// recovered is what the next mount finds: how many writes it finished and kept.
// It must have sent nothing.
func (w *world) recovered() (finished, kept int) {
	w.t.Helper()
	w.restart()
	report, err := w.c.Recover(w.t.Context())
	if err != nil || len(report.Redone)+len(report.Lost) != 0 || w.count("store put") != 0 {
		w.t.Errorf("Recover: %+v, %v, %d puts", report, err, w.count("store put"))
	}
	return len(report.Finished), len(report.Kept)
}

// TestUnsettledIsOnlyLookedAt: a close failed, and what came of its publish is seen
// by the next mount, whatever others did meanwhile. Nothing comes back.
func TestUnsettledIsOnlyLookedAt(t *testing.T) {
	for _, tt := range []struct {
		name      string
		way       string
		over      bool // something that is there
		effect    bool
		meanwhile func(w *world, f *staging.File)
		finished  int
		lake      string
		staged    string
	}{
		{"done", put, false, true, nil, 1, "new", ""},
		{"done, in a bucket", flat, false, true, nil, 1, "new", ""},
		{"done over another", flat, true, true, nil, 1, "new", ""},
		{"not done", flat, false, false, nil, 0, "absent", "new"},
		{"not done over another", flat, true, false, nil, 0, "old", "new"},
		{"done, and removed", flat, false, true, func(w *world, _ *staging.File) { w.remove() }, 0, "absent", "new"},
		{"done over another, and removed", flat, true, true, func(w *world, _ *staging.File) { w.remove() }, 0, "absent", "new"},
		{"not done, another's there", flat, false, false, func(w *world, _ *staging.File) { w.object("theirs") }, 0, "theirs", "new"},
		{"done, and written on", flat, false, true, func(w *world, f *staging.File) {
			if err := write(w, f, " and more", 3); err != nil {
				w.t.Fatal(err)
			}
		}, 0, "new", "new and more"},
		{"done, and written over", flat, false, true, func(w *world, f *staging.File) {
			if err := write(w, f, "NEW", 0); err != nil {
				w.t.Fatal(err)
			}
		}, 0, "new", "NEW"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.way)
				var base *objectstore.Object
				if tt.over {
					o := w.object("old")
					base = &o
				}
				f := w.create(base, "new")
				w.unsettled(f, tt.effect)
				if tt.meanwhile != nil {
					tt.meanwhile(w, f)
				}
				for range 2 { // and once more
					if finished, kept := w.recovered(); finished != tt.finished || kept != 1-tt.finished || w.lake() != tt.lake {
						t.Errorf("%d finished, %d kept, the lake has %q; want %d, %d, %q", finished, kept, w.lake(), tt.finished, 1-tt.finished, tt.lake)
					}
					if tt.finished > 0 {
						break
					}
				}
				wantStaged(t, w, f.ID(), tt.staged)
				w.close()
			})
		})
	}
}

// wantStaged checks the bytes of a failed write; "": there is none.
func wantStaged(t *testing.T, w *world, id, want string) {
	t.Helper()
	f, ok := w.area.Find(id)
	if want == "" {
		if left := w.leftovers(); ok || len(left) > 0 {
			t.Errorf("%q are staged", left)
		}
		return
	}
	if !ok {
		t.Fatal("the write is gone")
	}
	if rec := f.Record(); rec.State != staging.Failed || !rec.Unsettled || rec.Error == "" || bytesOf(t, f) != want {
		t.Errorf("record %+v with %q, want a failed one with %q", rec, bytesOf(t, f), want)
	}
}

func TestUnsettledAppendThatAnotherWentBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flat)
		base := w.object("one\n")
		f, err := w.area.Create(t.Context(), w.newWrite(&base))
		if err == nil {
			_, err = f.Append(t.Context(), []byte("mine\n"))
		}
		if err != nil {
			t.Fatal(err)
		}
		w.unsettled(f, true)
		appendBehind(w.mem, w.loc(target), "theirs\n")
		if finished, kept := w.recovered(); finished != 1 || kept != 0 || w.lake() != "one\nmine\ntheirs\n" {
			t.Errorf("%d finished, %d kept, the lake has %q", finished, kept, w.lake())
		}
		w.close()
	})
}

// TestUnsettledWithTheStoreDown: the mount after the next can still tell.
func TestUnsettledWithTheStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flat)
		f := w.create(nil, "new")
		w.unsettled(f, true)
		w.blind(false)
		if finished, kept := w.recovered(); finished != 0 || kept != 1 {
			t.Errorf("while it is down: %d finished, %d kept", finished, kept)
		}
		w.see()
		if finished, kept := w.recovered(); finished != 1 || kept != 0 || len(w.leftovers()) != 0 {
			t.Errorf("then: %d finished, %d kept, %q staged", finished, kept, w.leftovers())
		}
		w.close()
	})
}

// TestUnsettledAskedForAgain: by hand, and by a program that closes again.
func TestUnsettledAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		effect  bool
		change  bool // the bytes, meanwhile
		restart bool
		puts    int
		want    error
		lake    string
	}{
		{"done, by hand", true, false, true, 0, nil, "new"},
		{"not done, by hand", false, false, true, 1, nil, "new"},
		{"done, again", true, false, false, 0, nil, "new"},
		{"not done, again", false, false, false, 1, nil, "new"},
		{"done, changed, by hand", true, true, true, 0, objectstore.ErrChanged, "new"},
		{"done, changed, again", true, true, false, 0, objectstore.ErrChanged, "new"},
		{"not done, changed, again", false, true, false, 1, nil, "NEW"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flat)
				n := w.newWrite(nil)
				n.Cond = objectstore.Cond{} // a second put would take effect
				f, err := w.area.Create(t.Context(), n)
				if err == nil {
					err = write(w, f, "new", 0)
				}
				if err != nil {
					t.Fatal(err)
				}
				w.unsettled(f, tt.effect)
				if tt.change {
					if err = write(w, f, "NEW", 0); err != nil {
						t.Fatal(err)
					}
				}
				if tt.restart {
					w.restart()
				}
				err = w.c.Publish(t.Context(), f.ID(), nil)
				if !errors.Is(err, tt.want) || w.count("store put") != tt.puts || w.lake() != tt.lake {
					t.Errorf("got %v after %d puts, the lake has %q; want %v, %d, %q", err, w.count("store put"), w.lake(), tt.want, tt.puts, tt.lake)
				}
				if tt.want == nil {
					wantStaged(t, w, f.ID(), "")
				} else {
					wantStaged(t, w, f.ID(), "NEW")
				}
				w.close()
			})
		})
	}
}

// TestUnsettledThenRefused: the error is the refusal, but an earlier attempt may
// have taken effect.
func TestUnsettledThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flat)
		f := w.create(nil, "new")
		puts := 0
		w.answer = func(string) error { return objectstore.ErrUnavailable }
		w.before = func(op string) error {
			if op == "put" {
				if puts++; puts > 1 {
					return objectstore.ErrPermission
				}
			}
			return nil
		}
		_, err := w.c.Commit(t.Context(), f)
		w.see()
		if rec := f.Record(); !errors.Is(err, objectstore.ErrPermission) || rec.State != staging.Failed || !rec.Unsettled {
			t.Errorf("Commit: %v, record %+v", err, rec)
		}
		w.take()
		if finished, kept := w.recovered(); finished != 1 || kept != 0 || w.lake() != "new" {
			t.Errorf("%d finished, %d kept, the lake has %q", finished, kept, w.lake())
		}
		w.close()
	})
}

// TestRecoveryThatIsNotSettled: nobody was told of a publish whose process died;
// the next recovery goes on with it.
func TestRecoveryThatIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flat)
		f := w.create(nil, "new")
		w.before = func(op string) error {
			w.dead = w.dead || op == "put"
			return nil
		}
		_, _ = w.c.Commit(t.Context(), f)
		w.remove() // the put took effect on its way
		w.restart()
		put := false
		w.before = func(op string) error {
			put = put || op == "put"
			if put {
				return objectstore.ErrUnavailable
			}
			return nil
		}
		report, err := w.c.Recover(t.Context())
		kept, _ := w.area.Find(f.ID())
		if err != nil || len(report.Kept) != 1 || !put || state(kept) != staging.Publishing {
			t.Errorf("Recover: %+v, %v, asked to publish %v", report, err, put)
		}
		w.see()
		w.restart()
		report, err = w.c.Recover(t.Context())
		if err != nil || len(report.Redone) != 1 || w.lake() != "new" || len(w.leftovers()) != 0 {
			t.Errorf("Recover: %+v, %v; the lake has %q", report, err, w.lake())
		}
		w.close()
	})
}
