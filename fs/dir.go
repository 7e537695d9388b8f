package fs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// controlName opens by name in every directory and is never listed.
const controlName = ".lakefs"

// dirNode is a directory: the root, a database, a table, a partition or below.
type dirNode struct {
	gofs.Inode
	held
	fs *FS

	miss atomic.Pointer[missed] // the last look-up that found nothing
}

// missed is a look-up that found nothing. The CREATE that follows from the same
// thread need not ask again.
type missed struct {
	base   string
	thread uint32
	at     time.Time
}

// missLife is how long a CREATE may rely on a look-up that found nothing; the
// kernel sends it within microseconds.
const missLife = 100 * time.Millisecond

// justMissed reports whether thread tid has just been told that base is not there.
func (d *dirNode) justMissed(base string, tid uint32) bool {
	m := d.miss.Load()
	return m != nil && m.base == base && m.thread == tid && time.Since(m.at) < missLife
}

var (
	_ gofs.NodeLookuper      = (*dirNode)(nil)
	_ gofs.NodeGetattrer     = (*dirNode)(nil)
	_ gofs.NodeSetattrer     = (*dirNode)(nil)
	_ gofs.NodeStatfser      = (*dirNode)(nil)
	_ gofs.NodeGetxattrer    = (*dirNode)(nil)
	_ gofs.NodeListxattrer   = (*dirNode)(nil)
	_ gofs.NodeSetxattrer    = (*dirNode)(nil)
	_ gofs.NodeRemovexattrer = (*dirNode)(nil)
	_ gofs.NodeOnForgetter   = (*dirNode)(nil)
)

// path returns the directory's path, or ErrNotExist once it is gone.
func (d *dirNode) path() (string, error) {
	p, ok := d.fs.names.pathOf(d.name)
	if !ok {
		return "", objectstore.ErrNotExist
	}
	return p, nil
}

// OnForget gives the name back when the kernel has forgotten the node.
func (d *dirNode) OnForget() { d.fs.names.forget(&d.held) }

// Lookup finds a name: the control directory, an unpublished file, or what the
// view has there.
func (d *dirNode) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := d.path()
	if err != nil {
		return nil, toErrno(err)
	}
	if base == controlName && !inTransaction(dir) {
		return d.control(ctx, dir, out), 0
	}
	if isTransactionControl(child(dir, base)) {
		return d.transactionCtl(ctx, dir, out)
	}
	path, tid := child(dir, base), thread(ctx)
	if draft := d.fs.drafts.found(path, tid); draft != nil {
		return draft.entry(out), 0
	}
	s, turned, busy := d.fs.names.stagedAt(path, tid)
	work, cancel := d.fs.work(ctx)
	defer cancel()
	if s != nil && !d.fs.outdated(work, s) {
		s.entry(out)
		return s.EmbeddedInode(), 0
	}
	var n catalogview.Node
	if turned {
		n, err = d.fs.lookupPinned(work, path, tid)
	} else {
		n, err = d.fs.lookup(work, path)
	}
	if errors.Is(err, objectstore.ErrNotExist) {
		if in := d.stagingName(ctx, dir, base, out); in != nil {
			return in, 0
		}
	}
	if err != nil {
		if errors.Is(err, objectstore.ErrNotExist) && !errors.Is(err, objectstore.ErrHidden) {
			d.miss.Store(&missed{base: base, thread: tid, at: time.Now()})
		}
		return nil, d.absent(path, err, out)
	}
	return d.fs.inode(ctx, d, n, busy || d.fs.drafts.busy(path), out)
}

// absent answers a look-up that found nothing. Only a certain absence may be
// remembered by the kernel; a failure never.
func (d *dirNode) absent(path string, err error, out *fuse.EntryOut) syscall.Errno {
	e := d.fs.fail("lookup", path, err)
	_, base := parent(path)
	if absence(e) && d.fs.NegativeTTL > 0 && base != temporaryName && d.fs.backups.at(path) == nil && d.fs.absences.note(path, d.fs.NegativeTTL) {
		out.SetEntryTimeout(d.fs.NegativeTTL)
	}
	return e
}

