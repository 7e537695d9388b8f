package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Rename moves the version src to dst in one step, under cond at dst, and
// returns what it is there. objectstore.ErrChanged if src is no longer there,
// ErrCrossDevice where the store has no such step. Renames and commits of one
// name wait for one another.
func (c *Committer) Rename(ctx context.Context, dst objectstore.Location, src objectstore.Object, cond objectstore.Cond) (objectstore.Object, error) {
	renamer, ok := c.store.(objectstore.Renamer)
	if !ok {
		return objectstore.Object{}, fmt.Errorf("rename %q to %q: %w", src.Key, dst.Key, objectstore.ErrCrossDevice)
	}
	unlock, err := c.targets.lockTwo(ctx, src.Location, dst)
	if err != nil {
		return objectstore.Object{}, err
	}
	defer unlock()
	obj, err := renamer.Rename(ctx, dst, src, cond)
	if err != nil && isUnclear(ctx, err) {
		if moved, ok := c.settleRename(ctx, dst, src); ok {
			return moved, nil
		}
	}
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("rename %q to %q: %w", src.Key, dst.Key, err)
	}
	return obj, nil
}

// settleRename tells whether src is at dst, and at its own name no more.
func (c *Committer) settleRename(ctx context.Context, dst objectstore.Location, src objectstore.Object) (objectstore.Object, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if _, err := c.store.Stat(ctx, src.Location); !errors.Is(err, objectstore.ErrNotExist) {
		return objectstore.Object{}, false
	}
	obj, err := c.store.Stat(ctx, dst)
	return obj, err == nil && obj.ETag == src.ETag
}
