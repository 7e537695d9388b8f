package table

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// RowValue is the value of the key of that level as rows show it, as text: one for all
// spellings of a value of the type. An error wraps [ErrValue] and names the segment: no
// value that is none of its key's type is shown, of whatever type (rule 45). That of a
// NULL is "".
func (t *Table) RowValue(name string, v Value, level int) (string, error) {
	if v.Null {
		return "", nil
	}
	key := t.Keys[level]
	text, ok := t.rowText(key.Type, v)
	if !ok {
		return "", fmt.Errorf("partition %q: key %s is %s: %w", name, key.Name, key.Type, ErrValue)
	}
	return text, nil
}

// rowText: what is text, and what is of a type that is not understood, is as it is written.
func (t *Table) rowText(typ string, v Value) (string, bool) {
	if strict(typ) {
		return v.Same, true // it was parsed, or is no partition
	}
	parsed, err := ParseType(typ)
	if err != nil {
		return v.Text, true
	}
	switch parsed.Kind {
	case TypeBoolean:
		same, err := t.parse("boolean", v.Text)
		return same, err == nil
	case TypeFloat:
		return floatText(v.Text, 32)
	case TypeDouble:
		return floatText(v.Text, 64)
	case TypeDecimal:
		return decimalText(v.Text, parsed)
	case TypeTimestamp, TypeTimestampLocal, TypeTimestampZoned:
		return timestampText(v.Text, parsed.Kind == TypeTimestampZoned)
	case TypeBinary:
		return base64.StdEncoding.EncodeToString([]byte(v.Text)), true
	}
	return v.Text, true
}

// floatText is the shortest text that reads back as the same number of so many bits.
func floatText(text string, bits int) (string, bool) {
	f, err := strconv.ParseFloat(text, bits)
	if err != nil || strings.ContainsAny(text, "xXpP_") { // no number of Go's own
		return "", false
	}
	return strconv.FormatFloat(f, 'g', -1, bits), true
}

// decimalText has all digits of the type's scale.
func decimalText(text string, typ Type) (string, bool) {
	same, err := parseDecimal(typ.String(), text)
	if err != nil {
		return "", false
	}
	r, ok := new(big.Rat).SetString(same)
	if !ok {
		return "", false // never: parseDecimal made it
	}
	return r.FloatString(typ.Scale), true
}

// timestampText is ISO 8601 with a T, and a Z of an instant alone. A text with a zone of
// its own is shown at UTC.
func timestampText(text string, zoned bool) (string, bool) {
	same, err := parseTimestamp(text)
	if err != nil {
		return "", false
	}
	if _, err = time.Parse(time.RFC3339, same); err != nil {
		return "", false // of a year that has other than four digits
	}
	if !zoned {
		same = strings.TrimSuffix(same, "Z")
	}
	return same, true
}
