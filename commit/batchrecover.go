package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// recoverBatches finishes the batches of an earlier mount, and returns the ids of all
// files that are, or were, in one: Recover has nothing else to do for them.
func (c *Committer) recoverBatches(ctx context.Context, report *Report) (map[string]bool, error) {
	members := make(map[string]bool)
	for _, note := range c.area.Batches() {
		if !note.Recovered() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return members, fmt.Errorf("recover: %w", err)
		}
		c.recoverBatch(ctx, note, report)
		for _, m := range note.Record().Members {
			members[m.ID] = true
		}
	}
	return members, nil
}

func (c *Committer) recoverBatch(ctx context.Context, note *staging.Batch, report *Report) {
	rec := note.Record()
	var files []staging.Record // as they were
	for _, m := range rec.Members {
		if f, ok := c.area.Find(m.ID); ok {
			files = append(files, f.Record())
		}
	}
	published, err := c.finishBatch(ctx, note)
	log := c.log.With(slog.String("id", rec.ID), slog.String("path", rec.Path), slog.Int("files", len(rec.Members)))
	switch {
	case err != nil:
		log.LogAttrs(ctx, slog.LevelError, "files that an earlier mount was to publish together are neither published nor taken back yet", slog.Any("error", err))
		report.Kept = append(append(report.Kept, rec), files...)
	case published && rec.State == staging.BatchMoved:
		report.Finished = append(report.Finished, files...)
	case published:
		report.Redone = append(report.Redone, files...)
	default:
		log.LogAttrs(ctx, slog.LevelError, "files that an earlier mount was to publish together could not be, and are staged: see lakefs-mount recover",
			slog.String("reason", note.Record().Error))
		for _, r := range files {
			if f, ok := c.area.Find(r.ID); ok {
				report.Kept = append(report.Kept, f.Record())
			} else {
				report.Finished = append(report.Finished, r) // it had been before, and stays so
			}
		}
	}
}

// finishBatches finishes what an earlier mount left, and takes back what a failed
// PublishAll could not.
func (c *Committer) finishBatches(ctx context.Context) {
	for _, note := range c.area.Batches() {
		rec := note.Record()
		if ctx.Err() != nil || !note.Recovered() && rec.State != staging.BatchUndoing && rec.State != staging.BatchSettling {
			continue
		}
		if published, err := c.finishBatch(ctx, note); err == nil {
			c.log.LogAttrs(ctx, slog.LevelInfo, "files that were to be published together are, or are taken back",
				slog.String("id", rec.ID), slog.String("path", rec.Path), slog.Bool("published", published))
		}
	}
}

// settleBatches finishes the batches that files are in: before they are published
// anew, for what is taken back is told by their write ids.
func (c *Committer) settleBatches(ctx context.Context, members []Member) error {
	for _, m := range members {
		if err := c.settleBatchOf(ctx, m.File); err != nil {
			return err
		}
	}
	return nil
}

func (c *Committer) settleBatchOf(ctx context.Context, f *staging.File) error {
	note, ok := c.area.BatchOf(f.ID())
	if !ok {
		return nil
	}
	if _, err := c.finishBatch(ctx, note); err != nil {
		return fmt.Errorf("an earlier publish of %q together with others is not settled: %w", f.Record().Path, err)
	}
	return nil
}

// finishBatch removes and publishes what is left of a batch, or takes it back where that
// was begun or a file of it cannot be published; it waits for a PublishAll that is under
// way. The note goes, unless err tells why neither could be done.
func (c *Committer) finishBatch(ctx context.Context, note *staging.Batch) (published bool, err error) {
	rec := note.Record()
	unlock, err := c.lockMembers(ctx, rec)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, there := c.area.FindBatch(rec.ID); !there {
		return note.Record().State == staging.BatchMoved, nil // it ended while this waited
	}
	rec = note.Record()
	if rec.State == staging.BatchClearing || rec.State == staging.BatchMoving {
		err := c.clearLeft(ctx, note, rec)
		if err == nil {
			err = c.publishLeft(ctx, note, rec)
		}
		if err != nil && !isUnclear(ctx, err) && ctx.Err() == nil {
			err = c.giveUp(ctx, note, err.Error())
		}
		if err != nil {
			return false, err
		}
	}
	if note.Record().State == staging.BatchMoved {
		return true, c.endBatch(ctx, note)
	}
	return false, c.undoBatch(ctx, note)
}

// clearLeft removes what of a recovered batch is yet to be removed, and notes it. Its
// errors are as publishLeft's.
func (c *Committer) clearLeft(ctx context.Context, note *staging.Batch, rec staging.Record) error {
	if rec.State != staging.BatchClearing {
		return nil
	}
	if err := c.clearAll(ctx, rec.Clear, func() {}); err != nil {
		return err
	}
	if err := note.SetState(staging.BatchMoving, ""); err != nil {
		return fmt.Errorf("%w: %w", objectstore.ErrUnavailable, err)
	}
	return nil
}

