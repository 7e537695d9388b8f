package fs

import (
	"context"
	"errors"
	"math"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
)

// maxCopy is what one request copies at most, in bytes: its answer has 32 bits. Who
// copies asks for the rest by another.
const maxCopy = math.MaxUint32 &^ (128<<10 - 1)

var _ gofs.NodeCopyFileRanger = (*objectNode)(nil)

// CopyFileRange is copy_file_range(2) from a published version into a staged file:
// in the store, or within the kernel, as far as the file takes it (see
// [staging.File.CopyFrom]). Everything else is EOPNOTSUPP, which no program sees: the
// kernel then reads and writes by itself.
func (o *objectNode) CopyFileRange(ctx context.Context, fhIn gofs.FileHandle, offIn uint64, out *gofs.Inode, fhOut gofs.FileHandle, offOut, n, flags uint64) (uint32, syscall.Errno) {
	s, h, ok := copyTarget(out, fhOut)
	if _, open := fhIn.(*objectHandle); !open || !ok || flags != 0 || offIn > math.MaxInt64 || offOut > math.MaxInt64 {
		return 0, toErrno(errUnsupported)
	}
	s.wrote.note(thread(ctx), s.fs.proc)
	if h.closed.Load() {
		s.reopenHandle(h)
	}
	work, cancel := s.fs.lasting() // as a write it waits for a publish, however long that takes
	defer cancel()
	defer s.fs.endWith(ctx, cancel)()
	took, err := s.file.CopyFrom(work, o.object(), int64(offIn), int64(offOut), int64(min(n, maxCopy)))
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, toErrno(errUnsupported)
	}
	return uint32(took), s.fs.fail("copy", s.path(), err)
}

// copyTarget is the file that a copy goes to. An O_APPEND descriptor is none: the
// kernel's idea of its end may be old.
func copyTarget(out *gofs.Inode, fh gofs.FileHandle) (*stagedNode, *stagedHandle, bool) {
	if out == nil {
		return nil, nil, false
	}
	s, staged := out.Operations().(*stagedNode)
	h, open := fh.(*stagedHandle)
	if !staged || !open || !h.write || h.append {
		return nil, nil, false
	}
	return s, h, true
}
