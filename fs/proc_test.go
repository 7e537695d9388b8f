package fs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := func(comm, flags, exit string) string {
		s := "42 (" + comm + ") Z 1 1 1 0 -1 " + flags
		for range 52 - 10 {
			s += " 0"
		}
		return s + " " + exit
	}
	for _, c := range []struct {
		text  string
		flags uint64
		exit  int
		ok    bool
	}{
		{line("cp", "1028", "9"), 1028, 9, true},
		{line("a) R 1 2 (b", "4", "0"), 4, 0, true}, // a command may look like a line
		{"42 (cp) Z 1 1", 0, 0, false},
		{"", 0, 0, false},
	} {
		flags, exit, ok := parseStat([]byte(c.text))
		if flags != c.flags || exit != c.exit || ok != c.ok {
			t.Errorf("%q: %d %d %v, want %d %d %v", c.text, flags, exit, ok, c.flags, c.exit, c.ok)
		}
	}
}

func TestTears(t *testing.T) {
	for sig, want := range map[syscall.Signal]bool{
		syscall.SIGKILL: true, syscall.SIGTERM: true, syscall.SIGINT: true, syscall.SIGSEGV: true,
		syscall.SIGBUS: true, syscall.SIGABRT: true, syscall.SIGQUIT: true,
		syscall.SIGPIPE: false, syscall.SIGHUP: false, 0: false,
	} {
		if got := tears(sig); got != want {
			t.Errorf("%v: %v, want %v", sig, got, want)
		}
	}
}

func TestWritableOn(t *testing.T) {
	for text, want := range map[string]bool{
		"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t77\n": true,
		"pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t77\n": true,
		"pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t77\n": false,
		"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t78\n": false,
		"": false,
	} {
		if mount, got := writableOn([]byte(text), 77); got != want || (got && mount != "29") {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// The real /proc: this process and a child hold a file, and then do not.
func TestHeldByProcessAndChild(t *testing.T) {
	p := processTable{root: "/proc"}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	ino := st.Sys().(*syscall.Stat_t).Ino
	me := uint32(os.Getpid())
	if held := p.held(me, ino); !held {
		t.Errorf("own descriptor: held %v", held)
	}
	child := exec.CommandContext(t.Context(), "sleep", "60")
	child.Stdout = f
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if held := p.held(me, ino); !held {
		t.Errorf("child's descriptor: held %v", held)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = child.Process.Wait()
	if held := p.held(me, ino); held {
		t.Errorf("nobody's descriptor: held %v", held)
	}
}

// A slow look is waited for; only one that waits for a lock is given up.
func TestAnswerWaitsForABusyMachineNotForALock(t *testing.T) {
	release := make(chan struct{})
	slow := ask(func() int { <-release; return 1 })
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	if v, ok := slow.answer(time.Millisecond); v != 1 || !ok {
		t.Errorf("slow look: %d, %v; want its answer", v, ok)
	}
	if stopped(int32(syscall.Gettid())) {
		t.Error("a running thread counts as stopped")
	}
	if !stopped(1 << 30) {
		t.Error("a thread that is not there does not count as stopped")
	}
}

func TestThreadGroup(t *testing.T) {
	p := processTable{root: "/proc"}
	tid := uint32(syscall.Gettid())
	if got := p.threadGroup(tid); got != uint32(os.Getpid()) {
		t.Errorf("thread group %d, want %d", got, os.Getpid())
	}
	if got := p.threadGroup(0); got != 0 {
		t.Errorf("thread group of 0 is %d", got)
	}
}

// Two mounts of one lake have the same inode numbers: which of them a process
// writes through is told by its own mount table.
func TestHeldThroughAnotherMountIsNotHeld(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"+
		"29 20 0:55 / /mnt/a\\040lake rw - fuse.lakefs-mount /w rw\n30 20 0:56 / /mnt/b rw - fuse.lakefs-mount /w rw\n")
	put("7/mountinfo", "129 20 0:55 / /x rw - fuse.lakefs-mount /w rw\n130 20 0:56 / /y rw - fuse.lakefs-mount /w rw\n")
	if err := os.Mkdir(filepath.Join(root, "7", "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/mnt/f", filepath.Join(root, "7", "fd", "3")); err != nil {
		t.Fatal(err)
	}
	here := processTable{root: root}
	here.device = func() string { return here.deviceAt("/mnt/a lake") }
	for mount, want := range map[string]bool{"129": true, "130": false, "131": true} {
		put("7/fdinfo/3", "pos:\t0\nflags:\t0100001\nmnt_id:\t"+mount+"\nino:\t77\n")
		if held := here.held(7, 77); held != want {
			t.Errorf("through mount %s: held %v, want %v", mount, held, want)
		}
	}
	if got := here.deviceAt("/mnt/none"); got != "" {
		t.Errorf("device of no mount: %q", got)
	}
}

// A fixture tree, for what a living process does not show.
func TestKilledFromStat(t *testing.T) {
	root := t.TempDir()
	write := func(pid int, flags uint64, exit int) {
		dir := filepath.Join(root, strconv.Itoa(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s := strconv.Itoa(pid) + " (x) R 1 1 1 0 -1 " + strconv.FormatUint(flags, 10)
		for range 52 - 10 {
			s += " 0"
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(s+" "+strconv.Itoa(exit)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(1, pfExiting|pfSignaled, int(syscall.SIGKILL))
	write(2, pfExiting, 0)
	write(3, pfExiting|pfSignaled, int(syscall.SIGPIPE))
	write(4, 0, 0)
	write(5, pfExiting|pfSignaled, int(syscall.SIGSEGV)|0x80) // with a core
	p := processTable{root: root}
	for pid, want := range map[uint32]ending{1: endKilled, 2: endNone, 3: endNone, 4: endNone, 5: endKilled, 99: endUnknown} {
		if got, ok := p.closing(pid, 0).answer(time.Minute); got.end != want || !ok {
			t.Errorf("pid %d: %v (answered %v), want %v", pid, got.end, ok, want)
		}
	}
}
