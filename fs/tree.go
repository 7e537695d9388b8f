package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Staging trees (table.StagingTree) are where engines keep output that is not to be
// seen yet. In the mount each is an ordinary directory tree: its directories live in
// localDirectories, its files are staged files that are held (staging.Local) and
// found and listed where they are; the store has nothing of it. What others have in
// the store under that name shows through, to be read, where this mount has nothing;
// it is shared with other hosts' jobs, so nothing of it is changed (rule 24).

var (
	errIntoTree  = fmt.Errorf("what is published does not move into a staging tree: %w", objectstore.ErrCrossDevice)
	errTreeStore = fmt.Errorf("the store has a part of the staging tree: %w", objectstore.ErrCrossDevice)
)

// inTree reports whether path is a staging tree, or lies in one.
func inTree(path string) bool {
	_, ok := inStagingTree(path)
	return ok
}

// hasLocal reports whether the directory path lives in this mount. Where the store
// has directories, no others do than those of staging trees.
func (f *FS) hasLocal(path string) bool {
	if inTree(path) {
		return f.local.has(path) || f.names.stagedBelow(path)
	}
	return f.flat && f.local.has(path)
}

// localIn returns the names of the directories in dir that live in this mount alone,
// without those of staging trees, unless dir is in one.
func (f *FS) localIn(dir string) []string {
	if !f.flat && !inTree(dir) {
		return nil
	}
	bases := f.local.children(dir)
	if inTree(dir) {
		return bases
	}
	kept := bases[:0]
	for _, base := range bases {
		if !table.StagingTree(base) && base != controlName {
			kept = append(kept, base)
		}
	}
	return kept
}

// lookupTree is lookup in a staging tree: what the mount has there hides what the
// store has.
func (f *FS) lookupTree(ctx context.Context, path string) (catalogview.Node, error) {
	if !f.hasLocal(path) {
		return f.View.Lookup(ctx, path)
	}
	n, err := f.localNode(ctx, path)
	if err != nil {
		return f.View.Lookup(ctx, path) // which says why the table is not to be written
	}
	return n, nil
}

// makeInTree makes a directory of a staging tree, which nothing is at yet.
func (f *FS) makeInTree(ctx context.Context, path string) (catalogview.Target, error) {
	t, err := f.View.Resolve(ctx, path)
	if err != nil {
		return t, err
	}
	root, _ := inStagingTree(path)
	if root != path && !f.local.has(root) {
		// It may have been there for what is staged beside it alone.
		if _, err := f.View.Lookup(ctx, root); errors.Is(err, objectstore.ErrNotExist) {
			f.warnLocal(root, f.local.make(root))
		}
	}
	return t, f.makeLocal(path, t.Directory())
}

// storeHas returns what the store has at a path of a staging tree, and whether there
// is anything.
func (f *FS) storeHas(ctx context.Context, path string) (n catalogview.Node, there bool, err error) {
	n, err = f.View.Lookup(ctx, path)
	if errors.Is(err, objectstore.ErrNotExist) {
		return n, false, nil
	}
	return n, err == nil, err
}

// storeEmpty is ErrNotEmpty if the store's directory path has something in it that is
// listed.
func (f *FS) storeEmpty(ctx context.Context, path string) error {
	for _, err := range f.View.ReadDir(ctx, path) {
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		return objectstore.ErrNotEmpty
	}
	return nil
}

// mayRemoveFromTree refuses to remove another's object from a staging tree, at every
// level of --write: rule 24.
func (f *FS) mayRemoveFromTree(path string, o objectstore.Object) error {
	switch {
	case !inTree(path):
		return nil
	case f.ReadOnly:
		return errReadOnly
	case !f.made(o):
		return errWriteLevel
	}
	return nil
}

// rmdirTree removes an empty directory of a staging tree.
func (f *FS) rmdirTree(ctx context.Context, path string) error {
	if f.ReadOnly {
		return errReadOnly
	}
	if f.Write < WriteCreate {
		return errWriteLevel
	}
	if f.names.stagedBelow(path) || len(f.local.children(path)) > 0 {
		return objectstore.ErrNotEmpty
	}
	here := f.local.has(path)
	n, stored, err := f.storeHas(ctx, path)
	switch {
	case err != nil:
		return err
	case stored && !n.Kind.Directory():
		if !here {
			return errNotDirectory
		}
	case stored:
		if err := f.rmdirStored(ctx, path, n); err != nil {
			return err
		}
	case !here && !f.virtual(path): // it shows what is staged beside it, and takes none of that along
		return objectstore.ErrNotExist
	}
	if t, err := f.View.Resolve(ctx, path); err == nil {
		f.Attr.Delete(attrKey(t.Directory()))
		f.Attr.Delete(timeKey(t.Directory()))
	}
	f.warnLocal(path, f.local.remove(path))
	f.names.remove(path)
	return nil
}

