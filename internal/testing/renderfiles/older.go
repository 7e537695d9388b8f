package renderfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// older writes files as older writers made them, of make.py's: the pages are the same
// and the footer is another. All of them are nullable lists of required elements.
func older(tb testing.TB, dir string, expect map[string]about) {
	tb.Helper()
	change := func(from, to string, a about, change func(*format.FileMetaData)) {
		tb.Helper()
		raw := Refooted(tb, read(tb, filepath.Join(dir, from)), change)
		must(tb, os.WriteFile(filepath.Join(dir, to), raw, 0o600))
		expect[to] = a
	}
	change("version1.parquet", "converted.parquet", about{
		Flat: true, NotColumns: expect["version1.parquet"].NotColumns, Zones: new(bool),
	}, withoutLogical)
	change("items.parquet", "nested-converted.parquet", about{Zones: new(bool)}, withoutLogical)
	change("nested-none-v1-dict.parquet", "hive-names.parquet", about{Zones: new(bool)}, func(m *format.FileMetaData) {
		withoutLogical(m)
		rename(m, map[string]string{"list": "bag", "element": "array_element", "key_value": "map"})
		for i := range m.Schema {
			if m.Schema[i].Name == "map" {
				m.Schema[i].ConvertedType = thrift.New(deprecated.MapKeyValue)
			}
		}
	})
	change("nested-none-v1-dict.parquet", "old-maps.parquet", about{NotDuckDB: "it wants two children of MAP_KEY_VALUE"}, func(m *format.FileMetaData) {
		withoutLogical(m)
		for i := range m.Schema {
			if m.Schema[i].ConvertedType == thrift.New(deprecated.Map) {
				m.Schema[i].ConvertedType = thrift.New(deprecated.MapKeyValue)
			}
		}
	})
	ones := about{NotColumns: map[string]string{"ones": "it takes a record of one field for a list's group"}}
	change("two-levels.parquet", "spark-array.parquet", ones, func(m *format.FileMetaData) { twoLevels(m, "array") })
	change("two-levels.parquet", "thrift-tuple.parquet", ones, func(m *format.FileMetaData) { twoLevels(m, "") })
	change("two-levels.parquet", "avro-element.parquet", about{}, func(m *format.FileMetaData) { twoLevels(m, "element") })
}

// withoutLogical takes away what writers before 2018 had not.
func withoutLogical(m *format.FileMetaData) {
	for i := range m.Schema {
		m.Schema[i].LogicalType = format.LogicalType{}
	}
}

// rename renames the groups between a nested column and its values, and only them.
func rename(m *format.FileMetaData, names map[string]string) {
	for i := range m.Schema {
		if to := names[m.Schema[i].Name]; to != "" {
			m.Schema[i].Name = to
		}
	}
	paths(m, func(path []string) []string {
		for i, name := range path {
			if to := names[name]; to != "" {
				path[i] = to
			}
		}
		return path
	})
}

func paths(m *format.FileMetaData, change func([]string) []string) {
	for g := range m.RowGroups {
		for c := range m.RowGroups[g].Columns {
			meta := &m.RowGroups[g].Columns[c].MetaData
			meta.PathInSchema = change(slices.Clone(meta.PathInSchema))
		}
	}
}

// twoLevels makes of each list of required elements (optional group LIST, repeated group
// list, required element) one of two levels, whose repeated field is the element: the
// levels of its values are the same. The element's name is element, or that of its list
// with _tuple.
func twoLevels(m *format.FileMetaData, element string) {
	withoutLogical(m)
	var schema []format.SchemaElement
	renamed := map[string]string{}
	for i := 0; i < len(m.Schema); i++ {
		e := m.Schema[i]
		if i == 0 || e.Name != "list" || !e.RepetitionType.Valid || e.RepetitionType.V != format.Repeated {
			schema = append(schema, e)
			continue
		}
		i++
		inner, list := m.Schema[i], schema[len(schema)-1].Name
		inner.RepetitionType = e.RepetitionType
		inner.Name = element
		if element == "" {
			inner.Name = list + "_tuple"
		}
		renamed[list] = inner.Name
		schema = append(schema, inner)
	}
	m.Schema = schema
	paths(m, func(path []string) []string {
		for list, name := range renamed {
			old := list + "\x00list\x00element"
			path = strings.Split(strings.ReplaceAll(strings.Join(path, "\x00"), old, list+"\x00"+name), "\x00")
		}
		return path
	})
}
