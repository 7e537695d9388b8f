package fs

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// defaultLinger is how long a closed file of a temporary name waits: tools rename
// theirs within milliseconds.
const defaultLinger = 10 * time.Second

// triedHolds is how long no other drain tries again what one has tried: the command
// that unmounts has the mount drain, and so does the end that it brings.
const triedHolds = 2 * DrainIdle

// lingersAtOnce bounds the publishes of lingering files when the mount ends.
const lingersAtOnce = 16

// holding is why the version is not published when it is closed.
func (s *stagedNode) holding() staging.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold
}

// private reports whether the version is the mount's alone, whoever wrote how much of
// it, as files of staging trees are to their jobs. Those of a transaction are to be
// published: what a killed writer left is torn.
func (s *stagedNode) private() bool {
	return s.holding() == staging.Local && !inTransaction(s.path())
}

// closedHeld answers a close that publishes nothing, because of the name. What a
// temporary name has is durable: it may yet be published under it. A local name's
// bytes are as safe as those of any file of this machine that nobody synced.
func (s *stagedNode) closedHeld(ctx context.Context, hold staging.Hold) syscall.Errno {
	if hold == staging.Local {
		return s.fs.fail("close", s.path(), s.file.Note())
	}
	return s.fs.fail("close", s.path(), s.file.Sync(ctx))
}

// noteHeld keeps attributes that were set on a file which nobody has open: what is not
// published may outlive the mount.
func (s *stagedNode) noteHeld() {
	s.mu.Lock()
	lies := s.hold != staging.Unheld && s.handles == 0
	s.mu.Unlock()
	if !lies {
		return
	}
	if err := s.file.Note(); err != nil {
		s.fs.fail("record", s.path(), err)
	}
}

// linger begins the wait of a temporary name that nobody has open: for its rename or
// its removal. An open ends it, and the last close begins it anew.
func (s *stagedNode) linger() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != staging.Temporary || s.handles > 0 || s.reserved > 0 || s.ended {
		return
	}
	s.lingers++
	turn := s.lingers
	time.AfterFunc(s.fs.TemporaryLinger, func() { s.lingered(turn) })
}

// lingered ends the wait that was the turn's, unless something ended it before.
func (s *stagedNode) lingered(turn uint64) {
	s.mu.Lock()
	over := s.lingers == turn && s.waits()
	s.mu.Unlock()
	if over && !s.fs.draining.Load() { // else Drain does it
		s.endLinger()
	}
}

// waits reports whether the version lingers. The caller holds mu.
func (s *stagedNode) waits() bool {
	return s.hold == staging.Temporary && s.handles == 0 && s.reserved == 0 && !s.ended && !s.rule.unlinked
}

// left reports whether the version lingers, or will once the last RELEASE is here: a
// mount may end before that, and then it never comes.
func (s *stagedNode) left() bool {
	s.mu.Lock()
	lingers := s.waits()
	coming := s.hold == staging.Temporary && s.handles > 0 && s.reserved == 0 && !s.rule.unlinked && !s.rule.torn
	s.mu.Unlock()
	if lingers || !coming || !s.idle() {
		return lingers
	}
	if !s.whole() {
		s.tear()
		return false
	}
	return true
}

// endLinger publishes a lingering file under its temporary name. That it could not is
// logged, and the file kept and shown; it lingers anew where the store did not answer.
func (s *stagedNode) endLinger() {
	ctx, cancel := s.fs.lasting()
	defer cancel()
	if s.publish(ctx) == 0 {
		s.unhold(ctx) // an empty file of a format that has none waits on, for its bytes
	}
	s.end()
}

// unhold ends what holds the file back: each close publishes from now on. One that came
// before, and after what was published last, was answered 0 and published nothing: so
// what it closed is published here, unless another writer has it open.
func (s *stagedNode) unhold(ctx context.Context) {
	s.mu.Lock()
	s.hold = staging.Unheld
	s.mu.Unlock()
	if !s.idle() {
		return
	}
	s.mu.Lock()
	facts := s.facts()
	wanted := s.rule.needsFacts(facts) && !facts.refused
	s.mu.Unlock()
	switch {
	case !wanted:
	case s.whole():
		_ = s.publish(ctx) // its failure is logged and shown
	default:
		s.tear()
	}
}

// isPublished reports whether some version of the file was published.
func (s *stagedNode) isPublished() bool {
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.latest != nil
}

