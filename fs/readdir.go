package fs

import (
	"context"
	"errors"
	"iter"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

var _ gofs.NodeOpendirHandler = (*dirNode)(nil)

// OpendirHandle opens a listing of its own.
func (d *dirNode) OpendirHandle(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if _, err := d.path(); err != nil {
		return nil, 0, toErrno(err)
	}
	return &dirHandle{dir: d}, 0, 0
}

// dirHandle is one open directory: a stream over one listing, whose entries
// carry what READDIRPLUS answers. An entry's offset is its number, from 1. The
// bridge calls one method of a handle at a time.
type dirHandle struct {
	dir    *dirNode
	next   func() (catalogview.Node, error, bool)
	stop   func()
	pos    uint64 // entries given out
	last   catalogview.Node
	failed error
}

var (
	_ gofs.FileReaddirenter = (*dirHandle)(nil)
	_ gofs.FileLookuper     = (*dirHandle)(nil)
	_ gofs.FileSeekdirer    = (*dirHandle)(nil)
	_ gofs.FileReleasedirer = (*dirHandle)(nil)
	_ gofs.FileFsyncdirer   = (*dirHandle)(nil)
)

// Readdirent returns the next entry: ".", "..", then the listing's.
func (h *dirHandle) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	path, err := h.dir.path()
	if err != nil {
		return nil, toErrno(err)
	}
	switch h.pos {
	case 0:
		h.pos++
		return &fuse.DirEntry{Name: ".", Mode: syscall.S_IFDIR, Ino: h.dir.StableAttr().Ino, Off: h.pos}, 0
	case 1:
		h.pos++
		up, _ := parent(path)
		return &fuse.DirEntry{Name: "..", Mode: syscall.S_IFDIR, Ino: h.dir.fs.inodeOf(up), Off: h.pos}, 0
	}
	if h.next == nil {
		h.next, h.stop = iter.Pull2(h.dir.fs.View.ReadDir(context.Background(), path))
	}
	n, err, ok := h.next()
	if !ok {
		return nil, 0
	}
	if errors.Is(err, objectstore.ErrNotExist) && h.dir.fs.virtual(path) {
		return nil, 0
	}
	if err != nil {
		return nil, h.dir.fs.fail("readdir", path, err)
	}
	h.pos++
	h.last = n
	mode := uint32(syscall.S_IFDIR)
	if n.Kind == catalogview.KindObject || n.Kind == catalogview.KindEntry {
		mode = syscall.S_IFREG
	}
	_, base := parent(n.Path)
	return &fuse.DirEntry{Name: base, Mode: mode, Ino: h.dir.fs.inodeOf(n.Path), Off: h.pos}, 0
}

// Lookup answers READDIRPLUS from the listing, without a request.
func (h *dirHandle) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	_, last := parent(h.last.Path)
	if last != base || h.last.Path == "" { // a part of the buffer is asked for again
		return h.dir.Lookup(ctx, base, out)
	}
	_, _, busy := h.dir.fs.names.stagedAt(h.last.Path, 0)
	return h.dir.fs.inode(ctx, h.dir, h.last, busy, out)
}

// Seekdir goes on behind entry off; 0 begins a new listing.
func (h *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	if off < h.pos || off == 0 {
		h.Releasedir(ctx, 0)
	}
	for h.pos < off {
		e, errno := h.Readdirent(ctx)
		if errno != 0 {
			return errno
		}
		if e == nil {
			return 0 // entries went meanwhile: the end
		}
	}
	return 0
}

// Releasedir ends the listing.
func (h *dirHandle) Releasedir(context.Context, uint32) {
	if h.stop != nil {
		h.stop()
	}
	h.next, h.stop, h.pos, h.last = nil, nil, 0, catalogview.Node{}
}

// Fsyncdir has nothing to do: a publish is durable with its directory.
func (h *dirHandle) Fsyncdir(context.Context, uint32) syscall.Errno { return 0 }

// inodeOf returns the inode number that a path has.
func (f *FS) inodeOf(path string) uint64 {
	if path == "" {
		return rootIno
	}
	return f.names.inode(path)
}
