package fs

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// objectNode is one published version of an object. Its bytes never change, so
// the kernel may keep its pages for ever.
type objectNode struct {
	gofs.Inode
	lockable
	fs      *FS
	version objectstore.Object // its Location is where it lay when the node was made; see object
}

var (
	_ gofs.NodeGetattrer     = (*objectNode)(nil)
	_ gofs.NodeSetattrer     = (*objectNode)(nil)
	_ gofs.NodeOpener        = (*objectNode)(nil)
	_ gofs.NodeFlusher       = (*objectNode)(nil)
	_ gofs.NodeFsyncer       = (*objectNode)(nil)
	_ gofs.NodeReleaser      = (*objectNode)(nil)
	_ gofs.NodeGetxattrer    = (*objectNode)(nil)
	_ gofs.NodeListxattrer   = (*objectNode)(nil)
	_ gofs.NodeSetxattrer    = (*objectNode)(nil)
	_ gofs.NodeRemovexattrer = (*objectNode)(nil)
	_ gofs.NodeSetlker       = (*objectNode)(nil)
	_ gofs.NodeSetlkwer      = (*objectNode)(nil)
	_ gofs.NodeGetlker       = (*objectNode)(nil)
	_ gofs.NodeOnForgetter   = (*objectNode)(nil)
)

// OnForget gives the name back when the kernel has forgotten the node.
func (o *objectNode) OnForget() { o.fs.names.forget(&o.held) }

// object returns the version where it lies now.
func (o *objectNode) object() objectstore.Object {
	v := o.version
	v.Location = o.fs.names.location(o.name)
	return v
}

// attributes fills the version's attributes.
func (o *objectNode) attributes(a *fuse.Attr) {
	v := o.object()
	o.fs.fill(a, o.name.ino, v.Size, v.ModTime)
	a.Nlink = o.fs.names.links(o.name)
	a.Mode = syscall.S_IFREG
	mode := o.fs.FileMode
	if m, ok := metaMode(v.Meta); ok {
		mode = m
	}
	o.fs.overlay(a, v.Location, v.ETag, mode)
}

// Getattr costs no request: the node is a version.
func (o *objectNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.SetTimeout(o.fs.MetadataTTL)
	o.attributes(&out.Attr)
	return 0
}

// Setattr keeps mode, owner and times in the mount; a new size is a new
// version, which truncate(2) gets by the redirect.
func (o *objectNode) Setattr(ctx context.Context, _ gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, ok := in.GetSize(); ok {
		return o.redirect(ctx, syscall.O_WRONLY)
	}
	if err := o.fs.mayChange(o.object(), WriteOverwrite); err != nil {
		return o.fs.fail("setattr", o.path(), err)
	}
	o.fs.keepAttributes(o.object().Location, o.version.ETag, in)
	out.SetTimeout(o.fs.MetadataTTL)
	o.attributes(&out.Attr)
	return 0
}

func (o *objectNode) path() string {
	p, _ := o.fs.names.pathOf(o.name)
	return p
}

// objectHandle is an open descriptor on a published version.
type objectHandle struct {
	file   *os.File // pinned; nil where the store has no files
	handle *cache.Handle
	direct bool // the kernel reads file itself
}

var _ gofs.FilePassthroughFder = (*objectHandle)(nil)

// PassthroughFd lets the kernel read the local file without asking us.
func (h *objectHandle) PassthroughFd() (int, bool) {
	if h.file == nil || !h.direct {
		return 0, false
	}
	return int(h.file.Fd()), true
}

var _ gofs.FileReader = (*objectHandle)(nil)

// Read serves what the kernel has not cached.
func (h *objectHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.handle.ReadAt(context.Background(), dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, toErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// Open opens the version for reading, or begins a new version for writing.
func (o *objectNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0 {
		return nil, 0, o.redirect(ctx, flags)
	}
	tid := thread(ctx)
	work, cancel := o.fs.background()
	defer cancel()
	file := o.fs.names.unpin(o.name, tid, o.version.ETag)
	if file == nil {
		var err error
		file, err = o.fs.openObject(work, o.object())
		if errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrNotExist) {
			o.fs.names.turnAway(o.name, tid)
			return nil, 0, toErrno(errSuperseded)
		}
		if err != nil {
			return nil, 0, o.fs.fail("open", o.path(), err)
		}
	}
	return o.open(file), fuse.FOPEN_KEEP_CACHE, 0
}

// open wraps a pinned file, or the store, in a handle.
func (o *objectNode) open(file *os.File) *objectHandle {
	obj := o.object()
	v := cache.Version{Bucket: obj.Bucket, Key: obj.Key, ETag: obj.ETag, Size: obj.Size}
	return &objectHandle{file: file, direct: file != nil && o.fs.Passthrough, handle: o.fs.Cache.Open(v, o.fetch(file))}
}

// fetch reads a range of the version for the cache.
func (o *objectNode) fetch(file *os.File) cache.Fetch {
	return func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		if file != nil {
			return io.NopCloser(io.NewSectionReader(file, off, n)), nil
		}
		_, body, err := o.fs.Store.Read(ctx, o.object(), off, n)
		return body, err
	}
}

// openObject pins o's version where the store has files; nil, nil where not.
func (f *FS) openObject(ctx context.Context, o objectstore.Object) (*os.File, error) {
	s, ok := f.Store.(objectstore.Opener)
	if !ok {
		return nil, nil //nolint:nilnil // no file is not an error: reads go through the store
	}
	return s.OpenObject(ctx, o)
}

// lookupPinned looks path up and opens the version that it answers, for a
// reader that was turned away once: a name that is replaced all the time must
// not turn it away again.
func (f *FS) lookupPinned(ctx context.Context, path string, tid uint32) (catalogview.Node, error) {
	for {
		n, err := f.View.Lookup(ctx, path)
		if err != nil || n.Kind != catalogview.KindObject {
			return n, err
		}
		file, err := f.openObject(ctx, n.Object)
		if errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrNotExist) {
			if ctx.Err() != nil {
				return n, ctx.Err()
			}
			continue
		}
		if err != nil {
			return n, err
		}
		if file != nil && !f.names.pin(path, tid, n.Object.ETag, file) {
			_ = file.Close() // read only: nothing to lose
		}
		return n, nil
	}
}

// Flush drops the closing process's POSIX locks.
func (o *objectNode) Flush(ctx context.Context, _ gofs.FileHandle) syscall.Errno {
	if l, ok := o.fs.owners.of(ctx); ok {
		o.closed(l.owner, false)
	}
	return 0
}

// Fsync has nothing to do: the version is durable.
func (o *objectNode) Fsync(context.Context, gofs.FileHandle, uint32) syscall.Errno { return 0 }

// Release ends the descriptor.
func (o *objectNode) Release(ctx context.Context, fh gofs.FileHandle) syscall.Errno {
	if l, ok := o.fs.owners.of(ctx); ok && l.flock {
		o.closed(l.owner, true)
	}
	if h, ok := fh.(*objectHandle); ok {
		h.handle.Close()
		if h.file != nil {
			_ = h.file.Close() // read only: nothing to lose
		}
	}
	return 0
}
