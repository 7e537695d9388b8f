package cache

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// smallUnit is what blocks shorter than the block size are rounded up to.
const smallUnit = 4 << 10

// block is a piece of a version: whole, arriving or failed.
type block struct {
	file  *file
	index int64  // of its first unit
	buf   []byte // the block's exact length; its capacity is what the budget counts
	ahead bool   // fetched by read-ahead or Begin: its failure is nobody's yet
	fetch *fetch // that fills it

	// Guarded by Cache.mu. A block leaves file.blocks when it is detached, and
	// its memory is free when it is detached and refs is 0.
	refs       int // readers, and the fetch while it runs
	detached   bool
	unread     bool   // by anybody, so far
	read       int64  // bytes given to readers
	list       *lru   // that it is in, or nil
	prev, next *block // in list

	// filled bytes of buf are there, and never change again.
	filled atomic.Int64

	mu struct {
		sync.Mutex
		err  error
		more chan struct{} // closed at the next change that somebody waits for; nil: nobody does
		want int64         // the least that is waited for, in bytes from the start; unless more is nil
	}
}

// publish makes the first n bytes readable, and wakes who waits.
func (b *block) publish(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.filled.Store(int64(n))
	if b.mu.want <= int64(n) { // bytes come in many pieces: those who wait for more sleep on
		b.wakeLocked()
	}
}

// fail gives all who wait for more bytes, now or later, err.
func (b *block) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.err = err
	b.wakeLocked()
}

func (b *block) wakeLocked() {
	if b.mu.more != nil {
		close(b.mu.more)
		b.mu.more = nil
	}
}

