package gluetest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

func getDatabases(s *store, c *Call) (json.RawMessage, error) {
	databases, ok := s.catalogs[c.Catalog]
	if !ok {
		return nil, notFound("Catalog %s not found.", c.Catalog)
	}
	return page(c, "DatabaseList", slices.Sorted(maps.Keys(databases)), func(name string) json.RawMessage {
		return databases[name].entry.raw()
	})
}

func getDatabase(s *store, c *Call) (json.RawMessage, error) {
	d, err := s.database(c.names())
	if err != nil {
		return nil, err
	}
	return object{{"Database", d.entry.raw()}}.raw(), nil
}

func createDatabase(s *store, c *Call) (json.RawMessage, error) {
	in, err := c.entry("DatabaseInput")
	if err != nil {
		return nil, err
	}
	if err := checkDatabase(in); err != nil {
		return nil, err
	}
	o := object{{"Name", quote(c.Database)}}
	o.add(in)
	o.set("CreateTime", now())
	o.set("CatalogId", quote(c.Catalog))
	return empty(), s.addDatabase(c.names(), o)
}

func deleteDatabase(s *store, c *Call) (json.RawMessage, error) {
	if _, err := s.database(c.names()); err != nil {
		return nil, err
	}
	delete(s.catalogs[c.Catalog], c.Database)
	return empty(), nil
}

func getTables(s *store, c *Call) (json.RawMessage, error) {
	d, err := s.database(c.names())
	if err != nil {
		return nil, err
	}
	matches, err := regexp.Compile("^(?:" + c.text("Expression") + ")$")
	if err != nil {
		return nil, invalid("Invalid regular expression: %v", err)
	}
	all := slices.Sorted(maps.Keys(d.tables))
	if c.text("Expression") != "" {
		all = slices.DeleteFunc(all, func(name string) bool { return !matches.MatchString(name) })
	}
	return page(c, "TableList", all, func(name string) json.RawMessage { return d.tables[name].entry.raw() })
}

// page is what a listing by name answers: at most 100 entries, and where to go on.
func page(c *Call, field string, all []string, entry func(name string) json.RawMessage) (json.RawMessage, error) {
	size, err := c.pageSize(100)
	if err != nil {
		return nil, err
	}
	from, err := c.after()
	if err != nil {
		return nil, err
	}
	at, found := slices.BinarySearch(all, from)
	if found {
		at++
	}
	rest := all[at:]
	entries := make([]json.RawMessage, min(size, len(rest)))
	for i := range entries {
		entries[i] = entry(rest[i])
	}
	out := object{{field, list(entries)}}
	if len(rest) > size {
		out.set("NextToken", quote(token(c.Op, rest[size-1])))
	}
	return out.raw(), nil
}

func getTable(s *store, c *Call) (json.RawMessage, error) {
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	return object{{"Table", t.entry.raw()}}.raw(), nil
}

func createTable(s *store, c *Call) (json.RawMessage, error) {
	in, err := c.entry("TableInput")
	if err != nil {
		return nil, err
	}
	if err := checkTable(in); err != nil {
		return nil, err
	}
	return empty(), s.addTable(c.names(), tableEntry(c, in, now(), "0"))
}

// tableEntry is what a table's input becomes.
func tableEntry(c *Call, in object, created json.RawMessage, version string) object {
	o := object{{"Name", quote(c.Table)}, {"DatabaseName", quote(c.Database)}}
	o.add(in, "Name")
	o.set("CreateTime", created)
	o.set("UpdateTime", now())
	o.set("IsRegisteredWithLakeFormation", json.RawMessage("false"))
	o.set("CatalogId", quote(c.Catalog))
	o.set("VersionId", quote(version))
	return o
}

func updateTable(s *store, c *Call) (json.RawMessage, error) {
	in, err := c.entry("TableInput")
	if err != nil {
		return nil, err
	}
	if err = checkTable(in); err != nil {
		return nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	version := t.entry.text("VersionId")
	if want := c.text("VersionId"); want != "" && want != version {
		return nil, fail("ConcurrentModificationException",
			"Update table failed due to concurrent modifications: version is %s, not %s.", version, want)
	}
	next, err := strconv.Atoi(version)
	if err != nil {
		next = -1 // a table that was loaded without a version
	}
	t.entry = tableEntry(c, in, t.entry.get("CreateTime"), strconv.Itoa(next+1))
	return empty(), nil
}

func deleteTable(s *store, c *Call) (json.RawMessage, error) {
	if _, err := s.table(c.names()); err != nil {
		return nil, err
	}
	delete(s.catalogs[c.Catalog][c.Database].tables, c.Table)
	return empty(), nil
}
