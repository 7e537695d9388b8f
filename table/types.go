package table

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

var errParse = errors.New("does not parse")

// baseType is a type's name without parameters, in lower case.
func baseType(typ string) string {
	base, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(typ)), "(")
	return strings.TrimSpace(base)
}

func intBits(base string) int {
	switch base {
	case "tinyint":
		return 8
	case "smallint":
		return 16
	case "int", "integer":
		return 32
	case "bigint":
		return 64
	}
	return 0
}

// strict says that an existing directory whose value is not of the type can
// not be read (rule 45).
func strict(typ string) bool {
	base := baseType(typ)
	return base == "date" || intBits(base) > 0
}

// formatKeyType says that a format table may have a key of the type (rule 36).
func formatKeyType(typ string) bool {
	switch base := baseType(typ); base {
	case "boolean", "string", "date":
		return true
	default:
		return intBits(base) > 0
	}
}

// nested says that a type holds other columns.
func nested(typ string) bool {
	base, _, _ := strings.Cut(baseType(typ), "<")
	switch strings.TrimSpace(base) {
	case "array", "map", "struct", "uniontype", "row", "multiset":
		return true
	}
	return false
}

// parse returns a text that is the same for all spellings of one value of the
// type. A type that is not understood compares as text (rule 36).
func (t *Table) parse(typ, text string) (string, error) {
	base := baseType(typ)
	if bits := intBits(base); bits > 0 {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return "", fmt.Errorf("%q: %w", text, errParse)
		}
		return strconv.FormatInt(n, 10), nil
	}
	switch base {
	case "date":
		return t.parseDate(text)
	case "boolean":
		if b := strings.ToLower(text); b == "true" || b == "false" {
			return b, nil
		}
	case "float", "double", "real", "double precision":
		if f, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xXpP_") { // no number of Go's own
			return strconv.FormatFloat(f+0, 'g', -1, 64), nil // -0 is 0
		}
	case "decimal", "numeric":
		return parseDecimal(typ, text)
	case "varchar", "char":
		return parseChars(typ, text)
	case "timestamp", "datetime":
		return parseTimestamp(text)
	default:
		return text, nil
	}
	return "", fmt.Errorf("%q: %w", text, errParse)
}

// parseDate reads YYYY-MM-DD, month and day with one digit or two; in a format
// table with legacy names also a count of days since 1970.
func (t *Table) parseDate(text string) (string, error) {
	if d, err := time.Parse("2006-1-2", text); err == nil {
		return d.Format(time.DateOnly), nil
	}
	if t.LegacyDate {
		if days, err := strconv.ParseInt(text, 10, 32); err == nil {
			if d := time.Unix(days*86400, 0).UTC(); d.Year() >= 0 && d.Year() <= 9999 {
				return d.Format(time.DateOnly), nil
			}
		}
	}
	return "", fmt.Errorf("%q: %w", text, errParse)
}

func parseDecimal(typ, text string) (string, error) {
	const maxDigits = 80                                                                                                // a decimal has 38; keeps big exponents out of big.Rat
	if len(text) <= maxDigits && !strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_") { // no number of Go's own
		if r, ok := new(big.Rat).SetString(text); ok && fits(r, numbers(typ)) {
			return r.RatString(), nil
		}
	}
	return "", fmt.Errorf("%q: %w", text, errParse)
}

// fits says that a decimal has no more digits than its type: size is its precision,
// and the scale if there is one. Engines round what has more, which makes it equal to
// another value.
func fits(r *big.Rat, size []int) bool {
	if len(size) == 0 {
		return true
	}
	precision, scale := size[0], 0
	if len(size) > 1 {
		scale = size[1]
	}
	ten := func(n int) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	shifted := new(big.Rat).Mul(r, ten(scale))
	return shifted.IsInt() && shifted.Abs(shifted).Cmp(ten(precision)) < 0
}

// parseChars: a text is at most as long as its type says. Of a char, spaces at the end
// are padding.
func parseChars(typ, text string) (string, error) {
	same := text
	if baseType(typ) == "char" {
		same = strings.TrimRight(text, " ")
	}
	if size := numbers(typ); len(size) == 1 && utf8.RuneCountInString(same) > size[0] {
		return "", fmt.Errorf("%q: %w", text, errParse)
	}
	return same, nil
}

// numbers are the parameters of a type, 10 and 2 of decimal(10,2); nil where they are
// none that a type of a catalog has.
func numbers(typ string) (out []int) {
	_, list, _ := strings.Cut(typ, "(")
	list, _, closed := strings.Cut(list, ")")
	if !closed {
		return nil
	}
	for n := range strings.SplitSeq(list, ",") {
		i, err := strconv.ParseUint(strings.TrimSpace(n), 10, 16)
		if err != nil {
			return nil
		}
		out = append(out, int(i))
	}
	return out
}

func parseTimestamp(text string) (string, error) {
	for _, layout := range []string{"2006-1-2 15:04:05", time.RFC3339, "2006-1-2T15:04:05", "2006-1-2 15:04", "2006-1-2"} {
		if ts, err := time.Parse(layout, text); err == nil && !strings.Contains(text, ",") { // which Go takes before a fraction
			return ts.UTC().Format(time.RFC3339Nano), nil
		}
	}
	return "", fmt.Errorf("%q: %w", text, errParse)
}

// render turns what parse returned into a format table's spelling (rule 34).
func (t *Table) render(typ, same string) string {
	if baseType(typ) != "date" || !t.LegacyDate {
		return same
	}
	d, err := time.Parse(time.DateOnly, same)
	if err != nil {
		return same // never: parseDate made it
	}
	return strconv.FormatInt(d.Unix()/86400, 10)
}
