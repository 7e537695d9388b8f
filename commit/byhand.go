package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Place says where a file at a path of the tree is to be written now
// (catalogview.View.Resolve).
type Place func(ctx context.Context, path string) (objectstore.Location, error)

// MovedError says that a kept write is not published, for its path does not lead to
// where it was written for: its partition or its table was moved or dropped since.
// There nobody would look for it. Its bytes are kept.
//
// It unwraps to objectstore.ErrChanged, but where the path could not be resolved for
// another reason than that it is gone: to that.
type MovedError struct {
	Path       string // in the tree
	Meant, Now objectstore.Location
	Cause      error // why Path leads nowhere; nil: it leads to Now
}

func (e *MovedError) Error() string {
	now := fmt.Sprintf("the path leads to %q by now", placeText(e.Now))
	switch {
	case errors.Is(e.Cause, objectstore.ErrNotExist):
		now = fmt.Sprintf("the path leads nowhere by now: %v", e.Cause)
	case e.Cause != nil:
		now = fmt.Sprintf("where the path leads by now cannot be told: %v", e.Cause)
	}
	return fmt.Sprintf("%q is not published: it was written for %q, and %s"+
		" (its bytes are kept: lakefs-mount recover --save DIR copies them out, from there to where they belong)", e.Path, placeText(e.Meant), now)
}

// Unwrap returns objectstore.ErrChanged or Cause.
func (e *MovedError) Unwrap() error {
	if e.Cause == nil || errors.Is(e.Cause, objectstore.ErrNotExist) {
		return objectstore.ErrChanged
	}
	return e.Cause
}

// placeText is a location as people write it, without the credentials that a bucket
// may come with. A folder's files are paths.
func placeText(loc objectstore.Location) string {
	if strings.HasPrefix(loc.Bucket, "/") {
		return path.Join(loc.Bucket, loc.Key)
	}
	return "s3://" + bucketName(loc.Bucket) + "/" + loc.Key
}

func bucketName(bucket string) string {
	if _, name, ok := strings.Cut(bucket, "@"); ok && !strings.HasPrefix(bucket, "/") {
		return name
	}
	return bucket
}

// stillMeant returns a *MovedError if the path of f leads elsewhere than f was written
// for, and notes it in the record: who asked may be told no more than a number.
func (c *Committer) stillMeant(ctx context.Context, f *staging.File, place Place) error {
	rec := f.Record()
	now, err := place(ctx, rec.Path)
	if err == nil && bucketName(now.Bucket) == bucketName(rec.Target.Bucket) && now.Key == rec.Target.Key {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("publish %q: %w", rec.Path, ctx.Err())
	}
	moved := &MovedError{Path: rec.Path, Meant: rec.Target, Now: now, Cause: err}
	state := rec.State
	if state == staging.Staged {
		state = staging.Failed
	}
	if err := f.SetState(state, moved.Error()); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "the reason of a refused publish is not on disk",
			slog.String("id", rec.ID), slog.Any("error", err), slog.Any("reason", moved))
	}
	return moved
}
