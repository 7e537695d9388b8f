package fs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// draftAt says what a new file at path is, where tables' entries may be written: ok is
// false if it is no draft. Names that tools give to what is never data (locks, swap
// files) are none, also where they end as an entry's.
func (f *FS) draftAt(path string) (n draftName, ok bool) {
	dir, base := parent(path)
	if !f.WriteEntries || dir == "" || strings.Contains(dir, "/") || base == controlName {
		return draftName{}, false
	}
	if f.LocalNames.Match(base, func(string) bool { return true }) {
		return draftName{}, false
	}
	n = draftName{path: path}
	n.temporary = f.TemporaryNames.Match(base, func(beside string) bool { return f.isThere(child(dir, beside)) })
	return n, n.temporary || entryPath(path)
}

// mayWriteEntries checks whether the entry at path may be written at all.
func (f *FS) mayWriteEntries(path string) error {
	switch {
	case f.ReadOnly:
		return errReadOnly
	case !f.WriteEntries:
		return errEntryWrite
	case !strings.Contains(path, "/"):
		return errDatabaseEntry
	case f.draining.Load():
		return errDraining
	}
	return nil
}

// mayChangeEntry checks the write level against a change of a table's entry, which is
// there in this version.
func (f *FS) mayChangeEntry(path, version string, need WriteLevel) error {
	if err := f.mayWriteEntries(path); err != nil {
		return err
	}
	if f.Write >= need || f.Write >= WriteCreate && f.madeEntry(path, version) {
		return nil
	}
	return errWriteLevel
}

// madeEntry tells whether this mount made the table whose entry is at path.
func (f *FS) madeEntry(path, version string) bool {
	a, ok := f.Attr.Get(entryKey(path), version)
	return ok && a.Made
}

// entryKey is an entry's key in the attribute store. No bucket is called so.
func entryKey(path string) string { return "\x00entry\x00" + path }

// rewrite begins a draft of the entry at path for the calling thread and answers ESTALE,
// upon which the kernel looks the name up again and gets the draft.
func (f *FS) rewrite(ctx context.Context, path string) syscall.Errno {
	tid := thread(ctx)
	if s := f.drafts.visible(path); s != nil && s.reserve() {
		f.drafts.promise(s, tid)
		return toErrno(errSuperseded)
	}
	if !entryPath(path) {
		return toErrno(errSuperseded)
	}
	if err := f.mayWriteEntries(path); err != nil {
		return f.fail("open for writing", path, err)
	}
	work, cancel := f.background()
	defer cancel()
	data, now, err := f.View.FreshEntry(work, entryOwner(path))
	if errors.Is(err, objectstore.ErrNotExist) {
		f.View.Refresh(path)
		return toErrno(errSuperseded) // the second look-up will say so
	}
	if err == nil {
		err = f.mayChangeEntry(path, now.ETag, WriteOverwrite)
	}
	if err != nil {
		return f.fail("open for writing", path, err)
	}
	s := &draftNode{data: data, begun: now.ETag, by: f.proc.programOf(tid), attrs: f.entryAttributes(now)}
	s.base = f.drafts.reads.version(s.by, path, now.ETag)
	if err := f.newDraft(s, draftName{path: path}, false); err != nil {
		return f.fail("open for writing", path, err)
	}
	f.drafts.promise(s, tid)
	return toErrno(errSuperseded)
}

// reserve keeps the draft for an open; false if it has ended.
func (s *draftNode) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.reserved++
	return true
}

// entryAttributes are those that the entry of n shows.
func (f *FS) entryAttributes(n catalogview.Node) staging.Attributes {
	return staging.Attributes{Mode: f.entryMode(n.Path), UID: f.UID, GID: f.GID, MTime: n.ModTime}
}

// entryMode are the permissions of the entry at path: editors ask them whether they may
// write.
func (f *FS) entryMode(path string) uint32 {
	mode := f.FileMode & 0o444
	if f.WriteEntries && !f.ReadOnly && f.Write >= WriteCreate && strings.Contains(path, "/") {
		mode |= f.FileMode & 0o200
	}
	return uint32(mode &^ f.Umask)
}

// createDraft is Create of an entry, or of a temporary name beside entries. Where the
// name exists by now, the kernel is sent to look it up again, and opens what is there.
func (d *dirNode) createDraft(ctx context.Context, n draftName, flags, mode uint32, out *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	f := d.fs
	taken, err := f.draftTaken(n)
	if err == nil && !taken {
		err = errors.Join(f.mayWriteEntries(n.path), f.mayCreate())
	}
	switch {
	case err != nil:
		return nil, nil, 0, f.fail("create", n.path, err)
	case taken && flags&syscall.O_EXCL != 0:
		return nil, nil, 0, toErrno(objectstore.ErrExist)
	case taken:
		return nil, nil, 0, f.rewrite(ctx, n.path)
	}
	uid, gid := f.caller(ctx)
	s := &draftNode{changes: 1, attrs: staging.Attributes{Mode: mode & 0o7777, UID: uid, GID: gid, MTime: time.Now()}}
	if !n.temporary { // what it has read is gone: it is no change of that, and no new table
		s.base = f.drafts.reads.version(f.proc.programOf(thread(ctx)), n.path, "")
	}
	if err := f.newDraft(s, n, true); err != nil {
		return nil, nil, 0, f.fail("create", n.path, err)
	}
	h, _ := s.open(ctx, flags|syscall.O_WRONLY) // reserved: it has not ended
	s.release()
	return s.entry(out), h, fuse.FOPEN_KEEP_CACHE, 0
}

// draftTaken tells whether a new file's name is taken.
func (f *FS) draftTaken(n draftName) (bool, error) {
	if f.drafts.visible(n.path) != nil {
		return true, nil
	}
	ctx, cancel := f.background()
	defer cancel()
	var err error
	if n.temporary {
		_, err = f.View.Lookup(ctx, n.path)
	} else {
		_, _, err = f.View.FreshEntry(ctx, entryOwner(n.path))
	}
	if errors.Is(err, objectstore.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// forgetDrafts takes path from all who write there.
func (f *FS) forgetDrafts(path string) {
	for _, s := range f.drafts.remove(path) {
		s.unlink()
	}
}

// entryChanged makes the kernel ask again for an entry, and for the table's directory,
// which may be new, or gone: what it knows of both, an absence too. It does so aside:
// the kernel may hold the directory's lock until the request is answered.
func (f *FS) entryChanged(path string) {
	dir, base := parent(path)
	go func() {
		f.dropDentries(entryOwner(path))
		if in := f.root.GetChild(dir); in != nil {
			_ = in.NotifyEntry(base) // ENOENT: the kernel did not have it
			_ = in.NotifyEntry(entryOwner(base))
		}
	}()
}

// reportDrafts logs the entries that programs have open and that are not written: they
// end with the mount.
func (f *FS) reportDrafts() {
	for _, path := range f.drafts.open() {
		f.Log.Warn("the mount ends while a catalog entry is being written: it stays as it was", slog.String("path", path))
	}
}
