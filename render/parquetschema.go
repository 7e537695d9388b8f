package render

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	pq "github.com/parquet-go/parquet-go/format"
)

// parquetMaxDepth is how deep the elements of a schema may nest: of a list there are two.
const parquetMaxDepth = footerDepth

// shape is where the values of a column, or of a part of one, are in the file's leaves.
// Levels are Dremel's.
type shape struct {
	typ  *fileType
	def  int      // a definition level below it: the value is NULL, or a part of what holds it is
	some int      // of a list or map: from this definition level on it has an entry
	rep  int      // of a list or map: the repetition level of its second entry and later ones
	leaf int      // the index of the leaf that holds it; of one with parts the first
	kids []*shape // parallel to typ.fields
}

// leafInfo is a leaf of the schema: what the pages of its column chunks hold.
type leafInfo struct {
	physical pq.Type
	size     int // of FIXED_LEN_BYTE_ARRAY
	def, rep int // the highest levels
	path     string
}

// schemaReader makes shapes of the flattened tree of a footer.
type schemaReader struct {
	elements []pq.SchemaElement
	odd      []bool // of each element: it has a logical type that is not known
	next     int
	leaves   []leafInfo
}

// levels are those of what an element is in.
type levels struct {
	def, rep, depth int
	path            string
}

// readSchema returns the columns of a file, and its leaves in their order.
func (s *schemaReader) columns() ([]*shape, []field, error) {
	if len(s.elements) == 0 {
		return nil, nil, &Error{Reason: "its footer has no schema", Remedy: remedyDamaged}
	}
	s.next = 1
	var shapes []*shape
	var fields []field
	for range s.elements[0].NumChildren.V {
		name, sh, err := s.read(levels{})
		if err != nil {
			return nil, nil, err
		}
		shapes, fields = append(shapes, sh), append(fields, field{name: name, typ: sh.typ})
	}
	return shapes, fields, nil
}

// read reads the next element with all below it.
func (s *schemaReader) read(in levels) (string, *shape, error) {
	at := s.next
	if at >= len(s.elements) {
		return "", nil, &Error{Reason: "its schema is no tree of columns", Remedy: remedyDamaged}
	}
	if in.depth > parquetMaxDepth {
		return "", nil, &Error{Reason: fmt.Sprintf("its schema nests deeper than %d, of which each list takes two: more is not shown", parquetMaxDepth)}
	}
	s.next++
	e := &s.elements[at]
	in.depth++
	in.path = strings.TrimPrefix(in.path+"."+e.Name, ".")
	if e.RepetitionType.V != pq.Repeated {
		optional := e.RepetitionType.V == pq.Optional
		if optional {
			in.def++
		}
		sh, err := s.value(at, in)
		if err == nil {
			sh.typ.nullable = optional
		}
		return e.Name, sh, err
	}
	// Repeated without an annotation around it: a list that is never NULL.
	outer := &shape{def: in.def, some: in.def + 1, rep: in.rep + 1, leaf: len(s.leaves)}
	in.def, in.rep = outer.some, outer.rep
	element, err := s.value(at, in)
	if err != nil {
		return "", nil, err
	}
	outer.kids = []*shape{element}
	outer.typ = &fileType{kind: list, declared: shorten("repeated " + element.typ.declared), fields: []field{{name: "element", typ: element.typ}}}
	return e.Name, outer, nil
}

