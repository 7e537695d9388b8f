package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

var _ gofs.NodeRenamer = (*dirNode)(nil)

const renameNoReplace = 1 // RENAME_NOREPLACE

// Rename moves a file, published or not, or a directory that is no partition.
func (d *dirNode) Rename(request context.Context, base string, newParent gofs.InodeEmbedder, newBase string, flags uint32) syscall.Errno {
	to, ok := newParent.(*dirNode)
	if !ok || base == controlName || newBase == controlName {
		return toErrno(errControl)
	}
	if flags&^renameNoReplace != 0 {
		return toErrno(errInvalid)
	}
	dir, err := d.path()
	if err != nil {
		return toErrno(err)
	}
	newDir, err := to.path()
	if err != nil {
		return toErrno(err)
	}
	ctx, cancel := d.fs.lasting()
	defer cancel()
	m := move{fs: d.fs, from: child(dir, base), to: child(newDir, newBase), noReplace: flags&renameNoReplace != 0}
	leave, err := d.fs.txns.enter(m.from, m.to)
	if err != nil {
		return d.fs.fail("rename", m.from, err)
	}
	defer leave()
	if handled, err := d.fs.renameEntry(request, m.from, m.to, m.noReplace); handled {
		return d.fs.fail("rename", m.from, err)
	}
	return d.fs.fail("rename", m.from, m.run(ctx))
}

// move is one rename.
type move struct {
	fs        *FS
	from, to  string
	noReplace bool
	target    catalogview.Target
	old       *objectstore.Object // what is published at the target; nil: nothing
	held      lockedBackups       // what is held back of both names
}

func (m *move) run(ctx context.Context) error {
	if m.fs.ReadOnly {
		return errReadOnly
	}
	if entryPath(m.to) {
		return errEntryWrite
	}
	if isTransactionControl(m.to) || isTransactionControl(m.from) {
		return errControl
	}
	if err := m.fs.mayUse(m.to); err != nil {
		return err
	}
	held, done, err := m.settleBackups(ctx)
	defer held.unlock()
	if done || err != nil {
		return err
	}
	m.held = held
	s, _, _ := m.fs.names.stagedAt(m.from, 0)
	if s != nil {
		return m.staged(ctx, s)
	}
	n, err := m.fs.lookup(ctx, m.from)
	if err != nil {
		return err
	}
	switch n.Kind {
	case catalogview.KindObject:
		return m.object(ctx, n)
	case catalogview.KindEntry:
		return errEntryWrite
	case catalogview.KindDirectory:
		return m.copyable(n, m.directory(ctx, n))
	}
	return errFixedDirectory
}

// copyable turns the error that makes mv copy a directory and remove the old one
// into a refusal where the removal would be refused: both would stay, and a
// table have its rows twice.
func (m *move) copyable(n catalogview.Node, err error) error {
	if !errors.Is(err, errPartitionMove) {
		return err
	}
	if denied := m.fs.mayChange(objectstore.Object{Location: n.Location()}, WriteDelete); denied != nil {
		return denied
	}
	return err
}

// prepare finds the target, and whether it may be replaced.
func (m *move) prepare(ctx context.Context) error {
	var err error
	m.fs.stays(m.to)
	if m.target, err = m.fs.View.Resolve(ctx, m.to); err != nil {
		return err
	}
	n, err := m.fs.lookup(ctx, m.to)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		if s, _, _ := m.fs.names.stagedAt(m.to, 0); s != nil && m.noReplace {
			return objectstore.ErrExist
		}
		if a := m.held.from(m.to); a != nil {
			m.old = &a.old
			return m.fs.mayChange(a.old, WriteOverwrite)
		}
		return m.fs.mayCreate()
	case err != nil:
		return err
	case n.Kind == catalogview.KindEntry:
		return errEntryWrite
	case n.Kind != catalogview.KindObject:
		return errIsDirectory
	case m.noReplace:
		return objectstore.ErrExist
	case insertOnly(n) && !m.target.Hidden:
		return table.ErrInsertOnly
	}
	if err = m.fs.mayChange(n.Object, WriteOverwrite); err != nil {
		return err
	}
	old, err := m.fs.Store.Stat(ctx, n.Object.Location)
	if err != nil {
		return err
	}
	m.old = &old // which the condition will name: so this is what is judged
	return m.fs.mayChange(old, WriteOverwrite)
}

