package commit

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestFaultAtEveryStoreCall lets each call of the store fail once, before or
// after it took effect. What is written is tried again, and is there once; what
// fails, reads at the first write, loses nothing.
func TestFaultAtEveryStoreCall(t *testing.T) {
	for _, way := range ways() {
		for _, s := range scenarios() {
			t.Run(fmt.Sprintf("%s/%s", way, s.name), func(t *testing.T) {
				for k := 1; s.faulty(t, way, k, false); k++ {
					s.faulty(t, way, k, true)
				}
			})
		}
	}
}

// faulty runs the scenario with the k-th call of the store failing; false if
// there are less.
func (s scenario) faulty(t *testing.T, way string, k int, effect bool) bool {
	t.Helper()
	calls, failed := 0, ""
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, way)
		if s.before != "absent" {
			w.object(s.before)
		}
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
		var o outcome
		err := s.run(w, &o)
		switch {
		case failed == "register" && !isUnregistered(err):
			t.Errorf("call %d, %s, effect %v: got %v, want a RegisterError", k, failed, effect, err)
		case err != nil && failed != "read" && failed != "open" && failed != "register":
			t.Errorf("call %d, %s, effect %v: %v", k, failed, effect, err)
		}
		seen := w.lake()
		w.before, w.answer = nil, nil
		w.restart()
		if _, err := w.c.Recover(t.Context()); err != nil {
			t.Errorf("call %d: Recover: %v", k, err)
		}
		if failed == "register" && w.lake() != s.before {
			w.registered = map[string]objectstore.Location{"db/t/f": w.loc(target)} // told to who published it
		}
		s.check(t, w, o, fmt.Sprintf("call %d, %s, effect %v", k, failed, effect), seen)
		w.close()
	})
	return failed != ""
}
