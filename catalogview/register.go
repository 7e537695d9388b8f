package catalogview

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Register registers the partition that an object at path was published into, if
// its table's partitions are in the catalog and it is not known to be registered.
// It is what commit calls after each publish; what is registered costs no request
// within the TTL. at is where the object is. Nothing is registered for hidden names,
// and none without Options.Register.
func (v *View) Register(ctx context.Context, path string, at objectstore.Location) error {
	comps, err := split(path)
	if err != nil || !v.o.Register || len(comps) < 3 {
		return err
	}
	b, err := v.below(ctx, comps)
	if err != nil {
		return fmt.Errorf("register the partition of %q: %w", path, err)
	}
	n := len(b.table.Keys)
	if b.table.Partitions != table.PartitionsInCatalog || n == 0 || len(b.comps) <= n || b.hidden() {
		return nil
	}
	values, ok := b.values(n)
	dir := strings.Join(comps[:2+n], "/")
	if !ok {
		v.warnSpelling(b, dir)
		return nil
	}
	if b.part != nil {
		v.warnElsewhere(dir, b.part.Location, b.part.place, at)
		return nil
	}
	if place := b.at.down(b.comps[:n]); at.Bucket != place.Bucket || !strings.HasPrefix(at.Key, place.Key) {
		v.warnMoved(dir, place, at)
		return nil
	}
	location := strings.TrimSuffix(b.table.Location, "/")
	for _, c := range b.comps[:n] {
		location += "/" + c
	}
	registered, err := v.src.Register(ctx, b.entry.base, values, location)
	if err != nil {
		return fmt.Errorf("register partition %q: %w", dir, err)
	}
	p := table.Partition{
		Values: values, Location: registered, Created: v.o.Now(),
		Format: b.table.Format, FormatFrom: b.table.FormatFrom, InputFormat: b.table.InputFormat,
	}
	v.noteRegistered(b.entry, p)
	v.warnElsewhere(dir, registered, v.settle(p).place, at)
	return nil
}

// warnMoved tells once of a partition that the catalog no longer has, and that a new
// one would not be where the mount wrote: the table moved meanwhile, or the partition
// lay elsewhere. To register the new place would show what else lies there.
func (v *View) warnMoved(dir string, place, wrote objectstore.Location) {
	if v.firstOf(dir, "moved") {
		v.o.Log.Warn("the catalog no longer has this partition where it was when the file was opened: what was written is in no partition",
			slog.String("path", dir), slog.String("now", uri(place)), slog.String("written", uri(wrote)))
	}
}

// warnSpelling tells once of a directory that is a partition by its name, and not
// named as one of the catalog's would be: registering it would rename it under who
// writes there.
func (v *View) warnSpelling(b below, dir string) {
	for i, c := range b.comps[:len(b.table.Keys)] {
		if _, err := b.table.ParsePartition(c, i); err != nil {
			return // no partition
		}
	}
	if v.firstOf(dir, "spelling") {
		v.o.Log.Warn("the catalog spells this partition otherwise: it is not registered, and engines that ask the catalog do not read it",
			slog.String("path", dir), slog.String("written", uri(b.at.down(b.comps[:len(b.table.Keys)]))))
	}
}

// PartitionLines yields the entries of a table's registered partitions, each as one
// line of JSON with no newline in or after it; not to be kept. ErrNotExist for a
// path that is no table, and for a table whose partitions are not in the catalog.
func (v *View) PartitionLines(ctx context.Context, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		e, err := v.partitioned(ctx, path)
		if err != nil {
			yield(nil, err)
			return
		}
		for line, err := range v.src.PartitionLines(ctx, e.base) {
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// HasPartitionLines says that a path is a table with PartitionLines; ErrNotExist if
// not.
func (v *View) HasPartitionLines(ctx context.Context, path string) error {
	_, err := v.partitioned(ctx, path)
	return err
}

// partitioned finds the table at a path whose partitions are in the catalog.
func (v *View) partitioned(ctx context.Context, path string) (*entry, error) {
	comps, err := split(path)
	if err != nil {
		return nil, err
	}
	if len(comps) != 2 {
		return nil, notExist(path)
	}
	b, err := v.below(ctx, comps)
	var verdict *VerdictError
	if err != nil && (!errors.As(err, &verdict) || b.entry == nil) {
		return nil, err
	}
	if b.table.Partitions != table.PartitionsInCatalog {
		return nil, notExist(path)
	}
	return b.entry, nil
}

// partitionJSON is EntryJSON for a partition's directory.
func (v *View) partitionJSON(ctx context.Context, comps []string) ([]byte, Node, error) {
	path := strings.Join(comps, "/")
	b, err := v.below(ctx, comps)
	if err != nil && b.part == nil {
		return nil, Node{}, err
	}
	n := len(b.table.Keys)
	if b.table.Partitions != table.PartitionsInCatalog || n == 0 || len(b.comps) != n {
		return nil, Node{}, notExist(path)
	}
	values, ok := b.values(n)
	if !ok {
		return nil, Node{}, notExist(path)
	}
	_, raw, err := v.src.Partition(ctx, b.entry.base, values)
	if err != nil {
		return nil, Node{}, err
	}
	return raw.Bytes, Node{
		Kind: KindEntry, Path: path + entrySuffix, Table: b.table, Size: raw.Size, ETag: raw.ETag, ModTime: raw.ModTime,
	}, nil
}
