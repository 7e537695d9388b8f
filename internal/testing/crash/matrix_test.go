package crash_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// endOfRequests is more than an operation takes.
const endOfRequests = 80

// short is how long a store that fails for good is asked: it is waited for, and on a
// loaded machine one that works must answer within it.
const short = "--io-timeout=3s"

// kinds are the ways in which requests fail.
func kinds() []fault { return []fault{failBefore, failAfter, loseAnswer} }

// TestFault has each request of each operation fail, in each way.
func TestFault(t *testing.T) {
	for _, op := range operations() {
		t.Run("once, "+op.name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, op)
			m.start("--io-timeout=20s")
			m.undisturbed()
			for _, kind := range kinds() {
				m.each(func(k int) bool { return m.idle(kind, k) || m.once(kind, k) })
			}
			m.done()
		})
		if op.backup != "" && op.behind == "linger" {
			continue // its rename is tried again for as long as the mount lives: there is no end to judge
		}
		t.Run("for good, "+op.name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, op)
			m.start(short)
			m.each(func(k int) (met bool) {
				for i, kind := range kinds() {
					if soaking() || !op.large() && !op.directory() || k%len(kinds()) == i {
						met = m.forGood(kind, k)
					}
				}
				return met
			})
			m.done()
		})
	}
	for _, name := range recoveredOperations() {
		for _, when := range []fault{killBefore, killAfter} {
			t.Run("recovery, "+string(when)+", "+name, func(t *testing.T) {
				t.Parallel()
				m := newMatrix(t, named(name))
				m.start("--io-timeout=20s")
				m.recoveries(when)
				m.done()
			})
		}
	}
}

// recoveredOperations are those whose recovery is disturbed.
func recoveredOperations() []string {
	names := []string{"publish small", "publish large", "overwrite small", "patch large", "rename", "rename over", "tree, directory", "transaction, commit", "transaction, overwrite"}
	if soaking() {
		names = append(names, "append to small", "append to large", "copy large", "publish and fsync large",
			"temporary", "temporary over", "temporary over, large", "local", "backup", "tree, file")
	}
	return names
}

// matrix is one operation that is done again and again.
type matrix struct {
	*rig
	op     operation
	rounds int
	asked  []request // of the operation, undisturbed
}

func newMatrix(t *testing.T, op operation) *matrix {
	t.Helper()
	return &matrix{rig: newRig(t, rigOptions{s3: true, limit: 10 * time.Minute, flags: op.flags}), op: op}
}

// each calls round with 1, 2, … until it tells that there is no such request.
func (m *matrix) each(round func(k int) (met bool)) {
	m.t.Helper()
	for k := 1; ; k++ {
		if k > endOfRequests {
			m.t.Fatal("no end of requests")
		}
		if !round(k) {
			return
		}
		if m.t.Failed() {
			m.t.FailNow()
		}
	}
}

func (m *matrix) done() {
	m.t.Helper()
	m.endForeign()
	summary.add(m.t, "%d requests failed, %d uploads orphaned", m.rounds, m.orphaned)
}

// explain says what a round was, when it has failed.
func (m *matrix) explain(kind fault, k int, err error) {
	m.t.Helper()
	if m.t.Failed() {
		m.t.Logf("%s: %s at request %d; the operation answered %v\n%s", m.op.name, kind, k, err, m.trace())
	}
}

// undisturbed does the operation and logs what it asks for.
func (m *matrix) undisturbed() {
	m.t.Helper()
	m.prepare(&m.op)
	if err := m.run(m.op); err != nil {
		m.t.Fatalf("%s: %v\n%s", m.op.name, err, m.trace())
	}
	m.up()
	m.t.Logf("%s:\n%s", m.op.name, m.trace())
	m.asked = m.gate.requests(m.Key(m.part))
	parts := slices.ContainsFunc(m.asked, func(q request) bool { return q.op == "UploadPart" })
	if m.op.task.Do != "copy" && parts != m.op.large() {
		m.t.Errorf("%s: sent by parts: %v", m.op.name, parts) // or a size proves nothing
	}
	m.wantPublished()
	m.explain("no fault", 0, nil)
}

// idle tells that there is nothing to try: a request that only reads fails after its
// effect as it does before.
func (m *matrix) idle(kind fault, k int) bool {
	return kind == failAfter && k <= len(m.asked) && !m.asked[k-1].writes()
}

// wantPublished asserts the new state, all over.
func (m *matrix) wantPublished() {
	m.t.Helper()
	have, state := m.wantState(&m.op, "new")
	m.wantMountShows(have)
	m.wantOnce(&m.op, state)
	m.wantHeldPublished(&m.op)
	m.wantClean()
}

// arm begins a round with a fault.
func (m *matrix) arm(p plan) {
	m.t.Helper()
	m.prepare(&m.op)
	p.below = m.Key(m.part)
	m.gate.begin(p)
}

