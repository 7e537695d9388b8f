package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// View is the tree. All methods may be called concurrently.
type View struct {
	src   Source
	store objectstore.Store
	o     Options
	at    resolver
	// trees: the store's directories exist by themselves, so that no name is a
	// file and a directory at once.
	trees bool
	flat  *flat // what lies below tables; nil where trees

	databases *cells[databaseList] // key ""
	database  *cells[Database]     // key database
	lists     *cells[tableList]    // key database
	tables    *cells[*entry]       // key database/table
	parts     *partitions
	registers *registrationQueue
	pending   *pendingRegistrations
	confirms  *confirmations
	leaving   *leaving
	rejected  rejectedEntries

	entryLocks entryLocks // of changes of tables' entries

	warned struct {
		sync.Mutex
		m map[string]bool
	}
}

type databaseList struct {
	all         []Database
	names       map[string]bool // whether it has a directory
	unreachable int             // that no path leads to
}

type tableList struct {
	all         []TableInfo
	index       map[string]int // name to its place in all
	at          time.Time
	unreachable int // that no path leads to
}

// entry is one table as cached: what the catalog says of it, and the verdict.
type entry struct {
	base  *table.Table // as parsed
	raw   Raw          // without Bytes
	table *table.Table // base, or base with a verdict on its location
	place place        // zero where there is none to use
}

// NewView returns the tree of src over store. It asks neither anything.
func NewView(src Source, store objectstore.Store, o Options) *View {
	o = o.orDefault()
	v := &View{
		src: src, store: store, o: o,
		at:        newResolver(o),
		databases: newCells[databaseList](o),
		database:  newCells[Database](o),
		lists:     newCells[tableList](o),
		tables:    newCells[*entry](o),
		parts:     newPartitions(o),
		registers: newRegistrationQueue(),
		pending:   newPending(),
		confirms:  newConfirmations(),
		leaving:   newLeaving(),
	}
	if _, v.trees = store.(objectstore.Directories); !v.trees {
		if o.Rootless { // the store may answer while the catalog does not, and the reverse
			o.silence = &silence{}
		}
		v.flat = newFlat(store, o, v.askFlat)
	}
	v.warned.m = make(map[string]bool)
	return v
}

// Close ends the loads that run and waits for them; later calls that need one
// return ErrClosed. Before that it looks, for three seconds at most, whether the catalog
// still has the partitions that files were published into on the word of the cache.
func (v *View) Close() error {
	v.confirms.close(v)      // before what registers
	v.pending.close(v.o.Log) // before what it uses
	v.databases.close()
	v.database.close()
	v.lists.close()
	v.tables.close()
	v.parts.close()
	if v.flat != nil {
		v.flat.close()
	}
	return nil
}

// Refresh forgets what is cached of a path and all below it; "" is everything.
// NAME.json stands for NAME.
func (v *View) Refresh(path string) {
	comps, _ := split(path)
	db, name := "", ""
	if len(comps) > 0 {
		db = comps[0]
	}
	if len(comps) > 1 {
		name = comps[1]
	}
	v.refreshFlat(comps)
	dbs := same(db)
	v.databases.drop(func(string) bool { return true })
	v.database.drop(dbs)
	v.lists.drop(dbs)
	tables := same(name)
	v.tables.drop(func(key string) bool {
		d, t, _ := strings.Cut(key, "/")
		return dbs(d) && tables(t)
	})
	v.parts.drop(ofTable(func(db, name string) bool { return dbs(db) && tables(name) }))
}

