package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// recoverRename finishes a rename of an earlier mount.
func (c *Committer) recoverRename(ctx context.Context, r *staging.Rename, report *Report) {
	rec := r.Record()
	done, err := c.finishRename(ctx, r)
	switch {
	case err != nil:
		c.log.LogAttrs(ctx, slog.LevelError, "a rename that an earlier mount began is not finished",
			slog.String("id", rec.ID), slog.String("from", rec.Source.Key), slog.String("to", rec.Target.Key), slog.Any("error", err))
		report.Kept = append(report.Kept, rec)
	case done:
		report.Finished = append(report.Finished, rec)
	default:
		report.Undone = append(report.Undone, rec)
	}
}

// FinishRenames finishes the renames that were left half done, those of this process
// too: of which the store did not answer, and whose callers were told of an error.
// What can not be found out or done yet stays noted, and is nothing to log again. So
// are files that are published together ([Committer.PublishAll]).
func (c *Committer) FinishRenames(ctx context.Context) {
	c.finishBatches(ctx)
	for _, r := range c.area.Renames() {
		if ctx.Err() != nil {
			return
		}
		rec := r.Record()
		done, err := c.finishRename(ctx, r)
		if err == nil && done {
			c.log.LogAttrs(ctx, slog.LevelInfo, "a rename that was half done is finished",
				slog.String("id", rec.ID), slog.String("from", rec.Source.Key), slog.String("to", rec.Target.Key))
		}
	}
}

// FinishRename finishes one of them: done says that the object is at its new name, and
// else that nothing was renamed. With an error neither could be found out, or done, and
// the note stays.
func (c *Committer) FinishRename(ctx context.Context, r *staging.Rename) (done bool, err error) {
	return c.finishRename(ctx, r)
}

// finishRename removes the source of a rename whose copy is at the target. Else,
// done is false, the source was not touched. The note goes, unless err tells why
// neither could be found out or done.
func (c *Committer) finishRename(ctx context.Context, r *staging.Rename) (done bool, err error) {
	rec := r.Record()
	unlock, err := c.targets.lockTwo(ctx, rec.Source.Location, rec.Target)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, there := c.area.FindRename(rec.ID); !there {
		return true, nil // it ended while this waited
	}
	_, err = c.settleCopy(ctx, rec)
	if err == nil {
		done = true
		err = c.removeRecovered(ctx, rec)
	}
	if err == nil {
		err = c.registerLate(ctx, rec.Path, rec.Target)
	}
	if err != nil && !errors.Is(err, errNotDone) {
		return done, fmt.Errorf("finish the rename of %q to %q: %w", rec.Source.Key, rec.Target.Key, err)
	}
	if !done {
		if err = c.abortCopy(ctx, r); err != nil {
			return false, fmt.Errorf("give up the copy of %q to %q: %w", rec.Source.Key, rec.Target.Key, err)
		}
	}
	c.forget(ctx, r)
	return done, nil
}

// abortRename drops the note of a rename that is not under way.
func (c *Committer) abortRename(ctx context.Context, r *staging.Rename) error {
	rec := r.Record()
	unlock, err := c.targets.lockTwo(ctx, rec.Source.Location, rec.Target)
	if err != nil {
		return err
	}
	defer unlock()
	err = c.abortCopy(ctx, r)
	if err == nil {
		err = r.Drop()
	}
	if err != nil {
		return fmt.Errorf("abort the rename of %q to %q: %w", rec.Source.Key, rec.Target.Key, err)
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "a rename that was half done was dropped as asked",
		slog.String("id", rec.ID), slog.String("from", rec.Source.Key), slog.String("to", rec.Target.Key))
	return nil
}

// removeRecovered is removeSource for a rename of an earlier mount, or of long ago:
// its caller was told that it failed and may have written the old name anew, with
// the same bytes, which the store's own condition does not tell apart.
func (c *Committer) removeRecovered(ctx context.Context, r staging.Record) error {
	now, err := c.store.Stat(ctx, r.Source.Location)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !isVersion(now, *r.Source):
		c.logReplaced(ctx, r)
		return nil
	}
	_, err = c.removeSource(ctx, r)
	return err
}

// answerSkew bounds by how much the time in the answer to a write may be before
// the one that the store then tells of the object.
const answerSkew = 5 * time.Second

// isVersion tells whether now, a Stat's answer, is the version noted, and not
// another one with the same bytes and hence the same ETag. The time of a version
// of ours may be that of the answer to its write: only a later one tells.
func isVersion(now, noted objectstore.Object) bool {
	id := noted.Meta[objectstore.MetaWriteID]
	switch {
	case now.ETag != noted.ETag:
		return false
	case noted.Meta != nil && now.Meta[objectstore.MetaWriteID] != id:
		return false
	case noted.ModTime.IsZero():
		return true // a note from before it had the time
	case id != "":
		return !now.ModTime.After(noted.ModTime.Add(answerSkew))
	}
	return now.ModTime.Truncate(time.Second).Equal(noted.ModTime.Truncate(time.Second))
}
