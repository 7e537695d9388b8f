package render

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

const (
	// rangesInFlight bounds the bytes that are read for one child at a time, and askedAtOnce
	// their number: many columns are asked for at once, each a little.
	rangesInFlight = 16 << 20
	askedAtOnce    = 256
	// complaintSize is how much of what a failing child prints is looked at.
	complaintSize = 4 << 10
)

// Child is the text of a file, as a process of its own makes it. Read is for one
// goroutine; Close may be called at any time, and ends a Read.
type Child struct {
	of   *Children
	name string
	size int64
	src  Ranges

	cmd       *exec.Cmd
	text      *os.File
	conn      net.Conn // closed by attend alone
	complaint complaint
	stopped   func() bool     // ends the watch of the starter's context
	serving   context.Context //nolint:containedctx // of what is read for the child: it ends with the child
	cancel    context.CancelFunc
	done      chan struct{} // closed when the process is reaped and nothing runs for it

	moved atomic.Int64 // when a range was answered or text taken, as UnixNano

	mu struct {
		sync.Mutex
		waits   bool // a reader does, since since; else it rests, since then
		since   time.Time
		cause   error // why it was stopped
		source  error // the first range that could not be read
		outcome *outcome
	}
	write sync.Mutex // of conn
}

// pipes are the ends of what connects a child to its parent.
type pipes struct {
	conn      net.Conn // ours of the socket
	job       *os.File // theirs
	text, out *os.File // the pipe
}

func newPipes() (p pipes, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p, fmt.Errorf("socketpair: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "child")
	defer func() { _ = ours.Close() }()
	p.job = os.NewFile(uintptr(fds[1]), "parent")
	if p.conn, err = net.FileConn(ours); err == nil {
		p.text, p.out, err = os.Pipe()
	}
	if err != nil {
		p.close()
	}
	return p, err
}

func (p pipes) closeTheirs() {
	_ = p.job.Close()
	_ = p.out.Close()
}

func (p pipes) close() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	_ = p.text.Close() // nil is an error like others
	p.closeTheirs()
}

func newChild(of *Children, j job, src Ranges, p pipes) *Child {
	c := &Child{of: of, name: j.Spec.Name, size: j.Size, src: src, text: p.text, conn: p.conn, done: make(chan struct{})}
	c.serving, c.cancel = context.WithCancel(context.Background())
	c.mu.since = time.Now()
	return c
}

// attend serves the child until it is gone, and reaps it.
func (c *Child) attend(j job) {
	gone, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(gone)
	}()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := c.serve(j); err != nil {
			c.stop(err)
		}
	}()
	_ = c.cmd.Wait() // what it says is in cmd.ProcessState
	close(gone)
	c.stopped()
	<-served // ends with the child's end of the socket
	c.cancel()
	_ = c.conn.Close()
	<-watched
	c.of.left(c)
	close(c.done)
}

// serve tells the child its job, and answers what it asks for until it has said how it
// went, or is gone.
func (c *Child) serve(j job) error {
	var answers sync.WaitGroup
	defer answers.Wait()
	defer c.cancel()
	if writeJSON(c.conn, frameJob, j) != nil {
		return nil // it is gone: its end says why
	}
	in := bufio.NewReader(c.conn)
	bytes, asked := semaphore.NewWeighted(rangesInFlight), semaphore.NewWeighted(askedAtOnce)
	for {
		h, err := readHeader(in)
		if err != nil {
			return nil // it is gone
		}
		if h.Kind == frameOutcome {
			return c.takeOutcome(in, h)
		}
		n := int64(h.Length)
		if h.Kind != frameRange || n == 0 || n > maxRange || h.Off < 0 || h.Off > c.size-n {
			return &Error{File: c.name, Reason: fmt.Sprintf("its child asked for %d bytes at %d of a file of %d", n, h.Off, c.size)}
		}
		if asked.Acquire(c.serving, 1) != nil || bytes.Acquire(c.serving, n) != nil {
			return nil
		}
		answers.Go(func() {
			defer asked.Release(1)
			defer bytes.Release(n)
			c.answer(h)
		})
	}
}

