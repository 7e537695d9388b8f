package fs

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// draftNode is a catalog entry that is being written: NAME.json, or a file of a
// temporary name beside it, which a rename makes one. It is in memory alone and stays
// with its writers; the catalog has the old entry until it takes the new one, whole, at
// the close that the close rule picks, or at fsync. What the catalog refused is dropped
// with the last descriptor.
type draftNode struct {
	fixed
	fs  *FS
	ino uint64
	id  uint64

	commit commitLock   // held while the entry is written, outside mu
	wrote  writerGroups // who wrote

	mu       sync.Mutex // guards what follows
	data     []byte
	attrs    staging.Attributes
	base     string  // the version that the catalog must have; "": no entry
	begun    string  // the version that the bytes began as
	by       program // opened it for writing last, or renamed it
	changes  uint64  // so far
	written  uint64  // those that the catalog has
	refused  uint64  // those that it did not take
	spoilt   error   // of a write that failed: what is there is not whole
	rule     closeRule
	handles  int // open descriptors, of any kind
	writing  []*draftHandle
	reserved int // promised to threads that have not opened it yet
	doubts   []question[closingProcess]
	lingers  uint64    // waits of a temporary name that began or ended
	idle     time.Time // when the last wait began
	ended    bool
	last     string // the path that it had at its end
}

// draftHandle is an open descriptor on a draft.
type draftHandle struct {
	opener uint32 // thread group; 0: not known
	thread uint32
	write  bool
	append bool
	sync   bool // each write brings an FSYNC of its own
	closed bool // a FLUSH has closed it; guarded by draftNode.mu
}

var (
	_ gofs.NodeGetattrer = (*draftNode)(nil)
	_ gofs.NodeSetattrer = (*draftNode)(nil)
	_ gofs.NodeOpener    = (*draftNode)(nil)
	_ gofs.NodeReader    = (*draftNode)(nil)
	_ gofs.NodeWriter    = (*draftNode)(nil)
	_ gofs.NodeLseeker   = (*draftNode)(nil)
)

// newDraft makes a draft at n, reserved for one open; visible makes the path lead there.
func (f *FS) newDraft(s *draftNode, n draftName, visible bool) error {
	s.fs, s.commit, s.reserved = f, newCommitLock(), 1
	n.opener = s.by
	several := f.drafts.has(n)
	err := f.drafts.add(s, n, visible)
	for errors.Is(err, errDrafts) && f.drafts.dropIdle() {
		err = f.drafts.add(s, n, visible)
	}
	if err != nil {
		return err
	}
	which := "draft\x00" + strconv.FormatUint(s.id, 10)
	s.ino = f.names.inode(n.path)
	if several {
		// A program that has several open of one name closes one of them: which, /proc
		// tells by the inode number alone. (vim insists on that of the name for its one.)
		s.ino = f.names.inode(n.path + "\x00" + which)
	}
	f.root.NewInode(context.Background(), s, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: s.ino, Gen: generation(which)})
	return nil
}

