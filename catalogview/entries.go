package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func (v *View) getDatabases(ctx context.Context) (databaseList, error) {
	return v.databases.get(ctx, "", func(ctx context.Context) (databaseList, error) {
		l := databaseList{names: make(map[string]bool)}
		at := v.o.Now()
		_, _, generation := v.database.peek("")
		for d, err := range v.src.Databases(ctx) {
			if err != nil {
				return databaseList{}, err
			}
			if v.noName("", d.Name) {
				l.unreachable++
				continue
			}
			l.all = append(l.all, d)
			l.names[d.Name] = d.NoDirectory == ""
		}
		if n, ok := v.src.(*narrow); ok && len(l.all) == 0 {
			v.warnUnmatched(n)
		}
		for _, d := range l.all { // it serves while the catalog does not answer
			if k, have, _ := v.database.peek(d.Name); !have || k.at.Before(at) {
				v.database.keep(d.Name, cell[Database]{value: d, at: at}, generation)
			}
		}
		return l, nil
	})
}

// getDatabase returns a database that has a directory.
func (v *View) getDatabase(ctx context.Context, name string) (Database, error) {
	d, err := v.databaseEntry(ctx, name)
	if err == nil && d.NoDirectory != "" {
		return Database{}, notExist(name)
	}
	return d, err
}

// databaseEntry returns a database, with or without a directory.
func (v *View) databaseEntry(ctx context.Context, name string) (Database, error) {
	if name == controlName || badName(name) {
		return Database{}, notExist(name)
	}
	return v.database.get(ctx, name, func(ctx context.Context) (Database, error) {
		return v.src.Database(ctx, name)
	})
}

func (v *View) getTables(ctx context.Context, db string) (tableList, error) {
	return v.lists.get(ctx, db, func(ctx context.Context) (tableList, error) {
		l := tableList{at: v.o.Now(), index: make(map[string]int)}
		for t, err := range v.src.Tables(ctx, db) {
			if err != nil {
				return tableList{}, err
			}
			if v.noName(db, t.Name) {
				l.unreachable++
				continue
			}
			t.Table = t.Table.Slim() // of all tables there is much
			l.index[t.Name] = len(l.all)
			l.all = append(l.all, t)
		}
		return l, nil
	})
}

// listed returns what a listing that may still serve tells of a table.
func (v *View) listed(db, name string) (info TableInfo, found bool) {
	l, have, _ := v.lists.peek(db)
	if !have || l.err != nil || v.o.Now().Sub(l.at) >= staleFactor*v.o.TTL {
		return TableInfo{}, false
	}
	i, found := l.value.index[name]
	if found {
		info = l.value.all[i]
	}
	return info, found
}

// isListed says that a listing that may still serve has a table of the name.
func (v *View) isListed(db, name string) bool {
	_, found := v.listed(db, name)
	return found
}

// onlyEntry says that by a fresh listing a name like an entry's is no table's own,
// and the entry of one: asking for the table would be in vain.
func (v *View) onlyEntry(db, base, name string) bool {
	l, have, _ := v.lists.peek(db)
	if !have || l.err != nil || v.o.Now().Sub(l.at) >= v.o.TTL {
		return false
	}
	_, own := l.value.index[base]
	_, of := l.value.index[name]
	return of && !own
}

// isListedDatabase is isListed for databases.
func (v *View) isListedDatabase(name string) bool {
	l, have, _ := v.databases.peek("")
	_, found := l.value.names[name]
	return have && l.err == nil && found && v.o.Now().Sub(l.at) < staleFactor*v.o.TTL
}

// onlyDatabaseEntry is onlyEntry for databases.
func (v *View) onlyDatabaseEntry(base, name string) bool {
	l, have, _ := v.databases.peek("")
	_, of := l.value.names[name]
	return have && l.err == nil && v.o.Now().Sub(l.at) < v.o.TTL && of && !l.value.names[base]
}