// object renames a published file.
func (m *move) object(ctx context.Context, n catalogview.Node) error {
	switch {
	case inTree(m.from):
		return errTreeStore
	case inTree(m.to):
		return errIntoTree
	}
	from, err := m.fs.View.Resolve(ctx, m.from)
	if err != nil {
		return err
	}
	if insertOnly(n) && !from.Hidden { // a hidden file is no data yet
		return table.ErrInsertOnly
	}
	if err = m.fs.mayChange(n.Object, WriteOverwrite); err != nil {
		return err
	}
	if err = m.prepare(ctx); err != nil {
		return err
	}
	if err = m.checkFormat(ctx, n, from); err != nil {
		return err
	}
	if err = m.holdBack(ctx, n); !errors.Is(err, errAtOnce) {
		return err
	}
	writers, err := m.fs.holdWriters(m.from) // until they have the new target
	if err != nil {
		return err
	}
	defer unlockAll(writers)
	if err = m.fs.secureBackup(ctx, m.to); err != nil {
		return err
	}
	m.detachOld()
	obj, err := m.fs.Committer.Rename(ctx, commit.Move{From: n.Object, To: m.target.Location, Cond: m.condition(), Path: m.to})
	if err != nil {
		// Whatever failed: the copy may be there, and the old name too.
		m.fs.superseded(n.Object.Location)
		m.fs.superseded(m.target.Location)
		return err
	}
	m.fs.Attr.Move(attrKey(n.Object.Location), n.Object.ETag, attrKey(obj.Location), obj.ETag)
	m.fs.vanished(m.from, n.Object.Location)
	m.fs.replaced(m.to)
	m.fs.published(m.to, obj)
	m.fs.moveSums(m.from)
	m.fs.dropSums(m.to)
	for _, w := range m.renamed(nil, obj.Location) {
		if failed := w.file.SetTarget(m.newTarget(w, obj)); failed != nil {
			return failed
		}
	}
	return nil
}

// detachOld keeps what is published at the target for those who still need it.
func (m *move) detachOld() {
	if m.old != nil && m.from != m.to {
		m.fs.detach(*m.old)
	}
}

// condition is what must hold at the target. A store over a network takes its
// time: what another put there meanwhile is not replaced unseen, and where files
// are only inserted nowhere.
func (m *move) condition() objectstore.Cond {
	switch {
	case m.old == nil && (m.noReplace || m.fs.flat || m.target.Table.InsertOnly()):
		return objectstore.Cond{IfNoneMatch: true}
	case m.fs.flat, m.held.from(m.to) != nil:
		return objectstore.Cond{IfMatch: m.old.Match}
	}
	return objectstore.Cond{}
}

// checkFormat holds a file that moves in under a counted name to the format of
// its new partition, and to what its new name tells.
func (m *move) checkFormat(ctx context.Context, n catalogview.Node, from catalogview.Target) error {
	if m.target.Hidden || m.target.Format == "" {
		return nil
	}
	_, was := parent(m.from)
	_, base := parent(m.to)
	if !from.Hidden && from.Format == m.target.Format && m.fs.Committer.ChecksAlike(m.target.Format, was, base) {
		return nil
	}
	return m.fs.Committer.CheckObject(ctx, n.Object, m.target.Format, base)
}

// newTarget is where a writer of the old version publishes once its name moved.
func (m *move) newTarget(w *stagedNode, obj objectstore.Object) staging.NewWrite {
	to := newWrite(w.path(), m.target)
	to.Cond = objectstore.Cond{IfMatch: obj.Match}
	return to
}

// renamed makes the names follow, and takes the target's old writers their name.
// It returns the writers that moved along, but for s.
func (m *move) renamed(s *stagedNode, loc objectstore.Location) []*stagedNode {
	lost, moved := m.fs.names.move(m.from, m.to, loc)
	for _, w := range lost {
		w.unlink()
	}
	kept := moved[:0]
	for _, w := range moved {
		if w != s {
			kept = append(kept, w)
		}
	}
	return kept
}

