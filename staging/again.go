package staging

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// appendSpool is writeSpool for bytes at the end. The first ones need the last
// block of the older object; where that is gone, as another appended to it since
// the open and the store keeps no older versions, the file begins again as what
// is there now. That ends: each time it is needed another's append was done.
func (f *File) appendSpool(ctx context.Context, p []byte) (n int, err error) {
	for {
		n, err = f.writeSpool(ctx, p, f.size)
		if !isGone(err) || !f.unappended() {
			return n, err
		}
		if again := f.beginAgain(ctx); again != nil {
			return 0, again
		}
	}
}

// isGone: the older object is no longer there to be read.
func isGone(err error) bool {
	return errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrNotExist)
}

// unappended tells whether the file is its older object, so far, in its writer's
// eyes.
func (f *File) unappended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec.Base != nil && f.size == f.rec.Base.Size && !f.mixed && f.cur.base != nil
}

// beginAgain makes the file begin as the object that has its name now.
func (f *File) beginAgain(ctx context.Context) error {
	store := f.area.opts.Store
	now, err := store.Stat(ctx, f.Record().Target)
	if errors.Is(err, objectstore.ErrNotExist) {
		return fmt.Errorf("the file was removed meanwhile: %w", objectstore.ErrChanged)
	}
	if err != nil {
		return err
	}
	older, err := pin(ctx, store, now)
	if isGone(err) {
		return nil // replaced once more: the next attempt tells
	}
	if err != nil {
		return err
	}
	next := newLayer(f.cur.spool.retain(), newSource(nil, older), now.Size)
	if err := f.switchBase(now); err != nil {
		next.release()
		return err
	}
	f.setLayer(next)
	return nil
}

// switchBase puts the new base on disk. The spool has nothing that counts: no
// block is marked by the time the record changes.
func (f *File) switchBase(now objectstore.Object) error {
	err := f.area.step("truncate", blocksName)
	if err == nil {
		err = f.blocks.Truncate(0)
	}
	if err == nil {
		err = f.cur.spool.file.Truncate(now.Size)
	}
	if err != nil {
		return err
	}
	match := now.Match
	if match == "" {
		match = now.ETag
	}
	f.mu.Lock()
	f.rec.Base, f.rec.Cond = objectCopy(&now), objectstore.Cond{IfMatch: match}
	f.rec.Whole, f.rec.Sum = false, ""
	f.size = now.Size
	f.mu.Unlock()
	return f.saveRecord(f.promised)
}
