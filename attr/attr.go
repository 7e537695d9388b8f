// Package attr keeps what a mount remembers of objects beyond what the store
// does: mode, owner and time set through the mount, and that the mount made them.
//
// It is a cache that may be lost, never a source of truth. Guarantees:
//
//   - one entry a key, that of the newest Set; Get with another ETag misses, so
//     that attributes never pass to a version that someone else wrote;
//   - Get sees a Set, Move or Delete at once; the file follows within moments,
//     in batches, and at Flush and Close. After kill -9 or a power loss the file
//     is whole, and misses at most what was not yet flushed;
//   - at most MaxEntries are kept; the oldest go first;
//   - a file that is damaged is moved aside and begun anew, and one that cannot
//     be used (locked by another process, no permission) is replaced by memory:
//     either costs one warning, never the mount.
//
// Keys are "bucket\x00object key"; a directory's ends in "/", and its ETag is "".
package attr

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrClosed means that the store was closed.
var ErrClosed = errors.New("attributes closed")

const (
	defaultMaxEntries = 1_000_000
	// memoryEntries bounds a store that has no file.
	memoryEntries = 65_536
	// maxPending bounds what waits for a disk that does not answer; what is set
	// beyond it is lost.
	maxPending = 65_536
	// maxKey is bbolt's limit; longer keys are not remembered.
	maxKey = 32_768

	flushEvery = 200 * time.Millisecond
	flushCount = 1000
	// maxRetry is the longest pause after a batch that could not be written.
	maxRetry = 30 * time.Second
)

// Attributes of an object; nil fields were never set. Values are copied in and
// out: what the pointers point to is the caller's.
type Attributes struct {
	Mode     *uint32 // permission bits
	UID, GID *uint32
	MTime    *time.Time // Get returns it in UTC
	Made     bool       // this mount (or an earlier one of the same state directory) made the version
}

// Options of a store; the zero value is ready.
type Options struct {
	MaxEntries int // 0: 1,000,000
	Log        *slog.Logger
}

// Store is safe for concurrent use.
type Store struct {
	log  *slog.Logger
	path string
	opts Options

	wake chan struct{} // something is pending; holds one
	full chan struct{} // a batch is full; holds one
	asks chan chan error
	quit chan struct{}
	done chan struct{}

	closing sync.Once
	closed  error // of the last flush; read after done

	replaced bool // a damaged file was replaced already; the writer's own

	mu struct {
		sync.Mutex
		backing  backing
		pending  map[string]change // not yet in a batch
		flushing map[string]change // in the batch being written
		stopped  bool
		dropping bool // warned that changes are lost
	}
}

// change is a new value of a key; a nil value deletes it.
type change struct{ value []byte }

// backing is where entries are kept. apply may run beside get, each alone.
type backing interface {
	get(key string) []byte // nil: none
	// damaged: the backing answers nothing any more and is to be replaced.
	damaged() bool
	apply(batch map[string]change) error
	// keys lists those that begin with prefix.
	keys(prefix string) ([]string, error)
	close() error
}

// Open opens or makes the file at path. It fails on nothing but options that
// make no sense: see the package's guarantees. The caller closes the store.
func Open(path string, o Options) (*Store, error) {
	if o.MaxEntries < 0 {
		return nil, errors.New("attributes: MaxEntries is negative")
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = defaultMaxEntries
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		log: o.Log, path: path, opts: o,
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
		asks: make(chan chan error), quit: make(chan struct{}), done: make(chan struct{}),
	}
	s.mu.pending = make(map[string]change)
	s.mu.backing = openBacking(path, o)
	go s.run()
	return s, nil
}

// Get returns the attributes of key's version etag.
func (s *Store) Get(key, etag string) (Attributes, bool) {
	e, ok := s.entry(key)
	if !ok || e.etag != etag {
		return Attributes{}, false
	}
	return e.Attributes, true
}

// entry returns what is kept of key, whatever its ETag.
func (s *Store) entry(key string) (entry, bool) {
	s.mu.Lock()
	c, ok := s.mu.pending[key]
	if !ok {
		c, ok = s.mu.flushing[key]
	}
	b := s.mu.backing
	s.mu.Unlock()
	if !ok && b != nil {
		c.value = b.get(key)
		if b.damaged() {
			signal(s.wake)
		}
	}
	if c.value == nil {
		return entry{}, false
	}
	e, err := decode(c.value)
	return e, err == nil
}

// Set replaces what is kept of key by the attributes of its version etag.
func (s *Store) Set(key, etag string, a Attributes) {
	s.change(key, change{encode(entry{etag: etag, Attributes: a})})
}

// Delete forgets key.
func (s *Store) Delete(key string) { s.change(key, change{}) }

// Move gives newKey's version newETag the attributes of oldKey's version
// oldETag, and forgets oldKey; where there were none, newKey is forgotten too.
// The keys may be equal. Moves of one key are the caller's to order.
func (s *Store) Move(oldKey, oldETag, newKey, newETag string) {
	a, ok := s.Get(oldKey, oldETag)
	if oldKey != newKey {
		s.Delete(oldKey)
	}
	if ok {
		s.Set(newKey, newETag, a)
	} else {
		s.Delete(newKey)
	}
}

// MoveAll moves all keys that begin with oldPrefix (a directory: "…/") to
// newPrefix, with their ETags; for a directory renamed in one step. It waits
// for the disk, and takes time with the number of keys.
func (s *Store) MoveAll(oldPrefix, newPrefix string) error {
	if err := s.Flush(); err != nil {
		return err
	}
	s.mu.Lock()
	b := s.mu.backing
	s.mu.Unlock()
	keys, err := b.keys(oldPrefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if e, ok := s.entry(key); ok {
			s.Move(key, e.etag, newPrefix+key[len(oldPrefix):], e.etag)
		}
	}
	return nil
}

// change notes a change and wakes the writer.
func (s *Store) change(key string, c change) {
	if key == "" || len(key) > maxKey {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return
	}
	if _, known := s.mu.pending[key]; !known && len(s.mu.pending) >= maxPending {
		if !s.mu.dropping {
			s.mu.dropping = true
			s.log.Warn("attributes are lost: the disk does not keep up", slog.Int("pending", maxPending))
		}
		return
	}
	s.mu.pending[key] = c
	signal(s.wake)
	if len(s.mu.pending) >= flushCount {
		signal(s.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Flush writes all changes made before it to the disk. After Close it is ErrClosed.
func (s *Store) Flush() error {
	answer := make(chan error, 1)
	select {
	case s.asks <- answer:
		return <-answer
	case <-s.done:
		return ErrClosed
	}
}

// Close flushes, and waits for it. Later changes are lost, and Get misses. It
// may be called again, with the same result.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.quit) })
	<-s.done
	return s.closed
}
