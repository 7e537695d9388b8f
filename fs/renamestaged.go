package fs

import (
	"context"
	"errors"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// staged gives an unpublished file another name. One that nobody can write to any
// more is published under it, within the rename; an open one keeps its writers, and
// publishes at the close. Names that are no data yet only pass on.
func (m *move) staged(ctx context.Context, s *stagedNode) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	w := newWrite(m.to, m.target)
	w.Cond = objectstore.Cond{IfNoneMatch: true}
	switch {
	case m.old == nil:
		w.Hold = m.fs.holdOf(m.to)
	case belowStagingTree(m.to):
		return errWriteLevel // it is another writer's, for all that is known
	default:
		w.Cond = objectstore.Cond{IfMatch: m.old.Match}
	}
	w.Final = w.Hold == staging.Unheld
	if w.Final {
		if err := m.fs.Committer.Register(ctx, m.to, m.target.Location); err != nil {
			return err // the old name stays, and what lies at the new one
		}
		m.detachOld()
		if s.idle() {
			return m.publishAs(ctx, s, w)
		}
	}
	return m.rename(ctx, s, w)
}

// rename gives the file its new name and publishes nothing.
func (m *move) rename(ctx context.Context, s *stagedNode, w staging.NewWrite) error {
	was := s.file.Record()
	switch published, err := s.setTarget(ctx, w); {
	case err != nil:
		return err
	case published:
		return m.justPublished(ctx)
	}
	m.renamed(s, m.target.Location)
	m.fs.sumsMoved(ctx, m.to)
	s.linger()
	return m.fs.dropReplaced(ctx, was)
}

// justPublished renames a file that was published while the rename waited.
func (m *move) justPublished(ctx context.Context) error {
	n, err := m.fs.lookup(ctx, m.from)
	if err != nil {
		return err
	}
	if n.Kind != catalogview.KindObject {
		return errIsDirectory
	}
	return m.object(ctx, n)
}

// setTarget makes the version one of another name. A publish that is under way is
// waited for; published says that the file lies at its old name by then. errBusy.
func (s *stagedNode) setTarget(ctx context.Context, w staging.NewWrite) (published bool, err error) {
	if !s.commit.lockSoon() {
		return false, errBusyPublish
	}
	defer s.commit.Unlock()
	if s.latest != nil && !s.file.Dirty() {
		return true, nil
	}
	if err := s.withdraw(ctx); err != nil {
		return false, err
	}
	return false, s.retarget(w)
}

// retarget is setTarget for who holds commit.
func (s *stagedNode) retarget(w staging.NewWrite) error {
	if err := s.file.SetTarget(w); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = w.Hold
	return nil
}

// publishAs publishes a file under the name that it is renamed to. If that fails it
// is at its old name as before, unless nobody knows whether it failed.
func (m *move) publishAs(ctx context.Context, s *stagedNode, w staging.NewWrite) error {
	m.fs.publishing.begin()
	defer m.fs.publishing.end()
	if !s.commit.lockSoon() {
		return errBusyPublish
	}
	if s.latest != nil && !s.file.Dirty() {
		s.commit.Unlock()
		return m.justPublished(ctx)
	}
	err := m.publishLocked(ctx, s, w)
	s.commit.Unlock()
	s.end() // unless it waits
	return err
}

func (m *move) publishLocked(ctx context.Context, s *stagedNode, w staging.NewWrite) error {
	if err := s.withdraw(ctx); err != nil {
		return err
	}
	was := s.file.Record()
	if err := s.retarget(w); err != nil {
		return err
	}
	obj, err := s.commitVersion(ctx)
	switch {
	case isEmpty(err): // it waits for its bytes, under the new name
		m.renamed(s, m.target.Location)
		return m.fs.dropReplaced(ctx, was)
	case err == nil, unregistered(err) != nil:
		m.renamed(s, m.target.Location)
		s.published(obj)
		if failed := m.fs.dropReplaced(ctx, was); failed != nil {
			return failed
		}
		if err != nil {
			return m.fs.fail(opPublish, m.to, err)
		}
		return nil
	}
	m.fs.superseded(m.target.Location) // it may be there all the same, or another's
	told := m.fs.fail(opPublish, m.to, err)
	if s.file.Record().Unsettled {
		m.renamed(s, m.target.Location)
		m.fs.names.hide(s) // kept, and shown
		return told
	}
	err = s.retarget(asBefore(was))
	if err == nil {
		err = s.file.SetState(was.State, was.Error)
	}
	if err != nil {
		m.fs.fail("record", m.from, err)
	}
	return told
}

// asBefore is the target that a record tells of.
func asBefore(r staging.Record) staging.NewWrite {
	return staging.NewWrite{Target: r.Target, Prefix: r.Prefix, Path: r.Path, Format: r.Format, Cond: r.Cond, Hold: r.Hold}
}

// idle reports whether nobody can write to the file any more. A descriptor's RELEASE
// may still be on its way when the program that closed it renames the file.
func (s *stagedNode) idle() bool {
	s.mu.Lock()
	var open []*stagedHandle
	for _, h := range s.writing {
		if !h.closed.Load() {
			open = append(open, h)
		}
	}
	s.mu.Unlock()
	for _, h := range open {
		if !h.flushed.Load() || !s.letGo(h) {
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeAll(open)
	return true
}

// letGo reports whether the process that opened h has closed it, and its children.
func (s *stagedNode) letGo(h *stagedHandle) bool {
	if h.opener == 0 {
		return true // another pid namespace: its FLUSH is all that can be told
	}
	now, inTime := s.fs.proc.closing(h.opener, s.name.ino).answer(procLimit)
	return inTime && !now.held
}

// dropReplaced removes what a new file had been renamed over, once it goes on to
// another name before its publish: to programs the old file was gone already.
func (f *FS) dropReplaced(ctx context.Context, was staging.Record) error {
	if was.Base != nil || was.Cond.IfMatch == "" || f.backups.at(was.Path) != nil {
		return nil
	}
	old, err := f.Store.Stat(ctx, was.Target)
	if errors.Is(err, objectstore.ErrNotExist) || err == nil && old.Match != was.Cond.IfMatch {
		return nil // gone, or another's by now
	}
	if err != nil {
		return err
	}
	f.Attr.Delete(attrKey(was.Target))
	if err := f.deleteExactly(ctx, old); err != nil && !errors.Is(err, objectstore.ErrChanged) {
		return err
	}
	f.vanished(was.Path, was.Target)
	return nil
}
