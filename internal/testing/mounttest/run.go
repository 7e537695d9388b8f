package mounttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// opTimeout bounds one call of Do.
const opTimeout = 20 * time.Second

// Result is the outcome of a child process.
type Result struct {
	Out, Err string
	Code     int // exit code; -1: ended by a signal, or by the lake's deadline
}

// Sh runs a bash script in the mount point, within the lake's deadline, in a
// process group that is killed as a whole.
func (l *Lake) Sh(script string) Result {
	l.t.Helper()
	return l.Exec("bash", "-c", script)
}

// MustSh is Sh for scripts that must succeed; it returns what they print.
func (l *Lake) MustSh(script string) string {
	l.t.Helper()
	r := l.Sh(script)
	if r.Code != 0 {
		l.t.Fatalf("%s\nexit code %d, want 0\nstdout: %s\nstderr: %s", script, r.Code, r.Out, r.Err)
	}
	return r.Out
}

// Exec runs a program in the mount point, as Sh does.
func (l *Lake) Exec(name string, args ...string) Result {
	l.t.Helper()
	return l.run(l.Root, name, args)
}

// Run runs the program under test outside the mount ("unmount", lake.Root).
func (l *Lake) Run(args ...string) Result {
	l.t.Helper()
	return l.run(l.State, l.Binary(), args)
}

// Inside is the command line that runs a program in dir, which may be in a mount.
// The shell changes the directory: exec.Cmd's Dir does so between fork and exec,
// where this process's runtime may stand still until the mount has answered; a
// daemon that waits for this process itself (killpoint) would never answer.
func Inside(dir, name string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, dir, name}, args...)
}

func (l *Lake) run(dir, name string, args []string) Result {
	l.t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), l.deadline)
	defer cancel()
	var stdout, stderr bytes.Buffer
	args = Inside(dir, name, args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
	cmd.Env = slices.Concat(environ(), l.storeEnv(), []string{"LC_ALL=C.UTF-8", "HOME=" + l.State})
	cmd.SysProcAttr = l.credentials()
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Errorf("run %s: %v", name, err)
		return Result{Out: stdout.String(), Err: stderr.String(), Code: -1}
	}
	return Result{Out: stdout.String(), Err: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// Do runs op, which touches the mount, in a goroutine. One that hangs fails the
// test with every stack, and the connection is aborted so that it ends.
func (l *Lake) Do(what string, op func() error) error {
	l.t.Helper()
	done := make(chan error, 1)
	go func() {
		err := errors.New("the operation ended its goroutine, by t.Fatal or the like")
		defer func() { done <- err }()
		err = op()
	}()
	timeout := time.NewTimer(min(opTimeout, time.Until(l.deadline)))
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	l.abort()
	if d := l.take(); d != nil {
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // its stacks go to the log
		select {
		case <-d.done:
		case <-time.After(2 * time.Second):
			d.kill()
		}
	}
	<-done //nolint:errcheck // it ends with the connection, by an error
	l.t.Errorf("%s hung\n%s", what, stacks)
	return fmt.Errorf("%s hung", what)
}

// NoFork runs op while no child of this process is between fork and exec. Such a
// child holds every descriptor that is open, so the mount takes a close for one
// of several and leaves the publish to the child's exec: after close(2), that is,
// and when nobody expects it in a test. op must be short: it keeps all tests of
// the process from starting children.
func NoFork(op func() error) error {
	noFork.enter()
	defer noFork.leave()
	return op()
}

// noFork holds the fork lock for all who are in NoFork. One of them may enter it
// again: a lock for reading of its own would wait for a fork that waits for the first.
var noFork forkHold //nolint:gochecknoglobals // as syscall.ForkLock is

type forkHold struct {
	mu sync.Mutex
	n  int
}

func (h *forkHold) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		syscall.ForkLock.RLock()
	}
	h.n++
}

func (h *forkHold) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n == 0 {
		syscall.ForkLock.RUnlock()
	}
}

// ReadFile is os.ReadFile of a name in the mount.
func (l *Lake) ReadFile(name string) (string, error) {
	l.t.Helper()
	var raw []byte
	err := l.Do("read "+name, func() (err error) {
		raw, err = os.ReadFile(l.Path(name))
		return err
	})
	return string(raw), err
}

// WriteFile is os.WriteFile of a name in the mount, with mode 0644.
func (l *Lake) WriteFile(name, content string) error {
	l.t.Helper()
	return l.Do("write "+name, func() error {
		return NoFork(func() error { return os.WriteFile(l.Path(name), []byte(content), 0o644) })
	})
}

// Lstat is os.Lstat of a name in the mount.
func (l *Lake) Lstat(name string) (info os.FileInfo, err error) {
	l.t.Helper()
	err = l.Do("stat "+name, func() (err error) {
		info, err = os.Lstat(l.Path(name))
		return err
	})
	return info, err
}

// Names are the sorted names in a directory of the mount.
func (l *Lake) Names(dir string) ([]string, error) {
	l.t.Helper()
	var names []string
	err := l.Do("list "+dir, func() error {
		entries, err := os.ReadDir(l.Path(dir))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// Eventually polls condition every few milliseconds until it holds, and fails
// the test when it does not within the limit (0: the lake's deadline).
func (l *Lake) Eventually(what string, limit time.Duration, condition func() bool) {
	l.t.Helper()
	if limit == 0 {
		limit = time.Until(l.deadline)
	}
	expired := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-expired:
			l.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
