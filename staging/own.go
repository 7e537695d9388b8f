package staging

import (
	"errors"
	"io"
	"math"
)

// Range is the bytes [From, To) of a file.
type Range struct{ From, To int64 }

// ReadOwn is ReadAt without the older object, which may be gone: where OwnRun says
// that the bytes are not the file's own, zeros stand for them.
func (f *File) ReadOwn(p []byte, off int64) (int, error) {
	l, size, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer l.release()
	if off >= size {
		return 0, io.EOF
	}
	n, err := l.readOwn(p[:min(int64(len(p)), size-off)], off)
	if err != nil {
		return n, ioError("read", f.id, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Own lists the runs of bytes that can be read without the older object: what was
// written, and what had been fetched around it, for the spool takes an object's bytes
// over in blocks of 128 KiB. They are in order and do not touch.
func (f *File) Own() ([]Range, error) {
	var all []Range
	for off := int64(0); ; {
		own, end, err := f.OwnRun(off)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if own {
			all = append(all, Range{off, end})
		}
		off = end
	}
}

// OwnRun tells whether the byte at off is in a run of those that Own lists, and the
// end (exclusive) of the run, or of the gap. io.EOF: off is not inside the file.
func (f *File) OwnRun(off int64) (own bool, end int64, err error) {
	l, size, err := f.acquire()
	if err != nil {
		return false, 0, err
	}
	defer l.release()
	if off < 0 || off >= size {
		return false, 0, io.EOF
	}
	own, end = l.ownRun(off)
	return own, min(end, size), nil
}

func (l *layer) ownRun(off int64) (own bool, end int64) {
	block, own := l.have.run(off / blockSize)
	if own && block >= l.have.blocks {
		return true, math.MaxInt64 // what follows is the spool's too
	}
	return own, block * blockSize
}

// readOwn fills p, which must not reach past the file's end.
func (l *layer) readOwn(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		own, end := l.ownRun(off + int64(n))
		part := p[n:]
		if left := end - off - int64(n); int64(len(part)) > left {
			part = part[:left]
		}
		if !own {
			clear(part)
		} else if m, err := l.spool.file.ReadAt(part, off+int64(n)); m < len(part) {
			return n + m, unexpected(err)
		}
		n += len(part)
	}
	return len(p), nil
}

// unexpected is err of a read that ended before the file does.
func unexpected(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
