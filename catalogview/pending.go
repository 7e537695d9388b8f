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

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// The pauses between attempts to register what could not be: the first, and the most.
const (
	firstRegisterPause = 30 * time.Second
	mostRegisterPause  = 10 * time.Minute
)

// pendingRegistrations are those that failed: an object in each directory that is in
// no partition the catalog has. A publish that follows may never come.
type pendingRegistrations struct {
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
	toRegister

	dir    string
	since  time.Time
	reason string
}

// Unregistered is a directory that files were published in, or were to be moved into,
// and that could not be registered.
type Unregistered struct {
	Path   string    `json:"path"`
	Reason string    `json:"reason"` // of the last attempt
	Since  time.Time `json:"since"`
}

// Unregistered returns the partitions at and below a path, "" for all, that this View
// failed to register, by their path. They are tried again by the next publish into
// each, by Repair, and by the View itself.
func (v *View) Unregistered(path string) []Unregistered {
	var all []Unregistered
	for _, p := range v.pending.all() {
		if path == "" || p.dir == path || strings.HasPrefix(p.dir, path+"/") {
			all = append(all, Unregistered{p.dir, p.reason, p.since})
		}
	}
	return all
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
			slog.String("path", p.dir))
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
func (r *pendingRegistrations) add(v *View, dir string, o toRegister, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.mu.m[dir]
	if r.mu.closed || !known && len(r.mu.m) >= maxPending {
		return
	}
	p := pendingRegistration{toRegister: o, dir: dir, since: v.o.Now(), reason: reason.Error()}
	if known {
		p.since = old.since
	}
	r.mu.m[dir] = p
	if !r.mu.running {
		r.mu.running = true
		r.work.Go(func() { r.run(v) })
	}
}

// note keeps why one failed again.
func (r *pendingRegistrations) note(dir string, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.mu.m[dir]; ok {
		p.reason = reason.Error()
		r.mu.m[dir] = p
	}
}

// remove forgets a partition's, for it is registered, or need not be: also what was
// told of directories in it while nobody knew where it begins.
func (r *pendingRegistrations) remove(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.mu.m, func(other string, _ pendingRegistration) bool {
		return other == dir || strings.HasPrefix(other, dir+"/")
	})
}

// forget forgets one alone.
func (r *pendingRegistrations) forget(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.m, dir)
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
		r.again(ctx, v)
		if r.done() {
			return
		}
	}
}

// again tries all once.
func (r *pendingRegistrations) again(ctx context.Context, v *View) {
	left := r.all()
	all := make([]toRegister, len(left))
	for i, p := range left {
		all[i] = p.toRegister
	}
	problems, dirs := v.tryAll(ctx, all, true)
	for i, p := range left {
		if err := problems[i]; err != nil {
			r.note(p.dir, err)
			v.o.Log.DebugContext(ctx, "not registered yet", slog.String("path", p.path), slog.Any("error", err))
			continue
		}
		r.forget(p.dir)
		if dirs[i] != "" {
			r.remove(dirs[i])
		}
		v.o.Log.InfoContext(ctx, "a registration that failed is settled", slog.String("path", p.dir))
	}
}

// all are those that wait, by their directories.
func (r *pendingRegistrations) all() []pendingRegistration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.mu.m), func(a, b pendingRegistration) int { return strings.Compare(a.dir, b.dir) })
}

// done says that nothing is left; run ends then.
func (r *pendingRegistrations) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.running = len(r.mu.m) > 0
	return !r.mu.running
}