// await returns when the first end bytes are readable, or never will be, or ctx
// is done.
func (b *block) await(ctx context.Context, end int64) error {
	for b.filled.Load() < end {
		more, err := b.change(end)
		if err != nil {
			return err
		}
		if more == nil {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// change returns the channel that is closed when end bytes are readable, or earlier, or
// never will be; nil if they are by now.
func (b *block) change(end int64) (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filled.Load() >= end {
		return nil, nil
	}
	if b.mu.err != nil {
		return nil, b.mu.err
	}
	if b.mu.more == nil {
		b.mu.more, b.mu.want = make(chan struct{}), end
	}
	b.mu.want = min(b.mu.want, end)
	return b.mu.more, nil
}

// start is the offset of the block in its version.
func (c *Cache) start(b *block) int64 { return b.index * c.unit }

// units is how many units n bytes are.
func (c *Cache) units(n int64) int64 { return (n + c.unit - 1) / c.unit }

// need is why a block is wanted.
type need struct {
	prio  budget.Priority
	ahead bool // nobody waits for it
	now   bool // somebody waits for this very block: more is evicted for it
}

// newBlockLocked adds an empty block of the units from i to before end, with one
// reference, to f, or returns nil if there is no memory even after eviction.
func (c *Cache) newBlockLocked(f *file, i, end int64, why need) *block {
	n := min(end*c.unit, f.version.Size) - i*c.unit
	if why.ahead && !why.now && !c.mayAheadLocked(n) {
		return nil
	}
	buf := c.takeLocked(n, why)
	if buf == nil {
		return nil
	}
	b := &block{file: f, index: i, buf: buf[:n], refs: 1, ahead: why.ahead, unread: true}
	for ; i < end; i++ {
		f.blocks[i] = b
	}
	f.unread++
	c.mu.unread += int64(cap(buf))
	c.mu.stats.Blocks++
	c.mu.stats.Bytes += int64(cap(buf))
	return b
}

// mayAheadLocked tells whether n bytes more may be read ahead. What was read ahead of
// readers that rest makes room.
func (c *Cache) mayAheadLocked(n int64) bool {
	limit := (c.window + c.window/2) * c.unit
	for c.mu.unread+n > limit {
		b := c.mu.ahead.oldest()
		if b == nil || b.file.active > 0 || c.heldLocked(b) {
			return c.mu.unread+n <= limit
		}
		c.mu.stats.Evictions++
		c.detachLocked(b)
	}
	return true
}

// takeLocked returns a buffer for n bytes that the budget has counted. A victim
// of the right size passes its buffer on, without a way through the budget: in
// a full cache that is the usual case.
func (c *Cache) takeLocked(n int64, why need) []byte {
	size := c.blockSize
	if n <= size/2 {
		size = min(size, (n+smallUnit-1)/smallUnit*smallUnit)
	}
	for !c.budget.TryAcquire(size, why.prio) {
		victim := c.victimLocked(why.now)
		if victim == nil || size > c.budget.Max() {
			return nil
		}
		c.mu.stats.Evictions++
		if int64(cap(victim.buf)) == size && c.budget.Wanted() == 0 {
			return c.stealLocked(victim)
		}
		c.detachLocked(victim)
	}
	if size < c.blockSize {
		return make([]byte, size)
	}
	if p, ok := c.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, size)
}

// victimLocked returns the idle block to go next, nil if there is none. What was
// read ahead of nobody goes first: of versions that nobody has open, or that
// nobody read while as many blocks were read for the first time as the cache
// holds. The other unread blocks are what readers come to next, and go last, and
// only where all may go: read-ahead that evicted read-ahead would fetch
// everything twice.
func (c *Cache) victimLocked(all bool) *block {
	unread := c.mu.ahead.oldest()
	if unread != nil && c.idleLocked(unread.file) {
		return unread
	}
	for _, l := range []*lru{&c.mu.done, &c.mu.idle} {
		if b := l.oldest(); b != nil {
			return b
		}
	}
	if all {
		return unread
	}
	return nil
}

func (c *Cache) idleLocked(f *file) bool {
	return f.handles == 0 || c.mu.firsts-f.read >= c.mu.stats.Blocks
}

// abandonLocked is for a version that nobody has open any more: what was read
// ahead of its readers goes before anything else.
func (c *Cache) abandonLocked(f *file) {
	if f.unread == 0 {
		return
	}
	for _, b := range f.blocks {
		if b.list == &c.mu.ahead {
			b.drop()
			c.mu.ahead.pushOldest(b)
		}
	}
}

// stealLocked takes an idle block's buffer, still counted in the budget.
func (c *Cache) stealLocked(b *block) []byte {
	buf := b.buf[:cap(b.buf)]
	c.unlinkLocked(b)
	c.mu.stats.Bytes -= int64(cap(buf))
	b.buf = nil
	return buf
}

// unlinkLocked takes b out of the index and the idle list.
func (c *Cache) unlinkLocked(b *block) {
	b.detached = true
	for i := range c.units(int64(len(b.buf))) {
		delete(b.file.blocks, b.index+i)
	}
	c.seenLocked(b)
	b.drop()
	c.mu.stats.Blocks--
	c.forgetLocked(b.file)
}

// detachLocked makes b unknown to new readers, and frees it once nobody uses it.
func (c *Cache) detachLocked(b *block) {
	if b.detached {
		return
	}
	c.unlinkLocked(b)
	if b.refs == 0 {
		c.freeLocked(b)
	}
}

// freeLocked gives b's memory back.
func (c *Cache) freeLocked(b *block) {
	buf := b.buf[:cap(b.buf)]
	b.buf = nil
	c.mu.stats.Bytes -= int64(len(buf))
	c.budget.Release(int64(len(buf)))
	if int64(len(buf)) == c.blockSize {
		c.pool.Put(&buf)
	}
}

// seenLocked: the block is no longer one that nobody has read.
func (c *Cache) seenLocked(b *block) {
	if !b.unread {
		return
	}
	b.unread = false
	b.file.unread--
	c.mu.unread -= int64(cap(b.buf))
}

// unpin ends one use of b, for which n bytes were read. Idle memory that others wait
// for goes at once.
func (c *Cache) unpin(b *block, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.read += int64(n)
	c.unpinLocked(b)
}

func (c *Cache) unpinLocked(b *block) {
	b.refs--
	if b.refs > 0 {
		return
	}
	switch {
	case b.detached:
		c.freeLocked(b)
	case c.budget.Wanted() > 0:
		c.mu.stats.Evictions++
		c.detachLocked(b)
	case b.unread && b.file.handles == 0:
		c.mu.ahead.pushOldest(b)
	case b.unread:
		c.mu.ahead.push(b)
	case b.read >= int64(len(b.buf)):
		c.mu.done.push(b)
		for c.mu.done.bytes > c.keepDone {
			c.detachLocked(c.mu.done.oldest())
		}
	default:
		c.mu.idle.push(b)
	}
}

// pinLocked begins a reader's use of a block that is in the index.
func (c *Cache) pinLocked(b *block) {
	b.refs++
	b.drop()
	if b.unread {
		c.seenLocked(b)
		c.mu.firsts++
	}
	b.file.read = c.mu.firsts
}

// shrink gives back n bytes of idle blocks, or all there are.
func (c *Cache) shrink(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n > 0 {
		b := c.victimLocked(true)
		if b == nil {
			return
		}
		n -= int64(cap(b.buf))
		c.mu.stats.Evictions++
		c.detachLocked(b)
	}
}

// lru is a list of blocks through their own links, so that moving one allocates
// nothing. root.next is the newest.
type lru struct {
	root  block
	bytes int64
}

func (l *lru) init() { l.root.prev, l.root.next = &l.root, &l.root }

func (l *lru) push(b *block) { l.insert(b, &l.root, l.root.next) }

// pushOldest makes b the first to go.
func (l *lru) pushOldest(b *block) { l.insert(b, l.root.prev, &l.root) }

func (l *lru) insert(b, before, after *block) {
	b.list, b.prev, b.next = l, before, after
	before.next, after.prev = b, b
	l.bytes += int64(cap(b.buf))
}

// drop takes b out of the list that it is in, if any.
func (b *block) drop() {
	if b.list == nil {
		return
	}
	b.list.bytes -= int64(cap(b.buf))
	b.prev.next, b.next.prev = b.next, b.prev
	b.list, b.prev, b.next = nil, nil, nil
}

func (l *lru) oldest() *block {
	if l.root.prev == &l.root {
		return nil
	}
	return l.root.prev
}
