package catalogview

import (
	"errors"
	iofs "io/fs"
	"os"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// irregular says why a manifest that the store does not have (err: its answer)
// is none though its name is taken, "" where it is not. A folder is looked at
// beside the store, which tells of objects alone; whatever the links in it, the
// look does not leave it.
func (m *Manifests) irregular(err error, database, name string) string {
	if _, trees := m.store.(objectstore.Directories); !trees || !errors.Is(err, objectstore.ErrNotExist) || !m.mayBe(database, name) {
		return ""
	}
	root, err := os.OpenRoot(m.root.Bucket)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // only looked at
	sqe := m.below(database + "/" + name + "/" + sqeDirectory).Key
	if astray(root, sqe) {
		return sqeDirectory + " is a symbolic link that leads nowhere in the folder"
	}
	manifest := m.below(database + "/" + name + "/" + manifestKey).Key
	info, err := root.Lstat(manifest)
	switch {
	case err != nil || info.Mode().IsRegular(): // it came just now
		return ""
	case astray(root, manifest):
		return manifestKey + " is a symbolic link that leads nowhere in the folder"
	case info.Mode()&iofs.ModeSymlink != 0:
		if info, err = root.Stat(manifest); err != nil || info.Mode().IsRegular() {
			return ""
		}
	}
	return manifestKey + " is " + kindOfFile(info.Mode()) + ", no regular file"
}

// astray says that a path is a symbolic link to what is not there, or not in root.
func astray(root *os.Root, path string) bool {
	info, err := root.Lstat(path)
	if err != nil || info.Mode()&iofs.ModeSymlink == 0 {
		return false
	}
	_, err = root.Stat(path)
	return err != nil
}

// faultRaw is the entry of a manifest that cannot be read: empty, and of another
// version when the fault is another.
func faultRaw(fault string) Raw { return Raw{ETag: hashTag([]byte(fault))} }
