package staging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Frozen is a file that nobody may change until Release: what a publish works
// on. It is for one goroutine.
type Frozen struct {
	Path   string // of the spool; a complete file after Seal
	Size   int64
	Record Record
	Clean  bool // there is nothing to publish

	file     *File
	sent     bool // Upload has brought all bytes into the store
	saves    int  // File.saves at MoveTo
	stale    bool // File.stale before MoveTo
	released bool
}

// Freeze makes writers wait. It fails with the poison of a poisoned file, with
// ErrDropped, and with ErrDamaged where the record or the bytes are not there.
func (f *File) Freeze(ctx context.Context) (*Frozen, error) {
	if err := f.lockWriting(ctx); err != nil {
		return nil, err
	}
	if err := f.writable(); err != nil {
		f.unlock()
		return nil, err
	}
	z := &Frozen{file: f, Clean: !f.Dirty()}
	if !z.Clean {
		if err := f.needSpool(); err != nil {
			f.unlock()
			return nil, err
		}
	}
	z.refresh()
	return z, nil
}

func (z *Frozen) refresh() {
	z.Path, z.Record = z.file.dataPath(), z.file.Record()
	z.Size = z.Record.Size
}

// Fill makes the file at Path complete, from the older object.
func (z *Frozen) Fill(ctx context.Context) error { return z.file.fillSpool(ctx) }

// Seal fills the holes from the older object and makes the bytes durable.
func (z *Frozen) Seal(ctx context.Context) error { return z.file.seal(ctx) }

// ReaderAt reads the complete bytes, after Seal.
func (z *Frozen) ReaderAt() io.ReaderAt { return z.file.cur.spool.file }

// SetState notes how far the publish has come; durable before it returns if so
// asked. The bytes of one that failed are made durable too, then, as far as the disk
// will: they are all that is left, for its upload is given up. It may wait for days,
// and the store is to have nothing of it.
func (z *Frozen) SetState(s State, reason string, durable bool) error {
	if s == Failed && durable {
		z.file.keepBytes()
	}
	if s == Failed {
		z.file.abandon()
		z.sent = false
	}
	if durable || s == Publishing {
		z.file.mu.Lock()
		z.file.rec.Whole = z.file.cur.whole()
		z.file.mu.Unlock()
	}
	err := z.file.setState(s, reason, durable)
	z.Record = z.file.Record()
	return err
}

// SetUnsettled notes, durably, that the publish failed for its caller, though
// nobody knows whether it took effect: [Failed], and Record.Unsettled.
func (z *Frozen) SetUnsettled(reason string) error {
	z.file.mu.Lock()
	z.file.rec.Unsettled = true
	z.file.mu.Unlock()
	return z.SetState(Failed, reason, true)
}

// Published notes that the bytes are obj now. The file is clean and begins its
// next version as obj, on the condition that obj is still there; spool and
// record leave the disk, and the descriptor of the spool goes on as the pinned
// obj, if it has all bytes. With adopted, the store took the spool's file itself.
func (z *Frozen) Published(obj objectstore.Object, adopted bool) {
	z.published(obj, adopted, false)
}

// PublishedOfMany is Published of one of very many files: what leaves the disk is out of
// the way when it returns, and removed later.
func (z *Frozen) PublishedOfMany(obj objectstore.Object, adopted bool) {
	z.published(obj, adopted, true)
}

func (z *Frozen) published(obj objectstore.Object, adopted, later bool) {
	f := z.file
	f.endUpload(z.sent)
	z.sent = false
	f.setLayer(newLayer(nil, f.pinned(obj), f.size))
	if err := f.removePublished(adopted, later); err != nil {
		// What is left is dropped at the next mount: its bytes are gone, or are
		// found in the store under its write id.
		f.area.opts.Log.Warn("published, but the spool stays", slog.String("id", f.id), slog.Any("error", err))
	}
	f.early, f.unsynced, f.promised = early{}, false, false
	f.prefix, f.sum, f.plain = 0, runningSum{}, false
	match := obj.Match
	if match == "" {
		match = obj.ETag
	}
	f.mu.Lock()
	f.rec.Base = objectCopy(&obj)
	f.rec.Cond = objectstore.Cond{IfMatch: match}
	f.rec.State, f.rec.Error, f.rec.Unsettled, f.rec.Hold = Staged, "", false, Unheld
	f.rec.Append, f.rec.Whole, f.rec.Data = f.appender, false, ""
	f.rec.Copied, f.rec.CopiedSize, f.rec.Sum = nil, 0, ""
	f.clean, f.mixed, f.stale, f.recovery = true, false, false, false
	f.mu.Unlock()
	f.queueAbort()
	z.Clean = true
	z.Record = f.Record()
}

