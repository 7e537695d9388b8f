package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// smallBegin is how much Begin asks for when there is no memory to keep it, in
// bytes.
const smallBegin = 64 << 10

// Begin starts the fetch of the version's first bytes, or with tail of its last ones
// (tailFrom says how many), and returns when the store has begun to answer, with Fetch's
// error if it refused: where the head of an answer tells the version, it proves that
// this one is there. A version of up to Options.Whole bytes is fetched whole. It asks
// nothing if those bytes are there, in memory or on a disk, and waits for an answer that
// is on its way. When ctx is done it returns
// ctx's error at once, and the fetch goes on. It is no read: read-ahead does not
// know of it. asked tells whether the store was asked, or is being: not where the
// bytes are there, which proves nothing of the store.
func (h *Handle) Begin(ctx context.Context, tail bool) (asked bool, err error) {
	return h.beginAs(ctx, tail, need{prio: budget.Read, ahead: true, now: true})
}

// BeginAhead is Begin for a version that nobody asked for yet: its memory is
// read-ahead's, which goes before what readers need, and where there is none it asks
// nothing, and returns ErrNoMemory.
func (h *Handle) BeginAhead(ctx context.Context) (asked bool, err error) {
	return h.beginAs(ctx, false, need{prio: budget.Speculation, ahead: true})
}

func (h *Handle) beginAs(ctx context.Context, tail bool, why need) (asked bool, err error) {
	if err = h.begin(); err == nil {
		defer h.end()
		asked, err = h.beginFetch(ctx, tail, why)
	}
	if err != nil {
		return asked, fmt.Errorf("begin %q: %w", h.file.version.Key, err)
	}
	return asked, nil
}

func (h *Handle) beginFetch(ctx context.Context, tail bool, why need) (asked bool, err error) {
	if h.file.version.Size == 0 {
		return h.beginUncached(ctx)
	}
	for again := false; ; again = true {
		t, own, err := h.cache.first(ctx, h, tail, why)
		if errors.Is(err, ErrNoMemory) && why.now {
			return h.beginUncached(ctx)
		}
		if err != nil || t == nil {
			return false, err
		}
		select {
		case <-t.opened:
		case <-ctx.Done():
			return true, ctx.Err()
		}
		// What another asked for may have failed for a reason of its own.
		if t.err == nil || own || again || errors.Is(h.cache.why(t.err), ErrClosed) {
			return !t.local, h.cache.why(t.err)
		}
	}
}

// first returns the fetch of the first bytes, or the last ones, and whether it was
// started here, for which why is; nil if they are there.
func (c *Cache) first(ctx context.Context, h *Handle, tail bool, why need) (t *fetch, own bool, err error) {
	inParts := h.inParts()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, false, ErrClosed
	}
	count := c.units(h.file.version.Size)
	from, until := int64(0), min(c.perBlock, count)
	switch {
	case h.file.version.Size <= c.whole && !inParts:
		until = count
	case tail:
		from, until = c.tailFrom(h.file.version.Size), count
	}
	if b := h.file.blocks[from]; b != nil {
		if b.filled.Load() == int64(len(b.buf)) {
			return nil, false, nil
		}
		return b.fetch, false, nil
	}
	t = c.fetchLocked(ctx, h, from, until, func(i int64) need {
		if i > from {
			return need{prio: budget.Speculation, ahead: true}
		}
		return why
	})
	if t == nil {
		return nil, false, ErrNoMemory
	}
	return t, true, nil
}

// tailFrom is the first unit of what Begin fetches of the end of a version of that many
// bytes: a 512th, 64 KiB to 1 MiB, and what makes it whole units. Footers of column files
// are some kilobytes for each 100 MiB and rarely more, and the next read fetches the rest
// of one that is. A last unit of some bytes alone would hold no footer.
func (c *Cache) tailFrom(size int64) int64 {
	return max(0, size-max(c.unit, min(size/512, c.blockSize))) / c.unit
}

// why is err, or why a fetch met it: that the cache was closed.
func (c *Cache) why(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.mu.closed {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// beginUncached asks for the first bytes and leaves them.
func (h *Handle) beginUncached(ctx context.Context) (asked bool, err error) {
	h.cache.directs.Add(1)
	body, err := h.fetch(ctx, 0, min(h.file.version.Size, smallBegin))
	if err != nil {
		return true, err
	}
	asked = !isLocal(body)
	closeBody(body)
	return asked, nil
}