// postpone has a lingering file, whose publish failed with err, linger anew, if it is
// that the store did not answer: it is found by its name and can be renamed, and the
// log has it once. The caller holds commit.
func (s *stagedNode) postpone(err error) bool {
	if !errors.Is(err, objectstore.ErrUnavailable) || s.file.Poisoned() != nil || s.file.Record().Hold != staging.Temporary {
		return false
	}
	if noted := s.file.SetState(staging.Staged, err.Error()); noted != nil {
		s.fs.fail("record", s.path(), noted)
		return false
	}
	s.mu.Lock()
	logged := s.postponed
	s.postponed = true
	s.mu.Unlock()
	if !logged {
		s.fs.fail(opPublish, s.path(), err)
	}
	return true
}

// withdraw removes what a publish of a temporary name made that nobody had an answer
// of, since the file gets another name. The caller holds commit.
func (s *stagedNode) withdraw(ctx context.Context) error {
	r := s.file.Record()
	if !r.Unsettled || r.Hold != staging.Temporary {
		return nil
	}
	now, err := s.fs.Store.Stat(ctx, r.Target)
	if err == nil && now.Meta[objectstore.MetaWriteID] == s.file.ID() {
		err = s.fs.deleteExactly(ctx, now)
		s.fs.vanished(r.Path, r.Target)
	}
	if err != nil && !supersedes(err) {
		return err
	}
	return s.file.Settled()
}

// drainTries reports whether a drain is to publish the file: none has a moment ago.
func (s *stagedNode) drainTries() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fs.draining.Load() && !s.tried.IsZero() && time.Since(s.tried) < triedHolds {
		return false
	}
	s.tried = time.Now()
	return true
}

// endLingers publishes the lingering files for which belongs says so.
func (f *FS) endLingers(belongs func(path string) bool) {
	over := make(chan struct{})
	slots := make(chan struct{}, lingersAtOnce)
	waiting := f.names.held(staging.Temporary)
	for _, s := range waiting {
		go func() {
			defer func() { over <- struct{}{} }()
			slots <- struct{}{}
			defer func() { <-slots }()
			if belongs(s.path()) && s.left() && s.drainTries() {
				s.endLinger()
			}
		}()
	}
	for range waiting {
		<-over
	}
}

// held returns the unpublished files that are held so.
func (t *names) held(hold staging.Hold) []*stagedNode {
	t.mu.Lock()
	all := make([]*stagedNode, 0, len(t.byID))
	for _, s := range t.byID {
		all = append(all, s)
	}
	t.mu.Unlock()
	kept := all[:0]
	for _, s := range all {
		if s.holding() == hold {
			kept = append(kept, s)
		}
	}
	return kept
}

// adopt makes the local files of earlier mounts files of this one. Checksums of
// files that are published may have been outdated in between, and go.
func (f *FS) adopt() {
	f.finishTreeMoves()
	for _, w := range f.Area.Files() {
		r := w.Record()
		if !w.Recovered() || r.Hold != staging.Local || r.State != staging.Staged || w.Lost() {
			continue
		}
		if _, batched := f.Area.BatchOf(r.ID); batched {
			continue // it is about to be published
		}
		if _, sum := summed(r.Path); sum && !belowStagingTree(r.Path) {
			if err := w.Drop(); err != nil {
				f.Log.Warn("an old checksum stays in the state directory", attrPath(r.Path), slog.Any("error", err))
			}
			continue
		}
		if s, _, _ := f.names.stagedAt(r.Path, 0); s != nil {
			continue
		}
		s := f.nodeOf(w, r.Path, true)
		s.release()
	}
}

// nodeOf gives a staged file its node, reserved for one open; visible makes its name
// lead there.
func (f *FS) nodeOf(file *staging.File, path string, visible bool) *stagedNode {
	file.Acquire()
	nm := f.names.acquire(path) // the write's reference, given back by end
	// Reserved from the start: an unlink or a rename over the name, before the open
	// that the write is made for, must not end it.
	s := &stagedNode{
		fs: f, file: file, lockable: lockable{locks: f.locks, held: held{name: nm}}, reserved: 1, commit: newCommitLock(),
		hold: file.Record().Hold,
	}
	if f.PublishKilled {
		s.rule.onKilled = killedPublish
	}
	f.names.addWriter(s, visible)
	f.root.NewInode(context.Background(), s, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: nm.ino, Gen: generation(file.ID())})
	return s
}
