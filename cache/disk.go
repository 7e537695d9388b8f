package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// Errors of OpenDisk. Both are about the directory that was chosen, and do not
// pass by themselves.
var (
	// ErrDiskInUse: another Disk has the directory; the message says whose.
	ErrDiskInUse = errors.New("cache directory is in use")
	// ErrDiskUnsafe: it is no directory, or others could change what is in it.
	ErrDiskUnsafe = errors.New("cache directory cannot be used")
)

// Defaults of DiskOptions.
const (
	DefaultDiskRetry = time.Minute
	// maxDiskBuffers is the most memory for blocks on their way to the disk, in
	// bytes; and at most one part in diskBudgetShare of the budget.
	maxDiskBuffers  = 64 << 20
	diskBudgetShare = 8
	// warningEvery is how often a disk that fails again and again is told of.
	warningEvery = time.Hour
)

// DiskOptions of a Disk. The zero value writes nothing, as it has no memory.
type DiskOptions struct {
	Budget    *budget.Budget // of blocks on their way to the disk, by Speculation; nil: no memory
	BlockSize int64          // bytes; 0: DefaultBlockSize
	// Store tells stores apart that may have the same bucket, key and ETag.
	Store string
	// Owner is shown to another that wants the directory: where this one is mounted.
	Owner string
	Log   *slog.Logger  // nil: nothing is logged
	Retry time.Duration // until a disk that failed is tried again; 0: DefaultDiskRetry
}

// DiskStats counts since OpenDisk; Bytes and Blocks are of this moment, sizes in
// bytes as they are on the disk.
type DiskStats struct {
	Dir     string `json:"dir"`
	Limit   int64  `json:"limit_bytes"`
	Bytes   int64  `json:"bytes"`
	Blocks  int64  `json:"blocks"`
	Hits    int64  `json:"hits"`          // blocks served, in whole or in part
	Misses  int64  `json:"misses"`        // blocks asked of the store, in whole or in part
	Corrupt int64  `json:"corrupt"`       // blocks found damaged, and removed
	Written int64  `json:"written"`       // blocks
	Dropped int64  `json:"dropped"`       // blocks not written: no memory for them, the disk was behind or failed
	Evicted int64  `json:"evicted"`       // blocks removed for others
	Pending int64  `json:"pending_bytes"` // on their way to the disk
	Failed  string `json:"failed,omitempty"`
}

// Disk keeps blocks of versions in a directory of its own, below a Cache and
// above a store over a network. Guarantees:
//
//   - a block is served only if a checksum over its bytes, its version and its
//     place says that it is this block: a torn, damaged or exchanged file is
//     removed, and its bytes come from the store. So nothing is ever synced;
//   - Limit bounds what is on the disk, also when a directory was filled under a
//     larger one; the least recently used go first, times of use outlive the
//     process to within touchEvery;
//   - a directory has one Disk at a time;
//   - a reader never waits for a write: blocks are copied from bodies that pass,
//     into memory of the budget, and written by one goroutine. Blocks for which
//     there is no memory are not written;
//   - a disk that fails is left alone for a while, with one warning; reads go
//     to the store;
//   - names in the directory are hashes, files are private to the user.
//
// All methods may be called concurrently. Lock order: Disk.mu, then the budget's.
type Disk struct {
	root      string // directory of the block files
	limit     int64
	blockSize int64
	o         DiskOptions
	maxHeld   int64 // bytes of memory at most
	lock      *os.File
	queue     chan *filled
	quit      chan struct{}
	running   sync.WaitGroup
	pool      sync.Pool // *[]byte of headerSize + blockSize

	held                                               atomic.Int64 // bytes of memory
	pending                                            atomic.Int64 // of it: of whole blocks
	unhook                                             func()       // from the budget
	hits, misses, corrupt, written, dropped, evictions atomic.Int64

	mu struct {
		sync.Mutex
		closed  bool
		freed   chan struct{} // closed when memory was given back; nil: nobody waits
		index   diskIndex
		begun   map[blockID]*filled // blocks that are not whole yet
		order   int64
		failing error     // why nothing is written; nil: it is
		blind   bool      // nothing is read either
		until   time.Time // no use before
		warn    time.Time // no warning before
	}
}

