package cache

import (
	"context"
	"fmt"
)

// Begin asks for the first bytes of the version, and returns when the store has
// begun to answer: with Fetch's error if it refused. It proves that the version
// is there to a store that says so in the answer's head.
func (h *Handle) Begin(ctx context.Context) error {
	body, err := h.fetch(ctx, 0, min(h.file.version.Size, smallBegin))
	if err != nil {
		return fmt.Errorf("begin %q: %w", h.file.version.Key, err)
	}
	closeBody(body)
	return nil
}

// smallBegin is how much Begin asks for when there is no memory to keep it.
const smallBegin = 64 << 10
