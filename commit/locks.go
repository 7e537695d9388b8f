package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// targetLocks lets one commit, rename or recovery at a time go on for each
// target. They are held over the store's answers: that is what they are for.
type targetLocks struct {
	mu   sync.Mutex
	held map[objectstore.Location]*targetLock
}

type targetLock struct {
	turn chan struct{}
	uses int // of who holds it or waits for it
}

func (t *targetLocks) lock(ctx context.Context, loc objectstore.Location) (unlock func(), err error) {
	l := t.enter(loc)
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		t.leave(loc, l)
		return nil, fmt.Errorf("wait for the publish of %q: %w", loc.Key, ctx.Err())
	}
	return func() {
		<-l.turn
		t.leave(loc, l)
	}, nil
}

func (t *targetLocks) enter(loc objectstore.Location) *targetLock {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.held[loc]
	if l == nil {
		l = &targetLock{turn: make(chan struct{}, 1)}
		t.held[loc] = l
	}
	l.uses++
	return l
}

func (t *targetLocks) leave(loc objectstore.Location, l *targetLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.uses--; l.uses == 0 {
		delete(t.held, loc)
	}
}

// lockAll locks targets, in an order that no two callers reverse. One may be named more
// than once.
func (t *targetLocks) lockAll(ctx context.Context, all []objectstore.Location) (unlock func(), err error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b objectstore.Location) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
	})
	all = slices.Compact(all)
	held := make([]func(), 0, len(all))
	unlock = func() {
		for _, one := range held {
			one()
		}
	}
	for _, loc := range all {
		one, err := t.lock(ctx, loc)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, one)
	}
	return unlock, nil
}

// lockTwo locks two targets, in an order that no two callers reverse.
func (t *targetLocks) lockTwo(ctx context.Context, a, b objectstore.Location) (unlock func(), err error) {
	if a == b {
		return t.lock(ctx, a)
	}
	if b.Bucket < a.Bucket || b.Bucket == a.Bucket && b.Key < a.Key {
		a, b = b, a
	}
	first, err := t.lock(ctx, a)
	if err != nil {
		return nil, err
	}
	second, err := t.lock(ctx, b)
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}
