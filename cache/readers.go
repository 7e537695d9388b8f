package cache

import (
	"slices"
	"time"
)

// Readers that rest.
const (
	// restAfter without a read a reader has no part in the window any more.
	restAfter = time.Second
	// keepFor is how long what was read ahead of a version that nobody reads is kept,
	// and what was read to its end.
	keepFor = 30 * time.Second
)

// readers are the handles that are read ahead of. Guarded by Cache.mu.
type readers struct {
	handles []*Handle
	sweeper *time.Timer // runs while there is anything to give back; nil: it does not
	stopped bool
}

// share notes a read of h, and returns how far it may be read ahead of, in units: an
// equal part of the window for each reader, of whole parts where it is that much.
func (c *Cache) share(h *Handle) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.at = time.Now()
	h.file.at = h.at
	n := int64(len(c.mu.readers.handles))
	if !h.reading {
		n++
	}
	if n > 1 {
		c.sweepLocked(h.at)
		n = int64(len(c.mu.readers.handles))
		if !h.reading {
			n++
		}
	}
	each := c.window / n
	if part := each / c.part * c.part; part > 0 {
		return part
	}
	return min(max(each/c.perBlock*c.perBlock, c.perBlock), c.window)
}

// readAhead counts h among those that are read ahead of.
func (c *Cache) readAhead(h *Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.reading || c.mu.closed {
		return
	}
	h.reading = true
	h.file.active++
	c.mu.readers.handles = append(c.mu.readers.handles, h)
	c.watchLocked()
}

// restLocked counts h out.
func (c *Cache) restLocked(h *Handle) {
	if !h.reading {
		return
	}
	h.reading = false
	h.file.active--
	r := &c.mu.readers
	r.handles = slices.DeleteFunc(r.handles, func(o *Handle) bool { return o == h })
}

// sweepLocked counts out who rests.
func (c *Cache) sweepLocked(now time.Time) {
	for _, h := range slices.Clone(c.mu.readers.handles) {
		if now.Sub(h.at) >= restAfter {
			c.restLocked(h)
		}
	}
}

// watchLocked has the sweeper run.
func (c *Cache) watchLocked() {
	if r := &c.mu.readers; r.sweeper == nil && !r.stopped {
		r.sweeper = time.AfterFunc(keepFor, c.sweep)
	}
}

// sweep gives back what nobody seems to come for any more.
func (c *Cache) sweep() {
	if c.giveBack(time.Now()) && c.rested != nil {
		c.rested()
	}
}

// giveBack is sweep; rest tells that nobody reads any more.
func (c *Cache) giveBack(now time.Time) (rest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.readers.sweeper = nil
	c.sweepLocked(now)
	for _, l := range []*lru{&c.mu.ahead, &c.mu.done} {
		for b := l.root.prev; b != &l.root; {
			newer := b.prev
			if now.Sub(b.file.at) >= keepFor && !c.heldLocked(b) {
				c.detachLocked(b)
			}
			b = newer
		}
	}
	rest = len(c.mu.readers.handles) == 0
	if !rest || c.mu.ahead.bytes+c.mu.done.bytes > 0 {
		c.watchLocked()
	}
	return rest
}

// heldLocked: a small version that was fetched when it was opened is the descriptor's
// to its end, whatever becomes of the object; a window is not.
func (c *Cache) heldLocked(b *block) bool {
	return b.unread && b.file.handles > 0 && b.file.version.Size <= c.whole
}

// stop ends the sweeper.
func (r *readers) stop() {
	r.stopped = true
	if r.sweeper != nil {
		r.sweeper.Stop()
		r.sweeper = nil
	}
}
