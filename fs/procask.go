package fs

import (
	"bytes"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// procLimit is how long a look below /proc/PID may wait for a lock. A process
// inside execve holds one that such a read waits for, and execve itself waits
// for our answer to the FLUSH of a close-on-exec descriptor.
const procLimit = 50 * time.Millisecond

// busyLimit bounds a look that waits for no lock: the machine is busy, and a
// close that did not wait for it would answer before the file is published.
const busyLimit = 2 * time.Second

// question is a look below /proc that runs aside. It ends by itself once the
// process that it looks at has left execve.
type question[T any] struct {
	done   chan T
	thread *atomic.Int32 // that looks
	over   *atomic.Bool  // nobody waits any more: a long look may end as it is
}

// ask begins a look.
func ask[T any](f func(over *atomic.Bool) T) question[T] {
	q := question[T]{done: make(chan T, 1), thread: new(atomic.Int32), over: new(atomic.Bool)}
	go func() {
		runtime.LockOSThread() // so that the thread's state is this look's
		defer runtime.UnlockOSThread()
		q.thread.Store(int32(unix.Gettid()))
		q.done <- f(q.over)
	}()
	return q
}

// answer waits for it: up to limit while the look waits for a lock, longer
// while it does not. It may be had once.
func (q question[T]) answer(limit time.Duration) (v T, ok bool) {
	busy, tick := time.NewTimer(max(limit, busyLimit)), time.NewTicker(limit/2)
	defer busy.Stop()
	defer tick.Stop()
	ran := ""
	for {
		select {
		case v = <-q.done:
			return v, true
		case <-busy.C:
			q.over.Store(true)
			return v, false
		case <-tick.C:
		}
		before := ran
		if ran = stopped(q.thread.Load()); ran == "" || ran != before {
			continue
		}
		select {
		case v = <-q.done: // the thread is another's by now
			return v, true
		default:
			q.over.Store(true)
			return v, false
		}
	}
}

// stopped tells of a thread of this process that waits for a lock in the kernel,
// and not just for a processor, how long it has run: whoever is told the same
// twice knows that it has not moved. "" if it does not wait so. One such sight is
// not enough: a thread that a page is read for looks alike.
func stopped(thread int32) string {
	if thread == 0 {
		return "" // not begun
	}
	task := "/proc/self/task/" + strconv.Itoa(int(thread))
	var buf [2048]byte
	b, err := small(task+"/stat", &buf)
	i := bytes.LastIndexByte(b, ')')
	if err == nil && i >= 0 && i+2 < len(b) && b[i+2] != 'D' {
		return ""
	}
	b, err = small(task+"/schedstat", &buf)
	if err != nil {
		return "?" // a kernel that does not count
	}
	return string(b)
}
