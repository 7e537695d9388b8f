package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// ReadAt reads the bytes as they are now, the spool's over the older object's.
// At the end it is io.EOF, with the bytes before it. Reads run beside writes and
// publishes; after Drop they fail with ErrDropped.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	for {
		was := f.layer()
		n, err := f.readNow(ctx, p, off)
		if !isGone(err) || !f.awaitMove(ctx, was) {
			return n, err
		}
	}
}

func (f *File) readNow(ctx context.Context, p []byte, off int64) (int, error) {
	l, size, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer l.release()
	if off >= size {
		return 0, io.EOF
	}
	part := p[:min(int64(len(p)), size-off)]
	n, err := l.readAt(ctx, part, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, ioError("read", f.id, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Seek is lseek's SEEK_DATA and SEEK_HOLE (unix.SEEK_DATA, unix.SEEK_HOLE): the
// offset of the next data, or hole, from off on. What the older object still
// provides counts as data, and the end of the file as a hole. io.EOF: off is not
// inside the file, or no data follows.
func (f *File) Seek(off int64, whence int) (int64, error) {
	l, size, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer l.release()
	if off < 0 || off >= size {
		return 0, io.EOF
	}
	switch whence {
	case unix.SEEK_DATA:
		return l.nextData(f.id, off)
	case unix.SEEK_HOLE:
		return l.nextHole(f.id, off, size)
	}
	return 0, fmt.Errorf("seek %s: whence %d: %w", f.id, whence, errors.ErrUnsupported)
}

func (l *layer) nextData(id string, off int64) (int64, error) {
	if l.spool == nil {
		return off, nil
	}
	end, has := l.have.run(off / blockSize)
	if !has {
		return off, nil
	}
	at, err := unix.Seek(int(l.spool.file.Fd()), off, unix.SEEK_DATA)
	if err != nil {
		at, err = math.MaxInt64, seekError(id, err)
	}
	if end < l.have.blocks && at > end*blockSize && (err == nil || errors.Is(err, io.EOF)) {
		return end * blockSize, nil // there the older object begins again
	}
	if err != nil {
		return 0, err
	}
	return at, nil
}

func (l *layer) nextHole(id string, off, size int64) (int64, error) {
	if l.spool == nil {
		return size, nil
	}
	for off < size {
		end, has := l.have.run(off / blockSize)
		if has {
			at, err := unix.Seek(int(l.spool.file.Fd()), off, unix.SEEK_HOLE)
			if err != nil {
				return 0, seekError(id, err)
			}
			if at < end*blockSize {
				return min(at, size), nil
			}
		}
		off = end * blockSize
	}
	return size, nil
}

// latePin is the older object of a write found by Open: pinned when it is first
// read, since Open asks no store and most such writes are never read.
type latePin struct {
	store objectstore.Store
	obj   objectstore.Object

	mu  sync.Mutex // held over the pinning: who reads needs its outcome
	pin objectstore.Pinned
}

func (p *latePin) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	pin, err := p.get(ctx)
	if err != nil {
		return 0, err
	}
	return pin.ReadAt(ctx, b, off)
}

// NextData is objectstore.DataSeeker's.
func (p *latePin) NextData(ctx context.Context, off int64) (int64, error) {
	pin, err := p.get(ctx)
	if err != nil {
		return 0, err
	}
	if d, ok := pin.(objectstore.DataSeeker); ok {
		return d.NextData(ctx, off)
	}
	return off, nil
}

// stream is streamer's.
func (p *latePin) stream(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	older, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := older.(streamer); ok {
		return s.stream(ctx, off, n)
	}
	return io.NopCloser(io.NewSectionReader(pinReader{ctx, older}, off, n)), nil
}

// pinReader is a pinned object as an io.ReaderAt, while ctx lasts.
type pinReader struct {
	ctx context.Context //nolint:containedctx // it is as short-lived as the call that it serves
	objectstore.Pinned
}

func (r pinReader) ReadAt(p []byte, off int64) (int, error) { return r.Pinned.ReadAt(r.ctx, p, off) }

func (p *latePin) get(ctx context.Context) (objectstore.Pinned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pin != nil {
		return p.pin, nil
	}
	if p.store == nil {
		return nil, fmt.Errorf("the object that it began as: no store: %w", ErrDamaged)
	}
	older, err := pin(ctx, p.store, p.obj)
	if err != nil {
		return nil, fmt.Errorf("the object that it began as: %w", err)
	}
	p.pin = older
	return older, nil
}

func (p *latePin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pin == nil {
		return nil
	}
	return p.pin.Close()
}
