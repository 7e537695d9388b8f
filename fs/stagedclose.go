package fs

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// facts are the file's, for the close rule. The caller holds mu.
func (s *stagedNode) facts() fileFacts {
	return fileFacts{
		publishable: s.file.Dirty() || s.file.Poisoned() != nil, touched: s.file.Touched(),
		refused: s.refused && s.refusedAt == s.file.Changes(),
	}
}

// Flush is close(2) of one duplicate; its answer is close's.
func (s *stagedNode) Flush(ctx context.Context, fh gofs.FileHandle) syscall.Errno {
	if l, ok := s.fs.owners.of(ctx); ok {
		s.closed(l.owner, false)
	}
	h, ok := fh.(*stagedHandle)
	if !ok || !h.write {
		return 0
	}
	h.flushed.Store(true)
	if s.private() && s.file.Poisoned() == nil {
		return 0
	}
	s.mu.Lock()
	needed, torn := s.rule.needsFacts(s.facts()), s.rule.torn
	others := s.others(h)
	s.mu.Unlock()
	if torn {
		return s.tornFor(h, thread(ctx))
	}
	if !needed {
		return 0
	}
	fl := s.flushFacts(ctx, h)
	s.mu.Lock()
	if fl.closes() {
		s.closeAll(others)
	}
	fl.again = h.closed.Load()
	todo := s.rule.flush(fl, s.facts())
	if fl.closes() && h.closed.CompareAndSwap(false, true) {
		s.rule.close()
	}
	s.mu.Unlock()
	work, cancel := s.fs.lasting()
	defer cancel()
	switch todo {
	case doPublish:
		return s.publishClosed(work)
	case doDurable:
		return s.fs.fail("close", s.path(), s.file.Sync(work))
	case doTear:
		s.tear()
	}
	return 0
}

// others are the writing handles that h's opener opened before now. The caller
// holds mu.
func (s *stagedNode) others(h *stagedHandle) []*stagedHandle {
	if len(s.writing) < 2 || h.opener == 0 {
		return nil
	}
	var others []*stagedHandle
	for _, o := range s.writing {
		if o != h && o.opener == h.opener {
			others = append(others, o)
		}
	}
	return others
}

// closeAll notes that handles are closed whose opener was seen to have the file open
// no more. One whose close found another of them open is counted as open until its
// RELEASE, which may come after the last close: that close would leave the publish to
// it, and answer 0. The caller holds mu.
func (s *stagedNode) closeAll(handles []*stagedHandle) {
	for _, o := range handles {
		if slices.Contains(s.writing, o) && o.closed.CompareAndSwap(false, true) {
			s.rule.close()
		}
	}
}

// tornFor answers the close of a torn file: a living opener must not take it for
// published; to other holders it never was theirs.
func (s *stagedNode) tornFor(h *stagedHandle, tid uint32) syscall.Errno {
	if tid == h.thread || s.fs.proc.threadGroup(tid) == h.opener {
		return toErrno(errTorn)
	}
	return 0
}

// flushFacts asks /proc who closes, and who still holds the file.
func (s *stagedNode) flushFacts(ctx context.Context, h *stagedHandle) flushFacts {
	fl, doubt := s.fs.proc.closeFacts(thread(ctx), h.opener, h.thread, s.name.ino, &s.wrote)
	if doubt != nil {
		s.mu.Lock()
		s.doubts = append(s.doubts, *doubt)
		s.mu.Unlock()
	}
	return fl
}

// doubtLimit bounds the wait for what a FLUSH could not find out in time. Nobody waits
// for a RELEASE: on a busy machine what was written to its end must not be kept for
// want of an answer.
const doubtLimit = 30 * time.Second

// whole settles what FLUSHes left in doubt before a RELEASE publishes: that no
// writer was killed. What cannot be found out is kept, not shown to the lake.
func (s *stagedNode) whole() bool {
	s.mu.Lock()
	doubts := s.doubts
	s.doubts = nil
	keep := s.rule.onKilled == killedStage && s.file.Touched()
	s.mu.Unlock()
	for _, d := range doubts {
		then, _ := d.answer(doubtLimit)
		if keep && then.end != endNone {
			s.mu.Lock()
			s.rule.torn = true
			s.mu.Unlock()
			return false
		}
	}
	return true
}

