package render

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// appendKey appends the text of a partition column's value, typed by the key: numbers and
// booleans are such in JSON, all else is a string. Nothing is appended for NULL. A value
// that is none of its type is shown as the string that it is: whether such a partition
// can be read at all is decided before.
func (s style) appendKey(dst []byte, k *Key) []byte {
	if k.Null {
		return dst
	}
	base, _, _ := strings.Cut(strings.ToLower(k.Type), "(")
	switch strings.TrimSpace(base) {
	case "tinyint", "smallint", "int", "integer", "bigint":
		if n, err := strconv.ParseInt(k.Value, 10, 64); err == nil {
			return appendInt(dst, n)
		}
	case "boolean":
		if b, err := strconv.ParseBool(strings.ToLower(k.Value)); err == nil {
			return appendBool(dst, b)
		}
	case "float", "real":
		if f, err := strconv.ParseFloat(k.Value, 32); err == nil {
			return s.appendFloat(dst, f, 32)
		}
	case "double", "double precision":
		if f, err := strconv.ParseFloat(k.Value, 64); err == nil {
			return s.appendFloat(dst, f, 64)
		}
	case "decimal", "dec", "numeric":
		if text := bytes.TrimPrefix([]byte(k.Value), []byte("+")); isNumber(text) {
			return append(dst, text...)
		}
	}
	return s.appendString(dst, []byte(k.Value))
}

// isNumber says that text is a number of JSON's, digits and a point alone.
func isNumber(text []byte) bool {
	return json.Valid(text) && !bytes.ContainsAny(text, "eE\"[{nft \t\r\n")
}
