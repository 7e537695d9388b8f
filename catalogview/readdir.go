package catalogview

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// ReadDir streams the nodes of a directory, each once, in no particular order.
// It is whole or ends in an error, after which nothing follows. Hidden are
// staging trees, a manifest root's _sqe, and keys that no path can reach.
// Errors: those of Lookup; ErrNotExist also for a path that is no directory.
func (v *View) ReadDir(ctx context.Context, path string) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		comps, err := split(path)
		if err == nil {
			switch len(comps) {
			case 0:
				err = v.readRoot(ctx, yield)
			case 1:
				err = v.readDatabase(ctx, comps[0], yield)
			default:
				err = v.readBelow(ctx, comps, yield)
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Node{}, err)
		}
	}
}

// errStop: the consumer has enough.
var errStop = errors.New("stop")

type yieldNode = func(Node, error) bool

func (v *View) readRoot(ctx context.Context, yield yieldNode) error {
	l, err := v.getDatabases(ctx)
	if err != nil {
		return err
	}
	for _, d := range l.all {
		if l.names[d.Name] && !yield(databaseNode(d), nil) {
			return errStop
		}
		if !hasEntry(d.Name) || l.names[d.Name+entrySuffix] {
			continue
		}
		if !yield(entryNode(d.Name, d.Raw, nil), nil) {
			return errStop
		}
	}
	return nil
}

func (v *View) readDatabase(ctx context.Context, db string, yield yieldNode) error {
	if _, err := v.getDatabase(ctx, db); err != nil {
		return err
	}
	l, err := v.getTables(ctx, db)
	if err != nil {
		return err
	}
	entries, err := v.loadAll(ctx, db, l)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if e == nil {
			continue
		}
		if e.table.HasDirectory() && !yield(e.node(), nil) {
			return errStop
		}
		name := e.table.Name
		if !hasEntry(name) || hasDirectory(entries, l, name+entrySuffix) {
			continue
		}
		raw := e.raw
		if raw.ETag == "" {
			raw = l.all[i].Raw // not loaded; the listing knew
		}
		if !yield(entryNode(join(db, name), raw, e.table), nil) {
			return errStop
		}
	}
	return nil
}