// getTable returns a table's entry. One that was read before is read again only
// if its version changed; its location is checked at every load (rule 43).
func (v *View) getTable(ctx context.Context, db, name string) (*entry, error) {
	if name == controlName {
		return nil, notExist(join(db, name))
	}
	return v.getTableThat(ctx, db, name, nil)
}

// wholeTable is getTable with all that the entry holds: where only a listing told of it,
// the catalog is asked.
func (v *View) wholeTable(ctx context.Context, db, name string) (*entry, error) {
	return v.getTableThat(ctx, db, name, (*entry).whole)
}

func (v *View) getTableThat(ctx context.Context, db, name string, does func(*entry) bool) (*entry, error) {
	key := db + "/" + name
	return v.tables.getThat(ctx, key, does, func(ctx context.Context) (*entry, error) {
		known := ""
		old, have, _ := v.tables.peek(key)
		if have && old.err == nil && old.value.whole() {
			known = old.value.raw.ETag
		}
		t, raw, err := v.src.Table(ctx, db, name, known)
		if err != nil {
			return nil, err
		}
		var e *entry
		if t == nil {
			e, err = v.judgeAgain(ctx, old.value, raw)
		} else {
			e, err = v.judge(ctx, t, raw)
		}
		if err != nil {
			raw.Bytes = nil
			return nil, &unsettledError{raw: raw, err: err}
		}
		return e, nil
	})
}

// listedTable is getTable for a table that a listing told of: what the listing
// knows of the version saves the request.
func (v *View) listedTable(ctx context.Context, db string, info TableInfo, l tableList) (*entry, error) {
	key := db + "/" + info.Name
	old, have, generation := v.tables.peek(key)
	// What is known whole of this very version is kept.
	same := have && old.err == nil && old.value.whole() && info.Raw.ETag != "" && old.value.raw.ETag == info.Raw.ETag
	if info.Table != nil && !same && (!have || old.err != nil || old.at.Before(l.at)) {
		e, err := v.judge(ctx, info.Table, info.Raw)
		if err == nil {
			v.tables.keep(key, cell[*entry]{value: e, at: l.at}, generation)
		}
		return e, err
	}
	if !have || old.err != nil || info.Raw.ETag == "" || old.value.raw.ETag != info.Raw.ETag || !old.at.Before(l.at) {
		return v.getTable(ctx, db, info.Name)
	}
	e, err := v.judgeAgain(ctx, old.value, info.Raw)
	if err != nil {
		return nil, err
	}
	v.tables.keep(key, cell[*entry]{value: e, at: l.at}, generation)
	return e, nil
}

// judgeAgain is judge for an entry of the version that was judged before. What
// lies at a good place of a flat store is not asked again: no link can turn
// there.
func (v *View) judgeAgain(ctx context.Context, old *entry, raw Raw) (*entry, error) {
	p, ref := v.at.resolve(old.base.Location, old.base.Secret)
	if v.trees || !old.table.Readable || ref != nil || p != old.place {
		return v.judge(ctx, old.base, raw)
	}
	raw.Bytes = nil
	e := *old
	e.raw = raw
	return &e, nil
}

