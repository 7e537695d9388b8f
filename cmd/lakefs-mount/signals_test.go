package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// mountsOf are the processes whose command line has the state directory, by whether they
// are daemons.
func mountsOf(t *testing.T, state string) map[bool]int {
	t.Helper()
	found := map[bool]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may have ended
		args := strings.Split(string(line), "\x00")
		if len(args) > 2 && args[1] == "mount" && strings.Contains(string(line), state+"\x00") {
			found[strings.Contains(string(line), "--"+readyFlag)] = pid
		}
	}
	return found
}

// TestSignalBeforeReady: to a daemon's parent, and to the daemon itself, while the store
// does not answer. The cause is told at once, nothing is mounted, no process is left.
func TestSignalBeforeReady(t *testing.T) {
	for _, tt := range []struct {
		name   string
		daemon bool
		signal syscall.Signal
		want   string
	}{
		{"parent TERM", false, syscall.SIGTERM, "ended by a signal (terminated) before the mount was ready"},
		{"parent INT", false, syscall.SIGINT, "ended by a signal (terminated) before the mount was ready"},
		{"daemon INT", true, syscall.SIGINT, "ended by a signal (interrupt) before the mount was ready"},
		{"daemon KILL", true, syscall.SIGKILL, "ended before the mount was ready: signal: killed"},
		{"daemon QUIT", true, syscall.SIGQUIT, "ended before the mount was ready: exit status 2"},
		{"parent KILL", false, syscall.SIGKILL, ""},
		{"parent HUP", false, syscall.SIGHUP, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := sales(t)
			o.Faulty = true
			lake := mounttest.New(t, o)
			held := lake.Proxy.Add(faulty.Rule{Fault: faulty.Hang{}})
			ended := make(chan mounttest.Result, 1)
			go func() {
				ended <- lake.Run("mount", "--daemon", "--io-timeout=50s", "--state-dir="+lake.State, lake.Source, lake.Root)
			}()
			held.Wait(t, 1)
			began := time.Now()
			to := mountsOf(t, lake.State)[tt.daemon]
			if err := syscall.Kill(to, tt.signal); err != nil {
				t.Fatal(err)
			}
			if tt.want == "" { // nobody waits for the daemon any more, once the parent's descriptors are closed
				lake.Eventually("the parent is reaped", 20*time.Second, func() bool { return errors.Is(syscall.Kill(to, 0), syscall.ESRCH) })
				held.Remove()
				lake.Proxy.Release()
			}
			r := <-ended
			if r.Code == 0 || !strings.Contains(r.Err, tt.want) || time.Since(began) > 30*time.Second {
				t.Errorf("after %v: exit code %d, %q; want the cause %q", time.Since(began), r.Code, r.Err, tt.want)
			}
			lake.Eventually("no process is left", 20*time.Second, func() bool { return len(mountsOf(t, lake.State)) == 0 })
			if lake.Mounted() {
				t.Error("something is left mounted")
			}
		})
	}
}

// TestSignalWhileAnEarlierMountIsSettled: what it was publishing is asked of a store that
// does not answer.
func TestSignalWhileAnEarlierMountIsSettled(t *testing.T) {
	t.Parallel()
	o := sales(t)
	o.Faulty = true
	lake := mounttest.Mount(t, o)
	held := lake.Proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Hang{}})
	writer := make(chan mounttest.Result, 1)
	go func() { writer <- lake.Sh("env echo 2,two > " + notesDir + "/b.csv") }()
	held.Wait(t, 1)
	lake.Kill()
	if r := <-writer; r.Code == 0 {
		t.Error("a write is acknowledged that nobody has published")
	}
	held.Remove()
	lake.Proxy.Release()
	silent := lake.Proxy.Add(faulty.Rule{Fault: faulty.Hang{}})
	ended := make(chan mounttest.Result, 1)
	go func() {
		ended <- lake.Run("mount", "--io-timeout=50s", "--state-dir="+lake.State, lake.Source, lake.Root)
	}()
	silent.Wait(t, 1)
	began := time.Now()
	if err := syscall.Kill(mountsOf(t, lake.State)[false], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.Code != exitFailed || !strings.Contains(r.Err, "before the mount was ready") || time.Since(began) > 30*time.Second || lake.Mounted() {
		t.Errorf("after %v: exit code %d, %q, mounted %v", time.Since(began), r.Code, r.Err, lake.Mounted())
	}
	silent.Remove()
	lake.Proxy.Release()
	lake.Start()
	if r := lake.Run("recover", "--publish=all", lake.Root); r.Code != 0 {
		t.Errorf("recover: %s", r.Err)
	}
	if got := lake.MustSh("cat " + notesDir + "/b.csv"); got != "2,two\n" {
		t.Errorf("after the remount the file is %q", got)
	}
}

