package commit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// dropCopies drops what an earlier mount kept under a temporary name, where the store
// has the same bytes at its target: the rename to a backup name was made, and the mount
// was killed before it let the backup go.
func (c *Committer) dropCopies(ctx context.Context, report *Report) {
	for _, f := range c.area.Files() {
		rec := f.Record()
		if !f.Recovered() || rec.Hold != staging.Temporary || rec.State != staging.Staged || !rec.Cond.IfNoneMatch || f.Lost() {
			continue
		}
		if !c.isPublished(ctx, f, rec) {
			continue
		}
		if err := f.Drop(); err != nil {
			c.log.LogAttrs(ctx, slog.LevelWarn, "a copy of what is published is left", slog.String("id", rec.ID), slog.Any("error", err))
			continue
		}
		report.Kept = slices.DeleteFunc(report.Kept, func(k staging.Record) bool { return k.ID == rec.ID })
		report.Finished = append(report.Finished, rec)
	}
}

// copyBuffer is how many bytes are compared at a time.
const copyBuffer = 1 << 20

// isPublished reports whether the object at the target of f has its bytes.
func (c *Committer) isPublished(ctx context.Context, f *staging.File, rec staging.Record) bool {
	obj, err := c.store.Stat(ctx, rec.Target)
	if err != nil || obj.Size != f.Size() || obj.Size > staging.DetachMax {
		return false
	}
	pinned, err := objectstore.Pin(ctx, c.store, obj)
	if err != nil {
		return false
	}
	defer func() { _ = pinned.Close() }() // it was read alone
	ours, theirs := make([]byte, copyBuffer), make([]byte, copyBuffer)
	for off := int64(0); off < obj.Size; off += copyBuffer {
		n := min(copyBuffer, obj.Size-off)
		_, err := f.ReadAt(ctx, ours[:n], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		_, err = pinned.ReadAt(ctx, theirs[:n], off)
		if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(ours[:n], theirs[:n]) {
			return false
		}
	}
	return true
}
