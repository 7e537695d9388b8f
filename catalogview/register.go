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
// It is what commit calls with each publish; what is registered costs no request
// within the TTL, and concurrent registrations of one partition are one. at is where
// the object is. Nothing is registered for hidden names, and none without
// Options.Register. One that failed is tried again in the background, until it is
// registered or the View is closed. A partition that is leaving stays (see Leave).
func (v *View) Register(ctx context.Context, path string, at objectstore.Location) error {
	comps, err := split(path)
	if err != nil || !v.o.Register || len(comps) < 3 {
		return err
	}
	v.Stay(ctx, path)
	if err = v.register(ctx, comps, at, false); err != nil {
		v.pending.add(v, path, at) //nolint:contextcheck // it is tried again when ctx is over
		return err
	}
	v.pending.remove(path)
	return nil
}

// registerAgain is Register for one that failed, unless nothing lies in the partition
// by now: what was to be renamed there was not, or was removed.
func (v *View) registerAgain(ctx context.Context, path string, at objectstore.Location) error {
	comps, err := split(path)
	if err == nil {
		err = v.register(ctx, comps, at, true)
	}
	if err == nil {
		v.pending.remove(path)
	}
	return err
}

func (v *View) register(ctx context.Context, comps []string, at objectstore.Location, again bool) error {
	b, err := v.below(ctx, comps)
	if err != nil {
		return fmt.Errorf("register the partition of %q: %w", strings.Join(comps, "/"), err)
	}
	n := len(b.table.Keys)
	if b.table.Partitions != table.PartitionsInCatalog || n == 0 || len(b.comps) <= n || b.hidden() {
		return nil
	}
	values, ok := b.values(n)
	if !ok {
		return nil // a directory that is no partition by its name
	}
	dir := strings.Join(comps[:2+n], "/")
	p, err := v.registered(ctx, b.entry, values)
	switch {
	case err == nil:
		v.warnElsewhere(dir, p.Location, p.place, at)
		return nil
	case !errors.Is(err, objectstore.ErrNotExist):
		return fmt.Errorf("register partition %q: %w", dir, err)
	case !v.worthy(b, dir):
		return nil
	}
	place := b.at.down(b.comps[:n])
	if at.Bucket != place.Bucket || !strings.HasPrefix(at.Key, place.Key) {
		v.warnMoved(dir, place, at)
		return nil
	}
	if again {
		if there, unknown := v.anything(ctx, place); unknown != nil || !there {
			return unknown
		}
	}
	location := strings.TrimSuffix(b.table.Location, "/") + "/" + strings.Join(b.comps[:n], "/")
	if p, err = v.registerOnce(ctx, b.entry, values, location); err != nil {
		return fmt.Errorf("register partition %q: %w", dir, err)
	}
	v.warnElsewhere(dir, p.Location, p.place, at)
	return nil
}

// registerOnce registers a partition, once for all who ask at the same time.
func (v *View) registerOnce(ctx context.Context, e *entry, values []string, location string) (*partition, error) {
	key := e.cellKey(values)
	answer := v.pending.flight.DoChan(key, func() (any, error) { //nolint:contextcheck // others may wait for it
		if k, have, _ := v.parts.one.peek(key); have && k.err == nil && v.o.Now().Sub(k.at) < v.o.TTL {
			return k.value, nil // since the caller looked
		}
		own, end, err := v.pending.begin(v.o.LoadTimeout)
		if err != nil {
			return nil, err
		}
		defer end()
		registered, err := v.src.Register(own, e.base, values, location)
		if err != nil {
			return nil, err
		}
		p := table.Partition{
			Values: values, Location: registered, Created: v.o.Now(),
			Format: e.table.Format, FormatFrom: e.table.FormatFrom, InputFormat: e.table.InputFormat,
		}
		v.noteRegistered(e, p)
		return v.settle(e, p), nil
	})
	select {
	case r := <-answer:
		p, _ := r.Val.(*partition)
		return p, r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// worthy says that a directory is to be registered: a value that is not of its key's
// type would make every expression on that key fail. It is warned of once.
func (v *View) worthy(b below, dir string) bool {
	_, err := b.table.ParsePartition(b.comps[0], 0)
	for i := 1; i < len(b.table.Keys) && err == nil; i++ {
		_, err = b.table.ParsePartition(b.comps[i], i)
	}
	if err != nil && v.firstOf(dir, "value") {
		v.o.Log.Warn("this partition is not registered, and engines that ask the catalog do not read it",
			slog.String("path", dir), slog.Any("error", err))
	}
	return err == nil
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
