package catalogview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// ErrEntry is of what was written and is no entry of that table: its JSON, its limits,
// or what it says (EINVAL).
var ErrEntry = errors.New("not a valid entry")

// EntryError says what is wrong with an entry that was to be written. It unwraps to
// ErrEntry.
type EntryError struct {
	Path   string // "database/table"
	Reason string
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry of %q: %s", e.Path, e.Reason) }

// Unwrap returns ErrEntry.
func (e *EntryError) Unwrap() error { return ErrEntry }

// FreshEntry returns the entry of the table at path ("database/table") as the catalog
// has it now, with its node, past all caches; ErrNotExist where there is none.
func (v *View) FreshEntry(ctx context.Context, path string) ([]byte, Node, error) {
	db, name, err := v.tablePath(path)
	if err != nil {
		return nil, Node{}, err
	}
	return v.tableJSON(ctx, db, name)
}

// WriteEntry makes entry the entry of the table at path: an update of the version base
// (an ETag of FreshEntry or EntryJSON), or with base "" a new table. own tells that who
// writes made base too: the entry may name an older version than that. It returns the
// node of the new version. Nothing of it is written on an error: an *EntryError,
// ErrChanged where the catalog has another version than base (or than the one that the
// entry itself names), ErrExist for a new one that is there, ErrPermission,
// ErrTooLarge, or a location's [*VerdictError]. The reason of a refusal is in Status
// until a write of that entry succeeds. After ErrUnavailable it may have been written,
// and may be yet.
func (v *View) WriteEntry(ctx context.Context, path string, entry []byte, base string, own bool) (Node, error) {
	db, name, unlock, err := v.changing(ctx, path)
	if err != nil {
		return Node{}, err
	}
	defer unlock()
	since := v.entryGeneration()
	t, raw, err := v.putEntry(ctx, db, name, EntryWrite{Entry: entry, Base: base, Own: own, Accept: v.acceptable})
	v.rejected.note(ctx, v.o.Now(), path, err)
	if err != nil {
		return Node{}, err
	}
	return entryNode(path, raw, v.noteEntry(ctx, since, t, raw)), nil
}

func (v *View) putEntry(ctx context.Context, db, name string, w EntryWrite) (*table.Table, Raw, error) {
	if size := int64(len(w.Entry)); size > v.MaxEntry() {
		reason := fmt.Sprintf("it has %d bytes, over the limit of %d bytes an entry", size, v.MaxEntry())
		return nil, Raw{}, fmt.Errorf("%w (%w)", &EntryError{Path: join(db, name), Reason: reason}, objectstore.ErrTooLarge)
	}
	return v.src.PutTable(ctx, db, name, w)
}

// RemoveEntry drops the table at path from the catalog, if its entry is still of the
// version base ("": of whatever version), and never its data (rules 14 and 49).
// ErrChanged; ErrNotExist.
func (v *View) RemoveEntry(ctx context.Context, path, base string) error {
	db, name, unlock, err := v.changing(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	since := v.entryGeneration()
	if err = v.src.DeleteTable(ctx, db, name, base); err != nil {
		return err
	}
	v.rejected.note(ctx, v.o.Now(), path, nil)
	v.noteNoEntry(since, db, name)
	return nil
}

// MaxEntry is the most bytes that an entry may have to be written.
func (v *View) MaxEntry() int64 { return v.o.Limits.MaxBytes }

// tablePath takes a table's path apart; ErrNotExist for a path that can be none's.
func (v *View) tablePath(path string) (db, name string, err error) {
	comps, err := split(path)
	switch {
	case err != nil:
		return "", "", err
	case len(comps) != 2 || slices.Contains(comps, controlName):
		return "", "", notExist(path)
	}
	return comps[0], comps[1], nil
}

// changing keeps the entry at path from being changed by others of this View, until
// unlock.
func (v *View) changing(ctx context.Context, path string) (db, name string, unlock func(), err error) {
	if db, name, err = v.writablePath(path); err == nil {
		unlock, err = v.entryLocks.lock(ctx, path)
	}
	return db, name, unlock, err
}

// writablePath is tablePath for an entry that is to be written. A name that the mount
// would not show is refused: whoever wrote it would not find it again.
func (v *View) writablePath(path string) (db, name string, err error) {
	if !v.o.WriteEntries {
		return "", "", fmt.Errorf("entry of %q: entries are not written: %w", path, objectstore.ErrPermission)
	}
	db, name, err = v.tablePath(path)
	switch {
	case err != nil:
	case !hasEntry(name):
		err = fmt.Errorf("entry of %q: %w", path, ErrNameTooLong)
	case v.o.Rootless && noGlueName(name):
		err = &EntryError{Path: path, Reason: "no table can have the name"}
	}
	return db, name, err
}

// acceptable says why a table that an entry would load as is refused: where it lies is
// checked as at every load (rule 43).
func (v *View) acceptable(ctx context.Context, t *table.Table) error {
	e, err := v.judge(ctx, t, Raw{})
	switch {
	case err != nil:
		return err
	case !t.Readable || e.table.Readable:
		return nil
	case e.table.Class == table.ClassBroken:
		return &EntryError{Path: e.id(), Reason: e.table.Reason}
	}
	return &VerdictError{Table: e.id(), Class: e.table.Class, Reason: e.table.Reason}
}

// entryGenerations tells a change of what is cached of entries by others.
type entryGenerations struct{ tables, lists uint64 }

func (v *View) entryGeneration() (since entryGenerations) {
	_, _, since.tables = v.tables.peek("")
	_, _, since.lists = v.lists.peek("")
	return since
}

// noteEntry takes in that the catalog has this entry of a table, and no other, so that
// the mount shows it at once; where others wrote entries since, the next use asks, for
// theirs may be later. It returns the table with the verdict on its location. Nothing
// else that is cached is forgotten.
func (v *View) noteEntry(ctx context.Context, since entryGenerations, t *table.Table, raw Raw) *table.Table {
	key := join(t.Database, t.Name)
	old, have, _ := v.tables.peek(key)
	at := v.o.Now()
	e, err := v.judge(ctx, t, raw)
	if err == nil {
		v.tables.replace(key, cell[*entry]{value: e, at: at}, since.tables)
		t = e.table
	} else {
		v.tables.drop(func(k string) bool { return k == key }) // the next use asks again
	}
	v.lists.change(t.Database, since.lists, func(l tableList) tableList { return l.with(t.Name, raw) })
	if !have || old.err != nil || !samePartitions(old.value.base, t) {
		v.dropPartitions(key)
	}
	return t
}

// noteNoEntry takes in that the catalog has no entry of a table.
func (v *View) noteNoEntry(since entryGenerations, db, name string) {
	key := join(db, name)
	v.tables.drop(func(k string) bool { return k == key })
	v.lists.change(db, since.lists, func(l tableList) tableList { return l.without(name) })
	v.dropPartitions(key)
}

func (v *View) dropPartitions(of string) {
	v.parts.drop(ofTable(func(db, name string) bool { return join(db, name) == of }))
}

// with is the listing with an entry of this table in place of what it had. What others
// hold of the listing is not changed.
func (l tableList) with(name string, raw Raw) tableList {
	raw.Bytes = nil
	l.all, l.index = slices.Clone(l.all), maps.Clone(l.index)
	i, there := l.index[name]
	if !there {
		i = len(l.all)
		l.all = append(l.all, TableInfo{})
		l.index[name] = i
	}
	l.all[i] = TableInfo{Name: name, Raw: raw}
	return l
}

// without is the listing without a table.
func (l tableList) without(name string) tableList {
	i, there := l.index[name]
	if !there {
		return l
	}
	l.all = slices.Delete(slices.Clone(l.all), i, i+1)
	l.index = make(map[string]int, len(l.all))
	for i, info := range l.all {
		l.index[info.Name] = i
	}
	return l
}

// samePartitions says that what is known of a table's partitions holds for the other
// entry of it too: where they lie, how they are named, and by what they are read.
func samePartitions(a, b *table.Table) bool {
	if a == nil || b == nil || a.Projection != nil || b.Projection != nil {
		return false
	}
	return a.Location == b.Location && a.Kind == b.Kind && a.Partitions == b.Partitions &&
		a.Format == b.Format && a.FormatFrom == b.FormatFrom && a.InputFormat == b.InputFormat && a.Serde == b.Serde &&
		a.NullName == b.NullName && a.PathOnlyValue == b.PathOnlyValue && a.LegacyDate == b.LegacyDate &&
		a.Readable == b.Readable && reflect.DeepEqual(a.Keys, b.Keys) && reflect.DeepEqual(a.Target, b.Target)
}
