package catalogview

import (
	"context"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// DefaultProbe is that of [Options].Probe. A store takes no longer for so many entries
// than for one, and most directories have fewer: the look-up of a file in them that
// follows asks for nothing.
const DefaultProbe = 100

// probe says that something lies in a directory.
func (c *flat) probe(ctx context.Context, dir objectstore.Location) (bool, error) {
	l := c.beginProbe()
	for e, err := range c.store.List(ctx, dir, objectstore.ListOptions{Delimiter: true, Limit: c.o.Probe}) {
		if err != nil {
			return l.count > 0, err
		}
		if it, ok := c.itemOf(dir, l, e); ok {
			l.add(it)
		}
	}
	if l.count > 0 && l.count < c.o.Probe {
		c.endProbe(dir, l)
	}
	return l.count > 0, nil
}

// probeAside probes a directory for those who look up names in it later; nobody waits
// for it, and an error tells nothing. flat.mu is held.
func (c *flat) probeAside(ctx context.Context, dir objectstore.Location) {
	ctx, seq, ok := c.begin(ctx, c.o.LoadTimeout)
	if !ok {
		return
	}
	c.loads.Go(func() {
		_, _ = c.probe(ctx, dir)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(seq)
	})
}

// beginProbe is a listing that begins now and that nobody else knows of.
func (c *flat) beginProbe() *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.seq++
	first := &chunk{items: make([]item, 0, smallChunk)}
	return &listing{seq: c.mu.seq, at: c.o.Now(), head: first, tail: first, live: first, ordered: true}
}

// endProbe keeps a whole listing that is newer than what is known.
func (c *flat) endProbe(dir objectstore.Location, l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.done = true
	if c.mu.closed || c.o.TTL <= 0 || l.count > c.o.MaxListed {
		return
	}
	d := c.directory(dir)
	if d.running != nil || d.asked > l.seq || d.whole != nil && d.whole.seq > l.seq {
		return
	}
	d.whole = l
	c.reconcile(d)
	c.settle(d)
}

// itemOf is the line of a listing that an entry is; a key outside the directory is none.
func (c *flat) itemOf(dir objectstore.Location, l *listing, e objectstore.Entry) (item, bool) {
	name, ok := strings.CutPrefix(e.Key, dir.Key)
	if !ok {
		return item{}, false
	}
	it := item{name: strings.Clone(name), size: e.Size, etag: e.ETag, mtime: e.ModTime, after: c.o.Now().Sub(l.at)}
	if e.Prefix {
		it.name = directoryKey(it.name)
	}
	return it, true
}
