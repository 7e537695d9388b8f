package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// ErrNoMemory means that there was no memory for a block. A read goes past the
// cache then.
var ErrNoMemory = errors.New("no memory for a block")

// enoughWait is how long a reader waits for read-ahead that fails in the end, at most,
// to ask once more.
const enoughWait = time.Second

// Handle reads one version. It is safe for concurrent use; the owner closes it
// once.
type Handle struct {
	cache *Cache
	file  *file
	fetch Fetch

	mu struct {
		sync.Mutex
		ahead  readahead
		active int // reads at work
		closed bool
		parts  bool // see InParts
		exact  bool // see Exactly
	}

	// Guarded by Cache.mu.
	reading bool      // it is in Cache.mu.readers
	at      time.Time // of the last read
}

func newHandle(c *Cache, f *file, fetch Fetch) *Handle {
	return &Handle{cache: c, file: f, fetch: fetch}
}

// Close ends the use of the handle: later reads get ErrClosed, those at work
// finish. Blocks stay in the cache for the next handle of the version.
func (h *Handle) Close() {
	h.mu.Lock()
	last := !h.mu.closed && h.mu.active == 0
	h.mu.closed = true
	h.mu.Unlock()
	if last {
		h.cache.release(h)
	}
}

// InParts says that the version is likely to be read in part: reading its start
// fetches no more than that, however small it is.
func (h *Handle) InParts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.parts = true
}

// Exactly says that the reader reads ahead by itself: its reads fetch the units that they
// touch, and no more. It is InParts, too.
func (h *Handle) Exactly() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.parts, h.mu.exact = true, true
}

func (h *Handle) inParts() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.parts
}

// begin counts a use in.
func (h *Handle) begin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return ErrClosed
	}
	h.mu.active++
	return nil
}

// ahead tells the read-ahead of a read, and returns how far to fetch.
func (h *Handle) ahead(first, last int64) (until int64) {
	c := h.cache
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.exact {
		return last + 1
	}
	until = h.mu.ahead.next(first, last, limits{
		count: c.units(h.file.version.Size), part: c.partOf(h.file), window: c.share(h),
		start: c.perBlock, gap: c.perBlock / 2, back: 8 * c.perBlock, whole: h.file.version.Size <= c.whole && !h.mu.parts,
	})
	if until > last+1 {
		c.readAhead(h)
	}
	return until
}

// short tells the read-ahead that there was memory only for what is before edge.
func (h *Handle) short(edge int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.ahead.short(edge)
}

func (h *Handle) end() {
	h.mu.Lock()
	h.mu.active--
	last := h.mu.closed && h.mu.active == 0
	h.mu.Unlock()
	if last {
		h.cache.release(h)
	}
}

// release ends a handle's hold on its version.
func (c *Cache) release(h *Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restLocked(h)
	f := h.file
	f.handles--
	if f.handles == 0 {
		c.abandonLocked(f)
	}
	c.forgetLocked(f)
}

// ReadAt reads as io.ReaderAt does: all of p, or fewer bytes with io.EOF at the
// end of the version or with the error that stopped it. When ctx is done it
// returns ctx's error at once, unless the bytes are already there. A body of
// the wrong length is io.ErrUnexpectedEOF or ErrLength. p is not touched after
// the return.
func (h *Handle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	size := h.file.version.Size
	switch {
	case off < 0:
		return 0, fmt.Errorf("read %q at %d: %w", h.file.version.Key, off, iofs.ErrInvalid)
	case len(p) == 0:
		return 0, nil
	case off >= size:
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), size-off)]
	if err := h.begin(); err != nil {
		return 0, fmt.Errorf("read %q: %w", h.file.version.Key, err)
	}
	defer h.end()

	n, err := h.read(ctx, want, off, func(b *block, from int64, part []byte) {
		copy(part, b.buf[from:])
		h.cache.unpin(b, len(part))
	})
	if err != nil {
		return n, fmt.Errorf("read %q at %d: %w", h.file.version.Key, off+int64(n), err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// span is what a read wants fetched from the unit where it is: up to last for
// itself, and ahead of it before until.
type span struct{ last, until int64 }

// need is why the read wants a block from unit on.
func (s span) need(unit int64) need {
	if unit > s.last {
		return need{prio: budget.Speculation, ahead: true}
	}
	return need{prio: budget.Read}
}

// read has use called for each piece of p, which lies within the version, with the
// pinned block that has its bytes from offset from on; use unpins the block. Bytes
// that there is no memory for are put into p.
func (h *Handle) read(ctx context.Context, p []byte, off int64, use func(b *block, from int64, part []byte)) (int, error) {
	c := h.cache
	first, last := off/c.unit, (off+int64(len(p))-1)/c.unit
	want := span{last: last, until: h.ahead(first, last)}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		b, err := h.await(ctx, at, int64(len(p)-n), want)
		if errors.Is(err, ErrNoMemory) {
			m, direct := h.readUncached(ctx, p[n:], at)
			return n + m, direct
		}
		if err != nil {
			return n, err
		}
		from := at - c.start(b)
		part := p[n : n+int(min(int64(len(p)-n), int64(len(b.buf))-from))]
		use(b, from, part)
		n += len(part)
	}
	return n, nil
}

// await returns the pinned block that has the byte at off, when that and those of the
// n that follow are there as far as it has them. That read-ahead failed is not this
// reader's failure: it asks once more for itself, unless it has waited for that long:
// a store that was silent all the time is not waited for twice.
func (h *Handle) await(ctx context.Context, off, n int64, want span) (*block, error) {
	c := h.cache
	for again := false; ; again = true {
		b, reached, err := c.pin(ctx, h, off/c.unit, want)
		if err != nil {
			return nil, err
		}
		if reached < want.until {
			h.short(max(reached, want.last+1))
		}
		began := time.Now()
		if err = b.await(ctx, min(off-c.start(b)+n, int64(len(b.buf)))); err == nil {
			return b, nil
		}
		ahead := b.ahead
		c.unpin(b, 0)
		if again || !ahead || ctx.Err() != nil || errors.Is(err, ErrClosed) || time.Since(began) > enoughWait {
			return nil, err
		}
	}
}

// readUncached fetches p for this reader alone, on its own context.
func (h *Handle) readUncached(ctx context.Context, p []byte, off int64) (int, error) {
	h.cache.uncached.Add(1)
	h.cache.directs.Add(1)
	body, err := h.fetch(ctx, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer closeBody(body)
	n, err := h.cache.readFull(body, p, true, func(int) {})
	if err != nil && ctx.Err() != nil {
		return n, ctx.Err()
	}
	return n, err
}