// load writes files, each acknowledged by its number in the file ACKED, and reads them
// back, until one cannot be written. The shell's own echo does not look what its close
// came to.
const load = `
reader() { while [ -e $GO ]; do cat sales/notes/*/*.csv; done >/dev/null 2>&1; }
writer() { i=0; while [ -e $GO ] && env echo $1,$i >sales/notes/dt=2026-01-01/$1-$i.csv; do echo $1-$i >>$ACKED; i=$((i+1)); done 2>/dev/null; }
reader & reader & writer a & writer b & wait`

// TestSignalsUnderLoad: whatever ends a mount or does not, what a close has acknowledged is
// in the lake, or after the next mount.
func TestSignalsUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name    string
		signals []syscall.Signal
		lives   bool
		shell   string // in place of a signal
	}{
		{name: "HUP, USR1 and PIPE", signals: []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGPIPE, syscall.SIGHUP}, lives: true},
		{name: "TERM", signals: []syscall.Signal{syscall.SIGTERM}},
		{name: "INT", signals: []syscall.Signal{syscall.SIGINT}},
		{name: "QUIT", signals: []syscall.Signal{syscall.SIGQUIT}},
		{name: "KILL", signals: []syscall.Signal{syscall.SIGKILL}},
		{name: "fusermount3", shell: "fusermount3 -u -z "},
		{name: "umount", shell: "umount -l "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.shell != "" {
				needsRoot(t)
			}
			lake := mounttest.Mount(t, sales(t))
			dir := t.TempDir()
			acked, going := filepath.Join(dir, "acked"), filepath.Join(dir, "go")
			for _, name := range []string{acked, going} {
				if err := os.WriteFile(name, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			numbers := func() []string {
				raw, err := os.ReadFile(acked)
				if err != nil {
					t.Error(err)
				}
				return strings.Fields(string(raw))
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				lake.Sh("ACKED=" + acked + "; GO=" + going + load)
			}()
			lake.Eventually("files are written", 20*time.Second, func() bool { return len(numbers()) > 10 })
			for _, s := range tt.signals {
				lake.Signal(s)
			}
			if tt.shell != "" {
				mustShell(t, tt.shell+lake.Root)
			}
			if tt.lives {
				n := len(numbers())
				lake.Eventually("files are still written", 20*time.Second, func() bool { return len(numbers()) > n+10 })
				lake.WaitLog("msg=state")
			}
			_ = os.Remove(going)
			<-ended
			if !tt.lives {
				lake.Wait() // what ended it tells its code
				lake.Start()
			}
			for _, n := range numbers() {
				want := strings.Replace(n, "-", ",", 1) + "\n"
				if got, err := lake.ReadFile(notesDir + "/" + n + ".csv"); err != nil || got != want {
					t.Errorf("%s was acknowledged, and is %q (%v)", n, got, err)
				}
			}
		})
	}
}

