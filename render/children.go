package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ranges is a file that a child reads through its parent. ReadAt is called by several
// goroutines at once, returns all of p or an error, and ends with ctx. [Whole] makes one
// of an io.ReaderAt.
type Ranges interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// Options are those of [NewChildren]; zero fields stand for the values named.
type Options struct {
	// Max children run at once (twice the processors).
	Max int
	// Deadline is how long a reader waits for text while nothing moves, and for its turn
	// (60 s).
	Deadline time.Duration
	// Command is the child's (this program with the argument "render"); it must call [Main].
	Command []string
}

// restedEnough: a child whose reader has not come for so long gives its place to one who
// waits for a turn.
const restedEnough = 2 * time.Second

// Errors of a child's reader beyond those of the file ([*Error]) and of its source.
var (
	// ErrRested: the child had to make room while its reader rested. The text can be
	// had again from its beginning, as often as it is asked for.
	ErrRested = errors.New("the reader rested, and others waited")
	// ErrDeadline: nothing moved for as long as [Options.Deadline].
	ErrDeadline = errors.New("nothing moved before the deadline")
	// ErrClosed: the child, or all of them, were closed.
	ErrClosed = errors.New("closed")
)

// Children runs processes that render files, a bounded number at once. A damaged file
// takes its own process down at most: memory, panics and loops end there, and a child
// has no descriptor, environment or privilege of the parent. Its methods are safe for
// concurrent use. Close it after use.
type Children struct {
	o      Options
	turns  chan struct{} // one for each running child
	starts chan func()   // run by one thread, which lives as long as its children

	mu struct {
		sync.Mutex
		closed  bool
		running map[*Child]struct{}
	}
	closing chan struct{}
	all     sync.WaitGroup
}

// NewChildren starts no process. It marks every descriptor that the program was given,
// beyond the first three, to be closed in programs that it starts, as Go does its own.
func NewChildren(o Options) *Children {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	if o.Max <= 0 {
		o.Max = 2 * runtime.GOMAXPROCS(0)
	}
	if o.Deadline <= 0 {
		o.Deadline = 60 * time.Second
	}
	if len(o.Command) == 0 {
		o.Command = []string{"/proc/self/exe", "render"}
	}
	c := &Children{o: o, turns: make(chan struct{}, o.Max), starts: make(chan func()), closing: make(chan struct{})}
	c.mu.running = make(map[*Child]struct{})
	c.all.Go(c.starter)
	return c
}

// starter starts all children from one thread: the kernel ends a child with the thread
// that started it.
func (c *Children) starter() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case start := <-c.starts:
			start()
		case <-c.closing:
			return
		}
	}
}

// Close ends all children and waits for their end. Start fails after it.
func (c *Children) Close() error {
	c.mu.Lock()
	if !c.mu.closed {
		close(c.closing)
	}
	c.mu.closed = true
	c.mu.Unlock()
	c.all.Wait() // no more are started
	c.mu.Lock()
	running := slices.Collect(maps.Keys(c.mu.running))
	c.mu.Unlock()
	for _, child := range running {
		child.stop(ErrClosed)
		<-child.done
	}
	return nil
}

// Start begins to render src, which has size bytes, once it is its turn. The child ends
// when ctx does, its reader then gets ctx's error. The caller closes the Child.
func (c *Children) Start(ctx context.Context, s Spec, src Ranges, size int64) (*Child, error) {
	if err := c.turn(ctx); err != nil {
		return nil, fmt.Errorf("render %s: %w", s.Name, err)
	}
	child, err := c.start(ctx, job{Spec: s, Size: size}, src)
	if err != nil {
		<-c.turns
		return nil, fmt.Errorf("render %s: %w", s.Name, err)
	}
	return child, nil
}

// turn waits for a place, which one who rests has to give up.
func (c *Children) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.turns <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(c.o.Deadline)
	defer late.Stop()
	look := time.NewTicker(restedEnough / 8)
	defer look.Stop()
	for {
		c.makeRoom()
		select {
		case c.turns <- struct{}{}:
			return nil
		case <-look.C:
		case <-late.C:
			return fmt.Errorf("%d other readers are served: %w", c.o.Max, ErrDeadline)
		case <-c.closing:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// makeRoom ends the child whose reader rests longest, if that is long enough.
func (c *Children) makeRoom() {
	c.mu.Lock()
	var longest *Child
	rested := restedEnough
	for child := range c.mu.running {
		if r := child.rested(); r >= rested {
			longest, rested = child, r
		}
	}
	c.mu.Unlock()
	if longest != nil {
		longest.stop(ErrRested)
	}
}

// start runs a child. Its caller has a turn, which the child gives back.
func (c *Children) start(ctx context.Context, j job, src Ranges) (*Child, error) {
	p, err := newPipes()
	if err != nil {
		return nil, err
	}
	child := newChild(c, j, src, p)
	child.cmd = exec.Command(c.o.Command[0], c.o.Command[1:]...) //nolint:noctx // stop ends it, and tells why
	child.cmd.Args[0] = "lakefs-mount"
	child.cmd.Dir, child.cmd.Env = "/", childEnvironment()
	child.cmd.Stdin, child.cmd.Stdout, child.cmd.Stderr = p.job, p.out, &child.complaint
	child.cmd.WaitDelay = time.Second
	child.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is for the parent
	if err = c.run(child); err != nil {
		p.close()
		child.cancel()
		return nil, err
	}
	p.closeTheirs()
	child.stopped = context.AfterFunc(ctx, func() { child.stop(ctx.Err()) })
	go child.attend(j)
	return child, nil
}

// run starts the process, unless all are being closed.
func (c *Children) run(child *Child) error {
	started := make(chan error, 1)
	select {
	case c.starts <- func() { started <- c.enter(child) }:
	case <-c.closing:
		return ErrClosed
	}
	return <-started
}

// enter starts the process of child and counts it.
func (c *Children) enter(child *Child) error {
	if err := child.cmd.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.running[child] = struct{}{}
	return nil
}

// left takes that a child has ended.
func (c *Children) left(child *Child) {
	c.mu.Lock()
	delete(c.mu.running, child)
	c.mu.Unlock()
	<-c.turns
}

// childEnvironment is all that a child has of one: how the runtime is to behave from its
// first instruction on.
func childEnvironment() []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", min(runtime.GOMAXPROCS(0), 2)),
		"GOTRACEBACK=none",
		"MALLOC_ARENA_MAX=1", // where the C library has threads: an arena is 64 MiB of address space
	}
}

// whole is an io.ReaderAt that does not know how to stop.
type whole struct{ src io.ReaderAt }

// Whole makes Ranges of a file that answers at once.
func Whole(src io.ReaderAt) Ranges { return whole{src} }

// ReadAt reads without regard to ctx.
func (w whole) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return w.src.ReadAt(p, off)
}
