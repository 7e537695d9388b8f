package staging

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The states of a [Batch], which is no write.
const (
	BatchClearing State = "clearing" // Clear is being removed; nothing is published yet
	BatchMoving   State = "moving"   // Clear is gone, and Members are being published
	BatchMoved    State = "moved"    // they are, all of them; what is left of them here is to go
	BatchUndoing  State = "undoing"  // one could not be; those that were are taken back
	// BatchSettling: one could not be, after Clear was removed, or a part of it. Those
	// that are Done stay published, the others are taken back.
	BatchSettling State = "settling"
)

// Place is where a write is held, or is to be published.
type Place struct {
	Target objectstore.Location `json:"target"`
	Prefix objectstore.Location `json:"prefix"`
	Path   string               `json:"path"`
	Format string               `json:"format,omitempty"`
	Cond   objectstore.Cond     `json:"cond"`
	Hold   Hold                 `json:"hold,omitempty"`
}

// Place is what of the record says where the write belongs.
func (r *Record) Place() Place {
	return Place{Target: r.Target, Prefix: r.Prefix, Path: r.Path, Format: r.Format, Cond: r.Cond, Hold: r.Hold}
}

// At is the record of the write at another place.
func (r Record) At(p Place) Record {
	r.Target, r.Prefix, r.Path, r.Format, r.Cond, r.Hold = p.Target, p.Prefix, p.Path, p.Format, p.Cond, p.Hold
	return r
}

// BatchMember is one file of a [Batch], as it was when the batch began.
type BatchMember struct {
	ID   string `json:"id"`   // its write id
	From Place  `json:"from"` // where it was held
	To   Place  `json:"to"`
	// Data: it is data of its table, so that its partition is to be in the catalog.
	Data bool   `json:"data,omitempty"`
	Size int64  `json:"size"`
	Sum  string `json:"sum,omitempty"` // as Record.Sum
	// Done, in BatchSettling: it is published, and stays so.
	Done bool `json:"done,omitempty"`
}

// Batch is files that are published all or none: on disk from before the first
// request until all are there, or none is. It has a record and no bytes; those are its
// members', which stay writes of their own. Its methods may be called concurrently.
type Batch struct {
	area *Area
	rec  Record // the area's mu guards it
	kept bool
}

// commonDirectory is the path below which all members are to be.
func commonDirectory(members []BatchMember) string {
	dir := path.Dir(members[0].To.Path)
	for _, m := range members[1:] {
		for dir != "." && dir != "/" && !strings.HasPrefix(m.To.Path, dir+"/") {
			dir = path.Dir(dir)
		}
	}
	return dir
}

// Begin notes the batch, durably, and all names of the staging directory with it.
func (b *Batch) Begin() error {
	raw, err := encodeRecord(b.rec)
	if err == nil && len(raw) > recordMax-b.rec.growth() {
		err = fmt.Errorf("their record takes %d bytes: %w", len(raw), objectstore.ErrTooLarge)
	}
	if err == nil {
		err = b.write()
	}
	if err == nil {
		if err = b.area.rememberBatch(b); err != nil {
			_ = b.remove() // nothing was published yet
		}
	}
	if err != nil {
		return fmt.Errorf("note what is published together: %w", err)
	}
	return nil
}

func (b *Batch) write() error {
	dir := b.area.path(b.rec.ID)
	if err := b.area.makeDirectory(dir); err != nil {
		return err
	}
	err := b.area.replace(b.rec, true)
	if err == nil {
		err = syncDir(b.area.dir)
	}
	if err != nil && b.area.step("rmdir", dir) == nil {
		_ = os.RemoveAll(dir) // else Open removes it, or finds a batch that did not begin
	}
	return err
}

// Record returns a copy of the record. Its members must not be changed.
func (b *Batch) Record() Record {
	b.area.mu.Lock()
	defer b.area.mu.Unlock()
	return b.rec
}

// Recovered tells whether the batch was found on disk by [Open].
func (b *Batch) Recovered() bool { return b.kept }

// SetState notes, durably, how far the batch has come, and why it is taken back.
func (b *Batch) SetState(s State, reason string) error {
	rec := b.Record()
	rec.State, rec.Error = s, reason
	return b.save(rec)
}

func (b *Batch) save(rec Record) error {
	rec.Changed = b.area.opts.Now()
	err := b.area.replace(rec, true)
	b.area.mu.Lock()
	defer b.area.mu.Unlock()
	b.rec = rec // what is known here counts here, whatever the disk says
	if err != nil {
		return fmt.Errorf("note how far %q has come: %w", rec.Path, err)
	}
	return nil
}

// Drop forgets the batch: its members are all gone, or all as they were. That they are
// is durable before the record goes. It may be called again.
func (b *Batch) Drop() error {
	if !b.area.forgetBatch(b) {
		return nil
	}
	if err := syncDir(b.area.dir); err != nil {
		return err
	}
	return b.remove()
}

