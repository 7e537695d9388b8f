package catalogview

import (
	lru "container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// flat remembers what lies below tables in a store whose directories are
// prefixes: of each directory the last whole listing, and facts of single names
// that are newer than it. A fact is the answer to a look-up, or a change that
// the mount made. Each piece of knowledge has the number of its beginning, and
// the newer one is believed; so a listing that began before a change never
// undoes it. There is one lock, which no request is made under.
type flat struct {
	o     Options
	store objectstore.Store
	// ask looks a name up in the store.
	ask   func(ctx context.Context, dir objectstore.Location, name string) (answer, error)
	loads sync.WaitGroup
	mu    struct {
		sync.Mutex
		seq    uint64 // of the last beginning
		dirs   map[objectstore.Location]*directory
		recent *lru.List // of *directory, the last used first
		total  int       // cost of all
		ends   map[uint64]context.CancelFunc
		closed bool
	}
}

// directoryCost is what a directory takes, as so many names in it.
const directoryCost = 8

// directory is what is known of one. Guarded by flat.mu.
type directory struct {
	loc     objectstore.Location
	whole   *listing // the last complete one, or nil
	running *listing // that later readers may join, or nil
	facts   map[string]fact
	flights map[string]*flight
	// asked is the number of the last question that was left open in facts: a
	// listing from before it may have a name that is no longer there.
	asked uint64
	retry time.Time // the store did not answer: what is stale serves at once until then
	// misses are the look-ups that found nothing, while there is no listing, since one
	// was tried for that, which was tries times.
	misses, tries int
	// found: a look-up found something. With the next one it was probed, aside, whether
	// one request tells of all that is in it: who opens two files opens more.
	found, probed bool
	place         *lru.Element
	cost          int
	purge         int // length of facts at which old ones are looked for
}

// item is a line of a listing. The name of a directory ends in "/"; that of the
// object whose key is the listed directory's own is "".
type item struct {
	name  string
	size  int64
	etag  string
	mtime time.Time
	after time.Duration // from the beginning of its listing until it came
}

// kinds of answers.
type known int8

const (
	open        known = iota // to be asked for
	isAbsent                 // nothing is there
	isObject                 // an object, and no directory
	isDirectory              // a directory, whatever object is beside it
)

// answer is what is at a name.
type answer struct {
	is   known
	item item // of a directory: mtime alone
}

func (a answer) there() bool { return a.is == isObject || a.is == isDirectory }

// fact is a dated answer.
type fact struct {
	answer
	seq   uint64
	at    time.Time
	until time.Time // before it, no listing is believed that says otherwise
}

// over says that the fact is to be believed, not the listing.
func (f fact) over(l *listing, now time.Time) bool { return f.seq > l.seq || now.Before(f.until) }

func newFlat(store objectstore.Store, o Options, ask func(context.Context, objectstore.Location, string) (answer, error)) *flat {
	c := &flat{o: o, store: store, ask: ask}
	c.mu.dirs = make(map[objectstore.Location]*directory)
	c.mu.recent = lru.New()
	c.mu.ends = make(map[uint64]context.CancelFunc)
	return c
}

// close ends what runs and waits for it.
func (c *flat) close() {
	c.mu.Lock()
	c.mu.closed = true
	for _, end := range c.mu.ends {
		end()
	}
	c.mu.Unlock()
	c.loads.Wait()
}

// begin numbers a load and returns its context, which outlives the caller's
// interrupts; false after close. The lock is held.
func (c *flat) begin(ctx context.Context, limit time.Duration) (context.Context, uint64, bool) {
	if c.mu.closed {
		return nil, 0, false
	}
	ctx = context.WithoutCancel(ctx)
	end := context.CancelFunc(nil)
	if limit > 0 {
		ctx, end = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer in %s: %w", limit, objectstore.ErrUnavailable))
	} else {
		ctx, end = context.WithCancel(ctx)
	}
	c.mu.seq++
	c.mu.ends[c.mu.seq] = end
	return ctx, c.mu.seq, true
}

// end releases what begin made. The lock is held.
func (c *flat) end(seq uint64) {
	if end := c.mu.ends[seq]; end != nil {
		end()
		delete(c.mu.ends, seq)
	}
}

// because returns the error of a load, for which a limit of its own is the
// store's silence.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, objectstore.ErrUnavailable) {
		return cause
	}
	return err
}

