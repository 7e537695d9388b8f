package objectstore

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Return is [Adopter]'s. The file keeps its inode, and loses what Adopt made of its
// mode: its owner alone may read and write it again. Directories that Adopt made stay.
func (f *Folder) Return(ctx context.Context, o Object, path string) error {
	return fail("return "+path+" from", o.Location, f.giveBack(ctx, o, path))
}

func (f *Folder) giveBack(ctx context.Context, o Object, path string) error {
	p, err := f.file(o.Location)
	if err != nil {
		return err
	}
	if err = ctx.Err(); err != nil {
		return err
	}
	dir, err := p.openParent(false)
	if err != nil {
		return errIsChanged(err)
	}
	defer dir.close()
	if err := f.returnLocked(ctx, o, dir, path); err != nil {
		return err
	}
	if err := dir.sync(); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// returnLocked checks the version and renames, as one step for users of this package.
func (f *Folder) returnLocked(ctx context.Context, o Object, dir *parent, path string) error {
	unlock, err := f.locks.lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	s := source{dir: dir.fd, name: dir.name}
	var id string
	if err = s.version(o, &id); err != nil {
		return err
	}
	// Before the rename: ended in between, a mode that its owner cannot open it with
	// would keep the next mount from its bytes.
	if err = s.setMode(0o600); err != nil {
		return err
	}
	err = rename(s, &parent{fd: unix.AT_FDCWD, name: path}, unix.RENAME_NOREPLACE)
	if is(err, unix.EINVAL, unix.ENOSYS, unix.ENOTSUP) {
		err = renameChecked(s, &parent{fd: unix.AT_FDCWD, name: path})
	}
	if err != nil {
		_ = s.setMode(s.st.Mode & modeBits)
	}
	return err
}

// setMode changes the mode of the file that s.st is of, whatever it may be opened for.
func (s *source) setMode(mode uint32) error {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(s.dir, s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return errIsChanged(err)
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return err
	}
	if st.Ino != s.st.Ino || st.Dev != s.st.Dev {
		return ErrChanged
	}
	return retry(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode) })
}

// syncPath makes the names in a directory of this host durable.
func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // only read
	return control(d, fsync)
}