// pinned is what to read the version from that was just published.
func (f *File) pinned(obj objectstore.Object) *source {
	if f.cur.whole() {
		return f.cur.spool.retain()
	}
	return newSource(nil, &latePin{store: f.area.opts.Store, obj: obj})
}

// endUpload takes the upload out of the record: completed, or not needed.
func (f *File) endUpload(completed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if completed {
		f.sending, f.rec.Upload, f.rec.Parts = nil, nil, nil
		return
	}
	f.abandonLocked()
}

// Rebase makes the write, which only appended, begin as newBase: the bytes past
// the old base's end go behind newBase's end, and the condition becomes that
// newBase is still there. The old base is not read, and may be gone: what was
// appended is all in the spool. The switch is one rename of the record, which names
// the new spool: a crash leaves the old write or the new one.
func (z *Frozen) Rebase(ctx context.Context, newBase objectstore.Object) error {
	f := z.file
	if !z.Record.Append {
		return fmt.Errorf("rebase %s: it did not only append: %w", f.id, objectstore.ErrChanged)
	}
	f.abandon() // its parts have the bytes elsewhere
	z.sent = false
	f.disk.Lock()
	f.tidy = false
	f.disk.Unlock()
	name := dataName + "." + uuid.NewString()
	data, err := f.rebasedSpool(ctx, filepath.Join(f.dir(), name), newBase)
	if err != nil {
		return fmt.Errorf("rebase %s: %w", f.id, err)
	}
	if err := f.switchSpool(data, name, newBase); err != nil {
		return fmt.Errorf("rebase %s: %w", f.id, err)
	}
	z.refresh()
	return nil
}

// rebasedSpool makes the file of newBase's bytes and the appended ones.
func (f *File) rebasedSpool(ctx context.Context, path string, newBase objectstore.Object) (*os.File, error) {
	older, err := pin(ctx, f.area.opts.Store, newBase)
	if err != nil {
		return nil, err
	}
	base := newSource(nil, older)
	defer base.release()
	data, err := f.area.create(path)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 8*blockSize)
	old := f.appendedFrom()
	if err = data.Truncate(newBase.Size + f.size - old); err == nil {
		theirs := newRun(base, newBase.Size)
		defer theirs.close()
		err = copyRange(ctx, copyArgs{dst: data, src: theirs, n: newBase.Size, buf: buf})
	}
	if err == nil {
		err = copyRange(ctx, copyArgs{dst: data, at: newBase.Size, src: newRun(f.cur.spool, f.size), from: old, n: f.size - old, buf: buf})
	}
	if err == nil && f.promised {
		err = data.Sync()
	}
	if err != nil {
		_ = data.Close()
		_ = f.area.unlink(path)
		return nil, ioError("copy", path, err)
	}
	return data, nil
}

// appendedFrom is where the bytes begin that are not the older object's.
func (f *File) appendedFrom() int64 {
	if base := f.Record().Base; base != nil {
		return base.Size
	}
	return 0
}

// switchSpool makes data the spool and newBase the base, on disk by one rename.
func (f *File) switchSpool(data *os.File, name string, newBase objectstore.Object) error {
	size, oldPath := f.size, f.dataPath()
	match := newBase.Match
	if match == "" {
		match = newBase.ETag
	}
	grown := newBase.Size + size - f.appendedFrom()
	f.disk.Lock() // what is taken back below must reach the disk by nobody else
	f.mu.Lock()
	before, beforeSize := f.rec, f.size
	f.rec.Base, f.rec.Cond = objectCopy(&newBase), objectstore.Cond{IfMatch: match}
	f.rec.Data, f.rec.Whole, f.rec.Sum = name, true, ""
	f.rec.Copied, f.rec.CopiedSize = nil, 0
	f.size = grown
	f.mu.Unlock()
	err := f.saveLocked(f.promised)
	if err != nil {
		f.mu.Lock()
		f.rec.Base, f.rec.Cond, f.rec.Data = before.Base, before.Cond, before.Data
		f.rec.Whole, f.rec.Sum = before.Whole, before.Sum
		f.rec.Copied, f.rec.CopiedSize, f.size = before.Copied, before.CopiedSize, beforeSize
		f.mu.Unlock()
	}
	f.disk.Unlock()
	if err != nil {
		_ = data.Close()
		_ = f.area.unlink(data.Name())
		return err
	}
	f.prefix, f.sum = 0, runningSum{broken: true}
	f.setLayer(newLayer(newSource(data, nil), nil, 0))
	f.closeBlocks()
	f.unsynced = !f.promised
	_ = f.area.unlink(oldPath) // the record does not name it: Open removes it
	return nil
}

// Release lets writers go on; call it always, once.
func (z *Frozen) Release() {
	if !z.released {
		z.released = true
		z.file.unlock()
	}
}
