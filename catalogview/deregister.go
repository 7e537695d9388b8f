package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// leaving are the registered partitions that the mount removed and the catalog has
// yet: they are not shown. A path that is written to leads where it did.
type leaving struct {
	n  atomic.Int32 // how many; most of the time there are none
	mu struct {
		sync.Mutex
		m map[string]*leaver // by the path of the directory
	}
}

// leaver is one of them. done is closed when it has been deregistered, or was not.
type leaver struct {
	since time.Time
	done  chan struct{} // nil: it has not begun
	gone  bool          // set before done is closed
}

func newLeaving() *leaving {
	l := new(leaving)
	l.mu.m = make(map[string]*leaver)
	return l
}

func (l *leaving) get(path string) *leaver {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.m[path]
}

// Leave stops showing the registered partition whose directory is path. The catalog
// is not told: see Deregister.
func (v *View) Leave(path string) {
	l := v.leaving
	l.mu.Lock()
	if l.mu.m[path] == nil {
		l.mu.m[path] = &leaver{since: v.o.Now()}
		l.n.Add(1)
	}
	l.mu.Unlock()
	v.dropHeads(path)
}

// Stay shows the partition again that lies at a path, or that the path lies in, if it
// is leaving; true if so. One that is being deregistered is waited for, and true is
// that it was not: the catalog has it yet.
func (v *View) Stay(ctx context.Context, path string) bool {
	if v.leaving.n.Load() == 0 {
		return false
	}
	for at := range ancestors(path) {
		if v.stayAt(ctx, at) {
			return true
		}
	}
	return false
}

func (v *View) stayAt(ctx context.Context, path string) bool {
	l := v.leaving
	l.mu.Lock()
	p := l.mu.m[path]
	if p == nil {
		l.mu.Unlock()
		return false
	}
	if p.done == nil {
		delete(l.mu.m, path)
		l.n.Add(-1)
		l.mu.Unlock()
		v.dropHeads(path)
		return true
	}
	l.mu.Unlock()
	select {
	case <-p.done:
		return !p.gone
	case <-ctx.Done():
		return false
	}
}

// ancestors yields a path below a table, and the directories that it lies in below it.
func ancestors(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for strings.Count(path, "/") >= 2 && yield(path) {
			path = path[:strings.LastIndexByte(path, '/')]
		}
	}
}

// dropHeads forgets what leads to partitions of the table of a path.
func (v *View) dropHeads(path string) {
	v.parts.heads.drop(ofTable(func(db, name string) bool { return strings.HasPrefix(path, join(db, name)+"/") }))
}

// left says that a path lies in a partition that is leaving, or is one.
func (v *View) left(b below) bool {
	if b.part == nil || v.leaving.n.Load() == 0 {
		return false
	}
	return v.leaves(b.entry, b.part)
}

// leaves says that a partition of a table is leaving.
func (v *View) leaves(e *entry, p *partition) bool {
	return v.leaving.n.Load() != 0 && v.leaving.get(join(e.id(), strings.Join(p.names, "/"))) != nil
}

// leavingBelow are the partitions of a directory that are leaving, by their path in it,
// and since when.
func (v *View) leavingBelow(dir string) map[string]time.Time {
	l := v.leaving
	l.mu.Lock()
	defer l.mu.Unlock()
	var all map[string]time.Time
	for path, p := range l.mu.m {
		if name, ok := strings.CutPrefix(path, dir+"/"); ok && len(all) < maxNamed {
			if all == nil {
				all = make(map[string]time.Time)
			}
			all[name] = p.since
		}
	}
	return all
}

// Deregister takes the partition whose directory is path, which is leaving, out of the
// catalog: its entry alone, and nothing of the store. It is shown again where that
// fails, and with objectstore.ErrNotEmpty where objects lie at its location by now,
// whoever wrote them. One that is not leaving any more, or that the catalog no longer
// has, is no error. What is registered by this View meanwhile waits for it.
func (v *View) Deregister(ctx context.Context, path string) (gone bool, err error) {
	l := v.leaving
	l.mu.Lock()
	p := l.mu.m[path]
	if p == nil || p.done != nil {
		l.mu.Unlock()
		return false, nil
	}
	p.done = make(chan struct{})
	l.mu.Unlock()
	if err = v.deregister(ctx, path); err != nil {
		err = fmt.Errorf("deregister partition %q: %w", path, err)
	}
	if p.gone = err == nil; p.gone {
		v.confirms.forget(path)
	}
	l.mu.Lock()
	delete(l.mu.m, path)
	l.n.Add(-1)
	l.mu.Unlock()
	v.dropHeads(path)
	close(p.done)
	return p.gone, err
}

// deregister looks at the entry and at its location as they are now, and removes the
// entry.
func (v *View) deregister(ctx context.Context, path string) error {
	comps, err := split(path)
	if err != nil {
		return err
	}
	e, err := v.getTable(ctx, comps[0], comps[1])
	if errors.Is(err, objectstore.ErrNotExist) {
		return nil // with its table
	}
	if err != nil {
		return err
	}
	b := below{entry: e, path: path, comps: comps[2:]}
	values, ok := b.values(len(e.table.Keys))
	if !ok || e.table.Partitions != table.PartitionsInCatalog || len(b.comps) != len(values) {
		return fmt.Errorf("the table has other partition keys by now: %w", objectstore.ErrChanged)
	}
	p, _, err := v.src.Partition(ctx, e.base, values)
	if err == nil {
		if err = v.noObjects(ctx, v.settle(e, p)); err == nil {
			err = v.src.Deregister(ctx, e.base, values)
		}
	} else if errors.Is(err, objectstore.ErrNotExist) {
		err = nil // another was first
	}
	if err == nil {
		v.noteDeregistered(e, values)
	}
	return err
}

// noteDeregistered takes in that the catalog has a partition no more.
func (v *View) noteDeregistered(e *entry, values []string) {
	v.parts.lists.drop(func(string) bool { return false }) // a list that is being loaded may have it
	for n := range len(values) + 1 {
		key := e.cellKey(values[:n])
		v.parts.lists.each(func(k string) bool { return k == key }, func(l *partitionList) { l.remove(values) })
		v.parts.gone(key, values)
	}
	own := e.cellKey(values)
	v.parts.one.drop(func(k string) bool { return k == own })
}

// noObjects is ErrNotEmpty if anything but its own marker lies at a partition's
// location. One that may not be used is not looked at, and its refusal is the error.
func (v *View) noObjects(ctx context.Context, p *partition) error {
	if p.refused != nil {
		return &VerdictError{Table: p.Location, Class: p.refused.class, Reason: p.refused.reason}
	}
	dir := p.place.Location
	for e, err := range v.store.List(ctx, dir, objectstore.ListOptions{Limit: 2}) {
		if err != nil {
			return err
		}
		if e.Key != dir.Key || e.Size > 0 {
			v.forgetBelow(dir)
			return objectstore.ErrNotEmpty
		}
	}
	return nil
}

// forgetBelow forgets what is known of a directory of the store.
func (v *View) forgetBelow(dir objectstore.Location) {
	if v.flat != nil {
		v.flat.drop(func(loc objectstore.Location) bool {
			return loc.Bucket == dir.Bucket && strings.HasPrefix(loc.Key, dir.Key)
		})
	}
}
