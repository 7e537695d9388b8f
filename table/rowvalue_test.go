package table

import (
	"errors"
	"strings"
	"testing"
)

// TestRule45ValuesInRows: a value is of its key's type, whatever that is, or is refused.
func TestRule45ValuesInRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ, value, want string
		refused          bool
	}{
		{"int", "007", "7", false},
		{"date", "2026-1-31", "2026-01-31", false},
		{"string", "a,b", "a,b", false},
		{"varchar(3)", "long text", "long text", false},
		{"no such type", "x", "x", false},
		{"BOOLEAN", "True", "true", false},
		{"boolean", "yes", "", true},
		{"boolean", "1", "", true},
		{"boolean", "", "", true},
		{"double", "1e308", "1e+308", false},
		{"double", "1e309", "", true},
		{"double", "0x1p3", "", true},
		{"double", "NaN", "NaN", false},
		{"double", "two", "", true},
		{"float", "0.1", "0.1", false},
		{"float", "0.10000000149011612", "0.1", false},
		{"float", "1e39", "", true},
		{"decimal(10,2)", "1.5", "1.50", false},
		{"decimal(10,2)", "-.5", "-0.50", false},
		{"decimal(10,2)", "+1", "1.00", false},
		{"decimal(4,2)", "123.4", "", true},
		{"decimal(4,2)", "1.234", "", true},
		{"decimal(4,2)", "1e1", "", true},
		{"decimal(4,2)", "one", "", true},
		{"decimal", "12", "12", false},
		{"decimal", "1.5", "", true},
		{"timestamp", "2026-01-31 12:34:56", "2026-01-31T12:34:56", false},
		{"timestamp", "2026-01-31 12:34:56.500", "2026-01-31T12:34:56.5", false},
		{"timestamp", "2026-01-31", "2026-01-31T00:00:00", false},
		{"timestamp", "2026-01-31T12:34:56Z", "2026-01-31T12:34:56", false},
		{"timestamp with local time zone", "2026-01-31T12:34:56+01:00", "2026-01-31T11:34:56Z", false},
		{"timestamp", "never", "", true},
		{"timestamp", "2026-02-30 00:00:00", "", true},
		{"binary", "a\x01", "YQE=", false},
		{"boolean", HiveNull, "", false},
	} {
		tab := hive("k", c.typ)
		name := "k=" + Escape(c.value)
		v, err := tab.ParsePartition(name, 0)
		if err != nil {
			t.Errorf("%s %q: %v", c.typ, c.value, err)
			continue
		}
		got, err := tab.RowValue(name, v, 0)
		if refused := errors.Is(err, ErrValue) && strings.Contains(err.Error(), name); got != c.want || refused != c.refused || !refused && err != nil {
			t.Errorf("%s %q: got %q, %v", c.typ, c.value, got, err)
		}
	}
}

// TestSlimKeepsWhatDirectoriesAskFor: partitions, and what an overwrite clears (rule 30).
func TestSlimKeepsWhatDirectoriesAskFor(t *testing.T) {
	t.Parallel()
	whole := &Table{Columns: []Column{{Name: "a"}}, Description: "d", Parameters: map[string]string{providerKey: "parquet", DynamicOverwrite: "false", "x": "y"}}
	slim := whole.Slim()
	if !slim.Slimmed || slim.Columns != nil || slim.Description != "" || len(slim.Parameters) != 2 || slim.Parameters[DynamicOverwrite] != "false" || slim.Parameters[providerKey] != "parquet" {
		t.Errorf("got %+v", slim)
	}
	if slim = (&Table{}).Slim(); slim.Parameters != nil {
		t.Errorf("got %+v", slim)
	}
}
