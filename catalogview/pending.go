package catalogview

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The pauses between attempts to register what could not be: the first, and the most.
const (
	firstRegisterPause = 30 * time.Second
	mostRegisterPause  = 10 * time.Minute
)

// pendingRegistrations are those that failed: an object in each directory that is in
// no partition the catalog has. A publish that follows may never come.
type pendingRegistrations struct {
	flight singleflight.Group // of registrations, by cellKey
	closed chan struct{}
	work   sync.WaitGroup
	mu     struct {
		sync.Mutex
		m       map[string]pendingRegistration // by directory
		running bool
		closed  bool
	}
}

type pendingRegistration struct {
	path string
	at   objectstore.Location
}

func newPending() *pendingRegistrations {
	r := &pendingRegistrations{closed: make(chan struct{})}
	r.mu.m = make(map[string]pendingRegistration)
	return r
}

// close ends the registrations that run, waits for them, and tells of what is left.
func (r *pendingRegistrations) close(log *slog.Logger) {
	r.mu.Lock()
	if !r.mu.closed {
		r.mu.closed = true
		close(r.closed)
	}
	r.mu.Unlock()
	r.work.Wait()
	for _, p := range r.all() {
		log.Warn("not registered: files lie in a partition that the catalog does not have; the next publish into it tries again",
			slog.String("path", directoryOf(p.path)))
	}
}

// begin returns the context of work that the View ends when it is closed, and what
// ends it; ErrClosed after that.
func (r *pendingRegistrations) begin(limit time.Duration) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	r.work.Add(1)
	r.work.Go(func() {
		select {
		case <-r.closed:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); r.work.Done() }, nil
}

func directoryOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// maxPending bounds the directories that are remembered.
const maxPending = 10_000

// add remembers a registration that failed.
func (r *pendingRegistrations) add(v *View, path string, at objectstore.Location) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed || len(r.mu.m) >= maxPending {
		return
	}
	r.mu.m[directoryOf(path)] = pendingRegistration{path, at}
	if !r.mu.running {
		r.mu.running = true
		r.work.Go(func() { r.run(v) })
	}
}

// remove forgets one, for it is registered, or need not be.
func (r *pendingRegistrations) remove(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.m, directoryOf(path))
}

// run tries again, at ever longer intervals, until nothing is left.
func (r *pendingRegistrations) run(v *View) {
	ctx, end, err := r.begin(math.MaxInt64)
	if err != nil {
		return
	}
	defer end()
	for wait := firstRegisterPause; ; wait = min(2*wait, mostRegisterPause) {
		if pause.For(ctx, wait) != nil {
			return
		}
		for _, p := range r.all() {
			if err := v.registerAgain(ctx, p.path, p.at); err != nil {
				v.o.Log.Debug("not registered yet", slog.String("path", p.path), slog.Any("error", err))
			} else {
				v.o.Log.Info("a registration that failed is settled", slog.String("path", directoryOf(p.path)))
			}
		}
		if r.done() {
			return
		}
	}
}

func (r *pendingRegistrations) all() []pendingRegistration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.mu.m))
}

// done says that nothing is left; run ends then.
func (r *pendingRegistrations) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.running = len(r.mu.m) > 0
	return !r.mu.running
}
