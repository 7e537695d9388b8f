package render

import (
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// match holds a file's type to the table's. It returns what the values are shown as: got,
// or a changed copy.
//
// A type is the table's if some writer makes it of the table's, or some catalog makes the
// table's of it: so the smaller integers that Avro and older writers have no type for, an
// unsigned integer under the next larger signed one, any time under a timestamp that says
// neither precision nor zone, bytes under string, and what has no type in Hive (a UUID, a
// time) under string.
func match(path string, want table.Type, got *fileType) (*fileType, error) {
	switch got.kind {
	case unknown:
		return nil, cannotShow(path, got)
	case nothing:
		return got, nil
	}
	ok := false
	switch want.Kind {
	case table.TypeTinyint, table.TypeSmallint, table.TypeInt, table.TypeBigint:
		return matchInteger(path, want, got)
	case table.TypeDecimal:
		ok = got.kind == decimal && got.precision == want.Size && got.scale == want.Scale ||
			got.kind == integer && got.unsigned && got.bits == 64 && want.Size == 20 && want.Scale == 0
	case table.TypeString, table.TypeVarchar, table.TypeChar:
		return matchText(path, want, got)
	case table.TypeTimestamp, table.TypeTimestampLocal, table.TypeTimestampZoned:
		return matchTimestamp(path, want, got)
	case table.TypeArray, table.TypeMap, table.TypeUnion:
		return matchParts(path, want, got)
	case table.TypeStruct:
		return matchStruct(path, want, got)
	default:
		ok = matchSimple(want.Kind, got)
	}
	if !ok {
		return nil, differs(path, want, got)
	}
	return got, nil
}

func differs(path string, want table.Type, got *fileType) error {
	return &Error{
		Column: path,
		Reason: fmt.Sprintf("it is %.200s in the file and %.200s in the table", got.declared, want),
		Remedy: dropIt + ", or write the file or the table's entry anew",
	}
}

func matchSimple(want table.TypeKind, got *fileType) bool {
	switch want {
	case table.TypeBoolean:
		return got.kind == boolean
	case table.TypeFloat:
		return got.kind == float && got.bits <= 32
	case table.TypeDouble:
		return got.kind == float && got.bits == 64
	case table.TypeBinary:
		return got.kind == octets
	case table.TypeDate:
		return got.kind == date
	case table.TypeTime:
		return got.kind == timeOfDay
	case table.TypeInterval:
		return got.kind == interval
	}
	return false // void, variant
}

// integers are the bits of a table's types.
var integers = map[table.TypeKind]int{table.TypeTinyint: 8, table.TypeSmallint: 16, table.TypeInt: 32, table.TypeBigint: 64} //nolint:gochecknoglobals // a constant table

func matchInteger(path string, want table.Type, got *fileType) (*fileType, error) {
	bits := integers[want.Kind]
	switch {
	case got.kind != integer:
	case got.unsigned && got.bits*2 == bits, !got.unsigned && got.bits == bits:
		return got, nil
	case !got.unsigned && got.bits == 32 && bits < 32: // whose values tell
		changed := *got
		changed.within = bits
		return &changed, nil
	}
	return nil, differs(path, want, got)
}

// unfit is an error of a value that the table's type, of fewer bits, has no room for; nil
// if it has.
func (t *fileType) unfit(n int64) error {
	if t.within == 0 || n == n<<(64-t.within)>>(64-t.within) {
		return nil
	}
	name := ""
	for kind, bits := range integers {
		if bits == t.within {
			name = string(kind)
		}
	}
	return &Error{
		Reason: fmt.Sprintf("the file has the value %d, which is no %s, as the column is in the table", n, name),
		Remedy: dropIt + ", or give the column a larger type in the table's entry",
	}
}

func matchText(path string, want table.Type, got *fileType) (*fileType, error) {
	switch {
	case got.kind == text:
		return got, nil
	case got.kind == octets && got.size == 0:
		changed := *got
		changed.asText = true
		return &changed, nil
	case want.Kind == table.TypeString && (got.kind == uuid || got.kind == timeOfDay):
		return got, nil
	}
	return nil, differs(path, want, got)
}

// matchTimestamp: a type that says a precision is one of a table whose engine stores that
// precision's unit, and milliseconds for whole seconds.
func matchTimestamp(path string, want table.Type, got *fileType) (*fileType, error) {
	ok := got.kind == timestamp && (got.int96 ||
		want.Kind == table.TypeTimestamp ||
		want.Kind == table.TypeTimestampZoned && got.utc ||
		want.Kind == table.TypeTimestampLocal && !got.utc)
	if ok && want.Size >= 0 && !got.int96 {
		ok = got.unit == storedUnit(want.Size)
	}
	if !ok {
		return nil, differs(path, want, got)
	}
	if want.Size == 0 && got.unit == millis {
		changed := *got
		changed.unit = seconds
		return &changed, nil
	}
	return got, nil
}

func storedUnit(precision int) unit {
	switch {
	case precision <= int(millis):
		return millis
	case precision <= int(micros):
		return micros
	}
	return nanos
}

// matchParts matches the element of a list, the key and value of a map, or the branches of
// a union.
func matchParts(path string, want table.Type, got *fileType) (*fileType, error) {
	kinds := map[table.TypeKind]kind{table.TypeArray: list, table.TypeMap: mapping, table.TypeUnion: union}
	if got.kind != kinds[want.Kind] || len(got.fields) != len(want.Fields) {
		return nil, differs(path, want, got)
	}
	parts, changed := make([]field, len(got.fields)), false
	for i, f := range got.fields {
		typ, err := match(path+"."+partName(got, i), want.Fields[i].Type, f.typ)
		if err != nil {
			return nil, err
		}
		parts[i] = field{name: f.name, typ: typ}
		changed = changed || typ != f.typ
	}
	if !changed {
		return got, nil
	}
	as := *got
	as.fields = parts
	return &as, nil
}

// matchStruct: children match by name, as columns do, but must come in the order of the
// table's.
func matchStruct(path string, want table.Type, got *fileType) (*fileType, error) {
	if got.kind != record {
		return nil, differs(path, want, got)
	}
	name := func(i int) string { return got.fields[i].name }
	byName := index(len(got.fields), name)
	children := make([]field, len(want.Fields))
	same, last := len(got.fields) == len(want.Fields), -1
	for i, w := range want.Fields {
		from, err := byName.find(w.Name, name)
		if err != nil {
			return nil, err
		}
		at := path + "." + w.Name
		children[i] = field{name: w.Name, typ: &fileType{kind: nothing}, from: from}
		switch {
		case from < 0 && w.NotNull:
			return nil, &Error{Column: at, Reason: "the file has no such child, and in the table it is NOT NULL", Remedy: dropIt}
		case from < 0:
			same = false
			continue
		case from < last:
			return nil, outOfOrder(at, got.fields[last].name, want, got)
		}
		last = from
		if children[i].typ, err = match(at, w.Type, got.fields[from].typ); err != nil {
			return nil, err
		}
		same = same && from == i && children[i].typ == got.fields[i].typ && name(i) == w.Name
	}
	if same {
		return got, nil
	}
	as := *got
	as.fields = children
	return &as, nil
}

func outOfOrder(path, before string, want table.Type, got *fileType) error {
	return &Error{
		Column: path,
		Reason: fmt.Sprintf("the file has this child before %.100q, the table behind it: it is %.200s in the file and %.200s in the table", before, got.declared, want),
		Remedy: dropIt + ", or write the file or the table's entry anew",
	}
}