// value reads what an element is, without its own repetition, which in has by then.
func (s *schemaReader) value(at int, in levels) (*shape, error) {
	e := &s.elements[at]
	if e.NumChildren.V == 0 && e.Type.Valid {
		s.leaves = append(s.leaves, leafInfo{e.Type.V, int(e.TypeLength.V), in.def, in.rep, in.path})
		return &shape{typ: leafType(e, s.odd[at]), def: in.def, leaf: len(s.leaves) - 1}, nil
	}
	logical := e.LogicalType.Value
	_, isList := logical.(*pq.ListType)
	_, isMap := logical.(*pq.MapType)
	if c := e.ConvertedType; logical == nil && c.Valid {
		isList = c.V == deprecated.List
		isMap = c.V == deprecated.Map || c.V == deprecated.MapKeyValue
	}
	if s.next < len(s.elements) && s.elements[s.next].RepetitionType.V == pq.Repeated && e.NumChildren.V == 1 {
		entry := &s.elements[s.next]
		switch {
		case isList:
			return s.list(e, in)
		case isMap && (entry.NumChildren.V == 1 || entry.NumChildren.V == 2):
			return s.mapping(in)
		}
	}
	sh, err := s.record(at, in)
	if err != nil {
		return nil, err
	}
	if _, is := logical.(*pq.VariantType); is {
		sh.typ = &fileType{kind: unknown, declared: "VARIANT", why: "values of type VARIANT are not shown"}
		sh.kids = nil
	} else if s.odd[at] {
		sh.typ = &fileType{kind: unknown, declared: "a group of a logical type that is not known", why: "its logical type is not known"}
		sh.kids = nil
	}
	return sh, nil
}

// record reads the children of a group.
func (s *schemaReader) record(at int, in levels) (*shape, error) {
	e := &s.elements[at]
	sh := &shape{typ: &fileType{kind: record}, def: in.def, leaf: len(s.leaves)}
	var names []string
	for i := range int(e.NumChildren.V) {
		name, kid, err := s.read(in)
		if err != nil {
			return nil, err
		}
		sh.kids = append(sh.kids, kid)
		sh.typ.fields = append(sh.typ.fields, field{name: name, typ: kid.typ, from: i})
		if len(names) < 20 { // enough of a message
			names = append(names, name+": "+kid.typ.declared)
		}
	}
	sh.typ.declared = shorten("struct<" + strings.Join(names, ", ") + ">")
	if len(sh.kids) == 0 {
		sh.typ = &fileType{kind: unknown, declared: "a group of no columns", why: "it is a group of no columns"}
	}
	return sh, nil
}

// list reads the repeated child of a LIST, as the format's rules for lists of older
// writers have it: that child is the element itself if it is no group, has several
// children, one that is repeated, or is named as theirs were.
func (s *schemaReader) list(e *pq.SchemaElement, in levels) (*shape, error) {
	sh := &shape{def: in.def, some: in.def + 1, rep: in.rep + 1, leaf: len(s.leaves)}
	at := s.next
	r := &s.elements[at]
	s.next++
	in = levels{sh.some, sh.rep, in.depth + 1, in.path + "." + r.Name}
	var element *shape
	var err error
	only := r.NumChildren.V == 1 && at+1 < len(s.elements) && s.elements[at+1].RepetitionType.V != pq.Repeated
	if only && r.Name != "array" && r.Name != e.Name+"_tuple" {
		_, element, err = s.read(in)
	} else {
		element, err = s.value(at, in)
	}
	if err != nil {
		return nil, err
	}
	sh.kids = []*shape{element}
	sh.typ = &fileType{kind: list, declared: shorten("array<" + element.typ.declared + ">"), fields: []field{{name: "element", typ: element.typ}}}
	return sh, nil
}

// mapping reads the repeated child of a MAP. One of keys alone is a list of them.
func (s *schemaReader) mapping(in levels) (*shape, error) {
	sh := &shape{def: in.def, some: in.def + 1, rep: in.rep + 1, leaf: len(s.leaves)}
	entry := &s.elements[s.next]
	s.next++
	in = levels{sh.some, sh.rep, in.depth + 1, in.path + "." + entry.Name}
	sh.typ = &fileType{kind: mapping}
	var parts []string
	for i := range entry.NumChildren.V {
		_, kid, err := s.read(in)
		if err != nil {
			return nil, err
		}
		sh.kids = append(sh.kids, kid)
		sh.typ.fields = append(sh.typ.fields, field{name: [...]string{"key", "value"}[i], typ: kid.typ})
		parts = append(parts, kid.typ.declared)
	}
	sh.typ.declared = shorten("map<" + strings.Join(parts, ", ") + ">")
	if len(sh.kids) == 1 {
		sh.typ.kind = list
	}
	return sh, nil
}

