package catalogview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Repair describes what View.Repair is to do.
type Repair struct {
	DryRun bool // only find
	// Progress, if not nil, is told how many directories were looked at, how many of
	// these are to be registered, and how many were. It may be called concurrently.
	Progress func(looked, missing, registered int)
}

// Repaired is what View.Repair found and did. The lists hold the first 10,000.
type Repaired struct {
	Table      string            `json:"table"`
	DryRun     bool              `json:"dry_run"`
	Looked     int               `json:"looked"`     // partition directories in the store
	Missing    int               `json:"missing"`    // that the catalog did not have
	Registered int               `json:"registered"` // of these; of a dry run 0
	Added      []string          `json:"added"`      // those that are missing, by their path below the table
	Skipped    []RepairedSkipped `json:"skipped,omitempty"`
	Failed     []RepairedSkipped `json:"failed,omitempty"`
}

// RepairedSkipped is a directory that was not registered, and why.
type RepairedSkipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// maxRepaired bounds the names in each list of a Repaired.
const maxRepaired = 10_000

// Repair registers the partitions of the table at path that the store has and the
// catalog does not ("Registering partitions"): it adds, and removes nothing. A failed
// listing is an error, and never taken for an empty one: nothing is registered then.
// That some could not be registered is told by Failed, and is no error.
// errors.ErrUnsupported where the table's partitions are not in the catalog, or
// partitions are not written.
func (v *View) Repair(ctx context.Context, path string, how Repair) (Repaired, error) {
	done := Repaired{Table: path, DryRun: how.DryRun, Added: []string{}}
	e, err := v.repairable(ctx, path, how)
	if err != nil {
		return done, err
	}
	r := &repair{v: v, e: e, how: how, out: &done}
	if err = r.known(ctx); err == nil {
		err = r.walk(ctx)
	}
	if err != nil {
		return done, fmt.Errorf("repair %q: %w", path, err)
	}
	r.distinct()
	for _, f := range r.missing[:min(len(r.missing), maxRepaired)] {
		done.Added = append(done.Added, f.path)
	}
	if !how.DryRun {
		err = r.register(ctx)
	}
	sortSkipped(done.Skipped)
	sortSkipped(done.Failed)
	return done, err
}

func sortSkipped(all []RepairedSkipped) {
	slices.SortFunc(all, func(a, b RepairedSkipped) int { return strings.Compare(a.Path, b.Path) })
}

// repairable returns the table at a path whose partitions can be registered.
func (v *View) repairable(ctx context.Context, path string, how Repair) (*entry, error) {
	comps, err := split(path)
	if err != nil {
		return nil, err
	}
	if len(comps) != 2 {
		return nil, fmt.Errorf("%q is no table (DATABASE/TABLE): %w", path, objectstore.ErrNotExist)
	}
	b, err := v.tableOf(ctx, comps)
	if err != nil {
		return nil, err
	}
	why := ""
	switch {
	case !v.o.Rootless:
		why = "its catalog is JSON manifests, which hold no partitions: each directory is one as it is"
	case b.table.Partitions == table.PartitionsProjected:
		why = "its partitions are projected (projection.enabled), so engines ask the catalog for none"
	case len(b.table.Keys) == 0:
		why = "it has no partition keys"
	case b.table.Partitions != table.PartitionsInCatalog:
		why = "its directories are its partitions (spark.sql.partitionProvider is not the catalog), so none is registered"
	case !v.o.Register && !how.DryRun:
		why = "this mount writes no partitions into the catalog (read-only, --write=none or --catalog-writes=none)"
	}
	if why != "" {
		return nil, fmt.Errorf("table %q is not repaired: %s: %w", path, why, errors.ErrUnsupported)
	}
	return b.entry, nil
}

// repair is one run of Repair.
type repair struct {
	v   *View
	e   *entry
	how Repair

	byValues map[string]*partition // that the catalog has, by valuesKey
	equal    map[string]string     // their paths, and those of what is missing, by equalKey
	places   map[string]bool       // where they lie, as keys below the table's place
	ways     map[string]bool       // directories with such a place in them or at them

	mu      sync.Mutex // guards what follows
	out     *Repaired
	missing []found
}

// found is a partition that the catalog lacks.
type found struct {
	path   string // below the table
	names  []string
	values []string
}

