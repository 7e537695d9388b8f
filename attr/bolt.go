package attr

import (
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// errDamaged: the file is not what this package writes.
var errDamaged = errors.New("damaged")

// lockWait is how long Open waits for another process to leave the file.
const lockWait = 500 * time.Millisecond

// The buckets. attributes: key → 8 bytes of order, then the encoded entry; its
// sequence is the number of its keys. order: the 8 bytes, big endian and
// growing → key; its first is the oldest.
const (
	attributesBucket = "attributes"
	orderBucket      = "order"
	orderLen         = 8
)

// bolt is a backing in a file. bbolt panics on pages that make no sense, and
// the kernel signals reads of a mapping past the file's end: both become
// errDamaged, after which the file is left alone, as its locks may be held.
type bolt struct {
	db         *bbolt.DB
	file       *os.File // db's, to let go of the lock without db
	maxEntries int
	broken     atomic.Bool
}

var _ backing = (*bolt)(nil)

// openBacking opens the file, or a new one where it is damaged, or memory where
// none can be used, with one warning.
func openBacking(path string, o Options) backing {
	b, err := openBolt(path, o.MaxEntries)
	if err == nil {
		return b
	}
	if unusable(err) {
		o.Log.Warn("attributes are kept in memory only", slog.String("path", path), slog.Any("error", err))
		return newMemory(o.MaxEntries)
	}
	return beginAnew(path, o, err)
}

// beginAnew moves a damaged file aside and opens a new one.
func beginAnew(path string, o Options, cause error) backing {
	aside := path + ".damaged"
	log := o.Log.With(slog.String("path", path), slog.Any("error", cause))
	if err := os.Rename(path, aside); err != nil {
		log.Warn("attributes are damaged, and kept in memory only", slog.Any("aside", err))
		return newMemory(o.MaxEntries)
	}
	b, err := openBolt(path, o.MaxEntries)
	if err != nil {
		log.Warn("attributes are damaged, and kept in memory only", slog.Any("anew", err))
		return newMemory(o.MaxEntries)
	}
	log.Warn("attributes are damaged, and begun anew", slog.String("aside", aside))
	return b
}

// unusable tells what the system refuses from what is wrong with the content.
func unusable(err error) bool {
	var path *iofs.PathError
	var number syscall.Errno
	return errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &path) || errors.As(err, &number)
}

func openBolt(path string, maxEntries int) (*bolt, error) {
	b := &bolt{maxEntries: maxEntries}
	err := guard(func() (err error) {
		b.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, OpenFile: b.openFile})
		if err != nil {
			return err
		}
		return b.prepare()
	})
	if err == nil {
		return b, nil
	}
	if b.db != nil && !errors.Is(err, errDamaged) {
		err = errors.Join(err, b.db.Close())
	} else {
		b.abandon()
	}
	return nil, fmt.Errorf("open attributes: %w", err)
}

func (b *bolt) openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW, mode)
	b.file = f
	return f, err
}

// abandon closes the file behind bbolt's back, whose own Close may wait for
// locks of a transaction that panicked. Its mapping stays until the process ends.
func (b *bolt) abandon() {
	b.broken.Store(true)
	if b.file != nil {
		_ = b.file.Close() // bbolt may have closed it already
	}
}

// prepare makes the buckets, and finds a file that is shorter than it says.
func (b *bolt) prepare() error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		info, err := b.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		for _, name := range []string{attributesBucket, orderBucket} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// guard runs f, a panic or a fault in which is errDamaged.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return f()
}

// use runs a transaction, unless the file is known to be damaged.
func (b *bolt) use(begin func(func(*bbolt.Tx) error) error, f func(attributes, order *bbolt.Bucket) error) error {
	if b.broken.Load() {
		return errDamaged
	}
	err := guard(func() error {
		return begin(func(tx *bbolt.Tx) error {
			attributes, order := tx.Bucket([]byte(attributesBucket)), tx.Bucket([]byte(orderBucket))
			if attributes == nil || order == nil {
				return fmt.Errorf("%w: a bucket is missing", errDamaged)
			}
			return f(attributes, order)
		})
	})
	if errors.Is(err, errDamaged) {
		b.broken.Store(true)
	}
	return err
}

func (b *bolt) damaged() bool { return b.broken.Load() }

// get misses where the file is damaged.
func (b *bolt) get(key string) (value []byte) {
	err := b.use(b.db.View, func(attributes, _ *bbolt.Bucket) error {
		if v := attributes.Get([]byte(key)); len(v) > orderLen {
			value = slices.Clone(v[orderLen:])
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return value
}

func (b *bolt) keys(prefix string) (keys []string, err error) {
	err = b.use(b.db.View, func(attributes, _ *bbolt.Bucket) error {
		c := attributes.Cursor()
		for k, _ := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
			keys = append(keys, string(k))
		}
		return nil
	})
	return keys, err
}

func (b *bolt) apply(batch map[string]change) error {
	return b.use(b.db.Update, func(attributes, order *bbolt.Bucket) error {
		t := buckets{attributes: attributes, order: order, count: int64(attributes.Sequence())}
		order.FillPercent = 0.9 // it only grows at its end
		for _, key := range slices.Sorted(maps.Keys(batch)) {
			if err := t.set([]byte(key), batch[key].value); err != nil {
				return err
			}
		}
		if err := t.shrink(int64(b.maxEntries)); err != nil {
			return err
		}
		return attributes.SetSequence(uint64(t.count))
	})
}

// buckets are the two buckets in a transaction that writes.
type buckets struct {
	attributes, order *bbolt.Bucket
	count             int64
}

// set replaces the value of key, and makes it the youngest; nil deletes it.
func (t *buckets) set(key, value []byte) error {
	if old := t.attributes.Get(key); old != nil {
		if len(old) < orderLen {
			return fmt.Errorf("%w: a short value", errDamaged)
		}
		if err := t.order.Delete(slices.Clone(old[:orderLen])); err != nil {
			return err
		}
		t.count--
		if value == nil {
			return t.attributes.Delete(key)
		}
	}
	if value == nil {
		return nil
	}
	n, err := t.order.NextSequence()
	if err != nil {
		return err
	}
	age := binary.BigEndian.AppendUint64(nil, n)
	if err := t.order.Put(age, key); err != nil {
		return err
	}
	t.count++
	return t.attributes.Put(key, append(age, value...))
}

// shrink deletes the oldest keys until no more than limit are left.
func (t *buckets) shrink(limit int64) error {
	for t.count > limit {
		age, key := t.order.Cursor().First()
		if age == nil {
			return fmt.Errorf("%w: %d keys have no order", errDamaged, t.count)
		}
		age, key = slices.Clone(age), slices.Clone(key)
		if err := t.attributes.Delete(key); err != nil {
			return err
		}
		if err := t.order.Delete(age); err != nil {
			return err
		}
		t.count--
	}
	return nil
}

func (b *bolt) close() error {
	if b.broken.Load() {
		b.abandon()
		return nil
	}
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close attributes: %w", err)
	}
	return nil
}
