package fs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/killpoint"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// program is one that runs beside the test, in the lake's partition, until it is
// ended or ends.
type program struct {
	cmd *exec.Cmd
	out strings.Builder
}

// begin starts a bash script in the CSV partition, and waits until it has made
// the file "$READY".
func begin(t *testing.T, l *mounttest.Lake, script string) *program {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	p := &program{}
	args := mounttest.Inside(l.Path(csvDir), "bash", "-c", script)
	p.cmd = exec.CommandContext(context.Background(), args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), "READY="+ready)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = &p.out, &p.out, time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	l.Eventually("the program is ready", 0, func() bool {
		_, err := os.Lstat(ready)
		return err == nil
	})
	return p
}

// end ends the program and its children.
func (p *program) end() {
	if p.cmd.ProcessState == nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = p.cmd.Wait()
	}
}

// wait waits for the program's own end.
func (p *program) wait(t *testing.T) (code int, output string) {
	t.Helper()
	stop := time.AfterFunc(30*time.Second, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	defer stop.Stop()
	_ = p.cmd.Wait() // the code tells
	return p.cmd.ProcessState.ExitCode(), p.out.String()
}

// slowWriter writes 200 MiB at the pace of a slow source: 20 MiB at once, the
// rest as the test lets it.
const slowWriter = `{ head -c 20M /dev/zero; : > $READY; sleep 1000; } | dd of=big.csv bs=1M iflag=fullblock status=none`

// wantWholeOrAbsent asserts that the lake has all of content at name, or nothing.
func wantWholeOrAbsent(t *testing.T, l *mounttest.Lake, name string, size int64) (there bool) {
	t.Helper()
	content, there := inStore(t, l, name)
	if there && int64(len(content)) != size {
		t.Errorf("the lake has %d bytes of %s, want %d or none", len(content), name, size)
	}
	return there
}

// TestCase19UnmountWhileWritten: the command refuses and names who writes what,
// and the writer goes on undisturbed.
func TestCase19UnmountWhileWritten(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	p := begin(t, l, `exec 3>f.csv; echo one >&3; : > $READY; until [ -e $READY.go ]; do sleep .02; done; echo two >&3; exec 3>&-; echo three > g.csv`)
	r := l.Run("unmount", l.Root)
	if r.Code != 1 || !strings.Contains(r.Err, "f.csv") || !strings.Contains(r.Err, fmt.Sprint(p.cmd.Process.Pid)) || !l.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v; want 1, the file and the process", r.Code, r.Err, l.Mounted())
	}
	ready := strings.TrimPrefix(p.cmd.Env[len(p.cmd.Env)-1], "READY=")
	writeFile(t, ready+".go", "")
	if code, out := p.wait(t); code != 0 {
		t.Errorf("the writer ended with %d: %s", code, out)
	}
	wantStore(t, l, csvDir+"/f.csv", "one\ntwo\n")
	wantStore(t, l, csvDir+"/g.csv", "three\n")
	if r := l.Run("unmount", l.Root); r.Code != 0 || l.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v", r.Code, r.Err, l.Mounted())
	}
	if code := l.Wait(); code != 0 {
		t.Errorf("the daemon ended with %d, want 0", code)
	}
}

// terminate sends so many SIGTERMs. One that comes within a second of another is
// the same one (timeout(1) signals its child and the child's group).
func terminate(l *mounttest.Lake, signals int) {
	terminateBeside(l, signals, 0)
}

// terminateBeside is terminate while a thread of the daemon is stopped.
func terminateBeside(l *mounttest.Lake, signals int, stopped uint32) {
	for i := range signals {
		if i > 0 {
			<-time.After(1100 * time.Millisecond)
		}
		l.SignalBeside(syscall.SIGTERM, stopped)
		l.WaitLog("unmounting")
	}
}

