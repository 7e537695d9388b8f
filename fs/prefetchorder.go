package fs

import (
	"cmp"
	"slices"
	"strings"
)

const (
	firstWindow = 4 // files ahead of a reader whose order was just found
	// nearReach names may be left out between two opens of one order that is yet to
	// be found, leadReach once it is: readers in parallel open a little out of order.
	nearReach, leadReach = 3, 8
	// nearBack and leadBack are how far behind the furthest an open may be.
	nearBack, leadBack = 4, 16
	maxReach           = 512 // names of all kinds between two opens
	maxAstray          = 3   // opens in a row that do not follow end an order
	maxWasted          = 8   // see course.wasted
	maxStrikes         = 10
	recentOpens        = 8
	// glance is the size in bytes of a file that the kernel reads whole, whatever a
	// program asks for; maxPartly larger ones in a row that were read in part end
	// the prefetch of such.
	glance    = 128 << 10
	maxPartly = 2
)

// course is what the opens of one directory's files look like: a state machine that
// is told each open, and answers which files will be opened next. It knows nothing of
// stores, memory or time.
//
// Files are opened in the order in which they are listed, which in a bucket is that of
// their names (readdir's, globs', most programs' own), or in that of their inode
// numbers (cp, rm and what else sorts by them); some are left out: names of one kind
// alone (*.csv), directories, files that are opened by another thread a little later.
// Three opens that follow each other find an order. From then on it is kept up to
// window files ahead of it, one more for each that is opened then. A few opens that do
// not follow end it; so does it when too many of the files that were fetched are passed
// over. After that more opens must follow each other to be believed: reading at random
// wastes a bounded number of files in all.
type course struct {
	names  []string // in listed order
	at     map[string]int32
	inode  func(name string) uint64
	orders []*order
	lead   *order // that is followed
	limit  int    // of window

	recent  []int32         // last opens, the newest last
	kinds   map[string]bool // of names that were opened
	window  int
	pending map[string]int64 // fetched and not yet opened, and their bytes
	bytes   int64            // of pending
	astray  int              // opens in a row that did not follow lead
	hits    int              // pending files that were opened in a row, and none passed over
	wasted  int              // two for each pending file that was passed over, less one for each that was opened
	strikes int              // orders that ended early
	lost    bool             // one did: the names are to be looked at anew
	partly  int              // larger files in a row that were read in part
}

// order is one order of the names, and the run of opens that follow it.
type order struct {
	places []int32 // of each name; nil: the listed order
	sorted []int32 // names by place
	front  int     // highest place of the run; -1: none yet
	run    int     // steps of it
	edge   int     // first place that was not looked at to be fetched
	passed map[string]bool
}

func newCourse(names []string, limit int, inode func(name string) uint64) *course {
	c := &course{names: names, limit: limit, inode: inode, at: make(map[string]int32, len(names)), kinds: make(map[string]bool), pending: make(map[string]int64)}
	for i, name := range names {
		c.at[name] = int32(i) //nolint:gosec // bounded by maxCharted
	}
	c.orders = []*order{{front: -1}}
	return c
}

// byInode adds the order of the inode numbers, and shows it the latest opens. It
// takes its time where there are many names.
func (c *course) byInode() {
	numbers := make([]uint64, len(c.names))
	sorted := make([]int32, len(c.names))
	for i, name := range c.names {
		numbers[i], sorted[i] = c.inode(name), int32(i) //nolint:gosec // bounded by maxCharted
	}
	slices.SortFunc(sorted, func(a, b int32) int { return cmp.Compare(numbers[a], numbers[b]) })
	o := &order{front: -1, sorted: sorted, places: make([]int32, len(sorted))}
	for place, i := range sorted {
		o.places[i] = int32(place) //nolint:gosec // bounded by maxCharted
	}
	c.orders = append(c.orders, o)
	for _, i := range c.recent {
		o.follow(c, i)
	}
	c.find()
}

func (o *order) place(i int32) int {
	if o.places != nil {
		i = o.places[i]
	}
	return int(i)
}

func (o *order) name(c *course, place int) string {
	if o.sorted != nil {
		place = int(o.sorted[place])
	}
	return c.names[place]
}

// follow takes an open, and tells whether it follows the ones before it.
func (o *order) follow(c *course, i int32) bool {
	place, reach, back := o.place(i), nearReach, nearBack
	if o == c.lead {
		reach, back = leadReach, leadBack
	}
	switch step := place - o.front; {
	case o.front < 0:
	case step <= 0 && -step <= back:
		return true
	case step > 0 && o.between(c, place) <= reach:
		for p := o.front + 1; p < place; p++ {
			o.pass(kind(o.name(c, p)))
		}
		o.front = place
		o.run++
		return true
	case o == c.lead:
		return false
	}
	*o = order{places: o.places, sorted: o.sorted, front: place}
	return false
}

