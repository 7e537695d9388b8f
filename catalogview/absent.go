package catalogview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// firstAbsent is how many partitions of a table are looked for in vain, one request
// each, before a list is asked for.
const firstAbsent = 8

// absences tell when a table's partitions are listed rather than each looked for in
// vain: who makes a thousand directories looks for each of them first. A list is taken
// where about as many requests have gone out as it takes, so that all together are
// twice the best at most.
type absences struct {
	flight singleflight.Group // of lists, by table
	mu     sync.Mutex
	m      map[string]*missed // by table
}

// missed is what is known of one table.
type missed struct {
	asked int // in vain, one request each, since the last list
	next  int // how many of them a list follows
	pages int // how many pages such a list may have
	at    time.Time
}

// note counts a partition of a table that was asked for and is not there.
func (a *absences) note(id string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of(id)
	s.asked++
	s.at = now
}

// of is the state of a table. The lock is held.
func (a *absences) of(id string) *missed {
	s := a.m[id]
	if s == nil {
		if len(a.m) >= maxAbsences {
			clear(a.m)
		}
		s = &missed{next: firstAbsent, pages: 1}
		a.m[id] = s
	}
	return s
}

const maxAbsences = 1000

// due says that a list is to be loaded, and how many pages of it at most.
func (a *absences) due(id string, o Options) (pages int, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.m[id]
	if s == nil {
		return 0, false
	}
	switch now := o.Now(); {
	case now.Sub(s.at) >= staleFactor*o.TTL:
		delete(a.m, id)
		return 0, false
	case now.Sub(s.at) >= o.TTL: // that was another's
		s.asked, s.next = 0, max(s.next, firstAbsent)
	}
	return s.pages, s.asked >= s.next
}

// settle notes what came of a list, nil if none was had, or it has more pages than it
// might.
func (a *absences) settle(id string, l *partitionList, more bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of(id)
	s.asked, s.at = 0, now
	switch {
	case l != nil:
		s.next = l.requests() - 1
		s.pages = max(s.pages, 2*(1+len(l.all)/headSize))
	case more:
		s.pages = min(10*s.pages, mostPages)
		fallthrough
	default:
		s.next = glueSegments + s.pages
	}
}

// mostPages bounds what is listed for this.
const mostPages = 1000

// listForAbsent returns all partitions of a table, by a list that is loaded because
// many of them were looked for in vain. Who is not in it is not there: it began within
// the negative TTL. nil: the one is to be asked for.
func (v *View) listForAbsent(ctx context.Context, e *entry) (*partitionList, error) {
	pages, due := v.parts.absent.due(e.id(), v.o)
	if !due || v.o.NegativeTTL <= 0 {
		return nil, nil //nolint:nilnil // as said
	}
	answer := v.parts.absent.flight.DoChan(e.id(), func() (any, error) { //nolint:contextcheck // others may wait for it
		if k, have, _ := v.parts.lists.peek(e.cellKey(nil)); have && k.err == nil && v.o.Now().Sub(k.at) < v.o.NegativeTTL {
			return k.value, nil // since the caller looked
		}
		own, end, err := v.pending.begin(v.o.LoadTimeout)
		if err != nil {
			return (*partitionList)(nil), err
		}
		defer end()
		return v.loadWhole(own, e, pages)
	})
	select {
	case r := <-answer:
		l, _ := r.Val.(*partitionList)
		switch {
		case r.Err != nil && errors.Is(r.Err, objectstore.ErrPermission): // to list; the one may be told of
			return nil, nil //nolint:nilnil // as said
		case r.Err != nil:
			return nil, r.Err
		case l == nil || v.o.Now().Sub(l.at) >= v.o.NegativeTTL:
			return nil, nil //nolint:nilnil // as said
		}
		return l, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// loadWhole is loadList for listForAbsent, which it tells when the next list is due.
func (v *View) loadWhole(ctx context.Context, e *entry, pages int) (*partitionList, error) {
	l, err := v.loadList(ctx, e, pages)
	v.parts.absent.settle(e.id(), l, err == nil && l == nil, v.o.Now())
	return l, err
}

// loadList loads the list of all partitions of a table, and keeps it; nil: it has more
// pages.
func (v *View) loadList(ctx context.Context, e *entry, pages int) (*partitionList, error) {
	key := e.cellKey(nil)
	_, _, generation := v.parts.lists.peek(key)
	l := v.parts.begin(key, v.o.Now())
	defer v.parts.end(l)
	for p, err := range v.src.Partitions(ctx, e.base, nil) {
		if err != nil {
			return nil, fmt.Errorf("partitions of %q: %w", e.id(), err)
		}
		if len(l.all) >= pages*headSize {
			return nil, nil //nolint:nilnil // as said
		}
		l.append(p)
	}
	v.parts.lists.keep(key, cell[*partitionList]{value: l, at: l.at}, generation)
	return l, nil
}
