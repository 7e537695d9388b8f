package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

var (
	_ gofs.NodeFlusher  = (*draftNode)(nil)
	_ gofs.NodeFsyncer  = (*draftNode)(nil)
	_ gofs.NodeReleaser = (*draftNode)(nil)
)

// facts are the draft's, for the close rule. The caller holds mu.
func (s *draftNode) facts() fileFacts {
	return fileFacts{publishable: s.changes > s.written, touched: s.changes > 0, refused: s.refused == s.changes}
}

// unwritten tells whether a program has the draft open with what the catalog lacks, and
// was not told so.
func (s *draftNode) unwritten() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.facts()
	return s.handles > 0 && s.rule.needsFacts(f) && !f.refused
}

// Flush is close(2) of one duplicate; its answer is close's.
func (s *draftNode) Flush(ctx context.Context, fh gofs.FileHandle) syscall.Errno {
	h, ok := fh.(*draftHandle)
	if !ok || !h.write {
		return 0
	}
	s.mu.Lock()
	needed, torn := s.rule.needsFacts(s.facts()), s.rule.torn
	s.mu.Unlock()
	tid := thread(ctx)
	if torn && (tid == h.thread || s.fs.proc.threadGroup(tid) == h.opener) {
		return toErrno(errTorn)
	}
	if !needed {
		return 0
	}
	fl, doubt := s.fs.proc.closeFacts(tid, h.opener, h.thread, s.ino, &s.wrote)
	s.mu.Lock()
	if doubt != nil {
		s.doubts = append(s.doubts, *doubt)
	}
	todo := s.decide(fl, h)
	s.mu.Unlock()
	switch todo {
	case doPublish:
		return s.writeClosed()
	case doTear:
		s.tear()
	}
	return 0
}

// decide is the close rule's decision on a FLUSH of h. Who closes has let go of every
// descriptor that it opened, not of h alone. The caller holds mu.
func (s *draftNode) decide(fl flushFacts, h *draftHandle) decision {
	if fl.closes() {
		for _, o := range s.writing {
			if o != h && h.opener != 0 && o.opener == h.opener && !o.closed {
				o.closed = true
				s.rule.close()
			}
		}
	}
	fl.again = h.closed
	todo := s.rule.flush(fl, s.facts())
	if fl.closes() && !h.closed {
		h.closed = true
		s.rule.close()
	}
	return todo
}

// tear drops the bytes of a writer that was killed.
func (s *draftNode) tear() {
	s.fs.drafts.hide(s)
	s.fs.Log.Warn("writer killed: the entry is not written", attrPath(s.path()))
}

// whole settles what FLUSHes left in doubt before a RELEASE writes: that no writer was
// killed.
func (s *draftNode) whole() bool {
	s.mu.Lock()
	doubts := s.doubts
	s.doubts = nil
	s.mu.Unlock()
	for _, d := range doubts {
		if then, _ := d.answer(doubtLimit); then.end != endNone {
			s.mu.Lock()
			s.rule.torn = true
			s.mu.Unlock()
			return false
		}
	}
	return true
}

// Fsync writes the entry. On an O_SYNC descriptor it comes with each write, which is no
// sign of a whole: the close writes.
func (s *draftNode) Fsync(_ context.Context, fh gofs.FileHandle, _ uint32) syscall.Errno {
	if h, ok := fh.(*draftHandle); !ok || !h.write || h.sync {
		return 0
	}
	return s.writeClosed()
}

// Release ends a descriptor; the last writing one writes what no FLUSH did.
func (s *draftNode) Release(_ context.Context, fh gofs.FileHandle) syscall.Errno {
	h, ok := fh.(*draftHandle)
	if !ok {
		return 0
	}
	todo := doNothing
	s.mu.Lock()
	if h.write {
		if h.closed {
			s.rule.reopen() // counted once: release takes the handle away
		}
		s.writing = slices.DeleteFunc(s.writing, func(o *draftHandle) bool { return o == h })
		todo = s.rule.release(s.facts())
	}
	s.mu.Unlock()
	if todo == doPublish {
		if s.whole() {
			_ = s.writeClosed() // its failure is logged and shown; nobody waits for it
		} else {
			s.tear()
		}
	}
	s.mu.Lock()
	s.handles--
	s.mu.Unlock()
	s.end()
	return 0
}

