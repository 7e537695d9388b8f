package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// refuse lets each registration fail with err; nil: no more.
func (w *world) refuse(err error) {
	w.before = func(op string) error {
		if op == "register" {
			return err
		}
		return nil
	}
}

// TestRegisterFails: the bytes are published all the same, nothing is staged any
// more, the error does not read as if the file were gone, and the next publish
// tries again.
func TestRegisterFails(t *testing.T) {
	for _, way := range ways() {
		for _, cause := range []error{objectstore.ErrNotExist, objectstore.ErrExist, objectstore.ErrPermission, objectstore.ErrUnavailable} {
			t.Run(fmt.Sprintf("%s/%v", way, cause), func(t *testing.T) {
				w := newWorld(t, way)
				f := w.create(nil, "new")
				w.refuse(cause)
				obj, err := w.c.Commit(t.Context(), f)
				var unregistered *RegisterError
				if !errors.As(err, &unregistered) || unregistered.Path != "db/t/f" || !errors.Is(unregistered.Cause, cause) {
					t.Fatalf("got %v, want a RegisterError of db/t/f for %v", err, cause)
				}
				denied := errors.Is(cause, objectstore.ErrPermission)
				if errors.Is(err, cause) != denied || errors.Is(err, errUnsettled) {
					t.Errorf("the error %v is one of %v", err, cause)
				}
				if w.lake() != "new" || obj.Location != w.loc(target) || obj.Size != 3 || obj.ETag == "" {
					t.Errorf("the lake has %q, Commit returned %+v", w.lake(), obj)
				}
				rec := f.Record()
				if f.Dirty() || rec.State == "failed" || rec.Error != "" || len(w.leftovers()) > 0 {
					t.Errorf("dirty %v, record %+v, %q staged", f.Dirty(), rec, w.leftovers())
				}
				w.refuse(nil)
				if err := write(w, f, "NEW", 0); err != nil {
					t.Fatal(err)
				}
				if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "NEW" || !w.knows("db/t/f", target) {
					t.Errorf("the next publish: %v, the lake has %q, registered %v", err, w.lake(), w.registered)
				}
			})
		}
	}
}

// TestRegisterOutlivesTheCaller: what is published is registered though the
// request ended meanwhile.
func TestRegisterOutlivesTheCaller(t *testing.T) {
	w := newWorld(t, flat)
	f := w.create(nil, "new")
	ctx, cancel := context.WithCancel(t.Context())
	w.before = func(op string) error {
		if op == "register" {
			cancel()
		}
		return nil
	}
	if _, err := w.c.Commit(ctx, f); err != nil || !w.knows("db/t/f", target) {
		t.Errorf("Commit: %v, registered %v", err, w.registered)
	}
}

// TestRecoverRegisters: the process ended between the publish and the registration,
// which then fails, is broken off, or is done.
func TestRecoverRegisters(t *testing.T) {
	for _, tt := range []struct {
		name         string
		refuse       func(w *world, cancel context.CancelFunc)
		kept, logged int
		known        bool
	}{
		{"done", func(*world, context.CancelFunc) {}, 0, 0, true},
		{"refused", func(w *world, _ context.CancelFunc) { w.refuse(objectstore.ErrPermission) }, 0, 1, false},
		{"broken off", func(w *world, cancel context.CancelFunc) {
			w.before = func(op string) error {
				if op == "register" {
					cancel()
					return context.Canceled
				}
				return nil
			}
		}, 1, 0, false},
	} {
		for _, way := range ways() {
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				w := newWorld(t, way)
				w.before = func(op string) error {
					if w.dead = op == "register"; w.dead {
						return errDead
					}
					return nil
				}
				_, _ = w.c.Commit(t.Context(), w.create(nil, "new"))
				w.before = nil
				var log bytes.Buffer
				w.logger = slog.New(slog.NewTextHandler(&log, nil))
				w.restart()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tt.refuse(w, cancel)
				report, err := w.c.Recover(ctx)
				if err != nil || len(report.Kept) != tt.kept || len(report.Finished) != 1-tt.kept || w.knows("db/t/f", target) != tt.known {
					t.Errorf("Recover: %+v, %v; registered %v", report, err, w.registered)
				}
				if n := strings.Count(log.String(), notRegistered); n != tt.logged {
					t.Errorf("logged %d times, want %d: %s", n, tt.logged, log.String())
				}
				w.before = nil
				w.restart()
				if _, err := w.c.Recover(t.Context()); err != nil || len(w.leftovers()) > 0 || tt.kept > 0 && !w.knows("db/t/f", target) {
					t.Errorf("the next Recover: %v, registered %v, %q staged", err, w.registered, w.leftovers())
				}
				w.close()
			})
		}
	}
}

// TestRecoverRegistersWhatItPublishes: a publish that had not begun to take effect.
func TestRecoverRegistersWhatItPublishes(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w := newWorld(t, put)
		w.before = func(op string) error {
			if w.dead = op == "put"; w.dead {
				return errDead
			}
			return nil
		}
		_, _ = w.c.Commit(t.Context(), w.create(nil, "new"))
		w.before = nil
		w.restart()
		if refused {
			w.refuse(objectstore.ErrUnavailable)
		}
		report, err := w.c.Recover(t.Context())
		if err != nil || len(report.Redone) != 1 || w.lake() != "new" || w.knows("db/t/f", target) == refused || len(w.leftovers()) > 0 {
			t.Errorf("refused %v: %+v, %v; the lake has %q, registered %v, %q staged", refused, report, err, w.lake(), w.registered, w.leftovers())
		}
	}
}

