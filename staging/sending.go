package staging

import (
	"context"
	"fmt"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// sending is what a File has of one multipart upload, done or under way. All of it
// is guarded by File.mu.
//
// A part is begun behind its writer's back once at most, and only after the write
// that made it full; a change of its range marks it before the bytes change. So what
// is not marked when its request has ended was sent as it is in the spool. What is
// marked is left to [Frozen.Upload].
type sending struct {
	upload *objectstore.Upload // as Record.Upload; nil: not begun
	named  bool                // the record on disk has upload, durably
	parts  map[int]*sentPart   // by index: the part's number less one

	plan    []piece // of the last Frozen.Upload
	planned uint64  // File.changes that plan is of

	begun    bool // the background was asked to begin the upload
	ready    int  // parts [0, ready) were handed to the background
	next     int  // the first of them that it has not looked at
	failures int  // of parts in the background
	stopped  bool // the background begins nothing more
	given    bool // given up: see abandonLocked

	flying inFlight // requests in the background; begun with File.mu held
}

// sentPart is a part that is under way, there, or to be sent anew.
type sentPart struct {
	piece
	part  objectstore.Part // as the store answered, if done
	done  bool
	stale bool // its bytes changed, or it failed: it does not count
}

func newSending() *sending { return &sending{parts: make(map[int]*sentPart)} }

// touch marks the parts that have a byte of [from, to), those that wait for the
// background too. Each write does it, most of them behind all parts.
func (s *sending) touch(from, to, fixed int64) {
	first, last := partOf(from, fixed), min(partOf(to-1, fixed), s.ready-1)
	for i := first; i <= last; i++ {
		if s.parts[i] == nil {
			off, n := partAt(i, fixed)
			s.parts[i] = &sentPart{piece: piece{off: off, n: n}}
		}
		s.parts[i].mark()
	}
	if s.plan == nil {
		return // all parts are on the grid, and before ready
	}
	for _, p := range s.parts {
		if p.off < to && from < p.off+p.n {
			p.mark()
		}
	}
}

func (p *sentPart) mark() { p.stale, p.done = true, false }

// lookUp is part index of the plan, if the store has it.
func (s *sending) lookUp(index int, want piece) (objectstore.Part, bool) {
	p := s.parts[index]
	if p == nil || !p.done || p.stale || p.piece != want {
		return objectstore.Part{}, false
	}
	return p.part, true
}

// settle has the background begin nothing more of s, and waits for what it has.
func (f *File) settle(ctx context.Context, s *sending) error {
	f.mu.Lock()
	s.stopped = true
	f.mu.Unlock()
	if err := s.flying.wait(ctx); err != nil {
		return fmt.Errorf("wait for parts of %s: %w", f.id, err)
	}
	return nil
}

// nameUpload makes u the upload of s, on disk too before it returns without an
// error: from then on a mount that finds the record can abort it. An upload whose
// mount ends between its creation and that is known to nobody, so that nobody may
// abort it; a bucket's lifecycle rule does.
func (f *File) nameUpload(s *sending, u objectstore.Upload) error {
	f.mu.Lock()
	s.upload = &u
	if s.given {
		f.rec.Aborts = append(slices.Clone(f.rec.Aborts), u)
	} else {
		f.rec.Upload = &u
	}
	f.mu.Unlock()
	return f.saveUpload(s)
}

func (f *File) saveUpload(s *sending) error {
	if err := f.saveRecord(true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.named = true
	return nil
}

// createUpload begins the upload of s and names it in the record.
func (f *File) createUpload(ctx context.Context, store objectstore.Multipart, s *sending) error {
	rec := f.Record()
	var opts objectstore.PutOptions
	if f.area.opts.Meta != nil {
		opts.Meta = f.area.opts.Meta(rec)
	}
	u, err := store.CreateUpload(ctx, rec.Target, opts)
	if err != nil {
		return err
	}
	return f.nameUpload(s, u)
}

// Uploaded returns how many bytes of the file the store has by now, of an upload
// that nobody sees yet.
func (f *File) Uploaded() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sending == nil {
		return 0
	}
	var n int64
	for _, p := range f.sending.parts {
		if p.done {
			n += p.n
		}
	}
	return n
}
