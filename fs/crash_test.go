package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/killpoint"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestKillPointHelper is no test: the daemons of crash tests start through it.
func TestKillPointHelper(*testing.T) { killpoint.Exec() }

// crashLife is what programs do in one partition: a line a step, each of which
// leaves the partition in one more state.
type crashLife struct {
	name  string
	seeds tree
	steps []crashStep
}

type crashStep struct {
	shell string // in the partition; $V has the versions
	after tree   // what the partition then has
}

// crashVersions are contents by name. They differ in size and in every block.
func crashVersions() tree {
	lines := func(word string, n int) string { return strings.Repeat(word+" 0123456789\n", n) }
	one, two, tail := lines("one", 20_000), lines("two", 9_000), lines("tail", 3)
	patched := two[:65_536] + "patch" + two[65_541:]
	return tree{"one": one, "two": two, "tail": tail, "patched": patched, "patched+tail": patched + tail}
}

func crashLives() []crashLife {
	return []crashLife{
		{"write", nil, []crashStep{
			{`cp $V/one f.csv`, tree{"f.csv": "one"}},
			{`cp $V/two f.csv`, tree{"f.csv": "two"}},
			{`printf patch | dd of=f.csv conv=notrunc,fsync bs=65536 seek=1 2>/dev/null`, tree{"f.csv": "patched"}},
			{`cat $V/tail >> f.csv`, tree{"f.csv": "patched+tail"}},
			{`dd if=$V/one of=g.csv conv=fsync bs=1M 2>/dev/null`, tree{"f.csv": "patched+tail", "g.csv": "one"}},
			{`mkdir d; cp $V/two d/h.csv`, tree{"f.csv": "patched+tail", "g.csv": "one", "d/h.csv": "two"}},
		}},
		{"rename", tree{"a.csv": "one", "b.csv": "two", "_temporary/0/theirs": "tail"}, []crashStep{
			{`mv a.csv c.csv`, tree{"b.csv": "two", "c.csv": "one", "_temporary/0/theirs": "tail"}},
			{`mv -f c.csv b.csv`, tree{"b.csv": "one", "_temporary/0/theirs": "tail"}},
			{`python3 -c 'import os, sys; f = open("t.csv", "w"); f.write(open(sys.argv[1]).read()); f.flush(); os.rename("t.csv", "b.csv"); f.close()' $V/two`, tree{"b.csv": "two", "_temporary/0/theirs": "tail"}},
			{`cp $V/one e.csv`, tree{"b.csv": "two", "e.csv": "one", "_temporary/0/theirs": "tail"}},
			{`rm e.csv`, tree{"b.csv": "two", "_temporary/0/theirs": "tail"}},
		}},
	}
}

// TestKillAtEveryStepOfPublishAndRename ends the daemon before each of its
// system calls that change a disk, mounts again and looks: with the staging
// directory on the file system of the lake, where a publish is a rename, and on
// another one, where it is a copy.
func TestKillAtEveryStepOfPublishAndRename(t *testing.T) {
	for _, life := range crashLives() {
		for _, across := range []bool{false, true} {
			name := life.name
			if across {
				name += " across file systems"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				newCrash(t, life, across).everyStep()
			})
		}
	}
}

// TestKillAtEveryStepOfRecovery ends the daemon in the middle of a copy into the
// lake, and then the next one before each of its steps until it is ready.
func TestKillAtEveryStepOfRecovery(t *testing.T) {
	t.Parallel()
	life := crashLives()[0]
	life.steps = life.steps[:2]
	c := newCrash(t, life, true)
	copying := func() bool {
		step := c.last[len(c.last)-1]
		return strings.HasPrefix(step, "fsync ") && strings.Contains(step, "/_temporary/.tmp.")
	}
	n := 1
	for ; c.round(n, 0) && !t.Failed(); n++ {
		if copying() {
			break
		}
	}
	if !copying() {
		t.Fatal("no step is the fsync of a copy")
	}
	for j := 1; c.round(n, j) && !t.Failed(); j++ {
		if j > 200 {
			t.Fatal("no end of steps")
		}
	}
}

// crash is one life that is lived again and again, in a partition of its own
// each time.
type crash struct {
	*mounttest.Lake
	t        *testing.T
	trap     *killpoint.Trap
	life     crashLife
	versions tree
	dir      string // of the versions
	rounds   int
	last     []string // steps of the last round
}

func newCrash(t *testing.T, life crashLife, across bool) *crash {
	t.Helper()
	mounttest.FolderOnly(t, "steps of a publish on a disk")
	c := &crash{t: t, life: life, versions: crashVersions(), dir: t.TempDir()}
	c.trap = killpoint.New(t, "TestKillPointHelper")
	c.versions.write(t, c.dir)
	c.Lake = mounttest.New(t, mounttest.Options{
		Tables: twoTables(nil), Via: c.trap.Command(), Timeout: 5 * time.Minute,
		Flags: []string{"--metadata-ttl=0", "--negative-ttl=0"},
	})
	if across {
		c.State = otherFileSystem(t, c.Source)
	}
	c.Start()
	return c
}

