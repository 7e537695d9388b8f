package fs_test

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The daemon is killed at the points where only the store knows what took effect.

// behind runs a script in csvDir that the daemon's end will break, and returns a
// function that waits for it.
func behind(t *testing.T, l *mounttest.Lake, script string) (wait func()) {
	t.Helper()
	args := mounttest.Inside(l.Path(csvDir), "bash", "-c", script)
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its outcome is not of interest
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-done
	})
	return func() { <-done }
}

// putsOf counts the PUTs of names that begin so, but for
// those that a condition refused: each mount tries what the store makes of them.
func putsOf(l *mounttest.Lake, name string) (n int) {
	for _, q := range l.Proxy.Log() {
		if q.Op == "PutObject" && q.Status != 412 && strings.HasPrefix(q.Key, l.Key(csvDir+"/"+name)) {
			n++
		}
	}
	return n
}

// TestS3KilledWhilePublishing: the next mount finds out what came of the PUT, and
// makes another only where there was none.
func TestS3KilledWhilePublishing(t *testing.T) {
	t.Parallel()
	const old = "old\n"
	for what, c := range map[string]struct {
		fault         faulty.Fault
		name, content string
		script        string
		puts          int // of both lives
	}{
		"a new file, which took effect":     {faulty.Hang{Answer: true}, "new", "new\n", `echo new >new`, 1},
		"a new file, which did not":         {faulty.Hang{}, "new", "new\n", `echo new >new`, 2},
		"an overwrite, which took effect":   {faulty.Hang{Answer: true}, "old", "other\n", `echo other >old`, 1},
		"an overwrite, which did not":       {faulty.Hang{}, "old", "other\n", `echo other >old`, 2},
		"an append, which took effect":      {faulty.Hang{Answer: true}, "old", old + "more\n", `echo more >>old`, 1},
		"an append, which did not":          {faulty.Hang{}, "old", old + "more\n", `echo more >>old`, 2},
		"an fsync, which took effect":       {faulty.Hang{Answer: true}, "new", "new\n", `echo new | dd of=new conv=fsync status=none`, 1},
		"a new name for an unpublished one": {faulty.Hang{Answer: true}, "new", "new\n", `exec 3>first; echo new >&3; mv first new; exec 3>&-`, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"old": old}, "--io-timeout=30s")
			warm(t, l)
			held := l.Proxy.Add(onFile(l, "PutObject", c.name, c.fault))
			wait := behind(t, l, c.script)
			held.Wait(t, 1)
			if _, hangs := c.fault.(faulty.Hang); hangs && c.puts == 1 {
				l.Eventually("the PUT took effect", 0, func() bool { got, _ := inStore(t, l, csvDir+"/"+c.name); return got == c.content })
			}
			l.Kill()
			wait()
			l.Proxy.Clear()
			l.Start("--io-timeout=30s")
			after := []string{"old"}
			if c.name != "old" {
				after = append(after, c.name)
			}
			l.Eventually("recovered", 0, func() bool { return len(spools(t, l)) == 0 })
			wantStore(t, l, csvDir+"/"+c.name, c.content)
			wantContent(t, l, csvDir+"/"+c.name, c.content)
			wantClean(t, l, csvDir, after...)
			if n := putsOf(l, c.name); n != c.puts {
				t.Errorf("%d PUTs in all, want %d\n%s", n, c.puts, asked(l))
			}
			wantBucket(t, l, after...)
		})
	}
}

// TestS3KilledBetweenPublishAndRecovery: what another put there meanwhile stays,
// and what was written is kept.
func TestS3KilledBetweenPublishAndRecovery(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old": "old\n"}, "--io-timeout=30s")
	warm(t, l)
	held := l.Proxy.Add(onFile(l, "PutObject", "", faulty.Hang{}))
	waitOld, waitNew := behind(t, l, `echo mine >old`), behind(t, l, `echo mine >new`)
	held.Wait(t, 2)
	l.Kill()
	waitOld()
	waitNew()
	l.Proxy.Clear()
	l.PutStored(csvDir+"/old", "theirs, of old\n")
	l.PutStored(csvDir+"/new", "theirs, of new\n")
	l.Start("--io-timeout=30s")
	wantContent(t, l, csvDir+"/old", "theirs, of old\n")
	wantContent(t, l, csvDir+"/new", "theirs, of new\n")
	l.Eventually("both are known to have failed", 0, func() bool {
		all := stagedStatus(t, l)
		return len(all) == 2 && all[0].State == "failed" && all[1].State == "failed"
	})
	for _, w := range stagedStatus(t, l) {
		wantContent(t, l, w.shown(), "mine\n")
	}
	wantBucket(t, l, "old", "new")
}

// TestS3KilledWhileRenaming: between the copy and the removal, and before and
// after each; the next mount leaves one name.
func TestS3KilledWhileRenaming(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		op    string
		fault faulty.Fault
		from  bool // the object is at its old name afterwards
	}{
		"before the copy":    {"CopyObject", faulty.Hang{}, true},
		"after the copy":     {"CopyObject", faulty.Hang{Answer: true}, false},
		"before the removal": {"DeleteObject", faulty.Hang{}, false},
		"after the removal":  {"DeleteObject", faulty.Hang{Answer: true}, false},
	} {
		for _, target := range []string{"new", "over"} {
			t.Run(what+" to "+target, func(t *testing.T) {
				t.Parallel()
				l := faultyTwo(t, map[string]string{"from": "from\n", "over": "over\n"}, "--io-timeout=30s")
				warm(t, l)
				held := l.Proxy.Add(onFile(l, c.op, "", c.fault))
				wait := behind(t, l, `mv -f from `+target)
				held.Wait(t, 1)
				if what == "after the copy" {
					l.Eventually("it is copied", 0, func() bool { got, _ := inStore(t, l, csvDir+"/"+target); return got == "from\n" })
				}
				if what == "after the removal" {
					l.Eventually("it is removed", 0, func() bool { _, there := inStore(t, l, csvDir+"/from"); return !there })
				}
				l.Kill()
				wait()
				l.Proxy.Clear()
				l.Start("--io-timeout=30s")
				l.Eventually("recovered", 0, func() bool { return len(spools(t, l)) == 0 })
				want := tree{"over": "over\n"}
				if want[target] = "from\n"; c.from {
					want = tree{"from": "from\n", "over": "over\n"}
				}
				var names []string
				for name, content := range want {
					names = append(names, name)
					wantStore(t, l, csvDir+"/"+name, content)
				}
				wantNames(t, l, csvDir, names...)
				wantClean(t, l, csvDir, names...)
				wantBucket(t, l, names...)
			})
		}
	}
}

// TestS3KilledWhileRenamingAndRewritten: the removal that is left to do spares
// what another put at the old name.
func TestS3KilledWhileRenamingAndRewritten(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"from": "from\n"}, "--io-timeout=30s")
	held := l.Proxy.Add(onFile(l, "DeleteObject", "from", faulty.Hang{}))
	wait := behind(t, l, `mv from to`)
	held.Wait(t, 1)
	l.Kill()
	wait()
	l.Proxy.Clear()
	l.PutStored(csvDir+"/from", "another's\n")
	l.Start("--io-timeout=30s")
	l.Eventually("recovered", 0, func() bool { return len(spools(t, l)) == 0 })
	wantStore(t, l, csvDir+"/from", "another's\n")
	wantStore(t, l, csvDir+"/to", "from\n")
	wantBucket(t, l, "from", "to")
}
