package fs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

var (
	_ gofs.NodeUnlinker = (*dirNode)(nil)
	_ gofs.NodeRmdirer  = (*dirNode)(nil)
)

// Unlink removes a name: an unpublished file, the published one, a table's entry. Who
// has removed an entry knows that it is gone.
func (d *dirNode) Unlink(ctx context.Context, base string) syscall.Errno {
	return d.take("unlink", base, func(work context.Context, path string) error {
		entry := d.fs.WriteEntries && entryPath(path) && d.fs.drafts.visible(path) == nil
		err := d.fs.unlinkHeldBack(work, path)
		if entry && err == nil {
			d.fs.drafts.reads.forget(d.fs.proc.programOf(thread(ctx)), path)
		}
		return err
	})
}

// take runs the removal of a name of d.
func (d *dirNode) take(operation, base string, remove func(ctx context.Context, path string) error) syscall.Errno {
	dir, err := d.path()
	if err != nil {
		return toErrno(err)
	}
	path := child(dir, base)
	leave, err := d.fs.txns.enter(path)
	if err != nil {
		return d.fs.fail(operation, path, err)
	}
	defer leave()
	ctx, cancel := d.fs.background()
	defer cancel()
	return d.fs.fail(operation, path, remove(ctx, path))
}

func (f *FS) unlink(ctx context.Context, path string) error {
	if _, base := parent(path); base == controlName {
		return errIsDirectory
	}
	if handled, err := f.removeEntry(ctx, path); handled {
		return err
	}
	s, _, _ := f.names.stagedAt(path, 0) // first: it may be published between the two looks
	if s != nil && belowStagingTree(path) {
		return f.unlinkStaged(ctx, path) // what the store has there shows from now on
	}
	n, err := f.lookup(ctx, path)
	if errors.Is(err, objectstore.ErrNotExist) {
		return f.unlinkUnpublished(ctx, path, s, err)
	}
	if err != nil {
		return err
	}
	switch n.Kind {
	case catalogview.KindObject:
	case catalogview.KindEntry:
		return errEntryWrite
	default:
		return errIsDirectory
	}
	if err = errors.Join(f.mayChange(n.Object, WriteDelete), f.mayRemoveFromTree(path, n.Object)); err != nil {
		return err
	}
	if _, err = f.View.Resolve(ctx, path); err != nil {
		return err
	}
	writers, err := f.holdWriters(path)
	if err != nil {
		return err
	}
	defer unlockAll(writers)
	f.detach(n.Object)
	ctx, cancel := f.background() // a removal's time, from here on
	defer cancel()
	if err = f.deleteVersion(ctx, n.Object); err != nil {
		if supersedes(err) {
			f.superseded(n.Object.Location)
		}
		return err // ESTALE: the kernel asks once more, and the version that is there is judged
	}
	f.Attr.Delete(attrKey(n.Object.Location))
	err = f.dropWriters(ctx, path, writers)
	f.dropSums(path)
	f.vanished(path, n.Object.Location) // after the writers lost their name, or one would take the directory for filled
	return err
}

// unlinkUnpublished is unlink of a name that the store does not have. s is the
// unpublished file that it led to before the store was asked; nil: to none.
func (f *FS) unlinkUnpublished(ctx context.Context, path string, s *stagedNode, absent error) error {
	if s != nil {
		if !slices.Contains(f.names.writersAt(path), s) { // published, and closed, meanwhile
			return f.unlink(ctx, path)
		}
		return f.unlinkStaged(ctx, path)
	}
	if w := f.underStagingName(path); w != nil {
		return f.unlinkKept(ctx, w)
	}
	return absent
}

// detach has the files over o fetch what they lack before o goes from the store:
// descriptors go on. It takes the time that the bytes take, and as long for a publish
// as a removal waits for one. That it could not is logged, and o goes all the same.
func (f *FS) detach(o objectstore.Object) {
	ctx, cancel := f.lasting()
	defer cancel()
	if err := f.Area.Detach(ctx, o, publishPatience); err != nil {
		f.Log.Warn("what is open of a removed file, or a copy of it, can not be read in whole",
			slog.String("key", o.Key), slog.Any("error", err))
	}
}

// unlinkStaged takes path from all who write there: they publish nothing.
func (f *FS) unlinkStaged(ctx context.Context, path string) error {
	if f.ReadOnly {
		return errReadOnly
	}
	writers, err := f.holdWriters(path)
	if err != nil {
		return err
	}
	defer unlockAll(writers)
	return f.dropWriters(ctx, path, writers)
}

// holdWriters keeps all who write at path from publishing, and waits for what one
// of them is publishing at this moment; errBusy if that takes too long.
func (f *FS) holdWriters(path string) ([]*stagedNode, error) {
	writers := f.names.writersAt(path)
	if err := lockAll(writers); err != nil {
		return nil, err
	}
	return writers, nil
}

