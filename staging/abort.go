package staging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// An upload that is not needed any more is named by Record.Aborts until the store
// has freed it. Its parts under way end first: one that is still being made would
// outlive the abort. A record with Aborts stays on disk when its bytes go, in state
// Aborting; its directory goes after the last of them. A file that was published
// goes on meanwhile, and takes the directory over for its next version.

// abandonLocked gives the upload up; queueAbort is to follow, without mu.
func (f *File) abandonLocked() {
	s := f.sending
	f.sending, f.rec.Parts = nil, nil
	if u := f.rec.Upload; u != nil {
		f.rec.Aborts = append(slices.Clone(f.rec.Aborts), *u)
		f.rec.Upload, f.stale = nil, true
	}
	if s == nil {
		return
	}
	s.stopped, s.given = true, true
	if s.flying.any() {
		f.ending = append(f.ending, s)
	}
}

// abandon gives the upload up and has it aborted.
func (f *File) abandon() {
	f.mu.Lock()
	f.abandonLocked()
	f.mu.Unlock()
	f.queueAbort()
}

// landLocked counts a request of s out. The last one of an upload that was given up
// lets it be aborted.
func (f *File) landLocked(s *sending) {
	if !s.flying.end() || !s.given {
		return
	}
	f.ending = slices.DeleteFunc(f.ending, func(e *sending) bool { return e == s })
	f.area.abortLater(f)
}

// pendingLocked tells whether uploads are to be aborted, now or later.
func (f *File) pendingLocked() bool { return len(f.rec.Aborts) > 0 || len(f.ending) > 0 }

// queueAbort has the background abort what can be.
func (f *File) queueAbort() {
	f.mu.Lock()
	some := len(f.rec.Aborts) > 0
	f.mu.Unlock()
	if some {
		f.area.abortLater(f)
	}
}

// abortLater has the background abort what f does not need. AbortUploads waits for it.
func (a *Area) abortLater(f *File) {
	a.aborts.begin()
	queued := a.work.add(func(ctx context.Context) {
		defer a.aborts.end()
		f.abortBehind(ctx)
	}, 1)
	if !queued {
		a.aborts.end()
	}
}

func (f *File) abortBehind(ctx context.Context) {
	err := f.abortUploads(ctx)
	if err != nil && ctx.Err() == nil {
		f.area.opts.Log.LogAttrs(ctx, slog.LevelWarn, "an upload that is not needed is still in the store: it will be aborted later",
			slog.String("id", f.id), slog.Any("error", err))
	}
}

// Aborting counts the writes that ended and have uploads that are yet to be aborted.
func (a *Area) Aborting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.aborting)
}

// AbortUploads frees what the uploads take that records name and nobody needs
// ([Record].Aborts), those of earlier mounts too. What could not be is tried again
// by the next call, or the next mount.
func (a *Area) AbortUploads(ctx context.Context) error {
	ctx, leave, ok := a.work.enter(ctx)
	if !ok {
		return fmt.Errorf("abort uploads: %w", ErrDropped)
	}
	defer leave()
	files := a.Files()
	a.mu.Lock()
	for _, f := range a.aborting {
		files = append(files, f)
	}
	a.mu.Unlock()
	var all error
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return errors.Join(all, fmt.Errorf("abort uploads: %w", err))
		}
		all = errors.Join(all, f.abortUploads(ctx))
	}
	if err := a.aborts.wait(ctx); err != nil { // what the background is freeing
		return errors.Join(all, fmt.Errorf("abort uploads: %w", err))
	}
	return all
}

// abortUploads aborts those of the file that have no parts under way and are not
// being aborted.
func (f *File) abortUploads(ctx context.Context) error {
	uploads, err := f.takeAborts()
	var done []objectstore.Upload
	for i := 0; err == nil && i < len(uploads); i++ {
		if err = f.abortUpload(ctx, uploads[i]); err == nil {
			done = append(done, uploads[i])
		}
	}
	return errors.Join(err, f.aborted(uploads, done))
}

func (f *File) abortUpload(ctx context.Context, u objectstore.Upload) error {
	store, ok := f.area.multipart()
	if !ok {
		return fmt.Errorf("abort upload of %q: %w", u.Key, errors.ErrUnsupported)
	}
	return store.AbortUpload(ctx, u)
}

// takeAborts returns the uploads to abort now, which the record on disk names;
// aborted is to follow. A write that is being dropped has none: its last record names
// them, and has them aborted.
func (f *File) takeAborts() ([]objectstore.Upload, error) {
	f.disk.Lock()
	defer f.disk.Unlock()
	uploads := f.freeAborts()
	if len(uploads) == 0 {
		return nil, nil
	}
	if !f.onDisk {
		return uploads, fmt.Errorf("abort uploads of %s: no record names them: %w", f.id, ErrDropped)
	}
	return uploads, f.saveLocked(false)
}

// freeAborts takes what nothing else aborts or sends parts for.
func (f *File) freeAborts() []objectstore.Upload {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped && f.onDisk && !f.bare {
		return nil
	}
	var uploads []objectstore.Upload
	for _, u := range f.rec.Aborts {
		flies := slices.ContainsFunc(f.ending, func(s *sending) bool { return s.upload != nil && *s.upload == u })
		if !flies && !slices.Contains(f.freeing, u) {
			uploads = append(uploads, u)
		}
	}
	f.freeing = append(f.freeing, uploads...)
	return uploads
}

// aborted takes done out of the record, and what is left of a write without bytes
// off the disk with the last of them.
func (f *File) aborted(tried, done []objectstore.Upload) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	f.mu.Lock()
	f.freeing = slices.DeleteFunc(f.freeing, func(u objectstore.Upload) bool { return slices.Contains(tried, u) })
	left := slices.DeleteFunc(slices.Clone(f.rec.Aborts), func(u objectstore.Upload) bool { return slices.Contains(done, u) })
	f.rec.Aborts = left
	over := f.bare && !f.pendingLocked()
	gone := over && f.dropped
	f.mu.Unlock()
	switch {
	case over:
		if err := f.removeBare(); err != nil {
			return err
		}
		if gone {
			f.area.forgetAborting(f.id)
		}
	case len(done) > 0:
		return f.saveLocked(false)
	}
	return nil
}

// leave keeps the record of a dropped write until its uploads are aborted.
func (a *Area) leave(f *File) {
	f.disk.Lock()
	bare := f.bare
	f.disk.Unlock()
	a.mu.Lock()
	delete(a.files, f.id)
	if bare && a.aborting != nil {
		a.aborting[f.id] = f
	}
	a.mu.Unlock()
	if bare {
		a.abortLater(f)
	}
}

func (a *Area) forgetAborting(id string) {
	a.mu.Lock()
	delete(a.aborting, id)
	a.mu.Unlock()
}
