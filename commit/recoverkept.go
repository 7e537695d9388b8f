package commit

import (
	"context"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// rebaseKept has kept appends begin as the version of their target that this
// recovery has published: the one that they began as is gone by that, and a store
// without older versions could not have them read, or saved.
func (c *Committer) rebaseKept(ctx context.Context, report *Report) {
	made := make(map[objectstore.Location]bool)
	for _, list := range [][]staging.Record{report.Finished, report.Redone} {
		for _, rec := range list {
			made[rec.Target] = true
		}
	}
	for i, rec := range report.Kept {
		if !made[rec.Target] || !rec.Append || rec.Base == nil || rec.Unsettled || rec.State == staging.Publishing {
			continue
		}
		now, err := c.rebaseOne(ctx, rec)
		if err != nil {
			c.log.LogAttrs(ctx, slog.LevelWarn, "a staged append begins as a version that is gone: it can be published, and not be read",
				slog.String("id", rec.ID), slog.String("path", rec.Path), slog.Any("error", err))
			continue
		}
		report.Kept[i] = now
	}
}

func (c *Committer) rebaseOne(ctx context.Context, rec staging.Record) (staging.Record, error) {
	f, err := c.find(rec.ID)
	if err != nil {
		return rec, err
	}
	z, err := f.Freeze(ctx)
	if err != nil {
		return rec, err
	}
	defer z.Release()
	now, err := c.store.Stat(ctx, rec.Target)
	if err == nil {
		err = z.Rebase(ctx, now)
	}
	return z.Record, err
}
