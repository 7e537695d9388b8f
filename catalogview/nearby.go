package catalogview

import (
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Guess is the version that a look-up would find at a location as far as it is
// known without a request. Whoever has seen since that it is there tells so by
// Confirm.
type Guess struct {
	Object objectstore.Object
	seq    uint64 // of its beginning
	at     time.Time
}

// Nearby returns the names of the objects beside loc, in the order in which they
// were listed; nil where there is no listing that could serve, or one of more than
// limit names. No request is made, and nothing is waited for.
func (v *View) Nearby(loc objectstore.Location, limit int) []string {
	dir, _, _, ok := above(loc)
	if v.flat == nil || !ok {
		return nil
	}
	c := v.flat
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listed(dir)
	if l == nil || l.count > limit {
		return nil
	}
	names := make([]string, 0, l.count)
	for at := l.head; at != nil; at = at.next {
		for _, it := range at.items {
			if !badName(it.name) && !isMarker(it.name, it.size) && it.name != controlName && !table.StagingTree(it.name) {
				names = append(names, it.name)
			}
		}
	}
	return names
}

// listed returns the whole listing of a directory, if it could serve. The lock is
// held.
func (c *flat) listed(dir objectstore.Location) *listing {
	d := c.mu.dirs[dir]
	if d == nil || d.whole == nil || d.whole.inferred || d.whole.large() || !c.usable(d.whole.at, c.o.Now()) {
		return nil
	}
	return d.whole
}

// Guess returns what is known of the object at loc, in a directory of which there
// is a listing that could serve. No request is made, and nothing is waited for.
func (v *View) Guess(loc objectstore.Location) (Guess, bool) {
	dir, name, isDir, ok := above(loc)
	if v.flat == nil || !ok || isDir {
		return Guess{}, false
	}
	c := v.flat
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.listed(dir) == nil {
		return Guess{}, false
	}
	now := c.o.Now()
	a, _ := c.known(c.mu.dirs[dir], name, now)
	if a.is != isObject {
		return Guess{}, false
	}
	c.mu.seq++
	return Guess{Object: a.item.object(dir), seq: c.mu.seq, at: now}, true
}

// Confirm says that the store had g's version after it was guessed: look-ups need
// not ask for it for a TTL from then on. What was learned since is believed over it.
func (v *View) Confirm(g Guess) {
	dir, name, _, _ := above(g.Object.Location)
	c := v.flat
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listed(dir)
	if l == nil || l.seq > g.seq || g.at.Sub(l.at) < c.o.TTL/2 {
		return // the listing tells it for long enough
	}
	d := c.mu.dirs[dir]
	old, have := d.facts[name]
	if have && (old.seq > g.seq || old.is != isObject) {
		return
	}
	it := item{name: name, size: g.Object.Size, etag: g.Object.ETag, mtime: g.Object.ModTime}
	c.put(d, name, fact{answer: answer{is: isObject, item: it}, seq: g.seq, at: g.at, until: old.until})
}
