package table

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzNewNames: a name that may be made reads back as a value, stands for it alone, and
// is one that any other spelling of the value meets.
func FuzzNewNames(f *testing.F) {
	types := []string{"string", "int", "bigint", "date", "boolean", "decimal(10,2)", "double", "timestamp", "varchar(5)", "char(5)"}
	for i, v := range []string{"a", "7", "-07", "2024-1-1", "TRUE", "1.50", "1e3", "2024-01-01 12%3A30%3A00.5", "%E9", "%", "a%3Db", "__HIVE_DEFAULT_PARTITION__", "_x", ".", "é ", "\xff", "19723", "%5F%5FDEFAULT_PARTITION__"} {
		f.Add(v, byte(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, value string, typ, kind byte) {
		tab := hive("k", types[int(typ)%len(types)])
		if kind&1 != 0 {
			tab = formatTable("k", types[int(typ)%len(types)])
			tab.PathOnlyValue, tab.LegacyDate = kind&2 != 0, kind&4 != 0
		}
		name := "k=" + value
		if tab.PathOnlyValue {
			name = value
		}
		if utf8.ValidString(value) && Unescape(Escape(value)) != value {
			t.Errorf("%q is escaped as %q, which reads %q", value, Escape(value), Unescape(Escape(value)))
		}
		if tab.CheckNew(name, 0, nil) != nil || tab.HiddenAt(name, 0) {
			return
		}
		v, err := tab.ParsePartition(name, 0)
		if err != nil {
			t.Fatalf("%q of %s may be made, and reads: %v", name, tab.Keys[0].Type, err)
		}
		if err := tab.CheckNew(name, 0, slices.Values([]string{name})); !errors.Is(err, ErrEqual) {
			t.Errorf("%q beside itself: %v", name, err)
		}
		other := tab.canonical(tab.Keys[0], v)
		if tab.Kind == FormatTable && other != name {
			t.Errorf("%q may be made, and is spelt %q", name, other)
		}
		if tab.Kind != FormatTable {
			other = "k=" + Escape(v.Text)
		}
		if o, err := tab.ParsePartition(other, 0); err != nil || o != v {
			t.Errorf("%q reads as %+v, its spelling %q as %+v, %v", name, v, other, o, err)
		}
	})
}
