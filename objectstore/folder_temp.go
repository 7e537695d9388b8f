package objectstore

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

const (
	tempDirectory = "_temporary"
	tempPrefix    = ".tmp."
	tempTries     = 100
)

// xattrMade marks a "_temporary" that this package made, so that the last of
// several mounts, or the next one after a crash, may remove it.
const xattrMade = "user.lakefs-mount-made"

// temps counts the users of each "_temporary" in this process, so that the last
// one removes those that were made here. Without extended attributes one stays
// that another process made and could not remove while this one used it.
type temps struct {
	mu   sync.Mutex
	used map[dirID]*tempUse // by the directory above
}

type tempUse struct {
	users int
	made  dirID // the "_temporary" that was made in this process; zero: none
}

// temp is a file that is being written below a "_temporary".
type temp struct {
	file  *os.File
	dir   int    // the open "_temporary"
	name  string // "" once published
	above *parent
	temps *temps
}

// create makes a file in above's "_temporary". An earlier attempt of the same
// write that died there is replaced: a living one holds a flock on its file.
func (t *temps) create(ctx context.Context, above *parent, writeID string) (*temp, error) {
	if _, err := uuid.Parse(writeID); err != nil {
		writeID = uuid.NewString()
	}
	t.enter(above)
	dir, fd, name, err := t.open(ctx, above, writeID)
	if err != nil {
		t.leave(above)
		return nil, err
	}
	return &temp{file: os.NewFile(uintptr(fd), name), dir: dir, name: name, above: above, temps: t}, nil
}

func (t *temps) open(ctx context.Context, above *parent, id string) (dir, fd int, name string, err error) {
	for range tempTries { // the directory may go between two steps, by another's rmdir
		if err = ctx.Err(); err != nil {
			return -1, -1, "", err
		}
		if dir, err = t.directory(above); is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return -1, -1, "", fmt.Errorf("%s: %w", tempDirectory, err)
		}
		name = tempPrefix + id
		fd, err = createTemp(dir, name)
		if err == nil {
			return dir, fd, name, nil
		}
		if is(err, unix.EEXIST) && !removeDead(dir, name) {
			id = uuid.NewString()
		}
		closeFD(dir)
		if !is(err, unix.ENOENT, unix.EEXIST) {
			return -1, -1, "", err
		}
	}
	return -1, -1, "", fmt.Errorf("%s: %w", tempDirectory, ErrUnavailable)
}

// directory makes "_temporary" where it is missing, and opens it.
func (t *temps) directory(above *parent) (int, error) {
	err := mkdir(above.fd, tempDirectory)
	if err != nil && !is(err, unix.EEXIST) {
		return -1, err
	}
	made := err == nil
	fd, err := openTemporary(above)
	if err != nil || !made {
		return fd, err
	}
	_ = unix.Fsetxattr(fd, xattrMade, []byte("1"), 0) // best effort: see temps
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		closeFD(fd)
		return -1, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[above.id].made = dirID{st.Dev, st.Ino}
	return fd, nil
}

func openTemporary(above *parent) (fd int, err error) {
	err = retry(func() (err error) {
		const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err = unix.Openat(above.fd, tempDirectory, flags, 0)
		return err
	})
	return fd, err
}

func createTemp(dir int, name string) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
		return err
	})
	if err == nil {
		_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // best effort: see removeDead
	}
	return fd, err
}

// removeDead removes the file of this very write that nobody is writing.
func removeDead(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return is(err, unix.ENOENT)
	}
	defer closeFD(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	return unlink(dir, name, 0) == nil
}

// close ends the use: the file goes unless it was published, and with the last
// user the "_temporary" that was made here. What cannot be removed stays: the
// outcome of the write is not changed by it.
func (t *temp) close() {
	_ = t.file.Close() // published: synced before; else: not wanted
	if t.name != "" {
		_ = unlink(t.dir, t.name, 0)
	}
	closeFD(t.dir)
	t.temps.leave(t.above)
}

func (t *temps) enter(above *parent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used == nil {
		t.used = map[dirID]*tempUse{}
	}
	if t.used[above.id] == nil {
		t.used[above.id] = &tempUse{}
	}
	t.used[above.id].users++
}

func (t *temps) leave(above *parent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.used[above.id]
	if u.users--; u.users > 0 {
		return
	}
	delete(t.used, above.id)
	if madeHere(above, u.made) {
		_ = unlink(above.fd, tempDirectory, unix.AT_REMOVEDIR) // not empty: in use
	}
}

// madeHere reports that the "_temporary" is the one that was made here, or has
// the mark.
func madeHere(above *parent, made dirID) bool {
	fd, err := openTemporary(above)
	if err != nil {
		return false
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if fstat(fd, &st) == nil && made == (dirID{st.Dev, st.Ino}) {
		return true
	}
	var b [1]byte
	n, err := unix.Fgetxattr(fd, xattrMade, b[:])
	return err == nil && n == 1
}
