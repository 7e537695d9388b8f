package fs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// treeMove is the rename of a directory of a staging tree: to another place in one,
// which is the mount's affair alone, or out of it, which publishes all files in it, or
// none.
type treeMove struct {
	*move
	files  []treeFile           // in and below the directory, in the order of their new paths
	loc    objectstore.Location // the directory's
	prefix objectstore.Location // its table's
	there  bool                 // an empty directory is at the target
	takes  unlistedBelow        // what goes with it
	fresh  freshDirectories
}

// treeFile is one file on its way.
type treeFile struct {
	*stagedNode
	path string // the new one
	to   staging.NewWrite
	was  staging.Record
	data bool // it counts as data of its partition
	held bool // its commit lock is
	done bool // it is published, of size bytes
	size int64
}

// publishes reports whether the file is to be published.
func (t treeFile) publishes() bool { return t.to.Hold == staging.Unheld }

// moveTree renames a directory of a staging tree.
func (m *move) moveTree(ctx context.Context) error {
	if err := m.fs.mayCreate(); err != nil {
		return err
	}
	if err := m.held.part(ctx); err != nil {
		return err
	}
	switch _, there, err := m.fs.storeHas(ctx, m.from); {
	case err != nil:
		return err
	case there:
		return errTreeStore
	}
	t := &treeMove{move: m, fresh: freshDirectories{fs: m.fs}}
	if err := t.prepareTarget(ctx); err != nil {
		return err
	}
	t.collect()
	if inTree(m.to) {
		return t.within(ctx)
	}
	m.fs.publishing.begin()
	defer m.fs.publishing.end()
	return t.out(ctx)
}

// prepareTarget finds what is at the target: nothing, or an empty directory.
func (t *treeMove) prepareTarget(ctx context.Context) error {
	f := t.fs
	if s, _, _ := f.names.stagedAt(t.to, 0); s != nil {
		return errNotDirectory
	}
	n, err := f.lookup(ctx, t.to)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return nil
	case err != nil:
		return err
	case t.noReplace:
		return objectstore.ErrExist
	case n.Kind == catalogview.KindObject, n.Kind == catalogview.KindEntry:
		return errNotDirectory
	case n.Kind != catalogview.KindDirectory:
		return errFixedDirectory
	}
	t.there = true
	if !inTree(t.to) {
		if t.takes, err = f.unlistedTarget(t.to); err != nil {
			return err
		}
		if f.holdsLocal(t.to) {
			return objectstore.ErrNotEmpty
		}
		return f.emptyInStore(ctx, n)
	}
	if f.names.stagedBelow(t.to) || len(f.local.children(t.to)) > 0 {
		return objectstore.ErrNotEmpty
	}
	return f.storeEmpty(ctx, t.to)
}

// emptyInStore is ErrNotEmpty if the store has something in a directory but others'
// staging trees, which stay. It is asked, not a listing that may be old.
func (f *FS) emptyInStore(ctx context.Context, n catalogview.Node) error {
	dir := n.Location()
	for e, err := range f.Store.List(ctx, dir, objectstore.ListOptions{Delimiter: true}) {
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.Prefix && table.StagingTree(baseIn(dir, e)):
		case e.Key != dir.Key || e.Prefix || e.Size > 0:
			return objectstore.ErrNotEmpty
		}
	}
	return f.storeEmpty(ctx, n.Path) // partitions that lie elsewhere
}

// newPath is where a path in or below the directory goes.
func (t *treeMove) newPath(path string) string { return t.to + strings.TrimPrefix(path, t.from) }

// collect takes down the files.
func (t *treeMove) collect() {
	staged := t.fs.names.stagedTree(t.from)
	slices.SortFunc(staged, func(x, y stagedPath) int { return strings.Compare(x.path, y.path) })
	for _, s := range staged {
		t.files = append(t.files, treeFile{stagedNode: s.node, path: t.newPath(s.path)})
	}
}

// resolve finds where the directory and its files belong.
func (t *treeMove) resolve(ctx context.Context) error {
	target, err := t.fs.View.Resolve(ctx, t.to)
	if err != nil {
		return err
	}
	t.loc, t.prefix = target.Directory(), target.Prefix
	for i := range t.files {
		s := &t.files[i]
		target, err := t.fs.View.Resolve(ctx, s.path)
		if err != nil {
			return err
		}
		s.to, s.data = newWrite(s.path, target), !target.Hidden
		s.to.Cond = objectstore.Cond{IfNoneMatch: true}
		s.to.Final = false
		if t.fs.holdOf(s.path) == staging.Local {
			s.to.Hold = staging.Local
		}
	}
	return nil
}

// lock keeps the files from being published or renamed by others, until unlock.
func (t *treeMove) lock() error {
	nodes := make([]*stagedNode, len(t.files))
	for i := range t.files {
		nodes[i] = t.files[i].stagedNode
	}
	if err := lockAll(nodes); err != nil {
		return err
	}
	for i := range t.files {
		s := &t.files[i]
		s.held, s.was = true, s.file.Record()
	}
	return nil
}