// directory returns what is known of one, which is the last used now. The lock
// is held.
func (c *flat) directory(loc objectstore.Location) *directory {
	d := c.mu.dirs[loc]
	if d == nil {
		d = &directory{loc: loc}
		c.mu.dirs[loc] = d
		d.place = c.mu.recent.PushFront(d)
		c.settle(d)
		return d
	}
	c.mu.recent.MoveToFront(d.place)
	return d
}

// settle counts a directory that changed anew, and makes room. The lock is held.
func (c *flat) settle(d *directory) {
	if c.mu.dirs[d.loc] != d {
		return
	}
	cost := directoryCost + len(d.facts)
	if d.whole != nil {
		cost += d.whole.count
	}
	c.mu.total += cost - d.cost
	d.cost = cost
	for c.mu.total > c.o.MaxListed {
		last := c.mu.recent.Back().Value.(*directory)
		c.forget(last)
		if last == d {
			return
		}
	}
}

// forget drops all knowledge of a directory. Loads that run serve those who
// wait for them, and nobody later. The lock is held.
func (c *flat) forget(d *directory) {
	delete(c.mu.dirs, d.loc)
	c.mu.recent.Remove(d.place)
	c.mu.total -= d.cost
	d.running = nil
}

// drop forgets the directories that match.
func (c *flat) drop(match func(objectstore.Location) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(match)
}

func (c *flat) dropLocked(match func(objectstore.Location) bool) {
	for loc, d := range c.mu.dirs {
		if match(loc) {
			for name := range d.flights {
				d.supersede(name)
			}
			c.forget(d)
		}
	}
}

// supersede sends those who wait for a look-up to look again, for its answer
// may be from before a change.
func (d *directory) supersede(name string) {
	if f := d.flights[name]; f != nil {
		f.superseded = true
		delete(d.flights, name)
	}
}

// put takes a fact in. The lock is held.
func (c *flat) put(d *directory, name string, f fact) {
	ttl := c.o.TTL
	if f.is == isAbsent && f.until.IsZero() {
		ttl = c.o.NegativeTTL
	}
	if ttl <= 0 {
		delete(d.facts, name)
	} else {
		if d.facts == nil {
			d.facts = make(map[string]fact)
		}
		d.facts[name] = f
	}
	if len(d.facts) > d.purge {
		c.purge(d)
		d.purge = 2*len(d.facts) + 64
	}
	c.settle(d)
}

// purge drops the facts that can neither serve nor correct a listing.
func (c *flat) purge(d *directory) {
	now := c.o.Now()
	for name, f := range d.facts {
		corrects := now.Before(f.until) || d.whole != nil && f.over(d.whole, now) || d.running != nil && f.over(d.running, now)
		if !corrects && now.Sub(f.at) >= staleFactor*c.o.TTL {
			delete(d.facts, name)
		}
	}
}

func (c *flat) fresh(at, now time.Time) bool { return now.Sub(at) < c.o.TTL }

// usable says that something that old may stand in while the store does not answer.
func (c *flat) usable(at, now time.Time) bool { return now.Sub(at) < staleFactor*c.o.TTL }

// above splits a location into its directory and its name in it; dir says that
// it is a directory's. ok is false for the bucket itself.
func above(loc objectstore.Location) (up objectstore.Location, name string, dir, ok bool) {
	key, dir := strings.CutSuffix(loc.Key, "/")
	i := strings.LastIndexByte(key, '/') + 1
	return objectstore.Location{Bucket: loc.Bucket, Key: key[:i]}, key[i:], dir, loc.Key != ""
}
