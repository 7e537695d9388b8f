package staging

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// A write that ended leaves its directory to the next one, with the files of its
// record, whose content is of no account any more. On ext4 a mkdir and the first
// files in a new directory cost 240–400 µs and more, a rename and files in a used one
// 40 µs (a write of 4 KiB, created and dropped: 415–817 µs with mkdir, 66–74 µs
// without); and a file that is made soon after others were removed costs the more the
// more they are, for their inodes are not taken again within a minute. With a thousand
// small files that decides.
const (
	sparePrefix = "spare."
	maxSpares   = 16
)

// makeDirectory makes a write's directory.
func (a *Area) makeDirectory(dir string) error {
	if spare := a.takeSpare(); spare != "" {
		if err := a.step("rename", spare); err != nil {
			return err
		}
		if unix.Rename(spare, dir) == nil {
			return nil
		}
	}
	if err := a.step("mkdir", dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return ioError("stage", dir, err)
	}
	return nil
}

func (a *Area) takeSpare() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.spares) == 0 {
		return ""
	}
	spare := a.spares[len(a.spares)-1]
	a.spares = a.spares[:len(a.spares)-1]
	return spare
}

// recycle takes the directory of a write, which has no bytes any more. A tidy one
// has nothing but the files of a record.
func (a *Area) recycle(dir string, tidy bool) error {
	if tidy {
		if spare := a.spareName(); spare != "" {
			return a.keepSpare(dir, spare)
		}
	}
	if err := a.unlink(filepath.Join(dir, recordName)); err != nil {
		return err
	}
	if err := a.step("rmdir", dir); err != nil {
		return err
	}
	if unix.Rmdir(dir) == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil { // an old temporary
		return ioError("drop", dir, err)
	}
	return nil
}

func (a *Area) keepSpare(dir, spare string) error {
	if err := a.step("rename", dir); err != nil {
		return err
	}
	if err := unix.Rename(dir, spare); err != nil {
		return ioError("drop", dir, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spares = append(a.spares, spare)
	return nil
}

// withRoom writes something; where there is no room for it that of the spare
// directories, up to three inodes each, is given up for it.
func (a *Area) withRoom(write func() error) error {
	err := write()
	if !errors.Is(err, objectstore.ErrNoSpace) {
		return err
	}
	a.mu.Lock()
	spares := a.spares
	a.spares = nil
	a.mu.Unlock()
	if len(spares) == 0 {
		return err
	}
	for _, dir := range spares {
		removeSpare(dir)
	}
	return write()
}

// removeSpare removes a spare directory; what else is called so stays.
func removeSpare(dir string) {
	for _, name := range []string{recordTemp, recordName} {
		_ = unix.Unlink(filepath.Join(dir, name))
	}
	_ = unix.Rmdir(dir)
}

// spareName names the next spare directory; "" if there are enough, or the area
// is closed.
func (a *Area) spareName() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files == nil || len(a.spares) >= maxSpares {
		return ""
	}
	a.spared++
	return a.path(sparePrefix + strconv.Itoa(a.spared))
}