// otherFileSystem is a directory for state on another file system than path's.
func otherFileSystem(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lakefs-mount-test-") //nolint:usetesting // not where t.TempDir is
	if err != nil {
		t.Skipf("no second file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if device(t, dir) == device(t, path) {
		t.Skip("/dev/shm is no file system of its own here")
	}
	return dir
}

// patience is how long each step is tried; on a machine that is slower, later
// ones are tried one in five.
const patience = 40 * time.Second

func (c *crash) everyStep() {
	began, stride := time.Now(), 1
	for n := 1; ; n += stride {
		if stride == 1 && time.Since(began) > patience {
			c.t.Logf("from step %d on one in five", n)
			stride = 5
		}
		if n > 500 {
			c.t.Fatal("no end of steps")
		}
		killed := c.round(n, 0)
		if c.t.Failed() {
			return
		}
		if !killed {
			c.t.Logf("%d rounds", c.rounds)
			if n < 5*len(c.life.steps) {
				c.t.Errorf("only %d steps: the trap does not see them", n-1)
			}
			return
		}
	}
}

// round lives the life up to step n of the daemon's, mounts again and looks; with
// j the next daemon is ended too, before its step j. It tells whether the last
// of these steps came.
func (c *crash) round(n, j int) (killed bool) {
	c.t.Helper()
	c.rounds++
	part := "db/text/dt=" + time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, c.rounds).Format(time.DateOnly)
	if err := os.Mkdir(c.Data(part), 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.state(0).write(c.t, c.Data(part))
	c.trap.Arm(n)
	r := c.Sh(c.script(part))
	killed = c.trap.Killed()
	done := strings.Count(r.Out, "\n")
	steps := c.trap.Steps()
	switch {
	case killed && j > 0:
		c.Kill()
		c.trap.Arm(j)
		if killed = c.TryStart() != nil && c.trap.Killed(); killed {
			c.trap.Arm(0)
			c.Start()
		}
	case killed:
		c.Kill()
		c.trap.Arm(0)
		c.Start()
	case r.Code != 0:
		c.t.Fatalf("undisturbed: %s%s", r.Out, r.Err)
	}
	c.trap.Arm(0)
	c.look(part, done)
	if c.t.Failed() {
		c.t.Logf("ended before step %d (%d), %d of the life acknowledged; the last steps:\n%s", n, j, done, strings.Join(steps[max(0, len(steps)-25):], "\n"))
	}
	c.last = steps
	return killed
}

func (c *crash) script(part string) string {
	script := fmt.Sprintf("cd %s; V=%s\n", part, c.dir)
	for i, s := range c.life.steps {
		script += fmt.Sprintf("{ %s; } && echo %d || exit 1\n", s.shell, i+1)
	}
	return script
}

// look asserts that the partition is in the state that was acknowledged last or
// a later one, exactly, for the store and for the mount, and that what is staged
// can be read and dropped.
func (c *crash) look(part string, done int) {
	c.t.Helper()
	got := readTree(c.t, c.Data(part))
	at := -1 // the first state from what was acknowledged on, else any
	for i := len(c.life.steps); i >= 0; i-- {
		if got.equal(c.state(i)) && (i >= done || at < 0) {
			at = i
		}
	}
	if at < done {
		c.t.Errorf("the lake has %v, which is state %d; state %d was acknowledged", got.brief(c.versions), at, done)
	}
	if seen := c.throughMount(part); !seen.equal(got.visible()) {
		c.t.Errorf("the mount shows %v, the lake has %v", seen.brief(c.versions), got.brief(c.versions))
	}
	kept := stagedStatus(c.t, c.Lake)
	if at == len(c.life.steps) && len(kept) > 0 {
		c.t.Errorf("all is published, and %+v is staged", kept)
	}
	dropStaged(c.t, c.Lake)
}

// state is what the partition has after i steps, by content.
func (c *crash) state(i int) tree {
	names := c.life.seeds
	if i > 0 {
		names = c.life.steps[i-1].after
	}
	s := tree{}
	for file, version := range names {
		s[file] = c.versions[version]
	}
	return s
}

func (c *crash) throughMount(part string) tree {
	c.t.Helper()
	var seen tree
	err := c.Do("walk", func() error {
		var err error
		seen, err = walkTree(c.Path(part))
		return err
	})
	if err != nil {
		c.t.Errorf("through the mount: %v", err)
	}
	return seen
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return deviceOf(info)
}
