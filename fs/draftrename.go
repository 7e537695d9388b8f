package fs

import (
	"context"
	"errors"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// renameEntry renames what is no published file of a table: a draft, or refuses it for
// an entry. handled is false if from is neither.
func (f *FS) renameEntry(ctx context.Context, from, to string, noReplace bool) (handled bool, err error) {
	if !f.WriteEntries || strings.Count(from, "/") > 1 {
		return false, nil
	}
	if s := f.drafts.visible(from); s != nil {
		return true, f.renameDraft(s, to, f.proc.programOf(thread(ctx)), noReplace)
	}
	work, cancel := f.work(ctx)
	defer cancel()
	if n, err := f.lookup(work, from); err == nil && n.Kind == catalogview.KindEntry {
		if f.ReadOnly {
			return true, errReadOnly
		}
		return true, errEntryMove
	}
	return false, nil
}

// renameDraft gives a draft another name. Under an entry's name that is its write, in
// the call; unless a program has the draft open for writing yet: then it is the close's.
func (f *FS) renameDraft(s *draftNode, to string, by program, noReplace bool) error {
	n, err := f.draftTarget(to)
	if err != nil || s.path() == to {
		return err
	}
	if !s.commit.lockSoon() {
		return errBusyPublish
	}
	defer s.commit.Unlock()
	if err = s.failed(); err != nil {
		return err
	}
	if n.temporary {
		if noReplace && f.drafts.visible(n.path) != nil {
			return objectstore.ErrExist
		}
		f.renamed(s, n, true)
		return nil
	}
	base, err := f.replaces(n.path, by, noReplace)
	if err != nil {
		return err
	}
	s.mu.Lock()
	open := s.rule.writers > s.rule.closed
	was := s.base
	s.base, s.by = base, by
	s.mu.Unlock()
	if open {
		f.renamed(s, n, base == "")
		return nil
	}
	if err = s.put(n.path); err != nil {
		s.mu.Lock()
		s.base, s.refused = was, 0 // it stays as it is, under its name
		s.mu.Unlock()
		return f.fail(opPublish, n.path, err)
	}
	f.renamed(s, n, false)
	s.end()
	return nil
}

// draftTarget is what a draft becomes that is renamed to path.
func (f *FS) draftTarget(path string) (draftName, error) {
	n, ok := f.draftAt(path)
	switch {
	case f.ReadOnly:
		return n, errReadOnly
	case ok:
		return n, nil
	case strings.Count(path, "/") > 1:
		return n, objectstore.ErrCrossDevice // a table's file: mv copies it
	case entryPath(path) && !strings.Contains(path, "/"):
		return n, errDatabaseEntry
	}
	return n, catalogview.ErrLevel
}

// failed is why the draft is not to be written.
func (s *draftNode) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.rule.torn:
		return errTorn
	case s.ended: // it was dropped since it was found
		return objectstore.ErrNotExist
	}
	return s.spoilt
}

// renamed gives s its new name; who had it writes nothing any more.
func (f *FS) renamed(s *draftNode, to draftName, visible bool) {
	if lost := f.drafts.move(s, to, visible); lost != nil {
		lost.unlink()
	}
}

// replaces is the version that a rename over the entry at path replaces, "" for a new
// one: the one that the renaming program has read, though it is gone by now, else the
// one that is there.
func (f *FS) replaces(path string, by program, noReplace bool) (string, error) {
	ctx, cancel := f.background()
	defer cancel()
	_, now, err := f.View.FreshEntry(ctx, entryOwner(path))
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		if noReplace && f.drafts.visible(path) != nil {
			return "", objectstore.ErrExist
		}
		return f.drafts.reads.version(by, path, ""), errors.Join(f.mayWriteEntries(path), f.mayCreate())
	case err != nil:
		return "", err
	case noReplace:
		return "", objectstore.ErrExist
	}
	return f.drafts.reads.version(by, path, now.ETag), f.mayChangeEntry(path, now.ETag, WriteOverwrite)
}

// removeEntry unlinks a draft, which then is written nowhere, or drops a table from the
// catalog. handled is false if path is neither.
func (f *FS) removeEntry(ctx context.Context, path string) (handled bool, err error) {
	if !f.WriteEntries || strings.Count(path, "/") > 1 {
		return false, nil
	}
	if s := f.drafts.visible(path); s != nil {
		if f.ReadOnly {
			return true, errReadOnly
		}
		if !s.commit.lockSoon() {
			return true, errBusyPublish
		}
		defer s.commit.Unlock()
		if f.drafts.visible(path) == s { // else its write is done: the entry is what goes
			f.forgetDrafts(path)
			return true, nil
		}
	}
	if n, absent := f.View.Lookup(ctx, path); absent != nil || n.Kind != catalogview.KindEntry {
		return false, nil // what is no entry is for the ordinary way to judge
	}
	if err = f.mayWriteEntries(path); err != nil {
		return true, err
	}
	f.publishing.begin()
	defer f.publishing.end()
	_, now, err := f.View.FreshEntry(ctx, entryOwner(path))
	if err == nil {
		err = f.mayChangeEntry(path, now.ETag, WriteDelete)
	}
	if err == nil {
		err = f.View.RemoveEntry(ctx, entryOwner(path), now.ETag)
	}
	if err != nil {
		return true, err
	}
	f.Attr.Delete(entryKey(path))
	f.forgetDrafts(path)
	f.entryChanged(path)
	return true, nil
}
