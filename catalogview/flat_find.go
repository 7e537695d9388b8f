package catalogview

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// flight is one look-up that is under way, for all who wait for it.
type flight struct {
	seq        uint64
	begun      time.Time
	done       chan struct{}
	answer     answer
	err        error
	superseded bool // by a change: to be looked up again; guarded by flat.mu
}

// find returns what is at a name, isAbsent where nothing is.
func (c *flat) find(ctx context.Context, dir objectstore.Location, name string) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for listed := false; ; {
		d, now := c.directory(dir), c.o.Now()
		c.inherit(d, now)
		a, sure := c.known(d, name, now)
		if sure {
			c.refresh(ctx, d, a, now)
		}
		if sure || a.there() && now.Before(d.retry) {
			return a, nil
		}
		again, err := false, error(nil)
		if !listed && c.byListing(d, name, now) {
			listed, again = true, true
			err = c.relist(ctx, d, now, a.there())
			if errors.Is(err, objectstore.ErrPermission) {
				err = nil // the name alone may be granted
			}
		} else if a, again, err = c.lookUp(ctx, d, name, now, a); err == nil && !again {
			return a, nil
		}
		switch {
		case err == nil:
		case a.there() && ctx.Err() == nil && !certain(err):
			return a, nil
		default:
			return answer{}, err
		}
	}
}

// inherit has a directory of which nothing is known begin as an empty one, where its
// own name was found absent: nothing was below it either, and it lives in this mount
// alone. That is mkdir, and the new files that follow it.
func (c *flat) inherit(d *directory, now time.Time) {
	if d.whole != nil || d.running != nil || len(d.facts)+len(d.flights) > 0 || c.o.TTL <= 0 {
		return
	}
	if strings.Contains(d.loc.Key, "//") {
		return // a store that keeps objects as files may list nothing below such a key
	}
	above := strings.TrimSuffix(d.loc.Key, "/")
	cut := strings.LastIndexByte(above, '/') + 1
	p := c.mu.dirs[objectstore.Location{Bucket: d.loc.Bucket, Key: above[:cut]}]
	if p == nil || p == d {
		return
	}
	f, have := p.facts[above[cut:]]
	if w := p.whole; w != nil && (!have || !f.over(w, now)) {
		have, f.seq = true, w.seq
		f.answer, f.at = w.find(above[cut:])
	}
	if have && f.is == isAbsent && now.Sub(f.at) < c.o.NegativeTTL {
		none := &chunk{}
		d.whole = &listing{seq: f.seq, at: f.at, inferred: true, head: none, tail: none, live: none, ordered: true, done: true}
		c.settle(d)
	}
}

// known returns what is known of a name. Where that is not sure, it may serve
// if the store does not answer: open is nothing then.
func (c *flat) known(d *directory, name string, now time.Time) (a answer, sure bool) {
	f, have := d.facts[name]
	believed := have && (d.whole == nil || f.over(d.whole, now))
	if believed && f.is != open && now.Sub(f.at) < c.lifetime(f.is) {
		return f.answer, true
	}
	var at time.Time
	if !believed && d.whole != nil {
		if a, at = d.whole.find(name); now.Sub(at) < c.lifetime(a.is) {
			return a, true
		}
	}
	if l := d.running; l != nil && (!have || !f.over(l, now)) {
		if a, at = l.seen(name); a.there() && c.fresh(at, now) {
			return a, true
		}
	}
	switch {
	case believed && f.there() && c.usable(f.at, now):
		return f.answer, false
	case believed || d.whole == nil || !c.usable(d.whole.at, now):
		return answer{}, false
	}
	if a, _ = d.whole.find(name); !a.there() {
		return answer{}, false
	}
	return a, false
}

func (c *flat) lifetime(is known) time.Duration {
	if is == isAbsent {
		return c.o.NegativeTTL
	}
	return c.o.TTL
}

// manyMisses look-ups that found nothing make it worth while to list a directory
// that nobody has listed: who makes new files in it asks for each name before.
const manyMisses = 2

