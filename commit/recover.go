package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Report says what Recover found. Each write is in one list.
type Report struct {
	Finished []staging.Record // had been published; what was left of them is removed
	Redone   []staging.Record // published now
	Kept     []staging.Record // wait for recover --publish, --abort or --save
	Lost     []staging.Record // published, by all that can be seen, and replaced or removed since
	Undone   []staging.Record // renames that had not begun: the object is at its old name
}

// Recover settles the writes that were being published, alone or together, and the
// renames that were half done when an earlier mount ended, and keeps all others: what is staged, torn
// or failed is never published by itself. Of a failed publish that may have taken
// effect all the same it looks whether it did, and drops what is left then. The
// partitions of what was published are registered; that one could not be is logged.
// It may be called again, and ended at any point.
func (c *Committer) Recover(ctx context.Context) (Report, error) {
	var report Report
	batched, err := c.recoverBatches(ctx, &report)
	if err != nil {
		return report, err
	}
	for _, f := range c.area.Files() {
		if !f.Recovered() || batched[f.ID()] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("recover: %w", err)
		}
		rec := f.Record()
		list := c.recoverOne(ctx, f, rec, &report)
		*list = append(*list, rec)
	}
	for _, r := range c.area.Renames() {
		if !r.Recovered() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("recover: %w", err)
		}
		c.recoverRename(ctx, r, &report)
	}
	c.dropCopies(ctx, &report)
	c.rebaseKept(ctx, &report)
	if err := c.area.AbortUploads(ctx); err != nil { // the next Recover tries again
		c.log.LogAttrs(ctx, slog.LevelWarn, "uploads of an earlier mount are left in the store", slog.Any("error", err))
	}
	return report, nil
}

// recoverOne returns the list of the report to which f belongs.
func (c *Committer) recoverOne(ctx context.Context, f *staging.File, rec staging.Record, report *Report) *[]staging.Record {
	log := c.log.With(slog.String("id", rec.ID), slog.String("path", rec.Path))
	if f.Lost() && rec.Target.Key != "" {
		return c.recoverLost(ctx, f, rec, report)
	}
	if rec.Unsettled {
		return c.recoverUnsettled(ctx, f, rec, report)
	}
	switch {
	case rec.State == staging.Publishing:
	case rec.Resident(): // the next mount has it, as this one had
		return &report.Kept
	default:
		log.LogAttrs(ctx, slog.LevelWarn, "a write of an earlier mount is staged: see lakefs-mount recover", slog.String("state", string(rec.State)))
		return &report.Kept
	}
	// Look first: without a condition a second Put would take effect again.
	_, err := c.settlePut(ctx, rec, spoolOf(ctx, f))
	if err == nil {
		return c.finish(ctx, f, &report.Finished, report)
	}
	if !errors.Is(err, errUnsettled) {
		_, err = c.commit(ctx, f, false)
	}
	switch {
	case isUnregistered(err):
		log.LogAttrs(ctx, slog.LevelError, notRegistered, slog.Any("error", err))
	case err != nil:
		log.LogAttrs(ctx, slog.LevelError, "a publish that an earlier mount began is not finished", slog.Any("error", err))
		return &report.Kept
	}
	c.drop(ctx, f)
	return &report.Redone
}

// recoverLost is for a record whose spool is gone: the rename that publishes it
// took effect, and the record was to go next.
func (c *Committer) recoverLost(ctx context.Context, f *staging.File, rec staging.Record, report *Report) *[]staging.Record {
	obj, err := c.store.Stat(ctx, rec.Target)
	switch {
	case err == nil && isOurs(obj, rec):
		return c.finish(ctx, f, &report.Finished, report)
	case err != nil && !errors.Is(err, objectstore.ErrNotExist):
		c.log.LogAttrs(ctx, slog.LevelError, "what came of a publish is not known yet", slog.String("path", rec.Path), slog.Any("error", err))
		return &report.Kept
	case err == nil && c.registerLate(ctx, rec.Path, rec.Target) != nil: // another's lies there by now
		return &report.Kept
	}
	c.log.LogAttrs(ctx, slog.LevelWarn, "a staged write's bytes are gone and the target is not its own: published, and replaced or removed since",
		slog.String("id", rec.ID), slog.String("path", rec.Path), slog.String("key", rec.Target.Key))
	c.drop(ctx, f)
	return &report.Lost
}