// refreshFlat forgets what is cached below tables of a path; everything, where
// it is not known to lie below one.
func (v *View) refreshFlat(comps []string) {
	if v.flat == nil {
		return
	}
	all := true
	var dir, up objectstore.Location
	if len(comps) > 1 {
		e, have, _ := v.tables.peek(comps[0] + "/" + comps[1])
		if of, ok := entryOf(comps[1]); ok && !have {
			e, have, _ = v.tables.peek(comps[0] + "/" + of)
		}
		if have && e.err == nil && e.value.place.Bucket != "" && e.value.table.Partitions == table.PartitionsOnDisk {
			all, dir = false, e.value.place.down(comps[2:])
			up, _, _, _ = above(dir)
		}
	}
	v.flat.drop(func(loc objectstore.Location) bool {
		return all || loc == up || loc.Bucket == dir.Bucket && strings.HasPrefix(loc.Key, dir.Key)
	})
}

// same matches a name, and that whose entry it is; "" matches all.
func same(name string) func(string) bool {
	of, isEntry := entryOf(name)
	return func(s string) bool { return name == "" || s == name || isEntry && s == of }
}

// Lookup finds what is at a path. Errors: ErrNotExist, [ErrNameTooLong],
// [*VerdictError] below a table or partition that cannot be read, the store's.
func (v *View) Lookup(ctx context.Context, path string) (Node, error) {
	comps, err := split(path)
	if err != nil {
		return Node{}, err
	}
	switch len(comps) {
	case 0:
		return Node{Kind: KindRoot}, nil
	case 1:
		return v.lookupDatabase(ctx, comps[0])
	case 2:
		return v.lookupTable(ctx, comps[0], comps[1])
	}
	b, err := v.below(ctx, comps)
	switch {
	case v.left(b):
		return Node{}, notExist(path)
	case b.part != nil && len(b.tail) == 0:
		return b.partitionNode(), nil // it is there, also where it cannot be used
	case err != nil:
		return Node{}, err
	}
	return v.lookupBelow(ctx, b)
}

func (v *View) lookupDatabase(ctx context.Context, base string) (Node, error) {
	name, ok := entryOf(base)
	var err error
	if ok && v.onlyDatabaseEntry(base, name) {
		err = notExist(base)
	} else {
		var d Database
		if d, err = v.getDatabase(ctx, base); err == nil {
			return databaseNode(d), nil
		}
	}
	if !ok || !noDirectoryOf(err) && (v.isListedDatabase(base) || !v.isListedDatabase(name)) {
		return Node{}, err
	}
	d, entryErr := seen(v.databaseEntry(ctx, name))
	if entryErr != nil {
		return Node{}, entryError(err, entryErr)
	}
	return entryNode(name, d.Raw, nil), nil
}

// noDirectoryOf says that an answer on a name like an entry's leaves it to be
// one: there is no directory of the name, or none is to be seen.
func noDirectoryOf(err error) bool {
	return errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrPermission)
}

// entryError is the error of a name like an entry's, from what was answered of a
// directory of the name and of the entry: not there only if neither is.
func entryError(dirErr, entryErr error) error {
	if errors.Is(entryErr, objectstore.ErrNotExist) {
		return dirErr
	}
	return entryErr
}

// seen refuses a database that is only guessed: nothing is known of its entry.
func seen(d Database, err error) (Database, error) {
	if err == nil && d.Guessed {
		err = fmt.Errorf("database %q: it cannot be seen whether it is there: %w", d.Name, objectstore.ErrPermission)
	}
	return d, err
}

func (v *View) lookupTable(ctx context.Context, db, base string) (Node, error) {
	if _, err := v.getDatabase(ctx, db); err != nil {
		return Node{}, err
	}
	name, ok := entryOf(base)
	if ok && v.onlyEntry(db, base, name) {
		n, err := v.lookupEntry(ctx, db, name, notExist(join(db, base)))
		if !errors.Is(err, objectstore.ErrNotExist) {
			return n, err
		}
	}
	e, err := v.getTable(ctx, db, base)
	switch {
	case err == nil && e.table.HasDirectory():
		return e.node(), nil
	case err == nil:
		err = notExist(join(db, base)) // a view has no directory
	case errors.Is(err, objectstore.ErrNotExist):
	case ctx.Err() != nil:
		return Node{}, err
	case v.isTable(db, base, err):
		return unloaded(db, base, err).node(), nil
	case ok && !noDirectoryOf(err) && !v.isListed(db, name):
		return Node{}, err // there may be a table of the very name
	}
	if !ok {
		return Node{}, err
	}
	return v.lookupEntry(ctx, db, name, err)
}