// lockAll takes the commit locks of all writers, or of none: errBusy.
func lockAll(writers []*stagedNode) error {
	for i, s := range writers {
		if !s.commit.lockSoon() {
			unlockAll(writers[:i])
			return errBusyPublish
		}
	}
	return nil
}

// dropWriters takes path from those who write there, and removes what one of
// them published meanwhile. The caller holds them.
func (f *FS) dropWriters(ctx context.Context, path string, writers []*stagedNode) error {
	for _, s := range f.names.remove(path) {
		s.unlink()
	}
	var problems []error
	for _, s := range writers {
		problems = append(problems, s.retract(ctx))
	}
	return errors.Join(problems...)
}

func unlockAll(writers []*stagedNode) {
	for _, s := range writers {
		s.commit.Unlock()
	}
}

// unlinkKept drops a kept file by its staging name, which nothing lists: a
// job that clears its _temporary never takes another writer's file.
func (f *FS) unlinkKept(ctx context.Context, w *staging.File) error {
	if f.ReadOnly {
		return errReadOnly
	}
	leave, err := f.txns.enter(w.Record().Path)
	if err != nil {
		return err
	}
	defer leave()
	return f.discard(ctx, w)
}

func (f *FS) deleteOne(ctx context.Context, loc objectstore.Location) error {
	for _, err := range f.Store.Delete(ctx, []objectstore.Location{loc}) {
		return err
	}
	return nil
}

// Rmdir removes an empty directory below a table. A table's own stays, and 0 is
// answered all the same: Spark's overwrite removes it first.
func (d *dirNode) Rmdir(_ context.Context, base string) syscall.Errno {
	return d.take("rmdir", base, d.fs.rmdir)
}

func (f *FS) rmdir(ctx context.Context, path string) error {
	if _, base := parent(path); base == controlName {
		return errControl
	}
	if inTree(path) {
		return f.rmdirTree(ctx, path)
	}
	n, err := f.lookup(ctx, path)
	if err != nil {
		return err
	}
	switch n.Kind {
	case catalogview.KindObject, catalogview.KindEntry:
		return errNotDirectory
	case catalogview.KindRoot, catalogview.KindDatabase:
		return errFixedDirectory
	}
	u, err := f.unlisted(path, n.Kind == catalogview.KindTable)
	if err != nil {
		return err
	}
	if err := f.rmdirListed(ctx, path, n); err != nil {
		return err
	}
	return u.drop(ctx, f)
}

// rmdirListed is rmdir of a directory below which nothing unpublished counts.
func (f *FS) rmdirListed(ctx context.Context, path string, n catalogview.Node) (err error) {
	if n.Kind == catalogview.KindTable {
		return f.rmdirTable(ctx, path)
	}
	if n.Registered {
		return f.catalogDirectory(ctx, path, n)
	}
	if err = f.mayRemoveDirectory(path, n.Location()); err != nil {
		return err
	}
	if _, err = f.View.Resolve(ctx, path); err != nil {
		return err
	}
	if f.flat {
		err = f.removeFlat(ctx, path, n)
	} else {
		err = f.deleteUnlessTrees(ctx, n)
	}
	if err != nil {
		return err
	}
	f.Attr.Delete(attrKey(n.Location()))
	f.Attr.Delete(timeKey(n.Location()))
	f.names.remove(path)
	return nil
}

// deleteDirectory removes an empty directory, and the X_$folder$ by which it
// would still be there.
func (f *FS) deleteDirectory(ctx context.Context, n catalogview.Node) error {
	marker, err := f.View.Marker(ctx, n)
	marked := err == nil
	if err != nil && !errors.Is(err, objectstore.ErrNotExist) {
		return err
	}
	if marked {
		if err := f.mayChange(marker, WriteDelete); err != nil {
			return err
		}
	}
	if err := f.deleteOne(ctx, n.Location()); err != nil || !marked {
		return err
	}
	return f.deleteOne(ctx, marker.Location)
}

// rmdirTable answers for a table's directory, which the catalog holds. The
// kernel takes the old inode for dead: the next look-up gives another.
func (f *FS) rmdirTable(ctx context.Context, path string) error {
	if f.ReadOnly {
		return errReadOnly
	}
	if f.Write < WriteCreate {
		return errWriteLevel
	}
	if err := f.tableBare(ctx, path); err != nil {
		return err
	}
	if f.holdsLocal(path) {
		return objectstore.ErrNotEmpty
	}
	f.names.remove(path)
	return nil
}

func (f *FS) mayRemoveDirectory(path string, loc objectstore.Location) error {
	if f.hasLocal(path) && !f.ReadOnly && f.Write >= WriteCreate {
		return nil // nobody else's: the objects in it, if any, forbid it
	}
	return f.mayChange(objectstore.Object{Location: loc}, WriteDelete)
}
