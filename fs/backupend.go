package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// make makes the rename in the store. If that fails the file is where it was, and the
// backup kept and shown. The caller holds lock, as for all that follows.
func (a *away) make(ctx context.Context) error {
	switch {
	case a.backup == nil:
		return a.removeOld(ctx)
	case a.backup.file.Changes() > 0:
		return a.publishBackup(ctx)
	}
	obj, done, err := a.settleNote(ctx)
	if err == nil && !done {
		obj, err = a.fs.Committer.Rename(ctx, commit.Move{
			From: a.old, To: a.target.Location, Cond: objectstore.Cond{IfNoneMatch: true}, Path: a.to,
		})
	}
	if err != nil {
		return a.failed(ctx, err)
	}
	a.fs.Attr.Move(attrKey(a.old.Location), a.old.ETag, attrKey(obj.Location), obj.ETag)
	a.fs.vanished(a.from, a.old.Location)
	a.fs.published(a.to, obj)
	a.handOver(ctx, a.to, a.target, obj)
	a.fs.backups.drop(a) // last: a rename or a removal of either name waits for it
	return nil
}

// publishBackup is make for a backup that was written to: it is published first.
func (a *away) publishBackup(ctx context.Context) error {
	s := a.backup
	if err := s.file.Separate(ctx); err != nil {
		return a.failed(ctx, err)
	}
	if e := s.publish(ctx); e != 0 {
		a.giveUp()
		return e
	}
	if !s.isPublished() { // an empty file of a format that has none waits for its bytes
		a.wait()
		return nil
	}
	s.unhold(ctx)
	a.letGo()
	return a.removeOld(ctx)
}

// removeOld removes the object of a backup that is another file by now, or was removed.
func (a *away) removeOld(ctx context.Context) error {
	var err error
	if a.owed {
		err = a.fs.mayChange(a.old, WriteDelete)
	}
	if err == nil {
		err = a.deleteOld(ctx)
	}
	a.fs.backups.drop(a)
	if err != nil {
		a.fs.Log.WarnContext(ctx, "a file whose backup is gone is shown again", attrPath(a.from), slog.Any("error", err))
	}
	return err
}

// deleteOld removes the object. One that others removed or replaced is as good as gone.
func (a *away) deleteOld(ctx context.Context) error {
	err := a.unchanged(ctx)
	if err == nil {
		err = a.fs.deleteExactly(ctx, a.old)
	}
	switch {
	case err == nil:
		a.fs.Attr.Delete(attrKey(a.old.Location))
		a.fs.vanished(a.from, a.old.Location)
	case supersedes(err):
		a.fs.superseded(a.old.Location)
	default:
		return err
	}
	return nil
}

// unchanged asks the store whether it has the object yet, where a removal does not.
func (a *away) unchanged(ctx context.Context) error {
	if a.fs.flat {
		return nil
	}
	now, err := a.fs.Store.Stat(ctx, a.old.Location)
	if err == nil && now.ETag != a.old.ETag {
		err = objectstore.ErrChanged
	}
	return err
}

// settleNote finds out what came of an earlier attempt that is noted still: done, with
// the object at its new name, or nothing, and then the note is gone.
func (a *away) settleNote(ctx context.Context) (obj objectstore.Object, done bool, err error) {
	r := a.note()
	if r == nil {
		return obj, false, nil
	}
	if done, err = a.fs.Committer.FinishRename(ctx, r); err == nil && done {
		obj, err = a.fs.Store.Stat(ctx, a.target.Location)
	}
	return obj, done, err
}

// failed ends a rename that could not be made; one that a store did not answer to is
// tried again.
func (a *away) failed(ctx context.Context, cause error) error {
	f, s := a.fs, a.backup
	f.superseded(a.old.Location)
	f.superseded(a.target.Location)
	f.Log.ErrorContext(ctx, "a rename to a backup name could not be made", slog.String("from", a.from), slog.String("to", a.to), slog.Any("error", cause))
	if errors.Is(cause, objectstore.ErrUnavailable) && !f.draining.Load() {
		a.wait()
		return cause
	}
	if a.superseded(ctx, cause) {
		a.partWays(ctx)
		return cause
	}
	if a.note() != nil { // the note's rename goes on, now or at the next mount
		s.mu.Lock()
		s.rule.unlinked = true
		s.mu.Unlock()
		a.giveUp()
		return cause
	}
	err := s.file.Separate(ctx)
	if err == nil {
		err = s.file.SetState(staging.Failed, cause.Error())
	}
	if err != nil { // nobody replaced the object: it has all that there is
		f.Log.ErrorContext(ctx, "a backup is not kept", attrPath(a.to), slog.Any("error", err))
	}
	a.giveUp()
	return cause
}

// note returns the note of the rename if one is left: it is half done, or may be.
func (a *away) note() *staging.Rename {
	for _, r := range a.fs.Area.Renames() {
		rec := r.Record()
		if rec.Target == a.target.Location && rec.Source.Location == a.old.Location && rec.Source.ETag == a.old.ETag {
			return r
		}
	}
	return nil
}

// superseded reports whether a request failed since the object is not in its place any
// more. A refusal may tell of something else: so the store is asked.
func (a *away) superseded(ctx context.Context, cause error) bool {
	if !supersedes(cause) {
		return false
	}
	now, err := a.fs.Store.Stat(ctx, a.old.Location)
	return errors.Is(err, objectstore.ErrNotExist) || err == nil && now.ETag != a.old.ETag
}

