// Package pause waits between two attempts, and no longer than it is wanted.
package pause

import (
	"context"
	"time"
)

// For waits for d, not at all if that is not positive, or until ctx is done,
// whose error it returns then. It may be called concurrently.
func For(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
