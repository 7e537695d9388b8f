package gluetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Catalog is one account's catalog in a server. Entries are loaded as they are:
// no limit is checked, no field is added but those that say where the entry is and
// which version, if they lack, and names and accounts are those of the place.
type Catalog struct {
	server  *Server
	account string
}

// load does something to the store, and tells of what fails.
func (c Catalog) load(what string, do func(s *store) error) {
	c.server.mu.Lock()
	err := do(&c.server.mu.store)
	c.server.mu.Unlock()
	if err != nil {
		c.server.fail("load %s: %v", what, err)
	}
}

// AddDatabase adds a database: a name, or a raw entry ({"Name": …}, or the body of
// a GetDatabase around it).
func (c Catalog) AddDatabase(entry string) {
	c.load("database", func(s *store) error {
		o := object{{"Name", quote(entry)}}
		if strings.HasPrefix(strings.TrimSpace(entry), "{") {
			var err error
			if o, err = unwrap(entry, "Database"); err != nil {
				return err
			}
		}
		c.complete(&o, "CatalogId", c.account)
		return s.addDatabase(names{catalog: c.account, database: o.text("Name")}, o)
	})
}

// AddTable adds a table to a database, which is added where there is none. The raw
// entry is {"Name": …}, or the body of a GetTable around it.
func (c Catalog) AddTable(database, entry string) {
	c.load("table of "+database, func(s *store) error {
		o, err := unwrap(entry, "Table")
		if err != nil {
			return err
		}
		n := names{c.account, database, o.text("Name")}
		o.set("DatabaseName", quote(database))
		c.complete(&o, "CatalogId", c.account)
		c.complete(&o, "VersionId", "0")
		if s.catalogs[c.account][database] == nil {
			db := object{{"Name", quote(database)}, {"CatalogId", quote(c.account)}}
			if err := s.addDatabase(n, db); err != nil {
				return err
			}
		}
		return s.addTable(n, o)
	})
}

// complete gives an entry a field that it lacks.
func (c Catalog) complete(o *object, name, value string) {
	if o.get(name) == nil {
		o.set(name, quote(value))
	}
}

// SetTable replaces a table's entry, and keeps its partitions. The version grows
// only if the entry says so.
func (c Catalog) SetTable(database, entry string) {
	c.load("table of "+database, func(s *store) error {
		o, err := unwrap(entry, "Table")
		if err != nil {
			return err
		}
		t, err := s.table(names{c.account, database, o.text("Name")})
		if err != nil {
			return err
		}
		o.set("DatabaseName", quote(database))
		c.complete(&o, "CatalogId", c.account)
		c.complete(&o, "VersionId", t.entry.text("VersionId"))
		t.entry = o
		return nil
	})
}

// Remove removes a database, or with a table that alone.
func (c Catalog) Remove(database, table string) {
	c.load("removal of "+database+"."+table, func(s *store) error {
		n := names{c.account, database, table}
		if table == "" {
			_, err := s.database(n)
			delete(s.catalogs[c.account], database)
			return err
		}
		_, err := s.table(n)
		if err == nil {
			delete(s.catalogs[c.account][database].tables, table)
		}
		return err
	})
}

// AddPartition adds a partition to a table. The raw entry is {"Values": […], …};
// the number of values is not checked.
func (c Catalog) AddPartition(database, table, entry string) {
	c.load("partition of "+database+"."+table, func(s *store) error {
		t, err := s.table(names{c.account, database, table})
		if err != nil {
			return err
		}
		o, err := unwrap(entry, "Partition")
		if err != nil {
			return err
		}
		values, err := texts(o.get("Values"))
		if err != nil {
			return err
		}
		o.set("DatabaseName", quote(database))
		o.set("TableName", quote(table))
		c.complete(&o, "CatalogId", c.account)
		return s.addPartition(t, &partition{values: values, entry: o.raw()})
	})
}

// AddPartitions adds all of a list: a JSON array, or the body of a GetPartitions.
func (c Catalog) AddPartitions(database, table, entries string) {
	raw := json.RawMessage(entries)
	if o, err := parse(raw); err == nil {
		raw = o.get("Partitions")
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		c.server.fail("load partitions of %s.%s: %v", database, table, err)
	}
	for _, entry := range all {
		c.AddPartition(database, table, string(entry))
	}
}

// unwrap is an entry, or the one that an answer has in a field.
func unwrap(raw, field string) (object, error) {
	o, err := parse([]byte(raw))
	if err != nil {
		return nil, err
	}
	if inner := o.get(field); inner != nil && len(o) == 1 {
		return parse(inner)
	}
	return o, nil
}

// Fixture is an entry that LoadFixtures loaded.
type Fixture struct {
	Folder   string // below the directory: "made-by-hand/projected"
	Database string
	Table    string // "": a database
}

// LoadFixtures loads every folder below a directory that has a table.json or a
// database.json (bodies of GetTable and GetDatabase), and the partitions.json
// beside it, under the names that they have. It returns them in the order of their
// folders.
func (c Catalog) LoadFixtures(dir string) []Fixture {
	var all []Fixture
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := c.loadFixture(path, filepath.ToSlash(folder))
		if f != nil {
			all = append(all, *f)
		}
		return err
	})
	if err != nil {
		c.server.fail("load fixtures: %v", err)
	}
	return all
}

// loadFixture loads what a file has; nil: it is not the one that begins a folder.
func (c Catalog) loadFixture(path, folder string) (*Fixture, error) {
	name := filepath.Base(path)
	if name != "table.json" && name != "database.json" {
		return nil, nil //nolint:nilnil // another file
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	kind := map[string]string{"database.json": "Database", "table.json": "Table"}[name]
	o, err := unwrap(string(raw), kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if kind == "Database" {
		c.AddDatabase(string(raw))
		return &Fixture{Folder: folder, Database: o.text("Name")}, nil
	}
	f := &Fixture{folder, o.text("DatabaseName"), o.text("Name")}
	c.AddTable(f.Database, string(raw))
	partitions, err := os.ReadFile(filepath.Join(filepath.Dir(path), "partitions.json"))
	if err == nil {
		c.AddPartitions(f.Database, f.Table, string(partitions))
	}
	return f, err
}
