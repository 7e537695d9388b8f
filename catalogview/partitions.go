package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// partition is one of a table's, with where it lies.
type partition struct {
	table.Partition
	place   place
	names   []string // of the directories that lead to it, one a key
	refused *refusal // why it cannot be used; nil: it can
}

// partitions is what is known of the registered partitions of a table: of each one
// asked for alone, and of each list of those whose first values are given.
type partitions struct {
	one   *cells[*partition]
	lists *cells[*partitionList]
	heads *cells[bool] // that any has these first values

	absent  absences
	loading struct { // lists that are being loaded, by their keys in lists
		sync.Mutex
		m map[*partitionList]string
	}
}

func newPartitions(o Options) *partitions {
	p := &partitions{
		one:   newCells[*partition](o),
		lists: newWeighed(o, (*partitionList).cost, o.MaxPartitions),
		heads: newCells[bool](o),
	}
	p.absent.m = make(map[string]*missed)
	p.loading.m = make(map[*partitionList]string)
	p.lists.loaded = p.end
	return p
}

// begin returns a list that is to be loaded, and kept in lists by this key: what is
// registered until its end, after it was kept, is in it.
func (p *partitions) begin(key string, at time.Time) *partitionList {
	l := newPartitionList(at)
	p.loading.Lock()
	defer p.loading.Unlock()
	p.loading.m[l] = key
	return l
}

func (p *partitions) end(l *partitionList) {
	p.loading.Lock()
	defer p.loading.Unlock()
	delete(p.loading.m, l)
}

// add takes a partition into the lists by a key: those that are being loaded, and then
// the one that is kept, which one of these may have become meanwhile.
func (p *partitions) add(key string, q table.Partition) {
	p.loading.Lock()
	for l, k := range p.loading.m {
		if k == key {
			l.add(q)
		}
	}
	p.loading.Unlock()
	if k, have, _ := p.lists.peek(key); have && k.err == nil {
		k.value.add(q)
	}
}

// gone takes a partition out of the lists that are being loaded by a key.
func (p *partitions) gone(key string, values []string) {
	p.loading.Lock()
	defer p.loading.Unlock()
	for l, k := range p.loading.m {
		if k == key {
			l.remove(values)
		}
	}
}

func (p *partitions) close() {
	p.one.close()
	p.lists.close()
	p.heads.close()
}

func (p *partitions) drop(match func(key string) bool) {
	p.one.drop(match)
	p.lists.drop(match)
	p.heads.drop(match)
}

// partitionList is a whole list of partitions, and what the mount registered and
// deregistered since.
type partitionList struct {
	at     time.Time // when it began
	all    []table.Partition
	index  map[string]int32 // by valuesKey
	broken int              // partitions that no path leads to
	reason string           // why the first of them is
	asked  atomic.Int32     // requests for what it holds since it was fresh
	mu     struct {
		sync.Mutex
		added map[string]table.Partition
		gone  map[string]bool
	}
}

func newPartitionList(at time.Time) *partitionList {
	return &partitionList{at: at, index: make(map[string]int32)}
}

// append adds one that was loaded. One that is broken is counted alone.
func (l *partitionList) append(p table.Partition) {
	if p.Broken != "" {
		if l.broken++; l.reason == "" {
			l.reason = p.Broken
		}
		return
	}
	l.index[valuesKey(p.Values)] = int32(len(l.all))
	l.all = append(l.all, p)
}

// narrow returns the part of a list that has these first values.
func (l *partitionList) narrow(prefix []string) *partitionList {
	return l.narrowTo(newPartitionList(l.at), prefix)
}

func (l *partitionList) narrowTo(part *partitionList, prefix []string) *partitionList {
	l.each(func(p table.Partition) bool {
		if hasPrefix(p.Values, prefix) {
			part.append(p)
		}
		return true
	})
	return part
}

// listCost is what a list takes, as so many partitions in it.
const listCost = 8

func (l *partitionList) cost() int {
	if l == nil {
		return listCost
	}
	return listCost + len(l.all)
}