// finish ends a write that is found published: its partition is registered, and
// what is left of it removed. It returns list, or the one of what is kept for the
// next Recover.
func (c *Committer) finish(ctx context.Context, f *staging.File, list *[]staging.Record, report *Report) *[]staging.Record {
	rec := f.Record()
	if c.registerLate(ctx, rec.Path, rec.Target) != nil {
		return &report.Kept
	}
	c.drop(ctx, f)
	return list
}

// drop removes what is left of a published write. That it could not is no error
// of the publish: the next Recover finds it.
func (c *Committer) drop(ctx context.Context, f *staging.File) {
	if f.Handles() > 0 {
		return
	}
	if err := f.Drop(); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "a published write stays in the staging directory", slog.String("id", f.ID()), slog.Any("error", err))
	}
}

func (c *Committer) find(id string) (*staging.File, error) {
	f, ok := c.area.Find(id)
	if !ok {
		return nil, fmt.Errorf("%q: %w", id, ErrNoWrite)
	}
	return f, nil
}

// refuseMember is staging.ErrBatched for a file that is not to be decided on alone.
func (c *Committer) refuseMember(id string) error {
	b, ok := c.area.BatchOf(id)
	if !ok {
		return nil
	}
	rec := b.Record()
	return fmt.Errorf("%s: %w, %d of them below %q: name the id %s of all", id, staging.ErrBatched, len(rec.Members), rec.Path, rec.ID)
}

// Publish publishes a kept write, whatever its state, or finishes a kept rename:
// what recover --publish does. A write whose path does not lead to its target by now
// is refused ([*MovedError]) and kept; a nil place looks for nothing. Other errors are
// those of Commit, and ErrNoWrite; with a [*RegisterError] nothing is kept.
func (c *Committer) Publish(ctx context.Context, id string, place Place) error {
	if r, ok := c.area.FindRename(id); ok {
		_, err := c.finishRename(ctx, r)
		return err
	}
	if b, ok := c.area.FindBatch(id); ok {
		return c.publishBatch(ctx, b)
	}
	if err := c.refuseMember(id); err != nil {
		return fmt.Errorf("publish %w", err)
	}
	f, err := c.find(id)
	if err != nil {
		return err
	}
	if f.Lost() {
		return fmt.Errorf("publish %q: its bytes are gone: %w", f.Record().Path, staging.ErrDamaged)
	}
	if place != nil {
		if err = c.stillMeant(ctx, f, place); err != nil {
			return err
		}
	}
	_, err = c.Commit(ctx, f)
	if err == nil || isUnregistered(err) {
		c.drop(ctx, f)
	}
	return err
}

// Abort drops a kept write and its bytes, ErrBusy while a program has it open; of
// a kept rename it drops the note, and what is at either name stays. Of files that are
// published together it takes back what is published, and keeps them.
func (c *Committer) Abort(ctx context.Context, id string) error {
	if r, ok := c.area.FindRename(id); ok {
		return c.abortRename(ctx, r)
	}
	if b, ok := c.area.FindBatch(id); ok {
		return c.abortBatch(ctx, b)
	}
	if err := c.refuseMember(id); err != nil {
		return fmt.Errorf("abort %w", err)
	}
	f, err := c.find(id)
	if err != nil {
		return err
	}
	rec := f.Record()
	if f.Handles() > 0 {
		return fmt.Errorf("abort %q: %w", rec.Path, ErrBusy)
	}
	if err := f.Drop(); err != nil {
		return fmt.Errorf("abort %q: %w", rec.Path, err)
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "a staged write was dropped as asked", slog.String("id", id), slog.String("path", rec.Path))
	return nil
}
