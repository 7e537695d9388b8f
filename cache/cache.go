// Package cache reads ranges of immutable versions of objects, from memory
// where it can.
//
// Bytes are known in units of one size by (bucket, key, ETag, size, index), kept in
// blocks of one unit or several that follow each other, and fetched as ranges of one
// or more blocks. Guarantees:
//
//   - one fetch of a block at a time, however many readers: they all read from
//     the same block, and get their bytes as these arrive;
//   - a reader that is interrupted returns at once, and disturbs neither the
//     fetch nor other readers: a fetch runs until it is done or the cache closes;
//   - nothing but what the store answered in full is kept: a body that ends
//     early, goes on too long or fails gives its readers an error, and the next
//     reader a new fetch;
//   - no request begins at or past the end of the version, or reaches over it;
//   - memory is taken from the budget before it is used; when there is none,
//     reads go past the cache, and never wait for memory;
//   - a block that someone reads is not given to another; idle blocks go least
//     recently used first, also when others wait for memory, and those before
//     them that were read ahead and that nobody came for, or that were read to their
//     end: the reader's own cache has those, and few are kept;
//   - who reads on from where reading was is read ahead of, by several fetches
//     at once, for one connection is slower than a reader; others are not. All who
//     are read ahead of share one window, and who rests gives his part back.
//
// Memory of freed blocks passes through a pool that the garbage collector
// empties; the budget does not count what lies there.
//
// Lock order: Handle.mu, Cache.mu, a block's, the budget's. None is held while bytes
// are fetched or copied.
package cache

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// Defaults of Options, in bytes.
const (
	DefaultUnit      = 64 << 10
	DefaultBlockSize = 1 << 20
	DefaultPart      = 2 << 20
	DefaultWindow    = 64 << 20
	DefaultWhole     = 8 << 20
	DefaultDone      = 16 << 20
)

// ErrClosed means that the cache or the handle was closed.
var ErrClosed = errors.New("cache closed")

// Options of a cache; the zero value keeps nothing, as it has no memory.
type Options struct {
	Budget *budget.Budget // shared by the process; nil: no memory
	// BlockSize is what is kept, and dropped, as one at most, in bytes; a multiple of
	// Unit. 0: DefaultBlockSize.
	BlockSize int64
	// Unit is the least that is fetched, in bytes: reads are rounded to it. 0:
	// DefaultUnit, or BlockSize if that is less.
	Unit int64
	// Part is what one fetch asks for at most, in bytes, rounded down to whole
	// blocks but one; 0: DefaultPart.
	Part int64
	// Window is how far sequential readers are read ahead of, in bytes, all together,
	// as far as half the budget allows; 0: DefaultWindow, less than 0: not at all.
	Window int64
	// Done is how many bytes are kept at most that were read to the end of their
	// block; 0: DefaultDone.
	Done int64
	// Rested is called when readers rest and much memory was given back; nil: nobody is.
	Rested func()
	// Whole is the size in bytes of the largest version that is fetched at once
	// when it is read from its start; 0: DefaultWhole, less than 0: none is.
	Whole int64
}

// Version names one immutable version of an object and its exact size in bytes.
type Version struct {
	Bucket, Key, ETag string
	Size              int64
}

// Fetch opens n bytes of a version from off on. The range lies within the
// version, and the body must have exactly n bytes. Opening and reading must end
// soon after ctx is done. A fetch may begin and go on after the handle it was
// given to is closed, but not after the cache is.
type Fetch func(ctx context.Context, off, n int64) (io.ReadCloser, error)

// Stats counts since New; Bytes and Blocks are of this moment.
type Stats struct {
	Hits         int64 // blocks read that were there, or on their way
	Misses       int64 // blocks read that had to be fetched
	Fetches      int64 // ranges asked for, read-ahead and uncached reads included
	FetchedBytes int64 // bytes that arrived
	Uncached     int64 // reads past the cache for want of memory
	Evictions    int64 // blocks dropped for others
	Bytes        int64 // memory held, of the budget
	Blocks       int64
}

