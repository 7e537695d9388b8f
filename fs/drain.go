package fs

import (
	"context"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/staging"
)

// inFlight counts publishes that are being made.
type inFlight struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0; nil: nobody waits
}

func (i *inFlight) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
}

func (i *inFlight) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n--
	if i.n == 0 && i.idle != nil {
		close(i.idle)
		i.idle = nil
	}
}

// Limits of the wait for publishes in flight: DrainIdle without a byte that moves,
// DrainLimit in all.
const (
	DrainIdle  = 30 * time.Second
	DrainLimit = 10 * time.Minute
)

// wait returns when none is in flight, when ctx is done, when moved returned the
// same for all of DrainIdle, or after DrainLimit.
func (i *inFlight) wait(ctx context.Context, moved func() uint64) {
	idle := i.idles()
	if idle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, DrainLimit)
	defer cancel()
	tick := time.NewTicker(DrainIdle / 30)
	defer tick.Stop()
	last, since := moved(), time.Now()
	for {
		select {
		case <-idle:
			return
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if n := moved(); n != last {
				last, since = n, now
			} else if now.Sub(since) >= DrainIdle {
				return
			}
		}
	}
}

// idles is closed when none is in flight any more; nil: none is.
func (i *inFlight) idles() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n == 0 {
		return nil
	}
	if i.idle == nil {
		i.idle = make(chan struct{})
	}
	return i.idle
}

// Drain stops new files from being created, for good, deregisters the partitions that
// are leaving, and settles.
func (f *FS) Drain(ctx context.Context) []staging.Record {
	f.draining.Store(true)
	f.endDepartures(ctx)
	defer f.reportDrafts()
	return f.settle(ctx)
}

// settle publishes what waits under a temporary name, makes the renames that wait, and
// waits until every publish in flight has ended, for as long as bytes move and at most
// for DrainLimit, or until ctx has. It lists the files that programs still have open
// with bytes that are not published, those of temporary names, and the renames that are
// half done. What earlier mounts or failed publishes left is not in the list: it is kept
// whatever happens.
func (f *FS) settle(ctx context.Context) []staging.Record {
	f.publishing.begin()
	go func() {
		defer f.publishing.end()
		f.endBackups()
		f.endLingers(func(string) bool { return true })
	}()
	f.publishing.wait(ctx, f.Metrics.StoreSent.Value)
	var left []staging.Record
	for _, w := range f.Area.Files() {
		r := w.Record()
		unpublished := f.owes(r.ID) || r.Hold == staging.Temporary && !w.Recovered()
		if unpublished && w.Dirty() && r.Hold != staging.Local {
			left = append(left, r)
		}
	}
	for _, r := range f.Area.Renames() {
		if !r.Recovered() {
			left = append(left, r.Record())
		}
	}
	return left
}

// owes reports whether a program has the write open and still hopes for it: not one
// that was told of its failure, closed it, and whose RELEASE is on its way.
func (f *FS) owes(id string) bool {
	s := f.names.writerOf(id)
	if s == nil {
		return false
	}
	s.mu.Lock()
	open, told := s.handles > 0, s.facts().refused
	s.mu.Unlock()
	return open && (!told || !s.idle())
}
