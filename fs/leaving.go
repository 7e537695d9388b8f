package fs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Engines that overwrite a partition remove its directory and make it again. Its entry
// in the catalog has what no new one would have (a Location of its own, parameters,
// statistics). So a registered partition that is removed is gone from the mount at
// once, and from the catalog after a while, unless it is back by then.

// defaultDeregister is how long a removed partition stays in the catalog.
const defaultDeregister = 30 * time.Second

// deregistersAtOnce bounds the calls of the catalog.
const deregistersAtOnce = 8

// Deregistrar takes partitions out of the catalog that View.Leave does not show any
// more.
type Deregistrar interface {
	// Deregister removes the entry of the partition whose directory is path, if it is
	// leaving yet and no object lies in it (objectstore.ErrNotEmpty), and shows it
	// again where it does not. It removes nothing from the store. It may be called
	// concurrently; gone tells that the catalog does not have it any more.
	Deregister(ctx context.Context, path string) (gone bool, err error)
}

// departures are the partitions that are to be deregistered, and when.
type departures struct {
	mu sync.Mutex
	// due has their paths. One that came back may be in it; the View knows.
	due    map[string]time.Time
	hurry  bool          // the mount ends
	wake   chan struct{} // of hurry; holds one
	worker chan struct{} // closed when it ends; nil: none runs
}

func newDepartures() *departures {
	return &departures{due: make(map[string]time.Time), wake: make(chan struct{}, 1)}
}

// leave removes a registered partition without objects from the mount. Its own markers
// go with it, unless it lies elsewhere. The kernel takes its inode for dead: when it is
// back it has another.
func (f *FS) leave(ctx context.Context, path string, n catalogview.Node, own []objectstore.Object) error {
	if f.Deregistrar == nil {
		return errRegistered
	}
	if err := f.mayChange(objectstore.Object{Location: n.Location()}, WriteDelete); err != nil {
		return err
	}
	if _, err := f.View.Resolve(ctx, path); err != nil {
		return err
	}
	at, err := f.tableAt(ctx, path)
	if err != nil {
		return err
	}
	home := at.Location() // where one without a Location of its own lies
	home.Key += path[len(at.Path)+1:] + "/"
	if home == n.Location() {
		if err := f.removeOwn(ctx, own); err != nil {
			return err
		}
		f.View.Removed(home)
	}
	f.View.Leave(path)
	f.Attr.Delete(attrKey(n.Location()))
	f.changedIn(home)
	f.names.remove(path)
	f.warnLocal(path, f.local.remove(path))
	f.keepLocal(path)
	f.depart(path)
	return nil
}

// depart has the partition at path deregistered in a while.
func (f *FS) depart(path string) {
	d := f.departures
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due[path] = time.Now().Add(f.DeregisterAfter)
	if d.worker == nil {
		d.worker = make(chan struct{})
		go f.deregisterDue(d.worker)
	}
}

// leaveAgain has a partition leave that was taken back for nothing: unless it is used by
// now, it is deregistered when it would have been.
func (f *FS) leaveAgain(ctx context.Context, path string) {
	n, err := f.View.Lookup(ctx, path)
	if err != nil || !n.Registered || f.names.stagedBelow(path) || f.holdsLocal(path) || f.emptyInStore(ctx, n) != nil {
		return
	}
	f.View.Leave(path)
	f.names.remove(path)
	d := f.departures
	d.mu.Lock()
	_, due := d.due[path]
	d.mu.Unlock()
	if !due {
		f.depart(path)
	}
}

// stays takes the partition back that path is, or lies in, if it is leaving: it is
// looked up as before. What is to be written or made at path asks first; true is that
// the partition was leaving, and the catalog has it yet. One that is being deregistered
// is waited for. It costs nothing where none is leaving.
func (f *FS) stays(path string) bool {
	ctx, cancel := f.background()
	defer cancel()
	return f.View.Stay(ctx, path)
}

// deregisterDue deregisters what is due, until nothing is left.
func (f *FS) deregisterDue(done chan struct{}) {
	defer close(done)
	for {
		due, wait, more := f.departures.next(time.Now())
		if !more {
			return
		}
		if len(due) == 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-f.departures.wake:
			}
			timer.Stop()
			continue
		}
		f.deregisterAll(due)
	}
}

// deregisterAll deregisters partitions. Once the catalog does not answer the rest is
// shown again unasked: each would wait as long, and an unmount for all of them.
func (f *FS) deregisterAll(due []string) {
	var unasked atomic.Int64
	var silent atomic.Bool
	var g errgroup.Group
	g.SetLimit(deregistersAtOnce)
	for _, path := range due {
		g.Go(func() error {
			if silent.Load() {
				unasked.Add(1)
				f.stays(path)
			} else if errors.Is(f.deregister(path), objectstore.ErrUnavailable) {
				silent.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait() // each was logged
	if n := unasked.Load(); n > 0 {
		f.Log.Error("the catalog does not answer: more removed partitions stay in it, and are shown again", slog.Int64("count", n))
	}
}

// next takes out what is due, and tells how long nothing is. more is false, and the
// worker over, when there is nothing at all.
func (d *departures) next(now time.Time) (due []string, wait time.Duration, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.due) == 0 {
		d.worker = nil
		return nil, 0, false
	}
	wait = time.Hour
	for path, at := range d.due {
		if left := at.Sub(now); left > 0 && !d.hurry {
			wait = min(wait, left)
			continue
		}
		due = append(due, path)
		delete(d.due, path)
	}
	return due, wait, true
}

// deregister takes a partition out of the catalog. Where that fails it is logged, and
// the partition shown again.
func (f *FS) deregister(path string) error {
	ctx, cancel := f.background()
	defer cancel()
	gone, err := f.Deregistrar.Deregister(ctx, path)
	switch {
	case errors.Is(err, objectstore.ErrNotEmpty):
		f.Log.Warn("objects lie in a removed partition by now: it stays in the catalog, and is shown again", attrPath(path))
	case err != nil:
		f.Log.Error("a removed partition stays in the catalog, and is shown again", attrPath(path), slog.Any("error", err))
	case gone:
		f.Log.Info("deregistered a removed partition", attrPath(path))
	}
	return err
}

// endDepartures deregisters what is leaving, now. It returns when that is done, or ctx
// is: then the catalog has the rest yet.
func (f *FS) endDepartures(ctx context.Context) {
	d := f.departures
	d.mu.Lock()
	d.hurry = true
	worker := d.worker
	d.mu.Unlock()
	if worker == nil {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, DrainLimit)
	defer cancel()
	select {
	case <-worker:
	case <-ctx.Done():
	}
}
