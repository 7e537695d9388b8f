package commit

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// uploading has the note of a rename name the upload by which a store copies what
// one request does not: after a crash nobody else would know it. An earlier attempt's
// goes first, for a note names one.
func (m *copyRename) uploading(ctx context.Context) func(objectstore.Upload) error {
	return func(u objectstore.Upload) error {
		if err := m.c.abortCopy(ctx, m.note); err != nil {
			return fmt.Errorf("an earlier upload: %w", err)
		}
		return m.note.SetUpload(&u)
	}
}

// abortCopy frees what a copy left that is given up. An error is logged: the note
// has to stay then, for the next Recover.
func (c *Committer) abortCopy(ctx context.Context, r *staging.Rename) error {
	u := r.Record().Upload
	store, ok := c.store.(objectstore.Multipart)
	if u == nil || !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	err := store.AbortUpload(ctx, *u)
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "an upload stays in the store until the next mount",
			slog.String("key", u.Key), slog.String("upload", u.ID), slog.Any("error", err))
	}
	return err
}
