package fs

import (
	"context"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// settleBackups is what a rename does about renames that are held back: done if it
// takes one back. Else those of its paths stay as they are until held.unlock.
func (m *move) settleBackups(ctx context.Context) (held lockedBackups, done bool, err error) {
	if held, err = m.fs.backups.lockPaths(m.from, m.to); err != nil || m.from == m.to {
		return held, false, err
	}
	if a := held.to(m.from); a != nil && a.from == m.to && a.backup != nil {
		if a.backup.file.Changes() == 0 {
			return held, true, m.takeBack(ctx, a)
		}
		if err = a.secure(ctx); err == nil { // it is published in the object's place
			a.letGo()
		}
		return held, false, err
	}
	for _, a := range held {
		if a.to == m.from || a.to == m.to {
			if err = a.part(ctx); err != nil {
				return held, false, err
			}
		}
	}
	return held, false, nil
}

// leads returns the unpublished file that n leads to, reserved for an open, or nil: a
// node of an object that was renamed has the name still, for the kernel.
func (t *names) leads(n *name) *stagedNode {
	t.mu.Lock()
	s := n.staged
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.passed || s.rule.unlinked {
		return nil
	}
	s.reserved++
	return s
}

// unclaimed ends a reservation of leads' that nobody came for.
func (s *stagedNode) unclaimed() {
	s.release()
	s.end()
}

// takeBack renames a backup to the name that it had: nothing has happened.
func (m *move) takeBack(ctx context.Context, a *away) error {
	f := m.fs
	if s, _, _ := f.names.stagedAt(m.to, 0); s != nil && m.noReplace {
		return objectstore.ErrExist
	}
	t, err := f.View.Resolve(ctx, m.to)
	if err != nil {
		return err
	}
	m.renamed(a.backup, a.old.Location)
	f.backups.drop(a)
	a.handOver(ctx, m.to, t, a.old)
	f.changedIn(a.old.Location)
	return nil
}

// unlinkHeldBack is unlink of what may be a backup.
func (f *FS) unlinkHeldBack(ctx context.Context, path string) error {
	held, err := f.backups.lockPaths(path)
	if err != nil {
		return err
	}
	defer held.unlock()
	if a := held.to(path); a != nil && a.backup != nil {
		return a.unlink(ctx)
	}
	return f.unlink(ctx, path)
}

// unlink removes the backup, and the object with it unless a new file is about to take
// its place.
func (a *away) unlink(ctx context.Context) error {
	f := a.fs
	if f.ReadOnly {
		return errReadOnly
	}
	replacing := a.replacing()
	if !replacing {
		if err := f.mayChange(a.old, WriteDelete); err != nil {
			return err
		}
	}
	writers, err := f.holdWriters(a.to)
	if err != nil {
		return err
	}
	defer unlockAll(writers)
	if !replacing {
		if a.backup.isOpen() {
			f.detach(a.old)
		}
		if err = a.deleteOld(ctx); err != nil {
			return err
		}
		f.backups.drop(a)
	}
	err = f.dropWriters(ctx, a.to, writers)
	a.owed = true
	a.letGo()
	return err
}

// isOpen reports whether somebody has the file open.
func (s *stagedNode) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles > 0
}

// partBackups is part for a rename of a directory.
func (m *move) partBackups(ctx context.Context) error {
	if err := m.held.part(ctx); err != nil {
		return err
	}
	return m.fs.partBelow(ctx, m.from)
}
