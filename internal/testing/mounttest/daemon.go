package mounttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// readyTimeout bounds a mount's way to its ready line.
const readyTimeout = 20 * time.Second

// daemon is one run of `lakefs-mount mount`.
type daemon struct {
	cmd  *exec.Cmd
	log  *log
	done chan struct{} // closed when the process has ended
	err  error         // of Wait; read after done
}

// Start mounts the lake, with further flags, and waits until it is ready.
func (l *Lake) Start(flags ...string) {
	l.t.Helper()
	if err := l.TryStart(flags...); err != nil {
		l.t.Fatal(err)
	}
}

// TryStart is Start for mounts that may fail: the error has the exit code and
// all that the program printed.
func (l *Lake) TryStart(flags ...string) error {
	l.t.Helper()
	if l.current() != nil {
		l.t.Fatal("the lake is mounted already")
	}
	d, err := l.launch(flags)
	if err != nil {
		return err
	}
	timeout := time.NewTimer(min(readyTimeout, time.Until(l.deadline)))
	defer timeout.Stop()
	select {
	case <-d.log.ready:
	case <-d.done:
		return fmt.Errorf("mount ended before it was ready: %w\n%s", exitError(d.err), d.log)
	case <-timeout.C:
		d.kill()
		l.detach()
		return fmt.Errorf("mount not ready after %v\n%s", readyTimeout, d.log)
	}
	l.mu.Lock()
	l.mu.daemon = d
	l.mu.Unlock()
	countMount(l.t)
	return nil
}

func (l *Lake) launch(flags []string) (*daemon, error) {
	args := slices.Concat(l.o.Via, []string{l.Binary(), "mount", "--state-dir", l.State}, l.storeFlags(), l.o.Flags, flags, []string{l.Source, l.Root})
	d := &daemon{log: newLog(), done: make(chan struct{})}
	// The command outlives this call, and ends by signals alone.
	d.cmd = exec.CommandContext(context.Background(), args[0], args[1:]...)
	d.cmd.Env = slices.Concat(environ(), l.storeEnv(), l.o.Env)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.WaitDelay = 5 * time.Second
	d.cmd.SysProcAttr = l.credentials()
	d.cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	l.mu.Lock()
	l.mu.logs = append(l.mu.logs, d.log)
	l.mu.Unlock()
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

func (l *Lake) credentials() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if l.o.User != 0 {
		attr.Credential = &syscall.Credential{Uid: l.o.User, Gid: l.o.User}
	}
	return attr
}

// environ is the test's environment less the settings of the program.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "LAKEFS_MOUNT_") })
}

// kill ends the process at once and waits for it.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // an error: it has ended
	<-d.done
}

// ended tells whether the process has ended.
func ended(d *daemon) bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (l *Lake) current() *daemon {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.daemon
}

func (l *Lake) take() *daemon {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.mu.daemon
	l.mu.daemon = nil
	return d
}

// Pid is the daemon's process id.
func (l *Lake) Pid() int { return l.running().cmd.Process.Pid }

func (l *Lake) running() *daemon {
	l.t.Helper()
	d := l.current()
	if d == nil {
		l.t.Fatal("the lake is not mounted")
	}
	return d
}

// Signal sends the daemon a signal.
func (l *Lake) Signal(s syscall.Signal) {
	l.t.Helper()
	must(l.t, l.running().cmd.Process.Signal(s))
}

// Stop stops the daemon: each of its threads stands still when it returns, which the
// signal alone only asks for. SIGCONT ends it.
func (l *Lake) Stop() {
	l.t.Helper()
	l.Signal(syscall.SIGSTOP)
	l.Eventually("the daemon stops", 0, func() bool { return s3test.Stopped(l.Pid()) })
}

// SignalBeside sends the daemon a signal by way of a thread other than the one
// that is stopped (killpoint), which could not take it.
func (l *Lake) SignalBeside(s syscall.Signal, stopped uint32) {
	l.t.Helper()
	pid := l.Pid()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must(l.t, err)
	for _, e := range threads {
		if tid, err := strconv.Atoi(e.Name()); err == nil && uint32(tid) != stopped {
			must(l.t, unix.Tgkill(pid, tid, s))
			return
		}
	}
	l.t.Fatal("the daemon has no other thread")
}

// Wait waits until the daemon ends by itself, within the lake's deadline, and
// returns its exit code (-1: by a signal).
func (l *Lake) Wait() int {
	l.t.Helper()
	d := l.running()
	select {
	case <-d.done:
	case <-time.After(time.Until(l.deadline)):
		l.t.Fatalf("the daemon did not end\n%s", d.log)
	}
	l.take()
	return d.cmd.ProcessState.ExitCode()
}

// Kill ends the daemon by SIGKILL. Its dead mount stays at the mount point, as
// after a crash; Start mounts over it.
func (l *Lake) Kill() {
	l.t.Helper()
	l.running().kill()
	l.take()
}

// Unmount ends the lake by SIGTERM and asserts that it goes cleanly.
func (l *Lake) Unmount() {
	l.t.Helper()
	l.Signal(syscall.SIGTERM)
	d := l.running()
	if code := l.Wait(); code != 0 {
		l.t.Errorf("the daemon ended with code %d, want 0\n%s", code, d.log)
	}
	if m, found := mountAt(l.Root); found {
		l.detach()
		l.t.Errorf("still mounted after unmount: %+v\n%s", m, d.log)
	}
}

// Remount unmounts the lake, if it is mounted, and mounts it again on the same
// state directory.
func (l *Lake) Remount(flags ...string) {
	l.t.Helper()
	if l.current() != nil {
		l.Unmount()
	}
	l.Start(flags...)
}

// expire is the watchdog's: nothing on the lake may hang past its deadline.
func (l *Lake) expire() {
	if d := l.take(); d != nil {
		l.t.Errorf("the lake's deadline of %v is over", l.o.Timeout)
		l.abort()
		d.kill()
	}
	l.detach()
}

func (l *Lake) cleanup() {
	l.t.Helper()
	if d := l.current(); d != nil {
		switch {
		case ended(d):
			l.take()
			l.t.Errorf("the daemon ended by itself: %v", exitError(d.err))
		case l.t.Failed():
			l.take().kill()
		default:
			l.Unmount()
		}
	}
	l.detach()
	text := l.Log()
	for _, bad := range []string{"panic:", "WARNING: DATA RACE", "fatal error:"} {
		if strings.Contains(text, bad) {
			l.t.Errorf("the daemon's log has %q", bad)
		}
	}
	if l.t.Failed() {
		l.t.Logf("log of the daemon:\n%s", tail(text, 16<<10))
	}
}
