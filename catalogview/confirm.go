package catalogview

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// maxUnconfirmed bounds the partitions that are remembered to be looked at again.
	maxUnconfirmed = 10_000
	// confirmedAlone is how many partitions of a table are asked for one by one; of
	// more a list is asked for, unless that has more pages than they are.
	confirmedAlone = 8
	// lastConfirmation bounds the look that a View takes when it is closed.
	lastConfirmation = 3 * time.Second
)

// confirmations are the partitions that files were published into because the cache had
// them. Another program may have dropped one since the catalog was asked, and then
// nobody who asks the catalog sees the files. So each is looked for again, past the
// cache, a TTL after the first such publish: by then what others do within a TTL is
// over. Steady publishes into one partition cost at most one look-up a TTL, as they do
// without: what is found goes into the cache.
type confirmations struct {
	closed chan struct{}
	work   sync.WaitGroup
	mu     struct {
		sync.Mutex
		m       map[string]confirmation // by directory
		running bool
		closed  bool
		full    bool // was told of
	}
}

type confirmation struct {
	toRegister // the first object

	dir    string
	entry  *entry
	values []string
	last   time.Time // of the publishes
}

func newConfirmations() *confirmations {
	c := &confirmations{closed: make(chan struct{})}
	c.mu.m = make(map[string]confirmation)
	return c
}

// add remembers a partition. Without a TTL nothing is taken from the cache.
func (c *confirmations) add(v *View, one confirmation) {
	if v.o.TTL <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	if old, known := c.mu.m[one.dir]; known {
		old.last = one.last
		c.mu.m[one.dir] = old
		return
	}
	if len(c.mu.m) >= maxUnconfirmed {
		if !c.mu.full {
			v.o.Log.Warn("files are published into more partitions than can be looked for again: one that another program drops just now stays unregistered",
				slog.Int("partitions", maxUnconfirmed), slog.String("first", one.dir))
		}
		c.mu.full = true
		return
	}
	c.mu.m[one.dir] = one
	if !c.mu.running {
		c.mu.running = true
		c.work.Go(func() { c.run(v) })
	}
}

// settle forgets a partition that the catalog had at a time, if nothing was published
// into it since.
func (c *confirmations) settle(dir string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, known := c.mu.m[dir]; known && one.last.Before(at) {
		delete(c.mu.m, dir)
	}
}

// forget forgets a partition that this View takes out of the catalog.
func (c *confirmations) forget(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.m, dir)
}

// run looks for what is remembered, until nothing is left.
func (c *confirmations) run(v *View) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.work.Go(func() {
		select {
		case <-c.closed:
			cancel()
		case <-ctx.Done():
		}
	})
	wait, retry := v.o.TTL, firstRegisterPause
	for {
		if pause.For(ctx, wait) != nil {
			return
		}
		left := v.confirm(ctx, c.take())
		if c.done(left) {
			return
		}
		if len(left) == 0 {
			wait, retry = v.o.TTL, firstRegisterPause
		} else {
			wait, retry = retry, min(2*retry, mostRegisterPause)
		}
	}
}

// take takes all, by their directories.
func (c *confirmations) take() []confirmation {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.SortedFunc(maps.Values(c.mu.m), func(a, b confirmation) int { return strings.Compare(a.dir, b.dir) })
	clear(c.mu.m)
	return all
}

// done puts back what could not be looked for, and says that nothing is left; run ends
// then.
func (c *confirmations) done(left []confirmation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range left {
		if newer, known := c.mu.m[one.dir]; known {
			one.last = newer.last
		}
		c.mu.m[one.dir] = one
	}
	c.mu.running = len(c.mu.m) > 0
	return !c.mu.running
}

// close ends the look that is taken, and takes a last one, a short one: a mount that ends
// right after its last publish is no rare one.
func (c *confirmations) close(v *View) {
	c.mu.Lock()
	if !c.mu.closed {
		c.mu.closed = true
		close(c.closed)
	}
	c.mu.Unlock()
	c.work.Wait()
	all := c.take()
	if len(all) == 0 {
		return
	}
	ctx, end, err := v.pending.begin(lastConfirmation)
	if err != nil {
		return
	}
	defer end()
	if left := v.confirm(ctx, all); len(left) > 0 {
		v.o.Log.Info("not looked for again: whether the catalog still has these partitions, into which files were published",
			slog.Int("partitions", len(left)), slog.String("first", left[0].dir))
	}
}

// confirm looks for partitions, past the cache, and registers those that the catalog no
// longer has and in which anything lies. It returns those that it could not look for.
func (v *View) confirm(ctx context.Context, all []confirmation) (left []confirmation) {
	tables := make(map[string][]confirmation)
	for _, one := range all {
		tables[one.entry.id()] = append(tables[one.entry.id()], one)
	}
	var absent []confirmation
	for _, id := range slices.Sorted(maps.Keys(tables)) {
		gone, unknown := v.absentOf(ctx, tables[id])
		absent, left = append(absent, gone...), append(left, unknown...)
	}
	objects := make([]toRegister, len(absent))
	for i, one := range absent {
		objects[i] = one.toRegister
		v.noteDeregistered(one.entry, one.values)
		v.o.Log.InfoContext(ctx, "the catalog no longer has a partition that files were published into: it is registered again, unless nothing lies there",
			slog.String("path", one.dir))
	}
	problems, _ := v.tryAll(ctx, objects, true)
	for i, one := range absent {
		switch {
		case errors.Is(problems[i], context.Canceled): // the View is being closed, and looks once more
			left = append(left, one)
		case problems[i] != nil:
			v.pending.add(v, one.dir, one.toRegister, problems[i]) //nolint:contextcheck // it is tried again when ctx is over
		}
	}
	return left
}

// absentOf are those of partitions of one table that the catalog does not have, and those
// of which it does not tell. Where it refuses to tell, they are left as they are.
func (v *View) absentOf(ctx context.Context, all []confirmation) (absent, unknown []confirmation) {
	ctx, cancel := context.WithTimeout(ctx, v.o.LoadTimeout)
	defer cancel()
	errs := make([]error, len(all))
	var l *partitionList
	if len(all) > confirmedAlone {
		var err error
		if l, err = v.loadList(ctx, all[0].entry, min(len(all), mostPages)); err != nil && !errors.Is(err, objectstore.ErrPermission) {
			return nil, all
		}
	}
	if l != nil {
		for i, one := range all {
			if _, there := l.find(valuesKey(one.values)); !there {
				errs[i] = objectstore.ErrNotExist
			}
		}
	} else {
		inParallel(len(all), func(i int) { errs[i] = v.confirmOne(ctx, all[i]) })
	}
	for i, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, objectstore.ErrNotExist):
			absent = append(absent, all[i])
		case errors.Is(err, objectstore.ErrPermission):
			v.o.Log.DebugContext(ctx, "a partition is not looked for again", slog.String("path", all[i].dir), slog.Any("error", err))
		default:
			unknown = append(unknown, all[i])
		}
	}
	return absent, unknown
}

// confirmOne asks for a partition, and keeps the answer.
func (v *View) confirmOne(ctx context.Context, one confirmation) error {
	key := one.entry.cellKey(one.values)
	_, _, generation := v.parts.one.peek(key)
	at := v.o.Now()
	p, _, err := v.src.Partition(ctx, one.entry.base, one.values)
	if err != nil {
		return err
	}
	q := v.settle(one.entry, p)
	v.parts.one.keep(key, cell[*partition]{value: q, at: at}, generation)
	v.warnElsewhere(one.dir, p.Location, q.place, one.at)
	return nil
}
