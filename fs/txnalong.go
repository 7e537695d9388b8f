package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// The files of a transaction that its commit does not publish: those of local names.
// They go to their places as all else does, and live in the mount alone there.

// resolveAlong finds where they go. A name that is taken is refused, unless what has it
// is cleared, or is a local file that nobody has open, and all is overwritten.
func (t *transaction) resolveAlong(ctx context.Context, overwrite bool) error {
	for i := range t.along {
		s := &t.along[i]
		target, err := t.fs.View.Resolve(ctx, s.path)
		if err == nil {
			err = t.mayReplace(ctx, s.path, overwrite)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", s.path, err)
		}
		s.to = newWrite(s.path, target)
		s.to.Cond = objectstore.Cond{IfNoneMatch: true}
		s.to.Hold, s.to.Final = staging.Local, false
	}
	return nil
}

func (t *transaction) mayReplace(ctx context.Context, path string, overwrite bool) error {
	if old, _, _ := t.fs.names.stagedAt(path, 0); old != nil {
		if overwrite && old.holding() == staging.Local && old.unused() {
			return nil
		}
		return objectstore.ErrExist
	}
	_, err := t.fs.lookup(ctx, path)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return nil
	case err != nil:
		return err
	case slices.ContainsFunc(t.clear, func(c clearing) bool { return c.path == path }):
		return nil
	}
	return objectstore.ErrExist
}

// moveAlong moves them, once all else is published. That a record could not tell of it
// is logged: the next mount has the file in the transaction again.
func (t *transaction) moveAlong(ctx context.Context) {
	f := t.fs
	for _, s := range t.along {
		dir, _ := parent(s.path)
		t.makeAlong(dir)
		if err := f.unlinkStaged(ctx, s.path); err != nil { // what an overwrite replaces
			f.fail("drop", s.path, err)
		}
		if err := s.retarget(s.to); err != nil {
			f.fail("record", s.path, err)
		}
		m := move{fs: f, from: s.was.Path, to: s.path}
		m.renamed(nil, s.to.Target)
		f.sumsMoved(ctx, s.path)
	}
}

// makeAlong makes the new directories in which nothing is published the mount's, where
// the store has none.
func (t *transaction) makeAlong(dir string) {
	if !t.fs.flat {
		return
	}
	for ; t.fresh.has(dir); dir, _ = parent(dir) {
		if slices.ContainsFunc(t.files, func(s treeFile) bool { return below(s.path, dir) }) {
			return
		}
		t.fs.warnLocal(dir, t.fs.local.make(dir))
	}
}
