package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func (v *View) getDatabases(ctx context.Context) (databaseList, error) {
	return v.databases.get(ctx, "", func(ctx context.Context) (databaseList, error) {
		l := databaseList{names: make(map[string]bool)}
		for d, err := range v.src.Databases(ctx) {
			if err != nil {
				return databaseList{}, err
			}
			l.all = append(l.all, d)
			l.names[d.Name] = true
		}
		return l, nil
	})
}

func (v *View) getDatabase(ctx context.Context, name string) (Database, error) {
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
			l.index[t.Name] = len(l.all)
			l.all = append(l.all, t)
		}
		return l, nil
	})
}

// getTable returns a table's entry. One that was read before is read again only
// if its version changed; its location is checked at every load (rule 43).
func (v *View) getTable(ctx context.Context, db, name string) (*entry, error) {
	key := db + "/" + name
	return v.tables.get(ctx, key, func(ctx context.Context) (*entry, error) {
		if old, have, _ := v.tables.peek(key); have && old.err == nil {
			raw, err := v.src.Stat(ctx, db, name)
			if err != nil {
				return nil, err
			}
			if raw.ETag == old.value.raw.ETag {
				return v.judge(ctx, old.value.base, raw)
			}
		}
		t, raw, err := v.src.Table(ctx, db, name)
		if err != nil {
			return nil, err
		}
		return v.judge(ctx, t, raw)
	})
}

// listedTable is getTable for a table that a listing told of: what the listing
// knows of the version saves the request.
func (v *View) listedTable(ctx context.Context, db string, info TableInfo, l tableList) (*entry, error) {
	key := db + "/" + info.Name
	old, have, generation := v.tables.peek(key)
	if !have || old.err != nil || info.Raw.ETag == "" || old.value.raw.ETag != info.Raw.ETag || !old.at.Before(l.at) {
		return v.getTable(ctx, db, info.Name)
	}
	e, err := v.judge(ctx, old.value.base, info.Raw)
	if err != nil {
		return nil, err
	}
	v.tables.keep(key, cell[*entry]{value: e, at: l.at}, generation)
	return e, nil
}

// judge settles where a table lies and whether it may be used.
func (v *View) judge(ctx context.Context, t *table.Table, raw Raw) (*entry, error) {
	raw.Bytes = nil
	e := &entry{base: t, raw: raw, table: t}
	if !t.Readable {
		return e, nil
	}
	p, ref := v.at.resolve(t.Location)
	if ref != nil {
		e.table = t.WithVerdict(ref.class, ref.reason)
		return e, nil
	}
	isFile, err := v.isFile(ctx, p.Location)
	if err != nil {
		return nil, fmt.Errorf("location of %q: %w", e.id(), err)
	}
	if isFile {
		e.table = t.WithVerdict(table.ClassBroken, fmt.Sprintf("location %.300q is a file", t.Location))
		return e, nil
	}
	e.place = p
	if odd := v.at.oddity(p, t.Database, t.Name); odd != "" {
		v.warnOnce(e.id(), odd, t.Location)
	}
	return e, v.findMetadata(ctx, e)
}

// isFile says that a location names an object and no directory.
func (v *View) isFile(ctx context.Context, dir objectstore.Location) (bool, error) {
	if dir.Key == "" {
		return false, nil
	}
	_, err := v.store.Stat(ctx, objectstore.Location{Bucket: dir.Bucket, Key: strings.TrimSuffix(dir.Key, "/")})
	if noObject(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := v.anything(ctx, dir)
	return !there, err
}

// noObject says that an error of Stat is the store's word that no object is there.
func noObject(err error) bool {
	return errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrDirectory) || errors.Is(err, objectstore.ErrName)
}

// anything says that something lies under a prefix.
func (v *View) anything(ctx context.Context, prefix objectstore.Location) (bool, error) {
	for _, err := range v.store.List(ctx, prefix, objectstore.ListOptions{Delimiter: true, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// findMetadata looks whether a format table keeps its schema under its location
// (rule 21).
func (v *View) findMetadata(ctx context.Context, e *entry) error {
	if e.table.Kind != table.FormatTable {
		return nil
	}
	schema := e.place.Location
	schema.Key += "schema/"
	there, err := v.anything(ctx, schema)
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

func (v *View) warnOnce(id, what, location string) {
	v.warned.Lock()
	known := v.warned.m[id+"\x00"+what]
	v.warned.m[id+"\x00"+what] = true
	v.warned.Unlock()
	if !known {
		v.o.Log.Warn("unwise table location", slog.String("table", id), slog.String("location", location), slog.String("reason", what))
	}
}

// EntryJSON returns the content of NAME.json of a database or table, by the
// path of its directory ("sales", "sales/orders"), as the catalog has it now,
// and the node of that very version. ErrNotExist for every other path.
func (v *View) EntryJSON(ctx context.Context, path string) ([]byte, Node, error) {
	comps, err := split(path)
	if err != nil {
		return nil, Node{}, err
	}
	switch len(comps) {
	case 1:
		d, err := v.src.Database(ctx, comps[0])
		if err != nil {
			return nil, Node{}, err
		}
		return d.Raw.Bytes, entryNode(path, d.Raw, nil), nil
	case 2:
		return v.tableJSON(ctx, comps[0], comps[1])
	}
	return nil, Node{}, notExist(path)
}

func (v *View) tableJSON(ctx context.Context, db, name string) ([]byte, Node, error) {
	key := db + "/" + name
	at := v.o.Now()
	_, _, generation := v.tables.peek(key)
	t, raw, err := v.src.Table(ctx, db, name)
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
