package fs

import (
	"context"
	"errors"
	"io"
	"iter"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrGaveWay is what a stream's Read returns when the stream is over before its time
// though nothing is wrong: it is begun anew.
var ErrGaveWay = errors.New("the stream gave way to others")

// unsized is a control file whose bytes are made as they are read, which a node of it is
// made of. Its size is not known beforehand, and is 0.
type unsized struct {
	fixed
	fs  *FS
	ino uint64
}

func (n *unsized) attributes(a *fuse.Attr) {
	n.fs.fill(a, n.ino, 0, n.fs.started)
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|uint32(0o444&n.fs.FileMode&^n.fs.Umask), n.fs.UID, n.fs.GID
}

// Getattr asks for nothing.
func (n *unsized) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// streamHandle is an open file whose bytes are made as it is read: one stream. A read
// behind it goes on, by way of what lies between; one before it begins a new stream. An
// error is the answer of every read from where it happened, until a read goes back: what
// was read before it never looks whole.
type streamHandle struct {
	fs      *FS
	path    string
	open    func(ctx context.Context) (io.ReadCloser, error)
	release func()        // ends what open needs; nil: nothing
	turn    chan struct{} // held by who reads; guards what follows

	stream io.ReadCloser // nil: none
	cancel context.CancelFunc
	pos    int64 // of the stream's next byte
	failed error // io.EOF too
}

var (
	_ gofs.FileReader   = (*streamHandle)(nil)
	_ gofs.FileReleaser = (*streamHandle)(nil)
)

// Read reads on, or anew. It has no deadline of its own: the stream ends where nothing
// moves.
func (h *streamHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
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
// next read. A stream that ended with a reader who is being killed has not failed:
// another who shares the descriptor begins anew.
func (h *streamHandle) readAt(ctx context.Context, dest []byte, off int64) (done int, err error) {
	for {
		if off+int64(done) < h.pos || errors.Is(h.failed, context.Canceled) || errors.Is(h.failed, ErrGaveWay) {
			h.end()
		}
		n, err := h.fill(ctx, dest[done:], off+int64(done))
		done += n
		if done < len(dest) && errors.Is(h.failed, ErrGaveWay) {
			continue // a read that is short looks like the end
		}
		if done > 0 {
			err = nil
		}
		return done, err
	}
}

func (h *streamHandle) fill(ctx context.Context, dest []byte, off int64) (n int, err error) {
	var streaming context.Context
	begins := h.cancel == nil
	if begins {
		streaming, h.cancel = context.WithCancel(h.fs.operations.New(context.Background()))
	}
	stop := h.fs.endWithCaller(ctx, h.cancel)
	defer stop()
	if begins {
		h.stream, h.failed = h.open(streaming)
	}
	for n < len(dest) && h.failed == nil {
		n += h.step(dest[n:], off+int64(n))
	}
	if n > 0 || errors.Is(h.failed, io.EOF) {
		return n, nil
	}
	return 0, h.failed
}

// step reads once, on the way to off or into dest, and returns how many bytes of dest it
// filled.
func (h *streamHandle) step(dest []byte, off int64) (n int) {
	if between := off - h.pos; between > 0 {
		var skipped int64
		skipped, h.failed = io.CopyN(io.Discard, h.stream, between)
		h.pos += skipped
		return 0
	}
	n, h.failed = h.stream.Read(dest)
	h.pos += int64(n)
	return n
}

// end ends the stream, and what it asks for.
func (h *streamHandle) end() {
	if h.cancel == nil {
		return
	}
	h.cancel()
	if h.stream != nil {
		_ = h.stream.Close() // it was read only
	}
	h.stream, h.cancel, h.pos, h.failed = nil, nil, 0, nil
}

// Release ends the stream.
func (h *streamHandle) Release(context.Context) syscall.Errno {
	h.turn <- struct{}{}
	h.end()
	if h.release != nil {
		h.release()
	}
	return 0
}

// lines is a stream of lines, made of what yields them without their newlines.
type lines struct {
	next func() ([]byte, error, bool)
	stop func()
	line []byte // the last one, and its newline
	rest []byte // what is left of it
	told func(error) error
}

// readLines makes a stream of all; told turns its error into that of the stream.
func readLines(all iter.Seq2[[]byte, error], told func(error) error) *lines {
	l := &lines{told: told}
	l.next, l.stop = iter.Pull2(all)
	return l
}

// Read reads from one line.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err, ok := l.next()
		switch {
		case !ok:
			return 0, io.EOF
		case err != nil:
			return 0, l.told(err)
		}
		l.line = append(append(l.line[:0], line...), '\n')
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close ends what yields the lines.
func (l *lines) Close() error {
	l.stop()
	return nil
}
