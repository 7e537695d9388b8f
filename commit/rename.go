package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Rename moves the version src to dst under cond at dst, and returns what it is
// there: in one step of the store ([objectstore.Renamer]), else by a copy and the
// removal of src ([objectstore.VersionDeleter]), noted on disk before it begins;
// [Committer.Recover] finishes it. objectstore.ErrChanged if src is no longer
// there, ErrCrossDevice where the store has neither. Renames and commits of one
// name wait for one another.
//
// Of two steps the second may fail. Another's version that is at the old name by
// then stays there, and the rename is done. A removal that the store refuses takes
// the copy back, unless it replaced something; one without an answer is left to
// Recover. Either is an error that says what is where.
func (c *Committer) Rename(ctx context.Context, dst objectstore.Location, src objectstore.Object, cond objectstore.Cond) (objectstore.Object, error) {
	unlock, err := c.targets.lockTwo(ctx, src.Location, dst)
	if err != nil {
		return objectstore.Object{}, err
	}
	defer unlock()
	obj, err := c.rename(ctx, dst, src, cond)
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("rename %q to %q: %w", src.Key, dst.Key, err)
	}
	return obj, nil
}

func (c *Committer) rename(ctx context.Context, dst objectstore.Location, src objectstore.Object, cond objectstore.Cond) (objectstore.Object, error) {
	if renamer, ok := c.store.(objectstore.Renamer); ok {
		obj, err := renamer.Rename(ctx, dst, src, cond)
		if err != nil && isUnclear(ctx, err) {
			if moved, ok := c.settleRename(ctx, dst, src); ok {
				return moved, nil
			}
		}
		return obj, err
	}
	if _, ok := c.store.(objectstore.VersionDeleter); ok {
		return c.renameByCopy(ctx, dst, src, cond)
	}
	return objectstore.Object{}, objectstore.ErrCrossDevice
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