// requests is about how many it takes to load the list: one a page, and of several
// pages one a segment at least.
func (l *partitionList) requests() int {
	if len(l.all) <= headSize {
		return 1
	}
	return max(glueSegments, len(l.all)/headSize)
}

func (l *partitionList) find(key string) (table.Partition, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.index[key]; ok && !l.mu.gone[key] {
		return l.all[i], true
	}
	p, ok := l.mu.added[key]
	return p, ok
}

func (l *partitionList) add(p table.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.added == nil {
		l.mu.added = make(map[string]table.Partition)
	}
	l.mu.added[valuesKey(p.Values)] = p
}

// remove takes out one that was deregistered. It may be added again.
func (l *partitionList) remove(values []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := valuesKey(values)
	delete(l.mu.added, key)
	if l.mu.gone == nil {
		l.mu.gone = make(map[string]bool)
	}
	l.mu.gone[key] = true
}

// each calls f with each partition until that returns false.
func (l *partitionList) each(f func(table.Partition) bool) {
	l.mu.Lock()
	added, gone := slices.Collect(maps.Values(l.mu.added)), maps.Clone(l.mu.gone) // f may take its time
	l.mu.Unlock()
	for _, p := range l.all {
		if (len(gone) == 0 || !gone[valuesKey(p.Values)]) && !f(p) {
			return
		}
	}
	for _, p := range added {
		key := valuesKey(p.Values)
		if _, twice := l.index[key]; (!twice || gone[key]) && !f(p) {
			return
		}
	}
}

// any says that f is true of some partition.
func (l *partitionList) any(f func(table.Partition) bool) (found bool) {
	l.each(func(p table.Partition) bool {
		found = f(p)
		return !found
	})
	return found
}

// valuesKey is a key for values of partitions, which may hold any byte but NUL.
func valuesKey(values []string) string { return strings.Join(values, "\x00") }

// cellKey is the key of values of a table's partitions in cells.
func (e *entry) cellKey(values []string) string {
	return fmt.Sprintf("%s\x00%d\x00%s", e.id(), len(values), valuesKey(values))
}

// ofTable matches the keys of a table's partitions; "" stands for all.
func ofTable(match func(db, name string) bool) func(key string) bool {
	return func(key string) bool {
		id, _, _ := strings.Cut(key, "\x00")
		db, name, _ := strings.Cut(id, "/")
		return match(db, name)
	}
}

// partitionsOf returns the registered partitions with these first values, from one load
// for all who ask at once, or from a list of more that is fresh.
func (v *View) partitionsOf(ctx context.Context, e *entry, prefix []string) (*partitionList, error) {
	key := e.cellKey(prefix)
	if own, have, generation := v.parts.lists.peek(key); len(prefix) > 0 && (!have || v.o.Now().Sub(own.at) >= v.o.TTL) {
		wider, fresh := v.listFor(ctx, e, prefix[:len(prefix)-1])
		switch {
		case fresh:
			return wider.narrow(prefix), nil
		case wider != nil && (!have || own.at.Before(wider.at)): // it serves while the catalog does not answer
			part := v.parts.begin(key, wider.at)
			v.parts.lists.keep(key, cell[*partitionList]{value: wider.narrowTo(part, prefix), at: wider.at}, generation)
			v.parts.end(part)
		}
	}
	return v.parts.lists.get(ctx, key, func(ctx context.Context) (*partitionList, error) {
		l := v.parts.begin(key, v.o.Now())
		for p, err := range v.src.Partitions(ctx, e.base, prefix) {
			if err != nil {
				v.parts.end(l)
				return nil, fmt.Errorf("partitions of %q: %w", e.id(), err)
			}
			l.append(p)
		}
		return l, nil
	})
}

// knownList returns a list that holds all partitions with these first values, and how
// many of them it is narrowed to: a fresh one, else one that may still serve. nil: none.
func (v *View) knownList(e *entry, prefix []string) (l *partitionList, n int, fresh bool) {
	now := v.o.Now()
	for i := len(prefix); i >= 0; i-- {
		k, have, _ := v.parts.lists.peek(e.cellKey(prefix[:i]))
		switch age := now.Sub(k.at); {
		case !have || k.err != nil:
		case age < v.o.TTL:
			return k.value, i, true
		case l == nil && age < staleFactor*v.o.TTL:
			l, n = k.value, i
		}
	}
	return l, n, false
}

