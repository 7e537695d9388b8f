package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// errNoMemory: no block could be made; the read goes past the cache.
var errNoMemory = errors.New("no memory for a block")

// Handle reads one version. It is safe for concurrent use; the owner closes it
// once.
type Handle struct {
	cache *Cache
	file  *file
	fetch Fetch

	mu struct {
		sync.Mutex
		stream stream
		active int // reads at work
		closed bool
	}
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
		h.cache.release(h.file)
	}
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

// ahead tells the stream of a read, and returns how far to fetch.
func (h *Handle) ahead(first, last int64) (until int64) {
	c := h.cache
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.stream.next(first, last, limits{
		count: c.blocksOf(h.file), part: c.partOf(h.file), window: c.window, whole: h.file.version.Size <= c.whole,
	})
}

// short tells the stream that there was memory only for what is before edge.
func (h *Handle) short(edge int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.stream.short(edge)
}

func (h *Handle) end() {
	h.mu.Lock()
	h.mu.active--
	last := h.mu.closed && h.mu.active == 0
	h.mu.Unlock()
	if last {
		h.cache.release(h.file)
	}
}

// release ends a handle's hold on f.
func (c *Cache) release(f *file) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	first, last := off/h.cache.blockSize, (off+int64(len(want))-1)/h.cache.blockSize
	if err := h.begin(); err != nil {
		return 0, fmt.Errorf("read %q: %w", h.file.version.Key, err)
	}
	defer h.end()

	n, err := h.read(ctx, want, off, span{last: last, until: h.ahead(first, last)})
	if err != nil {
		return n, fmt.Errorf("read %q at %d: %w", h.file.version.Key, off+int64(n), err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// span is what a read wants fetched from the block where it is: up to last for
// itself, and ahead of it before until.
type span struct{ last, until int64 }

// need is why the read wants a block.
func (s span) need(block int64) need {
	if block > s.last {
		return need{prio: budget.Speculation, ahead: true}
	}
	return need{prio: budget.Read}
}

// read fills p, which lies within the version, block by block.
func (h *Handle) read(ctx context.Context, p []byte, off int64, want span) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		index := at / h.cache.blockSize
		from := at - index*h.cache.blockSize
		part := p[n : n+int(min(int64(len(p)-n), h.cache.blockLen(h.file, index)-from))]
		err := h.readBlock(ctx, index, want, part, from)
		if errors.Is(err, errNoMemory) {
			m, direct := h.readUncached(ctx, p[n:], at)
			return n + m, direct
		}
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// readBlock copies the bytes of one block from offset from on. That read-ahead
// failed is not this reader's failure: it asks once more for itself.
func (h *Handle) readBlock(ctx context.Context, index int64, want span, part []byte, from int64) error {
	for again := false; ; again = true {
		b, reached, err := h.cache.pin(ctx, h, index, want)
		if err != nil {
			return err
		}
		if reached < want.until {
			h.short(max(reached, want.last+1))
		}
		err = b.await(ctx, from+int64(len(part)))
		if err == nil {
			copy(part, b.buf[from:])
		}
		ahead := b.ahead
		h.cache.unpin(b)
		if err == nil || again || !ahead || ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return err
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
