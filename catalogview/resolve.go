package catalogview

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Target is where a name that is to be written belongs.
type Target struct {
	Location objectstore.Location // of the object; as a directory with a "/" after it
	Prefix   objectstore.Location // the table's location (rule 27)
	Table    *table.Table         // shared; not to be changed
	Level    int                  // components between the table and the name
	// Hidden: not data, so neither format-checked nor registered.
	Hidden bool
	Format string // what a file there must hold to be published; "" for anything
}

// Directory returns the target as a directory.
func (t Target) Directory() objectstore.Location {
	l := t.Location
	l.Key += "/"
	return l
}

// Resolve says where a file at a path is to be written; nothing is asked of the
// store, and of the catalog at most for the table and the partition. Files may lie
// at any level of a table. Errors: [ErrLevel] at the root and in a database,
// [ErrNameTooLong], ErrNotExist for a table that is not there, and in a directory
// whose partition the catalog has under another name, [*VerdictError] by the
// table's or the partition's verdict, a _sqe (rule 51), metadata (rule 21) or a
// partition that cannot be read (rule 45), table.ErrName beside the partitions of a
// projection with a template. That a published file of a format table cannot change
// (rule 22) is for the caller, who knows whether one is there:
// Target.Table.InsertOnly.
func (v *View) Resolve(ctx context.Context, path string) (Target, error) {
	b, err := v.writable(ctx, path)
	if err != nil {
		return Target{}, err
	}
	t := Target{
		Location: b.object(), Prefix: b.at.Location, Table: b.table,
		Level: len(b.comps) - 1, Hidden: b.hidden(),
	}
	if !t.Hidden {
		t.Format = b.format()
	}
	if most := v.o.MaxKey; most > 0 && len(t.Location.Key) > most {
		return Target{}, fmt.Errorf("key of %q has %d bytes, over %d: %w", path, len(t.Location.Key), most, ErrNameTooLong)
	}
	return t, nil
}

// ResolveDirectory is Resolve for a directory that is to be made or to take a
// name: at a partition level it also holds the name to the rules of names,
// against the directories that are there and against beside: names of
// directories in the same place that are known to the caller alone (those that
// a mount keeps until something is published in them). Errors also:
// table.ErrName, table.ErrEqual.
func (v *View) ResolveDirectory(ctx context.Context, path string, beside ...string) (Target, error) {
	t, err := v.Resolve(ctx, path)
	if err != nil {
		return Target{}, err
	}
	comps, _ := split(path)
	b, err := v.below(ctx, comps)
	if err != nil {
		return Target{}, err
	}
	level, err := b.partitionLevels(t.Level)
	if err != nil || level < t.Level {
		return t, err // below an ordinary directory names are free
	}
	var listErr error
	if err = v.checkProjected(b, level); err != nil {
		return Target{}, err
	}
	err = t.Table.CheckNew(b.base(), level, v.existing(ctx, b, beside, &listErr))
	if err == nil {
		err = listErr
	}
	if errors.Is(err, table.ErrMetadata) {
		err = b.metadataError()
	}
	if err != nil {
		return Target{}, fmt.Errorf("directory %q: %w", path, err)
	}
	return t, nil
}

// checkProjected refuses a new partition directory out of a projection's range.
func (v *View) checkProjected(b below, level int) error {
	if b.table.Partitions != table.PartitionsProjected || level >= len(b.table.Keys) || table.Hidden(b.base()) {
		return nil
	}
	if v.projectedName(b) {
		return nil
	}
	return fmt.Errorf("directory %q: it is no value of the table's partition projection: %w", b.path, table.ErrName)
}

// projectedName says that the last component of a path is a value of the table's
// projection.
func (v *View) projectedName(b below) bool {
	value, ok := b.table.PartitionText(b.base(), len(b.comps)-1)
	return ok && b.table.Projection.InRange(len(b.comps)-1, value, v.o.Now())
}

// existing yields the names of the directories beside b, those of beside first.
func (v *View) existing(ctx context.Context, b below, beside []string, failed *error) iter.Seq[string] {
	level := len(b.comps) - 1
	dir := below{entry: b.entry, comps: b.comps[:level], at: b.place, tail: b.comps[:level]}
	if b.part != nil && len(b.tail) > 0 {
		dir.at, dir.tail = b.at, b.tail[:len(b.tail)-1]
	}
	return func(yield func(string) bool) {
		if slices.ContainsFunc(beside, func(name string) bool { return !yield(name) }) {
			return
		}
		done, err := v.existingPartitions(ctx, b, yield)
		if !done && err == nil {
			err = v.existingStored(ctx, dir, v.unlessTaken(ctx, b, yield, failed))
		}
		if *failed == nil {
			*failed = err
		}
	}
}