// byListing says that the name is best asked for by listing the directory: that
// was listed before, by one request, or many names were not there, and no listing
// is distrusted. A listing that is too old to tell of an absence alone is good
// enough a reason: who makes many new files in a directory asks once a NegativeTTL
// then, not for each. A directory that turned out to be large is tried ever more
// seldom.
func (c *flat) byListing(d *directory, name string, now time.Time) bool {
	if now.Before(d.facts[name].until) {
		return false
	}
	w := d.whole
	if w == nil {
		return d.misses >= manyMisses<<min(d.tries, 16)
	}
	return w.count <= onePage && now.Sub(w.at) >= min(c.o.TTL, c.o.NegativeTTL) && c.usable(w.at, now)
}

// refresh lists a directory anew, behind the caller's back, shortly before its
// listing is too old to tell of an absence: who makes one new file after another in
// it would wait for that.
func (c *flat) refresh(ctx context.Context, d *directory, a answer, now time.Time) {
	w := d.whole
	if w == nil || a.is != isAbsent || d.running != nil || w.count > onePage {
		return
	}
	if age := now.Sub(w.at); age < c.o.NegativeTTL*7/8 || age >= c.o.NegativeTTL {
		return
	}
	if l, ok := c.run(ctx, d); ok {
		c.leave(d, l)
	}
}

// relist waits for a new listing of a directory, unless it turns out to have
// grown.
func (c *flat) relist(ctx context.Context, d *directory, now time.Time, stale bool) error {
	if d.whole == nil {
		d.misses = 0
		d.tries++
	}
	l := c.joinable(d, now)
	if l != nil {
		l.join()
	} else if begun, ok := c.run(ctx, d); ok {
		l = begun
	} else {
		return ErrClosed
	}
	defer c.leave(d, l)
	return c.answered(ctx, l, stale, func() bool { return l.count > onePage })
}

// lookUp waits for the answer of one look-up. again: a change came between.
func (c *flat) lookUp(ctx context.Context, d *directory, name string, now time.Time, stale answer) (a answer, again bool, err error) {
	f := d.flights[name]
	if f == nil {
		if f = c.launch(ctx, d, name, now); f == nil {
			return stale, false, ErrClosed
		}
	}
	limit, stop := c.patience(stale.there(), f.begun)
	defer stop()
	c.mu.Unlock()
	select {
	case <-f.done:
	case <-limit:
		c.o.waited()
		err = errPatience
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	switch {
	case err != nil:
		return stale, false, err
	case f.superseded:
		return stale, true, nil
	case f.err != nil:
		return stale, false, f.err
	}
	return f.answer, false, nil
}

// launch begins a look-up; nil after close.
func (c *flat) launch(ctx context.Context, d *directory, name string, now time.Time) *flight {
	ctx, seq, ok := c.begin(ctx, c.o.LoadTimeout)
	if !ok {
		return nil
	}
	f := &flight{seq: seq, begun: now, done: make(chan struct{})}
	if d.flights == nil {
		d.flights = make(map[string]*flight)
	}
	d.flights[name] = f
	if d.found && !d.probed && c.o.Probe > 1 && d.whole == nil && d.running == nil {
		d.probed = true
		c.probeAside(ctx, d.loc)
	}
	c.loads.Go(func() {
		a, err := c.ask(ctx, d.loc, name)
		err = because(ctx, err)
		c.o.answered(err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(seq)
		f.answer, f.err = a, err
		c.land(d, name, f)
		close(f.done)
	})
	return f
}

// land keeps a look-up's answer, unless a change came between.
func (c *flat) land(d *directory, name string, f *flight) {
	if d.flights[name] != f {
		return
	}
	delete(d.flights, name)
	switch old := d.facts[name]; {
	case f.err == nil:
		if f.answer.is == isAbsent && d.whole == nil {
			d.misses++
		}
		d.found = d.found || f.answer.there()
		kept := fact{answer: f.answer, seq: f.seq, at: f.begun}
		if old.is == open {
			kept.until = old.until
		}
		c.put(d, name, kept)
	case !certain(f.err):
		d.retry = c.o.Now().Add(c.o.NegativeTTL)
	}
}
