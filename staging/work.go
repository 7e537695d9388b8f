package staging

import (
	"context"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	defaultParallel = 16
	// partMemory is what a part under way takes of Options.Memory, in bytes: a
	// request's buffers. The part itself is read from the spool.
	partMemory = 512 << 10
)

// task is something that an Area does in the background.
type task func(ctx context.Context)

// work runs tasks, in their order, on a bounded number of goroutines, which end
// when there is nothing to do.
type work struct {
	ctx    context.Context //nolint:containedctx // it is what Close ends
	cancel context.CancelFunc
	slots  chan struct{} // one for each part under way, of publishes too
	memory *budget.Budget
	wait   sync.WaitGroup

	mu struct {
		sync.Mutex
		queue   []task
		workers int
		closed  bool
	}
}

func newWork(o Options) *work {
	w := &work{slots: make(chan struct{}, o.Parallel), memory: o.Memory}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// add queues n times t; it never waits. Once the area is closed it does nothing, and
// is false.
func (w *work) add(t task, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return false
	}
	for range n {
		w.mu.queue = append(w.mu.queue, t)
	}
	for range min(n, cap(w.slots)-w.mu.workers) {
		w.mu.workers++
		w.wait.Go(w.run)
	}
	return true
}

func (w *work) run() {
	for t := w.next(); t != nil; t = w.next() {
		t(w.ctx)
	}
}

// next is nil, and the worker counts no more, when there is nothing to do.
func (w *work) next() task {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed || len(w.mu.queue) == 0 {
		w.mu.workers--
		return nil
	}
	t := w.mu.queue[0]
	w.mu.queue = w.mu.queue[1:]
	return t
}

// enter counts a caller whose work close has to wait for, until leave; false once
// the area is closed. The context ends with the area, too.
func (w *work) enter(ctx context.Context) (_ context.Context, leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return ctx, nil, false
	}
	w.wait.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.ctx, cancel)
	return ctx, func() { stop(); cancel(); w.wait.Done() }, true
}

// acquire waits for a turn to send a part; release gives it back.
func (w *work) acquire(ctx context.Context) error {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.memory == nil {
		return nil
	}
	if err := w.memory.Acquire(ctx, w.share(), budget.Write); err != nil {
		<-w.slots
		return err
	}
	return nil
}

func (w *work) release() {
	if w.memory != nil {
		w.memory.Release(w.share())
	}
	<-w.slots
}

// share is what one part takes: a budget that is smaller lets one go at a time.
func (w *work) share() int64 { return min(partMemory, w.memory.Max()) }

// close ends what is under way and waits for it.
func (w *work) close() {
	w.mu.Lock()
	w.mu.closed = true
	w.mu.queue = nil
	w.mu.Unlock()
	w.cancel()
	w.wait.Wait()
}

// multipart is the store, if it takes objects in parts.
func (a *Area) multipart() (objectstore.Multipart, bool) {
	m, ok := a.opts.Store.(objectstore.Multipart)
	return m, ok
}

// inFlight counts what runs, for who has to wait until nothing does. The zero value
// is ready.
type inFlight struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again; nil: it is
}

func (c *inFlight) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		c.idle = make(chan struct{})
	}
	c.n++
}

// end tells whether nothing runs any more.
func (c *inFlight) end() (idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n > 0 {
		return false
	}
	close(c.idle)
	c.idle = nil
	return true
}

func (c *inFlight) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0
}

func (c *inFlight) wait(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
