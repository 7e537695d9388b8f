package staging

import (
	"context"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// change says what an operation did to the bytes, as far as appending goes.
type change int

const (
	neutral change = iota // nothing that a rebase would lose
	appends
	other
)

// WriteAt writes p at off, in any order; a block of the older object that p
// covers in part is fetched first. It waits while a publish is under way, or
// until ctx is done. An error other than that poisons the file; a full disk is
// objectstore.ErrNoSpace, an end that no file can have objectstore.ErrTooLarge.
func (f *File) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.lockWriting(ctx); err != nil {
		return 0, err
	}
	defer f.unlock()
	return f.write(ctx, p, off, other)
}

// largest is the size over which a file cannot be published, as far as that is
// known beforehand: with parts of one size an upload takes so many and no more.
func (a *Area) largest() int64 {
	if _, ok := a.multipart(); ok && a.opts.PartSize > 0 {
		return a.opts.PartSize * objectstore.MaxParts
	}
	return math.MaxInt64
}

// Append writes p at the end; appenders never overwrite one another. Otherwise
// it is as WriteAt.
func (f *File) Append(ctx context.Context, p []byte) (int, error) {
	if err := f.lockWriting(ctx); err != nil {
		return 0, err
	}
	defer f.unlock()
	return f.write(ctx, p, f.size, appends)
}

func (f *File) write(ctx context.Context, p []byte, off int64, how change) (int, error) {
	if err := f.writable(); err != nil || len(p) == 0 {
		return 0, err
	}
	if err := f.mixing(how); err != nil {
		return 0, f.fail(ctx, "write", err)
	}
	if off > f.area.largest()-int64(len(p)) {
		return 0, f.fail(ctx, "write", objectstore.ErrTooLarge)
	}
	if how == appends {
		n, err := f.appendSpool(ctx, p)
		return f.wrote(ctx, n, err, f.size+int64(n), how)
	}
	n, err := f.writeSpool(ctx, p, off)
	return f.wrote(ctx, n, err, max(f.size, off+int64(n)), how)
}

// wrote ends a write of n bytes, which makes the file size bytes long.
func (f *File) wrote(ctx context.Context, n int, err error, size int64, how change) (int, error) {
	if err != nil {
		return n, f.fail(ctx, "write", err)
	}
	f.changed(size, how)
	return n, nil
}

// writable tells why the file takes no change.
func (f *File) writable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.poison != nil:
		return f.poison
	case f.dropped:
		return fmt.Errorf("write %s: %w", f.id, ErrDropped)
	case f.lost || f.damaged != nil:
		return fmt.Errorf("write %s: %w", f.id, ErrDamaged)
	}
	return nil
}

// changed notes that the bytes are others now, and size their number. A time
// that was set before is gone, as on any file.
func (f *File) changed(size int64, how change) {
	now := f.area.opts.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size = size
	f.changes++
	f.clean = false
	f.rec.Changed = now
	f.rec.MTime, f.rec.MTimeSet = now, false
	if how == appends && !f.mixed && !f.rec.Append {
		f.rec.Append, f.stale = true, true
	}
	f.unsynced = true
}

// mixing notes, before it happens, that something else than appends does. On
// disk too: else a recovery would take what was written elsewhere for appended.
func (f *File) mixing(how change) error {
	if how != other || f.mixed {
		return nil
	}
	f.mu.Lock()
	f.mixed = true
	was := f.rec.Append
	f.rec.Append = false
	f.mu.Unlock()
	if !was {
		return nil
	}
	return f.saveRecord(f.promised)
}

// fail poisons the file with err, unless it is the caller who gave up.
func (f *File) fail(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%s %s: %w", op, f.id, err)
	}
	err = ioError(op, f.id, err)
	f.mu.Lock()
	if f.poison == nil {
		f.poison = err
	}
	f.rec.State, f.rec.Error = Failed, err.Error()
	f.abandonLocked() // nothing is published of it any more
	f.mu.Unlock()
	_ = f.saveRecord(false) // the disk may be what failed; the poison counts
	f.queueAbort()
	return err
}

// writeSpool puts p into the spool. For a new file it is one pwrite, and a checksum
// or, where the store takes the spool itself, now and then early write-back.
func (f *File) writeSpool(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.needSpool(); err != nil {
		return 0, err
	}
	l, end := f.cur, off+int64(len(p))
	overlay := l.have.missing.Load() != 0
	if overlay {
		if err := f.fetchEdges(ctx, off, end); err != nil {
			return 0, err
		}
	}
	if err := f.touch(off, end); err != nil {
		return 0, err
	}
	if err := f.area.step("write", dataName); err != nil {
		return 0, err
	}
	n, err := l.spool.file.WriteAt(p, off)
	if err != nil {
		return n, err
	}
	if overlay {
		if err := f.mark(off/blockSize, blocksOf(end)); err != nil {
			return 0, err
		}
	}
	if !f.area.adopts {
		f.sum.wrote(p, off)
		f.grew(off, end)
		return n, nil
	}
	if from, n, due := f.early.wrote(off, end); due {
		// An error of the disk comes again from fsync, which counts.
		_ = unix.SyncFileRange(int(l.spool.file.Fd()), from, n, unix.SYNC_FILE_RANGE_WRITE)
	}
	return n, nil
}

func (f *File) needSpool() error {
	if f.cur.spool != nil {
		return nil
	}
	return f.startSpool()
}