// rmdirStored removes a directory of a staging tree that the store has, if it is empty
// and this mount made it.
func (f *FS) rmdirStored(ctx context.Context, path string, n catalogview.Node) error {
	if err := f.storeEmpty(ctx, path); err != nil {
		return err
	}
	if !f.flat {
		if err := f.mayRemoveFromTree(path, objectstore.Object{Location: n.Location()}); err != nil {
			return err
		}
		return f.deleteDirectory(ctx, n)
	}
	own, trees, err := f.ownMarkers(ctx, n)
	if err == nil && trees {
		err = objectstore.ErrNotEmpty
	}
	if err != nil {
		return err
	}
	for _, o := range own {
		if err := f.mayRemoveFromTree(path, o); err != nil {
			return err
		}
	}
	return f.removeOwn(ctx, own)
}

// unlistedBelow are the files that rmdir of a directory takes along, as it does what
// nobody saw in it: the staging trees in it, and what else lives in the mount alone.
type unlistedBelow struct {
	files []stagedPath
	trees []string
}

// unlisted finds what goes with the directory path. ErrNotEmpty if it has an
// unpublished file that does not: one that is open, or is to be published. Of keepTrees
// the staging trees stay in which somebody has a file open.
func (f *FS) unlisted(path string, keepTrees bool) (unlistedBelow, error) {
	var u unlistedBelow
	busy := make(map[string]bool)
	var inTrees []stagedPath
	for _, s := range f.names.stagedTree(path) {
		if inTransaction(s.path) {
			continue // who removes a table's directory does not abort its commits
		}
		root, ok := inStagingTree(s.path)
		switch closed := s.node.unused(); {
		case ok:
			busy[root] = busy[root] || !closed
			inTrees = append(inTrees, s)
		case closed && s.node.holding() == staging.Local && inDirectory(s.path, path):
			u.files = append(u.files, s)
		default:
			return u, objectstore.ErrNotEmpty
		}
	}
	for _, s := range inTrees {
		root, _ := inStagingTree(s.path)
		switch {
		case !busy[root]:
			u.files = append(u.files, s)
		case !keepTrees:
			return u, objectstore.ErrNotEmpty
		}
	}
	for _, base := range f.local.children(path) {
		if root := child(path, base); table.StagingTree(base) && !busy[root] {
			u.trees = append(u.trees, root)
		}
	}
	return u, nil
}

// unlistedTarget is unlisted of the target of a rename, which takes the place of an empty
// directory: not of one with a file in a staging tree, which is somebody's work, and
// which nobody asked to remove.
func (f *FS) unlistedTarget(path string) (unlistedBelow, error) {
	u, err := f.unlisted(path, false)
	if err == nil && slices.ContainsFunc(u.files, func(s stagedPath) bool { return inTree(s.path) }) {
		err = objectstore.ErrNotEmpty
	}
	return u, err
}

// drop removes what unlisted found, once the directory is gone.
func (u unlistedBelow) drop(ctx context.Context, f *FS) error {
	var problems []error
	for _, s := range u.files {
		if now, _, _ := f.names.stagedAt(s.path, 0); now == s.node {
			problems = append(problems, f.unlinkStaged(ctx, s.path))
		}
	}
	for _, root := range u.trees {
		f.warnLocal(root, f.local.remove(root))
		f.names.remove(root)
	}
	return errors.Join(problems...)
}

// unused reports whether no program has the version open, or is about to.
func (s *stagedNode) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles == 0 && s.reserved == 0
}

// rememberLocal keeps what is remembered of a new directory that is not the store's.
func (f *FS) rememberLocal(ctx context.Context, dir objectstore.Location, mode uint32) {
	uid, gid := f.caller(ctx)
	mode &= 0o7777
	f.Attr.Set(attrKey(dir), "", attr.Attributes{Mode: &mode, UID: &uid, GID: &gid})
}
