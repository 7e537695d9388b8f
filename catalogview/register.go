package catalogview

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Register registers the partition that an object at path was published into, if
// its table's partitions are in the catalog and it is not known to be registered.
// It is what commit calls with each publish; what is registered costs no request
// within the TTL, concurrent registrations of one partition are one, and those of one
// table go out together. at is where the object is. Nothing is registered for hidden
// names, and none without Options.Register. One that failed is tried again in the
// background, until it is registered or the View is closed, and [View.Unregistered]
// tells of it meanwhile. A partition that is leaving stays (see Leave).
func (v *View) Register(ctx context.Context, path string, at objectstore.Location) error {
	return v.registerAll(ctx, []toRegister{{path: path, at: at}})[0]
}

// RegisterAll is Register of many at once, by path: those of one table are registered
// a hundred in a request. It tries all; the error is an [*UnregisteredError].
func (v *View) RegisterAll(ctx context.Context, at map[string]objectstore.Location) error {
	all := make([]toRegister, 0, len(at))
	for _, path := range slices.Sorted(maps.Keys(at)) {
		all = append(all, toRegister{path, at[path]})
	}
	failed := make(map[string]error)
	for i, err := range v.registerAll(ctx, all) {
		if err != nil {
			failed[all[i].path] = err
		}
	}
	if len(failed) > 0 {
		return &UnregisteredError{failed}
	}
	return nil
}

// UnregisteredError says which of many could not be registered.
type UnregisteredError struct{ byPath map[string]error }

func (e *UnregisteredError) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(e.byPath)))
	if len(e.byPath) == 1 {
		return e.byPath[first].Error()
	}
	return fmt.Sprintf("%v (and %d others)", e.byPath[first], len(e.byPath)-1)
}

// ByPath returns what went wrong, by the paths that View.RegisterAll was given; not to
// be changed.
func (e *UnregisteredError) ByPath() map[string]error { return e.byPath }

// Unwrap returns all of them.
func (e *UnregisteredError) Unwrap() []error { return slices.Collect(maps.Values(e.byPath)) }

// toRegister is an object whose partition is to be registered.
type toRegister struct {
	path string
	at   objectstore.Location
}

// registerAll registers the partitions of objects, and tells of each.
func (v *View) registerAll(ctx context.Context, all []toRegister) []error {
	problems, dirs := v.tryAll(ctx, all, false)
	for i, dir := range dirs {
		switch {
		case problems[i] == nil && dir != "":
			v.pending.remove(dir)
		case problems[i] != nil && dir != "":
			v.pending.add(v, dir, all[i], problems[i]) //nolint:contextcheck // it is tried again when ctx is over
		}
	}
	return problems
}

// tryAll registers the partitions of objects, and tells of each what went wrong and the
// directory of its partition, as far as that is known; "": it has none. again: of those
// that failed before, unless nothing lies in the partition by now: what was to be
// renamed there was not, or was removed.
func (v *View) tryAll(ctx context.Context, all []toRegister, again bool) (problems []error, dirs []string) {
	problems, dirs = make([]error, len(all)), make([]string, len(all))
	wanted := make([]*registration, len(all))
	for i, o := range all {
		comps, err := split(o.path)
		if err != nil || !v.o.Register || len(comps) < 3 {
			problems[i] = err
			continue
		}
		if !again {
			v.Stay(ctx, o.path)
		}
		dirs[i], wanted[i], problems[i] = v.wanted(ctx, comps, o.at, again)
	}
	v.registers.add(v, wanted) //nolint:contextcheck // others may wait for them
	for i, o := range all {
		if r := wanted[i]; r != nil {
			problems[i] = v.await(ctx, r, dirs[i], o.at)
		}
	}
	return problems, dirs
}