func (s *stagedNode) tear() {
	if err := s.file.SetState(staging.Torn, "its writer was killed by a signal"); err != nil {
		s.fs.fail("record", s.path(), err)
	}
	s.fs.names.hide(s)
	s.fs.Log.Warn("writer killed: file kept, not published", attrPath(s.path()), attrWrite(s.file.ID()))
}

// Fsync publishes the bytes when they are a whole file of their partition's format,
// and else makes them durable here, also where the publish failed. On an O_SYNC
// descriptor it comes with each write, which is no sign of a whole: the close
// publishes.
func (s *stagedNode) Fsync(_ context.Context, fh gofs.FileHandle, _ uint32) syscall.Errno {
	work, cancel := s.fs.lasting()
	defer cancel()
	s.mu.Lock()
	wanted := s.rule.needsFacts(s.facts())
	s.mu.Unlock()
	h, ok := fh.(*stagedHandle)
	if wanted && ok && h.write && !h.sync && s.holding() == staging.Unheld && s.fs.Committer.Check(work, s.file) == nil {
		// What is published is durable by that: no disk is waited for.
		if e := s.publish(work); e != 0 || !s.file.Dirty() {
			return e
		}
	}
	return s.fs.fail("fsync", s.path(), s.file.Sync(work))
}

// Release ends a descriptor; the last writing one publishes what no FLUSH did.
func (s *stagedNode) Release(ctx context.Context, fh gofs.FileHandle) syscall.Errno {
	if l, ok := s.fs.owners.of(ctx); ok && l.flock {
		s.closed(l.owner, true)
	}
	h, ok := fh.(*stagedHandle)
	if !ok {
		return 0
	}
	todo := doNothing
	s.mu.Lock()
	if h.write {
		if h.closed.CompareAndSwap(true, false) {
			s.rule.reopen() // counted once: release takes the handle away
		}
		s.writing = slices.DeleteFunc(s.writing, func(o *stagedHandle) bool { return o == h })
		todo = s.rule.release(s.facts())
		s.appendOK = s.rule.writers > 0 && s.appendOK
	}
	s.mu.Unlock()
	local := s.private()
	if todo == doPublish && !local && !s.whole() {
		s.tear()
		todo = doNothing
	}
	if todo == doPublish {
		work, cancel := s.fs.lasting()
		_ = s.publishClosed(work) // its failure is logged and shown; nobody waits for it
		cancel()
	}
	s.mu.Lock()
	s.handles--
	last := s.handles == 0
	s.mu.Unlock()
	if last {
		s.end()
	}
	return 0
}

// publishClosed publishes what its writers have closed, unless its name is none to
// publish. A spoilt file is refused all the same, and its room given back.
func (s *stagedNode) publishClosed(ctx context.Context) syscall.Errno {
	if hold := s.holding(); hold != staging.Unheld && s.file.Poisoned() == nil {
		return s.closedHeld(ctx, hold)
	}
	return s.publish(ctx)
}

// publish makes the file visible as it is now, and remembers its attributes.
func (s *stagedNode) publish(ctx context.Context) syscall.Errno {
	s.fs.publishing.begin()
	defer s.fs.publishing.end()
	defer s.fs.backups.lockFor(s.file.Record().Path)()
	s.commit.Lock()
	defer s.commit.Unlock()
	if !s.file.Dirty() && s.file.Poisoned() == nil {
		return 0 // another close has published it
	}
	if s.nameless() {
		return 0
	}
	obj, err := s.commitVersion(ctx)
	if isEmpty(err) {
		return 0 // an empty file of a format that has none waits for its bytes
	}
	if unregistered(err) != nil { // published, whatever the catalog says
		s.published(obj)
		return s.fs.fail(opPublish, s.path(), err)
	}
	if err != nil && s.nameless() {
		s.fs.superseded(s.file.Record().Target)
		return 0 // its bytes are nobody's any more
	}
	if err != nil {
		s.fs.superseded(s.file.Record().Target) // it may be there all the same, or another's
		if s.postpone(err) {
			return toErrno(err)
		}
		s.mu.Lock()
		s.appendOK = false
		s.refused, s.refusedAt = true, s.file.Changes()
		s.mu.Unlock()
		s.fs.names.hide(s)
		s.freeRoom()
		return s.fs.fail(opPublish, s.path(), err)
	}
	s.published(obj)
	return 0
}

