package fs

import (
	"os"
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