func (c *Committer) lockMembers(ctx context.Context, rec staging.Record) (unlock func(), err error) {
	targets := make([]objectstore.Location, 0, len(rec.Members)+len(rec.Clear))
	for _, m := range rec.Members {
		targets = append(targets, m.To.Target)
	}
	for _, o := range rec.Clear {
		targets = append(targets, o.Target)
	}
	return c.targets.lockAll(ctx, targets)
}

// publishLeft publishes what of a recovered batch is not published yet; nil: all is, and
// the note says so. objectstore.ErrUnavailable and ctx's errors will pass; others are
// for good.
func (c *Committer) publishLeft(ctx context.Context, note *staging.Batch, rec staging.Record) error {
	if !rec.RegisterLast {
		if err := c.registerMembers(ctx, rec.Members); err != nil {
			return fmt.Errorf("%w: %w", objectstore.ErrUnavailable, err)
		}
	}
	b := &batch{c: c, note: note, files: make([]*batchFile, len(rec.Members))}
	for i, m := range rec.Members {
		b.files[i] = &batchFile{to: m.To, member: &rec.Members[i]}
		if f, ok := c.area.Find(m.ID); ok && f.Record().Target.Key != "" { // else its record is damaged
			b.files[i].File = f
		}
	}
	defer b.release()
	err := b.holdLeft(ctx)
	if err == nil {
		err = b.each(ctx, b.look)
	}
	if err == nil {
		err = b.each(ctx, b.publishOne)
	}
	if err == nil {
		if err = note.SetState(staging.BatchMoved, ""); err != nil {
			err = fmt.Errorf("%w: %w", objectstore.ErrUnavailable, err)
		}
	}
	if err == nil {
		b.leave(ctx)
		return nil
	}
	for _, f := range b.files {
		if f.z != nil {
			_ = f.z.PutBack(f.was, f.done) // on disk the note counts
		}
	}
	return err
}

// registerMembers registers the partitions of what is data. What registerLate says of
// errors holds.
func (c *Committer) registerMembers(ctx context.Context, members []staging.BatchMember) error {
	first := make(partitions)
	for _, m := range members {
		if m.Data {
			first.add(m.To)
		}
	}
	return c.registeredLate(ctx, c.registerAll(ctx, first.paths()))
}