// TestCase19TermWhileWritten: SIGTERM in the middle of a write that does not end
// in time. The mount is gone, the exit code is not zero and the file is named.
func TestCase19TermWhileWritten(t *testing.T) {
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d signals", signals), func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, nil)
			p := begin(t, l, slowWriter)
			l.Eventually("20 MiB are staged", 0, func() bool {
				all := stagedStatus(t, l)
				return len(all) == 1 && all[0].Size == 20<<20
			})
			terminate(l, signals)
			began := time.Now()
			code := l.Wait()
			if code != 1 {
				t.Errorf("the daemon ended with %d, want 1", code)
			}
			if took := time.Since(began); signals == 2 && took > 5*time.Second || took > 40*time.Second {
				t.Errorf("it took %v", took)
			}
			if l.Mounted() {
				t.Error("something is left mounted")
			}
			if !strings.Contains(l.Log(), "big.csv") {
				t.Error("the log does not name what is unpublished")
			}
			p.end()
			if wantWholeOrAbsent(t, l, csvDir+"/big.csv", 200<<20) {
				t.Error("what was never complete is published")
			}
			l.Start()
			wantKept(t, l, []kept{{csvDir + "/big.csv", "staged", "", strings.Repeat("\x00", 20<<20)}})
			wantAbsent(t, l, csvDir+"/big.csv")
		})
	}
}

// TestTermWaitsForTheCloseOfAWriter that ends in time: published, exit 0.
func TestTermWaitsForTheCloseOfAWriter(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	p := begin(t, l, `exec 3>f.csv; echo one >&3; : > $READY; sleep 1; echo two >&3; exec 3>&-; cd /`)
	l.Signal(syscall.SIGTERM)
	l.WaitLog("unmounting")
	if code := l.Wait(); code != 0 {
		t.Errorf("the daemon ended with %d, want 0", code)
	}
	if code, out := p.wait(t); code != 0 {
		t.Errorf("the writer ended with %d: %s", code, out)
	}
	if l.Mounted() {
		t.Error("something is left mounted")
	}
	if got, _ := inStore(t, l, csvDir+"/f.csv"); got != "one\ntwo\n" {
		t.Errorf("the lake has %q", got)
	}
	l.Start()
	wantClean(t, l, csvDir, "f.csv")
}

// TestSignalsWhilePublishing: the daemon is stopped for a moment in the middle
// of a publish across file systems, and gets one or two signals meanwhile.
func TestSignalsWhilePublishing(t *testing.T) {
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d signals", signals), func(t *testing.T) {
			t.Parallel()
			mounttest.FolderOnly(t, "steps of a publish on a disk")
			trap := killpoint.New(t, "TestKillPointHelper")
			l := mounttest.New(t, mounttest.Options{Tables: twoTables(nil), Via: trap.Command()})
			l.State = otherFileSystem(t, l.Source)
			l.Start()
			held, release := trap.Hold("write ", "/_temporary/.tmp.")
			defer release()
			p := begin(t, l, `: > $READY; yes | head -c 64M > f.csv; cd /`)
			var stopped uint32
			select {
			case stopped = <-held:
			case <-time.After(30 * time.Second):
				t.Fatal("no publish began")
			}
			terminateBeside(l, signals, stopped)
			code := 0
			if signals == 1 {
				release()
			}
			code = l.Wait()
			release()
			p.end()
			if l.Mounted() {
				t.Error("something is left mounted")
			}
			there := wantWholeOrAbsent(t, l, csvDir+"/f.csv", 64<<20)
			if there != (code == 0) || there != (signals == 1) {
				t.Errorf("published %v, exit code %d; want it published at one signal, 0 if so", there, code)
			}
			if !there && !strings.Contains(l.Log(), "f.csv") {
				t.Error("the log does not name what is unpublished")
			}
			l.Start()
			wantWholeOrAbsent(t, l, csvDir+"/f.csv", 64<<20)
			if names, err := os.ReadDir(l.Data(csvDir)); err != nil || len(names) != 1 || names[0].Name() != "f.csv" {
				t.Errorf("after the remount the lake has %v (%v), want f.csv alone", names, err)
			}
		})
	}
}