// partWays ends what is held back of an object that others replaced or removed: the old
// name leads to what the store has, and the backup is a file of a temporary name.
func (a *away) partWays(ctx context.Context) {
	a.fs.superseded(a.old.Location)
	defer a.fs.backups.drop(a)
	if a.backup == nil {
		return
	}
	if err := a.secure(ctx); err != nil {
		a.fs.Log.ErrorContext(ctx, "a backup is not kept", attrPath(a.to), slog.Any("error", err))
		a.fs.names.hide(a.backup)
	}
	a.letGo()
}

// refused is what becomes of a held-back rename when a new file at path was not
// published, for cause: it goes on to wait, unless there is nothing to rename any more.
// The caller has locked what is held back of path.
func (f *FS) refused(ctx context.Context, path string, cause error) {
	a := f.backups.at(path)
	switch {
	case a == nil:
	case a.superseded(ctx, cause):
		a.partWays(ctx)
	default:
		a.wait()
	}
}

// giveUp shows the file under its old name again. What the backup has is kept, and shown
// among the unpublished files.
func (a *away) giveUp() {
	a.fs.names.hide(a.backup)
	a.fs.backups.drop(a)
	a.letGo()
}

// letGo makes the backup a file like others.
func (a *away) letGo() {
	s := a.backup
	a.backup = nil
	s.release()
	s.end()
}

// handOver ends the backup for the object, which has its name: path. Whoever has it
// open for writing goes on, with a new version of that; and what was written, and
// closed, while the object got its name is published before anybody is shown the object.
func (a *away) handOver(ctx context.Context, path string, t catalogview.Target, obj objectstore.Object) {
	f, s := a.fs, a.backup
	f.names.locate(s.name, obj.Location)
	s.mu.Lock()
	s.heir = &obj
	s.passed = len(s.writing) == 0 && s.reserved == 1 && s.file.Changes() == 0
	passed := s.passed
	if passed {
		s.rule.unlinked, s.hold = true, staging.Unheld
	}
	s.mu.Unlock()
	a.keepAttributes(obj)
	if !passed {
		w := newWrite(path, t)
		w.Cond = objectstore.Cond{IfMatch: obj.Match}
		if err := s.file.SetTarget(w); err != nil {
			f.fail("record", path, err)
		}
		s.unhold(ctx)
	}
	f.names.hide(s)
	a.letGo()
}

// reserve keeps the file from being ended until unclaimed; false if handOver has ended
// it.
func (s *stagedNode) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed {
		return false
	}
	s.reserved++
	return true
}

// keepAttributes keeps of the object what was set on the backup; what is set from then
// on, stagedNode.keepPublished does.
func (a *away) keepAttributes(obj objectstore.Object) {
	a.backup.commit.Lock()
	defer a.backup.commit.Unlock()
	now := a.backup.file.Record().Attributes
	if now == a.attributes {
		return
	}
	kept, _ := a.fs.Attr.Get(attrKey(obj.Location), obj.ETag)
	set := madeAttributes(now)
	set.Made = kept.Made
	a.fs.Attr.Set(attrKey(obj.Location), obj.ETag, set)
}

// secure gives the backup bytes of its own, before the object is replaced. One that is
// spoilt has nothing to lose.
func (a *away) secure(ctx context.Context) error {
	if a.backup == nil || a.backup.spoilt() {
		return nil
	}
	if err := a.backup.file.Separate(ctx); err != nil && !errors.Is(err, staging.ErrDropped) {
		return fmt.Errorf("keep %q: %w", a.to, err)
	}
	return nil
}

// secureBackup is secure for a publish, or a rename, to path; replaced says that it
// took place. The caller has locked what is held back of path.
func (f *FS) secureBackup(ctx context.Context, path string) error {
	if a := f.backups.at(path); a != nil {
		return a.secure(ctx)
	}
	return nil
}

func (f *FS) replaced(path string) {
	a := f.backups.at(path)
	if a == nil {
		return
	}
	defer f.backups.drop(a)
	if a.backup == nil {
		return
	}
	ctx, cancel := f.lasting()
	defer cancel()
	if obj, done, err := a.settleNote(ctx); err == nil && done { // the copy is there already
		f.published(a.to, obj)
		a.handOver(ctx, a.to, a.target, obj)
		return
	}
	s := a.backup
	a.letGo()
	if a.isNumbered() && s.left() {
		s.endLinger() // the next one gets its number from the listing
	}
}

// part makes the backup an ordinary file, published or not, for a rename that needs one.
func (a *away) part(ctx context.Context) error {
	if !a.replacing() {
		return a.make(ctx)
	}
	if a.backup == nil {
		return nil
	}
	if err := a.secure(ctx); err != nil {
		return err
	}
	a.letGo()
	return nil
}

// partAt is part for what has to do with path, partBelow for what lies below dir.
func (f *FS) partAt(ctx context.Context, path string) error {
	held, err := f.backups.lockPaths(path)
	if err != nil {
		return err
	}
	defer held.unlock()
	return held.part(ctx)
}

func (f *FS) partBelow(ctx context.Context, dir string) error {
	for _, a := range f.backups.all(func(a *away) bool { return below(a.from, dir) }) {
		if err := f.partAt(ctx, a.from); err != nil {
			return err
		}
	}
	return nil
}

func (l lockedBackups) part(ctx context.Context) error {
	for _, a := range l {
		if err := a.part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// spoilt reports whether a write failed, so that the file will not be published.
func (s *stagedNode) spoilt() bool { return s.file.Poisoned() != nil }