// unlock lets go of the files that which names.
func (t *treeMove) unlock(which func(treeFile) bool) {
	for i := range t.files {
		if s := &t.files[i]; s.held && which(*s) {
			s.held = false
			s.commit.Unlock()
		}
	}
}

func (t *treeMove) unlockAll() { t.unlock(func(treeFile) bool { return true }) }

// within renames in staging trees: each file's record tells of its new place, be it
// that the program ends half way.
func (t *treeMove) within(ctx context.Context) error {
	if err := t.resolve(ctx); err != nil {
		return err
	}
	if err := t.lock(); err != nil {
		return err
	}
	defer t.unlockAll()
	from, err := t.fs.View.Resolve(ctx, t.from)
	if err != nil {
		return err
	}
	intent := t.intent(from.Directory(), t.prefix)
	if err = t.fs.local.begin(intent); err != nil {
		return err
	}
	for i, s := range t.files {
		if err = s.retarget(s.to); err != nil {
			t.backTo(i)
			break
		}
	}
	if err == nil {
		t.fs.warnLocal(t.to, t.fs.local.move(t.from, t.to, false))
		t.moved(ctx)
	}
	t.fs.warnLocal(t.to, t.fs.local.finish(intent))
	return err
}

// backTo gives the first n files their old places back.
func (t *treeMove) backTo(n int) {
	for _, s := range t.files[:n] {
		if err := s.retarget(asBefore(s.was)); err != nil {
			t.fs.fail("record", s.was.Path, err)
		}
	}
}

// moved makes names and attributes follow.
func (t *treeMove) moved(ctx context.Context) {
	if from, err := t.fs.View.Resolve(ctx, t.from); err == nil {
		if err := t.fs.Attr.MoveAll(attrKey(from.Directory()), attrKey(t.loc)); err != nil {
			t.fs.Log.WarnContext(ctx, "attributes of a renamed directory are lost", attrPath(t.to), slog.Any("error", err))
		}
	}
	t.renamed(nil, t.loc)
}

// out publishes the files at their new places, all or none, and makes the directory
// the lake's. On an error it stays where it was, with all that is in it.
func (t *treeMove) out(ctx context.Context) error {
	if err := t.fs.partBelow(ctx, t.to); err != nil {
		return err
	}
	for _, s := range t.files {
		if !s.idle() {
			return errBusy
		}
	}
	if err := t.lock(); err != nil {
		return err
	}
	err := t.outLocked(ctx)
	t.unlockAll()
	for _, s := range t.files {
		s.end() // of what was published
	}
	return err
}

func (t *treeMove) outLocked(ctx context.Context) error {
	err := t.makeDirectories(ctx) // which checks names, before a file's path is one that cannot be
	if err == nil {
		err = t.resolve(ctx)
	}
	if err != nil {
		t.fresh.undo(ctx)
		return err
	}
	objects, told := t.publish(ctx)
	if objects == nil {
		for _, s := range t.files {
			t.fs.superseded(s.to.Target)
		}
		t.fresh.undo(ctx)
		return told
	}
	if err := t.takes.drop(ctx, t.fs); err != nil {
		t.fs.fail("drop", t.to, err)
	}
	t.leave()
	t.moved(ctx)
	t.fresh.own()
	for _, s := range t.files {
		if s.publishes() {
			continue
		}
		if err := s.retarget(s.to); err != nil {
			t.fs.fail("record", s.path, err)
		}
	}
	t.unlock(func(s treeFile) bool { return !s.publishes() }) // they may be what a file's publish outdates
	for _, s := range t.files {
		if s.publishes() {
			t.publishedOne(s, objects[0])
			objects = objects[1:]
		}
	}
	return told
}

// publish publishes the files. objects is nil if none was; told may come with them: a
// partition is not in the catalog.
func (t *treeMove) publish(ctx context.Context) (objects []objectstore.Object, told error) {
	members := make([]commit.Member, 0, len(t.files))
	for _, s := range t.files {
		if s.publishes() {
			members = append(members, commit.Member{File: s.file, To: s.to, Data: s.data})
		}
	}
	if len(members) == 0 {
		return []objectstore.Object{}, nil
	}
	objects, err := t.fs.Committer.PublishAll(ctx, members, commit.Together{})
	if err != nil {
		told = t.fs.fail(opPublish, t.to, err)
	}
	if len(objects) != len(members) {
		return nil, told
	}
	return objects, told
}

// publishedOne gives its name to a file that was published.
func (t *treeMove) publishedOne(s treeFile, o objectstore.Object) {
	s.mu.Lock()
	s.hold = staging.Unheld
	s.mu.Unlock()
	t.fs.names.locate(s.name, o.Location)
	s.published(o)
}