// leafType is what the values of a leaf are. An annotation that does not go with the
// physical type is not understood: nothing is guessed.
func leafType(e *pq.SchemaElement, odd bool) *fileType {
	physical := e.Type.V
	t := &fileType{declared: physical.String()}
	if physical == pq.FixedLenByteArray {
		t.declared = fmt.Sprintf("%s(%d)", physical, e.TypeLength.V)
	}
	if odd || physical == pq.FixedLenByteArray && e.TypeLength.V <= 0 {
		t.why = "its logical type is not known"
		return t
	}
	annotation := annotate(e, t)
	if annotation != "" {
		t.declared += " (" + annotation + ")"
		if t.kind == unknown && t.why == "" {
			t.why = "no value of " + t.declared + " is known"
		}
		return t
	}
	switch physical {
	case pq.Boolean:
		t.kind = boolean
	case pq.Int32:
		t.kind, t.bits = integer, 32
	case pq.Int64:
		t.kind, t.bits = integer, 64
	case pq.Int96:
		t.kind, t.unit, t.int96 = timestamp, nanos, true
	case pq.Float:
		t.kind, t.bits = float, 32
	case pq.Double:
		t.kind, t.bits = float, 64
	case pq.ByteArray:
		t.kind = octets
	case pq.FixedLenByteArray:
		t.kind, t.size = octets, int(e.TypeLength.V)
	default:
		t.why = "its physical type is not known"
	}
	return t
}

// annotate sets what the logical type, or the converted type of older writers, says of
// the physical one; it returns that in words, "" for none.
func annotate(e *pq.SchemaElement, t *fileType) string {
	if e.LogicalType.Value != nil {
		return annotateLogical(e, t)
	}
	if e.ConvertedType.Valid {
		return annotateConverted(e, t)
	}
	return ""
}

func annotateLogical(e *pq.SchemaElement, t *fileType) string {
	physical := e.Type.V
	as := func(k kind, of ...pq.Type) {
		for _, p := range of {
			if p == physical {
				t.kind = k
			}
		}
	}
	switch l := e.LogicalType.Value.(type) {
	case *pq.StringType:
		as(text, pq.ByteArray, pq.FixedLenByteArray)
	case *pq.EnumType:
		t.enum = true
		as(text, pq.ByteArray, pq.FixedLenByteArray)
	case *pq.JsonType:
		t.json = true
		as(text, pq.ByteArray, pq.FixedLenByteArray)
	case *pq.BsonType:
		as(octets, pq.ByteArray)
	case *pq.DateType:
		as(date, pq.Int32)
	case *pq.UUIDType, *pq.Float16Type:
		t.fixed(physical, int(e.TypeLength.V), l)
	case *pq.DecimalType:
		t.decimal(physical, int(l.Precision), int(l.Scale))
		return fmt.Sprintf("DECIMAL(%d,%d)", l.Precision, l.Scale)
	case *pq.IntType:
		t.integer(physical, int(l.BitWidth), !l.IsSigned)
		return fmt.Sprintf("INT(%d,%t)", l.BitWidth, l.IsSigned)
	case *pq.TimeType:
		t.time(timeOfDay, physical, unitOf(l.Unit), l.IsAdjustedToUTC)
		return fmt.Sprintf("TIME(%s,%t)", l.Unit.String(), l.IsAdjustedToUTC)
	case *pq.TimestampType:
		t.time(timestamp, physical, unitOf(l.Unit), l.IsAdjustedToUTC)
		return fmt.Sprintf("TIMESTAMP(%s,%t)", l.Unit.String(), l.IsAdjustedToUTC)
	case *pq.NullType:
		t.kind = nothing
	default:
		t.why = fmt.Sprintf("values of type %s are not shown", e.LogicalType.String())
	}
	return e.LogicalType.String()
}

