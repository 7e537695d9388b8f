package commit

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Parts of a copy of an object that one request does not copy.
const (
	copyPartSize = 256 << 20
	copyParallel = 8
)

// send makes the copy, by one request where one does.
func (m *copyRename) send(ctx context.Context, opts objectstore.PutOptions) (objectstore.Object, error) {
	store, ok := m.c.store.(objectstore.Multipart)
	if !ok || m.src.Size <= m.c.copyMax {
		return m.c.store.Copy(ctx, m.rec.Target, m.src, opts)
	}
	u, err := m.upload(ctx, store, opts)
	if err != nil {
		return objectstore.Object{}, err
	}
	parts, err := m.parts(ctx, store, u)
	if err != nil {
		return objectstore.Object{}, m.without(err)
	}
	obj, err := store.CompleteUpload(ctx, u, parts, opts)
	return obj, m.without(err)
}

// upload is the one that the note names, which a crash must not leave unnamed.
func (m *copyRename) upload(ctx context.Context, store objectstore.Multipart, opts objectstore.PutOptions) (objectstore.Upload, error) {
	if u := m.note.Record().Upload; u != nil {
		return *u, nil
	}
	u, err := store.CreateUpload(ctx, m.rec.Target, opts)
	if err == nil {
		err = m.note.SetUpload(&u)
	}
	return u, err
}

// without drops the upload from the note where the store has none.
func (m *copyRename) without(err error) error {
	if errors.Is(err, objectstore.ErrNoUpload) {
		err = errors.Join(err, m.note.SetUpload(nil))
	}
	return err
}

// parts copies all parts, several at a time. After one that failed none begins;
// those under way are waited for, since a part that the store is still making
// outlives an abort.
func (m *copyRename) parts(ctx context.Context, store objectstore.Multipart, u objectstore.Upload) ([]objectstore.Part, error) {
	size := max(min(copyPartSize, m.c.copyMax), (m.src.Size+objectstore.MaxParts-1)/objectstore.MaxParts)
	parts := make([]objectstore.Part, (m.src.Size+size-1)/size)
	g, well := errgroup.WithContext(ctx)
	g.SetLimit(copyParallel)
	for i := range parts {
		g.Go(func() (err error) {
			if well.Err() != nil {
				return nil //nolint:nilerr // the group has the cause
			}
			off := int64(i) * size
			parts[i], err = store.CopyPart(ctx, u, i+1, m.src, off, min(size, m.src.Size-off))
			return err
		})
	}
	return parts, g.Wait()
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