// commitVersion asks for the publish of the bytes as they are. The caller holds commit.
func (s *stagedNode) commitVersion(ctx context.Context) (objectstore.Object, error) {
	began := time.Now()
	path := s.file.Record().Path
	if err := s.fs.secureBackup(ctx, path); err != nil {
		if noted := s.file.SetState(staging.Failed, err.Error()); noted != nil {
			s.fs.fail("record", path, noted)
		}
		s.fs.refused(ctx, path, err)
		return objectstore.Object{}, err
	}
	obj, err := s.fs.Committer.Commit(ctx, s.file)
	if !isEmpty(err) {
		s.fs.observePublish(began, err)
	}
	switch {
	case err == nil, unregistered(err) != nil:
		s.fs.replaced(s.file.Record().Path)
	case !isEmpty(err):
		s.fs.refused(ctx, path, err)
	}
	return obj, err
}

// published gives the name to the version that was just published. The caller
// holds commit.
func (s *stagedNode) published(obj objectstore.Object) {
	if s.latest == nil {
		s.fs.settleSums(s.path(), obj, s.file.Record().Created)
	} else {
		s.fs.dropSums(s.path())
	}
	s.latest = &obj
	s.fs.remember(s.path(), obj, s.file.Record().Attributes)
	s.fs.names.hide(s)
}

// retract removes what this version published before it was unlinked, if it is
// still there: its publish may have been under way. The caller holds commit.
func (s *stagedNode) retract(ctx context.Context) error {
	o := s.latest
	if o == nil {
		return nil
	}
	s.latest = nil
	path := s.path()
	now, err := s.fs.Store.Stat(ctx, o.Location)
	if err == nil && now.ETag == o.ETag && now.Meta[objectstore.MetaWriteID] == s.file.ID() {
		err = s.fs.deleteExactly(ctx, now)
	}
	s.fs.vanished(path, o.Location)
	if supersedes(err) {
		return nil // gone, by whoever unlinked it, or another's by now
	}
	return err
}

// freeRoom gives back what a file holds that did not fit on the staging disk:
// the next writer must not fail for it.
func (s *stagedNode) freeRoom() {
	if !errors.Is(s.file.Poisoned(), objectstore.ErrNoSpace) {
		return
	}
	if err := s.file.FreeSpool(); err != nil {
		s.fs.fail("drop", s.path(), err)
	}
}

// end lets go of a version that nobody has open any more: what is published
// needs no spool; what could not be published is kept, and shown, unless the
// staging disk was full: then others need the room.
func (s *stagedNode) end() {
	s.mu.Lock()
	if s.handles > 0 || s.reserved > 0 || s.ended {
		s.mu.Unlock()
		return
	}
	waiting := !s.rule.unlinked && s.file.Dirty() && s.file.Record().State == staging.Staged && s.file.Poisoned() == nil
	s.ended = !waiting
	drop := s.rule.unlinked || !s.file.Dirty()
	s.mu.Unlock()
	if waiting { // a name that is held; or an empty Parquet file: found by its name until its bytes come
		s.linger()
		return
	}
	s.fs.names.dropWriter(s)
	s.file.Release()
	s.freeRoom()
	if drop {
		if err := s.file.Drop(); err != nil {
			s.fs.fail("drop", s.path(), err)
		}
	}
	s.fs.names.release(s.name)
}

// abandon ends a reservation whose thread never came back for it.
func (s *stagedNode) abandon() {
	s.mu.Lock()
	s.reserved--
	if s.handles == 0 && s.reserved == 0 && !s.file.Touched() {
		s.rule.unlinked = true
	}
	s.mu.Unlock()
	s.end()
}

// unlink takes the version's name away: it is never published. A publish that is
// under way goes on, for a request that is broken off may take effect all the
// same, and later than it could be looked for: see retract.
func (s *stagedNode) unlink() {
	s.mu.Lock()
	s.rule.unlinked = true
	s.mu.Unlock()
	s.end()
}

// nameless reports whether the version was unlinked.
func (s *stagedNode) nameless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rule.unlinked
}

// remember keeps what a publish set: attributes, and that this mount made it.
func (f *FS) remember(path string, o objectstore.Object, a staging.Attributes) {
	kept := madeAttributes(a)
	if f.flat && kept.MTime == nil {
		// The answer to a write has no time of the object, only one of its own;
		// whoever saw it (make, rsync) must not see another in the next listing.
		t := o.ModTime
		kept.MTime = &t
	}
	f.Attr.Set(attrKey(o.Location), o.ETag, kept)
	f.published(path, o)
}