func (s *draftNode) path() string {
	if n, there := s.fs.drafts.name(s); there {
		return n.path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// attributes fills what the writers see. The caller holds mu.
func (s *draftNode) attributes(a *fuse.Attr) {
	s.fs.fill(a, s.ino, int64(len(s.data)), s.attrs.MTime)
	if s.rule.unlinked {
		a.Nlink = 0
	}
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|s.attrs.Mode&0o7777, s.attrs.UID, s.attrs.GID
}

// entry answers a look-up with the node. The name may lead elsewhere the next moment.
func (s *draftNode) entry(out *fuse.EntryOut) *gofs.Inode {
	out.SetEntryTimeout(0)
	out.SetAttrTimeout(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attributes(&out.Attr)
	return s.EmbeddedInode()
}

// Getattr tells of the bytes so far.
func (s *draftNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attributes(&out.Attr)
	return 0
}

// Setattr takes a new size. Mode, owner and times are the draft's alone: tools set them
// and go on. truncate(2) of a name that nobody has open writes the entry in the call.
func (s *draftNode) Setattr(ctx context.Context, fh gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if e := s.truncate(ctx, fh, size); e != 0 {
			return e
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	setAttributes(&s.attrs, in)
	s.attributes(&out.Attr)
	return 0
}

func (s *draftNode) truncate(ctx context.Context, fh gofs.FileHandle, size uint64) syscall.Errno {
	err := s.change(func() error { return s.resize(size) })
	_, byHandle := fh.(*draftHandle)
	if s.fs.drafts.claim(s, thread(ctx)) {
		s.release()
	}
	s.mu.Lock()
	alone := s.handles == 0 && !byHandle
	s.mu.Unlock()
	if !alone {
		return s.fs.fail("truncate", s.path(), err)
	}
	e := s.writeClosed()
	s.end()
	return e
}

// change makes a change of the bytes. One that fails spoils the draft: what is there is
// not what its writer meant.
func (s *draftNode) change(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoilt != nil {
		return s.spoilt
	}
	s.changes++
	s.spoilt = f()
	s.attrs.MTime = time.Now()
	return s.spoilt
}

// resize cuts the bytes, or adds zeros. The caller holds mu.
func (s *draftNode) resize(size uint64) error {
	now := uint64(len(s.data))
	switch {
	case size > uint64(s.fs.View.MaxEntry()):
		return objectstore.ErrTooLarge
	case size > now:
		err := s.fs.drafts.grow(int64(size - now))
		for errors.Is(err, errDrafts) && s.fs.drafts.dropIdle() {
			err = s.fs.drafts.grow(int64(size - now))
		}
		if err != nil {
			return err
		}
		s.data = append(s.data, make([]byte, size-now)...)
	case size < now:
		_ = s.fs.drafts.grow(-int64(now - size)) // less is never refused
		s.data = s.data[:size]
	}
	return nil
}

// Open adds a descriptor. A draft that has ended sends the kernel to look again.
func (s *draftNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	h, ok := s.open(ctx, flags)
	if s.fs.drafts.claim(s, thread(ctx)) {
		s.release()
	}
	switch {
	case !ok && opensToWrite(flags):
		return nil, 0, s.fs.rewrite(ctx, s.path())
	case !ok:
		return nil, 0, toErrno(errSuperseded)
	case flags&syscall.O_TRUNC != 0:
		if err := s.change(func() error { return s.resize(0) }); err != nil {
			_ = s.Release(ctx, h) // the answer is the truncation's
			return nil, 0, s.fs.fail("truncate", s.path(), err)
		}
	}
	return h, fuse.FOPEN_KEEP_CACHE, 0
}

// opensToWrite tells whether an open with flags may change the file.
func opensToWrite(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

func (s *draftNode) open(ctx context.Context, flags uint32) (*draftHandle, bool) {
	h := &draftHandle{
		thread: thread(ctx), write: opensToWrite(flags), append: flags&syscall.O_APPEND != 0, sync: flags&syscall.O_DSYNC != 0,
	}
	var by program
	if h.write {
		by = s.fs.proc.programOf(h.thread)
		h.opener = by.pid
		s.wrote.opened(h.thread, h.opener)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.handles++
	s.lingers++
	if h.write {
		s.by = by
		s.writing = append(s.writing, h)
		s.rule.opened()
	}
	return h, true
}

// Read reads back. Who reads what the catalog had when the draft began has read that
// version.
func (s *draftNode) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	path := s.path()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == s.written && s.begun != "" {
		s.base = s.begun
		s.fs.drafts.reads.note(s.by, path, s.begun)
	}
	n := 0
	if off < int64(len(s.data)) {
		n = copy(dest, s.data[off:])
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// Write takes bytes. An O_APPEND descriptor writes at the end as it is here.
func (s *draftNode) Write(ctx context.Context, fh gofs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	s.wrote.note(thread(ctx), s.fs.proc)
	h, ok := fh.(*draftHandle)
	appends := ok && h.append && !s.fs.mapped.has(ctx)
	err := s.change(func() error {
		if ok && h.closed { // passed on to a process that is no descendant
			h.closed = false
			s.rule.reopen()
		}
		if appends {
			off = int64(len(s.data))
		}
		if err := s.resize(max(uint64(len(s.data)), uint64(off)+uint64(len(data)))); err != nil {
			return err
		}
		copy(s.data[off:], data)
		return nil
	})
	if err != nil {
		return 0, s.fs.fail("write", s.path(), err)
	}
	return uint32(len(data)), 0
}

// Lseek knows no holes.
func (s *draftNode) Lseek(_ context.Context, _ gofs.FileHandle, off uint64, whence uint32) (uint64, syscall.Errno) {
	const seekHole = 4
	s.mu.Lock()
	defer s.mu.Unlock()
	size := uint64(len(s.data))
	switch {
	case off >= size:
		return 0, toErrno(errNoData)
	case whence == seekHole:
		return size, 0
	}
	return off, 0
}
