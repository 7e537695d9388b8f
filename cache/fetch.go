package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrLength means that a body had more bytes than were asked for, or fewer.
var ErrLength = errors.New("answer of the wrong length")

// maxEmptyReads in a row without a byte or an error end a fetch.
const maxEmptyReads = 100

// fetch is one request for a run of blocks that follow each other.
type fetch struct {
	open   Fetch
	blocks []*block
	whole  int           // blocks that are complete; owned by the fetch's goroutine
	opened chan struct{} // closed when open has returned
	err    error         // of open; to be read after opened
	local  bool          // the body came from a disk, and proves nothing of the store; likewise
}

// pin returns the block with one more use, and sees to it that what want says
// is fetched; reached is where that ends for want of memory, else want.until.
// ErrNoMemory if there is none for the block; the caller unpins.
func (c *Cache) pin(ctx context.Context, h *Handle, index int64, want span) (b *block, reached int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, 0, ErrClosed
	}
	if b = h.file.blocks[index]; b != nil {
		c.mu.stats.Hits++
	} else {
		c.mu.stats.Misses++
		t := c.fetchLocked(ctx, h, index, want.until, func(i int64) need {
			n := want.need(i)
			n.now = i == index
			return n
		})
		if t == nil {
			return nil, 0, ErrNoMemory
		}
		b = t.blocks[0]
	}
	c.pinLocked(b)
	end := min(want.until, index+1+max(c.window, c.part))
	for i := index + 1; i < end; i++ {
		if h.file.blocks[i] == nil && c.fetchLocked(ctx, h, i, want.until, want.need) == nil {
			return b, i, nil
		}
	}
	return b, want.until, nil
}

// fetchLocked starts one fetch of the missing unit at index and of those after
// it that are missing too, as far as until, the size of a part and memory allow.
// nil if there is no memory for the first.
func (c *Cache) fetchLocked(ctx context.Context, h *Handle, index, until int64, why func(unit int64) need) *fetch {
	end := index + 1
	for end < until && h.file.blocks[end] == nil {
		end++
	}
	end = partEnd(index, end, c.partOf(h.file))
	t := &fetch{open: h.fetch, opened: make(chan struct{})}
	for i := index; i < end; {
		next := min((i/c.perBlock+1)*c.perBlock, end)
		b := c.newBlockLocked(h.file, i, next, why(i))
		if b == nil {
			break
		}
		b.fetch = t
		t.blocks = append(t.blocks, b)
		i = next
	}
	if len(t.blocks) == 0 {
		return nil
	}
	// The fetch serves all readers of its blocks: it keeps the values of the
	// first one's context, not its end.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.mu.fetches[t] = cancel
	c.mu.stats.Fetches++
	c.running.Go(func() {
		defer cancel()
		c.finish(t, c.fill(own, t))
	})
	return t
}

// partOf is the most units that one fetch of f covers.
func (c *Cache) partOf(f *file) int64 {
	if f.version.Size <= c.whole {
		return c.units(f.version.Size)
	}
	return c.part
}

// fill reads the range into the blocks, each of which is done with when it is whole.
func (c *Cache) fill(ctx context.Context, t *fetch) error {
	var n int64
	for _, b := range t.blocks {
		n += int64(len(b.buf))
	}
	body, err := t.open(ctx, c.start(t.blocks[0]), n)
	t.err, t.local = err, isLocal(body)
	close(t.opened)
	if err != nil {
		return err
	}
	defer closeBody(body)
	for i, b := range t.blocks {
		if err := c.fillBlock(b, body, i == len(t.blocks)-1); err != nil {
			return err
		}
		t.whole++
		c.unpin(b, 0)
	}
	return nil
}

// fillBlock reads one block, and publishes bytes as they come. The final bytes
// of the range are published only when the body has ended after them.
func (c *Cache) fillBlock(b *block, body io.Reader, last bool) error {
	n, err := c.readFull(body, b.buf, last, b.publish)
	if err != nil {
		return err
	}
	b.publish(n)
	return nil
}

// readFull reads all of p, calling progress before it is full, and with last
// sees to it that the body ends there. It returns how much it read.
func (c *Cache) readFull(body io.Reader, p []byte, last bool, progress func(filled int)) (int, error) {
	filled, empty := 0, 0
	for {
		n, err := body.Read(p[filled:])
		filled += n
		c.fetchedBytes.Add(int64(n))
		switch {
		case filled == len(p):
			if last {
				err = expectEnd(body, err)
			} else {
				err = nil // the next Read tells again
			}
			return filled, err
		case errors.Is(err, io.EOF):
			return filled, errShort
		case err != nil:
			return filled, err
		case n > 0:
			empty = 0
			progress(filled)
		default:
			if empty++; empty > maxEmptyReads {
				return filled, io.ErrNoProgress
			}
		}
	}
}

// errShort: a body ended well, but early.
var errShort = fmt.Errorf("%w: %w", ErrLength, io.ErrUnexpectedEOF)

// expectEnd checks that the body is over; err is what its last Read returned.
func expectEnd(body io.Reader, err error) error {
	var one [1]byte
	for range maxEmptyReads {
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var n int
		if n, err = body.Read(one[:]); n > 0 {
			return ErrLength
		}
	}
	return io.ErrNoProgress
}

// closeBody ends a body that was read as far as it is wanted; what Close says
// of it can change nothing any more.
func closeBody(body io.Closer) { _ = body.Close() }

// finish ends a fetch. Blocks that are not whole fail; those that were are
// kept, unless the answer as a whole had the wrong length.
func (c *Cache) finish(t *fetch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.fetches, t)
	defer func() { t.open, t.blocks = nil, nil }() // its blocks keep t
	if err == nil {
		return
	}
	if c.mu.closed {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	for i, b := range t.blocks {
		if i < t.whole && !errors.Is(err, ErrLength) {
			continue
		}
		c.detachLocked(b)
		if i >= t.whole {
			b.fail(err)
			c.unpinLocked(b)
		}
	}
}
