package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

// copyAtOnce is how much is copied at a time, in bytes; a caller that gives up is
// heard in between.
const copyAtOnce = 512 * blockSize

// CopyFrom makes n bytes of src's version, from off on, the file's bytes from at
// on, and returns how many it took: fewer than n where src ends, or ctx does.
//
// In a store whose objects are files of this host the bytes are copied, by the
// kernel where it can. Elsewhere src is put under the spool and none of it is read,
// if off is at and the file consists so far of the first at bytes of src's version
// and of nothing else. Such a file needs that version until it is published or
// synced: its reads and its publish fail with objectstore.ErrChanged if it is gone.
//
// errors.ErrUnsupported, with nothing changed: the bytes are to be read and written.
// Other errors are as WriteAt's.
func (f *File) CopyFrom(ctx context.Context, src objectstore.Object, off, at, n int64) (int64, error) {
	if off < 0 || at < 0 || src.ETag == "" {
		return 0, fmt.Errorf("copy to %s: %w", f.id, errors.ErrUnsupported)
	}
	n = min(n, src.Size-off)
	if n <= 0 {
		return 0, nil
	}
	if err := f.lockWriting(ctx); err != nil {
		return 0, err
	}
	defer f.unlock()
	if err := f.writable(); err != nil {
		return 0, err
	}
	if at > f.area.largest()-n {
		return 0, f.fail(ctx, "copy", objectstore.ErrTooLarge)
	}
	if opener, local := f.area.opts.Store.(objectstore.Opener); local {
		return f.copyBytes(ctx, opener, copying{src, off, at, n})
	}
	if off != at || !f.startsAs(src, at) {
		return 0, fmt.Errorf("copy to %s: %w", f.id, errors.ErrUnsupported)
	}
	if err := f.refer(ctx, src, at+n); err != nil {
		return 0, f.fail(ctx, "copy", err)
	}
	return n, nil
}

// startsAs tells whether the file is the first size bytes of src's version, none
// of them in the spool.
func (f *File) startsAs(src objectstore.Object, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size != size || size == 0 {
		return f.size == size
	}
	c := f.rec.Copied
	return c != nil && c.Location == src.Location && c.ETag == src.ETag && f.rec.CopiedSize == size && f.cur.spoolless()
}

// spoolless tells whether all bytes of base that count are base's, and there are
// some.
func (l *layer) spoolless() bool {
	return l.have.blocks > 0 && l.have.missing.Load() == l.have.blocks
}

// refer puts the first size bytes of src under the spool, which has none. Ended in
// between, the file is as before: no more counts of src than the spool is long.
func (f *File) refer(ctx context.Context, src objectstore.Object, size int64) error {
	err := f.mixing(other)
	if err == nil {
		err = f.needSpool()
	}
	if err == nil {
		err = f.touch(f.size, size)
	}
	if err == nil {
		err = f.clearBlocks()
	}
	if err != nil {
		return err
	}
	f.sum.broken = true
	older, err := f.copySource(ctx, src)
	if err != nil {
		return err
	}
	next := newLayer(f.cur.spool.retain(), older, size)
	f.mu.Lock()
	f.rec.Copied, f.rec.CopiedSize, f.rec.Whole = objectCopy(&src), size, false
	f.mu.Unlock()
	if err = f.saveRecord(f.promised); err == nil {
		err = f.area.step("truncate", dataName)
	}
	if err == nil {
		err = next.spool.file.Truncate(size)
	}
	if err != nil {
		next.release()
		return err
	}
	f.setLayer(next)
	f.changed(size, other)
	return nil
}

// clearBlocks makes the file of blocks that of an overlay whose spool has nothing.
func (f *File) clearBlocks() error {
	if f.blocks != nil {
		if err := f.area.step("truncate", blocksName); err != nil {
			return err
		}
		return f.blocks.Truncate(0)
	}
	path := filepath.Join(f.dir(), blocksName)
	if err := f.area.step("create", path); err != nil {
		return err
	}
	// One may be there, of an older object that the spool took over.
	blocks, err := openPrivate(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		f.blocks = blocks
	}
	return err
}

// copySource is src, pinned; what lies under the spool already is pinned once.
func (f *File) copySource(ctx context.Context, src objectstore.Object) (*source, error) {
	if f.size > 0 {
		return f.cur.base.retain(), nil
	}
	older, err := pin(ctx, f.area.opts.Store, src)
	if err != nil {
		return nil, err
	}
	return newSource(nil, older), nil
}

// copying is n bytes of src, from off on, that shall be a file's from at on.
type copying struct {
	src        objectstore.Object
	off, at, n int64
}

// next is the first part of what is left, which ends with a block.
func (c copying) next() copying {
	c.n = min(c.n, c.at/blockSize*blockSize+copyAtOnce-c.at)
	return c
}

