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

// own remembers that this mount made the new directories.
func (t *treeMove) own() {
	for _, dir := range t.fresh {
		a, _ := t.fs.Attr.Get(attrKey(dir), "")
		a.Made = true
		t.fs.Attr.Set(attrKey(dir), "", a)
	}
}

// makeDirectories checks the names of the directories that are new at the target, and
// makes them where the store has directories.
func (t *treeMove) makeDirectories(ctx context.Context) error {
	beside := make(map[string][]string)
	for _, path := range t.directories() {
		dir, base := parent(path)
		if inTree(path) || path == t.to && t.there {
			continue
		}
		if t.fs.stays(path) {
			t.back = append(t.back, path)
			continue
		}
		target, err := t.fs.View.ResolveDirectory(ctx, path, append(t.fs.localIn(dir), beside[dir]...)...)
		if err != nil {
			return err
		}
		beside[dir] = append(beside[dir], base)
		t.fresh = append(t.fresh, target.Directory())
		dirs, ok := t.fs.Store.(objectstore.Directories)
		if !ok {
			continue
		}
		if err := t.fs.makeWithParents(ctx, dirs, target); err != nil {
			return err
		}
		t.made = append(t.made, target.Directory())
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

// unmakeDirectories removes what makeDirectories made, and has the partitions leave
// again that it took back.
func (t *treeMove) unmakeDirectories(ctx context.Context) {
	for _, dir := range slices.Backward(t.made) {
		if err := t.fs.deleteOne(ctx, dir); err != nil {
			t.fs.Log.WarnContext(ctx, "a directory that was made for a rename that failed stays", slog.String("key", dir.Key), slog.Any("error", err))
		}
	}
	for _, path := range t.back {
		t.fs.leaveAgain(ctx, path)
	}
}
