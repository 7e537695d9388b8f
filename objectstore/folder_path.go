package objectstore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// raceTries bounds openat2's EAGAIN: a rename or mount elsewhere on the host
// ran while ".." of a link was resolved.
const raceTries = 128

// open opens a path below the root; the caller closes the descriptor. Flags
// are open(2)'s, without O_CREAT. What lies behind a link that leaves the root
// is ENOENT, as is a loop of links.
func (r *root) open(path string, flags uint64) (int, error) {
	fd, err := r.resolve(path, flags)
	if isNotFollowed(err) {
		return -1, unix.ENOENT
	}
	return fd, err
}

// isNotFollowed: what resolve says of a link that leaves the root, or of a loop.
func isNotFollowed(err error) bool { return is(err, unix.EXDEV, unix.ELOOP) }

// resolve is open, which tells apart what is not followed.
func (r *root) resolve(path string, flags uint64) (int, error) {
	if path == "" {
		path = "."
	}
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	var fd int
	var err error
	cerr := r.conn.Control(func(dir uintptr) {
		for range raceTries {
			err = retry(func() (err error) {
				fd, err = unix.Openat2(int(dir), path, &how)
				return err
			})
			if !is(err, unix.EAGAIN) {
				return
			}
		}
	})
	switch {
	case cerr != nil:
		return -1, cerr
	case err != nil:
		return -1, err
	}
	return fd, nil
}

// stat is open and fstat; links are followed.
func (r *root) stat(path string, st *unix.Stat_t) error {
	fd, err := r.open(path, unix.O_PATH)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return fstat(fd, st)
}

// openFile opens a regular file for reading. O_NONBLOCK: a pipe must not block.
func (r *root) openFile(path string, st *unix.Stat_t) (*os.File, error) {
	fd, err := r.open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	err = fstat(fd, st)
	if err == nil && !isRegular(st) {
		err = unix.ENOENT
	}
	if err != nil {
		closeFD(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), r.bucket+"/"+path), nil
}

// dirID names a directory of this host, however it was reached.
type dirID struct{ dev, ino uint64 }

// parent is the open directory of a name that is being written.
type parent struct {
	fd   int
	id   dirID
	name string
}

func (d *parent) close() { closeFD(d.fd) }

// openParent opens the directory that holds p; it makes missing ones, durably,
// if it may.
func (p place) openParent(create bool) (*parent, error) {
	dir, name := p.split()
	fd, err := p.root.openDirectory(dir, create)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = fstat(fd, &st); err != nil {
		closeFD(fd)
		return nil, err
	}
	return &parent{fd: fd, id: dirID{st.Dev, st.Ino}, name: name}, nil
}

func (r *root) openDirectory(path string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := r.open(path, flags)
	if !is(err, unix.ENOENT) || !create || path == "" {
		return fd, err
	}
	above, name := place{path: path}.split()
	up, err := r.openDirectory(above, true)
	if err != nil {
		return -1, err
	}
	defer closeFD(up)
	// EEXIST: made meanwhile, and not durable yet; or a link that leads nowhere.
	if err := mkdir(up, name); err != nil && !is(err, unix.EEXIST) {
		return -1, err
	}
	if err := fsync(up); err != nil {
		return -1, err
	}
	return r.open(path, flags)
}

// sync makes the names in the directory durable. After a rename: whether it
// will be seen after a crash is not known when this fails.
func (d *parent) sync() error {
	if err := fsync(d.fd); err != nil {
		return errors.Join(ErrUnavailable, errText(err))
	}
	return nil
}

// errText is err without its identity.
func errText(err error) error { return errors.New(err.Error()) }

// closeFD closes a descriptor that was read from, or whose file was synced: an
// error has nothing more to tell.
func closeFD(fd int) { _ = unix.Close(fd) }

func fstat(fd int, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstat(fd, st) })
}

// lstat is of the name itself, not of what a link leads to.
func lstat(dir int, name string, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// mkdir leaves the mode to the umask, as every tool does.
func mkdir(dir int, name string) error {
	return retry(func() error { return unix.Mkdirat(dir, name, 0o777) })
}

func unlink(dir int, name string, flags int) error {
	return retry(func() error { return unix.Unlinkat(dir, name, flags) })
}

// fsync takes EINVAL for success: a file system without it has nothing to sync.
func fsync(fd int) error {
	err := retry(func() error { return unix.Fsync(fd) })
	if is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// control runs do with f's descriptor, which stays open meanwhile.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var derr error
	if err := conn.Control(func(fd uintptr) { derr = do(int(fd)) }); err != nil {
		return err
	}
	return derr
}

func isRegular(st *unix.Stat_t) bool   { return st.Mode&unix.S_IFMT == unix.S_IFREG }
func isDirectory(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
func isLink(st *unix.Stat_t) bool      { return st.Mode&unix.S_IFMT == unix.S_IFLNK }
