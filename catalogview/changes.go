package catalogview

import (
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Wrote says that the mount made o: from now on it is at o.Location, in
// listings and look-ups alike, and the directories on the way are there. No
// request is made, and nothing is waited for.
func (v *View) Wrote(o objectstore.Object) {
	if v.flat != nil {
		v.flat.wrote(o)
	}
}

// Removed says that the mount removed what was at loc (of a directory, with the
// "/": all below it). No request is made, and nothing is waited for.
func (v *View) Removed(loc objectstore.Location) {
	if v.flat != nil {
		v.flat.removed(loc)
	}
}

// Stale says that what the View answered of the object loc was found to be no
// longer so: the next look-up asks the store for it, and no listing is believed
// about it until one that began later agrees, or the TTL is over. No request is
// made, and nothing is waited for.
func (v *View) Stale(loc objectstore.Location) {
	if v.flat != nil {
		v.flat.stale(loc)
	}
}

func (c *flat) wrote(o objectstore.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up, name, dir, ok := above(o.Location)
	if ok && !dir && !c.isDirectory(up, name) {
		it := item{name: name, size: o.Size, etag: o.ETag, mtime: o.ModTime}
		c.change(up, name, answer{is: isObject, item: it})
	} else if ok && dir {
		c.change(up, name, answer{is: isDirectory})
	}
	for ok {
		if up, name, _, ok = above(up); ok {
			c.change(up, name, answer{is: isDirectory})
		}
	}
}

func (c *flat) removed(loc objectstore.Location) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up, name, dir, ok := above(loc)
	if dir {
		c.dropLocked(func(l objectstore.Location) bool {
			return l.Bucket == loc.Bucket && strings.HasPrefix(l.Key, loc.Key)
		})
	}
	if !ok {
		return
	}
	switch d := c.mu.dirs[up]; {
	case !dir && d != nil && d.hasMarker(name):
		c.question(d, name)
	case dir || !c.isDirectory(up, name):
		c.change(up, name, answer{is: isAbsent})
	}
	c.emptied(up)
}

func (c *flat) stale(loc objectstore.Location) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up, name, _, ok := above(loc); ok {
		c.change(up, name, answer{is: open})
	}
}

// isDirectory says that a name is known to be a directory, beside which an
// object does not show.
func (c *flat) isDirectory(up objectstore.Location, name string) bool {
	d := c.mu.dirs[up]
	if d == nil {
		return false
	}
	a, sure := c.known(d, name, c.o.Now())
	return sure && a.is == isDirectory
}

// hasMarker says that X_$folder$ is known, by which X is a directory when its
// object is gone.
func (d *directory) hasMarker(name string) bool {
	name += markerSuffix
	if f, have := d.facts[name]; have {
		return f.is == isObject && isMarker(name, f.item.size)
	}
	return d.whole != nil && d.whole.index[name] != nil && isMarker(name, d.whole.index[name].size)
}

// change takes in what the mount did to a name. For a TTL no listing is believed
// that says otherwise, even one that began later: some stores list the old for a
// while. The lock is held.
func (c *flat) change(up objectstore.Location, name string, a answer) {
	d, now := c.directory(up), c.o.Now()
	c.mu.seq++
	d.supersede(name)
	if a.is == open {
		d.asked = c.mu.seq
	}
	c.put(d, name, fact{answer: a, seq: c.mu.seq, at: now, until: now.Add(c.o.TTL)})
	if of, ok := strings.CutSuffix(name, markerSuffix); ok && of != "" {
		c.question(d, of)
	}
}

// question leaves open what is at a name. The lock is held.
func (c *flat) question(d *directory, name string) {
	c.mu.seq++
	d.supersede(name)
	d.asked = c.mu.seq
	c.put(d, name, fact{seq: c.mu.seq, at: c.o.Now()})
}

// emptied leaves open whether a directory is there that something went from, and
// what is in it, unless it is known to hold something else; and so on upwards.
// The lock is held.
func (c *flat) emptied(dir objectstore.Location) {
	for !c.holds(dir) {
		if d := c.mu.dirs[dir]; d != nil {
			c.mu.seq++
			d.asked = c.mu.seq
		}
		up, name, _, ok := above(dir)
		if !ok {
			return
		}
		if d := c.mu.dirs[up]; d != nil {
			c.question(d, name)
		}
		dir = up
	}
}

// holds says that something is known to lie in a directory. The lock is held.
func (c *flat) holds(dir objectstore.Location) bool {
	d, now := c.mu.dirs[dir], c.o.Now()
	if d == nil {
		return false
	}
	if w := d.whole; w != nil && c.fresh(w.at, now) && d.listsMore() {
		return true
	}
	looked := 0
	for _, f := range d.facts {
		if f.there() && c.fresh(f.at, now) {
			return true
		}
		if looked++; looked == 100 {
			return false // a guess, which costs a request
		}
	}
	return false
}

// listsMore says that the whole listing has an item that no fact took away. The
// place of the last one found is kept: what is removed one by one is not looked
// through again each time.
func (d *directory) listsMore() bool {
	w := d.whole
	for {
		if w.livePart == len(w.live.items) {
			if w.live.next == nil {
				return false
			}
			w.live, w.livePart = w.live.next, 0
			continue
		}
		f, have := d.facts[strings.TrimSuffix(w.live.items[w.livePart].name, "/")]
		if !have || f.seq < w.seq || f.there() {
			return true
		}
		w.livePart++
	}
}
