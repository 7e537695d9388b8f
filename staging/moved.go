package staging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// DetachMax is the size in bytes up to which [Area.Detach] fetches an object for the
// files over it before it is removed: a removal does not wait for more.
const DetachMax = 64 << 20

// Moving are the files over one version while the version gets another name: nobody
// changes their bytes, and reads that do not find it wait. It is for one goroutine.
type Moving struct {
	area  *Area
	old   objectstore.Object
	files []*File
}

// BeginMove holds the files that began as old, or as a copy of it, until End. It
// waits for their publishes. Where the store has files there are none to hold: a
// descriptor keeps its version.
func (a *Area) BeginMove(ctx context.Context, old objectstore.Object) (*Moving, error) {
	m := &Moving{area: a, old: old}
	for _, f := range a.over(old) { // in an order that no two callers reverse
		if err := f.lockWriting(ctx); err != nil {
			m.End()
			return nil, err
		}
		f.mu.Lock()
		f.moving = make(chan struct{})
		f.mu.Unlock()
		m.files = append(m.files, f)
	}
	return m, nil
}

// Moved notes that the version is now at its new name, as now: what the files have
// not fetched yet they fetch from there, and their condition is that now is there. A
// record that cannot be saved is logged, and reaches the disk with the next change.
func (m *Moving) Moved(now objectstore.Object) {
	for _, f := range m.files {
		if err := f.moved(m.old, now); err != nil {
			m.area.opts.Log.Warn("a staged write does not note on disk that its older object was renamed",
				slog.String("id", f.id), slog.Any("error", err))
		}
	}
}

// End lets the files go on; it may be called again.
func (m *Moving) End() {
	for _, f := range m.files {
		f.mu.Lock()
		close(f.moving)
		f.moving = nil
		f.mu.Unlock()
		f.unlock()
	}
	m.files = nil
}

// over lists the files that began as o, or as a copy of it, and may have to read it
// from the store.
func (a *Area) over(o objectstore.Object) []*File {
	if _, local := a.opts.Store.(objectstore.Opener); local {
		return nil
	}
	var files []*File
	for _, f := range a.Files() {
		f.mu.Lock()
		if isObject(f.rec.Base, o) || isObject(f.rec.Copied, o) {
			files = append(files, f)
		}
		f.mu.Unlock()
	}
	return files
}

func isObject(o *objectstore.Object, of objectstore.Object) bool {
	return o != nil && o.Location == of.Location && o.ETag == of.ETag
}

// moved is Moving.Moved for one file; the holder of writing calls it.
func (f *File) moved(old, now objectstore.Object) error {
	under := isObject(f.under(), old)
	f.mu.Lock()
	if b := f.rec.Base; isObject(b, old) {
		if f.rec.Target == old.Location && f.rec.Cond.IfMatch == matchOf(*b) {
			f.rec.Cond.IfMatch = matchOf(now)
		}
		f.rec.Base = renamedTo(*b, now)
	}
	if c := f.rec.Copied; isObject(c, old) {
		f.rec.Copied = renamedTo(*c, now)
	}
	l, o := f.cur, f.rec.Base
	if f.rec.Copied != nil {
		o = f.rec.Copied
	}
	f.mu.Unlock()
	if under && l.fetches() {
		pinned := newSource(nil, &latePin{store: f.area.opts.Store, obj: *o})
		next := newLayer(l.spool.retain(), pinned, l.baseSize)
		next.have.copy(&l.have)
		f.setLayer(next)
	}
	return f.saveRecord(f.isDurable())
}

// renamedTo is now with was's size, which the rename has left as it was.
func renamedTo(was, now objectstore.Object) *objectstore.Object {
	now.Size = was.Size
	return &now
}

// matchOf is what a condition names of o.
func matchOf(o objectstore.Object) string {
	if o.Match != "" {
		return o.Match
	}
	return o.ETag
}

// fetches tells whether some bytes have to be read from the store.
func (l *layer) fetches() bool {
	return l != nil && l.base != nil && l.base.file == nil && l.have.missing.Load() > 0
}

// layer is what the file consists of at this moment, to be compared and not to be read.
func (f *File) layer() *layer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cur
}

// awaitMove tells whether the file has another layer than l by now, once a
// move that is under way is over.
func (f *File) awaitMove(ctx context.Context, l *layer) bool {
	f.mu.Lock()
	moving := f.moving
	f.mu.Unlock()
	if moving != nil {
		select {
		case <-moving:
		case <-ctx.Done():
			return false
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cur != nil && f.cur != l
}

// Detach makes the files over o independent of it, which is about to be removed: what
// they lack is fetched. For each publish that is under way it waits for patience. Of an object of more than 64 MiB nothing is: reads of it fail
// with objectstore.ErrChanged then, as when others remove it. An error tells of files
// that still need o, and nothing else.
func (a *Area) Detach(ctx context.Context, o objectstore.Object, patience time.Duration) error {
	if o.Size > DetachMax {
		return nil
	}
	var all error
	for _, f := range a.over(o) {
		if err := f.fetchRest(ctx, o, patience); err != nil {
			all = errors.Join(all, fmt.Errorf("detach %s: %w", f.id, err))
		}
	}
	return all
}

// fetchRest brings into the spool what the file has of o alone. It is no change: who
// did not ask for the bytes is not told of a full disk, and nothing is poisoned.
func (f *File) fetchRest(ctx context.Context, o objectstore.Object, patience time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.lockWriting(wait); err != nil {
		return err
	}
	defer f.unlock()
	if f.usable() != nil || !isObject(f.under(), o) || !f.cur.fetches() {
		return nil
	}
	if err := f.needSpool(); err != nil {
		return err
	}
	f.unsynced = true
	return f.fill(ctx)
}
