package gluetest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Many are partitions that look alike. Their entries are made while they are
// answered: in memory a partition is its values, and all share the columns.
type Many struct {
	Count    int
	Values   func(i int) []string         // of the i-th of Count, all different
	Columns  int                          // of each storage descriptor, all strings: c0000, c0001, …
	Location func(values []string) string // nil: "s3://lake/" and the values as directories
}

// shape makes the entries of partitions that look alike.
type shape struct {
	where    names
	keys     []column
	columns  json.RawMessage
	created  json.RawMessage
	location func(values []string) string
}

// AddMany adds partitions to a table.
func (c Catalog) AddMany(database, table string, m Many) {
	c.load("partitions of "+database+"."+table, func(s *store) error {
		n := names{c.account, database, table}
		t, err := s.table(n)
		if err != nil {
			return err
		}
		shape := &shape{where: n, keys: t.keys(), columns: wide(m.Columns), created: now(), location: m.Location}
		for i := range m.Count {
			if err := s.addPartition(t, &partition{values: m.Values(i), shape: shape}); err != nil {
				return err
			}
		}
		return nil
	})
}

// wide are so many columns.
func wide(n int) json.RawMessage {
	columns := make([]json.RawMessage, n)
	for i := range columns {
		columns[i] = object{{"Name", quote(fmt.Sprintf("c%04d", i))}, {"Type", quote("string")}}.raw()
	}
	return list(columns)
}

// entry makes a partition's entry.
func (s *shape) entry(values []string, withoutColumns bool) json.RawMessage {
	const hive = "org.apache.hadoop.hive.ql.io.parquet."
	var sd object
	if !withoutColumns {
		sd.set("Columns", s.columns)
	}
	sd.set("Location", quote(s.at(values)))
	sd.set("InputFormat", quote(hive+"MapredParquetInputFormat"))
	sd.set("OutputFormat", quote(hive+"MapredParquetOutputFormat"))
	sd.set("SerdeInfo", object{{"SerializationLibrary", quote(hive + "serde.ParquetHiveSerDe")}}.raw())
	return object{
		{"Values", encode(values)},
		{"DatabaseName", quote(s.where.database)},
		{"TableName", quote(s.where.table)},
		{"CreationTime", s.created},
		{"StorageDescriptor", sd.raw()},
		{"CatalogId", quote(s.where.catalog)},
	}.raw()
}

func (s *shape) at(values []string) string {
	if s.location != nil {
		return s.location(values)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "s3://lake/%s/%s/", s.where.database, s.where.table)
	for i, v := range values {
		if i < len(s.keys) {
			fmt.Fprintf(&b, "%s=%s/", s.keys[i].Name, v)
		}
	}
	return b.String()
}