// known asks for the partitions that the catalog has.
func (r *repair) known(ctx context.Context) error {
	r.byValues, r.equal = make(map[string]*partition), make(map[string]string)
	r.places, r.ways = make(map[string]bool), make(map[string]bool)
	for p, err := range r.v.src.Partitions(ctx, r.e.base, nil) {
		if err != nil {
			return err
		}
		if len(p.Values) != len(r.e.table.Keys) {
			continue // broken, and not told of which values
		}
		q := r.v.settle(r.e, p)
		r.byValues[valuesKey(p.Values)] = q
		r.equal[r.equalKey(q.names)] = strings.Join(q.names, "/")
		rest, below := strings.CutPrefix(q.place.Key, r.e.place.Key)
		if q.refused != nil || q.place.Bucket != r.e.place.Bucket || !below {
			continue
		}
		rest = strings.TrimSuffix(rest, "/")
		r.places[rest] = true
		for rest != "" {
			r.ways[rest] = true
			rest = rest[:max(0, strings.LastIndexByte(rest, '/'))]
		}
	}
	return nil
}

// equalKey is the same for names whose values are equal by their keys' types; "" where
// one is not of its key's.
func (r *repair) equalKey(names []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		value, err := r.e.table.ParsePartition(name, i)
		switch {
		case err != nil:
			return ""
		case value.Null:
			parts[i] = "null"
		default:
			parts[i] = "=" + value.Same
		}
	}
	return valuesKey(parts)
}

// walk looks at the table's directories, one level after the other.
func (r *repair) walk(ctx context.Context) error {
	level := [][]string{{}}
	for n := range r.e.table.Keys {
		below := make([][][]string, len(level))
		work, cancel := context.WithCancelCause(ctx)
		inParallel(len(level), func(i int) {
			var err error
			if below[i], err = r.list(work, level[i], n); err != nil {
				cancel(err) // of the first
			}
		})
		err := context.Cause(work)
		cancel(nil)
		if err != nil {
			return err
		}
		level = slices.Concat(below...)
	}
	return nil
}

// list returns the partitions' directories in one. At the last level it looks at each.
func (r *repair) list(ctx context.Context, dir []string, level int) (all [][]string, err error) {
	if err = context.Cause(ctx); err != nil {
		return nil, err
	}
	prefix := r.e.place.down(dir)
	for o, err := range r.v.store.List(ctx, prefix, objectstore.ListOptions{Delimiter: true}) {
		if err != nil {
			return nil, err
		}
		name, ok := entryName(prefix.Key, o)
		if !ok || !o.Prefix || name == controlName {
			continue
		}
		comps := append(dir[:len(dir):len(dir)], name)
		if why := r.notOne(comps, level); why != "" {
			r.skip(comps, why)
			continue
		}
		all = append(all, comps)
		if level == len(r.e.table.Keys)-1 {
			r.look(comps)
		}
	}
	return all, nil
}

// notOne says why a directory of a level is no partition; "": it is one by its name.
func (r *repair) notOne(comps []string, level int) string {
	name := comps[level]
	_, err := r.e.table.ParsePartition(name, level)
	switch {
	case badName(name):
		return "no path leads to a name like this"
	case r.e.table.HiddenAt(name, level):
		return "hidden: no data"
	case errors.Is(err, table.ErrNotPartition):
		return fmt.Sprintf("no partition of the key %s by its name", r.e.table.Keys[level].Name)
	case err != nil:
		return err.Error()
	case !utf8.ValidString(name):
		return errNotText.Error()
	}
	return ""
}

func (r *repair) skip(comps []string, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped(strings.Join(comps, "/"), why)
}

func (r *repair) skipped(path, why string) {
	if len(r.out.Skipped) < maxRepaired {
		r.out.Skipped = append(r.out.Skipped, RepairedSkipped{path, why})
	}
}

// look settles whether a partition's directory is to be registered.
func (r *repair) look(comps []string) {
	path := strings.Join(comps, "/")
	b := below{entry: r.e, comps: comps}
	values, ok := b.values(len(comps))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Looked++
	if why, there := r.settled(path, comps, values); why != "" || !ok {
		r.skipped(path, why)
	} else if !there {
		r.out.Missing++
		r.missing = append(r.missing, found{path, comps, values})
	}
	r.progress()
}