// listFor returns a list that holds all partitions with these first values, or nil. One
// that is no longer fresh is loaded anew where as many requests have gone out for single
// partitions of it as that takes: a walk through a table asks for each in turn.
func (v *View) listFor(ctx context.Context, e *entry, prefix []string) (l *partitionList, fresh bool) {
	l, n, fresh := v.knownList(e, prefix)
	if l == nil || fresh || int(l.asked.Add(1)) <= l.requests() {
		return l, fresh
	}
	again, err := v.partitionsOf(ctx, e, prefix[:n])
	if err != nil {
		return l, false // the request for the one tells of it
	}
	return again, v.o.Now().Sub(again.at) < v.o.TTL
}

// registered returns a partition by all its values: from a list that is fresh, else
// by a request of its own, or where many are looked for in vain by a new list. While
// that is not answered an older list serves. ErrNotExist: the catalog has none.
func (v *View) registered(ctx context.Context, e *entry, values []string) (*partition, error) {
	key := e.cellKey(values)
	if l, fresh := v.listFor(ctx, e, values); l != nil {
		p, ok := l.find(valuesKey(values))
		switch {
		case ok && fresh:
			return v.settle(e, p), nil
		case ok:
			offer(v.parts.one, key, v.settle(e, p), l.at)
		case v.o.Now().Sub(l.at) < v.o.NegativeTTL:
			return nil, e.noPartition(values)
		}
	}
	if k, have, _ := v.parts.one.peek(key); !have || k.err != nil && v.o.Now().Sub(k.at) >= v.o.NegativeTTL {
		switch l, err := v.listForAbsent(ctx, e); {
		case err != nil:
			return nil, err
		case l != nil:
			if p, ok := l.find(valuesKey(values)); ok {
				return v.settle(e, p), nil
			}
			return nil, e.noPartition(values)
		}
	}
	return v.parts.one.get(ctx, key, func(ctx context.Context) (*partition, error) {
		p, _, err := v.src.Partition(ctx, e.base, values)
		if errors.Is(err, objectstore.ErrNotExist) {
			v.parts.absent.note(e.id(), v.o.Now())
		}
		if err != nil {
			return nil, err
		}
		return v.settle(e, p), nil
	})
}

func (e *entry) noPartition(values []string) error {
	return fmt.Errorf("partition %q of %q: %w", values, e.id(), objectstore.ErrNotExist)
}

// offer keeps what a list told of a key, unless something later is known.
func offer[T any](c *cells[T], key string, value T, at time.Time) {
	if k, have, generation := c.peek(key); !have || k.at.Before(at) {
		c.keep(key, cell[T]{value: value, at: at}, generation)
	}
}

// settle finds where a partition of a table lies, whether it may be used (rule 43: at
// every load), and what its directory is called.
//
// The names are those of its location, where that lies right below the table by names
// that stand for its values: some writers spell them otherwise than Hive does
// (Year=2024, k=S%C3%A3o), and a directory keeps its name when it is registered. Else
// they are made of the values. So a partition has one name, and no two have the same.
func (v *View) settle(e *entry, p table.Partition) *partition {
	q := &partition{Partition: p}
	if p.Location == "" {
		q.refused = &refusal{class: table.ClassBroken, reason: "its catalog entry has no location"}
	} else {
		q.place, q.refused = v.at.resolve(p.Location, "")
	}
	if q.names = e.namesBelow(q.place, p.Values); q.names == nil {
		q.names = make([]string, len(p.Values))
		for i, value := range p.Values {
			q.names[i] = e.table.PartitionName(value, i)
		}
	}
	return q
}

