package fs

import (
	"context"
	"sync"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// lockTable holds the advisory locks of the mount, by name and not by node:
// two opens of one name for writing have a node each, and must still exclude
// one another. POSIX and flock(2) locks are two separate worlds, as in Linux.
type lockTable struct {
	mu      sync.Mutex
	held    map[lockKey][]heldLock
	changed chan struct{} // closed and made anew whenever a lock goes
}

type lockKey struct {
	name  *name
	flock bool
}

type heldLock struct {
	owner      uint64
	start, end uint64 // inclusive
	typ        uint32 // F_RDLCK or F_WRLCK
	pid        uint32
}

func newLockTable() *lockTable {
	return &lockTable{held: make(map[lockKey][]heldLock), changed: make(chan struct{})}
}

// conflict returns a lock of another owner that stands in the way of want.
func (t *lockTable) conflict(k lockKey, want heldLock) (heldLock, bool) {
	for _, l := range t.held[k] {
		if l.owner != want.owner && l.start <= want.end && want.start <= l.end &&
			(l.typ == syscall.F_WRLCK || want.typ == syscall.F_WRLCK) {
			return l, true
		}
	}
	return heldLock{}, false
}

// test answers F_GETLK.
func (t *lockTable) test(k lockKey, want heldLock, out *fuse.FileLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out.Typ = syscall.F_UNLCK
	if l, ok := t.conflict(k, want); ok {
		*out = fuse.FileLock{Start: l.start, End: l.end, Typ: l.typ, Pid: l.pid}
	}
}

// set takes, changes or gives up a range. It returns false when another owner
// is in the way; changed then tells when to try again.
func (t *lockTable) set(k lockKey, want heldLock) (ok bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if want.typ != syscall.F_UNLCK {
		if _, bad := t.conflict(k, want); bad {
			return false, t.changed
		}
	}
	t.carve(k, want)
	if want.typ != syscall.F_UNLCK {
		t.held[k] = append(t.held[k], want)
	}
	return true, nil
}

// carve takes want's range out of its owner's locks and wakes waiters.
func (t *lockTable) carve(k lockKey, want heldLock) {
	var kept []heldLock
	freed := false
	for _, l := range t.held[k] {
		if l.owner != want.owner || l.end < want.start || want.end < l.start {
			kept = append(kept, l)
			continue
		}
		freed = true
		if l.start < want.start {
			left := l
			left.end = want.start - 1
			kept = append(kept, left)
		}
		if l.end > want.end {
			right := l
			right.start = want.end + 1
			kept = append(kept, right)
		}
	}
	if len(kept) == 0 {
		delete(t.held, k)
	} else {
		t.held[k] = kept
	}
	if freed {
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// release drops all that owner holds of the name, as the last close does
// (flock) or any close by the owner (POSIX).
func (t *lockTable) release(k lockKey, owner uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held[k]) == 0 {
		return
	}
	t.carve(k, heldLock{owner: owner, end: ^uint64(0)})
}

// wait takes a lock, waiting for others. A signal ends it (EINTR is what
// fcntl(2) and flock(2) promise there).
func (t *lockTable) wait(ctx context.Context, k lockKey, want heldLock) error {
	for {
		ok, changed := t.set(k, want)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

func lockOf(n *name, owner uint64, lk *fuse.FileLock, flags uint32) (lockKey, heldLock) {
	return lockKey{name: n, flock: flags&fuse.FUSE_LK_FLOCK != 0},
		heldLock{owner: owner, start: lk.Start, end: lk.End, typ: lk.Typ, pid: lk.Pid}
}

// lockable gives a node the lock operations of its name.
type lockable struct {
	held
	locks *lockTable
}

func (l *lockable) Getlk(_ context.Context, _ gofs.FileHandle, owner uint64, lk *fuse.FileLock, flags uint32, out *fuse.FileLock) syscall.Errno {
	k, want := lockOf(l.name, owner, lk, flags)
	l.locks.test(k, want, out)
	return 0
}

func (l *lockable) Setlk(_ context.Context, _ gofs.FileHandle, owner uint64, lk *fuse.FileLock, flags uint32) syscall.Errno {
	k, want := lockOf(l.name, owner, lk, flags)
	if ok, _ := l.locks.set(k, want); !ok {
		return toErrno(errWouldBlock)
	}
	return 0
}

func (l *lockable) Setlkw(ctx context.Context, _ gofs.FileHandle, owner uint64, lk *fuse.FileLock, flags uint32) syscall.Errno {
	k, want := lockOf(l.name, owner, lk, flags)
	return toErrno(l.locks.wait(ctx, k, want))
}

// closed drops the POSIX locks that the closing process holds (FLUSH), or the
// flock of the open file that ends (RELEASE); see lockOwners.
func (l *lockable) closed(owner uint64, flock bool) {
	l.locks.release(lockKey{name: l.name, flock: flock}, owner)
}

// lockOwners hands the lock owner of FLUSH and RELEASE to the node operation:
// go-fuse's node API leaves it out, and the kernel leaves unlocking at close to
// the file system. The request's cancel channel is its identity.
type lockOwners struct {
	fuse.RawFileSystem
	byRequest sync.Map // <-chan struct{} → lockOwner
}

type lockOwner struct {
	owner uint64
	flock bool // the RELEASE ends a flock
}

func (o *lockOwners) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	o.byRequest.Store(cancel, lockOwner{owner: in.LockOwner})
	defer o.byRequest.Delete(cancel)
	return o.RawFileSystem.Flush(cancel, in)
}

// releaseFlockUnlock is FUSE_RELEASE_FLOCK_UNLOCK of the FUSE protocol.
const releaseFlockUnlock = 1 << 1

func (o *lockOwners) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	o.byRequest.Store(cancel, lockOwner{owner: in.LockOwner, flock: in.ReleaseFlags&releaseFlockUnlock != 0})
	defer o.byRequest.Delete(cancel)
	o.RawFileSystem.Release(cancel, in)
}

// of returns the lock owner of the request that ctx belongs to.
func (o *lockOwners) of(ctx context.Context) (lockOwner, bool) {
	c, ok := ctx.(*fuse.Context)
	if !ok {
		return lockOwner{}, false
	}
	v, ok := o.byRequest.Load(c.Cancel)
	if !ok {
		return lockOwner{}, false
	}
	owner, ok := v.(lockOwner)
	return owner, ok
}