// TestSignalsWhileDraining, in an outage of the store that does not end: others than those
// that end the mount are heeded, and the second of these ends it at once. What could not be
// published is, after the next mount.
func TestSignalsWhileDraining(t *testing.T) {
	t.Parallel()
	o := sales(t)
	o.Faulty, o.Flags = true, []string{"--io-timeout=40s"}
	lake := mounttest.Mount(t, o)
	held := lake.Proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Hang{}})
	ended := make(chan mounttest.Result, 1)
	go func() { ended <- lake.Sh("echo 2,two > " + notesDir + "/b.csv") }()
	held.Wait(t, 1)
	lake.Signal(syscall.SIGTERM)
	lake.WaitLog("unmounting")
	lake.Signal(syscall.SIGUSR1)
	lake.WaitLog("msg=state")
	lake.Signal(syscall.SIGHUP)
	lake.WaitLog("reading credentials anew")
	<-time.After(sameSignal)
	lake.Signal(syscall.SIGTERM)
	if code := lake.Wait(); code != exitFailed || lake.Mounted() || !strings.Contains(lake.Log(), "b.csv") {
		t.Errorf("the mount ended with %d, mounted %v: %s", code, lake.Mounted(), lake.Log())
	}
	<-ended
	held.Remove()
	lake.Proxy.Release()
	lake.Start()
	if r := lake.Run("recover", "--publish=all", lake.Root); r.Code != 0 {
		t.Errorf("recover: %s", r.Err)
	}
	if got := lake.MustSh("cat " + notesDir + "/b.csv"); got != "2,two\n" {
		t.Errorf("after the remount the file is %q", got)
	}
}

// TestFullLogDisk: lines are lost, the mount and what is written are not.
func TestFullLogDisk(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	needsRoot(t)
	for _, way := range []string{"stream", "daemon"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			lake := mounttest.New(t, sales(t))
			small := t.TempDir()
			mustShell(t, "mount -t tmpfs -o size=2m none "+small)
			t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
			command := lake.Binary() + " mount --log-level=debug "
			if way == "daemon" { // its log is in the state directory
				command += "--daemon --state-dir=" + small + "/state " + lake.Source + " " + lake.Root + "; head -c 3M /dev/zero >" + small + "/fill"
			} else {
				command += "--state-dir=" + lake.State + " " + lake.Source + " " + lake.Root + " 2>" + small + "/log & head -c 3M /dev/zero >" + small + "/fill"
			}
			_, errs, _ := shell(t, command) // head's code tells that the disk is full
			lake.Eventually("it is mounted: "+errs, 20*time.Second, lake.Mounted)
			t.Cleanup(func() { mounttest.Detach(lake.Root) })
			lake.MustSh("for i in $(seq 50); do ! cat none$i 2>/dev/null || exit 1; done; cat " + notesDir + "/a.csv")
			r := lake.Sh("echo 2,two > " + notesDir + "/b.csv")
			if got, err := lake.Stored(notesDir + "/b.csv"); (r.Code == 0) != (err == nil) || err == nil && got != "2,two\n" || way == "stream" && err != nil {
				t.Errorf("a write ends with %d (%s), and the lake has %q (%v)", r.Code, r.Err, got, err)
			}
			if r := lake.Run("unmount", lake.Root); r.Code != 0 || lake.Mounted() {
				t.Errorf("unmount: exit code %d, %q", r.Code, r.Err)
			}
		})
	}
}

// TestMountOutlivesAStuckLog: its reader has stopped reading.
func TestMountOutlivesAStuckLog(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	t.Cleanup(func() { mounttest.Detach(lake.Root) })
	dir := t.TempDir()
	_, errs, code := shell(t, fmt.Sprintf(`cd %s; mkfifo log; { sleep 1000 & echo $! >&3; wait; } <log 3>reader >/dev/null 2>&1 &
		%s mount --log-level=debug --state-dir=%s %s %s >/dev/null 2>log & echo $! >mount`, dir, lake.Binary(), lake.State, lake.Source, lake.Root))
	if code != 0 {
		t.Fatal(errs)
	}
	t.Cleanup(func() { _, _, _ = shell(t, "cd "+dir+"; kill $(cat reader)") })
	lake.Eventually("it is mounted", 20*time.Second, lake.Mounted)
	lake.MustSh("for i in $(seq 1500); do [ ! -e none$i ] || exit 1; mkdir sales/x$i 2>/dev/null && exit 1; done; echo 2,two > " + notesDir + "/b.csv; cat " + notesDir + "/b.csv")
	mustShell(t, "kill -TERM $(cat "+dir+"/mount)")
	lake.Eventually("it has ended", 20*time.Second, func() bool { return !lake.Mounted() && len(mountsOf(t, lake.State)) == 0 })
	if got, err := lake.Stored(notesDir + "/b.csv"); err != nil || got != "2,two\n" {
		t.Errorf("the lake has %q (%v)", got, err)
	}
}
