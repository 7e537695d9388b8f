package fs

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dyingPoll is how often a caller that was sent a signal is looked at again: the
// kernel tells of the first one only, and that may be one which a program sends
// itself all the time.
const dyingPoll = 100 * time.Millisecond

// background returns a context for one request's work, with an id of its own. Interrupts do not end
// it: Go programs are signalled all the time, and a program does not expect
// EINTR from stat or close.
func (f *FS) background() (context.Context, context.CancelFunc) {
	return context.WithTimeout(f.operations.New(context.Background()), f.RequestTimeout)
}

// lasting returns a context for a publish: as long as bytes move it goes on, and
// when none do, the store ends it.
func (f *FS) lasting() (context.Context, context.CancelFunc) {
	return context.WithCancel(f.operations.New(context.Background()))
}

// attended does what a control file was asked for, however long it takes (see
// lasting). It answers before that is done, with EINTR, only a caller that is being
// killed: the work goes on, and is not undone for want of somebody to tell.
func (f *FS) attended(ctx context.Context, work func(ctx context.Context) error) error {
	done, killed, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		lasting, cancel := f.lasting()
		defer cancel()
		done <- work(lasting)
	}()
	tid := thread(ctx)
	stop := context.AfterFunc(ctx, func() { f.whenDying(over, tid, func() { close(killed) }) })
	defer stop()
	defer close(over)
	select {
	case err := <-done:
		return err
	case <-killed:
		return errInterrupted
	}
}

// work returns a context for a request that changes nothing. It ends when its
// caller is being killed, who must not wait for a store that does not answer; an
// interrupt by any other signal does not end it.
func (f *FS) work(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := f.background()
	stop := f.endWith(ctx, cancel)
	return work, func() {
		stop()
		cancel()
	}
}

// endWith calls cancel once the caller of the request ctx is being killed. stop
// ends the watch, with the request.
func (f *FS) endWith(ctx context.Context, cancel func()) (stop func()) {
	if !f.flat {
		return func() {} // a disk answers
	}
	return f.endWithCaller(ctx, cancel)
}

// endWithCaller is endWith for what takes long wherever the bytes lie.
func (f *FS) endWithCaller(ctx context.Context, cancel func()) (stop func()) {
	over := make(chan struct{})
	ended := context.AfterFunc(ctx, func() { f.whenDying(over, thread(ctx), cancel) })
	return func() {
		ended()
		close(over)
	}
}

// whenDying calls cancel once thread tid is being killed, unless the request is
// over first.
func (f *FS) whenDying(over <-chan struct{}, tid uint32, cancel func()) {
	tick := time.NewTicker(dyingPoll)
	defer tick.Stop()
	for !f.proc.dying(tid) {
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
	cancel()
}

// dying reports whether thread tid has a signal to take that ends its process.
// It is false where that cannot be seen (another pid namespace). Like
// threadGroup it takes no lock of a process in execve.
func (p processTable) dying(tid uint32) bool {
	if tid == 0 {
		return false
	}
	var buf [2048]byte
	b, err := small(p.file(tid, "status"), &buf)
	if err != nil {
		return false
	}
	mask := func(name string) uint64 {
		_, rest, _ := bytes.Cut(b, []byte("\n"+name+":"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		n, err := strconv.ParseUint(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return 0
		}
		return n
	}
	pending := mask("SigPnd") | mask("ShdPnd")
	handled := mask("SigBlk") | mask("SigIgn") | mask("SigCgt")
	return pending&signalBit(syscall.SIGKILL) != 0 || pending&^handled&endingSignals() != 0
}

func signalBit(s syscall.Signal) uint64 { return 1 << (s - 1) }

// endingSignals are those whose default is the process's end.
func endingSignals() uint64 {
	var mask uint64
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE,
		syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGSEGV, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGPROF,
	} {
		mask |= signalBit(s)
	}
	return mask
}