func (c *Child) takeOutcome(in io.Reader, h header) error {
	var o outcome
	if err := readJSON(in, h, &o); err != nil {
		return nil // as if it had said nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.outcome = &o
	return nil
}

// answer reads a range for the child.
func (c *Child) answer(h header) {
	frame := make([]byte, headerSize, headerSize+int(h.Length))
	body := frame[headerSize:][:h.Length]
	n, err := c.src.ReadAt(c.serving, body, h.Off)
	switch {
	case n == len(body):
		header{Kind: frameBytes, ID: h.ID, Length: h.Length}.append(frame[:0])
		frame = frame[:cap(frame)]
	case err == nil:
		err = io.ErrUnexpectedEOF
		fallthrough
	default:
		c.mu.Lock()
		if c.mu.source == nil {
			c.mu.source = err
		}
		c.mu.Unlock()
		header{Kind: frameFailed, ID: h.ID}.append(frame[:0])
	}
	c.move()
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.conn.Write(frame) // if it is gone, its end says why
}

func (c *Child) move() { c.moved.Store(time.Now().UnixNano()) }

// watch stops the child when nothing moves while a reader waits.
func (c *Child) watch(gone <-chan struct{}) {
	tick := time.NewTicker(c.of.o.Deadline / 8)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case now := <-tick.C:
			c.mu.Lock()
			waits, since := c.mu.waits, c.mu.since
			c.mu.Unlock()
			if moved := time.Unix(0, c.moved.Load()); moved.After(since) {
				since = moved
			}
			if waits && now.Sub(since) >= c.of.o.Deadline {
				c.stop(ErrDeadline)
			}
		}
	}
}

// rested is for how long no reader has come.
func (c *Child) rested() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.waits {
		return 0
	}
	return time.Since(c.mu.since)
}

func (c *Child) reading(waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.waits, c.mu.since = waits, time.Now()
}

// stop kills the child because of cause, the first one counts. What it has written can be
// read.
func (c *Child) stop(cause error) {
	c.mu.Lock()
	if c.mu.cause == nil {
		c.mu.cause = cause
	}
	c.mu.Unlock()
	c.cancel()
	_ = c.cmd.Process.Kill() // it may be gone
}

// Read reads the text as it is made. At its end it returns io.EOF if all of it was made,
// else what kept it: an [*Error] of the file or of what the child came to, an error that
// wraps the source's, [ErrDeadline], [ErrRested], [ErrClosed], or the error of the context
// that it was started with.
func (c *Child) Read(p []byte) (int, error) {
	c.reading(true)
	defer c.reading(false)
	n, err := c.text.Read(p)
	if n > 0 || err == nil {
		c.move()
		return n, nil
	}
	if errors.Is(err, os.ErrClosed) {
		return 0, ErrClosed
	}
	<-c.done
	return 0, c.result()
}

// result is how it went, after done.
func (c *Child) result() error {
	c.mu.Lock()
	cause, source, o := c.mu.cause, c.mu.source, c.mu.outcome
	c.mu.Unlock()
	switch {
	case o != nil && o.Done:
		return io.EOF
	case cause != nil:
		return cause
	case o == nil:
		return c.died()
	case o.Source && source != nil:
		return fmt.Errorf("%q: %w", c.name, source)
	case o.Fault != nil:
		return o.Fault
	}
	return &Error{File: c.name, Reason: o.Text}
}

// died says what a child came to that could not say it itself.
func (c *Child) died() error {
	e := &Error{File: c.name}
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case c.complaint.has("out of memory", "cannot allocate memory", "cannot map pages", "failed to create new OS thread", "pthread_create failed", "failed to allocate", "address space collisions"):
		e.Reason = fmt.Sprintf("it cannot be shown: that needs more than %d MiB of memory", childMemory>>20)
		e.Remedy = "fewer columns need less (lakefs-mount rows --columns)"
	case c.complaint.has("stack overflow", "stack exceeds"):
		e.Reason = "it cannot be shown: it is nested too deeply"
	case status.Signaled() && status.Signal() == syscall.SIGKILL: // a limit of its own lets it say something
		e.Reason = "it was not shown to its end: the process that read it was killed, by somebody or by the kernel where the machine's memory ran out"
		e.Remedy = "try again"
	default:
		e.Reason = fmt.Sprintf("it cannot be read: the decoder broke off (%s)", c.cmd.ProcessState)
	}
	return e
}

// Close ends the child, if it has not ended, and waits for its end.
func (c *Child) Close() error {
	c.stop(ErrClosed)
	_ = c.text.Close()
	<-c.done
	return nil
}

// complaint keeps the beginning of what a child prints on its standard error: it is for
// the runtime's last words alone.
type complaint struct {
	mu   sync.Mutex
	text []byte
}

// Write takes all, and keeps the first.
func (c *complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), complaintSize-len(c.text))]...)
	return len(p), nil
}

func (c *complaint) has(words ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range words {
		if bytes.Contains(c.text, []byte(w)) {
			return true
		}
	}
	return false
}