// OpenDisk opens a directory, making it if it is not there, for at most size
// bytes. ErrDiskInUse, ErrDiskUnsafe; a disk that fails, is full or read-only is
// no error, but a Disk that serves nothing until it is well. What the directory
// holds is counted beside what is served. The caller closes the Disk after the
// Cache above it.
func OpenDisk(dir string, size int64, o DiskOptions) (*Disk, error) {
	if o.Budget == nil {
		o.Budget = budget.New(0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retry == 0 {
		o.Retry = DefaultDiskRetry
	}
	d := &Disk{
		root: filepath.Join(dir, "blocks"), limit: size, blockSize: orDefault(o.BlockSize, DefaultBlockSize), o: o,
		maxHeld: min(maxDiskBuffers, o.Budget.Max()/diskBudgetShare),
		queue:   make(chan *filled, 1024), // more than maxHeld lets be on their way, but of small files
		quit:    make(chan struct{}),
	}
	d.mu.index.init()
	d.mu.begun = make(map[blockID]*filled)
	if err := d.take(dir); err != nil {
		if errors.Is(err, ErrDiskInUse) || errors.Is(err, ErrDiskUnsafe) {
			return nil, err
		}
		d.fail(err, true)
	}
	d.unhook = o.Budget.OnPressure(func(n int64) { d.giveUp(n) })
	d.running.Go(d.write)
	return d, nil
}

// Close writes what is on its way, and gives the directory up. Bodies of Fetch must be
// closed before. It may be called again.
func (d *Disk) Close() error {
	d.mu.Lock()
	closed := d.mu.closed
	d.mu.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	close(d.quit)
	d.running.Wait()
	d.unhook()
	d.giveUp(d.maxHeld)
	if d.lock != nil {
		return d.lock.Close()
	}
	return nil
}

// Stats returns the counts so far.
func (d *Disk) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := DiskStats{
		Dir: filepath.Dir(d.root), Limit: d.limit, Bytes: d.mu.index.bytes, Blocks: int64(len(d.mu.index.entries)),
		Hits: d.hits.Load(), Misses: d.misses.Load(), Corrupt: d.corrupt.Load(),
		Written: d.written.Load(), Dropped: d.dropped.Load(), Evicted: d.evictions.Load(),
		Pending: d.pending.Load(),
	}
	if d.mu.failing != nil {
		s.Failed = d.mu.failing.Error()
	}
	return s
}

// Fetch returns what opens ranges of v: from the disk as far as their leading
// blocks are there, the rest through fetch. A body that begins on the disk has a
// method Local() bool, which is true: it proves nothing of the store. A version
// without an ETag is not kept.
func (d *Disk) Fetch(v Version, fetch Fetch) Fetch {
	if v.ETag == "" {
		return fetch
	}
	return d.file(v, fetch).open
}

func (d *Disk) file(v Version, fetch Fetch) *diskFile {
	f := &diskFile{disk: d, size: v.Size, fetch: fetch}
	sum := sha256.New()
	for _, part := range []string{"lakefs-mount block", d.o.Store, v.Bucket, v.Key, v.ETag} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(part))) // a hash takes everything
		_, _ = io.WriteString(sum, part)
	}
	_ = binary.Write(sum, binary.BigEndian, []int64{v.Size, d.blockSize})
	sum.Sum(f.id[:0])
	return f
}

// readable tells whether the disk is to be asked at all.
func (d *Disk) readable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.mu.closed && !d.mu.blind
}

// writable tells whether blocks are to be written.
func (d *Disk) writable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.failing == nil
}

// fail leaves the disk alone for a while: nothing is written, and blind, nothing read.
func (d *Disk) fail(err error, blind bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.mu.failing, d.mu.blind, d.mu.until = err, d.mu.blind || blind, now.Add(d.o.Retry)
	if now.Before(d.mu.warn) {
		return
	}
	d.mu.warn = now.Add(warningEvery)
	d.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "the disk cache does not work, and files are read from the store; it is tried again from time to time",
		slog.String("dir", filepath.Dir(d.root)), slog.Any("error", err))
}

// due tells whether a disk that failed is to be tried again.
func (d *Disk) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.failing != nil && !time.Now().Before(d.mu.until)
}

// recovered ends what fail began.
func (d *Disk) recovered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.failing != nil {
		d.mu.failing, d.mu.blind = nil, false
		d.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "the disk cache works again", slog.String("dir", filepath.Dir(d.root)))
	}
}