// isTable says that a name whose entry cannot be loaded is a table's all the same:
// it is shown as a directory that fails. Of every other name nothing can be told, and
// the look-up fails. As to manifests, a folder fails for what it has alone, and in a
// bucket what lies deeper may be granted, but an entry's name is no guess.
func (v *View) isTable(db, name string, err error) bool {
	var found *unsettledError
	if errors.As(err, &found) {
		return true
	}
	k, have, _ := v.tables.peek(db + "/" + name)
	if have && k.err == nil && v.o.Now().Sub(k.at) < staleFactor*v.o.TTL {
		return k.value.table.HasDirectory()
	}
	if info, listed := v.listed(db, name); listed {
		return info.Table == nil || info.Table.HasDirectory()
	}
	return v.trees || !v.o.Rootless && errors.Is(err, objectstore.ErrPermission) && !strings.HasSuffix(name, entrySuffix)
}

// lookupEntry finds NAME.json of a table; dirErr is what was answered of a
// directory of that name. Of a table that is listed it is there, whether or not it
// can be read.
func (v *View) lookupEntry(ctx context.Context, db, name string, dirErr error) (Node, error) {
	e, err := v.getTable(ctx, db, name)
	if err == nil {
		return entryNode(join(db, name), e.raw, e.table), nil
	}
	if errors.Is(err, objectstore.ErrNotExist) || ctx.Err() != nil {
		return Node{}, entryError(dirErr, err)
	}
	info, there := v.listed(db, name)
	var found *unsettledError
	if errors.As(err, &found) {
		info.Raw, there = found.raw, true
	}
	if !there {
		return Node{}, err
	}
	return entryNode(join(db, name), info.Raw, unloaded(db, name, err).table), nil
}

func databaseNode(d Database) Node {
	return Node{Kind: KindDatabase, Path: d.Name, ModTime: d.Raw.ModTime}
}

func entryNode(of string, raw Raw, t *table.Table) Node {
	return Node{
		Kind: KindEntry, Path: of + entrySuffix, Table: t,
		Size: raw.Size, ETag: raw.ETag, ModTime: raw.ModTime,
	}
}

func (e *entry) node() Node {
	n := Node{
		Kind: KindTable, Path: join(e.table.Database, e.table.Name), Table: e.table, ModTime: e.raw.ModTime,
	}
	n.Object.Location, n.Object.ModTime = e.place.Location, e.raw.ModTime
	return n
}

// whole says that the table has all that its entry holds.
func (e *entry) whole() bool { return !e.base.Slimmed }

func (e *entry) id() string { return join(e.table.Database, e.table.Name) }

// verdict returns why nothing below the table can be read, nil if it can.
func (e *entry) verdict() error {
	if e.table.Readable {
		return nil
	}
	return &VerdictError{Table: e.id(), Class: e.table.Class, Reason: e.table.Reason}
}

// unsettledError is of a table whose entry was read, and not what there is to know
// of its location.
type unsettledError struct {
	raw Raw // without Bytes
	err error
}

func (e *unsettledError) Error() string { return e.err.Error() }

// Unwrap returns the store's error.
func (e *unsettledError) Unwrap() error { return e.err }

// unloaded stands for a table whose entry could not be fetched: it fails alone,
// and is asked for again at the next use.
func unloaded(db, name string, err error) *entry {
	class := table.ClassBroken
	if errors.Is(err, objectstore.ErrPermission) {
		class = table.ClassDenied
	}
	t := table.NewBroken(db, name, class, fmt.Sprintf("the catalog entry cannot be read: %v", err))
	return &entry{base: t, table: t}
}
