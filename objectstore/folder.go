package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Folder is a [Store] over directories of this host; it also implements
// [Opener], [Adopter], [Renamer] and [Directories].
//
// Versions. An ETag is "<inode>-<size>-<mtime in ns>" in hexadecimal; an
// Object's Match has the change time after it, so that a chmod by another
// program changes Match and leaves ETag alone. A file that another program
// changes in place is a new version as soon as its size or mtime says so:
// that is within one tick of the kernel's clock (at once since Linux 6.13),
// and for a shared mapping when its page is first made dirty.
//
// Paths. A key is resolved by openat2(RESOLVE_BENEATH) from the descriptor of
// its folder, never by a joined path. A symbolic link that leaves the folder,
// every absolute one included, is neither shown nor followed; one that stays
// inside is followed by reads, while writes act on the link itself.
//
// Keys. A file is the object of its key, a directory the empty object of a key
// that ends in "/"; sockets, pipes and devices are not there. Deeper listings
// (no Delimiter) tell the directories too.
//
// Writes go to "_temporary/.tmp.<write id>" beside their target and are renamed.
// Nothing else in a "_temporary" is ever touched, and it is removed only if it
// was made here and is empty (rule 24). Every step that may take a version away
// (replace, rename, delete) holds a flock on the directory of the name; see
// locks. Concurrent use is safe, also by several Folders over one directory.
type Folder struct {
	roots map[string]*root
	locks locks
	temps temps
}

var (
	_ Store       = (*Folder)(nil)
	_ Opener      = (*Folder)(nil)
	_ Adopter     = (*Folder)(nil)
	_ Renamer     = (*Folder)(nil)
	_ Directories = (*Folder)(nil)
)

// root is one of a Folder's directories, held open.
//
// Not os.Root: that opens each component of a path by itself. Measured here, a
// stat three directories down costs 3.3 µs and 1 allocation by openat2, and
// 10.3 µs and 8 allocations by os.Root; every look-up of the mount pays it.
type root struct {
	bucket string
	dir    *os.File
	conn   syscall.RawConn
}

// NewFolder opens directories as the buckets of a store. Each must be an
// absolute path, and is its bucket's name as it is given. The caller closes the
// Folder. It fails where the kernel has no openat2 and no utimensat on a
// descriptor (before Linux 5.8).
func NewFolder(roots ...string) (*Folder, error) {
	f := &Folder{roots: make(map[string]*root, len(roots))}
	for _, name := range roots {
		if _, ok := f.roots[name]; ok {
			continue
		}
		r, err := openRoot(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open folder %q: %w", name, err), f.Close())
		}
		f.roots[name] = r
	}
	return f, nil
}

func openRoot(name string) (*root, error) {
	if !filepath.IsAbs(name) {
		return nil, errors.New("not an absolute path")
	}
	dir, err := os.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	conn, err := dir.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	r := &root{bucket: name, dir: dir, conn: conn}
	fd, err := r.open("", unix.O_PATH)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("openat2: %w", err), dir.Close())
	}
	closeFD(fd)
	return r, nil
}

// Close lets go of the directories. Calls that run end undisturbed or with an
// error; later ones fail. Files that were opened stay open.
func (f *Folder) Close() error {
	var errs []error
	for _, r := range f.roots {
		errs = append(errs, r.dir.Close())
	}
	return errors.Join(errs...)
}

// Statfs tells the room on the file system of a bucket.
func (f *Folder) Statfs(bucket string) (unix.Statfs_t, error) {
	var st unix.Statfs_t
	loc := Location{Bucket: bucket}
	r, ok := f.roots[bucket]
	if !ok {
		return st, fail("statfs", loc, errNoBucket)
	}
	var err error
	cerr := r.conn.Control(func(fd uintptr) {
		err = retry(func() error { return unix.Fstatfs(int(fd), &st) })
	})
	return st, fail("statfs", loc, errors.Join(cerr, err))
}

// place is a location that was looked at: its root, and its path below it
// without a final "/" ("" is the root itself).
type place struct {
	loc       Location
	root      *root
	path      string
	directory bool // the key is "" or ends in "/"
}

func (f *Folder) place(loc Location) (place, error) {
	if err := checkKey(loc.Key); err != nil {
		return place{}, err
	}
	r, ok := f.roots[loc.Bucket]
	if !ok {
		return place{}, errNoBucket
	}
	path, slash := strings.CutSuffix(loc.Key, "/")
	return place{loc: loc, root: r, path: path, directory: slash || path == ""}, nil
}

// file is place for a key that must not be a directory's.
func (f *Folder) file(loc Location) (place, error) {
	p, err := f.place(loc)
	if err == nil && p.directory {
		return place{}, ErrDirectory
	}
	return p, err
}

// split parts a path into the directory that holds it and the name in it.
func (p place) split() (parent, name string) {
	i := strings.LastIndexByte(p.path, '/')
	if i < 0 {
		return "", p.path
	}
	return p.path[:i], p.path[i+1:]
}

const (
	maxComponent = 255
	maxPath      = 4095
)

// checkKey refuses, without a system call, every key that cannot be a path.
func checkKey(key string) error {
	if len(key) > maxPath || strings.IndexByte(key, 0) >= 0 {
		return ErrName
	}
	if key == "" {
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxComponent {
			return ErrName
		}
	}
	return nil
}
