package staging

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// MaxMembers bounds a batch, and what it removes.
const MaxMembers = 100_000

// Cleared is a version that a [Batch] removes before it publishes.
type Cleared struct {
	Target objectstore.Location `json:"target"`
	ETag   string               `json:"etag"`
}

// BatchPlan says what a [Batch] is to do.
type BatchPlan struct {
	Members []BatchMember
	Clear   []Cleared // what goes first; with any Members may be none
	// RegisterLast: Members' partitions are registered once all are published.
	RegisterLast bool
	Path         string // in the mount, for people, where there are no Members
}

// NewBatch describes a batch. Of a write that is in another one it is an error.
// Its record is checked, and nothing is on disk.
func (a *Area) NewBatch(p BatchPlan) (*Batch, error) {
	now := a.opts.Now()
	b := &Batch{area: a, rec: Record{
		Version: recordVersion, ID: uuid.NewString(), State: BatchMoving,
		Members: p.Members, Clear: p.Clear, RegisterLast: p.RegisterLast, Path: p.Path, Created: now, Changed: now,
	}}
	if len(p.Clear) > 0 {
		b.rec.State, b.rec.Target = BatchClearing, p.Clear[0].Target
	}
	if len(p.Members) > 0 {
		b.rec.Target, b.rec.Path = p.Members[0].To.Target, commonDirectory(p.Members)
	}
	for _, m := range p.Members {
		b.rec.Size += m.Size
	}
	if err := b.rec.validate(b.rec.ID); err != nil {
		return nil, fmt.Errorf("publish %d files together: %w", len(p.Members), err)
	}
	return b, nil
}

// Settle is SetState(BatchSettling, reason), of a batch whose members are published
// where done, by their order, says so. Of nil none is.
func (b *Batch) Settle(done []bool, reason string) error {
	rec := b.Record()
	rec.State, rec.Error = BatchSettling, reason
	rec.Members = slices.Clone(rec.Members)
	for i := range done {
		rec.Members[i].Done = done[i]
	}
	return b.save(rec)
}

// growth is how much longer the record of a batch may become.
func (r *Record) growth() int { return len(`"done":true,`)*len(r.Members) + 64<<10 }

// validateClear holds what only the record of a batch that removes something has.
func (r *Record) validateClear() error {
	if len(r.Clear) > MaxMembers {
		return fmt.Errorf("%d files are to be removed first, %d are the most: %w", len(r.Clear), MaxMembers, objectstore.ErrTooLarge)
	}
	for _, c := range r.Clear {
		switch {
		case c.ETag == "":
			return fmt.Errorf("no version of %q is named", c.Target.Key)
		case c.Target.Bucket == "" || c.Target.Key == "" || strings.HasSuffix(c.Target.Key, "/"):
			return fmt.Errorf("remove %q: %w", c.Target.Key, objectstore.ErrName)
		case slices.Contains(strings.Split(c.Target.Key, "/"), ".."):
			return fmt.Errorf("remove %q: %w", c.Target.Key, objectstore.ErrName)
		}
	}
	if len(r.Clear) == 0 && (r.State == BatchClearing || r.State == BatchSettling) {
		return errors.New("nothing is to be removed")
	}
	return nil
}

// clearPairs are the names of what is removed and their places in exactNames.
func (d *diskRecord) clearPairs() []exactPair {
	e := d.Exact
	e.Clear = resized(e.Clear, 2*len(d.Clear))
	pairs := make([]exactPair, 0, len(e.Clear))
	for i := range d.Clear {
		at := &d.Clear[i].Target
		pairs = append(pairs, exactPair{&at.Bucket, &e.Clear[2*i]}, exactPair{&at.Key, &e.Clear[2*i+1]})
	}
	return pairs
}
