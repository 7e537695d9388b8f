package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// memoryPatience is how long a fetch waits for memory of others to be given
// back, which they do at once or not at all; thoroughPatience is a thorough one's.
const (
	memoryPatience   = time.Millisecond
	thoroughPatience = 100 * time.Millisecond
)

// take makes the directory and becomes its owner.
func (d *Disk) take(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %q is not a directory", ErrDiskUnsafe, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unmakeable(err)
	}
	if err := os.Mkdir(d.root, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
		return unmakeable(err)
	}
	if err := private(d.root); err != nil {
		return err
	}
	if d.lock != nil {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(d.root, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return unmakeable(err)
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer closeBody(lock)
		if errors.Is(err, unix.EWOULDBLOCK) { //nolint:forbidigo // the answer of flock
			owner, _ := io.ReadAll(io.LimitReader(lock, 4096)) // it is for the message alone
			return fmt.Errorf("%w: %q is used by the mount at %q: give each mount a directory of its own, or unmount that one", ErrDiskInUse, dir, strings.TrimSpace(string(owner)))
		}
		return err
	}
	d.lock = lock
	if err = lock.Truncate(0); err != nil {
		return err
	}
	_, err = lock.WriteAt([]byte(d.o.Owner+"\n"), 0)
	return err
}

// unmakeable tells errors of making a directory that do not pass by themselves: a file
// is on the way, or a symbolic link to nothing, or the file system has no files of
// users, as /proc and /sys. Those of a disk that is full or read-only do.
func unmakeable(err error) error {
	for _, never := range []syscall.Errno{
		syscall.ENOTDIR, syscall.EEXIST, syscall.ENOENT, syscall.EPERM, syscall.ENOSYS, //nolint:forbidigo // the answers of mkdir
		syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ELOOP, syscall.ENAMETOOLONG, //nolint:forbidigo // likewise
	} {
		if errors.Is(err, never) {
			return fmt.Errorf("%w: there can be no such directory: %w", ErrDiskUnsafe, err)
		}
	}
	return err
}

// private makes sure that nobody else can put blocks into the directory: what is
// in it is served as what the store has.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || st.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%w: %q is not a directory of this user: choose another", ErrDiskUnsafe, dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// write is the goroutine that changes the directory: it counts what is there, and
// writes what comes. It ends when the Disk is closed and nothing is on its way.
func (d *Disk) write() {
	tick := time.NewTicker(d.o.Retry)
	defer tick.Stop()
	scanned := d.writable() && d.begin()
	for {
		select {
		case b := <-d.queue:
			d.store(b)
		case <-tick.C:
			d.giveUp(d.maxHeld) // nobody brought the rest
			if d.due() {
				scanned = d.retry(scanned)
			}
		case <-d.quit:
			for {
				select {
				case b := <-d.queue:
					d.store(b)
				default:
					return
				}
			}
		}
	}
}

// begin counts what the directory holds, and holds it to the limit.
func (d *Disk) begin() (scanned bool) {
	err := d.scan()
	if err == nil {
		err = d.shrink(0)
	}
	if err != nil {
		d.fail(err, false)
	}
	return err == nil
}

// retry looks whether a disk that failed works: the next block that is written tells.
func (d *Disk) retry(scanned bool) bool {
	err := d.take(filepath.Dir(d.root))
	if err == nil {
		err = d.probe()
	}
	if err != nil {
		d.fail(err, false)
		return scanned
	}
	if !scanned && !d.begin() {
		return false
	}
	d.recovered()
	return true
}

// probe writes a block's worth of bytes and removes them.
func (d *Disk) probe() error {
	path := filepath.Join(d.root, "probe")
	err := os.WriteFile(path, make([]byte, d.blockSize), 0o600)
	_ = os.Remove(path) // the next probe replaces it
	return err
}

// store writes a block and gives its memory back. There is no sync: after a crash
// a file may be cut, empty or full of zeroes, which its checksum tells.
func (d *Disk) store(b *filled) {
	defer func() {
		d.pending.Add(-b.count)
		d.release(b)
	}()
	size := onDisk(int64(len(b.buf)))
	if !d.writable() || size > d.limit {
		d.dropped.Add(1)
		return
	}
	err := d.shrink(size)
	if err == nil {
		b.of.seal(int64(b.id.index), b.buf)
		err = d.writeFile(b)
	}
	if err != nil {
		d.dropped.Add(1)
		d.fail(err, false)
		return
	}
	d.written.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.index.add(b.id, size, time.Now())
}

