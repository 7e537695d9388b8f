package fs

import (
	"context"
	"log/slog"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The directories of a treeMove that leaves its staging tree.

// leave makes the directories those of the mount alone at their new places, until
// something is published in them; where the store has directories, its own are made
// already, and those that are in a staging tree yet are none of the store's.
func (t *treeMove) leave() {
	if t.fs.flat {
		t.fs.warnLocal(t.to, t.fs.local.move(t.from, t.to, false))
		return
	}
	for _, path := range t.directories() {
		if inTree(path) {
			t.fs.warnLocal(path, t.fs.local.make(path))
		}
	}
	t.fs.warnLocal(t.from, t.fs.local.remove(t.from))
}

// makeDirectories checks the names of the directories that are new at the target, and
// makes them where the store has directories.
func (t *treeMove) makeDirectories(ctx context.Context) error {
	for _, path := range t.directories() {
		if inTree(path) || path == t.to && t.there {
			continue
		}
		if err := t.fresh.add(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// directories are the new paths of the directory and of all that is in it, each
// behind the one that it lies in.
func (t *treeMove) directories() []string {
	seen := map[string]bool{t.to: true}
	for _, path := range t.fs.local.below(t.from) {
		seen[t.newPath(path)] = true
	}
	for _, s := range t.files {
		for dir, _ := parent(s.path); !seen[dir]; dir, _ = parent(dir) {
			seen[dir] = true
		}
	}
	all := make([]string, 0, len(seen))
	for path := range seen {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// freshDirectories are the new directories below a table that several files are
// published into. Its fs is to be set.
type freshDirectories struct {
	fs     *FS
	fresh  []objectstore.Location // that this mount makes
	made   []objectstore.Location // those of fresh that the store was asked to make
	back   []string               // the leaving partitions that were taken back
	beside map[string][]string    // the names of fresh, by the directory that they lie in
}

// add checks the name of the directory path, and makes it where the store has
// directories. A leaving partition is taken back.
func (d *freshDirectories) add(ctx context.Context, path string) error {
	if d.fs.stays(path) {
		d.back = append(d.back, path)
		return nil
	}
	dir, base := parent(path)
	target, err := d.fs.View.ResolveDirectory(ctx, path, append(d.fs.localIn(dir), d.beside[dir]...)...)
	if err != nil {
		return err
	}
	if d.beside == nil {
		d.beside = make(map[string][]string)
	}
	d.beside[dir] = append(d.beside[dir], base)
	if dirs, ok := d.fs.Store.(objectstore.Directories); ok {
		if err := d.fs.makeWithParents(ctx, dirs, target); err != nil {
			return err
		}
		d.made = append(d.made, target.Directory())
	}
	d.fresh = append(d.fresh, target.Directory())
	return nil
}

// has reports whether path is one of fresh.
func (d *freshDirectories) has(path string) bool {
	dir, base := parent(path)
	return slices.Contains(d.beside[dir], base)
}

// own remembers that this mount made the directories.
func (d *freshDirectories) own() {
	for _, dir := range d.fresh {
		a, _ := d.fs.Attr.Get(attrKey(dir), "")
		a.Made = true
		d.fs.Attr.Set(attrKey(dir), "", a)
	}
}

// undo removes the directories again, and has the partitions leave again that were
// taken back.
func (d *freshDirectories) undo(ctx context.Context) {
	for _, dir := range slices.Backward(d.made) {
		if err := d.fs.deleteOne(ctx, dir); err != nil {
			d.fs.Log.WarnContext(ctx, "a directory that was made for files that could not be published stays", slog.String("key", dir.Key), slog.Any("error", err))
		}
	}
	for _, path := range d.back {
		d.fs.leaveAgain(ctx, path)
	}
}
