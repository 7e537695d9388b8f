package crash_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestKillBeforeEachStep kills the daemon right before each of its system calls that
// change a disk: its staging directory, and in a folder the lake itself.
func TestKillBeforeEachStep(t *testing.T) {
	for _, store := range []string{"bucket", "folder"} {
		for _, op := range operations() {
			if op.large() && !soaking() && (store == "folder" || strings.HasPrefix(op.name, "publish large") || strings.HasPrefix(op.name, "append")) {
				continue // as the small one in a folder; as one with an fsync, or a patch
			}
			t.Run(store+", "+op.name, func(t *testing.T) {
				t.Parallel()
				s := &stepper{rig: newRig(t, rigOptions{s3: store == "bucket", trap: true, limit: 10 * time.Minute, flags: op.flags}), op: op}
				s.start()
				s.everyStep()
			})
		}
	}
}

// stepper is one operation that is done again and again.
type stepper struct {
	*rig
	op     operation
	rounds int
}

func (s *stepper) everyStep() {
	s.t.Helper()
	steps := s.undisturbed()
	for n := 1; n <= len(steps)+20; n++ { // there may be more in another life
		if n <= len(steps) && (repeated(steps, n-1) || s.op.isHeld() && !sampled(n, len(steps))) {
			continue
		}
		if n > len(steps) && s.op.isHeld() && !soaking() {
			break
		}
		if !s.killBefore(n) {
			break
		}
		s.rounds++
		if s.t.Failed() {
			s.t.FailNow()
		}
	}
	if s.OnS3() {
		s.endForeign()
	}
	if s.rounds == 0 {
		s.t.Error("the operation has no steps: the trap does not see them")
	}
	summary.add(s.t, "killed before %d steps, %d uploads orphaned", s.rounds, s.orphaned)
}

var writeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// repeated tells whether a step is like the one before and the one behind it.
func repeated(steps []string, i int) bool {
	return i > 0 && i+1 < len(steps) && alike(steps[i-1], steps[i]) && alike(steps[i], steps[i+1])
}

func alike(a, b string) bool {
	return writeID.ReplaceAllString(a, "") == writeID.ReplaceAllString(b, "")
}

// undisturbed are the steps of the operation.
func (s *stepper) undisturbed() []string {
	s.t.Helper()
	s.prepare(&s.op)
	s.trap.Arm(0)
	err := s.run(s.op)
	s.settle()
	steps := s.trap.Steps()
	s.up()
	if err != nil {
		s.t.Fatalf("undisturbed: %v", err)
	}
	s.wantState(&s.op, "new")
	s.wantClean()
	var list []string
	for i, step := range steps {
		if !repeated(steps, i) {
			list = append(list, writeID.ReplaceAllString(strings.ReplaceAll(step, s.State, ""), "ID"))
		}
	}
	s.t.Logf("%s: %d steps:\n  %s", s.op.name, len(steps), strings.Join(list, "\n  "))
	return steps
}

// samples are the steps of a held name's operation before which a run kills: others
// in each, but in a soak all.
const samples = 6

func sampled(n, steps int) bool {
	every := uint64(max(1, steps/samples))
	return soaking() || (uint64(n)+seed())%every == 0
}

// settle waits until what is done behind an answer is done.
func (s *stepper) settle() {
	s.t.Helper()
	within(patience, func() bool { return s.trap.Killed() || len(s.writes()) == 0 })
}

// killBefore does the operation until the daemon is killed, mounts anew and looks.
// It tells whether there is such a step.
func (s *stepper) killBefore(n int) bool {
	s.t.Helper()
	s.prepare(&s.op)
	s.trap.Arm(n)
	err := s.run(s.op)
	s.settle()
	killed, steps := s.trap.Killed(), s.trap.Steps()
	s.trap.Arm(0)
	if !killed {
		if err != nil {
			s.t.Errorf("undisturbed: %v", err)
		}
		s.up()
		return false
	}
	s.killed()
	s.Start()
	s.watch()
	s.wantSettled(&s.op, err == nil, false)
	s.warm()
	s.trap.Arm(0)
	if s.t.Failed() {
		s.t.Logf("killed before step %d, the operation answered %v; the last steps:\n%s\n%s", n, err, strings.Join(steps[max(0, len(steps)-25):], "\n"), s.trace())
	}
	return true
}
