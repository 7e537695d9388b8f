package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// errHalf is what a batch's error says beside its cause where a part of it is published.
var errHalf = errors.New("what was published of it could not be taken back yet")

// errUnseen: a request that was not answered may take effect yet. Who is asked later
// knows.
var errUnseen = fmt.Errorf("what came of a request shows later: %w", objectstore.ErrUnavailable)

// takeBack removes from the store what was published of a batch for which cause is in
// the way, and makes the files what they were. It returns cause, and what of that could
// not be done.
func (b *batch) takeBack(ctx context.Context, cause error) error {
	if err := b.note.SetState(staging.BatchUndoing, cause.Error()); err != nil {
		// Ended before the rest is done, the next mount publishes what is left.
		b.c.log.LogAttrs(ctx, slog.LevelWarn, "that a publish is taken back is not on disk", slog.Any("error", err))
	}
	left := b.each(ctx, b.takeBackOne)
	for _, f := range b.files { // those too that no request was made for
		if err := f.z.PutBack(f.was, f.done); err != nil && left == nil {
			left = err
		}
	}
	return b.ended(cause, errHalf, left)
}

// ended drops the note of a batch that could not be published for cause, unless left is
// in the way of that: then half says how it stands.
func (b *batch) ended(cause, half, left error) error {
	if left == nil {
		left = b.note.Drop()
	}
	if left != nil {
		return fmt.Errorf("%w (%w: %w)", cause, half, left)
	}
	return cause
}

func (b *batch) takeBackOne(ctx context.Context, f *batchFile) error {
	if !f.done && !f.unclear {
		return nil
	}
	removed, err := b.c.unpublish(ctx, taken{id: f.was.ID, at: f.to.Target, made: f.made, file: f.File})
	switch {
	case err != nil:
		return fmt.Errorf("take back %q: %w", f.to.Path, err)
	case f.unclear && !removed:
		return fmt.Errorf("take back %q: %w", f.to.Path, errUnseen)
	case f.File.Adopted(): // and removed or replaced by others since
		return f.z.Fail(ctx, fmt.Errorf("%q was published, and removed by others: %w", f.to.Path, staging.ErrDamaged))
	}
	return nil
}

// taken is a published file that is to be taken back.
type taken struct {
	id   string // its write id
	at   objectstore.Location
	made objectstore.Object // what the store answered; zero: that is not known
	file *staging.File      // nil: it is gone
}

// unpublish removes the object that a write made. A spool that the store took is in
// its place again then. Where another's version is by now, or none, nothing is done,
// and removed is false.
func (c *Committer) unpublish(ctx context.Context, t taken) (removed bool, err error) {
	again := retries{limit: c.retry}
	for {
		removed, err = c.unpublishOnce(ctx, t)
		if err == nil || !isUnclear(ctx, err) {
			return removed, err
		}
		if more, ended := again.next(ctx); !more {
			return false, join(err, ended)
		}
	}
}

func (c *Committer) unpublishOnce(ctx context.Context, t taken) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	now, err := c.store.Stat(ctx, t.at)
	if errors.Is(err, objectstore.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, told := now.Meta[objectstore.MetaWriteID]
	if id != t.id && (told || t.made.ETag == "" || t.made.ETag != now.ETag) {
		c.log.LogAttrs(ctx, slog.LevelWarn, "a file that was to be taken back was replaced meanwhile: what is there stays",
			slog.String("id", t.id), slog.String("key", t.at.Key))
		return false, nil
	}
	if adopter, ok := c.store.(objectstore.Adopter); ok && t.file != nil && t.file.Adopted() {
		err = adopter.Return(ctx, now, t.file.SpoolPath())
	} else {
		err = c.removeObject(ctx, now)
	}
	if errors.Is(err, objectstore.ErrChanged) { // replaced, or removed, since
		return false, nil
	}
	return err == nil, err
}

// removeObject removes a version, or where the store cannot tell them apart what is
// at its location.
func (c *Committer) removeObject(ctx context.Context, o objectstore.Object) error {
	if deleter, ok := c.store.(objectstore.VersionDeleter); ok {
		return deleter.DeleteVersion(ctx, o)
	}
	for _, err := range c.store.Delete(ctx, []objectstore.Location{o.Location}) {
		if err != nil {
			return err
		}
	}
	return nil
}
