package render

import (
	"fmt"
	"strings"
)

// Bounds of what a schema expands to: types that name one another twice double at each
// level.
const (
	maxAvroTypes   = 200_000
	maxAvroNumber  = 1000 // precision of a decimal
	maxDeclaration = 200  // of a type, for messages
)

// avroTypes makes the types of a file's columns of a schema's.
type avroTypes struct{ made int }

// columns are the fields of the schema's record.
func (b *avroTypes) columns(t *avroType) []field {
	t.open = true // the row itself, which a column may hold
	defer func() { t.open = false }()
	return b.parts(t)
}

func (b *avroTypes) parts(t *avroType) []field {
	fields := make([]field, len(t.fields))
	for i, f := range t.fields {
		fields[i] = field{name: f.name, typ: b.file(f.typ), from: i}
	}
	return fields
}

// file is the type of a column or of a part of one.
func (b *avroTypes) file(t *avroType) *fileType {
	b.made++
	switch {
	case t.open:
		return &fileType{kind: unknown, why: fmt.Sprintf("its type is recursive: a %s may hold another %s", t.title(), t.title())}
	case b.made > maxAvroTypes:
		return &fileType{kind: unknown, why: fmt.Sprintf("the file's schema has more than %d types", maxAvroTypes)}
	}
	t.open = true
	defer func() { t.open = false }()
	f := &fileType{}
	switch t.kind {
	case avroRecord:
		f.kind, f.fields = record, b.parts(t)
	case avroArray:
		f.kind, f.fields = list, b.parts(t)
		f.fields[0].name = "element"
	case avroMap:
		f.kind = mapping
		f.fields = []field{{name: "key", typ: &fileType{kind: text, declared: "string"}}, {name: "value", typ: b.file(t.fields[0].typ), from: 1}}
	case avroUnion:
		f = b.union(t)
	default:
		f = t.scalar()
	}
	f.declared = cut(t.declaration(f), maxDeclaration)
	return f
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// union: of one type beside null it is that type, and so are two integers or two floats of
// different sizes, as engines take them.
func (b *avroTypes) union(t *avroType) *fileType {
	f := &fileType{kind: union, nullable: len(t.fields) != len(t.branches())}
	for _, i := range t.branches() {
		f.fields = append(f.fields, field{name: t.fields[i].name, typ: b.file(t.fields[i].typ), from: len(f.fields)})
	}
	switch len(f.fields) {
	case 0:
		return &fileType{kind: nothing, nullable: true}
	case 1:
		one := *f.fields[0].typ
		one.nullable = one.nullable || f.nullable
		return &one
	case 2:
		one, two := f.fields[0].typ, f.fields[1].typ
		if one.kind == two.kind && (one.kind == integer || one.kind == float) && one.bits != two.bits {
			return &fileType{kind: one.kind, bits: 64, nullable: f.nullable}
		}
	}
	return f
}

// branches are those of a union that are not null.
func (t *avroType) branches() []int {
	var out []int
	for i, f := range t.fields {
		if f.typ.kind != avroNull {
			out = append(out, i)
		}
	}
	return out
}

// scalar is the type of what is not nested, by its logical type if that fits.
func (t *avroType) scalar() *fileType {
	if f := t.logically(); f != nil {
		return f
	}
	t.logical = ""
	switch t.kind {
	case avroBoolean:
		return &fileType{kind: boolean}
	case avroInt:
		return &fileType{kind: integer, bits: 32}
	case avroLong:
		return &fileType{kind: integer, bits: 64}
	case avroFloat:
		return &fileType{kind: float, bits: 32}
	case avroDouble:
		return &fileType{kind: float, bits: 64}
	case avroString:
		return &fileType{kind: text}
	case avroEnum:
		return &fileType{kind: text, enum: true}
	case avroBin:
		return &fileType{kind: octets}
	case avroFixed:
		return &fileType{kind: octets, size: t.size}
	}
	return &fileType{kind: nothing, nullable: true}
}

// logically is nil for no logical type, one that is not known, or not one of t's kind:
// then the specification has it ignored.
func (t *avroType) logically() *fileType {
	switch t.kind {
	case avroInt:
		switch t.logical {
		case "date":
			return &fileType{kind: date}
		case "time-millis":
			return &fileType{kind: timeOfDay, unit: millis}
		}
	case avroLong:
		if t.logical == "time-micros" {
			return &fileType{kind: timeOfDay, unit: micros}
		}
		return t.moment()
	case avroString:
		if t.logical == "uuid" { // in its text form
			return &fileType{kind: text}
		}
	case avroBin, avroFixed:
		switch {
		case t.logical == "decimal" && t.precision > 0 && t.scale >= 0 && t.scale <= t.precision && t.precision <= maxAvroNumber:
			return &fileType{kind: decimal, precision: t.precision, scale: t.scale}
		case t.logical == "uuid" && t.kind == avroFixed && t.size == 16:
			return &fileType{kind: uuid}
		case t.logical == "duration" && t.kind == avroFixed && t.size == 12:
			return &fileType{kind: interval}
		}
	}
	return nil
}

func (t *avroType) moment() *fileType {
	name, local := strings.CutPrefix(t.logical, "local-")
	units := map[string]unit{"timestamp-millis": millis, "timestamp-micros": micros, "timestamp-nanos": nanos}
	u, ok := units[name]
	if !ok {
		return nil
	}
	return &fileType{kind: timestamp, unit: u, utc: !local}
}

// declaration is the type in the schema's words.
func (t *avroType) declaration(f *fileType) string {
	var b strings.Builder
	b.WriteString(string(t.kind))
	switch t.kind {
	case avroFixed:
		fmt.Fprintf(&b, "(%d)", t.size)
	case avroArray:
		b.WriteString(" of " + f.fields[0].typ.declared)
	case avroMap:
		b.WriteString(" of " + f.fields[1].typ.declared)
	case avroRecord:
		for i, part := range f.fields {
			if b.Len() > maxDeclaration {
				break
			}
			fmt.Fprintf(&b, "%s%s %s", [2]string{" {", ", "}[min(i, 1)], part.name, part.typ.declared)
		}
		b.WriteByte('}')
	case avroUnion:
		return t.unionDeclaration(f)
	}
	switch t.logical {
	case "":
	case "decimal":
		fmt.Fprintf(&b, " (decimal(%d,%d))", t.precision, t.scale)
	default:
		fmt.Fprintf(&b, " (%s)", t.logical)
	}
	return b.String()
}

// unionDeclaration of a nullable type is that type's.
func (t *avroType) unionDeclaration(f *fileType) string {
	if f.kind != union && f.declared != "" {
		return f.declared
	}
	var names []string
	for _, branch := range t.fields {
		names = append(names, branch.name)
	}
	return "union [" + cut(strings.Join(names, ", "), maxDeclaration) + "]"
}
