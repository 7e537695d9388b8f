package fs

import (
	"context"
	"sync"

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

// wait returns when none is in flight, or ctx is done.
func (i *inFlight) wait(ctx context.Context) {
	i.mu.Lock()
	if i.n == 0 {
		i.mu.Unlock()
		return
	}
	if i.idle == nil {
		i.idle = make(chan struct{})
	}
	idle := i.idle
	i.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Drain stops new files from being created, for good, and settles.
func (f *FS) Drain(ctx context.Context) []staging.Record {
	f.draining.Store(true)
	return f.settle(ctx)
}

// settle waits until every publish in flight has ended, or ctx has, and lists the
// files that programs still have open with bytes that are not published. What
// earlier mounts or failed publishes left is not in the list: it is kept whatever
// happens.
func (f *FS) settle(ctx context.Context) []staging.Record {
	f.publishing.wait(ctx)
	var left []staging.Record
	for _, w := range f.Area.Files() {
		if r := w.Record(); w.Dirty() && f.open(r.ID) {
			left = append(left, r)
		}
	}
	return left
}
