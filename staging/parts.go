package staging

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// minParts full parts are there before an upload is begun: a smaller file is one
	// request.
	minParts = 2
	// maxFailures of parts in the background, and its file's are left to the publish:
	// a store that is down is not asked again and again.
	maxFailures = 3
	// maxAborts uploads of a file wait to be aborted, and no other is begun in the
	// background: a program that cuts its file again and again while the store takes
	// no aborts would have the record grow.
	maxAborts = 16
)

// touch notes, before it happens, that bytes of [from, to) change: the parts there
// count no more. What the record has of the bytes as they were goes too, on disk
// first: a recovery would take the old parts, or the old checksum, for the new bytes'.
func (f *File) touch(from, to int64) error {
	if from >= to {
		return nil
	}
	f.mu.Lock()
	if s := f.sending; s != nil {
		s.touch(from, to, f.area.opts.PartSize)
	}
	noted := f.rec.Parts != nil || f.rec.Sum != ""
	f.rec.Parts, f.rec.Sum = nil, ""
	f.mu.Unlock()
	if !noted {
		return nil
	}
	return f.saveRecord(f.promised)
}

// grew notes that [from, to) was written. Parts that are full by it, of what was
// written from the start on without a gap, go up in the background.
func (f *File) grew(from, to int64) {
	if from > f.prefix || to <= f.prefix {
		return
	}
	f.prefix = to
	if _, ok := f.area.multipart(); !ok || !f.final || !f.cur.whole() {
		return
	}
	if ready := min(partOf(f.prefix, f.area.opts.PartSize), objectstore.MaxParts); ready >= minParts {
		f.offer(ready)
	}
}

// offer hands the parts [0, ready) to the background, as far as it has not got them.
func (f *File) offer(ready int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sending
	if s == nil {
		if len(f.rec.Aborts) >= maxAborts {
			return
		}
		s = newSending()
		f.sending = s
	}
	more := ready - s.ready
	if s.stopped || more <= 0 {
		return
	}
	s.ready = ready
	switch {
	case s.named:
		f.area.work.add(func(ctx context.Context) { f.sendBehind(ctx, s) }, more)
	case !s.begun:
		s.begun = true
		f.area.work.add(func(ctx context.Context) { f.beginBehind(ctx, s) }, 1)
	}
}

// beginBehind begins the upload, once, and then has the parts sent that wait for it.
func (f *File) beginBehind(ctx context.Context, s *sending) {
	store, ok := f.area.multipart()
	if !ok || f.area.work.acquire(ctx) != nil {
		return
	}
	defer f.area.work.release()
	if !f.takeOff(s) {
		return
	}
	err := f.createUpload(ctx, store, s)
	f.mu.Lock()
	if err != nil {
		f.stopLocked(ctx, s, err)
	} else if !s.stopped {
		f.area.work.add(func(ctx context.Context) { f.sendBehind(ctx, s) }, s.ready-s.next)
	}
	f.landLocked(s)
	f.mu.Unlock()
}

// takeOff counts a request of s, unless nothing is to be begun.
func (f *File) takeOff(s *sending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.stopped {
		return false
	}
	s.flying.begin()
	return true
}

// sendBehind sends one part in the background.
func (f *File) sendBehind(ctx context.Context, s *sending) {
	store, ok := f.area.multipart()
	if !ok || f.area.work.acquire(ctx) != nil {
		return
	}
	defer f.area.work.release()
	index, p, spool := f.takePart(s)
	if p == nil {
		return
	}
	part, err := store.UploadPart(ctx, *s.upload, index+1, io.NewSectionReader(spool.file, p.off, p.n), p.n)
	spool.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && !p.stale:
		p.part, p.done = part, true
	case err != nil && !p.stale:
		s.failures++
		if p.stale = true; s.failures >= maxFailures || errors.Is(err, objectstore.ErrNoUpload) {
			f.stopLocked(ctx, s, err)
		}
	}
	f.landLocked(s)
}

// takePart returns the next part to send in the background, and what to read it
// from, which the caller releases; nil if there is none.
func (f *File) takePart(s *sending) (int, *sentPart, *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !s.stopped && s.next < s.ready {
		index := s.next
		s.next++
		if s.parts[index] != nil {
			continue // changed while it waited
		}
		off, n := partAt(index, f.area.opts.PartSize)
		p := &sentPart{piece: piece{off: off, n: n}}
		s.parts[index] = p
		s.flying.begin()
		return index, p, f.cur.spool.retain()
	}
	return 0, nil, nil
}

// stopLocked leaves the rest of s to the publish.
func (f *File) stopLocked(ctx context.Context, s *sending, err error) {
	if s.stopped || ctx.Err() != nil {
		s.stopped = true
		return
	}
	s.stopped = true
	f.area.opts.Log.LogAttrs(ctx, slog.LevelWarn, "parts of a file can not be sent while it is written: its publish will send them",
		slog.String("id", f.id), slog.String("path", f.rec.Path), slog.Any("error", err))
}

// cutTo notes that the file was cut, or extended by zeros, to size bytes. One that is
// cut to nothing begins anew.
func (f *File) cutTo(size int64) {
	f.prefix = min(f.prefix, size)
	f.sum.broken = f.sum.broken || size != f.size
	if size > 0 {
		return
	}
	f.sum = runningSum{}
	f.mu.Lock()
	some := f.sending != nil || f.rec.Upload != nil
	f.mu.Unlock()
	if some {
		f.abandon()
	}
}
