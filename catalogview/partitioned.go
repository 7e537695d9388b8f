package catalogview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// values returns the values that the first n components stand for; ok is false where
// one of them is no partition's name. A projected value has one spelling.
func (b below) values(n int) (values []string, ok bool) {
	if n > len(b.comps) || n > len(b.table.Keys) {
		return nil, false
	}
	values = make([]string, n)
	text := b.table.ValueText
	if b.table.Partitions == table.PartitionsProjected {
		text = b.table.PartitionText
	}
	for i := range n {
		if values[i], ok = text(b.comps[i], i); !ok {
			return nil, false
		}
	}
	return values, true
}

// enter finds the partition that a path lies in, or is, and goes to its place. What
// lies in none of the catalog's is below the table's place: directories that the
// catalog does not know, and what is no partition. A partition that cannot be used
// is an error, with the path as far as it is known.
func (v *View) enter(ctx context.Context, b below) (below, error) {
	n := len(b.table.Keys)
	if b.table.Partitions == table.PartitionsProjected && v.outOfRange(b) {
		return b, notExist(b.path)
	}
	if b.table.Partitions == table.PartitionsOnDisk || len(b.comps) < n {
		return b, nil
	}
	values, ok := b.values(n)
	if !ok {
		return b, nil
	}
	p, err := v.partition(ctx, b.entry, values)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return b, nil
	case err != nil:
		return b, fmt.Errorf("partition of %q: %w", b.path, err)
	case !slices.Equal(p.names, b.comps[:n]):
		b.other = true
		return b, nil // its directory is called otherwise, and two names must not lead to one
	}
	b.part, b.at, b.tail = p, p.place, b.comps[n:]
	if p.refused != nil {
		return b, &VerdictError{Table: b.id() + "/" + strings.Join(b.comps[:n], "/"), Class: p.refused.class, Reason: p.refused.reason}
	}
	return b, nil
}

// outOfRange says that a path lies in a directory that would be a partition by its
// name, and is none of the table's projection.
func (v *View) outOfRange(b below) bool {
	for i, name := range b.comps[:max(0, len(b.comps)-1)] {
		if _, err := b.table.ParsePartition(name, i); errors.Is(err, table.ErrNotPartition) {
			return false
		}
		value, ok := b.table.PartitionText(name, i)
		if !ok || !b.table.Projection.InRange(i, value, v.o.Now()) {
			return true
		}
	}
	return false
}

// nowhere says that a path lies in a directory of values of a projection with a
// template, where only partitions are: the table's own location has nothing of them.
func (b below) nowhere() bool {
	if b.table.Partitions != table.PartitionsProjected || b.part != nil || !b.table.Projection.Templated() || len(b.comps) == 0 {
		return false
	}
	_, ok := b.table.PartitionText(b.comps[0], 0)
	return ok
}

// partition returns the partition of all values that the catalog has, or projects.
func (v *View) partition(ctx context.Context, e *entry, values []string) (*partition, error) {
	if e.table.Partitions == table.PartitionsInCatalog {
		return v.registered(ctx, e, values)
	}
	if !e.inRange(values, v.o.Now()) {
		return nil, fmt.Errorf("partition %q of %q is out of its projection's range: %w", values, e.id(), objectstore.ErrNotExist)
	}
	p := table.Partition{Values: values, Format: e.table.Format, FormatFrom: e.table.FormatFrom, InputFormat: e.table.InputFormat}
	if p.Location = e.table.Projection.Location(values); p.Location != "" {
		return v.settle(e, p), nil
	}
	q := &partition{Partition: p, place: e.place, names: make([]string, len(values))}
	for i, value := range values {
		q.names[i] = e.table.PartitionName(value, i)
	}
	q.place.Location = e.place.down(q.names)
	return q, nil
}

// lookupPartitioned finds a name in a table whose partitions are the catalog's: a
// partition, or a directory on the way to some, is there by the catalog's word. Any
// other directory is there by its objects, unless a partition lies in it under
// another name.
func (v *View) lookupPartitioned(ctx context.Context, b below) (Node, error) {
	if b.part != nil {
		if len(b.tail) == 0 {
			return b.partitionNode(), nil
		}
		return v.lookupStored(ctx, b)
	}
	there, err := v.leads(ctx, b)
	switch {
	case err != nil:
		return Node{}, fmt.Errorf("look up %q: %w", b.path, err)
	case there:
		return b.partitionNode(), nil
	case b.nowhere():
		return Node{}, notExist(b.path)
	}
	n, err := v.lookupStored(ctx, b)
	if err != nil || n.Kind != KindDirectory || len(b.comps) > len(b.table.Keys) {
		return n, err
	}
	taken, err := v.taken(ctx, b)
	if err == nil && taken {
		err = notExist(b.path)
	}
	if err != nil {
		return Node{}, err
	}
	return n, nil
}

// leads says that a path is a directory above partitions.
func (v *View) leads(ctx context.Context, b below) (bool, error) {
	if len(b.comps) >= len(b.table.Keys) {
		return false, nil
	}
	values, ok := b.values(len(b.comps))
	if !ok {
		return false, nil
	}
	if b.table.Partitions == table.PartitionsProjected {
		return b.inRange(values, v.o.Now()), nil
	}
	return v.anyRegistered(ctx, b.entry, values, b.comps)
}

// taken says that a directory of the store that is no partition by its name is not
// shown: partitions lie in it under other names (a location may be anywhere, and
// some writers do not escape values), or the table's projection has no such value.
func (v *View) taken(ctx context.Context, b below) (bool, error) {
	if b.table.Partitions == table.PartitionsProjected {
		_, err := b.table.ParsePartition(b.base(), len(b.comps)-1)
		partition := !errors.Is(err, table.ErrNotPartition)
		return partition || b.table.Projection.Templated() && !table.Hidden(b.base()), nil
	}
	if table.Hidden(b.comps[0]) {
		return false, nil
	}
	n := len(b.comps) - 1
	values, ok := b.values(n)
	for !ok {
		n--
		values, ok = b.values(n)
	}
	l, err := v.partitionsOf(ctx, b.entry, values)
	if err != nil {
		return false, err
	}
	return v.holds(l, b.directory()), nil
}

// holds says that a partition of a list lies in a directory.
func (v *View) holds(l *partitionList, dir objectstore.Location) bool {
	found := false
	l.each(func(p table.Partition) bool {
		at, ref := v.at.resolve(p.Location, "")
		found = ref == nil && at.Bucket == dir.Bucket && strings.HasPrefix(at.Key, dir.Key)
		return !found
	})
	return found
}

// partitionNode is the node of a partition's directory, or of one above partitions.
func (b below) partitionNode() Node {
	n := b.directoryNode(objectstore.Object{Location: b.directory()})
	n.Registered = true
	if b.part != nil {
		n.ModTime = b.part.Created
		n.Object.ModTime = b.part.Created
		if b.part.refused != nil {
			n.Object.Location = objectstore.Location{}
		}
	}
	return n
}

// format is what files in a path's directory are checked as: the format of its
// partition (rule 57), but text where JSON need not be one object a line.
func (b below) format() string {
	if b.table.LooseJSON {
		return "text"
	}
	if b.part != nil {
		return b.part.Format
	}
	return b.table.Format
}

// inRange says that values are of a table's projection.
func (e *entry) inRange(values []string, now time.Time) bool {
	for i, value := range values {
		if !e.table.Projection.InRange(i, value, now) {
			return false
		}
	}
	return true
}
