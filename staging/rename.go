package staging

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Rename is a published object on its way to another name, in a store that
// renames in two steps: on disk from before the first to after the second. It
// has a record and no bytes. Drop may be called again; otherwise it is for one
// goroutine.
type Rename struct {
	area *Area
	rec  Record
	kept bool
}

// NewRename describes a rename to be: Source goes to Target under Cond. Path is
// for people.
type NewRename struct {
	Target objectstore.Location
	Path   string
	Source objectstore.Object
	Cond   objectstore.Cond
}

// BeginRename notes a rename, durably. Its record's ID is the write id that the
// copy has to bear.
func (a *Area) BeginRename(n NewRename) (*Rename, error) {
	now := a.opts.Now()
	r := &Rename{area: a, rec: Record{
		Version: recordVersion, ID: uuid.NewString(), State: Renaming,
		Target: n.Target, Path: n.Path, Source: objectCopy(&n.Source), Cond: n.Cond,
		Size: n.Source.Size, Created: now, Changed: now,
	}}
	err := r.rec.validate(r.rec.ID)
	if err == nil {
		err = r.write()
	}
	if err == nil && !a.rememberRename(r) {
		_ = r.remove() // nothing was renamed yet
		err = ErrDropped
	}
	if err != nil {
		return nil, fmt.Errorf("note the rename of %q: %w", n.Source.Key, err)
	}
	return r, nil
}

// write puts the record on disk.
func (r *Rename) write() error {
	dir := r.area.path(r.rec.ID)
	if err := r.area.makeDirectory(dir); err != nil {
		return err
	}
	err := r.area.replace(r.rec, true)
	if err == nil {
		err = syncDir(r.area.dir)
	}
	if err != nil && r.area.step("rmdir", dir) == nil {
		_ = os.RemoveAll(dir) // else Open removes it, or finds a rename that did not begin
	}
	return err
}

// Record returns a copy of the record.
func (r *Rename) Record() Record {
	rec := r.rec
	rec.Source = objectCopy(r.rec.Source)
	return rec
}

// Recovered tells whether the rename was found on disk by [Open].
func (r *Rename) Recovered() bool { return r.kept }

// SetUpload notes, durably, the multipart upload that makes the copy; nil: none does
// any more.
func (r *Rename) SetUpload(u *objectstore.Upload) error {
	rec := r.rec
	rec.Upload = u
	if err := r.area.replace(rec, true); err != nil {
		return fmt.Errorf("note the upload of the rename of %q: %w", rec.Source.Key, err)
	}
	r.area.mu.Lock()
	defer r.area.mu.Unlock()
	r.rec = rec
	return nil
}

// Drop forgets the rename: it is done, or did not begin.
func (r *Rename) Drop() error {
	r.area.mu.Lock()
	_, known := r.area.renames[r.rec.ID]
	delete(r.area.renames, r.rec.ID)
	r.area.mu.Unlock()
	if !known {
		return nil
	}
	return r.remove()
}

func (r *Rename) remove() error { return r.area.recycle(r.area.path(r.rec.ID), true) }

// Renames returns the renames under way, those that earlier mounts left too,
// oldest first.
func (a *Area) Renames() []*Rename {
	a.mu.Lock()
	renames := make([]*Rename, 0, len(a.renames))
	for _, r := range a.renames {
		renames = append(renames, r)
	}
	a.mu.Unlock()
	slices.SortFunc(renames, func(x, y *Rename) int {
		if c := x.rec.Created.Compare(y.rec.Created); c != 0 {
			return c
		}
		return strings.Compare(x.rec.ID, y.rec.ID)
	})
	return renames
}

// FindRename returns the rename of that id.
func (a *Area) FindRename(id string) (*Rename, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.renames[id]
	return r, ok
}

// rememberRename is false once the area is closed.
func (a *Area) rememberRename(r *Rename) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.renames == nil {
		return false
	}
	a.renames[r.rec.ID] = r
	return true
}

// validateRename holds what only the record of a rename has.
func (r *Record) validateRename() error {
	switch src := r.Source; {
	case r.State != Renaming && src != nil:
		return fmt.Errorf("a source in state %q", r.State)
	case r.State != Renaming:
		return nil
	case src == nil || src.Bucket == "" || src.Key == "":
		return errors.New("a rename without a source")
	case src.ETag == "":
		return errors.New("a rename of no version")
	case src.Location == r.Target:
		return fmt.Errorf("a rename of %q to itself", src.Key)
	}
	return nil
}
