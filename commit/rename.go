package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Move is a rename that is asked for: the version From goes to the location To,
// under Cond there.
type Move struct {
	From objectstore.Object
	To   objectstore.Location
	Cond objectstore.Cond
	// Path is that of To in the tree, whose partition is registered first; "": none is.
	Path string
	// Registered: the caller has registered the partition ([Committer.Register]).
	Registered bool
}

// Rename moves a version, and returns what it is at its new name: in one step of the store ([objectstore.Renamer]), else by a copy and the
// removal of src ([objectstore.VersionDeleter]), noted on disk before it begins;
// [Committer.Recover] finishes it. objectstore.ErrChanged if it is no longer
// there, ErrCrossDevice where the store has neither. Renames and commits of one
// name wait for one another.
//
// Staged files that began as the version, or copy it, wait meanwhile, and read it at
// its new name from then on ([staging.Area.BeginMove]).
//
// Of two steps the second may fail. Another's version that is at the old name by
// then stays there, and the rename is done. A removal that the store refuses takes
// the copy back, unless it replaced something; one without an answer is left to
// Recover. Either is an error that says what is where.
//
// The partition of the new name is registered before anything moves: a rename that
// fails has not taken place, and programs go on to use the old name. Where the
// catalog does not take the partition the error is objectstore.ErrPermission, if it
// refused, or none of the sentinels.
func (c *Committer) Rename(ctx context.Context, m Move) (objectstore.Object, error) {
	unlock, err := c.targets.lockTwo(ctx, m.From.Location, m.To)
	if err != nil {
		return objectstore.Object{}, err
	}
	defer unlock()
	moving, err := c.area.BeginMove(ctx, m.From) // after the targets: as a commit
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("rename %q to %q: %w", m.From.Key, m.To.Key, err)
	}
	defer moving.End()
	obj, err := c.rename(ctx, m)
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("rename %q to %q: %w", m.From.Key, m.To.Key, err)
	}
	moving.Moved(obj)
	return obj, nil
}

func (c *Committer) rename(ctx context.Context, m Move) (objectstore.Object, error) {
	if renamer, ok := c.store.(objectstore.Renamer); ok {
		return c.renameAtOnce(ctx, renamer, m)
	}
	if _, ok := c.store.(objectstore.VersionDeleter); ok {
		return c.renameByCopy(ctx, m)
	}
	return objectstore.Object{}, objectstore.ErrCrossDevice
}

func (c *Committer) renameAtOnce(ctx context.Context, renamer objectstore.Renamer, m Move) (objectstore.Object, error) {
	if err := c.registerFirst(ctx, m); err != nil {
		return objectstore.Object{}, err
	}
	obj, err := renamer.Rename(ctx, m.To, m.From, m.Cond)
	if err != nil && isUnclear(ctx, err) {
		if moved, ok := c.settleRename(ctx, m.To, m.From); ok {
			return moved, nil
		}
	}
	return obj, err
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
