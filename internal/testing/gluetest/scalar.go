package gluetest

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// scalar is a value of a partition key's type: a number, or a text whose order is
// that of the type.
type scalar struct {
	number *big.Rat // nil: text
	text   string
}

func (s scalar) compare(other scalar) int {
	if s.number != nil && other.number != nil {
		return s.number.Cmp(other.number)
	}
	return cmp.Compare(s.text, other.text)
}

// cast reads a value as a type. Glue knows fewer types for keys than Hive.
func cast(typ, value string) (scalar, error) {
	base, _, _ := strings.Cut(strings.ToLower(typ), "(")
	switch base {
	case "string":
		return scalar{text: value}, nil
	case "int", "bigint", "long", "smallint", "tinyint":
		n, ok := new(big.Int).SetString(strings.TrimSpace(value), 10)
		if !ok {
			return scalar{}, fmt.Errorf("%q is not an integer.", value) //nolint:revive,staticcheck // the emulators' own sentence
		}
		return scalar{number: new(big.Rat).SetInt(n)}, nil
	case "decimal":
		n, ok := new(big.Rat).SetString(value)
		if !ok {
			return scalar{}, fmt.Errorf("%s is not a decimal.", value) //nolint:revive,staticcheck // likewise
		}
		return scalar{number: n}, nil
	case "date":
		return dated(value, time.DateOnly, "date")
	case "timestamp":
		return dated(value, "2006-01-02 15:04:05.999999999", "timestamp")
	}
	return scalar{}, fmt.Errorf("Unknown type : '%s'", typ) //nolint:staticcheck // likewise
}

func dated(value, layout, what string) (scalar, error) {
	t, err := time.Parse(layout, value)
	if err != nil {
		return scalar{}, fmt.Errorf("%s is not a %s.", value, what) //nolint:revive,staticcheck // likewise
	}
	return scalar{text: t.Format("2006-01-02 15:04:05.000000000")}, nil
}
