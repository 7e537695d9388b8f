package fs

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// objectNode is one published version of an object. Its bytes never change, so
// the kernel may keep its pages for ever.
type objectNode struct {
	gofs.Inode
	lockable
	fs      *FS
	version objectstore.Object // its Location is where it lay when the node was made; see object
	// set is what was last known to be set on the version. It stays the version's
	// when its name goes, or passes to another version: descriptors are open on it.
	set atomic.Pointer[attr.Attributes]
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
	o.fs.owned(a, mode)
	if set, ok := o.fs.Attr.Get(attrKey(v.Location), v.ETag); ok {
		o.set.Store(&set)
	}
	if set := o.set.Load(); set != nil {
		overlay(a, *set)
	}
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
	if s, _, _ := o.fs.names.stagedAt(o.path(), 0); s != nil && s.name == o.name { // it has a backup name by now
		return s.Setattr(ctx, nil, in, out)
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
	opened
	node   *objectNode
	direct bool // the kernel reads file itself
	lost   failedReads
	read   atomic.Int64 // up to which offset it was asked for
	warms  bool         // opened with O_DIRECT, as `lakefs-mount warm` does: what it reads is to be on the disk after it
}

var _ gofs.FilePassthroughFder = (*objectHandle)(nil)

// PassthroughFd lets the kernel read the local file without asking us.
func (h *objectHandle) PassthroughFd() (int, bool) {
	if h.file == nil || !h.direct {
		return 0, false
	}
	return int(h.file.Fd()), true
}

// failed answers a read that could not be served. That the version is gone is
// told to all who would look it up again.
func (h *objectHandle) failed(err error) syscall.Errno {
	o := h.node
	if supersedes(err) {
		o.fs.superseded(o.object().Location)
		err = fmt.Errorf("%w: %w", objectstore.ErrChanged, err) // removed, too: the descriptor lives on
	}
	return o.fs.fail("read", o.path(), err)
}

var _ gofs.FileReader = (*objectHandle)(nil)

// Read serves what the kernel has not cached.
func (h *objectHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno, again := h.lost.again(off, int64(len(dest))); again {
		return nil, errno
	}
	work, cancel := h.node.fs.work(ctx)
	defer cancel()
	h.read.Store(max(h.read.Load(), off+int64(len(dest)))) // roughly, of reads at once
	if h.warms {
		work = cache.Thorough(work)
	}
	v, err := h.handle.View(work, dest, off)
	if err != nil {
		errno := h.failed(err)
		h.lost.note(off, int64(len(dest)), errno)
		return nil, errno
	}
	return viewResult{v}, 0
}

// viewResult is an answer that lies in the cache until it has been written.
type viewResult struct{ *cache.View }

var _ fuse.ReadResult = viewResult{}

// Slices is what is written, in one writev(2), without a copy.
func (r viewResult) Slices() ([][]byte, fuse.Status) { return r.View.Slices(), fuse.OK }

// Done gives the memory back.
func (r viewResult) Done() { r.Close() }

// Bytes is for servers that do not ask for Slices.
func (r viewResult) Bytes(buf []byte) ([]byte, fuse.Status) {
	n := 0
	for _, s := range r.View.Slices() {
		n += copy(buf[n:], s)
	}
	return buf[:n], fuse.OK
}

// Open opens the version for reading, or begins a new version for writing.
func (o *objectNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0 {
		return nil, 0, o.redirect(ctx, flags)
	}
	tid := thread(ctx)
	work, cancel := o.fs.work(ctx)
	defer cancel()
	warms := flags&syscall.O_DIRECT != 0
	if warms {
		work = o.fs.warming(work, o.object())
	} else {
		defer o.fs.prefetch.opening(work, o.object(), o.path())()
	}
	v, pinned := o.fs.names.unpin(o.name, tid, versionOf(o.version))
	if !pinned {
		var err error
		v, err = o.fs.openVersion(work, o.path(), o.object())
		if supersedes(err) {
			if s := o.fs.names.leads(o.name); s != nil {
				o.fs.names.promise(s, tid, s.unclaimed)
				return nil, 0, toErrno(errSuperseded)
			}
			o.fs.names.turnAway(o.name, tid)
			return nil, 0, toErrno(errSuperseded)
		}
		if err != nil {
			return nil, 0, o.fs.fail("open", o.path(), err)
		}
	}
	return &objectHandle{opened: v, node: o, direct: v.file != nil && o.fs.Passthrough, warms: warms}, fuse.FOPEN_KEEP_CACHE, 0
}

func cacheVersion(o objectstore.Object) cache.Version {
	return cache.Version{Bucket: o.Bucket, Key: o.Key, ETag: o.ETag, Size: o.Size}
}

// openCache opens a version in the cache: on file, or where that is nil on the
// store.
func (f *FS) openCache(o objectstore.Object, file *os.File) *cache.Handle {
	v := cacheVersion(o)
	fetch := func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		if file != nil {
			return io.NopCloser(io.NewSectionReader(file, off, n)), nil
		}
		_, body, err := f.Store.Read(ctx, o, off, n)
		if err == nil {
			f.verified.note(o) // before its bytes are there: who finds them need not ask
		}
		return body, err
	}
	if f.Disk != nil && file == nil {
		fetch = f.Disk.Fetch(v, fetch)
	}
	return f.Cache.Open(v, fetch)
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
		h.close()
		o.fs.prefetch.closed(o.object(), o.path(), h.read.Load())
	}
	return 0
}