// Truncate cuts or extends the file; to 0 it never fetches the older object.
// Errors are those of WriteAt, except that objectstore.ErrTooLarge leaves the
// file as it was and poisons nothing.
func (f *File) Truncate(ctx context.Context, size int64) error {
	if err := f.lockWriting(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.writable(); err != nil {
		return err
	}
	how := other
	if size == f.size {
		how = neutral
	}
	was := f.extent()
	err := f.mixing(how)
	if err == nil {
		err = f.truncate(ctx, size)
	}
	if isTooLarge(err) {
		return f.refuse("truncate", err, was)
	}
	if err != nil {
		return f.fail(ctx, "truncate", err)
	}
	f.changed(size, how)
	return nil
}

// extent is what a refused change of the size leaves as it was.
type extent struct{ untouched, mixed, appended bool }

func (f *File) extent() extent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return extent{untouched: f.cur.spool == nil, mixed: f.mixed, appended: f.rec.Append}
}

// refuse takes back what a change of the size did before the file system said
// that it is too large: the file is as before, on disk too if it was not there.
func (f *File) refuse(op string, err error, was extent) error {
	f.mu.Lock()
	f.stale = f.stale || f.rec.Append != was.appended
	f.mixed, f.rec.Append = was.mixed, was.appended
	f.mu.Unlock()
	if was.untouched && f.cur.spool != nil {
		f.setLayer(newLayer(nil, f.cur.base.retain(), f.cur.baseSize))
		_ = f.removeFromDisk() // else Open finds a write that changes nothing
	}
	return ioError(op, f.id, err)
}

func (f *File) truncate(ctx context.Context, size int64) error {
	if size > f.area.largest() {
		return objectstore.ErrTooLarge
	}
	if err := f.needSpool(); err != nil {
		return err
	}
	l, block := f.cur, size/blockSize
	cut := size < f.size && !l.whole()
	if cut && size > block*blockSize && !l.have.has(block) {
		if err := f.fetch(ctx, block*blockSize, min(size, l.baseSize)); err != nil {
			return err
		}
	}
	if err := f.touch(min(size, f.size), max(size, f.size)); err != nil {
		return err
	}
	if err := f.area.step("truncate", dataName); err != nil {
		return err
	}
	if err := l.spool.file.Truncate(size); err != nil {
		return err
	}
	f.cutTo(size)
	if cut { // what is grown again later is zeros of the spool
		return f.mark(block, l.have.blocks)
	}
	return nil
}

// Allocate reserves [off, off+n) on the disk, and without keepSize extends the
// file to off+n. Where the file system cannot, it only extends. Errors are
// those of Truncate.
func (f *File) Allocate(ctx context.Context, off, n int64, keepSize bool) error {
	if err := f.lockWriting(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.writable(); err != nil {
		return err
	}
	if off > f.area.largest()-n {
		return ioError("allocate", f.id, objectstore.ErrTooLarge)
	}
	was, size, how := f.extent(), f.size, neutral
	if !keepSize && off+n > size {
		size, how = off+n, other
	}
	err := f.mixing(how)
	if err == nil {
		err = f.allocate(off, n, size, keepSize)
	}
	if isTooLarge(err) {
		return f.refuse("allocate", err, was)
	}
	if err != nil {
		return f.fail(ctx, "allocate", err)
	}
	f.changed(size, how)
	return nil
}

func (f *File) allocate(off, n, size int64, keepSize bool) error {
	if err := f.needSpool(); err != nil {
		return err
	}
	if err := f.touch(off, off+n); err != nil {
		return err
	}
	f.sum.broken = f.sum.broken || size > f.size
	file, mode := f.cur.spool.file, uint32(0)
	if keepSize {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	err := retryEINTR(func() error { return unix.Fallocate(int(file.Fd()), mode, off, n) })
	if isUnsupported(err) {
		err = nil
		if size > f.size {
			err = file.Truncate(size)
		}
	}
	return err
}

// Sync makes the bytes and the record durable, and the write independent of
// the object that it began as: what it acknowledged survives a power loss. Of an
// append whose older object was replaced and cannot be read any more, that is
// what was appended: it goes behind the new version.
func (f *File) Sync(ctx context.Context) error {
	if err := f.lockWriting(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.writable(); err != nil {
		return err
	}
	if f.cur.spool == nil {
		return nil // untouched, or published
	}
	if err := f.seal(ctx); err != nil {
		if err = f.sealAppended(ctx, err); err != nil {
			return err
		}
	}
	whole := f.cur.whole()
	f.mu.Lock()
	current := f.rec.Whole == whole && f.rec.Sum == "" && !f.stale
	f.rec.Whole, f.rec.Sum = whole, ""
	f.mu.Unlock()
	if !current || !f.isDurable() {
		if err := f.saveRecord(true); err != nil {
			return err
		}
	}
	f.promised = true
	return nil
}

// seal makes the spool complete and durable. The record is left alone.
func (f *File) seal(ctx context.Context) error {
	if err := f.fillSpool(ctx); err != nil {
		return err
	}
	return f.syncSpool(ctx)
}

// sealAppended is seal for a file that only appended, where seal failed with
// cause as the older object is gone.
func (f *File) sealAppended(ctx context.Context, cause error) error {
	if !isGone(cause) || !f.Record().Append || f.blocks == nil {
		return cause
	}
	return f.syncBytes(ctx)
}

func (f *File) syncSpool(ctx context.Context) error {
	if !f.unsynced {
		return nil
	}
	err := f.area.step("sync", dataName)
	if err == nil {
		err = f.cur.spool.file.Sync()
	}
	if err != nil {
		// The kernel may have dropped the dirty pages: a second fsync that
		// succeeds would prove nothing.
		return f.fail(ctx, "sync", err)
	}
	f.unsynced = false
	return nil
}
