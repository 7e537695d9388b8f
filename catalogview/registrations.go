package catalogview

import (
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// registration is one partition that is being registered, for all who ask meanwhile.
type registration struct {
	e        *entry
	values   []string
	location string
	done     chan struct{} // closed when what follows is set
	p        *partition
	err      error
}

func newRegistration(e *entry, values []string, location string) *registration {
	return &registration{e: e, values: values, location: location, done: make(chan struct{})}
}

// registrationQueue has those under way. What comes for a table while a request for it is
// under way waits, and goes out together with the next: a single one at once.
type registrationQueue struct {
	mu     sync.Mutex
	m      map[string]*registration   // by cellKey
	tables map[string][]*registration // that wait, by the table's id; there while a request is under way
}

func newRegistrationQueue() *registrationQueue {
	return &registrationQueue{m: make(map[string]*registration), tables: make(map[string][]*registration)}
}

// add has partitions registered. Where one is being registered already, that
// registration takes its place in all; nil stands for none.
func (r *registrationQueue) add(v *View, all []*registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle := make(map[string]bool)
	for i, one := range all {
		if one == nil {
			continue
		}
		key := one.e.cellKey(one.values)
		if other := r.m[key]; other != nil {
			all[i] = other
			continue
		}
		if k, have, _ := v.parts.one.peek(key); have && k.err == nil && v.o.Now().Sub(k.at) < v.o.TTL { // since the caller looked
			one.p = k.value
			close(one.done)
			continue
		}
		id := one.e.id()
		waiting, busy := r.tables[id]
		idle[id] = idle[id] || !busy
		r.m[key], r.tables[id] = one, append(waiting, one)
	}
	for id, start := range idle {
		if start {
			go r.run(v, id) // ends with what waits, of which each request ends with the View
		}
	}
}

// take takes what waits for a table, as far as it is of one version of its entry.
func (r *registrationQueue) take(id string) []*registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.tables[id]
	n := 0
	for n < len(waiting) && waiting[n].e.base == waiting[0].e.base {
		n++
	}
	if n == 0 {
		delete(r.tables, id)
		return nil
	}
	r.tables[id] = waiting[n:]
	return waiting[:n]
}

// run registers what waits for a table until nothing does.
func (r *registrationQueue) run(v *View, id string) {
	for {
		batch := r.take(id)
		if batch == nil {
			return
		}
		v.registerBatch(batch)
		r.mu.Lock()
		for _, one := range batch {
			delete(r.m, one.e.cellKey(one.values))
		}
		r.mu.Unlock()
		for _, one := range batch {
			close(one.done)
		}
	}
}

// registerBatch registers partitions of one table.
func (v *View) registerBatch(batch []*registration) {
	own, end, err := v.pending.begin(v.o.LoadTimeout * time.Duration(1+len(batch)/glueBatch))
	if err != nil {
		for _, one := range batch {
			one.err = err
		}
		return
	}
	defer end()
	e := batch[0].e
	all := make([]NewPartition, len(batch))
	for i, one := range batch {
		all[i] = NewPartition{one.values, one.location}
	}
	var noted []*partition
	for i, done := range v.src.Register(own, e.base, all) {
		if batch[i].err = done.Err; done.Err != nil {
			continue
		}
		batch[i].p = v.settle(e, table.Partition{
			Values: batch[i].values, Location: done.Location, Created: v.o.Now(),
			Format: e.table.Format, FormatFrom: e.table.FormatFrom, InputFormat: e.table.InputFormat,
		})
		noted = append(noted, batch[i].p)
	}
	v.noteRegistered(e, noted)
}
