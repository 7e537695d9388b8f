package fs

import (
	"context"
	"errors"
	"io"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/staging"
)

// partialSuffix behind a shown name asks for what of the file is its own.
const partialSuffix = ".partial"

// partialViewNode shows an unpublished file without the version that it changed,
// which may be gone: a hole is where that one's bytes would be.
type partialViewNode struct{ stagedViewNode }

var (
	_ gofs.NodeReader    = (*partialViewNode)(nil)
	_ gofs.NodeLseeker   = (*partialViewNode)(nil)
	_ gofs.NodeOpener    = (*partialViewNode)(nil)
	_ gofs.NodeGetattrer = (*partialViewNode)(nil)
)

func (d *dirNode) partialView(ctx context.Context, path string, w *staging.File, out *fuse.EntryOut) *gofs.Inode {
	v := &partialViewNode{stagedViewNode{fs: d.fs, ino: d.fs.names.inode(path), file: w}}
	return v.enter(ctx, d, v, out)
}

// Read reads the spool, and zeros.
func (v *partialViewNode) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := v.file.ReadOwn(dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, v.fs.fail("read", v.fs.shown(v.file), err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// Lseek finds what is the file's own (SEEK_DATA), and what is not (SEEK_HOLE).
func (v *partialViewNode) Lseek(_ context.Context, _ gofs.FileHandle, off uint64, whence uint32) (uint64, syscall.Errno) {
	own, end, err := v.file.OwnRun(int64(off))
	switch {
	case errors.Is(err, io.EOF), err == nil && !own && whence == unix.SEEK_DATA && end >= v.file.Size():
		return 0, toErrno(errNoData)
	case err != nil:
		return 0, toErrno(err)
	case own == (whence == unix.SEEK_DATA):
		return off, 0
	}
	return uint64(end), 0
}
