package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// errEarlier: a publish that failed for its caller had taken effect, and the file
// was changed since. What is staged must not be taken for what is published.
var errEarlier = fmt.Errorf("an earlier version of the file was published after all: %w", objectstore.ErrChanged)

// commitUnsettled is commitFrozen, after a look at what came of the publish before
// it where nobody knows: nothing is sent a second time.
func (c *Committer) commitUnsettled(ctx context.Context, f *staging.File, z *staging.Frozen) (objectstore.Object, error) {
	if !z.Record.Unsettled {
		return c.commitFrozen(ctx, f, z)
	}
	obj, err := c.settleLate(ctx, f, z.Record)
	switch {
	case err == nil:
		return obj, c.published(ctx, z, obj, false)
	case errors.Is(err, errEarlier):
		_ = c.registerLate(ctx, z.Record.Path, z.Record.Target)
		return obj, err
	case errors.Is(err, errUnsettled):
		return obj, err
	}
	return c.commitFrozen(ctx, f, z)
}

// settleLate is settlePut for an unsettled r, whose bytes may be others by now: a
// program can go on writing after the error. They are compared, and errEarlier if
// r took effect with others.
func (c *Committer) settleLate(ctx context.Context, f *staging.File, r staging.Record) (objectstore.Object, error) {
	data := spoolOf(ctx, f)
	now, err := c.store.Stat(ctx, r.Target)
	obj, err := c.judgePut(ctx, r, now, err, data)
	if err != nil {
		return obj, err
	}
	// Of a version that another appended to, ours is the beginning.
	same := now.Size == r.Size || obj.ETag == overtaken && now.Size > r.Size
	if same && r.Size > 0 {
		if same, err = c.sameBytes(ctx, now, r.Size, data); err != nil {
			return obj, fmt.Errorf("%w: %w", errUnsettled, err)
		}
	}
	if !same {
		return obj, errEarlier
	}
	return obj, nil
}

// recoverUnsettled looks for what an earlier mount told its caller had failed.
// Unless it had taken effect it is kept, as whatever failed: by now the caller may
// have written it anew, removed it, or given it another name.
func (c *Committer) recoverUnsettled(ctx context.Context, f *staging.File, rec staging.Record, report *Report) *[]staging.Record {
	_, err := c.settleLate(ctx, f, rec)
	if err == nil {
		return c.finish(ctx, f, &report.Finished, report)
	}
	if errors.Is(err, errEarlier) {
		_ = c.registerLate(ctx, rec.Path, rec.Target)
	}
	c.log.LogAttrs(ctx, slog.LevelWarn, "a write that an earlier mount could not publish for certain is staged: see lakefs-mount recover",
		slog.String("id", rec.ID), slog.String("path", rec.Path), slog.Any("outcome", err))
	return &report.Kept
}

// spoolOf reads f's bytes as they are now.
func spoolOf(ctx context.Context, f *staging.File) io.ReaderAt {
	return fileReader(func(p []byte, off int64) (int, error) { return f.ReadAt(ctx, p, off) })
}
