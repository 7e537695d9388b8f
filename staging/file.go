package staging

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// File is one write: bytes that will become one object, version after version.
// Its methods may be called concurrently. Reads do not wait for writes; writes,
// and whatever else changes the bytes, wait for one another and for a Frozen.
//
// Lock order: writing, then disk, then mu, then the area's. Of these writing alone is
// held over requests (of older objects, and of a publish by who has it Frozen); the
// background never takes it. disk is held while the record on the disk changes; mu
// over no I/O.
type File struct {
	area    *Area
	id      string
	created time.Time
	handles atomic.Int32

	// writing is held by who changes bytes, layer or disk, or keeps others from
	// it (Frozen): a channel, because a writer must be able to give up waiting.
	writing chan struct{}
	// For the holder of writing alone:
	blocks   *os.File // what the spool has of base; nil: nothing to note
	promised bool     // Sync acknowledged bytes of this version
	unsynced bool     // the spool has bytes that were not fsynced
	appender bool     // NewWrite.Append
	final    bool     // NewWrite.Final
	plain    bool     // the store is to copy nothing of what lies under the spool
	prefix   int64    // bytes written from the start on without a gap
	sum      runningSum
	early    early
	ones     []byte // what is written to blocks

	disk    sync.Mutex
	onDisk  bool // the record exists
	tidy    bool // the directory has no files but data, blocks and those of the record
	durable bool // the record's directory entry is
	bare    bool // no bytes are there: the record is in state Aborting
	saves   int  // of the record, ever

	mu       sync.Mutex
	rec      Record
	stale    bool // rec has what the disk has not
	cur      *layer
	size     int64
	changes  uint64 // of the bytes, ever
	mixed    bool   // since Base, something else than appends happened
	clean    bool   // published, and not changed since
	poison   error
	dropped  bool
	lost     bool          // recovered, and its spool is gone
	damaged  error         // recovered, and its record cannot be understood
	recovery bool          // found by Open
	moving   chan struct{} // its older object is being renamed, until this is closed; nil: it is not
	sending  *sending
	ending   []*sending           // given up, with requests under way
	freeing  []objectstore.Upload // of Record.Aborts: being aborted now
}

func (a *Area) newFile(rec Record) *File {
	return &File{area: a, id: rec.ID, created: rec.Created, rec: rec, writing: make(chan struct{}, 1)}
}

// ID returns the write id.
func (f *File) ID() string { return f.id }

// Record returns a copy of the record as it is now, Size included.
func (f *File) Record() Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recordLocked()
}

func (f *File) recordLocked() Record {
	rec := f.rec
	rec.Base, rec.Copied = objectCopy(f.rec.Base), objectCopy(f.rec.Copied)
	if u := f.rec.Upload; u != nil {
		c := *u
		rec.Upload = &c
	}
	rec.Size = f.size // Parts and Aborts are replaced, never changed
	return rec
}

// Size returns the file's size in bytes.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Dirty tells whether there is something to publish: a new file that was never
// published, or bytes changed since.
func (f *File) Dirty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirtyLocked()
}

func (f *File) dirtyLocked() bool {
	return !f.clean && (f.changes > 0 || f.rec.Base == nil || f.recovery)
}

// Touched tells whether bytes were ever written, cut or allocated.
func (f *File) Touched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes > 0
}

// Changes counts the changes of the bytes, ever: equal counts, equal bytes.
func (f *File) Changes() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// Poisoned returns the first error of WriteAt, Append, Truncate or Allocate that
// was not a caller's giving up. Nothing may be published after one, and every
// later change fails with it.
func (f *File) Poisoned() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.poison
}

// Recovered tells whether the write was found on disk by [Open].
func (f *File) Recovered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recovery
}

// Lost tells whether the write was found on disk without its bytes: its publish
// had taken them away when the process ended.
func (f *File) Lost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Acquire counts a handle that uses the file, so that Expire leaves it alone.
func (f *File) Acquire() { f.handles.Add(1) }

// Release takes back one Acquire.
func (f *File) Release() { f.handles.Add(-1) }

// Handles counts Acquires without their Release.
func (f *File) Handles() int { return int(f.handles.Load()) }