// inode returns the node for n, which lies in d, and fills out. busy forbids
// the kernel to keep the answer: a writer may change it at any moment.
func (f *FS) inode(ctx context.Context, d *dirNode, n catalogview.Node, busy bool, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	ttl := f.MetadataTTL
	if busy || inTransaction(n.Path) { // which may be over at any moment, and another of its name begun
		ttl = 0
	}
	out.SetEntryTimeout(ttl)
	out.SetAttrTimeout(ttl)
	switch n.Kind {
	case catalogview.KindEntry:
		return f.entryInode(ctx, d, n, out)
	case catalogview.KindObject:
		return f.objectInode(ctx, d, n, out), 0
	}
	return f.directoryInode(ctx, d.EmbeddedInode(), n, out), 0
}

// directoryInode returns the node of the directory n, which lies in up, and fills its
// attributes.
func (f *FS) directoryInode(ctx context.Context, up *gofs.Inode, n catalogview.Node, out *fuse.EntryOut) *gofs.Inode {
	nm := f.names.acquire(n.Path)
	defer f.names.release(nm)
	c := &dirNode{fs: f, held: held{name: nm}}
	f.dirAttributes(&out.Attr, nm.ino, n)
	in := up.NewInode(ctx, c, gofs.StableAttr{Mode: syscall.S_IFDIR, Ino: nm.ino, Gen: 1})
	if living, ok := in.Operations().(*dirNode); ok {
		f.names.hold(&living.held)
	}
	return in
}

// objectInode returns the node of n's version.
func (f *FS) objectInode(ctx context.Context, d *dirNode, n catalogview.Node, out *fuse.EntryOut) *gofs.Inode {
	nm := f.names.acquire(n.Path)
	defer f.names.release(nm)
	f.names.locate(nm, n.Object.Location)
	o := &objectNode{fs: f, lockable: lockable{locks: f.locks, held: held{name: nm}}, version: n.Object}
	o.attributes(&out.Attr)
	in := d.NewInode(ctx, o, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: nm.ino, Gen: generation(versionOf(n.Object))})
	if living, ok := in.Operations().(*objectNode); ok {
		f.names.hold(&living.held)
	}
	return in
}

// dirAttributes fills a directory's attributes.
func (f *FS) dirAttributes(a *fuse.Attr, ino uint64, n catalogview.Node) {
	f.fill(a, ino, 0, n.ModTime)
	a.Mode = syscall.S_IFDIR
	f.owned(a, f.DirMode)
	if set, ok := f.Attr.Get(attrKey(n.Location()), ""); ok {
		overlay(a, set)
	}
	if set, ok := f.Attr.Get(timeKey(n.Location()), f.stamp(n)); ok && set.MTime != nil {
		a.SetTimes(set.MTime, set.MTime, set.MTime)
	}
}

// Getattr looks the directory up again: it may be gone.
func (d *dirNode) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	path, err := d.path()
	if err != nil { // removed, and still open
		d.fs.fill(&out.Attr, d.name.ino, 0, time.Time{})
		out.Mode, out.Uid, out.Gid, out.Nlink = syscall.S_IFDIR|uint32(d.fs.DirMode&^d.fs.Umask), d.fs.UID, d.fs.GID, 0
		return 0
	}
	work, cancel := d.fs.work(ctx)
	defer cancel()
	n, err := d.fs.lookup(work, path)
	if errors.Is(err, objectstore.ErrNotExist) && d.fs.virtual(path) {
		n, err = stagingTree(path), nil
	}
	if err != nil {
		return d.fs.fail("stat", path, err)
	}
	out.SetTimeout(d.fs.MetadataTTL)
	d.fs.dirAttributes(&out.Attr, d.name.ino, n)
	return 0
}

// Setattr keeps mode, owner and time of a directory of a table in the mount.
func (d *dirNode) Setattr(_ context.Context, _ gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	path, err := d.path()
	if err != nil {
		return toErrno(err)
	}
	ctx, cancel := d.fs.background()
	defer cancel()
	n, err := d.fs.lookup(ctx, path)
	if err != nil {
		return d.fs.fail("setattr", path, err)
	}
	if n.Table == nil {
		return toErrno(errFixedDirectory)
	}
	if err := d.fs.mayCreate(); err != nil {
		return d.fs.fail("setattr", path, err)
	}
	d.fs.keepDirectory(n, in)
	out.SetTimeout(d.fs.MetadataTTL)
	d.fs.dirAttributes(&out.Attr, d.name.ino, n)
	return 0
}