// between is how many names of the kind of the one at place lie before it.
func (o *order) between(c *course, place int) int {
	if place-o.front > maxReach {
		return maxReach
	}
	n, of := 0, kind(o.name(c, place))
	for p := o.front + 1; p < place; p++ {
		if kind(o.name(c, p)) == of {
			n++
		}
	}
	return n
}

func (o *order) pass(kind string) {
	if o.passed == nil {
		o.passed = make(map[string]bool)
	}
	if len(o.passed) < maxReach {
		o.passed[kind] = true
	}
}

// kind is what names have in common that a program opens together: the extension,
// whatever its digits are. Names without one are of one kind.
func kind(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || len(name)-dot > 16 {
		return ""
	}
	if strings.ContainsAny(name[dot:], "0123456789") {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, name[dot:])
	}
	return name[dot:]
}

// room is what may be fetched now: so many files and bytes that are pending in all,
// and size tells which: ok is false for what is not to be fetched.
type room struct {
	files int
	bytes int64
	size  func(name string) (n int64, ok bool)
}

// opened takes an open, and returns the names to be fetched now, in order: they are
// pending from now on. Others may not be pending any more. used: the file was.
func (c *course) opened(name string, r room) (fetch []string, used bool) {
	_, used = c.pending[name]
	c.drop(name)
	if used {
		c.hits++
		c.window = min(c.window+1, c.limit)
		c.wasted = max(c.wasted-1, 0)
		if c.hits >= c.limit {
			c.strikes = 0
		}
	}
	i, known := c.at[name]
	if !known {
		c.stray()
		return nil, used
	}
	if n := len(c.recent); n == 0 || c.recent[n-1] != i {
		c.recent = append(c.recent[max(n+1-recentOpens, 0):], i)
	}
	if len(c.kinds) < maxReach {
		c.kinds[kind(name)] = true
	}
	follows := false
	for _, o := range c.orders {
		if ok := o.follow(c, i); o == c.lead {
			follows = ok
		}
	}
	switch {
	case c.lead == nil:
		c.find()
	case follows:
		c.astray = 0
	default:
		c.stray()
	}
	if c.lead == nil {
		return nil, used
	}
	c.pass()
	return c.plan(r), used
}

// find looks for an order that the latest opens follow.
func (c *course) find() {
	for _, o := range c.orders {
		if o.run >= 2<<c.strikes {
			c.lead, c.window, c.astray, c.hits, c.wasted = o, min(firstWindow, c.limit), 0, 0, 0
			o.edge = o.front + 1
			return
		}
	}
}

// stray takes an open that does not follow.
func (c *course) stray() {
	if c.astray++; c.lead != nil && c.astray >= maxAstray {
		c.lose()
	}
}

// lose ends the order: nothing is pending any more.
func (c *course) lose() {
	c.lead, c.lost = nil, true
	c.strikes = min(c.strikes+1, maxStrikes)
	for _, o := range c.orders {
		*o = order{places: o.places, sorted: o.sorted, front: -1}
	}
	c.clear()
}

// clear gives up all that is pending; the order goes on.
func (c *course) clear() {
	clear(c.pending)
	c.bytes = 0
}

func (c *course) drop(name string) {
	c.bytes -= c.pending[name]
	delete(c.pending, name)
}

// pass gives up what reading has left behind.
func (c *course) pass() {
	for name := range c.pending {
		if c.lead.place(c.at[name]) < c.lead.front-leadBack {
			c.drop(name)
			c.waste()
		}
	}
	if c.wasted > maxWasted {
		c.lose()
	}
}

func (c *course) waste() {
	c.wasted += 2
	c.hits = 0
	c.window = max(c.window/2, 1)
}

// failed takes that a pending file could not be fetched; all: none could.
func (c *course) failed(name string, all bool) {
	if _, is := c.pending[name]; !is {
		return
	}
	c.drop(name)
	c.waste()
	if c.lead != nil && (all || c.wasted > maxWasted) {
		c.lose()
	}
}

// closed takes that a file of size bytes was read up to an offset.
func (c *course) closed(size, read int64) {
	switch {
	case size <= glance:
	case read >= size/2:
		c.partly = 0
	default:
		c.partly++
	}
}

// plan returns what is to be fetched next.
func (c *course) plan(r room) (fetch []string) {
	o := c.lead
	if o == nil {
		return nil
	}
	o.edge = max(o.edge, o.front+1)
	end := min(len(c.names), o.edge+maxReach)
	for ; o.edge < end && len(c.pending) < min(c.window, r.files); o.edge++ {
		name := o.name(c, o.edge)
		if of := kind(name); o.passed[of] && !c.kinds[of] {
			continue
		}
		if _, is := c.pending[name]; is {
			continue
		}
		size, ok := r.size(name)
		if !ok || c.partly >= maxPartly && size > glance {
			continue
		}
		if c.bytes+size > r.bytes {
			break
		}
		c.pending[name] = size
		c.bytes += size
		fetch = append(fetch, name)
	}
	return fetch
}
