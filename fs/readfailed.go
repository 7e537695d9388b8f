package fs

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// failedReads are the reads of one handle that failed a moment ago. The kernel does
// not tell a reader that pages could not be read ahead for it: it asks once more, for
// the first of them alone. Where the store has been waited for as long as it may, to
// wait again would double what a program waits for its error. The zero value is ready.
// Safe for concurrent use.
type failedReads struct {
	mu  sync.Mutex
	all []failedRead
}

type failedRead struct {
	off, end int64
	errno    syscall.Errno
	at       time.Time
}

// Bounds of what is remembered: the kernel comes at once, and has few reads of a
// handle under way.
const (
	failedFor  = time.Second
	maxFailed  = 16
	singlePage = 4096 // more is a new read, which is to ask the store
)

// note remembers that a read of n bytes at off failed.
func (f *failedReads) note(off, n int64, errno syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked()
	if len(f.all) < maxFailed {
		f.all = append(f.all, failedRead{off, off + n, errno, time.Now()})
	}
}

// again tells why a read of n bytes at off fails, if it is a page of one that did, and
// forgets it: whoever asks the next time is asking anew.
func (f *failedReads) again(off, n int64) (syscall.Errno, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 || n > singlePage {
		return 0, false
	}
	f.dropLocked()
	i := slices.IndexFunc(f.all, func(r failedRead) bool { return r.off <= off && off+n <= r.end && n < r.end-r.off })
	if i < 0 {
		return 0, false
	}
	errno := f.all[i].errno
	f.all = slices.Delete(f.all, i, i+1)
	return errno, true
}

// dropLocked forgets what is old.
func (f *failedReads) dropLocked() {
	f.all = slices.DeleteFunc(f.all, func(r failedRead) bool { return time.Since(r.at) > failedFor })
}