// await waits for a registration.
func (v *View) await(ctx context.Context, r *registration, dir string, at objectstore.Location) error {
	select {
	case <-r.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.err != nil {
		return fmt.Errorf("register partition %q: %w", dir, r.err)
	}
	v.warnElsewhere(dir, r.p.Location, r.p.place, at)
	return nil
}

// wanted returns what is to be registered for an object at a path, nil if nothing is,
// and the directory of its partition: "" where it lies in none, and the object's own
// where the table cannot be asked for its keys.
//
// The catalog is not asked before, unless a partition was there when it was last asked:
// a new one is created, and that it exists is told by that.
func (v *View) wanted(ctx context.Context, comps []string, at objectstore.Location, again bool) (string, *registration, error) {
	path := strings.Join(comps, "/")
	b, err := v.tableOf(ctx, comps)
	if err != nil {
		return directoryOf(path), nil, fmt.Errorf("register the partition of %q: %w", path, err)
	}
	n := len(b.table.Keys)
	if b.table.Partitions != table.PartitionsInCatalog || n == 0 || len(b.comps) <= n || b.hidden() {
		return "", nil, nil
	}
	values, ok := b.values(n)
	if !ok {
		return "", nil, nil // a directory that is no partition by its name
	}
	dir := strings.Join(comps[:2+n], "/")
	place := b.at.down(b.comps[:n])
	there := at.Bucket == place.Bucket && strings.HasPrefix(at.Key, place.Key)
	if !there || v.mayBeRegistered(b.entry, values) {
		asked := v.o.Now()
		p, err := v.registered(ctx, b.entry, values)
		switch {
		case err == nil:
			v.confirmLater(confirmation{toRegister: toRegister{path, at}, dir: dir, entry: b.entry, values: values}, asked) //nolint:contextcheck // that is when ctx is over
			v.warnElsewhere(dir, p.Location, p.place, at)
			return dir, nil, nil
		case !errors.Is(err, objectstore.ErrNotExist):
			return dir, nil, fmt.Errorf("register partition %q: %w", dir, err)
		}
	}
	if !v.worthy(b, dir) {
		return dir, nil, nil
	}
	if !there {
		v.warnMoved(dir, place, at)
		return dir, nil, nil
	}
	if again {
		if anything, unknown := v.anything(ctx, place); unknown != nil || !anything {
			return dir, nil, unknown
		}
	}
	location := strings.TrimSuffix(b.table.Location, "/") + "/" + strings.Join(b.comps[:n], "/")
	return dir, newRegistration(b.entry, values, location), nil
}

// mayBeRegistered says that a partition was there when the catalog was last asked.
func (v *View) mayBeRegistered(e *entry, values []string) bool {
	there, _ := v.lastAnswer(e, values)
	return there
}

// confirmLater has a partition looked for again that is registered as far as is known,
// unless that was told since asked: then so much is settled.
func (v *View) confirmLater(one confirmation, asked time.Time) {
	there, at := v.lastAnswer(one.entry, one.values)
	switch {
	case there && at.Before(asked):
		one.last = asked
		v.confirms.add(v, one)
	case there:
		v.confirms.settle(one.dir, at)
	}
}

// lastAnswer tells whether a partition was there when the catalog was last asked for it
// or for a list that it is in, and when that was; zero: nothing is known.
func (v *View) lastAnswer(e *entry, values []string) (there bool, at time.Time) {
	k, have, _ := v.parts.one.peek(e.cellKey(values))
	l, _, _ := v.knownList(e, values)
	var listed bool
	if l != nil {
		_, listed = l.find(valuesKey(values))
	}
	switch {
	case have && (l == nil || k.at.After(l.at)):
		return k.err == nil, k.at
	case l != nil:
		return listed, l.at
	}
	return false, time.Time{}
}

var errNotText = errors.New("its name is no UTF-8, and a catalog's values are")

// worthy says that a directory is to be registered: a value that is not of its key's
// type would make every expression on that key fail. It is warned of once.
func (v *View) worthy(b below, dir string) bool {
	_, err := b.table.ParsePartition(b.comps[0], 0)
	for i := 1; i < len(b.table.Keys) && err == nil; i++ {
		_, err = b.table.ParsePartition(b.comps[i], i)
	}
	if err == nil && !utf8.ValidString(strings.Join(b.comps[:len(b.table.Keys)], "")) {
		err = errNotText
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
