package catalogview

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// errPatience: the store has not answered, and something stale could serve.
var errPatience = errors.New("no answer yet")

// list is Store.List with a delimiter, from what is known as far as that is
// fresh. Concurrent ones are one listing.
func (c *flat) list(ctx context.Context, dir objectstore.Location) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		r, err := c.open(ctx, dir)
		if err != nil {
			yield(objectstore.Entry{}, err)
			return
		}
		defer r.close()
		for {
			it, more, err := r.next(ctx)
			if err != nil {
				yield(objectstore.Entry{}, err)
				return
			}
			if !more || !yield(it.entry(dir), nil) {
				return
			}
		}
	}
}

// object is what the item is in dir. Match is the ETag, as Stat has it, and
// metadata, which listings do not tell, is left out: ls and stat agree.
func (i item) object(dir objectstore.Location) objectstore.Object {
	dir.Key += i.name
	return objectstore.Object{Location: dir, Size: i.size, ETag: i.etag, Match: i.etag, ModTime: i.mtime}
}

func (i item) entry(dir objectstore.Location) objectstore.Entry {
	return objectstore.Entry{Object: i.object(dir), Prefix: strings.HasSuffix(i.name, "/")}
}

// reader reads a listing from its beginning, at its own pace, with the facts
// that are over it. It holds what it reads, whatever is evicted meanwhile.
type reader struct {
	c    *flat
	d    *directory
	l    *listing
	now  time.Time
	at   *chunk
	i    int // in at
	pos  int // in the listing
	over map[string]fact
	adds []string // keys that the facts in over add, in order, still to come
}

// open returns a reader of a fresh listing; of a stale one where the store does
// not begin to answer.
func (c *flat) open(ctx context.Context, dir objectstore.Location) (*reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, now := c.directory(dir), c.o.Now()
	stale := d.whole
	switch {
	case stale == nil || stale.inferred || !c.usable(stale.at, now):
		stale = nil
	case c.fresh(stale.at, now) && stale.seq > d.asked, now.Before(d.retry):
		return c.read(d, stale, now), nil
	}
	l := c.joinable(d, now)
	if l != nil {
		l.join()
	} else if begun, ok := c.run(ctx, d); ok {
		l = begun
	} else {
		return nil, ErrClosed
	}
	r := c.readJoined(d, l, now)
	if stale == nil {
		return r, nil
	}
	err := c.answered(ctx, l, true, func() bool { return l.count > 0 })
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() == nil && !certain(err):
		c.leave(d, l)
		return c.read(d, stale, now), nil
	}
	c.leave(d, l)
	return nil, err
}

// answered waits until enough of a listing is there, or all; where something
// stale could serve, no longer than Patience from the listing's beginning
// (errPatience). The lock is held before and after.
func (c *flat) answered(ctx context.Context, l *listing, stale bool, enough func() bool) error {
	limit, stop := c.patience(stale, l.at)
	defer stop()
	for !l.done && !enough() {
		if err := c.await(ctx, l, limit); err != nil {
			if errors.Is(err, errPatience) {
				c.o.waited()
			}
			return err
		}
	}
	if l.done {
		return l.err
	}
	return nil
}

// patience returns a channel that tells when a load has taken too long for
// those who have something stale; the others wait for ever.
func (c *flat) patience(stale bool, begun time.Time) (<-chan time.Time, func()) {
	if !stale {
		return nil, func() {}
	}
	t := time.NewTimer(c.o.patience(begun))
	return t.C, func() { t.Stop() }
}

func (c *flat) read(d *directory, l *listing, now time.Time) *reader {
	l.join()
	return c.readJoined(d, l, now)
}

func (c *flat) readJoined(d *directory, l *listing, now time.Time) *reader {
	r := &reader{c: c, d: d, l: l, now: now, at: l.head, over: make(map[string]fact)}
	for name, f := range d.facts {
		if !f.over(l, now) || f.is == open {
			continue
		}
		r.over[name] = f
		switch f.is {
		case isObject:
			r.adds = append(r.adds, name)
		case isDirectory:
			r.adds = append(r.adds, name+"/")
		}
	}
	slices.Sort(r.adds)
	return r
}

func (r *reader) close() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.leave(r.d, r.l)
}

// next returns the next item. An error is the listing's: nothing follows.
func (r *reader) next(ctx context.Context) (it item, more bool, err error) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for {
		raw, more, err := r.peek(ctx)
		if err != nil {
			return item{}, false, err
		}
		if len(r.adds) > 0 && (!more || r.adds[0] <= raw.name) {
			name := strings.TrimSuffix(r.adds[0], "/")
			r.adds = r.adds[1:]
			if it, ok := r.fact(name).itemAt(name); ok {
				return it, true, nil
			}
			continue
		}
		if !more {
			return item{}, false, nil
		}
		r.advance()
		if it, ok := r.correct(raw); ok {
			return it, true, nil
		}
	}
}

// peek waits for the listing's next item.
func (r *reader) peek(ctx context.Context) (it item, more bool, err error) {
	for {
		switch {
		case ctx.Err() != nil:
			return item{}, false, context.Cause(ctx)
		case r.i < len(r.at.items):
			return r.at.items[r.i], true, nil
		case r.at.next != nil:
			r.at, r.i = r.at.next, 0
			continue
		case r.l.done:
			return item{}, false, r.l.err
		}
		if err := r.c.await(ctx, r.l, nil); err != nil {
			return item{}, false, err
		}
	}
}

func (r *reader) advance() {
	r.i++
	r.pos++
	if r.pos > r.l.furthest {
		r.l.furthest = r.pos
		if r.l.large() {
			r.l.notify()
		}
	}
}

// fact returns what is over the listing for a name. What was over it when the
// reader began stays so.
func (r *reader) fact(name string) fact {
	if f, ok := r.d.facts[name]; ok && f.over(r.l, r.now) && f.is != open {
		return f
	}
	return r.over[name]
}

// itemAt returns the line of a listing that the fact is, if any.
func (f fact) itemAt(name string) (item, bool) {
	switch f.is {
	case isObject:
		return f.item, true
	case isDirectory:
		return item{name: name + "/", mtime: f.item.mtime}, true
	}
	return item{}, false
}

// correct returns what is to be given out for an item of the listing. A name
// that the facts add comes by itself.
func (r *reader) correct(raw item) (item, bool) {
	name := strings.TrimSuffix(raw.name, "/")
	if name == "" || len(r.d.facts)+len(r.over) == 0 {
		return raw, true
	}
	if old, added := r.over[name]; added && old.there() {
		return item{}, false
	}
	f := r.fact(name)
	if f.is == open {
		return raw, true
	}
	it, ok := f.itemAt(name)
	return it, ok && it.name == raw.name
}
