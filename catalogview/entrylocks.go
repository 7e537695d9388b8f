package catalogview

import (
	"context"
	"fmt"
	"sync"
)

// entryLocks lets one change of a table's entry through at a time. A lock is held over
// the catalog's answer, which is what it is for: that a base is still the catalog's and
// the update that rests on it are two requests, and not every catalog compares the
// VersionId that an update names. It orders the changes of one View alone. There are as
// many locks as changes that run or wait. The zero value has none.
type entryLocks struct {
	mu sync.Mutex
	m  map[string]*entryLock // by the table's path
}

type entryLock struct {
	held chan struct{} // has room for the one that holds it
	uses int           // of who holds it and who waits; guarded by entryLocks.mu
}

// lock waits for the table at path until ctx ends; unlock is to be called unless it
// fails.
func (l *entryLocks) lock(ctx context.Context, path string) (unlock func(), err error) {
	l.mu.Lock()
	if l.m == nil {
		l.m = make(map[string]*entryLock)
	}
	one := l.m[path]
	if one == nil {
		one = &entryLock{held: make(chan struct{}, 1)}
		l.m[path] = one
	}
	one.uses++
	l.mu.Unlock()
	select {
	case one.held <- struct{}{}:
		return func() {
			<-one.held
			l.leave(path, one)
		}, nil
	case <-ctx.Done():
		l.leave(path, one)
		return nil, fmt.Errorf("another change of %q is under way: %w", path, context.Cause(ctx))
	}
}

func (l *entryLocks) leave(path string, one *entryLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.uses--; one.uses == 0 {
		delete(l.m, path)
	}
}
