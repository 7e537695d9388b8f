package catalogview

import (
	"context"
	"errors"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// smallChunk and largeChunk are the capacities of the first chunk of a listing
	// and of the later ones: most directories are small.
	smallChunk, largeChunk = 8, 256
	// readOn is how far a listing goes on that nobody reads, and how far one that
	// is too large to be kept runs ahead of its readers.
	readOn = 10_000
	// onePage is how many entries one request lists.
	onePage = 1000
)

// errAbandoned ends a listing that nobody waits for.
var errAbandoned = errors.New("nobody reads the listing")

// listing is one listing of a directory, shared by all who read it while it
// runs and after. Guarded by flat.mu.
type listing struct {
	seq uint64
	at  time.Time
	// inferred: nobody listed the directory: see flat.inherit. It answers look-ups, and
	// no reader of the directory.
	inferred bool
	// head is nil when the listing is too large to be kept: chunks that all
	// readers are past are garbage then.
	head, tail *chunk
	count      int
	index      map[string]*item // none when too large
	ordered    bool             // keys came in order, as far as they came
	last       string

	done bool
	err  error // of a listing that is done: it is not whole

	users    int // readers and waiters
	furthest int // items that the first of the readers has taken
	orphan   int // count when the last user left
	expiry   *time.Timer
	dropped  bool          // errAbandoned is about to be its end
	changed  chan struct{} // closed when anything of the above changes; nil: nobody waits

	// live is where an item may be that the mount did not remove; see flat.holds.
	live     *chunk
	livePart int
}

// chunk is a piece of a listing. Items are added at its end, up to its capacity.
type chunk struct {
	items []item
	next  *chunk
}

// large says that the listing is too large to be kept.
func (l *listing) large() bool { return l.head == nil }

// wait returns a channel that is closed at the next change.
func (l *listing) wait() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

func (l *listing) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// find returns what a whole listing says of a name, and as of when: a long
// listing is old at its end, the names that came last are not.
func (l *listing) find(name string) (a answer, at time.Time) {
	if it := l.index[name+"/"]; it != nil {
		return answer{is: isDirectory}, l.at.Add(it.after)
	}
	if it := l.index[name]; it != nil {
		return answer{is: isObject, item: *it}, l.at.Add(it.after)
	}
	if it := l.index[name+markerSuffix]; it != nil && it.size == 0 && len(it.name) <= maxName {
		return answer{is: isDirectory, item: item{mtime: it.mtime}}, l.at
	}
	return answer{is: isAbsent}, l.at
}

// seen is find for a listing that runs. It tells what is there alone, and open
// where the listing has not come far enough: an object is one for sure when the
// directory of its name can no longer come.
func (l *listing) seen(name string) (a answer, at time.Time) {
	dir := name + "/"
	if it := l.index[dir]; it != nil {
		return answer{is: isDirectory}, l.at.Add(it.after)
	}
	if it := l.index[name]; it != nil && l.ordered && l.last > dir {
		return answer{is: isObject, item: *it}, l.at.Add(it.after)
	}
	return answer{}, l.at
}

// joinable returns the running listing that a reader may have, or nil.
func (c *flat) joinable(d *directory, now time.Time) *listing {
	if l := d.running; l != nil && c.fresh(l.at, now) && l.seq > d.asked {
		return l
	}
	return nil
}

// run begins a listing, with the caller as its user; false after close. The
// lock is held.
func (c *flat) run(ctx context.Context, d *directory) (*listing, bool) {
	ctx, seq, ok := c.begin(ctx, 0)
	if !ok {
		return nil, false
	}
	first := &chunk{items: make([]item, 0, smallChunk)}
	l := &listing{seq: seq, at: c.o.Now(), head: first, tail: first, live: first, ordered: true, users: 1}
	if old := d.running; old != nil && old.users == 0 {
		c.abandon(d, old)
	}
	d.running = l
	c.loads.Go(func() { c.fetch(ctx, d, l) })
	return l, true
}

