package fs

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// stagedNode is a version that is being written. It stays with its writers for
// good: a publish gives the name another node.
type stagedNode struct {
	gofs.Inode
	lockable
	fs   *FS
	file *staging.File

	commit commitLock          // held while the file is published
	latest *objectstore.Object // what was published last; nil: nothing. Guarded by commit
	wrote  writerGroups        // who wrote

	mu        sync.Mutex // guards what follows
	rule      closeRule
	handles   int                        // open descriptors, of any kind
	writing   []*stagedHandle            // those that write
	reserved  int                        // promised to threads that have not opened it yet
	appendOK  bool                       // an appender may join: a writing descriptor is open, nothing failed
	ended     bool                       // given up: not to be joined or found any more
	doubts    []question[closingProcess] // what FLUSHes could not find out in time
	refused   bool                       // a publish failed, of the bytes at refusedAt
	refusedAt uint64
	hold      staging.Hold // why it is not published when it is closed
	lingers   uint64       // waits of a temporary name that began or ended
	postponed bool         // the store did not answer at the end of a wait: that is logged
	tried     time.Time    // when a drain last tried to publish what lingers
	opened    time.Time    // for writing, last
	passed    bool         // its name leads to an object with its bytes: nobody is to write here any more
	sums      string       // the version whose checksums it has, once that is published; see companion.go

	heir *objectstore.Object // what the name leads to, once handOver has ended the wait of a backup
}

var (
	_ gofs.NodeGetattrer     = (*stagedNode)(nil)
	_ gofs.NodeSetattrer     = (*stagedNode)(nil)
	_ gofs.NodeOpener        = (*stagedNode)(nil)
	_ gofs.NodeReader        = (*stagedNode)(nil)
	_ gofs.NodeWriter        = (*stagedNode)(nil)
	_ gofs.NodeFlusher       = (*stagedNode)(nil)
	_ gofs.NodeFsyncer       = (*stagedNode)(nil)
	_ gofs.NodeReleaser      = (*stagedNode)(nil)
	_ gofs.NodeAllocater     = (*stagedNode)(nil)
	_ gofs.NodeLseeker       = (*stagedNode)(nil)
	_ gofs.NodeGetxattrer    = (*stagedNode)(nil)
	_ gofs.NodeListxattrer   = (*stagedNode)(nil)
	_ gofs.NodeSetxattrer    = (*stagedNode)(nil)
	_ gofs.NodeRemovexattrer = (*stagedNode)(nil)
	_ gofs.NodeSetlker       = (*stagedNode)(nil)
	_ gofs.NodeSetlkwer      = (*stagedNode)(nil)
	_ gofs.NodeGetlker       = (*stagedNode)(nil)
)

// stagedHandle is an open descriptor on a staged node.
type stagedHandle struct {
	opener      uint32 // thread group that opened it; 0: not known
	thread      uint32 // thread that did
	read, write bool
	append      bool
	sync        bool // O_SYNC or O_DSYNC: each write brings an FSYNC of its own
	// closed: a FLUSH has closed it. It is set under stagedNode.mu.
	closed atomic.Bool
	// flushed: there was a FLUSH since the last write, be it of a duplicate.
	flushed atomic.Bool
}

// newWrite describes a write to the target of path.
func newWrite(path string, t catalogview.Target) staging.NewWrite {
	w := staging.NewWrite{Target: t.Location, Prefix: t.Prefix, Path: path, Final: true}
	if !t.Hidden {
		w.Format = t.Format
	}
	return w
}

// stage begins a write and gives it a node, reserved for one open; visible makes
// its name lead there.
func (f *FS) stage(ctx context.Context, w staging.NewWrite, visible bool) (*stagedNode, error) {
	file, err := f.Area.Create(ctx, w)
	if err != nil {
		return nil, err
	}
	return f.nodeOf(file, w.Path, visible), nil
}

func (s *stagedNode) path() string {
	p, _ := s.fs.names.pathOf(s.name)
	return p
}

// join reserves the node for an O_APPEND open, if it may share it. It is called
// under names.mu, so it must not wait: who finds the node busy begins a version
// of its own, whose publish goes behind this one's.
func (s *stagedNode) join() bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if !s.appendOK || s.ended {
		return false
	}
	s.reserved++
	return true
}

