package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// A batch that removes objects first has them in its record, so that a crash in the
// middle is made good by removing the rest of exactly these, and no other, and by
// publishing. The store cannot do both in one step: there is a time when neither the old
// files nor all new ones are in it, and no time when one of both is lost.

// clear removes what is to go before anything is published, and notes that it is gone.
func (b *batch) clear(ctx context.Context) error {
	if len(b.how.Clear) == 0 {
		return nil
	}
	if err := b.c.clearAll(ctx, b.note.Record().Clear, b.step); err != nil {
		return err
	}
	return b.note.SetState(staging.BatchMoving, "")
}

// clearAll removes versions, several at a time, until one cannot be. It may be called
// again.
func (c *Committer) clearAll(ctx context.Context, all []staging.Cleared, did func()) error {
	return inParallel(ctx, c.atOnce, all, func(ctx context.Context, v staging.Cleared) error {
		if err := c.clearOne(ctx, v); err != nil {
			return fmt.Errorf("remove %q, which is to be overwritten: %w", v.Target.Key, err)
		}
		did()
		return nil
	})
}

func (c *Committer) clearOne(ctx context.Context, v staging.Cleared) error {
	again := retries{limit: c.retry}
	for {
		err := c.clearVersion(ctx, objectstore.Object{Location: v.Target, ETag: v.ETag})
		if errors.Is(err, objectstore.ErrChanged) {
			c.log.LogAttrs(ctx, slog.LevelWarn, "a file that was to be overwritten was replaced meanwhile: what is there stays",
				slog.String("key", v.Target.Key))
			return nil
		}
		if err == nil || !isUnclear(ctx, err) {
			return err
		}
		if more, ended := again.next(ctx); !more {
			return join(err, ended)
		}
	}
}

// clearVersion removes a version: ErrChanged where another is. A store that cannot tell
// them apart is looked at before.
func (c *Committer) clearVersion(ctx context.Context, o objectstore.Object) error {
	if _, ok := c.store.(objectstore.VersionDeleter); !ok {
		now, err := c.store.Stat(ctx, o.Location)
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return nil
		case err != nil:
			return err
		case now.ETag != o.ETag:
			return fmt.Errorf("version %s is there: %w", now.ETag, objectstore.ErrChanged)
		}
	}
	return c.removeObject(ctx, o)
}

// errSome is what the error of a batch with Clear says beside its cause where what came
// of a file shows later.
var errSome = errors.New("it is taken back once that shows")

// keep ends a batch that removed objects first and could not publish all files: what is
// published stays, the other files are made what they were. It returns cause, and what
// of that could not be done.
func (b *batch) keep(ctx context.Context, cause error) error {
	done := make([]bool, len(b.files))
	for i, f := range b.files {
		done[i] = f.done
		b.kept = b.kept || f.done
	}
	if err := b.note.Settle(done, cause.Error()); err != nil {
		// Ended before the rest is done, the next mount goes on with it.
		b.c.log.LogAttrs(ctx, slog.LevelWarn, "that an overwrite ended half done is not on disk", slog.Any("error", err))
	}
	left := b.each(ctx, func(ctx context.Context, f *batchFile) error {
		if f.done {
			return nil
		}
		return b.takeBackOne(ctx, f)
	})
	if b.how.RegisterLast && b.kept {
		if err := b.register(ctx); err != nil {
			b.c.log.LogAttrs(ctx, slog.LevelError, notRegistered, slog.Any("error", err))
		}
	}
	b.leave(ctx)
	for _, f := range b.files {
		if f.done {
			continue
		}
		if err := f.z.PutBack(f.was, false); err != nil && left == nil {
			left = err
		}
	}
	return b.ended(cause, errSome, left)
}

// giveUp notes that a recovered batch is not to be gone on with. What of it is published
// stays, if objects were removed for it.
func (c *Committer) giveUp(ctx context.Context, note *staging.Batch, reason string) error {
	rec := note.Record()
	switch {
	case len(rec.Clear) == 0:
		return note.SetState(staging.BatchUndoing, reason)
	case rec.State == staging.BatchClearing:
		return note.Settle(nil, reason)
	}
	at := make([]int, len(rec.Members))
	for i := range at {
		at[i] = i
	}
	done := make([]bool, len(at))
	err := inParallel(ctx, c.atOnce, at, func(ctx context.Context, i int) (err error) {
		done[i], err = c.memberPublished(ctx, rec.Members[i])
		return err
	})
	if err != nil {
		return err
	}
	return note.Settle(done, reason)
}

// memberPublished looks whether a member of a recovered batch is in the store.
func (c *Committer) memberPublished(ctx context.Context, m staging.BatchMember) (bool, error) {
	f, here := c.area.Find(m.ID)
	if here && f.Lost() && f.Adopted() {
		return true, nil // nobody else takes a spool away
	}
	rec := staging.Record{ID: m.ID, Size: m.Size}.At(m.To)
	obj, err := c.store.Stat(ctx, m.To.Target)
	if here && !f.Lost() {
		_, err = c.judgePut(ctx, rec, obj, err, spoolOf(ctx, f))
	} else if err == nil && !isOurs(obj, rec) {
		err = errNotDone
	}
	if err != nil && !errors.Is(err, errNotDone) && !errors.Is(err, objectstore.ErrNotExist) && !isConflict(err) {
		return false, fmt.Errorf("%q: %w", m.To.Path, err)
	}
	return err == nil, nil
}