// writeFile puts the file into its place whole, so that no reader takes one that
// is being written for a damaged one.
func (d *Disk) writeFile(b *filled) error {
	path := d.path(b.id)
	own := path + ".new" // no block's name: a scan removes it
	err := os.WriteFile(own, b.buf, 0o600)
	if errors.Is(err, iofs.ErrNotExist) {
		if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil || errors.Is(err, iofs.ErrExist) {
			err = os.WriteFile(own, b.buf, 0o600)
		}
	}
	if err == nil {
		err = os.Rename(own, path)
	}
	if err != nil {
		_ = os.Remove(own) // a scan does
	}
	return err
}

// buffer returns memory for a block of n bytes, nil if there is none.
func (d *Disk) buffer(ctx context.Context, id blockID, n int64) *filled {
	b := &filled{id: id, count: headerSize + n}
	if n > d.blockSize/2 {
		b.count = headerSize + d.blockSize
	}
	if !d.hold(ctx, b.count) {
		return nil
	}
	if !d.acquire(ctx, b.count) {
		d.unhold(b.count)
		return nil
	}
	if b.count < headerSize+d.blockSize {
		b.buf = make([]byte, headerSize+n)
	} else if p, ok := d.pool.Get().(*[]byte); ok {
		b.buf = (*p)[:headerSize+n]
	} else {
		b.buf = make([]byte, headerSize+d.blockSize)[:headerSize+n]
	}
	return b
}

// hold counts n bytes of what is on its way. Where that is too much, a thorough
// fetch waits for the disk.
func (d *Disk) hold(ctx context.Context, n int64) bool {
	for {
		d.mu.Lock()
		if d.mu.closed || d.mu.failing != nil {
			d.mu.Unlock()
			return false
		}
		if d.held.Add(n) <= d.maxHeld {
			d.mu.Unlock()
			return true
		}
		d.held.Add(-n)
		d.mu.Unlock()
		if d.giveUp(n) > 0 {
			continue
		}
		if !isThorough(ctx) || n > d.maxHeld {
			return false
		}
		if !d.awaitFreed(ctx) {
			return false
		}
	}
}

// awaitFreed waits until a block's memory was given back; false: not in time.
func (d *Disk) awaitFreed(ctx context.Context) bool {
	d.mu.Lock()
	if d.mu.freed == nil {
		d.mu.freed = make(chan struct{})
	}
	freed := d.mu.freed
	d.mu.Unlock()
	timeout := time.NewTimer(thoroughPatience) // it may have been given back before freed was made
	defer timeout.Stop()
	select {
	case <-freed:
	case <-timeout.C:
	case <-ctx.Done():
		return false
	case <-d.quit:
		return false
	}
	return true
}

func (d *Disk) unhold(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.Add(-n)
	if d.mu.freed != nil {
		close(d.mu.freed)
		d.mu.freed = nil
	}
}

// acquire takes n bytes from the budget. A cache that is full of idle blocks gives
// some of them back when it is asked, which TryAcquire does not do.
func (d *Disk) acquire(ctx context.Context, n int64) bool {
	if d.o.Budget.TryAcquire(n, budget.Speculation) {
		return true
	}
	patience := memoryPatience
	if isThorough(ctx) {
		patience = thoroughPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.o.Budget.Acquire(ctx, n, budget.Speculation) == nil
}

// release gives a block's memory back.
func (d *Disk) release(b *filled) {
	if b.count == headerSize+d.blockSize {
		whole := b.buf[:headerSize+d.blockSize]
		d.pool.Put(&whole)
	}
	b.buf = nil
	d.o.Budget.Release(b.count)
	d.unhold(b.count)
}

// thoroughKey is of a context whose fetches leave no block out.
type thoroughKey struct{}

// Thorough returns a context for who reads to fill the disk: its fetches wait for
// a disk that is behind, where others leave blocks out.
func Thorough(ctx context.Context) context.Context {
	return context.WithValue(ctx, thoroughKey{}, true)
}

func isThorough(ctx context.Context) bool { return ctx.Value(thoroughKey{}) != nil }
