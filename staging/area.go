package staging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Sentinels.
var (
	// ErrInUse: another process owns the staging directory; the message has its pid.
	ErrInUse = errors.New("staging directory is in use")
	// ErrUnsafe: others could read or change what is staged in the directory.
	ErrUnsafe = errors.New("staging directory is not private")
	// ErrDropped: the write is gone (unlinked, aborted, or its area was closed).
	ErrDropped = errors.New("write was dropped")
	// ErrBatched: the write is published together with others, or none of them is.
	ErrBatched = errors.New("the file is one of several that are published together")
	// ErrDamaged: the write's record cannot be understood; its bytes are kept.
	ErrDamaged = errors.New("record is damaged")
)

// Options of an Area. The zero value keeps everything for ever, knows no store
// (so that no write may begin as an older object) and logs nothing.
type Options struct {
	Log       *slog.Logger
	Store     objectstore.Store // older objects are read from it
	Keep      time.Duration     // see Expire; 0: no limit
	Max       int64             // bytes, see Expire; 0: no limit
	Spare     func(Record) bool // what Expire never drops, nor counts; nil: nothing
	Now       func() time.Time  // nil: time.Now
	AllowFull bool              // open a directory without room too: to save or drop what fills it

	// Of multipart uploads, where Store is an objectstore.Multipart. Meta is what an
	// upload's object is to bear, as far as the record tells it by then; nil: nothing.
	Meta     func(Record) map[string]string
	PartSize int64          // bytes of each part; 0: they grow (see partAt)
	Parallel int            // parts under way at a time, of all files; 0: 16
	Memory   *budget.Budget // what parts under way take; nil: it is not counted

	// Step is called before each change of the disk, whose error it may return
	// instead. It is where crash tests end the process; nil everywhere else.
	Step func(op, path string) error
}

// Area is a staging directory that this process owns. Its methods may be called
// concurrently.
type Area struct {
	dir    string
	opts   Options
	lock   *os.File
	pool   sync.Pool // *[]byte of blockSize, for what is fetched of older objects
	work   *work
	aborts inFlight // uploads that the background aborts

	adopts  bool        // the store takes the spool's file itself
	overMax atomic.Bool // what Options.Spare names was, when Expire looked last

	mu       sync.Mutex
	files    map[string]*File
	renames  map[string]*Rename
	batches  map[string]*Batch
	batched  map[string]*Batch // by the ids of their members
	aborting map[string]*File  // writes without bytes, whose uploads are yet to be aborted
	spares   []string          // empty directories of writes that ended
	spared   int               // spares ever, for their names
	gone     []string          // directories that are to be removed in the background
	sweeping bool              // and are
}

// NewWrite describes a write to be. Path is for people and Prefix is what
// Target has to stay below; see [Record]. A file with Base begins as that
// object. Append says that its writer appends: until it writes elsewhere, its
// bytes may go behind another writer's (see [Record]).
type NewWrite struct {
	Target, Prefix objectstore.Location
	Path, Format   string
	Cond           objectstore.Cond
	Base           *objectstore.Object
	Attributes     Attributes
	Append         bool
	Hold           Hold
	// Final: Target is where it will be published, by all that is known: its parts
	// may go up while it is written.
	Final bool
}

// Create begins a write. One without Base is on disk, though not yet synced,
// when Create returns; one with Base is at its first change, so that an open
// for writing that changes nothing leaves nothing. Base is pinned where the store
// has files: objectstore.ErrChanged or ErrNotExist if the version is no longer
// there. Elsewhere the first read of it tells.
func (a *Area) Create(ctx context.Context, w NewWrite) (*File, error) {
	if err := w.validate(); err != nil {
		return nil, err
	}
	now := a.opts.Now()
	f := a.newFile(Record{
		Version: recordVersion, ID: uuid.NewString(), State: Staged,
		Target: w.Target, Prefix: w.Prefix, Path: w.Path, Format: w.Format,
		Cond: w.Cond, Base: objectCopy(w.Base), Hold: w.Hold, Append: w.Append,
		Attributes: w.Attributes, Created: now, Changed: now,
	})
	f.appender, f.final = w.Append, w.Final
	if w.Base != nil {
		older, err := pin(ctx, a.opts.Store, *w.Base)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", w.Path, err)
		}
		f.cur = newLayer(nil, newSource(nil, older), w.Base.Size)
		f.size = w.Base.Size
	} else if err := f.startSpool(); err != nil {
		return nil, fmt.Errorf("stage %s: %w", w.Path, err)
	}
	if !a.remember(f) {
		_ = f.Drop() // nobody wrote to it yet
		return nil, fmt.Errorf("stage %s: %w", w.Path, ErrDropped)
	}
	return f, nil
}

// remember is false once the area is closed.
func (a *Area) remember(f *File) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files == nil {
		return false
	}
	a.files[f.id] = f
	return true
}

