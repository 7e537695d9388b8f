package catalogview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// PutTable is [Source]'s: one Put, of the bytes as they are. It is no entry if it would
// not load (rules 41, 42 and 54). Directories on the way are made.
func (m *Manifests) PutTable(ctx context.Context, database, name string, w EntryWrite) (*table.Table, Raw, error) {
	id := database + "/" + name
	if !m.mayBe(database, name) {
		return nil, Raw{}, &EntryError{Path: id, Reason: "no table can have the name"}
	}
	t := m.parse(database, name, int64(len(w.Entry)), Raw{Bytes: w.Entry})
	if t.Kind == table.Broken {
		return nil, Raw{}, &EntryError{Path: id, Reason: t.Reason}
	}
	if err := w.accept(ctx, t); err != nil {
		return nil, Raw{}, err
	}
	// What takes the name without being a manifest is nobody's to replace.
	if fault := m.irregular(objectstore.ErrNotExist, database, name); fault != "" {
		return nil, Raw{}, &EntryError{Path: id, Reason: fault}
	}
	o, err := m.put(ctx, id, w)
	if errors.Is(err, objectstore.ErrUnavailable) { // which may have taken effect
		if now, raw, lookErr := m.Table(ctx, database, name, ""); lookErr == nil && bytes.Equal(raw.Bytes, w.Entry) && raw.ETag != w.Base {
			return now, raw, nil
		}
	}
	if err != nil {
		return nil, Raw{}, fmt.Errorf("write the manifest of %q: %w", id, err)
	}
	raw := m.rawOf(o)
	raw.Bytes = w.Entry
	return t, raw, nil
}

func (m *Manifests) put(ctx context.Context, id string, w EntryWrite) (objectstore.Object, error) {
	loc := m.below(id + "/" + manifestKey)
	options := objectstore.PutOptions{Cond: objectstore.Cond{IfMatch: w.Base, IfNoneMatch: w.Base == ""}}
	if w.Base != "" { // an editor's new version is for the same people
		old, err := m.store.Stat(ctx, loc)
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return objectstore.Object{}, objectstore.ErrChanged
		case err != nil:
			return objectstore.Object{}, err
		case old.ETag != w.Base:
			return objectstore.Object{}, objectstore.ErrChanged
		}
		options.Meta = maps.Clone(old.Meta)
		delete(options.Meta, objectstore.MetaWriteID)
		delete(options.Meta, objectstore.MetaMTime)
	}
	return m.store.Put(ctx, loc, bytes.NewReader(w.Entry), int64(len(w.Entry)), options)
}

// DeleteTable is [Source]'s: the manifest goes, in a folder with its directory, and
// nothing else (rule 49).
func (m *Manifests) DeleteTable(ctx context.Context, database, name, base string) error {
	id := database + "/" + name
	o, err := m.stat(ctx, database, name)
	if fault := m.irregular(err, database, name); fault != "" {
		return &EntryError{Path: id, Reason: fault}
	}
	if err != nil {
		return err
	}
	if base != "" && o.ETag != base {
		return fmt.Errorf("delete the manifest of %q: %w", id, objectstore.ErrChanged)
	}
	if err = m.remove(ctx, o.Location); errors.Is(err, objectstore.ErrUnavailable) { // which may have taken effect
		if _, lookErr := m.stat(ctx, database, name); errors.Is(lookErr, objectstore.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("delete the manifest of %q: %w", id, err)
	}
	if !m.flat { // it may hold what others put there, and then it stays
		_ = m.remove(ctx, m.below(id+"/"+sqeDirectory+"/"))
	}
	return nil
}

func (m *Manifests) remove(ctx context.Context, loc objectstore.Location) error {
	for _, err := range m.store.Delete(ctx, []objectstore.Location{loc}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// SetFormat is [Source]'s: directories are a manifest's partitions, and have no entry.
func (m *Manifests) SetFormat(ctx context.Context, t *table.Table, values []string, f table.FormatChange) error {
	id := t.Database + "/" + t.Name
	if values != nil {
		return fmt.Errorf("partition %.300q of %q: a manifest's partitions have no entries: %w", values, id, errors.ErrUnsupported)
	}
	_, raw, err := m.Table(ctx, t.Database, t.Name, "")
	if err != nil {
		return err
	}
	entry, err := manifestWithFormat(raw.Bytes, f)
	if err != nil {
		return &EntryError{Path: id, Reason: err.Error()}
	}
	_, _, err = m.PutTable(ctx, t.Database, t.Name, EntryWrite{Entry: entry, Base: raw.ETag})
	return err
}