// arrived ends thread tid's reservation, if it has one.
func (s *stagedNode) arrived(tid uint32) {
	if s.fs.names.keep(s, tid) {
		s.release()
	}
}

// release gives back a reservation.
func (s *stagedNode) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// refill reserves the node for an open, if it is an empty file of a format that
// has none, closed, which waits for its bytes. It is called under names.mu, as
// join is.
func (s *stagedNode) refill() bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.handles > 0 || s.reserved > 0 || s.ended || s.rule.unlinked || s.file.Size() > 0 || !s.file.Touched() {
		return false
	}
	s.reserved++
	return true
}

// attributes fills the attributes that the writers see.
func (s *stagedNode) attributes(a *fuse.Attr) {
	r := s.file.Record()
	s.fs.fill(a, s.name.ino, s.file.Size(), r.MTime)
	a.Nlink = s.fs.names.links(s.name)
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|r.Mode&0o7777, r.UID, r.GID
}

// entry answers a look-up with the node; the kernel must ask each time, for the
// name may lead elsewhere the next moment.
func (s *stagedNode) entry(out *fuse.EntryOut) {
	out.SetEntryTimeout(0)
	out.SetAttrTimeout(0)
	s.attributes(&out.Attr)
}

// Getattr reads the spool's state.
func (s *stagedNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	s.attributes(&out.Attr)
	return 0
}

// Setattr changes attributes and size. truncate(2) of a name that nobody has
// open publishes within the call.
func (s *stagedNode) Setattr(ctx context.Context, fh gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	path := s.path()
	leave, err := s.fs.txns.enter(path)
	if err != nil {
		return s.fs.fail("setattr", path, err)
	}
	defer leave()
	if size, ok := in.GetSize(); ok {
		if e := s.truncate(ctx, fh, int64(size)); e != 0 {
			return e
		}
	}
	a := s.file.Record().Attributes
	if setAttributes(&a, in) {
		s.file.SetAttributes(a)
		s.keepPublished(in)
		s.noteHeld()
	}
	s.attributes(&out.Attr)
	return 0
}

// keepPublished keeps attributes that were set while there is nothing to
// publish: they are the published version's, which stays as it is.
func (s *stagedNode) keepPublished(in *fuse.SetAttrIn) {
	s.commit.Lock()
	defer s.commit.Unlock()
	s.mu.Lock()
	heir, passed := s.heir, s.passed
	s.mu.Unlock()
	r := s.file.Record()
	switch {
	case passed:
		s.fs.keepAttributes(s.fs.names.location(s.name), heir.ETag, in)
	case r.Base == nil || s.file.Dirty():
	case heir != nil && s.latest == nil:
		s.fs.keepAttributes(r.Target, heir.ETag, in)
	default:
		s.fs.keepAttributes(r.Target, r.Base.ETag, in)
	}
}

func setAttributes(a *staging.Attributes, in *fuse.SetAttrIn) (changed bool) {
	if m, ok := in.GetMode(); ok {
		a.Mode, changed = m&0o7777, true
	}
	if u, ok := in.GetUID(); ok {
		a.UID, changed = u, true
	}
	if g, ok := in.GetGID(); ok {
		a.GID, changed = g, true
	}
	if t, ok := in.GetMTime(); ok {
		a.MTime, a.MTimeSet, changed = t, true, true
	}
	return changed
}

func (s *stagedNode) truncate(ctx context.Context, fh gofs.FileHandle, size int64) syscall.Errno {
	if !s.reserve() {
		return s.fs.reopen(ctx, s.name, syscall.O_WRONLY)
	}
	defer s.unclaimed()
	work, cancel := s.fs.lasting()
	defer cancel()
	if err := s.file.Truncate(work, size); err != nil {
		return s.fs.fail("truncate", s.path(), err)
	}
	s.arrived(thread(ctx))
	if _, byHandle := fh.(*stagedHandle); byHandle {
		return 0
	}
	s.mu.Lock()
	alone := len(s.writing) == 0
	s.mu.Unlock()
	if !alone {
		return 0
	}
	if hold := s.holding(); hold != staging.Unheld {
		return s.closedHeld(work, hold)
	}
	return s.publish(work)
}