// holdLeft freezes the files whose bytes are here.
func (b *batch) holdLeft(ctx context.Context) error {
	for _, f := range byAge(b.files) {
		if f.File == nil || f.File.Lost() {
			continue
		}
		z, err := f.File.Freeze(ctx)
		if errors.Is(err, staging.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		f.z, f.was = z, z.Record.At(f.member.From)
		f.was.State, f.was.Sum = staging.Staged, ""
		z.MoveTo(f.to)
	}
	return nil
}

// look finds out whether a recovered file is published, and else whether it can be.
func (b *batch) look(ctx context.Context, f *batchFile) error {
	if f.z == nil {
		return b.lookForLost(ctx, f)
	}
	obj, err := b.c.settlePut(ctx, f.z.Record, spoolOf(ctx, f.File))
	switch {
	case err == nil:
		f.made, f.by, f.done = obj, byPut, true
		return nil
	case errors.Is(err, errNotDone):
		if err = f.z.Expect(*f.member); err == nil {
			err = f.z.Sound(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%q: %w", f.to.Path, err)
	}
	f.sound = true
	return nil
}

// lookForLost is look for a file without bytes: a store that takes the spool itself has
// them, or had.
func (b *batch) lookForLost(ctx context.Context, f *batchFile) error {
	obj, err := b.c.store.Stat(ctx, f.to.Target)
	_, adopts := b.c.store.(objectstore.Adopter)
	switch {
	case err == nil && obj.Meta[objectstore.MetaWriteID] == f.member.ID:
	case err != nil && !errors.Is(err, objectstore.ErrNotExist):
		return fmt.Errorf("%q: %w: %w", f.to.Path, errUnsettled, err)
	case adopts && f.File != nil && f.File.Adopted():
		b.c.log.LogAttrs(ctx, slog.LevelWarn, "published, and replaced or removed since", slog.String("path", f.to.Path))
	default:
		return fmt.Errorf("%q: its bytes are gone: %w", f.to.Path, staging.ErrDamaged)
	}
	f.done = true
	return nil
}

// endBatch drops what is left of a published batch.
func (c *Committer) endBatch(ctx context.Context, note *staging.Batch) error {
	rec := note.Record()
	if rec.RegisterLast {
		if err := c.registerMembers(ctx, rec.Members); err != nil {
			return err
		}
	}
	for _, m := range rec.Members {
		if f, ok := c.area.Find(m.ID); ok {
			if err := f.Drop(); err != nil {
				return err
			}
		}
	}
	return note.Drop()
}

// undoBatch takes back what of a batch is published, but for what is Done. Its files are
// kept: as failed, if the batch is an earlier mount's.
func (c *Committer) undoBatch(ctx context.Context, note *staging.Batch) error {
	rec := note.Record()
	if err := c.registerDone(ctx, note.Recovered(), rec); err != nil {
		return err
	}
	err := inParallel(ctx, c.atOnce, rec.Members, func(ctx context.Context, m staging.BatchMember) error {
		f, ok := c.area.Find(m.ID)
		if !ok {
			f = nil
		}
		if m.Done {
			if f == nil || !note.Recovered() { // its writers go on with it
				return nil
			}
			return f.Drop()
		}
		if _, err := c.unpublish(ctx, taken{id: m.ID, at: m.To.Target, file: f}); err != nil {
			return fmt.Errorf("take back %q: %w", m.To.Path, err)
		}
		if f == nil || !note.Recovered() {
			return nil
		}
		return keepMember(ctx, f, m, rec.Error)
	})
	if err != nil {
		return err
	}
	return note.Drop()
}

// registerDone registers the partitions of what a recovered batch that ended half done
// leaves published.
func (c *Committer) registerDone(ctx context.Context, recovered bool, rec staging.Record) error {
	if !recovered || !rec.RegisterLast {
		return nil
	}
	return c.registerMembers(ctx, slices.DeleteFunc(slices.Clone(rec.Members), func(m staging.BatchMember) bool { return !m.Done }))
}

// keepMember has a file of a batch that is taken back be a write of its own: as it was,
// where it is the mount's alone and has its bytes, else a failed one.
func keepMember(ctx context.Context, f *staging.File, m staging.BatchMember, reason string) error {
	if f.Lost() && !f.Adopted() {
		if err := f.GivenBack(); err != nil {
			return err
		}
	}
	z, err := f.Freeze(ctx)
	if errors.Is(err, staging.ErrDamaged) || errors.Is(err, staging.ErrDropped) {
		return nil
	}
	if err != nil {
		return err
	}
	defer z.Release()
	state := staging.Failed
	if m.From.Hold == staging.Local && z.Expect(m) == nil && z.Sound(ctx) == nil {
		state, reason = staging.Staged, ""
	}
	if z.Record.Target == m.To.Target {
		z.MoveTo(m.From)
	}
	return z.SetState(state, reason, true)
}

// abortBatch takes a batch back, as asked. Its files are kept.
func (c *Committer) abortBatch(ctx context.Context, note *staging.Batch) error {
	err := c.refuseBatch(ctx, note)
	published := false
	if err == nil {
		published, err = c.finishBatch(ctx, note)
	}
	if err == nil && published {
		err = fmt.Errorf("all files are published: %w", objectstore.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("take back what is published below %q: %w", note.Record().Path, err)
	}
	return nil
}

// refuseBatch notes that a batch is to be taken back, or is not to be gone on with.
func (c *Committer) refuseBatch(ctx context.Context, note *staging.Batch) error {
	unlock, err := c.lockMembers(ctx, note.Record())
	if err != nil {
		return err
	}
	defer unlock()
	rec := note.Record()
	_, there := c.area.FindBatch(rec.ID)
	if there && (rec.State == staging.BatchMoving || rec.State == staging.BatchClearing) {
		return c.giveUp(ctx, note, "it was taken back as asked, together with others")
	}
	return nil
}

// publishBatch finishes a batch, as asked; an error where that is to take it back.
func (c *Committer) publishBatch(ctx context.Context, note *staging.Batch) error {
	published, err := c.finishBatch(ctx, note)
	rec := note.Record()
	switch {
	case err != nil:
		return fmt.Errorf("publish %d files below %q together: %w", len(rec.Members), rec.Path, err)
	case !published:
		done := countDone(rec)
		if done > 0 {
			return fmt.Errorf("of %d files below %q %d are published, the others staged: %s: %w", len(rec.Members), rec.Path, done, rec.Error, objectstore.ErrChanged)
		}
		return fmt.Errorf("%d files below %q are taken back, and staged: %s: %w", len(rec.Members), rec.Path, rec.Error, objectstore.ErrChanged)
	}
	return nil
}

// countDone is how many files of a batch that ended half done are published.
func countDone(rec staging.Record) int {
	n := 0
	for _, m := range rec.Members {
		if m.Done {
			n++
		}
	}
	return n
}