// SetTarget makes the write one of another name: Target, Prefix, Path, Format,
// Cond, Hold and Final of w count. It waits for a publish that is under way. What was
// uploaded for another name is given up.
func (f *File) SetTarget(w NewWrite) error {
	if err := w.validate(); err != nil {
		return err
	}
	f.writing <- struct{}{}
	defer f.unlock()
	if err := f.usable(); err != nil {
		return err
	}
	f.final = w.Final
	f.mu.Lock()
	if f.rec.Target != w.Target {
		f.abandonLocked()
	}
	f.rec.Target, f.rec.Prefix, f.rec.Path = w.Target, w.Prefix, w.Path
	f.rec.Format, f.rec.Cond, f.rec.Hold = w.Format, w.Cond, w.Hold
	f.mu.Unlock()
	err := f.saveRecord(f.isDurable())
	f.queueAbort()
	return err
}

func (f *File) isDurable() bool {
	f.disk.Lock()
	defer f.disk.Unlock()
	return f.durable
}

// SetAttributes notes what the file's attributes shall be. They reach the disk
// with the next change of the record.
func (f *File) SetAttributes(a Attributes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rec.Attributes = a
	f.stale = true
}

// Note brings the record on the disk, where there is one, up to what SetAttributes
// changed; it is not made durable.
func (f *File) Note() error {
	f.mu.Lock()
	stale := f.stale && !f.dropped
	f.mu.Unlock()
	if !stale {
		return nil
	}
	return f.saveRecord(false)
}

// SetState notes how far the write has come, and why, on disk too where the
// write is there; of a torn one the bytes too are made durable, as far as the disk
// will, and its upload is given up. It waits for a publish that is under way.
func (f *File) SetState(s State, reason string) error {
	f.writing <- struct{}{}
	defer f.unlock()
	if err := f.usable(); err != nil {
		return err
	}
	if s == Torn {
		f.keepBytes()
		f.abandon()
	}
	return f.setState(s, reason, s == Torn)
}

// Settled notes that the publish which was not known to have taken effect has none:
// the file is [Staged], and nothing of it is in the store.
func (f *File) Settled() error {
	f.mu.Lock()
	f.rec.Unsettled = false
	f.mu.Unlock()
	return f.SetState(Staged, "")
}

// setState is SetState for the holder of writing.
func (f *File) setState(s State, reason string, durable bool) error {
	f.mu.Lock()
	f.rec.State, f.rec.Error = s, reason
	f.rec.Unsettled = f.rec.Unsettled && s != Publishing
	f.rec.Changed = f.area.opts.Now()
	f.mu.Unlock()
	return f.saveRecord(durable)
}

// saveRecord replaces the record on disk, where there is one.
func (f *File) saveRecord(durable bool) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	return f.saveLocked(durable)
}

// saveLocked is saveRecord for the holder of disk.
func (f *File) saveLocked(durable bool) error {
	f.mu.Lock()
	f.stale = true
	rec := f.recordLocked()
	skip := !f.onDisk || f.damaged != nil || f.dropped && !f.bare
	f.stale = skip && f.stale
	f.mu.Unlock()
	if skip {
		return nil
	}
	if f.bare {
		rec = rec.withoutBytes()
	}
	f.saves++
	err := f.area.replace(rec, durable)
	if err == nil && durable && !f.durable {
		if err = syncDir(f.area.dir); err == nil {
			f.durable = true
		}
	}
	if err != nil {
		f.mu.Lock()
		f.stale = true
		f.mu.Unlock()
	}
	return err
}

func (f *File) dir() string { return f.area.path(f.id) }

func (f *File) dataPath() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec.Data != "" {
		return filepath.Join(f.dir(), f.rec.Data)
	}
	return filepath.Join(f.dir(), dataName)
}

// lockWriting waits for the write lock, or for ctx.
func (f *File) lockWriting(ctx context.Context) error {
	select {
	case f.writing <- struct{}{}:
		return nil
	default:
	}
	select {
	case f.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for write %s: %w", f.id, ctx.Err())
	}
}

func (f *File) unlock() { <-f.writing }

// usable tells why the bytes cannot be used at all.
func (f *File) usable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dropped:
		return fmt.Errorf("write %s: %w", f.id, ErrDropped)
	case f.lost:
		return fmt.Errorf("write %s: its bytes are gone: %w", f.id, ErrDamaged)
	}
	return nil
}

// acquire takes a reference to what the file consists of, and its size.
func (f *File) acquire() (*layer, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cur == nil {
		return nil, 0, fmt.Errorf("read write %s: %w", f.id, ErrDropped)
	}
	f.cur.refs.Add(1)
	return f.cur, f.size, nil
}

// setLayer puts l in the place of the layer of now; the holder of writing calls it.
func (f *File) setLayer(l *layer) {
	f.mu.Lock()
	old := f.cur
	f.cur = l
	f.mu.Unlock()
	old.release()
}
