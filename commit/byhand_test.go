package commit

import (
	"context"
	"errors"
	iofs "io/fs"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// TestPublishByHandOfWhatMoved: a write that was for another place than its path leads
// to by now is kept, and says why.
func TestPublishByHandOfWhatMoved(t *testing.T) {
	readOnly := errors.New("read-only table")
	elsewhere := objectstore.Location{Bucket: "secret@other", Key: "moved/f"}
	for _, tt := range []struct {
		name        string
		now         objectstore.Location
		err, want   error
		says, never string
	}{
		{"moved", elsewhere, nil, objectstore.ErrChanged, `the path leads to "s3://other/moved/f" by now`, "secret"},
		{"gone", objectstore.Location{}, objectstore.ErrNotExist, objectstore.ErrChanged, "leads nowhere by now", "cannot be told"},
		{"refused", objectstore.Location{}, readOnly, readOnly, "cannot be told: read-only table", "nowhere"},
		{"no answer", objectstore.Location{}, objectstore.ErrUnavailable, objectstore.ErrUnavailable, "cannot be told", "nowhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, adopt)
			f := w.create(nil, "precious")
			asked := ""
			err := w.c.Publish(t.Context(), f.ID(), func(_ context.Context, path string) (objectstore.Location, error) {
				asked = path
				return tt.now, tt.err
			})
			var moved *MovedError
			if !errors.As(err, &moved) || !errors.Is(err, tt.want) || errors.Is(err, objectstore.ErrNotExist) {
				t.Errorf("Publish: %v, want one of %v", err, tt.want)
			}
			for _, part := range []string{`"db/t/f" is not published`, w.root + "/" + target, tt.says, "recover --save DIR"} {
				if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), tt.never) {
					t.Errorf("the error is %v, want %q in it, and no %q", err, part, tt.never)
				}
			}
			rec := f.Record()
			if asked != "db/t/f" || w.lake() != "absent" || rec.State != staging.Failed || rec.Error != err.Error() || len(w.registered) > 0 {
				t.Errorf("asked for %q, the lake has %q, record %+v", asked, w.lake(), rec)
			}
			if got := bytesOf(t, f); got != "precious" {
				t.Errorf("kept are %q", got)
			}
			if _, err := w.c.Save(t.Context(), f.ID(), t.TempDir()); err != nil {
				t.Errorf("Save: %v", err)
			}
			back := func(context.Context, string) (objectstore.Location, error) { return rec.Target, nil }
			if err := w.c.Publish(t.Context(), f.ID(), back); err != nil || w.lake() != "precious" || len(w.leftovers()) > 0 {
				t.Errorf("once it leads there again: %v, the lake has %q", err, w.lake())
			}
		})
	}
}

// TestPublishByHandKeepsTheState of a write that was torn, and of one that nobody waits
// for any more.
func TestPublishByHandKeepsTheState(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "half")
	if err := f.SetState(staging.Torn, "killed"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := w.c.Publish(ctx, f.ID(), func(context.Context, string) (objectstore.Location, error) {
		cancel()
		return objectstore.Location{}, context.Canceled
	})
	if rec := f.Record(); !errors.Is(err, context.Canceled) || rec.State != staging.Torn || rec.Error != "killed" {
		t.Errorf("broken off: %v, record %+v", err, rec)
	}
	err = w.c.Publish(t.Context(), f.ID(), func(context.Context, string) (objectstore.Location, error) {
		return objectstore.Location{}, iofs.ErrInvalid
	})
	if rec := f.Record(); !errors.Is(err, iofs.ErrInvalid) || rec.State != staging.Torn || rec.Error != err.Error() {
		t.Errorf("refused: %v, record %+v", err, rec)
	}
	another := objectstore.Location{Bucket: "key@b", Key: "k"}
	if got := placeText(another); got != "s3://b/k" {
		t.Errorf("a place is told as %q", got)
	}
}