// namesBelow returns the names of the directories between the table and a place, if
// each stands for one of the values; else nil.
func (e *entry) namesBelow(p place, values []string) []string {
	rest, ok := strings.CutPrefix(p.Key, e.place.Key)
	if p.Bucket != e.place.Bucket || !ok || p.Bucket == "" {
		return nil
	}
	names := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if len(names) != len(values) {
		return nil
	}
	for i, name := range names {
		if value, ok := e.table.ValueText(name, i); !ok || value != values[i] || badName(name) {
			return nil
		}
	}
	return names
}

// headSize is how many partitions are looked at to tell that there are any: a page.
const headSize = 1000

// anyRegistered says that some registered partition, one at least, is led to by these
// first names, which stand for the values. A first page that is the last is kept as the
// list that it is.
func (v *View) anyRegistered(ctx context.Context, e *entry, values, names []string) (bool, error) {
	leads := func(p table.Partition) bool {
		q := v.settle(e, p)
		return hasPrefix(p.Values, values) && hasPrefix(q.names, names) && !v.leaves(e, q)
	}
	byNames := e.cellKey(names)
	if l, fresh := v.listFor(ctx, e, values); l != nil {
		found := l.any(leads)
		switch {
		case found && fresh, !found && v.o.Now().Sub(l.at) < v.o.NegativeTTL:
			return found, nil
		case found:
			offer(v.parts.heads, byNames, true, l.at)
		}
	}
	if k, have, _ := v.parts.heads.peek(byNames); !have || k.err != nil && v.o.Now().Sub(k.at) >= v.o.NegativeTTL {
		switch l, err := v.listForAbsent(ctx, e); {
		case err != nil:
			return false, err
		case l != nil:
			return l.any(leads), nil
		}
	}
	found, err := v.parts.heads.get(ctx, byNames, func(ctx context.Context) (bool, error) {
		return v.loadHead(ctx, e, values, leads)
	})
	if errors.Is(err, objectstore.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// loadHead looks for a partition among those with these first values.
func (v *View) loadHead(ctx context.Context, e *entry, values []string, leads func(table.Partition) bool) (bool, error) {
	key := e.cellKey(values)
	_, _, generation := v.parts.lists.peek(key)
	l, found := v.parts.begin(key, v.o.Now()), false
	defer v.parts.end(l)
	for p, err := range v.src.Partitions(ctx, e.base, values) {
		if err != nil {
			return false, fmt.Errorf("partitions of %q: %w", e.id(), err)
		}
		found = found || p.Broken == "" && leads(p)
		if found && len(l.all) >= headSize {
			return true, nil
		}
		l.append(p)
	}
	v.parts.lists.keep(key, cell[*partitionList]{value: l, at: l.at}, generation)
	if !found {
		v.parts.absent.note(e.id(), v.o.Now())
		return false, notExist(e.id()) // so that it is believed for the negative TTL
	}
	return true, nil
}

func hasPrefix(values, prefix []string) bool {
	if len(values) < len(prefix) {
		return false
	}
	for i, v := range prefix {
		if values[i] != v {
			return false
		}
	}
	return true
}

// noteRegistered takes in partitions that the mount registered.
func (v *View) noteRegistered(e *entry, all []*partition) {
	at := v.o.Now()
	v.parts.heads.drop(ofTable(func(db, name string) bool { return join(db, name) == e.id() }))
	_, _, generation := v.parts.one.peek("")
	for _, p := range all {
		v.parts.one.keep(e.cellKey(p.Values), cell[*partition]{value: p, at: at}, generation)
		for n := range len(p.Values) + 1 {
			v.parts.add(e.cellKey(p.Values[:n]), p.Partition)
		}
	}
}

// warnElsewhere tells once of a partition that is registered where the mount did
// not write.
func (v *View) warnElsewhere(dir, registered string, p place, wrote objectstore.Location) {
	if p.Bucket == wrote.Bucket && strings.HasPrefix(wrote.Key, p.Key) {
		return
	}
	if v.firstOf(dir, "registered elsewhere") {
		v.o.Log.Warn("the catalog has this partition at another location: what was written is not in it",
			slog.String("path", dir), slog.String("registered", maskUserinfo(registered)), slog.String("written", uri(wrote)))
	}
}
