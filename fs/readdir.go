package fs

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

var _ gofs.NodeOpendirHandler = (*dirNode)(nil)

// OpendirHandle opens a listing of its own.
func (d *dirNode) OpendirHandle(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if _, err := d.path(); err != nil {
		return nil, 0, toErrno(err)
	}
	return &dirHandle{dir: d}, 0, 0
}

// dirHandle is one open directory: a stream over one listing, whose entries
// carry what READDIRPLUS answers. An entry's offset is its number, from 1. What
// was given out is kept by name, so that seekdir(3) leads to the same place
// whatever was removed meanwhile; rewinddir(3) begins a new listing. The bridge
// calls one method of a handle at a time.
type dirHandle struct {
	dir    *dirNode
	next   func() (catalogview.Node, error, bool)
	stop   func()
	cancel context.CancelFunc // ends the listing, when a reader dies that waits for it
	// local are the names still to be given out of directories that live in the
	// mount alone; nil until the listing has ended.
	local []string
	at    catalogview.Node // the directory, once local is given out
	// own are the names that the mount has in a directory of a staging tree, and
	// whether each is a directory; mine are those still to be given out. They come
	// first. nil: not begun, or no such directory.
	own   map[string]bool
	mine  []string
	pos   uint64 // of the entry given out last
	given givenNames
	last  catalogview.Node // of the entry given out last, if it is of the listing
	// failed is sticky: a listing is whole or ends in an error.
	failed error
}

// givenNames are the entries that a listing gave out: the bytes of all names
// in one piece, for there may be a million.
type givenNames struct {
	bytes []byte
	ends  []uint32
	dirs  []bool
}

func (g *givenNames) add(base string, dir bool) {
	g.bytes = append(g.bytes, base...)
	g.ends = append(g.ends, uint32(len(g.bytes)))
	g.dirs = append(g.dirs, dir)
}

func (g *givenNames) at(i uint64) (base string, dir bool) {
	begin := uint32(0)
	if i > 0 {
		begin = g.ends[i-1]
	}
	return string(g.bytes[begin:g.ends[i]]), g.dirs[i]
}

var (
	_ gofs.FileReaddirenter = (*dirHandle)(nil)
	_ gofs.FileLookuper     = (*dirHandle)(nil)
	_ gofs.FileSeekdirer    = (*dirHandle)(nil)
	_ gofs.FileReleasedirer = (*dirHandle)(nil)
	_ gofs.FileFsyncdirer   = (*dirHandle)(nil)
)

// Readdirent returns the next entry: ".", "..", then the listing's.
func (h *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	path, err := h.dir.path()
	if err != nil {
		return nil, toErrno(err)
	}
	switch h.pos {
	case 0:
		h.pos++
		return &fuse.DirEntry{Name: ".", Mode: syscall.S_IFDIR, Ino: h.dir.StableAttr().Ino, Off: h.pos}, 0
	case 1:
		h.pos++
		up, _ := parent(path)
		return &fuse.DirEntry{Name: "..", Mode: syscall.S_IFDIR, Ino: h.dir.fs.inodeOf(up), Off: h.pos}, 0
	}
	if i := h.pos - 2; i < uint64(len(h.given.ends)) {
		h.last = catalogview.Node{}
		return h.entry(path, i), 0
	}
	more, err := h.fetch(ctx, path)
	if err != nil {
		return nil, h.dir.fs.fail("readdir", path, err)
	}
	if !more {
		return nil, 0
	}
	return h.entry(path, h.pos-2), 0
}

// fetch takes the next entry from the listing into given and last.
func (h *dirHandle) fetch(ctx context.Context, path string) (more bool, err error) {
	f := h.dir.fs
	if h.failed != nil {
		return false, h.failed
	}
	h.last = catalogview.Node{}
	if inTree(path) {
		if more := h.fetchTree(path); more {
			return true, nil
		}
	}
	if h.next == nil {
		listing, cancel := context.WithCancel(f.operations.New(context.Background()))
		h.cancel = cancel
		h.next, h.stop = iter.Pull2(f.View.ReadDir(listing, path))
	}
	if h.local != nil {
		return h.fetchLocal(path)
	}
	n, ok, err := h.listed(ctx)
	if !ok || errors.Is(err, objectstore.ErrNotExist) && (f.virtual(path) || f.hasLocal(path)) {
		h.local = h.onlyLocal(path)
		return h.fetchLocal(path)
	}
	if err != nil {
		h.failed = err
		return false, err
	}
	n, named := f.backups.listed(n)
	if !named {
		return h.fetch(ctx, path)
	}
	dir, base := parent(n.Path)
	h.given.add(base, n.Kind.Directory())
	if h.last = n; dir != path {
		h.last = catalogview.Node{} // the directory was renamed meanwhile
	}
	return true, nil
}

