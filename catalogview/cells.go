package catalogview

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// staleFactor times the TTL is how old a value may be served while the source
// does not answer: over a minute of silence with the usual TTL of 5 s.
const staleFactor = 20

// cells caches values by key, with one load at a time for each key. A value is
// fresh for the TTL, a certain absence for the negative TTL. When a load fails
// or is slow, the value before it serves on, for a while; errors are not kept.
type cells[T any] struct {
	o      Options
	flight singleflight.Group
	loads  sync.WaitGroup
	closed chan struct{}
	cost   func(T) int // of a value kept; all together at most most
	most   int
	loaded func(T) // called when a load is over and its value kept; nil: nothing is
	mu     struct {
		sync.Mutex
		m          map[string]cell[T]
		total      int    // cost of all
		generation uint64 // of drops: a load that began before one is not kept
		closed     bool
	}
}

type cell[T any] struct {
	value T
	err   error // ErrNotExist or nil
	at    time.Time
	retry time.Time // after a failed load: not before
}

func newCells[T any](o Options) *cells[T] {
	return newWeighed(o, func(T) int { return 1 }, o.MaxCached)
}

func newWeighed[T any](o Options, cost func(T) int, most int) *cells[T] {
	c := &cells[T]{o: o, closed: make(chan struct{}), cost: cost, most: most}
	c.mu.m = make(map[string]cell[T])
	return c
}

// close ends the loads that run and waits for them.
func (c *cells[T]) close() {
	c.mu.Lock()
	if !c.mu.closed {
		c.mu.closed = true
		close(c.closed)
	}
	c.mu.Unlock()
	c.loads.Wait()
}

func (c *cells[T]) ttl(k cell[T]) time.Duration {
	if k.err != nil {
		return c.o.NegativeTTL
	}
	return c.o.TTL
}

func (c *cells[T]) peek(key string) (k cell[T], have bool, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, have = c.mu.m[key]
	return k, have, c.mu.generation
}

// get returns the value of key, from load where it is not fresh. The load goes
// on when ctx ends: others may wait for it, and the next caller has it.
func (c *cells[T]) get(ctx context.Context, key string, load func(context.Context) (T, error)) (T, error) {
	return c.getThat(ctx, key, nil, load)
}

// getThat is get of a value that does for the caller: what is kept and does not is loaded
// as if it were not there. nil: all values do.
func (c *cells[T]) getThat(ctx context.Context, key string, does func(T) bool, load func(context.Context) (T, error)) (T, error) {
	k, have, generation := c.peek(key)
	have = have && k.does(does)
	now := c.o.Now()
	if have && now.Sub(k.at) < c.ttl(k) {
		return k.value, k.err
	}
	stale := have && k.err == nil && now.Sub(k.at) < staleFactor*c.o.TTL
	if stale && now.Before(k.retry) {
		return k.value, nil
	}
	flight := strconv.FormatUint(generation, 10) + "/" + key // never a load that a drop came after
	if does != nil {
		flight = "that " + flight
	}
	answer := c.flight.DoChan(flight, func() (any, error) { return c.load(ctx, key, does, load) })
	var patience <-chan time.Time
	if stale {
		t := time.NewTimer(c.o.patience(now))
		defer t.Stop()
		patience = t.C
	}
	var none T
	select {
	case r := <-answer:
		switch {
		case r.Err == nil:
			return r.Val.(T), nil
		case stale && !certain(r.Err):
			return k.value, nil
		}
		return none, r.Err
	case <-patience:
		c.o.waited()
		return k.value, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// certain says that an error is the source's word on the entry.
func certain(err error) bool {
	return errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrPermission) || errors.Is(err, ErrClosed)
}

// does says that the value of a cell does for a caller of getThat.
func (k cell[T]) does(does func(T) bool) bool { return does == nil || k.err != nil || does(k.value) }

// load runs one load, apart from its caller's interrupts.
func (c *cells[T]) load(ctx context.Context, key string, does func(T) bool, load func(context.Context) (T, error)) (value T, err error) {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return value, ErrClosed
	}
	c.loads.Add(1)
	k, have := c.mu.m[key]
	generation := c.mu.generation
	c.mu.Unlock()
	defer c.loads.Done()
	if have && k.does(does) && c.o.Now().Sub(k.at) < c.ttl(k) {
		return k.value, k.err // loaded since the caller looked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.LoadTimeout)
	defer cancel()
	c.loads.Add(1)
	go func() {
		defer c.loads.Done()
		select {
		case <-c.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	at := c.o.Now()
	value, err = load(ctx)
	c.o.answered(err)
	c.keep(key, cell[T]{value: value, err: err, at: at}, generation)
	if err == nil && c.loaded != nil {
		c.loaded(value)
	}
	return value, err
}

// keep stores the outcome of a load that began at a generation, unless something
// later is known.
func (c *cells[T]) keep(key string, k cell[T], generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, have := c.mu.m[key]
	if c.mu.generation != generation {
		return
	}
	if k.err != nil && !errors.Is(k.err, objectstore.ErrNotExist) {
		if have && old.err == nil {
			old.retry = c.o.Now().Add(c.o.NegativeTTL)
			c.mu.m[key] = old
		}
		return
	}
	if have && (old.at.After(k.at) || k.err != nil && old.err == nil && old.at.Equal(k.at)) {
		return
	}
	c.forget(key)
	cost := c.cost(k.value)
	if cost > c.most {
		return // it serves those who wait for it
	}
	if c.mu.total+cost > c.most {
		c.makeRoom(cost)
	}
	c.mu.m[key] = k
	c.mu.total += cost
}

// forget drops a key. The lock is held.
func (c *cells[T]) forget(key string) {
	if k, there := c.mu.m[key]; there {
		c.mu.total -= c.cost(k.value)
		delete(c.mu.m, key)
	}
}

// makeRoom drops what is no longer fresh, else anything. The lock is held.
func (c *cells[T]) makeRoom(cost int) {
	now := c.o.Now()
	for key, k := range c.mu.m {
		if now.Sub(k.at) >= c.ttl(k) {
			c.forget(key)
		}
	}
	for key := range c.mu.m {
		if c.mu.total+cost <= c.most {
			return
		}
		c.forget(key)
	}
}

// drop forgets the keys that match, and what loads of them are about to tell.
func (c *cells[T]) drop(match func(key string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.generation++
	for key := range c.mu.m {
		if match(key) {
			c.forget(key)
		}
	}
}

// each shows the values that are kept of the keys that match. The cells are
// locked meanwhile.
func (c *cells[T]) each(match func(key string) bool, show func(T)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.mu.m {
		if k.err == nil && match(key) {
			show(k.value)
		}
	}
}

// replace keeps k of a key in place of what is kept, unless there was a drop since a
// generation: then nothing is. What loads are about to tell is forgotten.
func (c *cells[T]) replace(key string, k cell[T], since uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.mu.generation == since
	c.mu.generation++
	c.forget(key)
	if current && c.mu.total+c.cost(k.value) <= c.most {
		c.mu.m[key] = k
		c.mu.total += c.cost(k.value)
	}
}

// change is replace with what to makes of the value that is kept, if one is. The cells
// are locked meanwhile.
func (c *cells[T]) change(key string, since uint64, to func(T) T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.mu.generation == since
	c.mu.generation++
	k, have := c.mu.m[key]
	c.forget(key)
	if current && have && k.err == nil {
		k.value = to(k.value)
		c.mu.m[key] = k
		c.mu.total += c.cost(k.value)
	}
}
