package gluetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Account is the server's own catalog, that of requests without a CatalogId.
const Account = "123456789012"

// store is all that a server has. The server's mutex guards it.
type store struct {
	catalogs map[string]map[string]*database // by account and name
	seq      int64                           // of the last partition
}

type database struct {
	entry  object
	tables map[string]*table
}

type table struct {
	entry      object
	partitions []*partition // by seq
	byValues   map[string]*partition
}

// partition is a registered partition. Its entry is either kept, or one of many
// of a shape.
type partition struct {
	seq    int64 // unique in the server, and growing
	values []string
	entry  json.RawMessage
	shape  *shape
}

// names says what a request is about; those of less than a table lack the rest.
type names struct{ catalog, database, table string }

func (s *store) database(n names) (*database, error) {
	d := s.catalogs[n.catalog][n.database]
	if d == nil {
		return nil, notFound("Database %s not found.", n.database)
	}
	return d, nil
}

func (s *store) table(n names) (*table, error) {
	d, err := s.database(n)
	if err != nil {
		return nil, err
	}
	t := d.tables[n.table]
	if t == nil {
		return nil, notFound("Table %s not found.", n.table)
	}
	return t, nil
}

func (s *store) addDatabase(n names, entry object) error {
	c := s.catalogs[n.catalog]
	if c == nil {
		return notFound("Catalog %s not found.", n.catalog)
	}
	if c[n.database] != nil {
		return exists("Database already exists.")
	}
	c[n.database] = &database{entry: entry, tables: make(map[string]*table)}
	return nil
}

func (s *store) addTable(n names, entry object) error {
	d, err := s.database(n)
	if err != nil {
		return err
	}
	if d.tables[n.table] != nil {
		return exists("Table already exists.")
	}
	d.tables[n.table] = &table{entry: entry, byValues: make(map[string]*partition)}
	return nil
}

// addPartition gives a partition its place in the table.
func (s *store) addPartition(t *table, p *partition) error {
	at := key(p.values)
	if t.byValues[at] != nil {
		return exists("Partition already exists.")
	}
	s.seq++
	p.seq = s.seq
	t.byValues[at] = p
	t.partitions = append(t.partitions, p)
	return nil
}

func (t *table) partition(values []string) (*partition, error) {
	if p := t.byValues[key(values)]; p != nil {
		return p, nil
	}
	return nil, notFound("Cannot find partition.")
}

func (t *table) removePartition(p *partition) {
	delete(t.byValues, key(p.values))
	t.partitions = slices.DeleteFunc(t.partitions, func(other *partition) bool { return other == p })
}

// column is a partition key.
type column struct{ Name, Type string }

// keys are the partition keys, none where the entry has none that can be read.
func (t *table) keys() []column {
	var keys []column
	if json.Unmarshal(t.entry.get("PartitionKeys"), &keys) != nil {
		return nil
	}
	return keys
}

// key is what a partition is found by.
func key(values []string) string { return string(encode(values)) }

// raw is the partition's entry.
func (p *partition) raw(withoutColumns bool) (json.RawMessage, error) {
	if p.shape != nil {
		return p.shape.entry(p.values, withoutColumns), nil
	}
	if !withoutColumns {
		return p.entry, nil
	}
	o, err := parse(p.entry)
	if err != nil {
		return nil, fmt.Errorf("partition %v: %w", p.values, err)
	}
	sd, err := parse(o.get("StorageDescriptor"))
	if err != nil {
		return p.entry, nil //nolint:nilerr // it has no columns
	}
	sd = slices.DeleteFunc(sd, func(f field) bool { return f.name == "Columns" })
	o.set("StorageDescriptor", sd.raw())
	return o.raw(), nil
}

// now is the time as AWS writes it.
func now() json.RawMessage {
	ms := strconv.FormatInt(time.Now().UnixMilli(), 10) // of 13 digits until the year 2286
	return json.RawMessage(ms[:1] + "." + ms[1:] + "E9")
}
