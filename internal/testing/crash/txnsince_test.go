package crash_test

import (
	"testing"
	"time"
)

// TestOverwriteLeavesWhatCameSince kills the daemon at each of an overwrite's requests, or
// steps. Another writer then puts a file beside those that are replaced, and replaces one
// of them itself: both stay when the next mount makes good what was begun (rules 29, 30).
func TestOverwriteLeavesWhatCameSince(t *testing.T) {
	op := named("transaction, overwrite")
	for _, kind := range []fault{killBefore, killAfter} {
		t.Run("bucket, "+string(kind), func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, op)
			m.start("--io-timeout=20s")
			for at := 1; m.killAt(kind, at); at++ {
				m.othersWrite()
				m.Start("--io-timeout=20s")
				m.watch()
				if !m.wantOthersStay(&op) {
					t.Errorf("killed at request %d, after the overwrite was noted: it is not finished\n%s", at, m.trace())
				}
				m.rounds++
				if at > endOfRequests || t.Failed() {
					t.FailNow()
				}
			}
			m.done()
		})
	}
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		s := &stepper{rig: newRig(t, rigOptions{trap: true, limit: 10 * time.Minute, flags: op.flags}), op: op}
		s.start()
		steps := s.undisturbed()
		finished := 0
		for n := range steps {
			if !soaking() && n%5 != int(seed()%5) {
				continue
			}
			s.prepare(&op)
			s.trap.Arm(n + 1)
			_ = s.run(op) // it is killed
			s.settle()
			killed := s.trap.Killed()
			s.trap.Arm(0)
			if !killed {
				s.up()
				continue
			}
			s.killed()
			s.othersWrite()
			s.Start()
			if s.wantOthersStay(&op) {
				finished++
			}
			s.rounds++
			if t.Failed() {
				t.Fatalf("killed before step %d: %s", n+1, steps[n])
			}
		}
		summary.add(t, "killed before %d steps, %d overwrites finished", s.rounds, finished)
	})
}

// othersWrite is what another writer does to what is being overwritten.
func (r *rig) othersWrite() {
	r.t.Helper()
	r.PutStored(r.part+"/h=1/late.csv", "came late\n")
	r.PutStored(r.part+"/h=1/older.csv", "another version\n")
}

// wantOthersStay asserts that what othersWrite wrote is there, and of the overwrite all
// or nothing, and tells which.
func (r *rig) wantOthersStay(op *operation) (finished bool) {
	r.t.Helper()
	theirs := tree{"h=1/late.csv": []byte("came late\n"), "h=1/older.csv": []byte("another version\n")}
	have := r.store()
	switch {
	case have.equal(joinTrees(op.after, theirs)):
		finished = true
	case !have.equal(joinTrees(op.seeds, theirs)):
		r.t.Errorf("the store has %v, want all of %v or of %v, with %v", have, op.after, op.seeds, theirs)
	}
	r.removePrivate(op)
	r.wantMountShows(have)
	r.wantClean()
	return finished
}
