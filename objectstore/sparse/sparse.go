// Package sparse copies files of this host without filling their holes.
//
// All of it works on bytes: a file reads the same as if every byte had been
// written. Where a file system knows no holes, zeros are written.
package sparse

import (
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// chunk is the unit in which zeros are looked for, in bytes: the largest run of
// zeros beside data that is written all the same.
const chunk = 32 << 10

// NextData returns the offset of the next byte at or past off that is not in a
// hole of the file; the file's end (or off, past it) if there is none; off
// itself where the file system cannot tell. It moves the file's position.
func NextData(f *os.File, off int64) int64 {
	next := seekData(f, off)
	if next < math.MaxInt64 {
		return next
	}
	st, err := f.Stat()
	if err != nil {
		return off
	}
	return max(off, st.Size())
}

// seekData is NextData with math.MaxInt64 where no data follows.
func seekData(f *os.File, off int64) int64 {
	at, err := f.Seek(off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): //nolint:forbidigo // what lseek says past the last data
		return math.MaxInt64
	case err != nil:
		return off
	}
	return at
}

// Zero makes [off, off+n) of the file read as zeros, and leaves its holes. The
// file's length is the caller's business: it must be off+n at least, in the end.
func Zero(f *os.File, off, n int64) error {
	end := off + n
	from := seekData(f, off)
	if from >= end {
		return nil
	}
	if punch(f, from, end-from) == nil {
		return nil
	}
	zeros := make([]byte, min(chunk, end-from))
	for from < end {
		part := zeros[:min(int64(len(zeros)), end-from)]
		if _, err := f.WriteAt(part, from); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return nil
}

func punch(f *os.File, off, n int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) {
		err = unix.Fallocate(int(fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
	return errors.Join(cerr, err)
}

// WriteAt writes p at off, except that runs of zeros are made by [Zero].
func WriteAt(f *os.File, p []byte, off int64) error {
	for len(p) > 0 {
		zero, n := run(p)
		var err error
		if zero {
			err = Zero(f, off, int64(n))
		} else {
			_, err = f.WriteAt(p[:n], off)
		}
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// run counts the bytes p begins with whose chunks all are zero, or all are not.
func run(p []byte) (zero bool, n int) {
	for n < len(p) {
		end := min(n+chunk, len(p))
		z := isZero(p[n:end])
		if n > 0 && z != zero {
			break
		}
		zero, n = z, end
	}
	return zero, n
}

func isZero(p []byte) bool {
	for len(p) >= 8 {
		if p[0]|p[1]|p[2]|p[3]|p[4]|p[5]|p[6]|p[7] != 0 {
			return false
		}
		p = p[8:]
	}
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// Writer writes to a file one part after the other, from offset 0 on, through
// [WriteAt]. Finish gives the file its length: a hole at the end has none.
type Writer struct {
	File *os.File
	off  int64
}

// Write is io.Writer's.
func (w *Writer) Write(p []byte) (int, error) {
	if err := WriteAt(w.File, p, w.off); err != nil {
		return 0, err
	}
	w.off += int64(len(p))
	return len(p), nil
}

// Skip leaves n bytes out, which read as zeros.
func (w *Writer) Skip(n int64) error {
	if err := Zero(w.File, w.off, n); err != nil {
		return err
	}
	w.off += n
	return nil
}

// Finish makes the file as long as what was written.
func (w *Writer) Finish() error { return w.File.Truncate(w.off) }

var _ io.Writer = (*Writer)(nil)
