package crash_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKillBeforeEachStep kills the daemon right before each of its system calls that
// change a disk: its staging directory, and in a folder the lake itself.
func TestKillBeforeEachStep(t *testing.T) {
	for _, store := range []string{"bucket", "folder"} {
		for _, op := range operations() {
			t.Run(store+", "+op.name, func(t *testing.T) {
				t.Parallel()
				s := &stepper{rig: newRig(t, rigOptions{s3: store == "bucket", trap: true, limit: 10 * time.Minute}), op: op}
				s.start()
				s.everyStep()
			})
		}
	}
}

// stepper is one operation that is done again and again.
type stepper struct {
	*rig
	op       operation
	rounds   int
	orphaned int
}

func (s *stepper) everyStep() {
	s.t.Helper()
	steps := s.undisturbed()
	for n := 1; n <= len(steps)+20; n++ { // there may be more in another life
		if n <= len(steps) && repeated(steps, n-1) {
			continue
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
	s.prepare(s.op.seeds)
	s.trap.Arm(0)
	err := s.run(s.op)
	s.settle()
	steps := s.trap.Steps()
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

// settle waits until what is done behind an answer is done.
func (s *stepper) settle() {
	s.t.Helper()
	within(patience, func() bool { return s.trap.Killed() || len(s.writes()) == 0 })
}

// killBefore does the operation until the daemon is killed, mounts anew and looks.
// It tells whether there is such a step.
func (s *stepper) killBefore(n int) bool {
	s.t.Helper()
	s.prepare(s.op.seeds)
	s.trap.Arm(n)
	err := s.run(s.op)
	s.settle()
	killed, steps := s.trap.Killed(), s.trap.Steps()
	s.trap.Arm(0)
	if !killed {
		if err != nil {
			s.t.Errorf("undisturbed: %v", err)
		}
		return false
	}
	s.killed()
	if s.OnS3() {
		s.forgive()
	}
	s.Start()
	s.watch()
	s.look(err == nil)
	s.warm()
	s.trap.Arm(0)
	if s.t.Failed() {
		s.t.Logf("killed before step %d, the operation answered %v; the last steps:\n%s\n%s", n, err, strings.Join(steps[max(0, len(steps)-25):], "\n"), s.trace())
	}
	return true
}

// forgive counts orphans of the one window that there is, and takes them away.
func (s *stepper) forgive() {
	s.t.Helper()
	orphans := s.orphans()
	if len(orphans) > 1 {
		s.t.Errorf("%d uploads of one file are orphaned", len(orphans))
	}
	s.orphaned += len(orphans)
	for _, u := range orphans {
		s.abort(u)
	}
}

// look asserts the outcome after the next mount's recovery.
func (s *stepper) look(acknowledged bool) {
	s.t.Helper()
	allowed := []string{"old", "new"}
	if acknowledged {
		allowed = []string{"new"}
	}
	have, state := s.wantState(&s.op, allowed...)
	s.wantMountShows(have)
	kept := s.kept()
	if state == "new" && len(kept) > 0 {
		s.t.Errorf("all is published, and %+v is staged", kept)
	}
	if len(kept) > 0 {
		have, state = s.resolve(kept)
		s.wantMountShows(have)
	}
	s.wantOnce(&s.op, state)
	s.wantClean()
}

// resolve publishes what is staged, if it is whole, and drops it if it is not.
func (s *stepper) resolve(kept []staged) (tree, string) {
	s.t.Helper()
	if shown := s.keptByCommand(); len(shown) != len(kept) || shown[0].ID != kept[0].ID {
		s.t.Errorf("recover shows %+v, status.json %+v", shown, kept)
	}
	w := kept[0]
	whole := w.Size == int64(len(s.op.after[s.op.target]))
	if len(kept) > 1 {
		s.t.Errorf("one file was written, and staged are %+v", kept)
	}
	o, err := s.agent.ask(task{Do: "read", Path: s.Path(w.shown())})
	if err != nil || int64(len(o.Raw)) != w.Size {
		s.t.Errorf("%+v has %d bytes, %v", w, len(o.Raw), err)
	}
	whole = whole && slices.Equal(o.Raw, s.op.after[s.op.target]) // of an old size nothing may be written yet
	what, want := "--abort=all", "old"
	if whole {
		what, want = "--publish=all", "new"
	}
	if res := s.command(what); res.Code != 0 {
		s.t.Errorf("recover %s: code %d\n%s%s", what, res.Code, res.Out, res.Err)
	}
	if whole && path.Base(w.Path) != s.op.target { // renamed in memory alone: it has the name of before
		return s.store(), "renamed"
	}
	return s.wantState(&s.op, want)
}