// validate holds rule 27: a target stays inside its table.
func (w *NewWrite) validate() error {
	if w.Target.Bucket == "" || w.Target.Key == "" || strings.HasSuffix(w.Target.Key, "/") {
		return fmt.Errorf("stage %s: target %q: %w", w.Path, w.Target.Key, objectstore.ErrName)
	}
	inside := w.Prefix == objectstore.Location{} ||
		w.Prefix.Bucket == w.Target.Bucket && strings.HasPrefix(w.Target.Key, w.Prefix.Key)
	if !inside || slices.Contains(strings.Split(w.Target.Key, "/"), "..") {
		return fmt.Errorf("stage %s: target %q leaves %q: %w", w.Path, w.Target.Key, w.Prefix.Key, objectstore.ErrName)
	}
	return nil
}

// Files returns every living write, those kept from earlier mounts too, oldest
// first.
func (a *Area) Files() []*File {
	a.mu.Lock()
	files := make([]*File, 0, len(a.files))
	for _, f := range a.files {
		files = append(files, f)
	}
	a.mu.Unlock()
	slices.SortFunc(files, CompareAge)
	return files
}

// CompareAge orders files as [Area.Files] does. Who holds several at a time begins with
// the oldest.
func CompareAge(x, y *File) int {
	return cmp.Or(x.created.Compare(y.created), strings.Compare(x.id, y.id))
}

// Find returns the write of that id.
func (a *Area) Find(id string) (*File, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, ok := a.files[id]
	return f, ok
}

// Usage counts the writes that are on disk, and the bytes they take up there, apart
// from the Residents.
func (a *Area) Usage() (writes int, bytes int64) { return a.count(false) }

// Residents counts the files that live in the mount alone, as Usage does the others.
func (a *Area) Residents() (files int, bytes int64) { return a.count(true) }

func (a *Area) count(resident bool) (files int, bytes int64) {
	for _, f := range a.Files() {
		if n, ok := f.allocated(); ok && f.Record().Resident() == resident {
			files++
			bytes += n
		}
	}
	return files, bytes
}

// Expire drops kept writes (staged, torn or failed ones that no handle uses)
// which were last changed more than Keep ago, and then the oldest ones until
// those left take up Max bytes at most. It logs and returns what it dropped. What
// Options.Spare names stays; it is logged if that alone is over Max.
func (a *Area) Expire(ctx context.Context) []Record {
	type kept struct {
		file  *File
		bytes int64
	}
	var all []kept
	var total, spared int64
	for _, f := range a.Files() {
		n, ok := f.allocated()
		switch {
		case !ok:
		case a.opts.Spare != nil && a.opts.Spare(f.Record()):
			spared += n
		case f.idle():
			all = append(all, kept{f, n})
			total += n
		}
	}
	a.warnSpared(ctx, spared)
	var dropped []Record
	for _, k := range all {
		rec := k.file.Record()
		old := a.opts.Keep > 0 && a.opts.Now().Sub(rec.Changed) > a.opts.Keep
		over := a.opts.Max > 0 && total > a.opts.Max
		if ctx.Err() != nil || !old && !over || !k.file.dropIdle() {
			continue
		}
		total -= k.bytes
		dropped = append(dropped, rec)
		a.opts.Log.LogAttrs(ctx, slog.LevelWarn, "dropped a staged write: past --staged-keep or --staged-max",
			slog.String("id", rec.ID), slog.String("path", rec.Path), slog.String("state", string(rec.State)),
			slog.Int64("bytes", k.bytes), slog.Time("changed", rec.Changed), slog.Bool("too_old", old))
	}
	return dropped
}

// warnSpared tells once for as long as it is so that what no limit drops is over Max.
func (a *Area) warnSpared(ctx context.Context, bytes int64) {
	over := a.opts.Max > 0 && bytes > a.opts.Max
	if was := a.overMax.Swap(over); was || !over {
		return
	}
	a.opts.Log.LogAttrs(ctx, slog.LevelWarn, "open transactions alone hold more than --staged-max: they stay until they are committed or dropped",
		slog.Int64("bytes", bytes), slog.Int64("max", a.opts.Max))
}

// Close gives the directory up. What is staged stays there for the next mount;
// the files of this Area answer ErrDropped from now on. Parts and aborts under way in
// the background are ended and waited for, and left to the next mount.
func (a *Area) Close() error {
	a.mu.Lock()
	files := a.files
	a.files, a.renames, a.aborting = nil, nil, nil
	a.batches, a.batched = nil, nil
	lock, spares := a.lock, a.spares
	a.lock, a.spares = nil, nil
	a.mu.Unlock()
	a.work.close()
	for _, f := range files {
		f.detach()
	}
	for _, dir := range spares {
		removeSpare(dir) // Open does else
	}
	if lock == nil {
		return nil
	}
	if err := lock.Close(); err != nil {
		return fmt.Errorf("close staging directory %s: %w", a.dir, err)
	}
	return nil
}

// step asks Options.Step before a change of the disk.
func (a *Area) step(op, path string) error {
	if a.opts.Step == nil {
		return nil
	}
	return a.opts.Step(op, path)
}

func (a *Area) path(id string) string { return filepath.Join(a.dir, id) }
