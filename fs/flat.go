package fs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// This file has what a store without directories needs (S3): the directories
// that live in the mount alone, and what the view has to be told.

// localPatience is how long a look-up of a directory that is there at any rate waits
// for the catalog to say that it is a partition of its by now.
const localPatience = 2 * time.Second

// lookup finds what is at path: a directory that lives in the mount alone, or
// what the view has there. A partition that the catalog has by now is its own.
func (f *FS) lookup(ctx context.Context, path string) (catalogview.Node, error) {
	if err := f.backups.absentAway(path); err != nil {
		return catalogview.Node{}, err
	}
	if inTree(path) {
		return f.lookupTree(ctx, path)
	}
	if !f.hasLocal(path) {
		return f.View.Lookup(ctx, path)
	}
	n, err := f.localNode(ctx, path)
	if err != nil {
		return f.View.Lookup(ctx, path)
	}
	if n.Table.Partitions != table.PartitionsOnDisk && n.Level <= len(n.Table.Keys) {
		asked, cancel := context.WithTimeout(ctx, localPatience)
		defer cancel()
		if known, err := f.View.Lookup(asked, path); err == nil && known.Registered {
			return known, nil
		}
	}
	return n, nil
}

// onlyHere returns the directory of the partition that path lies in, or on the
// way to one, where the catalog has partitions of its own, and not this one: no
// listing but the mount's has it, whatever is published there. "": it is in none.
func (f *FS) onlyHere(ctx context.Context, path string) string {
	parts := strings.Split(path, "/")
	if len(parts) < 4 {
		return "" // a file in a table's own directory
	}
	at := child(parts[0], parts[1])
	if !f.local.has(at) {
		return "" // nothing here lives in the mount alone
	}
	n, err := f.View.Lookup(ctx, at)
	if err != nil || n.Table == nil || n.Table.Partitions != table.PartitionsInCatalog {
		return ""
	}
	dir := strings.Join(parts[:min(2+len(n.Table.Keys), len(parts)-1)], "/")
	if n, err = f.View.Lookup(ctx, dir); err == nil && n.Registered {
		return ""
	}
	return dir
}

// localNode describes the directory path below a table. One that may be a partition,
// or lead to some, it describes as one that the catalog does not have, and asks for
// nothing; one in a partition is where the catalog has that.
func (f *FS) localNode(ctx context.Context, path string) (catalogview.Node, error) {
	if n, ok := f.localPartition(ctx, path); ok {
		return n, nil
	}
	t, err := f.View.Resolve(ctx, path)
	if err != nil {
		return catalogview.Node{}, err
	}
	return catalogview.Node{
		Kind: catalogview.KindDirectory, Path: path, Object: objectstore.Object{Location: t.Directory()},
		Table: t.Table, Level: t.Level + 1,
	}, nil
}

// localPartition is localNode of a directory at the level of a partition or above,
// where the partitions are the catalog's. ok is false for any other, and for one of a
// table that may not be written.
func (f *FS) localPartition(ctx context.Context, path string) (n catalogview.Node, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) < 3 {
		return n, false
	}
	below := parts[2:]
	up, err := f.View.Lookup(ctx, child(parts[0], parts[1]))
	if err != nil || up.Table == nil || !up.Table.Writable || up.Table.IsMetadata(below[0]) {
		return n, false
	}
	if up.Table.Partitions != table.PartitionsInCatalog || len(below) > len(up.Table.Keys) {
		return n, false
	}
	for _, base := range below {
		up = directoryIn(up, base)
	}
	return up, true
}

// localParent describes the directory path, in which others live in the mount alone.
func (f *FS) localParent(ctx context.Context, path string) (catalogview.Node, error) {
	if n, err := f.localNode(ctx, path); err == nil && n.Level < len(n.Table.Keys) {
		return n, nil
	}
	return f.lookup(ctx, path)
}

// localChild is localNode of a name in the directory up; it asks for nothing. Only a
// projection may have its partitions elsewhere than in their directory.
func (f *FS) localChild(ctx context.Context, up catalogview.Node, base string) (catalogview.Node, error) {
	if up.Table.Writable && up.Table.Partitions != table.PartitionsProjected {
		return directoryIn(up, base), nil
	}
	return f.localNode(ctx, child(up.Path, base))
}

// directoryIn describes a directory that lies in the store where its name says.
func directoryIn(up catalogview.Node, base string) catalogview.Node {
	at := up.Location()
	at.Key += base + "/"
	return catalogview.Node{
		Kind: catalogview.KindDirectory, Path: child(up.Path, base), Object: objectstore.Object{Location: at},
		Table: up.Table, Level: up.Level + 1,
	}
}

// published tells the view and what the mount remembers that o is at path now.
func (f *FS) published(path string, o objectstore.Object) {
	if !f.flat {
		return
	}
	f.View.Wrote(o)
	f.verified.note(o)
	f.changedIn(o.Location)
	ctx, cancel := f.background()
	defer cancel()
	dir, _ := parent(path)
	f.warnLocal(path, f.local.filled(dir, f.onlyHere(ctx, path)))
}

// vanished tells them that the object at path is gone. Its directory stays, as
// on any disk, until it is removed.
func (f *FS) vanished(path string, loc objectstore.Location) {
	if !f.flat {
		return
	}
	f.View.Removed(loc)
	f.verified.drop(loc)
	f.changedIn(loc)
	f.keepLocal(path)
}

// changedIn ends the time that a program gave the directory of loc: a name in it
// came or went.
func (f *FS) changedIn(loc objectstore.Location) {
	dir, _ := parent(strings.TrimSuffix(loc.Key, "/"))
	if dir != "" { // else a bucket's own, which a partition may have
		dir += "/"
	}
	f.Attr.Delete(timeKey(objectstore.Location{Bucket: loc.Bucket, Key: dir}))
}

