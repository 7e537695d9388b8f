// Package killpoint ends a process by SIGKILL right before the Nth of its
// system calls that change a disk: what a crash test needs to stop a program
// at each of its steps, one after the other.
//
//	trap := killpoint.New(t, "TestKillPointHelper")
//	cmd := exec.Command(trap.Command()[0], append(trap.Command()[1:], "program", "argument")...)
//	trap.Arm(7) // ends before the seventh step from now
//
//	func TestKillPointHelper(*testing.T) { killpoint.Exec() }
//
// The program runs under a seccomp filter that hands those calls to this
// process, which counts them over all threads and lets them go on. That is a
// count in the order of what happens; strace -e inject counts by thread, which
// in a Go program says little, and stops the program at each call. A step that
// is a look, a read, or a write to a pipe or device is none.
//
// A Trap may see several programs, one after the other; each counts on. Its
// methods may be called concurrently.
package killpoint

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketVariable tells Exec where the trap is.
const socketVariable = "KILLPOINT_SOCKET"

// Trap counts the steps of the programs that are started through it.
type Trap struct {
	helper   string
	listener *net.UnixListener
	serving  sync.WaitGroup

	mu     sync.Mutex
	at     int // the step that is not to happen; 0: none
	killed bool
	steps  []string
	hold   *hold
}

// hold stops the program at a step until it is let go.
type hold struct {
	prefix, part string
	held         chan uint32 // the thread
	release      chan struct{}
}

// New returns a trap whose programs start through the test function helper of
// this test binary, which calls Exec. It skips the test where the kernel has
// no such filters.
func New(tb testing.TB, helper string) *Trap {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("a seccomp listener needs root")
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // an abstract name of the kernel's choice
	if err != nil {
		tb.Fatal(err)
	}
	k := &Trap{helper: helper, listener: listener}
	k.serving.Add(1)
	go k.accept()
	tb.Cleanup(func() {
		_ = listener.Close() // ends accept
		k.serving.Wait()
	})
	return k
}

// Command is what to put before a program and its arguments.
func (k *Trap) Command() []string {
	return []string{
		"/usr/bin/env", socketVariable + "=" + k.listener.Addr().String(),
		os.Args[0], "-test.run=^" + k.helper + "$", "--",
	}
}

// Arm counts from 1 again, and ends the program before its nth step; with 0 it
// only counts.
func (k *Trap) Arm(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.killed, k.steps = n, false, nil
}

// Killed tells whether the program has been ended since Arm.
func (k *Trap) Killed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

// Steps are those since Arm, as "call path"; the last is the one that did not
// happen, if the program was killed.
func (k *Trap) Steps() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.steps...)
}

// Hold stops the thread that comes there before the next step that begins with
// prefix and has part in it: held tells then. It goes on once release was
// called, which must be, and may be more than once. The id of the thread comes
// through held: no signal but SIGKILL reaches it until then, and one that the
// kernel gives to it (it prefers the main thread) reaches nobody.
func (k *Trap) Hold(prefix, part string) (held <-chan uint32, release func()) {
	h := &hold{prefix: prefix, part: part, held: make(chan uint32, 1), release: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hold = h
	return h.held, sync.OnceFunc(func() { close(h.release) })
}

func (k *Trap) accept() {
	defer k.serving.Done()
	for {
		conn, err := k.listener.AcceptUnix()
		if err != nil {
			return // closed
		}
		fd, err := receive(conn)
		_ = conn.Close() // it has served
		if err != nil {
			continue // the program did not start, which its parent sees
		}
		k.serving.Add(1)
		go k.serve(fd)
	}
}

// receive takes the listener's descriptor over.
func receive(conn *net.UnixConn) (int, error) {
	buf := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), buf)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(buf[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(err, errors.New("no descriptor"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(err, errors.New("no descriptor"))
	}
	return fds[0], nil
}

// notification is struct seccomp_notif.
type notification struct {
	id   uint64
	pid  uint32 // the thread
	_    uint32
	nr   int32
	_    uint32
	_    uint64
	args [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	_     int64
	_     int32
	flags uint32
}

const goOn = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE

// serve answers for one program until it has ended.
func (k *Trap) serve(fd int) {
	defer k.serving.Done()
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var holding sync.WaitGroup
	defer holding.Wait()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return // it has ended
			}
			continue
		}
		var n notification
		if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != nil {
			continue // its thread has ended meanwhile
		}
		if k.step(&n) {
			_ = unix.Kill(int(n.pid), unix.SIGKILL) // an error: it has ended
			continue
		}
		h := k.holds()
		if h == nil {
			letGo(fd, n.id)
			continue
		}
		h.held <- n.pid
		holding.Go(func() {
			<-h.release
			letGo(fd, n.id)
		})
	}
}

// letGo lets a call happen.
func letGo(fd int, id uint64) {
	answer := response{id: id, flags: goOn}
	_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // an error: its thread has ended
}

// step counts a call, and tells whether the program is to end before it.
func (k *Trap) step(n *notification) (end bool) {
	what, counts := describe(n)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !counts {
		return false
	}
	k.steps = append(k.steps, what)
	if k.at == 0 || len(k.steps) < k.at {
		return false
	}
	k.killed = true
	return true
}

// holds takes the hold that the last step meets; nil: none.
func (k *Trap) holds() *hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.hold
	if h == nil || len(k.steps) == 0 {
		return nil
	}
	if step := k.steps[len(k.steps)-1]; !strings.HasPrefix(step, h.prefix) || !strings.Contains(step, h.part) {
		return nil
	}
	k.hold = nil
	return h
}

// Exec is the life of the helper: it puts itself under the filter, gives the
// listener to the trap, and becomes the program. It returns only if it was not
// called by a trap.
func Exec() {
	socket := os.Getenv(socketVariable)
	if socket == "" {
		return
	}
	if err := exec(socket); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "killpoint:", err)
	}
	os.Exit(126)
}

func exec(socket string) error {
	command := os.Args
	for len(command) > 0 && command[0] != "--" {
		command = command[1:]
	}
	if len(command) < 2 {
		return errors.New("no program")
	}
	if err := os.Unsetenv(socketVariable); err != nil {
		return err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	fd, err := listen()
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if _, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil); err != nil {
		return err
	}
	return unix.Exec(command[1], command[1:], os.Environ())
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}
