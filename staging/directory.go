package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const lockName = "lock"

// ensureDirectory makes dir, and refuses one that others could tamper with.
func ensureDirectory(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return directoryError(dir, err)
	}
	var parent unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &parent); err != nil {
		return directoryError(dir, err)
	}
	if parent.Mode&0o002 != 0 {
		return fmt.Errorf("%w: %s lies directly in %s, where anybody may write: choose a --state-dir below a directory of your own", ErrUnsafe, dir, filepath.Dir(dir))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return directoryError(dir, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return directoryError(dir, err)
	}
	return checkPrivate(dir, &st)
}

func checkPrivate(dir string, st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("%w: %s is a symbolic link: give the directory itself as --state-dir", ErrUnsafe, dir)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%w: %s is not a directory: remove it or choose another --state-dir", ErrUnsafe, dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: %s belongs to uid %d, this is uid %d: choose a --state-dir of your own", ErrUnsafe, dir, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%w: %s may be written by others (mode %04o): chmod 700 it, after a look at what is in it", ErrUnsafe, dir, st.Mode&0o7777)
	case st.Mode&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
			return directoryError(dir, err)
		}
	}
	return nil
}

// directoryError says what to do about a directory that cannot be used.
func directoryError(dir string, err error) error {
	remedy := "choose another --state-dir"
	switch {
	case isReadOnly(err):
		remedy = "it is on a read-only file system: choose a --state-dir that can be written"
	case isNoSpace(err):
		remedy = "it is full: make room, save or abort what is staged there (lakefs-mount recover), or choose another --state-dir"
	case errors.Is(err, os.ErrPermission):
		remedy = "this user may not write there: choose a --state-dir of your own"
	}
	return fmt.Errorf("%w: %s", ioError("staging directory", dir, err), remedy)
}

// lockDirectory makes this process the owner, for as long as the file is open.
func lockDirectory(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	lock, err := openPrivate(path, os.O_RDWR|os.O_CREATE)
	if isSymlink(err) {
		return nil, fmt.Errorf("%w: %s is a symbolic link: remove it", ErrUnsafe, path)
	}
	if err != nil {
		return nil, directoryError(dir, err)
	}
	err = retryEINTR(func() error { return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return lock, nil
	}
	defer func() { _ = lock.Close() }() // only read
	if !isLocked(err) {
		return nil, directoryError(dir, err)
	}
	raw := make([]byte, 20)
	n, _ := lock.ReadAt(raw, 0)
	owner := "another process"
	if pid, err := strconv.Atoi(strings.TrimSpace(string(raw[:n]))); err == nil {
		owner = fmt.Sprintf("process %d", pid)
	}
	return nil, fmt.Errorf("%w: %s is used by %s: unmount that one or choose another --state-dir", ErrInUse, dir, owner)
}

// claim writes the owner's pid and finds out whether the directory takes bytes.
// A block of its own, written anew: an old one would be there on a full disk too.
func claim(dir string, lock *os.File) error {
	err := lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	probe := filepath.Join(dir, "probe")
	if err == nil {
		err = writeFile(probe, os.O_TRUNC, make([]byte, 4096), true)
		_ = os.Remove(probe)
	}
	if err != nil {
		return directoryError(dir, err)
	}
	return nil
}

// warnOfMemory says that what is staged in dir would not survive a restart.
func warnOfMemory(log *slog.Logger, dir string) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return
	}
	if st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC {
		log.LogAttrs(context.Background(), slog.LevelWarn, "the staging directory is in memory: what fsync and failed publishes keep there is lost when the machine stops, and it uses the machine's memory",
			slog.String("dir", dir))
	}
}

// Open makes the staging directory dir where it is missing, takes it for this
// process and finds the writes that earlier mounts left: see [Area.Files].
// ErrUnsafe, ErrInUse, objectstore.ErrNoSpace and errors of the file system say
// what is wrong with the directory and what to do.
func Open(dir string, o Options) (*Area, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, directoryError(dir, err)
	}
	a := &Area{
		dir: dir, opts: o.withDefaults(),
		files: make(map[string]*File), renames: make(map[string]*Rename), aborting: make(map[string]*File),
		batches: make(map[string]*Batch), batched: make(map[string]*Batch),
	}
	a.work = newWork(a.opts)
	_, a.adopts = o.Store.(objectstore.Adopter)
	if err = ensureDirectory(dir); err != nil {
		return nil, err
	}
	if a.lock, err = lockDirectory(dir); err != nil {
		return nil, err
	}
	if err := claim(dir, a.lock); err != nil && (!o.AllowFull || !errors.Is(err, objectstore.ErrNoSpace)) {
		_ = a.lock.Close()
		return nil, err
	}
	warnOfMemory(a.opts.Log, dir)
	if err := a.load(); err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// readLimited reads a small file, never through a symbolic link nor of a pipe.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := openPrivate(path, os.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, ioError("read", path, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("read %s: over %d bytes", path, limit)
	}
	return raw, nil
}