// Open adds a descriptor.
func (s *stagedNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	h, ok := s.open(ctx, flags, false)
	s.arrived(thread(ctx))
	if !ok && flags&syscall.O_ACCMODE != syscall.O_RDONLY && s.fs.txns.committing(s.path()) {
		return nil, 0, s.fs.fail("open", s.path(), errTransactionBusy)
	}
	if !ok {
		return nil, 0, s.fs.reopen(ctx, s.name, flags)
	}
	if flags&syscall.O_TRUNC != 0 {
		work, cancel := s.fs.background()
		defer cancel()
		if err := s.file.Truncate(work, 0); err != nil {
			_ = s.Release(ctx, h) // the answer is the truncation's
			return nil, 0, s.fs.fail("truncate", s.path(), err)
		}
	}
	return h, fuse.FOPEN_KEEP_CACHE, 0
}

// open adds a descriptor; false when the version has ended meanwhile. One that
// creates has a new file to publish, be it open for reading alone.
func (s *stagedNode) open(ctx context.Context, flags uint32, creates bool) (*stagedHandle, bool) {
	mode := flags & syscall.O_ACCMODE
	h := &stagedHandle{
		thread: thread(ctx), append: flags&syscall.O_APPEND != 0, sync: flags&syscall.O_DSYNC != 0,
		read: mode != syscall.O_WRONLY, write: mode != syscall.O_RDONLY || creates,
	}
	if h.write {
		h.opener = s.fs.proc.threadGroup(h.thread)
		s.wrote.opened(h.thread, h.opener)
	}
	path := s.path()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || h.write && (s.passed || s.fs.txns.committing(path)) { // a commit looks at the handles once it is known of
		return nil, false
	}
	s.handles++
	s.lingers++
	if h.write {
		s.opened = time.Now()
		s.writing = append(s.writing, h)
		s.rule.opened()
		s.appendOK = true
	}
	return h, true
}

// Read reads back what was written.
func (s *stagedNode) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := s.file.ReadAt(s.fs.operations.New(context.Background()), dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.fs.fail("read", s.path(), err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// Write takes bytes into the spool. An O_APPEND descriptor writes at the end as
// it is here: the kernel's idea of it is old after a rebase.
func (s *stagedNode) Write(ctx context.Context, fh gofs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	s.wrote.note(thread(ctx), s.fs.proc)
	var n int
	var err error
	work := s.fs.operations.New(context.Background()) // it does not end: a write is in memory or on a disk
	h, ok := fh.(*stagedHandle)
	if ok {
		h.flushed.Store(false)
	}
	if ok && h.closed.Load() {
		s.reopenHandle(h) // passed on to a process that is no descendant
	}
	if ok && h.append && !s.fs.mapped.has(ctx) {
		n, err = s.file.Append(work, data)
	} else {
		n, err = s.file.WriteAt(work, data, off)
	}
	if err != nil {
		return uint32(n), s.fs.fail("write", s.path(), err)
	}
	return uint32(n), 0
}

func (s *stagedNode) reopenHandle(h *stagedHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.closed.CompareAndSwap(true, false) {
		s.rule.reopen()
	}
}

// Allocate is fallocate(2) without hole punching.
func (s *stagedNode) Allocate(_ context.Context, _ gofs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if mode&^fallocKeepSize != 0 {
		return toErrno(errUnsupported)
	}
	work, cancel := s.fs.background()
	defer cancel()
	return s.fs.fail("allocate", s.path(), s.file.Allocate(work, int64(off), int64(size), mode&fallocKeepSize != 0))
}

const fallocKeepSize = 1 // FALLOC_FL_KEEP_SIZE

// Lseek finds data and holes.
func (s *stagedNode) Lseek(_ context.Context, _ gofs.FileHandle, off uint64, whence uint32) (uint64, syscall.Errno) {
	n, err := s.file.Seek(int64(off), int(whence))
	if errors.Is(err, io.EOF) {
		return 0, toErrno(errNoData)
	}
	if err != nil {
		return 0, toErrno(err)
	}
	return uint64(n), 0
}