// fetch reads a listing from the store.
func (c *flat) fetch(ctx context.Context, d *directory, l *listing) {
	for e, err := range c.store.List(ctx, d.loc, objectstore.ListOptions{Delimiter: true}) {
		if err == nil {
			err = c.take(ctx, d, l, e)
		}
		if err != nil {
			c.finish(d, l, err)
			return
		}
	}
	c.finish(d, l, ctx.Err())
}

// take adds an entry; a key outside the directory is dropped.
func (c *flat) take(ctx context.Context, d *directory, l *listing, e objectstore.Entry) error {
	it, ok := c.itemOf(d.loc, l, e)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.add(it)
	if l.count > c.o.MaxListed && !l.large() {
		l.head, l.live, l.index = nil, nil, nil
		if d.running == l {
			d.running = nil
		}
	}
	if l.users == 0 && (l.large() || l.count > l.orphan+readOn) {
		c.abandon(d, l)
	}
	for l.large() && !l.dropped && l.count-l.furthest > readOn {
		if err := c.await(ctx, l, nil); err != nil {
			return err
		}
	}
	if l.dropped {
		return errAbandoned
	}
	return nil
}

func (l *listing) add(it item) {
	if len(l.tail.items) == cap(l.tail.items) {
		l.tail.next = &chunk{items: make([]item, 0, largeChunk)}
		l.tail = l.tail.next
	}
	l.tail.items = append(l.tail.items, it)
	if !l.large() {
		if l.index == nil {
			l.index = make(map[string]*item)
		}
		l.index[it.name] = &l.tail.items[len(l.tail.items)-1]
	}
	l.ordered = l.ordered && (l.count == 0 || it.name > l.last)
	l.last = it.name
	l.count++
	l.notify()
}

// await waits for a change of the listing, up to the limit (nil: none), whose
// end is errPatience. The lock is held before and after, not meanwhile.
func (c *flat) await(ctx context.Context, l *listing, limit <-chan time.Time) error {
	changed := l.wait()
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-limit:
		return errPatience
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish ends a listing. A whole one that is not too large is kept.
func (c *flat) finish(d *directory, l *listing, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(l.seq)
	if l.expiry != nil {
		l.expiry.Stop()
	}
	if !l.dropped {
		c.o.answered(err)
	}
	l.done, l.err = true, err
	l.notify()
	if d.running != l {
		return // not wanted, or too large
	}
	d.running = nil
	switch {
	case err == nil && c.o.TTL > 0:
		d.whole = l
		c.reconcile(d)
	case err != nil && !certain(err) && !l.dropped:
		d.retry = c.o.Now().Add(c.o.NegativeTTL)
	}
	c.settle(d)
}

// reconcile drops the facts that the new listing makes idle. One that no listing
// is to be believed about stays until one agrees.
func (c *flat) reconcile(d *directory) {
	now := c.o.Now()
	for name, f := range d.facts {
		a, _ := d.whole.find(name)
		if f.seq < d.whole.seq && (!now.Before(f.until) || f.agrees(a)) {
			delete(d.facts, name)
		}
	}
}

func (f fact) agrees(a answer) bool {
	return f.is == a.is && (f.is != isObject || f.item.etag == a.item.etag && f.item.size == a.item.size)
}

// join makes the caller a user of a listing. The lock is held.
func (l *listing) join() {
	l.users++
	if l.expiry != nil {
		l.expiry.Stop()
		l.expiry = nil
	}
}

// leave undoes join. What nobody waits for goes on for a while: who comes next
// will have it. The lock is held.
func (c *flat) leave(d *directory, l *listing) {
	l.users--
	switch {
	case l.users > 0 || l.done:
	case l.large() || d.running != l || c.mu.closed:
		c.abandon(d, l)
	default:
		l.orphan = l.count
		l.expiry = time.AfterFunc(c.o.LoadTimeout, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if l.users == 0 && !l.done {
				c.abandon(d, l)
			}
		})
	}
}

// abandon ends a listing that nobody waits for. The lock is held.
func (c *flat) abandon(d *directory, l *listing) {
	l.dropped = true
	if d.running == l {
		d.running = nil
	}
	c.end(l.seq)
	l.notify()
}
