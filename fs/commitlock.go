package fs

import "time"

// publishPatience bounds how long a removal or a rename waits for a publish that
// is under way: the kernel holds the directory's lock meanwhile.
const publishPatience = 5 * time.Second

// commitLock is a mutex that can be waited for for a while. It is held while a
// file is published.
type commitLock chan struct{}

func newCommitLock() commitLock { return make(chan struct{}, 1) }

func (l commitLock) Lock()   { l <- struct{}{} }
func (l commitLock) Unlock() { <-l }

// tryLock is Lock, if it is free; false if not.
func (l commitLock) tryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// lockSoon is Lock, for publishPatience; false if it was not had.
func (l commitLock) lockSoon() bool {
	t := time.NewTimer(publishPatience)
	defer t.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-t.C:
		return false
	}
}