// writeClosed puts the bytes into the catalog as they are, unless it has them, or their
// name is a temporary one.
func (s *draftNode) writeClosed() syscall.Errno {
	s.commit.Lock()
	defer s.commit.Unlock()
	n, there := s.fs.drafts.name(s)
	s.mu.Lock()
	idle, spoilt := !s.rule.needsFacts(s.facts()), s.spoilt
	s.mu.Unlock()
	switch {
	case idle || !there || n.gone:
		return 0
	case spoilt != nil:
		return s.fs.fail(opPublish, n.path, spoilt)
	case n.temporary:
		return 0
	}
	err := s.put(n.path)
	s.fs.drafts.hide(s)
	return s.fs.fail(opPublish, n.path, err)
}

// put writes the bytes as the entry at path, of the version that the draft is a change
// of. The caller holds commit.
func (s *draftNode) put(path string) error {
	f := s.fs
	f.publishing.begin()
	defer f.publishing.end()
	s.mu.Lock()
	data, base, by, changes := slices.Clone(s.data), s.base, s.by, s.changes
	s.mu.Unlock()
	ctx, cancel := f.lasting()
	defer cancel()
	now, err := f.View.WriteEntry(ctx, entryOwner(path), data, base, base != "" && f.drafts.reads.made(by, path, base))
	if errors.Is(err, objectstore.ErrNotExist) && base != "" {
		err = fmt.Errorf("%w: %w", objectstore.ErrChanged, err) // removed meanwhile
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.refused = changes
		return err
	}
	s.written, s.base, s.begun = changes, now.ETag, now.ETag
	f.drafts.reads.noteWritten(by, path, now.ETag)
	if base == "" || f.madeEntry(path, base) {
		f.Attr.Set(entryKey(path), now.ETag, attr.Attributes{Made: true})
	}
	f.entryChanged(path)
	return nil
}

// release gives back a reservation.
func (s *draftNode) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// unlink ends what is to become of the draft: nothing.
func (s *draftNode) unlink() {
	s.mu.Lock()
	s.rule.unlinked = true
	s.mu.Unlock()
	s.end()
}

// end lets go of a draft that nobody has open any more. One of a temporary name waits
// for its rename first.
func (s *draftNode) end() {
	n, _ := s.fs.drafts.name(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handles > 0 || s.reserved > 0 || s.ended {
		return
	}
	if n.temporary && !n.gone && !s.rule.unlinked && !s.rule.torn && s.spoilt == nil {
		s.lingers++
		turn := s.lingers
		s.idle = time.Now()
		time.AfterFunc(s.fs.TemporaryLinger, func() { s.lingered(turn) })
		return
	}
	s.endLocked(n.path)
}

func (s *draftNode) endLocked(path string) {
	s.ended, s.last = true, path
	s.fs.drafts.end(s, int64(len(s.data)))
	s.data = nil
}

// lingered drops a temporary name whose wait was the turn's, unless something ended it.
func (s *draftNode) lingered(turn uint64) {
	path := s.path()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lingers != turn || s.handles > 0 || s.reserved > 0 || s.ended {
		return
	}
	s.dropLocked(path)
}

func (s *draftNode) dropLocked(path string) {
	s.endLocked(path)
	s.fs.Log.Warn("dropped a temporary file that was renamed to no entry", attrPath(path))
}

// waitsSince is when the wait of a temporary name began that nobody has open; ok is
// false for what does not wait, and for what is in use this moment: another draft's lock
// may be held, so none is waited for.
func (s *draftNode) waitsSince() (since time.Time, ok bool) {
	if !s.mu.TryLock() {
		return time.Time{}, false
	}
	defer s.mu.Unlock()
	if !s.waitsLocked() {
		return time.Time{}, false
	}
	return s.idle, true
}

func (s *draftNode) waitsLocked() bool {
	return !s.idle.IsZero() && s.handles == 0 && s.reserved == 0 && !s.ended
}

// dropWaiting drops a temporary name that waits, unless it is being renamed or is in use
// again.
func (s *draftNode) dropWaiting(path string) bool {
	if !s.commit.tryLock() {
		return false
	}
	defer s.commit.Unlock()
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if !s.waitsLocked() {
		return false
	}
	s.dropLocked(path)
	return true
}
