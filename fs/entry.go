package fs

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
)

// entryNode is NAME.json, one version of a catalog entry. Its bytes are fetched
// at open, whole, so that no reader sees two versions.
type entryNode struct {
	fixed
	fs   *FS
	ino  uint64
	node catalogview.Node
}

var (
	_ gofs.NodeGetattrer  = (*entryNode)(nil)
	_ gofs.NodeSetattrer  = (*entryNode)(nil)
	_ gofs.NodeOpener     = (*entryNode)(nil)
	_ gofs.NodeSetxattrer = (*entryNode)(nil)
)

func (f *FS) entryInode(ctx context.Context, d *dirNode, n catalogview.Node, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	if t := f.entries.promised(thread(ctx), n.Path); t != nil {
		n = t.node
	}
	e := &entryNode{fs: f, ino: f.names.inode(n.Path), node: n}
	e.attributes(&out.Attr)
	return d.NewInode(ctx, e, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: e.ino, Gen: generation(n.ETag)}), 0
}

func (e *entryNode) attributes(a *fuse.Attr) {
	e.fs.fill(a, e.ino, e.node.Size, e.node.ModTime)
	a.Mode = syscall.S_IFREG | e.fs.entryMode(e.node.Path)
	a.Uid, a.Gid = e.fs.UID, e.fs.GID
}

// Getattr costs no request: the node is a version.
func (e *entryNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.SetTimeout(e.fs.MetadataTTL)
	e.attributes(&out.Attr)
	return 0
}

// Setattr takes a new size of a table's entry, where it may be written: that is a new
// version. It has no mode, owner or time to set; tools that set them go on.
func (e *entryNode) Setattr(ctx context.Context, _ gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if !e.fs.WriteEntries {
		return toErrno(errEntryWrite)
	}
	if _, ok := in.GetSize(); ok {
		return e.fs.rewrite(ctx, e.node.Path)
	}
	if err := e.fs.mayWriteEntries(e.node.Path); err != nil {
		return e.fs.fail("setattr", e.node.Path, err)
	}
	return e.Getattr(ctx, nil, out)
}

// Open fetches the entry. A newer version than the node's is for the kernel to
// look up again; it is kept for this thread, so that an entry that is replaced
// all the time turns nobody away twice.
func (e *entryNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if opensToWrite(flags) {
		if !e.fs.WriteEntries {
			return nil, 0, toErrno(errEntryWrite)
		}
		return nil, 0, e.fs.rewrite(ctx, e.node.Path)
	}
	tid := thread(ctx)
	if t := e.fs.entries.take(tid, e.node.Path); t != nil && t.node.ETag == e.node.ETag {
		e.read(tid)
		return &contentHandle{data: t.data}, fuse.FOPEN_KEEP_CACHE, 0
	}
	work, cancel := e.fs.work(ctx)
	defer cancel()
	data, n, err := e.fs.View.EntryJSON(work, strings.TrimSuffix(e.node.Path, ".json"))
	if err != nil {
		return nil, 0, e.fs.fail("open", e.node.Path, err)
	}
	if n.ETag != e.node.ETag {
		e.fs.View.Refresh(e.node.Path)
		e.fs.entries.promise(tid, &entryTurn{node: n, data: data})
		return nil, 0, toErrno(errSuperseded)
	}
	e.read(tid)
	return &contentHandle{data: data}, fuse.FOPEN_KEEP_CACHE, 0
}

// read notes that the process of thread tid reads this version.
func (e *entryNode) read(tid uint32) {
	if e.fs.WriteEntries {
		e.fs.drafts.reads.note(e.fs.proc.programOf(tid), e.node.Path, e.node.ETag)
	}
}

// entryPath reports whether a catalog entry would be at path: NAME.json in the
// root or in a database, where a path leads to what is called NAME.
func entryPath(path string) bool {
	_, base := parent(path)
	name, ok := strings.CutSuffix(base, ".json")
	return ok && strings.Count(path, "/") < 2 && name != "" && name != "." && name != ".." && name != controlName
}

// entryTurn is the version of an entry that a thread's OPEN met in place of its
// node's. Its next LOOKUP and OPEN are given it.
type entryTurn struct {
	node catalogview.Node
	data []byte
}

// entryTurns are those of all threads. The zero value is none.
type entryTurns struct {
	mu sync.Mutex
	m  map[uint32]*entryTurn
}

// promise keeps t for tid, for a while.
func (e *entryTurns) promise(tid uint32, t *entryTurn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.m == nil {
		e.m = make(map[uint32]*entryTurn)
	}
	e.m[tid] = t
	time.AfterFunc(pendingLife, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.m[tid] == t {
			delete(e.m, tid)
		}
	})
}

// promised returns what is kept for tid of path, or nil.
func (e *entryTurns) promised(tid uint32, path string) *entryTurn {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.m[tid]; t != nil && t.node.Path == path {
		return t
	}
	return nil
}

// take is promised, and ends the promise.
func (e *entryTurns) take(tid uint32, path string) *entryTurn {
	t := e.promised(tid, path)
	if t != nil {
		e.mu.Lock()
		delete(e.m, tid)
		e.mu.Unlock()
	}
	return t
}

// contentHandle is an open file whose bytes are at hand.
type contentHandle struct{ data []byte }

var _ gofs.FileReader = (*contentHandle)(nil)

// Read copies from the bytes.
func (h *contentHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off >= int64(len(h.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(h.data[off:min(off+int64(len(dest)), int64(len(h.data)))]), 0
}

// contentNode is a control file: bytes made at the look-up, one node a content.
type contentNode struct {
	fixed
	fs   *FS
	ino  uint64
	data []byte
	made time.Time
	mode uint32
}

var (
	_ gofs.NodeGetattrer = (*contentNode)(nil)
	_ gofs.NodeOpener    = (*contentNode)(nil)
)

func (f *FS) contentInode(ctx context.Context, d *gofs.Inode, path string, data []byte, out *fuse.EntryOut) *gofs.Inode {
	c := &contentNode{fs: f, ino: f.names.inode(path), data: data, made: time.Now(), mode: uint32(0o444 & f.FileMode &^ f.Umask)}
	if path == child(controlName, configName) {
		c.mode = 0o400
	}
	out.SetEntryTimeout(0)
	out.SetAttrTimeout(0)
	in := d.NewInode(ctx, c, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: c.ino, Gen: generation(string(data))})
	if living, ok := in.Operations().(*contentNode); ok {
		living.attributes(&out.Attr)
	}
	return in
}

func (c *contentNode) attributes(a *fuse.Attr) {
	c.fs.fill(a, c.ino, int64(len(c.data)), c.made)
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|c.mode, c.fs.UID, c.fs.GID
}

// Getattr tells the exact size of what a read returns.
func (c *contentNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	c.attributes(&out.Attr)
	return 0
}

// Open serves the bytes.
func (c *contentNode) Open(_ context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, toErrno(errControl)
	}
	return &contentHandle{data: c.data}, fuse.FOPEN_KEEP_CACHE, 0
}