// listed returns the next of the store's names that the mount's do not hide.
func (h *dirHandle) listed(ctx context.Context) (n catalogview.Node, ok bool, err error) {
	stop := h.dir.fs.endWith(ctx, h.cancel)
	defer stop()
	for {
		n, err, ok = h.next()
		_, base := parent(n.Path)
		if _, hidden := h.own[base]; !ok || err != nil || !hidden {
			return n, ok, err
		}
	}
}

// onlyLocal returns the directories in path that the listing did not have. It is
// not nil.
func (h *dirHandle) onlyLocal(path string) []string {
	names := h.dir.fs.localIn(path)
	if len(names) == 0 || h.own != nil || !strings.Contains(path, "/") { // a database or a table lies above one
		return []string{}
	}
	seen := make(map[string]bool, len(h.given.ends))
	for i := range h.given.ends {
		base, _ := h.given.at(uint64(i))
		seen[base] = true
	}
	return slices.DeleteFunc(names, func(base string) bool { return seen[base] })
}

// fetchLocal is fetch behind the end of the store's listing, which told what the
// catalog has: no name is asked for. It does not run on the request's context: an
// interrupt must not leave a name out.
func (h *dirHandle) fetchLocal(path string) (more bool, err error) {
	work, cancel := h.dir.fs.background()
	defer cancel()
	if len(h.local) > 0 && h.at.Path != path {
		if h.at, h.failed = h.dir.fs.localParent(work, path); h.failed != nil {
			return false, h.failed
		}
	}
	for len(h.local) > 0 {
		base := h.local[0]
		h.local = h.local[1:]
		n, err := h.dir.fs.localChild(work, h.at, base)
		switch {
		case err != nil && work.Err() != nil:
			h.failed = err
			return false, err
		case err != nil || !h.dir.fs.local.has(n.Path):
			continue // its table is not to be written any more; or removed meanwhile
		}
		h.given.add(base, true)
		h.last = n
		return true, nil
	}
	return false, nil
}

// entry gives out the i-th name.
func (h *dirHandle) entry(path string, i uint64) *fuse.DirEntry {
	h.pos = i + 3
	base, dir := h.given.at(i)
	mode := uint32(syscall.S_IFREG)
	if dir {
		mode = syscall.S_IFDIR
	}
	return &fuse.DirEntry{Name: base, Mode: mode, Ino: h.dir.fs.inodeOf(child(path, base)), Off: h.pos}
}

// Lookup answers READDIRPLUS from the listing, without a request.
func (h *dirHandle) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	_, last := parent(h.last.Path)
	if last != base || h.last.Path == "" { // a part of the buffer is asked for again
		return h.dir.Lookup(ctx, base, out)
	}
	_, _, busy := h.dir.fs.names.stagedAt(h.last.Path, 0)
	return h.dir.fs.inode(ctx, h.dir, h.last, busy || h.dir.fs.drafts.busy(h.last.Path), out)
}

// Seekdir goes on behind entry off; 0 begins a new listing.
func (h *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	if off == 0 {
		h.Releasedir(ctx, 0)
	}
	h.pos = min(off, uint64(len(h.given.ends))+2)
	for h.pos < off {
		e, errno := h.Readdirent(ctx)
		if errno != 0 {
			return errno
		}
		if e == nil {
			return 0 // behind the end
		}
	}
	return 0
}

// Releasedir ends the listing.
func (h *dirHandle) Releasedir(context.Context, uint32) {
	if h.stop != nil {
		h.stop()
		h.cancel()
	}
	*h = dirHandle{dir: h.dir}
}

// Fsyncdir has nothing to do: a publish is durable with its directory.
func (h *dirHandle) Fsyncdir(context.Context, uint32) syscall.Errno { return 0 }

// inodeOf returns the inode number that a path has.
func (f *FS) inodeOf(path string) uint64 {
	if path == "" {
		return rootIno
	}
	return f.names.inode(path)
}