// unlessTaken is yield without the name of b itself where only partitions of other
// names lie in that directory: it is not shown (see taken), so it can be made.
func (v *View) unlessTaken(ctx context.Context, b below, yield func(string) bool, failed *error) func(string) bool {
	if b.part != nil || b.table.Partitions != table.PartitionsInCatalog {
		return yield
	}
	return func(name string) bool {
		if name != b.base() {
			return yield(name)
		}
		taken, err := v.taken(ctx, b)
		*failed = err
		return err == nil && (taken || yield(name))
	}
}

// existingStored yields the names of the directories that the store has in dir.
func (v *View) existingStored(ctx context.Context, dir below, yield func(string) bool) error {
	prefix := dir.directory()
	for e, err := range v.entries(ctx, prefix) {
		switch {
		case errors.Is(err, objectstore.ErrNoBucket) && dir.table.Partitions != table.PartitionsOnDisk:
			return nil // the partitions may lie elsewhere
		case err != nil:
			return err
		}
		if name, ok := entryName(prefix.Key, e); ok && e.Prefix && !yield(name) {
			return nil
		}
	}
	return nil
}

// existingPartitions yields the names of the registered partitions beside b that may
// be equal to it: of a key whose values are equal as text alone those of its value,
// which takes a look-up; else the list tells. done: the consumer has enough.
func (v *View) existingPartitions(ctx context.Context, b below, yield func(string) bool) (done bool, err error) {
	level := len(b.comps) - 1
	if b.table.Partitions != table.PartitionsInCatalog || level >= len(b.table.Keys) {
		return false, nil
	}
	if b.part != nil {
		return !yield(b.base()), nil
	}
	values, ok := b.values(level)
	own, named := b.values(level + 1)
	if !ok || !named {
		return false, nil // what is no partition's name is refused by that
	}
	if b.table.OneSpelling(level) {
		values = own
	}
	if len(values) == len(b.table.Keys) {
		p, missing := v.registered(ctx, b.entry, values)
		if errors.Is(missing, objectstore.ErrNotExist) {
			return false, nil
		}
		return missing == nil && !yield(p.names[level]), missing
	}
	l, err := v.partitionsOf(ctx, b.entry, values)
	if err != nil {
		return false, err
	}
	l.each(func(p table.Partition) bool {
		q := v.settle(b.entry, p)
		done = hasPrefix(p.Values, values) && !v.leaves(b.entry, q) && !yield(q.names[level])
		return !done
	})
	return done, nil
}

// writable finds the table of a path and says whether the path may be written.
func (v *View) writable(ctx context.Context, path string) (below, error) {
	comps, err := split(path)
	if err != nil {
		return below{}, err
	}
	if len(comps) < 3 {
		return below{}, fmt.Errorf("%q: %w", path, ErrLevel)
	}
	b, err := v.below(ctx, comps)
	if err != nil {
		return below{}, err
	}
	if !b.table.Writable {
		return below{}, &VerdictError{Table: b.id(), Class: b.table.Class, Reason: b.table.Reason}
	}
	if b.other && len(b.comps) > len(b.table.Keys) {
		return below{}, notExist(path) // also where the mount has kept such a directory
	}
	if b.part != nil && b.part.ReadOnly != "" {
		return below{}, &VerdictError{Table: b.id() + "/" + strings.Join(b.comps[:len(b.table.Keys)], "/"), Class: table.ClassReadOnly, Reason: b.part.ReadOnly}
	}
	if slices.Contains(b.comps, controlName) && !inTransaction(b.comps) {
		return below{}, fmt.Errorf("%q: %w", path, ErrLevel)
	}
	if v.at.inSQE(b.at, b.tail) {
		return below{}, &VerdictError{Table: b.id(), Class: table.ClassReadOnly, Reason: "_sqe is changed through the catalog alone, not through a data directory"}
	}
	if b.table.IsMetadata(b.comps[0]) {
		return below{}, b.metadataError()
	}
	if parent := b; len(b.comps) > 1 {
		if parent.comps = b.comps[:len(b.comps)-1]; parent.nowhere() && len(parent.comps) < len(b.table.Keys) && !v.projectedName(b) {
			return below{}, fmt.Errorf("%q: only partitions lie here, by the table's storage.location.template: %w", path, table.ErrName)
		}
	}
	_, err = b.partitionLevels(len(b.comps) - 1)
	return b, err
}

// inTransaction says that a path below a table is one that a mount keeps the files of a
// transaction by until they are published elsewhere: .lakefs/txn/ID and what is in it.
// Nothing in the store lies there, or is asked for.
func inTransaction(comps []string) bool {
	return len(comps) >= 3 && comps[0] == controlName && comps[1] == "txn" && !slices.Contains(comps[1:], controlName)
}

// metadataError: rule 21.
func (b below) metadataError() error {
	return &VerdictError{
		Table: b.id(), Class: table.ClassReadOnly,
		Reason: fmt.Sprintf("%s/ holds the table's own metadata", b.comps[0]), Err: table.ErrMetadata,
	}
}