// keepLocal keeps the directory of path, if it lies below a table's own. Those of a
// transaction are there as long as it is, and must not come back once it is over.
func (f *FS) keepLocal(path string) {
	if dir, _ := parent(path); strings.Count(dir, "/") >= 2 && !inTransaction(dir) {
		f.local.empty(dir)
	}
}

// deleteVersion removes o, which the caller judged: where the store can tell,
// another's version that took its place is not removed unseen (ErrChanged).
func (f *FS) deleteVersion(ctx context.Context, o objectstore.Object) error {
	if f.Write < WriteDelete {
		return f.deleteExactly(ctx, o)
	}
	return f.deleteOne(ctx, o.Location) // may remove whatever is there
}

// deleteExactly removes o, and where the store can tell nothing else: ErrChanged
// if another version is there.
func (f *FS) deleteExactly(ctx context.Context, o objectstore.Object) error {
	if s, ok := f.Store.(objectstore.VersionDeleter); ok {
		return s.DeleteVersion(ctx, o)
	}
	return f.deleteOne(ctx, o.Location)
}

// superseded tells them that what they know of loc is no longer so.
func (f *FS) superseded(loc objectstore.Location) {
	if !f.flat {
		return
	}
	f.View.Stale(loc)
	f.verified.drop(loc)
}

// warnLocal logs that the mount's own directories are not kept over its end.
func (f *FS) warnLocal(path string, err error) {
	if err != nil {
		f.Log.Warn("a directory of this mount alone is not kept over its end", attrPath(path), slog.Any("error", err))
	}
}

// makeLocal makes the directory path, at loc, which lives in the mount alone.
func (f *FS) makeLocal(path string, loc objectstore.Location) error {
	err := f.local.make(path)
	f.changedIn(loc)
	if errors.Is(err, errTooManyDirectories) {
		return err
	}
	f.warnLocal(path, err)
	return nil
}

// removeFlat removes a directory in which the store has nothing but its own
// markers, which go too. The store is asked, not a cached listing: what is not
// shown must not be left without its directory. With others' staging trees in it, it
// stays in the store as it is.
func (f *FS) removeFlat(ctx context.Context, path string, n catalogview.Node) error {
	if f.holdsLocal(path) {
		return objectstore.ErrNotEmpty
	}
	own, trees, err := f.ownMarkers(ctx, n)
	if err != nil {
		return err
	}
	if !trees {
		if err := f.removeOwn(ctx, own); err != nil {
			return err
		}
		f.View.Removed(n.Location())
	}
	f.changedIn(n.Location())
	f.warnLocal(path, f.local.remove(path))
	f.keepLocal(path)
	return nil
}

// removeOwn removes a directory's own markers, if all may be removed.
func (f *FS) removeOwn(ctx context.Context, own []objectstore.Object) error {
	for _, o := range own {
		if err := f.mayChange(o, WriteDelete); err != nil {
			return err
		}
	}
	for _, o := range own {
		if err := f.deleteOne(ctx, o.Location); err != nil {
			return err
		}
		f.View.Removed(o.Location)
	}
	return nil
}

// ownMarkers returns the objects by which a directory is there though nothing
// lies in it: "p/" and "p_$folder$"; trees as bare tells it. ErrNotEmpty if something
// lies in it that is listed.
func (f *FS) ownMarkers(ctx context.Context, n catalogview.Node) (own []objectstore.Object, trees bool, err error) {
	own, trees, err = f.bare(ctx, n.Location())
	if err != nil {
		return nil, false, err
	}
	marker, err := f.View.Marker(ctx, n)
	switch {
	case err == nil:
		own = append(own, marker)
	case !errors.Is(err, objectstore.ErrNotExist):
		return nil, false, err
	}
	return own, trees, nil
}

// catalogDirectory removes a directory that the catalog has, if it is a partition
// without objects (see leave), or says why not: one of a projection is there whatever
// the store holds.
func (f *FS) catalogDirectory(ctx context.Context, path string, n catalogview.Node) error {
	if f.ReadOnly {
		return errReadOnly
	}
	if n.Level < len(n.Table.Keys) || f.holdsLocal(path) {
		return objectstore.ErrNotEmpty // its partitions
	}
	own, trees, err := f.ownMarkers(ctx, n)
	if err != nil {
		return err
	}
	if n.Table.Partitions == table.PartitionsProjected {
		return errProjected
	}
	if trees {
		own = nil
	}
	return f.leave(ctx, path, n, own)
}

// holdsLocal reports whether a directory that lives in the mount alone lies in dir. A
// staging tree does not count: rm -r does not see it, and it goes with dir; nor does a
// transaction, which stays.
func (f *FS) holdsLocal(dir string) bool {
	return slices.ContainsFunc(f.local.children(dir), func(base string) bool {
		return !table.StagingTree(base) && base != controlName
	})
}

// tableAt finds the table that path lies below.
func (f *FS) tableAt(ctx context.Context, path string) (catalogview.Node, error) {
	parts := strings.SplitN(path, "/", 3)
	return f.View.Lookup(ctx, child(parts[0], parts[1]))
}

// rememberDirectory keeps what is remembered of a new directory.
func (f *FS) rememberDirectory(ctx context.Context, dir objectstore.Location, mode uint32) {
	uid, gid := f.caller(ctx)
	mode &= 0o7777
	f.Attr.Set(attrKey(dir), "", attr.Attributes{Mode: &mode, UID: &uid, GID: &gid, Made: true})
}
