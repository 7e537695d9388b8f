package fs

import (
	"context"
	"errors"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

var (
	_ gofs.NodeCreater   = (*dirNode)(nil)
	_ gofs.NodeMkdirer   = (*dirNode)(nil)
	_ gofs.NodeMknoder   = (*dirNode)(nil)
	_ gofs.NodeSymlinker = (*dirNode)(nil)
	_ gofs.NodeLinker    = (*dirNode)(nil)
)

// Create begins a new file. Where the name exists by now, the kernel is sent to
// look it up again, and opens what is there.
func (d *dirNode) Create(ctx context.Context, base string, flags, mode uint32, out *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	dir, err := d.path()
	if err != nil {
		return nil, nil, 0, toErrno(err)
	}
	path := child(dir, base)
	if n, ok := d.fs.draftAt(path); ok {
		return d.createDraft(ctx, n, flags, mode, out)
	}
	leave, err := d.fs.txns.enter(path)
	if err != nil {
		return nil, nil, 0, d.fs.fail("create", path, err)
	}
	defer leave()
	work, cancel := d.fs.background()
	defer cancel()
	held, err := d.fs.backups.lockPaths(path)
	if err != nil {
		return nil, nil, 0, d.fs.fail("create", path, err)
	}
	defer held.unlock()
	t, err := d.vacant(work, path, thread(ctx), flags&syscall.O_EXCL != 0)
	if err != nil {
		return nil, nil, 0, d.fs.fail("create", path, err)
	}
	w := d.fs.newFile(path, t)
	w.Append = flags&syscall.O_APPEND != 0
	uid, gid := d.fs.caller(ctx)
	w.Attributes = staging.Attributes{Mode: mode & 0o7777, UID: uid, GID: gid, MTime: time.Now()}
	s, err := d.fs.stage(work, w, true)
	if err != nil {
		return nil, nil, 0, d.fs.fail("create", path, err)
	}
	h, ok := s.open(ctx, flags, true)
	s.release()
	if !ok {
		return nil, nil, 0, toErrno(errSuperseded)
	}
	s.entry(out)
	if !w.Append {
		// The kernel follows its own writes; cp and its like stat what they have
		// just created, twice. (An appender's size may change behind its back.)
		out.SetAttrTimeout(d.fs.MetadataTTL)
	}
	return s.EmbeddedInode(), h, fuse.FOPEN_KEEP_CACHE, 0
}

// newFile describes the write of a new file.
func (f *FS) newFile(path string, t catalogview.Target) staging.NewWrite {
	w := newWrite(path, t)
	w.Cond = objectstore.Cond{IfNoneMatch: true}
	if a := f.backups.at(path); a != nil {
		w.Cond = objectstore.Cond{IfMatch: a.old.Match}
	}
	w.Hold = f.holdOf(path)
	w.Final = w.Hold == staging.Unheld
	return w
}

// vacant returns the target of a new file at path. A name that is taken is
// ErrExist for O_EXCL, else errSuperseded.
func (d *dirNode) vacant(ctx context.Context, path string, tid uint32, exclusive bool) (catalogview.Target, error) {
	f := d.fs
	taken := errSuperseded
	if exclusive {
		taken = objectstore.ErrExist
	}
	_, base := parent(path)
	if base == controlName || isTransactionControl(path) {
		return catalogview.Target{}, errControl
	}
	if entryPath(path) {
		return catalogview.Target{}, errEntryWrite
	}
	if s, _, _ := f.names.stagedAt(path, tid); s != nil {
		return catalogview.Target{}, taken
	}
	if err := f.mayCreate(); err != nil {
		return catalogview.Target{}, err
	}
	if err := errors.Join(f.mayUse(path), f.mayLand(ctx, path, false)); err != nil {
		return catalogview.Target{}, err
	}
	f.stays(path)
	t, err := f.View.Resolve(ctx, path)
	if err != nil || d.justMissed(base, tid) {
		return t, err // what another creates from now on is found by the publish's condition
	}
	_, err = f.lookup(ctx, path)
	switch {
	case err == nil:
		return t, taken
	case errors.Is(err, objectstore.ErrHidden):
		return t, objectstore.ErrExist // said at the open: a shell does not hear what close says
	case errors.Is(err, objectstore.ErrNotExist):
		return t, nil
	}
	return t, err
}

// Mkdir makes a directory below a table.
func (d *dirNode) Mkdir(ctx context.Context, base string, mode uint32, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := d.path()
	if err != nil {
		return nil, toErrno(err)
	}
	path := child(dir, base)
	leave, err := d.fs.txns.enter(path)
	if err != nil {
		return nil, d.fs.fail("mkdir", path, err)
	}
	defer leave()
	n, err := d.fs.makeDirectory(ctx, path, mode)
	if err != nil {
		return nil, d.fs.fail("mkdir", path, err)
	}
	return d.fs.inode(ctx, d, n, false, out)
}

func (f *FS) makeDirectory(ctx context.Context, path string, mode uint32) (catalogview.Node, error) {
	work, cancel := f.background()
	defer cancel()
	var none catalogview.Node
	_, base := parent(path)
	if base == controlName || isTransactionControl(path) {
		return none, objectstore.ErrExist
	}
	if err := f.partAt(work, path); err != nil {
		return none, err
	}
	if _, err := f.lookup(work, path); err == nil {
		return none, objectstore.ErrExist
	}
	if s, _, _ := f.names.stagedAt(path, 0); s != nil {
		return none, objectstore.ErrExist
	}
	if err := f.mayCreate(); err != nil {
		return none, err
	}
	if inTree(path) {
		err := errors.Join(f.mayUse(path), f.mayLand(work, path, true))
		if err != nil {
			return none, err
		}
		t, err := f.makeInTree(work, path)
		if err != nil {
			return none, err
		}
		f.rememberLocal(ctx, t.Directory(), mode)
		return f.lookup(work, path)
	}
	if f.stays(path) {
		n, err := f.lookup(work, path)
		if err == nil {
			f.rememberDirectory(ctx, n.Location(), mode)
		}
		return n, err
	}
	dir, _ := parent(path)
	t, err := f.View.ResolveDirectory(work, path, f.localIn(dir)...)
	if err != nil {
		return none, err
	}
	if dirs, ok := f.Store.(objectstore.Directories); ok {
		err = f.makeWithParents(work, dirs, t)
	} else {
		err = f.makeLocal(path, t.Directory())
	}
	if err != nil {
		return none, err
	}
	f.rememberDirectory(ctx, t.Directory(), mode)
	return f.lookup(work, path)
}

// makeWithParents makes t's directory. A table whose location is not there yet
// is an empty table: its own directories are made on the way.
func (f *FS) makeWithParents(ctx context.Context, dirs objectstore.Directories, t catalogview.Target) error {
	err := dirs.MakeDirectory(ctx, t.Directory())
	if !errors.Is(err, objectstore.ErrNotExist) {
		return err
	}
	for i, c := range t.Prefix.Key {
		if c != '/' {
			continue
		}
		step := objectstore.Location{Bucket: t.Prefix.Bucket, Key: t.Prefix.Key[:i+1]}
		if err := dirs.MakeDirectory(ctx, step); err != nil && !errors.Is(err, objectstore.ErrExist) {
			return err
		}
	}
	return dirs.MakeDirectory(ctx, t.Directory())
}

// Mknod is refused: regular files are made by open, others there are none.
func (d *dirNode) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Symlink is refused: an object store has none.
func (d *dirNode) Symlink(context.Context, string, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Link is refused: an object has one name.
func (d *dirNode) Link(context.Context, gofs.InodeEmbedder, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// madeAttributes are what is remembered of a file that this mount published.
func madeAttributes(a staging.Attributes) attr.Attributes {
	mode, uid, gid := a.Mode&0o7777, a.UID, a.GID
	kept := attr.Attributes{Mode: &mode, UID: &uid, GID: &gid, Made: true}
	if a.MTimeSet {
		t := a.MTime
		kept.MTime = &t
	}
	return kept
}