// after is what is left after n bytes.
func (c copying) after(n int64) copying {
	return copying{c.src, c.off + n, c.at + n, c.n - n}
}

// localCopy is a version in a file of this host, open twice: for the kernel, which
// copies whatever is there, and to tell whether that was the version.
type localCopy struct {
	file   *os.File
	pinned *source
}

func openCopy(ctx context.Context, store objectstore.Store, opener objectstore.Opener, src objectstore.Object) (localCopy, error) {
	file, err := opener.OpenObject(ctx, src)
	if err != nil {
		return localCopy{}, err
	}
	pinned, err := objectstore.Pin(ctx, store, src)
	if err != nil {
		_ = file.Close() // only read
		return localCopy{}, err
	}
	return localCopy{file: file, pinned: newSource(nil, pinned)}, nil
}

func (l localCopy) close() {
	_ = l.file.Close() // only read
	l.pinned.release()
}

// copyBytes is CopyFrom into the spool. A version whose name is gone may be open
// still: who holds it can read it.
func (f *File) copyBytes(ctx context.Context, opener objectstore.Opener, c copying) (done int64, err error) {
	from, err := openCopy(ctx, f.area.opts.Store, opener, c.src)
	if isGone(err) {
		return 0, fmt.Errorf("copy to %s: %w: %w", f.id, errors.ErrUnsupported, err)
	}
	if err != nil {
		return 0, fmt.Errorf("copy to %s: %w", f.id, err)
	}
	defer from.close()
	if err = f.mixing(other); err == nil {
		err = f.needSpool()
	}
	for err == nil && c.n > 0 {
		part := c.next()
		if err = ctx.Err(); err == nil {
			err = f.copyPart(ctx, from, part)
		}
		if err == nil {
			c, done = c.after(part.n), done+part.n
			f.changed(max(f.size, c.at), other)
		}
	}
	if err != nil && (done == 0 || ctx.Err() == nil) {
		return done, f.fail(ctx, "copy", err)
	}
	return done, nil
}

// copyPart copies into the spool as a write does.
func (f *File) copyPart(ctx context.Context, from localCopy, c copying) error {
	end := c.at + c.n
	overlay := f.cur.have.missing.Load() != 0
	if overlay {
		if err := f.fetchEdges(ctx, c.at, end); err != nil {
			return err
		}
	}
	if err := f.touch(c.at, end); err != nil {
		return err
	}
	if err := f.area.step("write", dataName); err != nil {
		return err
	}
	spool := f.cur.spool.file
	if end > f.size { // a hole at the end is written by nobody
		if err := spool.Truncate(end); err != nil {
			return err
		}
	}
	whole := context.WithoutCancel(ctx) // cut off, the spool would be longer than the file
	if err := from.copyTo(whole, spool, c); err != nil {
		return err
	}
	if overlay {
		if err := f.mark(c.at/blockSize, blocksOf(end)); err != nil {
			return err
		}
	}
	if start, n, due := f.early.wrote(c.at, end); due {
		// An error of the disk comes again from fsync, which counts.
		_ = unix.SyncFileRange(int(spool.Fd()), start, n, unix.SYNC_FILE_RANGE_WRITE)
	}
	return nil
}

// copyTo copies to dst, which is long enough, and leaves holes holes. The version is
// looked at afterwards: a writer in place moves its time before it changes a byte.
func (l localCopy) copyTo(ctx context.Context, dst *os.File, c copying) error {
	off := c.off
	for c.n > 0 {
		n := min(sparse.NextData(l.file, c.off)-c.off, c.n)
		var err error
		if n > 0 {
			err = sparse.Zero(dst, c.at, n)
		} else {
			n, err = l.copyData(ctx, dst, c)
		}
		if err != nil {
			return err
		}
		c = c.after(n)
	}
	_, err := l.pinned.readAt(ctx, make([]byte, 1), off)
	return err
}

// copyData copies what there is before the next hole, or a part of it, in the
// kernel; else all, by reading. It returns how many bytes that were.
func (l localCopy) copyData(ctx context.Context, dst *os.File, c copying) (int64, error) {
	n := c.n
	if hole, err := l.file.Seek(c.off, unix.SEEK_HOLE); err == nil && hole > c.off {
		n = min(n, hole-c.off)
	}
	m, off, at := 0, c.off, c.at
	err := retryEINTR(func() (err error) {
		m, err = unix.CopyFileRange(int(l.file.Fd()), &off, int(dst.Fd()), &at, int(n), 0)
		return err
	})
	if err == nil && m > 0 || isNoSpace(err) || isTooLarge(err) {
		return int64(m), err
	}
	return c.n, copyRange(ctx, copyArgs{
		dst: dst, at: c.at, src: newRun(l.pinned, c.off+c.n), from: c.off, n: c.n, buf: make([]byte, fillBlocks*blockSize),
	})
}
