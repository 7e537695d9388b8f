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

// Begin starts the fetch of the version's first bytes, and returns when the
// store has begun to answer, with Fetch's error if it refused: where the head of
// an answer tells the version, it proves that this one is there. A version of up
// to Options.Whole bytes is fetched whole. It asks nothing if the first bytes are
// there, and waits for an answer that is on its way. When ctx is done it returns
// ctx's error at once, and the fetch goes on. It is no read: read-ahead does not
// know of it. asked tells whether the store was asked, or is being: not where the
// bytes are there, which proves nothing of the store.
func (h *Handle) Begin(ctx context.Context) (asked bool, err error) {
	if err = h.begin(); err == nil {
		defer h.end()
		asked, err = h.beginFetch(ctx)
	}
	if err != nil {
		return asked, fmt.Errorf("begin %q: %w", h.file.version.Key, err)
	}
	return asked, nil
}

func (h *Handle) beginFetch(ctx context.Context) (asked bool, err error) {
	if h.file.version.Size == 0 {
		return true, h.beginUncached(ctx)
	}
	for again := false; ; again = true {
		t, own, err := h.cache.first(ctx, h)
		if errors.Is(err, errNoMemory) {
			return true, h.beginUncached(ctx)
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
			return true, h.cache.why(t.err)
		}
	}
}

// first returns the fetch of the first block, and whether it was started here;
// nil if the block is there.
func (c *Cache) first(ctx context.Context, h *Handle) (t *fetch, own bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, false, ErrClosed
	}
	if b := h.file.blocks[0]; b != nil {
		if b.filled.Load() == int64(len(b.buf)) {
			return nil, false, nil
		}
		return b.fetch, false, nil
	}
	until := int64(1)
	if h.file.version.Size <= c.whole {
		until = c.blocksOf(h.file)
	}
	t = c.fetchLocked(ctx, h, 0, until, func(i int64) need {
		if i > 0 {
			return need{prio: budget.Speculation, ahead: true}
		}
		return need{prio: budget.Read, ahead: true, now: true}
	})
	if t == nil {
		return nil, false, errNoMemory
	}
	return t, true, nil
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
func (h *Handle) beginUncached(ctx context.Context) error {
	h.cache.directs.Add(1)
	body, err := h.fetch(ctx, 0, min(h.file.version.Size, smallBegin))
	if err != nil {
		return err
	}
	closeBody(body)
	return nil
}