// once has one request fail: the operation succeeds all the same.
func (m *matrix) once(kind fault, k int) (met bool) {
	m.t.Helper()
	m.arm(plan{kind: kind, at: k})
	err := m.run(m.op)
	hit := m.gate.end()
	if err != nil {
		m.t.Errorf("one fault was not ridden out: %v", err)
	}
	m.up()
	m.wantPublished()
	m.explain(kind, k, err)
	if hit != nil {
		m.rounds++
	}
	return hit != nil
}

// forGood has all requests fail from the kth that writes on, until the operation
// has failed; then the daemon is killed.
func (m *matrix) forGood(kind fault, k int) (met bool) {
	m.t.Helper()
	m.arm(plan{kind: kind, at: k, forever: true, writing: true})
	err := m.run(m.op)
	m.gate.settled(m.t)
	if hit := m.gate.end(); hit == nil {
		if err != nil {
			m.t.Errorf("undisturbed: %v\n%s", err, m.trace())
		}
		m.up()
		return false
	}
	if err == nil {
		m.wantState(&m.op, "new")
	} else if !m.op.directory() { // of which some may be there until the next mount
		m.wantState(&m.op, "old", "new", "both names")
	}
	m.rounds++
	m.killed()
	m.recovered(err == nil, k%2 == 0 && !m.op.isHeld())
	m.explain(kind, k, err)
	return true
}

// recovered mounts anew, or has the command do that part, and asserts what is left.
func (m *matrix) recovered(acknowledged, byCommand bool) {
	m.t.Helper()
	if byCommand { // before there is a mount again
		m.publishKept(m.keptByCommand())
	}
	m.Start(short)
	m.watch()
	m.wantSettled(&m.op, acknowledged, true)
	m.warm()
}

// publishKept publishes all that is staged, by the command.
func (m *matrix) publishKept(kept []staged) {
	m.t.Helper()
	for _, w := range kept {
		if !strings.HasPrefix(w.Path, m.part+"/") && w.Path != "" {
			m.t.Errorf("%+v is not of this round", w)
		}
	}
	if len(kept) == 0 {
		return
	}
	if res := m.command("--publish=all"); res.Code != 0 {
		m.t.Errorf("recover --publish=all of %+v: code %d\n%s%s", kept, res.Code, res.Out, res.Err)
	}
}

// recoveries kills the daemon at each request that writes, and has each request of
// the recovery fail.
func (m *matrix) recoveries(when fault) {
	m.t.Helper()
	for at := 1; m.killAt(when, at); at++ {
		m.recovery(plan{})
		if m.op.directory() && !soaking() && at != 2 {
			continue
		}
		m.each(func(k int) (met bool) {
			for _, p := range m.plans(at, k) {
				if m.killAt(when, at) && m.recovery(p) {
					met = true
				}
			}
			return met
		})
		if at > endOfRequests {
			m.t.Fatal("no end of requests")
		}
	}
}

// plans are the faults of request k of a recovery: it fails once, or for good. In a
// soak it does so in each way; else in one after the other.
func (m *matrix) plans(at, k int) []plan {
	var all []plan
	for i, kind := range kinds() {
		if !soaking() && m.op.directory() { // they have more requests
			if (at+k)%len(kinds()) == i {
				all = append(all, plan{kind: kind, at: k, forever: k%4 == 1})
			}
		} else if soaking() || (at+k)%len(kinds()) == i {
			all = append(all, plan{kind: kind, at: k}, plan{kind: kinds()[(i+1)%3], at: k, forever: true})
		} else if !m.op.large() {
			all = append(all, plan{kind: kind, at: k})
		}
	}
	return all
}

// killAt does the operation until the daemon is killed at a request that writes;
// false: it has fewer.
func (m *matrix) killAt(when fault, at int) bool {
	m.t.Helper()
	m.arm(plan{kind: when, at: at, writing: true})
	err := m.run(m.op)
	hit := m.gate.end()
	if hit == nil {
		if err != nil {
			m.t.Errorf("undisturbed: %v", err)
		}
		m.up()
		return false
	}
	m.killed()
	return true
}

// recovery mounts anew after killAt, while the plan's faults happen.
func (m *matrix) recovery(p plan) (met bool) {
	m.t.Helper()
	p.below = m.Key(m.part)
	m.gate.begin(p)
	timeout := "--io-timeout=20s"
	if p.forever {
		timeout = short
	}
	m.Start(timeout)
	m.watch()
	if met = m.gate.end() != nil; met {
		m.rounds++
	}
	if p.forever && met {
		if !m.op.directory() {
			m.wantState(&m.op, "old", "new", "both names")
		}
		m.killed()
		m.Start("--io-timeout=20s")
		m.watch()
	}
	m.wantSettled(&m.op, false, false)
	m.warm()
	if m.t.Failed() {
		m.t.Logf("%s: killed, then %+v in the recovery\n%s", m.op.name, p, m.trace())
	}
	return met
}