// Cache is safe for concurrent use. Close it before the process gives up what
// its fetches need.
type Cache struct {
	budget    *budget.Budget
	blockSize int64
	unit      int64
	perBlock  int64     // units
	part      int64     // units
	window    int64     // units
	whole     int64     // bytes
	keepDone  int64     // bytes
	rested    func()    // or nil
	pool      sync.Pool // *[]byte of blockSize
	unhook    func()    // from the budget
	running   sync.WaitGroup

	fetchedBytes, uncached, directs atomic.Int64

	mu struct {
		sync.Mutex
		closed  bool
		files   map[name][]*file
		idle    lru   // whole blocks that nobody reads at the moment
		ahead   lru   // whole blocks that nobody ever read
		done    lru   // whole blocks that were read to their end
		unread  int64 // bytes of blocks that nobody ever read, those on their way too
		firsts  int64 // reads of a block that were the first of it
		readers readers
		fetches map[*fetch]context.CancelFunc
		stats   Stats
	}
}

type name struct{ bucket, key string }

// file is what the cache has of one version; all fields but version are guarded
// by Cache.mu.
type file struct {
	version Version
	handles int
	active  int              // handles of it that are read ahead of, and do not rest
	at      time.Time        // of the last read
	blocks  map[int64]*block // by unit; a block is there once for each of its units
	unread  int              // of blocks
	read    int64            // Cache.mu.firsts when a reader was here last
}

// New returns an empty cache.
func New(o Options) *Cache {
	c := &Cache{budget: o.Budget, blockSize: o.BlockSize}
	if c.budget == nil {
		c.budget = budget.New(0)
	}
	if c.blockSize <= 0 {
		c.blockSize = DefaultBlockSize
	}
	c.unit = min(orDefault(o.Unit, DefaultUnit), c.blockSize)
	c.perBlock = c.blockSize / c.unit
	c.part = max(orDefault(o.Part, DefaultPart)/c.blockSize, 1) * c.perBlock
	c.window = max(min(orDefault(o.Window, DefaultWindow), c.budget.Max()/2)/c.unit, 0)
	c.whole = orDefault(o.Whole, DefaultWhole)
	c.keepDone = orDefault(o.Done, DefaultDone)
	c.rested = o.Rested
	c.mu.files = make(map[name][]*file)
	c.mu.fetches = make(map[*fetch]context.CancelFunc)
	c.mu.idle.init()
	c.mu.ahead.init()
	c.mu.done.init()
	c.unhook = c.budget.OnPressure(c.shrink)
	return c
}

func orDefault(n, otherwise int64) int64 {
	if n == 0 {
		return otherwise
	}
	return n
}

// Window is how far a sequential reader is read ahead of, in bytes.
func (c *Cache) Window() int64 { return c.window * c.unit }

// Whole is the size in bytes of the largest version that is fetched at once.
func (c *Cache) Whole() int64 { return c.whole }

// Open returns a handle that reads v through fetch. It does no I/O. Handles of
// one version share its blocks.
func (c *Cache) Open(v Version, fetch Fetch) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := name{v.Bucket, v.Key}
	for _, f := range c.mu.files[n] {
		if f.version == v {
			f.handles++
			return newHandle(c, f, fetch)
		}
	}
	f := &file{version: v, handles: 1, blocks: make(map[int64]*block), read: c.mu.firsts, at: time.Now()}
	c.mu.files[n] = append(c.mu.files[n], f)
	return newHandle(c, f, fetch)
}

// forgetLocked takes f out of the index when nothing refers to it any more.
func (c *Cache) forgetLocked(f *file) {
	if f.handles > 0 || len(f.blocks) > 0 {
		return
	}
	n := name{f.version.Bucket, f.version.Key}
	rest := c.mu.files[n]
	for i, g := range rest {
		if g == f {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(c.mu.files, n)
		return
	}
	c.mu.files[n] = rest
}

// Drop forgets all blocks of every version of an object. Readers at work finish
// on what they have; handles stay usable and fetch again.
func (c *Cache) Drop(bucket, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.mu.files[name{bucket, key}] {
		for _, b := range f.blocks {
			c.detachLocked(b)
		}
		c.forgetLocked(f)
	}
}

// Stats returns the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.FetchedBytes = c.fetchedBytes.Load()
	s.Uncached = c.uncached.Load()
	s.Fetches += c.directs.Load()
	return s
}

// Close ends all fetches and waits for them, and gives all memory back, that of
// blocks being copied at this moment when their readers are done. Waiting and
// later reads get ErrClosed; a read past the cache ends with its own context.
// It may be called again.
func (c *Cache) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.readers.stop()
	for _, cancel := range c.mu.fetches {
		cancel()
	}
	c.mu.Unlock()
	c.unhook()
	c.running.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, files := range c.mu.files {
		for _, f := range files {
			for _, b := range f.blocks {
				c.detachLocked(b)
			}
		}
	}
}
