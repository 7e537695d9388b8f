package catalogview

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// SetFormat changes the formats of the partition at path, or of the table: that entry
// alone (rule 59). objectstore.ErrNotExist where the catalog has no such partition, and
// table.ErrName for a directory above partitions;
// errors.ErrUnsupported for a manifest's partition, a data source table and a view.
// ErrPermission where such entries are not written.
func (v *View) SetFormat(ctx context.Context, path string, f table.FormatChange) error {
	comps, err := split(path)
	switch {
	case err != nil:
		return err
	case len(comps) < 2:
		return notExist(path)
	case len(comps) == 2:
		return v.setTableFormat(ctx, path, f)
	}
	b, err := v.below(ctx, comps)
	if b.entry == nil {
		return err
	}
	t := b.entry.base
	if err = formatFixed(t); err != nil {
		return fmt.Errorf("set the format of %q: %w", path, err)
	}
	if t.Partitions != table.PartitionsInCatalog {
		return fmt.Errorf("set the format of %q: its directories are the partitions, which have no entries: %w", path, errors.ErrUnsupported)
	}
	values, ok := b.values(len(t.Keys))
	_, above := b.values(len(b.comps))
	switch {
	case above && len(b.comps) < len(t.Keys):
		return fmt.Errorf("set the format of %q: it is no whole partition, which has a directory for each key of the table (%d, and these are %d); each partition below it has a format of its own: %w",
			path, len(t.Keys), len(b.comps), table.ErrName)
	case !ok || len(b.comps) != len(values) || b.other:
		return notExist(path)
	case !v.o.Register:
		return fmt.Errorf("set the format of %q: nothing is written to the catalog: %w", path, objectstore.ErrPermission)
	}
	unlock, err := v.entryLocks.lock(ctx, join(comps[0], comps[1]))
	if err != nil {
		return err
	}
	defer unlock()
	if err = v.src.SetFormat(ctx, t, values, f); err != nil {
		return err
	}
	v.noteFormat(ctx, b.entry, values)
	return nil
}

// formatFixed says why a table's formats are none that can be set.
func formatFixed(t *table.Table) error {
	switch {
	case t.Kind == table.Broken:
		return &VerdictError{Table: join(t.Database, t.Name), Class: t.Class, Reason: t.Reason}
	case t.Kind == table.View || t.Kind == table.Link:
		return fmt.Errorf("%s: %w", t.Reason, errors.ErrUnsupported)
	case t.Kind != table.Hive:
		return fmt.Errorf("the files of a %s table are of the format that its own metadata says: %w", t.Kind, errors.ErrUnsupported)
	case t.DataSource() != "":
		return fmt.Errorf("a data source table (provider %.100s): the format is the provider: %w", t.DataSource(), errors.ErrUnsupported)
	}
	return nil
}

func (v *View) setTableFormat(ctx context.Context, path string, f table.FormatChange) error {
	db, name, unlock, err := v.changing(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	since := v.entryGeneration()
	t, _, err := v.src.Table(ctx, db, name, "")
	if err == nil {
		err = formatFixed(t)
	}
	if err == nil {
		err = v.src.SetFormat(ctx, t, nil, f)
	}
	if err != nil {
		return fmt.Errorf("set the format of %q: %w", path, err)
	}
	t, raw, err := v.src.Table(ctx, db, name, "")
	if err != nil { // it is done; what is known of the table is no longer so
		v.tables.drop(func(k string) bool { return k == path })
		return nil // the next use asks again
	}
	v.noteEntry(ctx, since, t, raw)
	return nil
}

// noteFormat takes in that a partition's entry is another one.
func (v *View) noteFormat(ctx context.Context, e *entry, values []string) {
	v.noteDeregistered(e, values)
	p, _, err := v.src.Partition(ctx, e.base, values)
	if err != nil {
		v.dropPartitions(e.id())
		return
	}
	v.noteRegistered(e, []*partition{v.settle(e, p)})
}
