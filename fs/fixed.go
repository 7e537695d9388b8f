package fs

import (
	"context"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fixed is a node that no program can change: catalog entries and control files
// and directories. Each refusal is spelt out, for go-fuse answers success to an
// UNLINK, RMDIR or STATFS that a node does not have, and other errors than a
// program expects to the rest.
type fixed struct{ gofs.Inode }

var (
	_ gofs.NodeCreater       = (*fixed)(nil)
	_ gofs.NodeMkdirer       = (*fixed)(nil)
	_ gofs.NodeMknoder       = (*fixed)(nil)
	_ gofs.NodeSymlinker     = (*fixed)(nil)
	_ gofs.NodeLinker        = (*fixed)(nil)
	_ gofs.NodeUnlinker      = (*fixed)(nil)
	_ gofs.NodeRmdirer       = (*fixed)(nil)
	_ gofs.NodeRenamer       = (*fixed)(nil)
	_ gofs.NodeSetattrer     = (*fixed)(nil)
	_ gofs.NodeSetxattrer    = (*fixed)(nil)
	_ gofs.NodeRemovexattrer = (*fixed)(nil)
	_ gofs.NodeStatfser      = (*fixed)(nil)
)

// Create is refused.
func (*fixed) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, toErrno(errControl)
}

// Mkdir is refused.
func (*fixed) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Mknod is refused.
func (*fixed) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Symlink is refused.
func (*fixed) Symlink(context.Context, string, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Link is refused.
func (*fixed) Link(context.Context, gofs.InodeEmbedder, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(errControl)
}

// Unlink is refused.
func (*fixed) Unlink(context.Context, string) syscall.Errno { return toErrno(errControl) }

// Rmdir is refused.
func (*fixed) Rmdir(context.Context, string) syscall.Errno { return toErrno(errControl) }

// Rename is refused.
func (*fixed) Rename(context.Context, string, gofs.InodeEmbedder, string, uint32) syscall.Errno {
	return toErrno(errControl)
}

// Setattr is refused.
func (*fixed) Setattr(context.Context, gofs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return toErrno(errControl)
}

// Setxattr is not supported.
func (*fixed) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return toErrno(errUnsupported)
}

// Removexattr is not supported.
func (*fixed) Removexattr(context.Context, string) syscall.Errno { return toErrno(errUnsupported) }

// Statfs is the lake's.
func (*fixed) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno { return statfs(out) }

// statfs shows a large size: a lake has no end that a program should plan by.
// The kernel asks the node that the path leads to, whichever kind it is.
func statfs(out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 38 // of 4 KiB: 1 PiB
	out.Bsize, out.Frsize = 4096, 4096
	out.Blocks, out.Bfree, out.Bavail = blocks, blocks, blocks
	out.Files, out.Ffree = 1<<40, 1<<40
	out.NameLen = 255
	return 0
}

// Statfs is the lake's.
func (d *dirNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno { return statfs(out) }

// Statfs is the lake's.
func (o *objectNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return statfs(out)
}

// Statfs is the lake's.
func (s *stagedNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return statfs(out)
}

var (
	_ gofs.NodeStatfser = (*objectNode)(nil)
	_ gofs.NodeStatfser = (*stagedNode)(nil)
)
