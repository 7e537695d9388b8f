package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// partitionsName is the control file of a table whose partitions are the catalog's.
const partitionsName = "partitions.jsonl"

// partitionsNode is partitions.jsonl: the catalog's entry of each partition, a line
// each, as the catalog gives them. Its size is not known beforehand, and is 0, as
// that of a file in /proc; reads go past the page cache until the end comes.
type partitionsNode struct {
	unsized
	of *dirNode // the table
}

var (
	_ gofs.NodeGetattrer = (*partitionsNode)(nil)
	_ gofs.NodeOpener    = (*partitionsNode)(nil)
)

// Open asks for nothing yet.
func (n *partitionsNode) Open(_ context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, toErrno(errControl)
	}
	dir, err := n.of.path()
	if err != nil {
		return nil, 0, toErrno(err)
	}
	h := &streamHandle{fs: n.fs, path: child(child(dir, controlName), partitionsName), turn: make(chan struct{}, 1)}
	h.open = func(ctx context.Context) (io.ReadCloser, error) {
		return readLines(n.fs.View.PartitionLines(ctx, dir), partitionsBroke), nil
	}
	return h, fuse.FOPEN_DIRECT_IO, 0
}

// partitionsBroke is what a reader of the list is told of err.
func partitionsBroke(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, objectstore.ErrPermission) {
		return err
	}
	return fmt.Errorf("the list of partitions broke off: %v", err) //nolint:errorlint // EIO whatever it is: not that this file is gone, or changed
}