func (b *Batch) remove() error { return b.area.recycle(b.area.path(b.rec.ID), false) }

// Batches returns the batches under way, those that earlier mounts left too, oldest
// first.
func (a *Area) Batches() []*Batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	batches := make([]*Batch, 0, len(a.batches))
	for _, b := range a.batches {
		batches = append(batches, b)
	}
	slices.SortFunc(batches, func(x, y *Batch) int {
		if c := x.rec.Created.Compare(y.rec.Created); c != 0 {
			return c
		}
		return strings.Compare(x.rec.ID, y.rec.ID)
	})
	return batches
}

// FindBatch returns the batch of that id.
func (a *Area) FindBatch(id string) (*Batch, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.batches[id]
	return b, ok
}

// BatchOf returns the batch that the write of that id is in.
func (a *Area) BatchOf(id string) (*Batch, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.batched[id]
	return b, ok
}

// rememberBatch fails once the area is closed, and for a write that is in a batch.
func (a *Area) rememberBatch(b *Batch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.batches == nil {
		return ErrDropped
	}
	for _, m := range b.rec.Members {
		if a.batched[m.ID] != nil {
			return fmt.Errorf("%q: %w", m.From.Path, ErrBatched)
		}
	}
	a.batches[b.rec.ID] = b
	for _, m := range b.rec.Members {
		a.batched[m.ID] = b
	}
	return nil
}

// forgetBatch is false if the area knows it no more.
func (a *Area) forgetBatch(b *Batch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.batches[b.rec.ID] != b {
		return false
	}
	delete(a.batches, b.rec.ID)
	for _, m := range b.rec.Members {
		if a.batched[m.ID] == b {
			delete(a.batched, m.ID)
		}
	}
	return true
}

// isBatch tells whether the record is that of a [Batch].
func (r *Record) isBatch() bool {
	switch r.State { //nolint:exhaustive // the others are of writes
	case BatchClearing, BatchMoving, BatchMoved, BatchUndoing, BatchSettling:
		return true
	}
	return false
}

// validateBatch holds what only the record of a batch has.
func (r *Record) validateBatch() error {
	switch n := len(r.Members); {
	case !r.isBatch() && n+len(r.Clear) > 0:
		return fmt.Errorf("%d members in state %q", n+len(r.Clear), r.State)
	case !r.isBatch():
		return nil
	case n+len(r.Clear) == 0:
		return errors.New("a batch of no files")
	case n > MaxMembers:
		return fmt.Errorf("a batch of %d files, %d are the most: %w", n, MaxMembers, objectstore.ErrTooLarge)
	}
	if err := r.validateClear(); err != nil {
		return err
	}
	ids, targets := make(map[string]bool, len(r.Members)), make(map[objectstore.Location]bool, len(r.Members))
	for i := range r.Members {
		m := &r.Members[i]
		if err := m.validate(); err != nil {
			return err
		}
		if ids[m.ID] || targets[m.To.Target] {
			return fmt.Errorf("%q twice in one batch: %w", m.To.Path, objectstore.ErrExist)
		}
		ids[m.ID], targets[m.To.Target] = true, true
	}
	return nil
}

func (m *BatchMember) validate() error {
	switch {
	case !isID(m.ID):
		return fmt.Errorf("a member %q", m.ID)
	case m.Size < 0:
		return fmt.Errorf("a member of size %d", m.Size)
	case m.Sum != "" && !isSum(m.Sum):
		return fmt.Errorf("checksum %q", m.Sum)
	case !m.To.Cond.IfNoneMatch:
		// What it replaced could not be brought back.
		return fmt.Errorf("%q over another version, together with others: %w", m.To.Path, errors.ErrUnsupported)
	}
	if err := m.From.validate(); err != nil {
		return err
	}
	return m.To.validate()
}

func (p *Place) validate() error {
	switch {
	case slices.Contains(strings.Split(p.Path, "/"), ".."):
		return fmt.Errorf("path %q", p.Path)
	case p.Hold != Unheld && p.Hold != Temporary && p.Hold != Local:
		return fmt.Errorf("hold %q", p.Hold)
	}
	w := NewWrite{Target: p.Target, Prefix: p.Prefix, Path: p.Path}
	return w.validate()
}

// namesOfPlace is how many names a Place has.
const namesOfPlace = 5

// memberPairs are the names of the members and their places in exactNames.
func (d *diskRecord) memberPairs() []exactPair {
	e := d.Exact
	e.Members = resized(e.Members, 2*namesOfPlace*len(d.Members))
	pairs := make([]exactPair, 0, len(e.Members))
	for i := range d.Members {
		for _, p := range []*Place{&d.Members[i].From, &d.Members[i].To} {
			for _, name := range []*string{&p.Target.Bucket, &p.Target.Key, &p.Prefix.Bucket, &p.Prefix.Key, &p.Path} {
				pairs = append(pairs, exactPair{name, &e.Members[len(pairs)]})
			}
		}
	}
	return pairs
}
