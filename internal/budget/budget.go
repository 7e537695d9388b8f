// Package budget shares one amount of memory among all of a process.
//
// Whoever keeps bytes beyond a request acquires them first and releases them
// when they are gone. Guarantees:
//
//   - Used never exceeds Max;
//   - who waits is served by priority, then in order of arrival; nobody
//     overtakes a waiter of the same or a higher priority, so that a large
//     request is not starved by small ones;
//   - while someone waits, the registered reclaim functions are asked to give
//     memory back, and Wanted tells holders how much is missing, so that memory
//     which becomes idle later is given back too;
//   - TryAcquire never waits and never reclaims.
//
// Lock order: a Budget calls reclaim functions without its lock, so a holder
// may call TryAcquire, Release and Wanted under its own.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Priority orders who is served first. The zero value is the lowest.
type Priority int

// Priorities, lowest first.
const (
	Speculation Priority = iota // read-ahead, prefetch: may as well not happen
	Write                       // bytes of a program that writes
	Read                        // bytes that a program waits for
	priorities  = iota
)

// ErrTooLarge means that more was asked for than the whole budget; waiting cannot help.
var ErrTooLarge = errors.New("larger than the memory budget")

// Budget is an amount of bytes to share. All methods may be called concurrently.
type Budget struct {
	max    int64
	used   atomic.Int64 // written under mu
	wanted atomic.Int64 // bytes that waiters lack; written under mu

	mu struct {
		sync.Mutex
		waiting [priorities][]*waiter
		reclaim []*func(n int64)
	}
}

type waiter struct {
	n     int64
	ready chan struct{} // closed when the bytes are the waiter's
}

// New returns a budget of limit bytes; 0 or less is a budget of nothing.
func New(limit int64) *Budget {
	return &Budget{max: max(limit, 0)}
}

// Max is the size of the budget in bytes.
func (b *Budget) Max() int64 { return b.max }

// Used is the number of bytes acquired and not yet released.
func (b *Budget) Used() int64 { return b.used.Load() }

// Wanted is the number of bytes that waiters lack at this moment: a holder with
// idle memory should give back that much. It is cheap enough for each release.
func (b *Budget) Wanted() int64 { return b.wanted.Load() }

// OnPressure registers a function that gives back up to n idle bytes through
// Release. It is called by waiters, concurrently, without a lock of the Budget;
// it must not wait for memory itself. The returned function unregisters it.
func (b *Budget) OnPressure(reclaim func(n int64)) (cancel func()) {
	entry := &reclaim
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.reclaim = append(slices.Clone(b.mu.reclaim), entry)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		kept := slices.Clone(b.mu.reclaim)
		b.mu.reclaim = slices.DeleteFunc(kept, func(e *func(int64)) bool { return e == entry })
	}
}

// TryAcquire takes n bytes if they are free and nobody of this priority or a
// higher one waits.
func (b *Budget) TryAcquire(n int64, prio Priority) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tryLocked(n, prio)
}

func (b *Budget) tryLocked(n int64, prio Priority) bool {
	if n < 0 || n > b.max-b.used.Load() || b.queuedLocked(prio) {
		return false
	}
	b.used.Add(n)
	return true
}

// queuedLocked says whether someone of prio or higher waits.
func (b *Budget) queuedLocked(prio Priority) bool {
	for p := prio; p < priorities; p++ {
		if len(b.mu.waiting[p]) > 0 {
			return true
		}
	}
	return false
}

// Acquire takes n bytes, waiting for them until ctx is done (ctx's error, and
// nothing is taken). ErrTooLarge if n exceeds Max.
func (b *Budget) Acquire(ctx context.Context, n int64, prio Priority) error {
	if n < 0 || n > b.max {
		return fmt.Errorf("acquire %d of %d bytes: %w", n, b.max, ErrTooLarge)
	}
	b.mu.Lock()
	if b.tryLocked(n, prio) {
		b.mu.Unlock()
		return nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	b.mu.waiting[prio] = append(b.mu.waiting[prio], w)
	b.settleLocked()
	reclaim := b.mu.reclaim
	b.mu.Unlock()

	for _, f := range reclaim {
		if lack := b.Wanted(); lack > 0 {
			(*f)(lack)
		}
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return b.giveUp(ctx, w, prio)
	}
}

// giveUp takes w out of its queue, or gives back what it was given meanwhile.
func (b *Budget) giveUp(ctx context.Context, w *waiter, prio Priority) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.mu.waiting[prio], w); i >= 0 {
		b.mu.waiting[prio] = slices.Delete(b.mu.waiting[prio], i, i+1)
	} else {
		b.used.Add(-w.n)
	}
	b.settleLocked()
	return fmt.Errorf("wait for %d bytes of memory: %w", w.n, ctx.Err())
}

// Release gives n acquired bytes back. More than was acquired is a broken
// invariant of the caller, and panics.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || n > b.used.Load() {
		panic(fmt.Sprintf("budget: release of %d bytes, %d are in use", n, b.used.Load()))
	}
	b.used.Add(-n)
	b.settleLocked()
}

// settleLocked serves waiters while the first in line fits, and counts what the
// others lack.
func (b *Budget) settleLocked() {
	for b.serveFirstLocked() {
	}
	var lack int64
	for _, queue := range b.mu.waiting {
		for _, w := range queue {
			lack += w.n
		}
	}
	if lack > 0 {
		lack = max(lack-(b.max-b.used.Load()), 0)
	}
	b.wanted.Store(lack)
}

func (b *Budget) serveFirstLocked() bool {
	for p := priorities - 1; p >= 0; p-- {
		queue := b.mu.waiting[p]
		if len(queue) == 0 {
			continue
		}
		w := queue[0]
		if w.n > b.max-b.used.Load() {
			return false
		}
		b.mu.waiting[p] = slices.Delete(queue, 0, 1)
		b.used.Add(w.n)
		close(w.ready)
		return true
	}
	return false
}