// judge settles where a table lies and whether it may be used.
func (v *View) judge(ctx context.Context, t *table.Table, raw Raw) (*entry, error) {
	raw.Bytes = nil
	e := &entry{base: t, raw: raw, table: t}
	if !t.Readable {
		return e, nil
	}
	p, ref := v.at.resolve(t.Location, t.Secret)
	if ref != nil {
		e.table = t.WithVerdict(ref.class, ref.reason)
		e.table.Outside = ref.outside
		return e, nil
	}
	fault := ""
	var err error
	if !v.o.Rootless { // there it is looked for where a listing finds nothing: one look a table listed is too many
		fault, err = v.noDirectory(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("location of %q: %w", e.id(), err)
	}
	if fault != "" {
		e.table = t.WithVerdict(table.ClassBroken, fmt.Sprintf("location %.300q %s", maskUserinfo(t.Location), fault))
		return e, nil
	}
	e.place = p
	if odd := v.at.oddity(p, t.Database, t.Name); odd != "" {
		v.warnOnce(e.id(), odd, maskUserinfo(t.Location))
	}
	return e, v.findMetadata(ctx, e)
}

// findMetadata looks whether a format table keeps its schema under its location
// (rule 21), as files called schema-NUMBER in schema/: a partition of that name alone
// is none.
func (v *View) findMetadata(ctx context.Context, e *entry) error {
	if e.table.Kind != table.FormatTable {
		return nil
	}
	schema := e.place.Location
	schema.Key += "schema/"
	there, err := v.anythingCalled(ctx, schema, "schema-")
	if !v.trees && errors.Is(err, objectstore.ErrPermission) {
		there, err = true, nil // not known: the safe answer
	}
	if err != nil {
		return fmt.Errorf("schema of %q: %w", e.id(), err)
	}
	if there {
		t := *e.table
		t.MetadataUnderTable = true
		e.table = &t
	}
	return nil
}

// noName says that no path leads to a name of the catalog, or that it is the
// control directory's, which it would hide; it is warned of once.
func (v *View) noName(db, name string) bool {
	if name != controlName && !badName(name) && (!v.o.Rootless || !noGlueName(name)) {
		return false
	}
	if v.firstOf(join(db, name), "reserved") {
		why := "it can be no file's"
		switch {
		case name == controlName:
			why = "it is the control directory's"
		case !badName(name):
			why = "the service cannot be asked for it"
		}
		v.o.Log.Warn("not shown: the name cannot be", slog.String("table", join(db, name)), slog.String("reason", why))
	}
	return true
}

// firstOf says that a warning is given for the first time.
func (v *View) firstOf(id, what string) bool {
	v.warned.Lock()
	defer v.warned.Unlock()
	known := v.warned.m[id+"\x00"+what]
	v.warned.m[id+"\x00"+what] = true
	return !known
}

func (v *View) warnOnce(id, what, location string) {
	if v.firstOf(id, what) {
		v.o.Log.Warn("unwise table location", slog.String("table", id), slog.String("location", location), slog.String("reason", what))
	}
}

// EntryJSON returns the content of NAME.json of a database or table, by the
// path of its directory ("sales", "sales/orders"), as the catalog has it now,
// and the node of that very version; and the entry of a registered partition, by
// its directory's path. ErrNotExist for every other path.
func (v *View) EntryJSON(ctx context.Context, path string) ([]byte, Node, error) {
	comps, err := split(path)
	if err != nil {
		return nil, Node{}, err
	}
	if slices.Contains(comps, controlName) {
		return nil, Node{}, notExist(path)
	}
	switch len(comps) {
	case 1:
		d, err := seen(v.src.Database(ctx, comps[0]))
		if err != nil {
			return nil, Node{}, err
		}
		return d.Raw.Bytes, entryNode(path, d.Raw, nil), nil
	case 2:
		return v.tableJSON(ctx, comps[0], comps[1])
	case 0:
		return nil, Node{}, notExist(path)
	}
	return v.partitionJSON(ctx, comps)
}

func (v *View) tableJSON(ctx context.Context, db, name string) ([]byte, Node, error) {
	key := db + "/" + name
	at := v.o.Now()
	_, _, generation := v.tables.peek(key)
	t, raw, err := v.src.Table(ctx, db, name, "")
	if err != nil {
		return nil, Node{}, err
	}
	// The entry is there, whatever can be told of its location.
	if e, failed := v.judge(ctx, t, raw); failed == nil {
		v.tables.keep(key, cell[*entry]{value: e, at: at}, generation)
		t = e.table
	}
	return raw.Bytes, entryNode(key, raw, t), nil
}
