package table

import (
	"errors"
	"slices"
	"testing"
)

// What is a number in Go's source alone is none in a partition's name.
func TestNumbersAreThoseOfSQL(t *testing.T) {
	for _, c := range []struct {
		typ, name string
		existing  string
		want      error
	}{
		{"decimal(10,2)", "k=0b11", "k=3", ErrName},
		{"decimal(10,2)", "k=0o17", "k=15", ErrName},
		{"decimal(10,2)", "k=1.50", "k=1.5", ErrEqual},
		{"double", "k=0x1p4", "k=16", ErrName},
		{"double", "k=1_0", "k=10", ErrName},
		{"double", "k=-0", "k=0", ErrEqual},
		{"double", "k=1e1", "k=10", ErrEqual},
		{"double", "k=1.5", "k=10", nil},
	} {
		tab := &Table{Kind: Hive, NullName: HiveNull, Keys: []Column{{Name: "k", Type: c.typ}}}
		if err := tab.CheckNew(c.name, 0, slices.Values([]string{c.existing})); !errors.Is(err, c.want) {
			t.Errorf("%s of %s beside %s: %v, want %v", c.name, c.typ, c.existing, err, c.want)
		}
	}
}