// directory renames a directory below the partitions: in one step of the store
// where it has directories, else object by object; or one of a staging tree.
func (m *move) directory(ctx context.Context, n catalogview.Node) error {
	switch {
	case inTree(m.from):
		return m.moveTree(ctx)
	case inTree(m.to):
		return fmt.Errorf("%w: %w", errIntoTree, errPartitionMove)
	}
	return m.ordinaryDirectory(ctx, n)
}

// ordinaryDirectory renames a directory that is in no staging tree.
func (m *move) ordinaryDirectory(ctx context.Context, n catalogview.Node) error {
	if n.Registered || partition(n.Table, n.Level, m.from) {
		return errPartitionMove
	}
	if err := m.partBackups(ctx); err != nil {
		return err
	}
	from, err := m.fs.View.Resolve(ctx, m.from)
	if err != nil {
		return err
	}
	if !m.fs.hasLocal(m.from) {
		if err = m.fs.mayChange(objectstore.Object{Location: n.Location()}, WriteOverwrite); err != nil {
			return err
		}
	}
	switch _, err = m.fs.View.Marker(ctx, n); {
	case err == nil:
		return errMarkedMove
	case !errors.Is(err, objectstore.ErrNotExist):
		return err
	}
	to, err := m.directoryTarget(ctx)
	if err != nil {
		return err
	}
	if err = m.mayMoveFiles(ctx, n, from); err != nil {
		return err
	}
	unlisted, err := m.fs.unlistedTarget(m.to)
	if err != nil {
		return err
	}
	if err := m.moveDirectory(ctx, n, to); err != nil {
		return err
	}
	if err := unlisted.drop(ctx, m.fs); err != nil {
		m.fs.fail("drop", m.to, err)
	}
	if !m.fs.flat {
		m.fs.warnLocal(m.to, m.fs.local.move(m.from, m.to, false)) // staging trees in it
	}
	if err := m.fs.Attr.MoveAll(attrKey(n.Location()), attrKey(to)); err != nil {
		m.fs.Log.WarnContext(ctx, "attributes of a renamed directory are lost", attrPath(m.to), slog.Any("error", err))
	}
	for _, w := range m.renamed(nil, to) {
		if err := m.follow(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (m *move) moveDirectory(ctx context.Context, n catalogview.Node, to objectstore.Location) error {
	if dirs, ok := m.fs.Store.(objectstore.Directories); ok {
		return dirs.RenameDirectory(ctx, to, n.Location())
	}
	return m.tree(ctx, n, to)
}

// directoryTarget is where the directory goes: a new name, or an empty directory.
func (m *move) directoryTarget(ctx context.Context) (objectstore.Location, error) {
	var none objectstore.Location
	n, err := m.fs.lookup(ctx, m.to)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		dir, _ := parent(m.to)
		t, refused := m.fs.View.ResolveDirectory(ctx, m.to, m.fs.localIn(dir)...)
		if refused != nil {
			return none, refused
		}
		if partition(t.Table, t.Level+1, m.to) {
			return none, errPartitionMove
		}
		return t.Directory(), m.fs.mayCreate()
	case err != nil:
		return none, err
	case m.noReplace:
		return none, objectstore.ErrExist
	case n.Kind != catalogview.KindDirectory:
		return none, errNotDirectory
	case n.Registered, partition(n.Table, n.Level, m.to):
		return none, errPartitionMove
	}
	return n.Location(), m.fs.mayCreate()
}

// partition reports whether the directory at path, level components below its
// table, is one of the table's partitions.
func partition(t *table.Table, level int, path string) bool {
	_, base := parent(path)
	return t != nil && level <= len(t.Keys) && !t.HiddenAt(base, level-1)
}

// follow gives a file that is being written below a renamed directory its new target.
func (m *move) follow(ctx context.Context, w *stagedNode) error {
	path := w.path()
	t, err := m.fs.View.Resolve(ctx, path)
	if err != nil {
		return err
	}
	was := w.file.Record()
	to := newWrite(path, t)
	to.Cond, to.Hold = was.Cond, was.Hold
	to.Final = to.Hold == staging.Unheld
	return w.file.SetTarget(to)
}

// below reports whether path lies in dir.
func below(path, dir string) bool { return dir == "" || strings.HasPrefix(path, dir+"/") }