// keepDirectory is keepAttributes for a directory. Its time holds until a name
// in it comes or goes, as on any disk.
func (f *FS) keepDirectory(n catalogview.Node, in *fuse.SetAttrIn) {
	if t, ok := in.GetMTime(); ok {
		f.Attr.Set(timeKey(n.Location()), f.stamp(n), attr.Attributes{MTime: &t})
	}
	lasting := *in
	lasting.Valid &^= fuse.FATTR_MTIME | fuse.FATTR_MTIME_NOW
	f.keepAttributes(n.Location(), "", &lasting)
}

// timeKey is where the attribute store has the time of a directory, by the
// stamp of what the directory was when it was set.
func timeKey(dir objectstore.Location) string { return attrKey(dir) + "\x00time" }

func (f *FS) stamp(dir catalogview.Node) string {
	if f.flat {
		return "" // it has no time of its own: see changedIn
	}
	return strconv.FormatInt(dir.ModTime.UnixNano(), 36)
}

// keepAttributes remembers what in sets, over what is remembered already.
func (f *FS) keepAttributes(loc objectstore.Location, etag string, in *fuse.SetAttrIn) {
	a, _ := f.Attr.Get(attrKey(loc), etag)
	merge(&a, in)
	f.Attr.Set(attrKey(loc), etag, a)
}

func merge(a *attr.Attributes, in *fuse.SetAttrIn) {
	if m, ok := in.GetMode(); ok {
		m &= 0o7777
		a.Mode = &m
	}
	if u, ok := in.GetUID(); ok {
		a.UID = &u
	}
	if g, ok := in.GetGID(); ok {
		a.GID = &g
	}
	if t, ok := in.GetMTime(); ok {
		a.MTime = &t
	}
}

// stagingName finds what staged files look like under their staging name:
// _temporary in their directory, and .tmp.<write id> in it.
func (d *dirNode) stagingName(ctx context.Context, dir, base string, out *fuse.EntryOut) *gofs.Inode {
	if d.fs.virtual(child(dir, base)) {
		in, _ := d.fs.inode(ctx, d, stagingTree(child(dir, base)), true, out)
		return in
	}
	w := d.fs.underStagingName(child(dir, base))
	if w == nil {
		return nil
	}
	return d.stagedView(ctx, child(dir, base), w, out)
}

// temporaryName is the directory in which staged files have their staging names.
const temporaryName = "_temporary"

// virtual reports whether path is a _temporary that is there, where the store
// has none, for the files that are staged beside it.
func (f *FS) virtual(path string) bool {
	dir, base := parent(path)
	return base == temporaryName && !inTree(dir) && f.stagedIn(dir)
}

// stagingTree describes such a directory.
func stagingTree(path string) catalogview.Node {
	return catalogview.Node{Kind: catalogview.KindDirectory, Path: path, ModTime: time.Now()}
}

// underStagingName is the unpublished file that path shows as
// _temporary/.tmp.<write id>, or nil.
func (f *FS) underStagingName(path string) *staging.File {
	dir, base := parent(path)
	above, last := parent(dir)
	id, ok := strings.CutPrefix(base, ".tmp.")
	if !ok || last != temporaryName || inTree(above) {
		return nil
	}
	w, ok := f.Area.Find(id)
	if !ok || !inDirectory(w.Record().Path, above) {
		return nil
	}
	return w
}

// stagedIn reports whether an unpublished file belongs into dir.
func (f *FS) stagedIn(dir string) bool {
	for _, w := range f.Area.Files() {
		if r := w.Record(); r.Hold != staging.Local && inDirectory(r.Path, dir) && w.Dirty() {
			return true
		}
	}
	return false
}

func inDirectory(path, dir string) bool {
	d, _ := parent(path)
	return d == dir
}

// insertOnly reports rule 22: a format table's files are never changed.
func insertOnly(n catalogview.Node) bool {
	return n.Table != nil && n.Table.InsertOnly()
}
