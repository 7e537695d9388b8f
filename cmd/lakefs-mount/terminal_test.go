package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// onTerminal is the program running on a terminal of its own.
type onTerminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	pty  *os.File // the other end: what is typed and shown
	done chan struct{}
	mu   struct {
		sync.Mutex
		shown []byte // all that was ever written
	}
}

// startOnTerminal runs the program under test there. env replaces what a terminal has.
func startOnTerminal(t *testing.T, lake *mounttest.Lake, env []string, args ...string) *onTerminal {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	must(err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	must(unix.SetNonblock(int(pty.Fd()), true)) // Fd has made it block, which Close could not end
	r := &onTerminal{t: t, pty: pty, done: make(chan struct{})}
	r.resize(100, 40)
	r.cmd = exec.CommandContext(t.Context(), lake.Binary(), args...)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = tty, tty, tty
	r.cmd.Env = append([]string{"HOME=" + t.TempDir(), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}, env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(r.cmd.Start())
	must(tty.Close())
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 1<<14)
		for {
			n, err := pty.Read(buffer)
			r.mu.Lock()
			r.mu.shown = append(r.mu.shown, buffer[:n]...)
			r.mu.Unlock()
			if err != nil {
				return // EIO: nobody has it open any more
			}
		}
	}()
	go func() {
		_ = r.cmd.Wait() // the exit code tells
		<-read
		close(r.done)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
		_ = pty.Close()
	})
	return r
}

func (r *onTerminal) resize(columns, rows uint16) {
	r.t.Helper()
	// Through the descriptor itself: Fd would make it block.
	raw, err := r.pty.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if failed := unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); failed != nil {
				r.t.Error(failed)
			}
		})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *onTerminal) press(keys string) {
	r.t.Helper()
	if _, err := r.pty.WriteString(keys); err != nil {
		r.t.Fatal(err)
	}
}

func (r *onTerminal) shown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.mu.shown)
}

// last is the end of it, about a screen.
func (r *onTerminal) last() string {
	all := r.shown()
	return all[max(len(all)-4096, 0):]
}

// sees waits until a text is on the screen. What changes is drawn piece by piece: a
// terminal of another size is drawn as a whole.
func (r *onTerminal) sees(text string) {
	r.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for columns := uint16(100); !strings.Contains(r.shown(), text); columns ^= 1 {
		select {
		case <-deadline:
			r.t.Fatalf("the terminal does not show %q, but %q", text, r.last())
		case <-tick.C:
		}
		r.resize(columns, 40)
	}
}

// ends waits for the end, and returns the exit code.
func (r *onTerminal) ends() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		r.t.Fatalf("it does not end; the terminal shows %q", r.last())
	}
	return r.cmd.ProcessState.ExitCode()
}