// TestPublishByHandRegisters: an unsettled publish that had taken effect.
func TestPublishByHandRegisters(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, flat)
			f := w.create(nil, "new")
			w.unsettled(f, true)
			if refused {
				w.refuse(objectstore.ErrUnavailable)
			}
			err := w.c.Publish(t.Context(), f.ID(), nil)
			if isUnregistered(err) != refused || w.knows("db/t/f", target) == refused || len(w.leftovers()) > 0 {
				t.Errorf("refused %v: %v; registered %v, %q staged", refused, err, w.registered, w.leftovers())
			}
			w.close()
		})
	}
}

func TestRenameRegisters(t *testing.T) {
	for _, way := range []string{adopt, flat} {
		for _, refused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", way, refused), func(t *testing.T) {
				w := newWorld(t, way)
				src := w.object("x")
				if refused {
					w.refuse(objectstore.ErrNotExist)
				}
				obj, err := w.mv(src, objectstore.Cond{IfNoneMatch: true})
				if !refused && (err != nil || obj.Location != w.loc(newName)) {
					t.Errorf("Rename: %+v, %v", obj, err)
				}
				if refused {
					var failed *unmovedError
					if !errors.As(err, &failed) || isUnregistered(err) || errors.Is(err, objectstore.ErrNotExist) {
						t.Errorf("Rename: %v", err)
					}
					if w.lake() != "x" || w.knows(newPath, newName) || w.there(newName) != "absent" {
						t.Errorf("registered %v, the names have %q and %q", w.registered, w.lake(), w.there(newName))
					}
					w.refuse(nil)
					if _, err := w.mv(src, objectstore.Cond{IfNoneMatch: true}); err != nil {
						t.Errorf("the next Rename: %v", err)
					}
				}
				if !w.knows(newPath, newName) || w.lake() != "absent" || w.there(newName) != "x" || len(w.leftovers()) > 0 {
					t.Errorf("registered %v, the names have %q and %q, %q staged", w.registered, w.lake(), w.there(newName), w.leftovers())
				}
			})
		}
	}
}

// TestRenameRefusedByTheCatalog: the error says so, as that of a publish does.
func TestRenameRefusedByTheCatalog(t *testing.T) {
	for _, cause := range []error{objectstore.ErrPermission, objectstore.ErrNotExist, objectstore.ErrUnavailable} {
		w := newWorld(t, flat)
		w.refuse(cause)
		_, err := w.mv(w.source(), objectstore.Cond{})
		if denied := errors.Is(cause, objectstore.ErrPermission); err == nil || errors.Is(err, cause) != denied || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("of %v: %v", cause, err)
		}
		if calls := w.count("store copy") + w.count("store delete") + w.count("disk"); calls > 0 || w.names() != "x/absent" {
			t.Errorf("of %v: %d calls, names %s", cause, calls, w.names())
		}
	}
}

// TestRenameIntoWhatIsRegistered: who moves many asks once.
func TestRenameIntoWhatIsRegistered(t *testing.T) {
	for _, way := range []string{adopt, flat} {
		w := newWorld(t, way)
		src := w.object("x")
		if err := w.c.Register(t.Context(), newPath, w.loc(newName)); err != nil || !w.knows(newPath, newName) {
			t.Fatalf("Register: %v", err)
		}
		w.refuse(objectstore.ErrUnavailable)
		if _, err := w.c.Rename(t.Context(), Move{From: src, To: w.loc(newName), Path: newPath, Registered: true}); err != nil || w.there(newName) != "x" {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// TestRenameWithoutAPathRegistersNothing: a rename that is taken back.
func TestRenameWithoutAPathRegistersNothing(t *testing.T) {
	w := newWorld(t, flat)
	if _, err := w.c.Rename(t.Context(), Move{From: w.source(), To: w.loc(newName)}); err != nil || len(w.registered) > 0 {
		t.Errorf("%v, registered %v", err, w.registered)
	}
}

// TestCase45_RenameIntoAnotherBucket: a partition may lie in a bucket of its own.
func TestCase45_RenameIntoAnotherBucket(t *testing.T) {
	w := newWorld(t, flat)
	src := w.source()
	to := objectstore.Location{Bucket: "another", Key: target} // the very key
	obj, err := w.c.Rename(t.Context(), Move{From: src, To: to, Cond: objectstore.Cond{IfNoneMatch: true}, Path: newPath})
	if err != nil || obj.Location != to || w.mem.at(to) != "x" || w.lake() != "absent" || w.registered[newPath] != to {
		t.Errorf("%+v, %v; there %q, here %q, registered %v", obj, err, w.mem.at(to), w.lake(), w.registered)
	}
	if err := w.area.Close(); err != nil || len(w.leftovers()) > 0 {
		t.Errorf("%v, %q staged", err, w.leftovers())
	}
}

// TestTakenBackRename leaves a registered partition, which does no harm.
func TestTakenBackRename(t *testing.T) {
	for name, over := range map[string]string{"taken back": "", "at both names": "y"} {
		w := newWorld(t, flat)
		src := w.source()
		if over != "" {
			w.mem.put(w.loc(newName), []byte(over), nil)
		}
		refused := false
		w.before = func(op string) error {
			if op == "delete" && !refused {
				refused = true
				return objectstore.ErrPermission
			}
			return nil
		}
		_, err := w.mv(src, objectstore.Cond{})
		if !errors.Is(err, objectstore.ErrPermission) || isUnregistered(err) || !w.knows(newPath, newName) {
			t.Errorf("%s: %v, registered %v, names %s", name, err, w.registered, w.names())
		}
	}
}