// fixed is a type whose values all have one length.
func (t *fileType) fixed(physical pq.Type, size int, l pq.LogicalTypeValue) {
	_, isUUID := l.(*pq.UUIDType)
	switch {
	case physical != pq.FixedLenByteArray:
	case isUUID && size == 16:
		t.kind, t.size = uuid, size
	case !isUUID && size == 2:
		t.kind, t.bits = float, 16
	}
}

func annotateConverted(e *pq.SchemaElement, t *fileType) string {
	physical := e.Type.V
	bytesOrText := func(k kind) {
		if physical == pq.ByteArray || physical == pq.FixedLenByteArray {
			t.kind = k
		}
	}
	switch c := e.ConvertedType.V; c {
	case deprecated.UTF8:
		bytesOrText(text)
	case deprecated.Enum:
		t.enum = true
		bytesOrText(text)
	case deprecated.Json:
		t.json = true
		bytesOrText(text)
	case deprecated.Bson:
		bytesOrText(octets)
	case deprecated.Date:
		if physical == pq.Int32 {
			t.kind = date
		}
	case deprecated.Decimal:
		t.decimal(physical, int(e.Precision.V), int(e.Scale.V))
		return fmt.Sprintf("DECIMAL(%d,%d)", e.Precision.V, e.Scale.V)
	case deprecated.TimeMillis:
		t.time(timeOfDay, physical, millis, true)
	case deprecated.TimeMicros:
		t.time(timeOfDay, physical, micros, true)
	case deprecated.TimestampMillis:
		t.time(timestamp, physical, millis, true)
	case deprecated.TimestampMicros:
		t.time(timestamp, physical, micros, true)
	case deprecated.Interval:
		if physical == pq.FixedLenByteArray && e.TypeLength.V == 12 {
			t.kind = interval
		}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		t.integer(physical, 8<<(c-deprecated.Uint8), true)
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		t.integer(physical, 8<<(c-deprecated.Int8), false)
	}
	return convertedName(e.ConvertedType.V)
}

// decimal: a scale that is no scale, or digits that a physical type has no room for, are
// no decimal.
func (t *fileType) decimal(physical pq.Type, precision, scale int) {
	const most = 10000 // digits
	switch physical {
	case pq.Int32, pq.Int64, pq.ByteArray, pq.FixedLenByteArray:
		if precision > 0 && precision <= most && scale >= 0 && scale <= precision {
			t.kind, t.precision, t.scale = decimal, precision, scale
		}
	}
}

func (t *fileType) integer(physical pq.Type, bits int, unsigned bool) {
	switch {
	case physical == pq.Int32 && (bits == 8 || bits == 16 || bits == 32), physical == pq.Int64 && bits == 64:
		t.kind, t.bits, t.unsigned = integer, bits, unsigned
	}
}

func (t *fileType) time(k kind, physical pq.Type, u unit, utc bool) {
	short := k == timeOfDay && u == millis
	if u != seconds && (short && physical == pq.Int32 || !short && physical == pq.Int64) {
		t.kind, t.unit, t.utc = k, u, utc
	}
}

// unitOf is seconds, which Parquet has not, for a unit that is not known.
func unitOf(u pq.TimeUnit) unit {
	switch u.Value.(type) {
	case *pq.MilliSeconds:
		return millis
	case *pq.MicroSeconds:
		return micros
	case *pq.NanoSeconds:
		return nanos
	}
	return seconds
}

// convertedName is the name of a converted type.
func convertedName(c deprecated.ConvertedType) string {
	names := [...]string{
		"UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
		"TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32", "INT_64",
		"JSON", "BSON", "INTERVAL",
	}
	if c >= 0 && int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("converted type %d", c)
}

// shorten cuts a type's words: each level of a tree repeats those below it.
func shorten(words string) string {
	const most = 200
	if len(words) > most {
		return strings.ToValidUTF8(words[:most], "") + "…"
	}
	return words
}