// settled says that the catalog has a partition, or why it is not to be registered. The
// lock is held.
func (r *repair) settled(path string, comps, values []string) (why string, there bool) {
	p := r.byValues[valuesKey(values)]
	dir := r.e.place.down(comps)
	switch {
	case r.v.leaving.get(join(r.e.id(), path)) != nil:
		return "it was removed in this mount, and the catalog is yet to be told", true
	case p != nil && p.refused == nil && p.place.Location != dir:
		return fmt.Sprintf("the catalog has this partition at %s", maskUserinfo(p.Location)), true
	case p != nil && !slices.Equal(p.names, comps):
		return fmt.Sprintf("the catalog has this partition as %q", strings.Join(p.names, "/")), true
	case p != nil:
		return "", true
	case r.ways[path]:
		return "the location of another partition lies in it, or is it", false
	}
	for up := path; ; up = up[:max(0, strings.LastIndexByte(up, '/'))] {
		if r.places[up] {
			return "it lies in the location of another partition", false
		}
		if up == "" {
			return "", false
		}
	}
}

// distinct leaves one of several whose values are equal: the catalog's, else that of the
// shortest path, which writes a value as most writers do (n=1, and not n=01), and of
// these the first. What is left is in the order of paths.
func (r *repair) distinct() {
	byPath := func(a, b found) int { return strings.Compare(a.path, b.path) }
	slices.SortFunc(r.missing, func(a, b found) int { return cmp.Or(cmp.Compare(len(a.path), len(b.path)), byPath(a, b)) })
	kept := r.missing[:0]
	for _, f := range r.missing {
		key := r.equalKey(f.names)
		if other, equal := r.equal[key]; equal {
			r.out.Missing--
			r.skipped(f.path, fmt.Sprintf("its values are equal to those of %q", other))
			continue
		}
		r.equal[key] = f.path
		kept = append(kept, f)
	}
	slices.SortFunc(kept, byPath)
	r.missing = kept
}

// progress tells how far it is. The lock is held.
func (r *repair) progress() {
	if r.how.Progress != nil {
		r.how.Progress(r.out.Looked, r.out.Missing, r.out.Registered)
	}
}

// register registers what is missing, so many at once as one request takes. A catalog
// that refuses all of these, or does not answer, is not asked for the others.
func (r *repair) register(ctx context.Context) error {
	for i := 0; i < len(r.missing); i += glueBatch {
		chunk := r.missing[i:min(i+glueBatch, len(r.missing))]
		err := r.registerChunk(ctx, chunk)
		if ctx.Err() != nil {
			return fmt.Errorf("repair %q: %w", r.e.id(), context.Cause(ctx))
		}
		if err != nil {
			for _, f := range r.missing[i+len(chunk):] {
				r.failed(f, fmt.Errorf("not tried: %w", err))
			}
			return nil
		}
	}
	return nil
}

// registerChunk registers some; the error is that of each, which says that of others too.
func (r *repair) registerChunk(ctx context.Context, chunk []found) (all error) {
	wanted := make([]*registration, len(chunk))
	for i, f := range chunk {
		wanted[i] = newRegistration(r.e, f.values, strings.TrimSuffix(r.e.table.Location, "/")+"/"+f.path)
	}
	r.v.registers.add(r.v, wanted) //nolint:contextcheck // others may wait for them
	failures := 0
	for i, f := range chunk {
		dir := join(r.e.id(), f.path)
		err := r.v.await(ctx, wanted[i], dir, r.e.place.down(strings.Split(f.path, "/")))
		if err == nil {
			r.mu.Lock()
			r.out.Registered++
			r.progress()
			r.mu.Unlock()
			r.v.pending.remove(dir)
			continue
		}
		r.failed(f, err)
		if errors.Is(err, objectstore.ErrPermission) || errors.Is(err, objectstore.ErrUnavailable) || errors.Is(err, objectstore.ErrNotExist) {
			failures, all = failures+1, err
		}
	}
	if failures < len(chunk) {
		return nil
	}
	return all
}

func (r *repair) failed(f found, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.out.Failed) < maxRepaired {
		r.out.Failed = append(r.out.Failed, RepairedSkipped{f.path, err.Error()})
	}
}
