package fs

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	fixed
	fs  *FS
	of  *dirNode // the table
	ino uint64
}

var (
	_ gofs.NodeGetattrer = (*partitionsNode)(nil)
	_ gofs.NodeOpener    = (*partitionsNode)(nil)
)

func (n *partitionsNode) attributes(a *fuse.Attr) {
	n.fs.fill(a, n.ino, 0, n.fs.started)
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|uint32(0o444&n.fs.FileMode&^n.fs.Umask), n.fs.UID, n.fs.GID
}

// Getattr asks for nothing.
func (n *partitionsNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// Open asks for nothing yet.
func (n *partitionsNode) Open(_ context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, toErrno(errControl)
	}
	dir, err := n.of.path()
	if err != nil {
		return nil, 0, toErrno(err)
	}
	h := &linesHandle{fs: n.fs, path: child(child(dir, controlName), partitionsName), turn: make(chan struct{}, 1)}
	h.lines = func(ctx context.Context) iter.Seq2[[]byte, error] { return n.fs.View.PartitionLines(ctx, dir) }
	return h, fuse.FOPEN_DIRECT_IO, 0
}

// linesHandle is an open file of lines that are made as they are read: one stream,
// which keeps one line. A read behind it goes on, by way of what lies between; one
// before it begins a new stream. An error is the answer of every read from where it
// happened, until a read goes back: what was read before it never looks whole.
type linesHandle struct {
	fs    *FS
	path  string
	lines func(ctx context.Context) iter.Seq2[[]byte, error]
	turn  chan struct{} // held by who reads; guards what follows

	next   func() ([]byte, error, bool) // nil: no stream
	stop   func()
	cancel context.CancelFunc
	pos    int64  // of the first byte of rest
	line   []byte // the last one, and its newline
	rest   []byte // what is left of it
	failed error
}

var (
	_ gofs.FileReader   = (*linesHandle)(nil)
	_ gofs.FileReleaser = (*linesHandle)(nil)
)

// Read reads on, or anew.
func (h *linesHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	work, cancel := h.fs.work(ctx)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
	case <-work.Done():
		return nil, h.fs.fail("read", h.path, work.Err())
	}
	defer func() { <-h.turn }()
	n, err := h.readAt(ctx, dest, off)
	if err != nil {
		return nil, h.fs.fail("read", h.path, err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// readAt fills dest as far as there are bytes. An error after some is that of the
// next read.
func (h *linesHandle) readAt(ctx context.Context, dest []byte, off int64) (n int, err error) {
	if off < h.pos || errors.Is(h.failed, context.Canceled) {
		h.end()
	}
	if h.next == nil {
		h.begin()
	}
	stop := h.fs.endWith(ctx, h.cancel)
	defer stop()
	for n < len(dest) {
		if err := h.fetch(); err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, h.told(err)
		}
		if len(h.rest) == 0 {
			return n, nil // the end
		}
		if h.pos < off {
			h.take(int(min(off-h.pos, int64(len(h.rest)))))
			continue
		}
		k := copy(dest[n:], h.rest)
		h.take(k)
		n, off = n+k, off+int64(k)
	}
	return n, nil
}

// fetch makes rest the next line, if it is empty; it stays so at the end.
func (h *linesHandle) fetch() error {
	if len(h.rest) > 0 || h.failed != nil {
		return h.failed
	}
	line, err, ok := h.next()
	switch {
	case !ok:
		return nil
	case err != nil:
		h.failed = err
		return err
	}
	h.line = append(append(h.line[:0], line...), '\n')
	h.rest = h.line
	return nil
}

func (h *linesHandle) take(n int) {
	h.rest = h.rest[n:]
	h.pos += int64(n)
}

// told is what a reader is told of err. A stream that ended with a reader who is
// being killed has not failed: another who shares the descriptor begins anew.
func (h *linesHandle) told(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, objectstore.ErrPermission) {
		return err
	}
	return fmt.Errorf("the list of partitions broke off: %v", err) //nolint:errorlint // EIO whatever it is: not that this file is gone, or changed
}

func (h *linesHandle) begin() {
	ctx, cancel := context.WithCancel(h.fs.operations.New(context.Background()))
	h.cancel = cancel
	h.next, h.stop = iter.Pull2(h.lines(ctx))
}

// end ends the stream, and what it asks for.
func (h *linesHandle) end() {
	if h.next == nil {
		return
	}
	h.cancel()
	h.stop()
	h.next, h.stop, h.cancel = nil, nil, nil
	h.pos, h.rest, h.failed = 0, nil, nil
}

// Release ends the stream.
func (h *linesHandle) Release(context.Context) syscall.Errno {
	h.turn <- struct{}{}
	h.end()
	return 0
}