// loadAll loads the tables of a listing; nil stands for one that went meanwhile.
func (v *View) loadAll(ctx context.Context, db string, l tableList) ([]*entry, error) {
	entries := make([]*entry, len(l.all))
	inParallel(len(l.all), func(i int) {
		e, err := v.listedTable(ctx, db, l.all[i], l)
		switch {
		case err == nil:
			entries[i] = e
		case !errors.Is(err, objectstore.ErrNotExist):
			entries[i] = unloaded(db, l.all[i].Name, err)
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return entries, nil
}

// hasDirectory says that a table of the name is listed with a directory.
func hasDirectory(entries []*entry, l tableList, name string) bool {
	i, found := l.index[name]
	return found && entries[i] != nil && entries[i].table.HasDirectory()
}

func (v *View) readBelow(ctx context.Context, comps []string, yield yieldNode) error {
	b, err := v.below(ctx, comps)
	if err == nil && (v.left(b) || slices.Contains(b.comps, controlName)) {
		err = notExist(b.path)
	}
	if err != nil {
		return err
	}
	return v.list(ctx, b, new(tally), yield)
}

// tally counts what a listing leaves out.
type tally struct {
	unreachable, shadowed int
	beside                []string // objects that a directory of their name hides

	// Of a directory of partitions that are the catalog's.
	listed       *partitionList // nil: none
	unregistered []string       // directories that are no partitions of the catalog's
	empty        []string       // partitions whose directory here has no objects
	unlisted     int64          // projected values beyond the bound
	injected     bool           // its values are not known
}

// lister streams one directory below a table.
type lister struct {
	v     *View
	b     below
	look  func(context.Context, below) (Node, error)
	count *tally
	yield yieldNode
	found bool // anything at all, the directory's own marker included
	// skip says that a directory of the store is not to be shown; nil: none.
	skip func(name string) bool
	here map[string]bool // names of partitions whose location is the directory's child of that name

	// Names of directories, by hash, and of X_$folder$ markers: a marker makes a
	// directory only where nothing of the name is.
	seed    maphash.Seed
	dirs    map[uint64]struct{}
	markers []objectstore.Object
	// held are objects that a directory of the same name may follow; a store
	// lists its keys in order then. Each is a prefix of the next.
	held []Node
	// objects are names whose marker may follow, where keys come in order: each is
	// a prefix of the next. The object was given out, whatever has become of it by
	// the time that the marker is looked at.
	objects []string
}

// entries lists one level of the store, from the cache where it has one.
func (v *View) entries(ctx context.Context, dir objectstore.Location) iter.Seq2[objectstore.Entry, error] {
	if v.flat != nil {
		return v.flat.list(ctx, dir)
	}
	return v.store.List(ctx, dir, objectstore.ListOptions{Delimiter: true})
}

func (v *View) list(ctx context.Context, b below, count *tally, yield yieldNode) error {
	l := &lister{v: v, b: b, look: v.lookupBelow, count: count, yield: yield}
	return l.list(ctx, v.entries(ctx, b.directory()))
}

// listAnew is list without the cache.
func (v *View) listAnew(ctx context.Context, b below, count *tally, yield yieldNode) error {
	l := &lister{v: v, b: b, look: v.lookupBelow, count: count, yield: yield}
	if v.flat != nil {
		l.look = func(ctx context.Context, b below) (Node, error) { return v.lookupFlat(ctx, b, v.askFlat) }
	}
	return l.list(ctx, v.store.List(ctx, b.directory(), objectstore.ListOptions{Delimiter: true}))
}

func (l *lister) list(ctx context.Context, entries iter.Seq2[objectstore.Entry, error]) error {
	b := l.b
	if _, err := b.partitionLevels(len(b.comps)); err != nil {
		return err
	}
	l.seed, l.dirs = maphash.MakeSeed(), make(map[uint64]struct{})
	if err := l.partitions(ctx); err != nil {
		return err
	}
	prefix := b.directory()
	if b.nowhere() {
		entries = func(func(objectstore.Entry, error) bool) {}
	}
	for e, err := range entries {
		if err != nil && l.skip != nil && errors.Is(err, objectstore.ErrNoBucket) {
			break // nothing can lie there; the partitions may lie elsewhere
		}
		if err != nil {
			return fmt.Errorf("list %q: %w", b.path, err)
		}
		if err := l.take(prefix, e); err != nil {
			return err
		}
	}
	if err := l.flush(""); err != nil {
		return err
	}
	l.countEmpty()
	if err := l.marked(ctx); err != nil {
		return err
	}
	switch {
	case l.found:
		return nil
	case b.part != nil && len(b.tail) == 0:
		return l.v.noPartitionFile(ctx, b)
	case len(b.comps) == 0:
		return l.v.noFile(ctx, b) // a table's location may not exist yet
	}
	n, err := l.look(ctx, b)
	if err == nil && !n.Kind.Directory() {
		err = notExist(b.path)
	}
	return err
}

func (l *lister) take(prefix objectstore.Location, e objectstore.Entry) error {
	if !strings.HasPrefix(e.Key, prefix.Key) {
		return nil // a key outside the prefix that was asked for
	}
	l.found = true
	if e.Key == prefix.Key && !e.Prefix {
		return nil
	}
	name, ok := entryName(prefix.Key, e)
	switch {
	case !ok, badName(name):
		l.count.unreachable++
		return nil
	case name == controlName:
		l.count.shadowed++
		return nil
	}
	if err := l.flush(strings.TrimPrefix(e.Key, prefix.Key)); err != nil {
		return err
	}
	if e.Prefix {
		l.dirs[maphash.String(l.seed, name)] = struct{}{}
	}
	if l.v.unlisted(l.b, name) || e.Prefix && l.skip != nil && l.skip(name) {
		return nil
	}
	l.objects = slices.DeleteFunc(l.objects, func(o string) bool { return !strings.HasPrefix(name, o) })
	if !e.Prefix && isMarker(name, e.Size) {
		if !slices.Contains(l.objects, strings.TrimSuffix(name, markerSuffix)) {
			l.markers = append(l.markers, e.Object)
		}
		return nil
	}
	return l.emit(name, e)
}

func (l *lister) emit(name string, e objectstore.Entry) error {
	c := l.b.child(name)
	if e.Prefix {
		n := c.directoryNode(e.Object)
		n.Registered = l.b.table.Partitions == table.PartitionsProjected && l.skip != nil && l.b.isPartition(name)
		return l.send(n)
	}
	n := c.objectNode(e.Object)
	if !l.v.trees {
		l.held = append(l.held, n)
		l.objects = append(l.objects, name)
		return nil
	}
	return l.send(n)
}

func (l *lister) send(n Node) error {
	if !l.yield(n, nil) {
		return errStop
	}
	return nil
}

// flush sends the held objects whose directory can no longer come, now that
// the listing has come to key (relative; "" is its end); one whose directory it
// is is counted.
func (l *lister) flush(key string) error {
	var err error
	l.held = slices.DeleteFunc(l.held, func(n Node) bool {
		dir := n.Path[strings.LastIndexByte(n.Path, '/')+1:] + "/"
		switch {
		case err != nil || key != "" && dir > key:
			return false
		case dir == key:
			l.count.beside = append(l.count.beside, strings.TrimSuffix(dir, "/"))
			return true
		}
		err = l.send(n)
		return true
	})
	return err
}

// marked sends the directories that are there by their markers alone.
func (l *lister) marked(ctx context.Context) error {
	for _, m := range l.markers {
		base := m.Key[strings.LastIndexByte(m.Key, '/')+1:]
		name := strings.TrimSuffix(base, markerSuffix)
		_, there := l.dirs[maphash.String(l.seed, name)]
		if there || badName(name) || l.v.unlisted(l.b, name) || l.skip != nil && l.skip(name) {
			continue
		}
		n, err := l.look(ctx, l.b.child(name))
		if errors.Is(err, objectstore.ErrNotExist) || err == nil && n.Kind != KindDirectory {
			continue // gone meanwhile, or a file of the name is there
		}
		if err != nil {
			return err
		}
		if err := l.send(n); err != nil {
			return err
		}
	}
	return nil
}
