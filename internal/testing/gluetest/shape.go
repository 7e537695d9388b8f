package gluetest

import (
	"encoding/json"
	"fmt"
	"slices"
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

// shape makes the entries of partitions that look alike: what is the same in all
// is JSON already.
type shape struct {
	where    names
	keys     []column
	location func(values []string) string

	middle  json.RawMessage // between the values and the columns
	columns json.RawMessage // the columns, and a comma
	end     json.RawMessage // behind the location
}

func newShape(n names, keys []column, m Many) *shape {
	const hive = "org.apache.hadoop.hive.ql.io.parquet."
	s := &shape{where: n, keys: keys, location: m.Location}
	s.middle = fields(object{{"DatabaseName", quote(n.database)}, {"TableName", quote(n.table)}, {"CreationTime", now()}}, `,"StorageDescriptor":{`)
	s.columns = fields(object{{"Columns", wide(m.Columns)}}, ",")
	s.end = append(json.RawMessage(","), fields(object{
		{"InputFormat", quote(hive + "MapredParquetInputFormat")},
		{"OutputFormat", quote(hive + "MapredParquetOutputFormat")},
		{"SerdeInfo", object{{"SerializationLibrary", quote(hive + "serde.ParquetHiveSerDe")}}.raw()},
	}, "},")...)
	s.end = append(s.end, fields(object{{"CatalogId", quote(n.catalog)}}, "}")...)
	return s
}

// fields are an object without its braces, and what follows.
func fields(o object, end string) json.RawMessage {
	raw := o.raw()
	return append(raw[1:len(raw)-1], end...)
}

// AddMany adds partitions to a table.
func (c Catalog) AddMany(database, table string, m Many) {
	c.load("partitions of "+database+"."+table, func(s *store) error {
		n := names{c.account, database, table}
		t, err := s.table(n)
		if err != nil {
			return err
		}
		shape := newShape(n, t.keys(), m)
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
	var columns json.RawMessage
	if !withoutColumns {
		columns = s.columns
	}
	return slices.Concat(
		[]byte(`{"Values":`), encode(values), []byte(","), s.middle, columns,
		[]byte(`"Location":`), quote(s.at(values)), s.end)
}

func (s *shape) at(values []string) string {
	if s.location != nil {
		return s.location(values)
	}
	var b strings.Builder
	b.WriteString("s3://lake/" + s.where.database + "/" + s.where.table + "/")
	for i, v := range values {
		if i < len(s.keys) {
			b.WriteString(s.keys[i].Name + "=" + v + "/")
		}
	}
	return b.String()
}
