package table

import (
	"fmt"
	"strconv"
	"strings"
)

// TypeKind is what a type is, named as Hive names it.
type TypeKind string

// The kinds of type. Interval, Void, Variant and Union have no columns in a file that
// could be matched with them; they are known so that an error can say what they are.
const (
	TypeBoolean   TypeKind = "boolean"
	TypeTinyint   TypeKind = "tinyint"
	TypeSmallint  TypeKind = "smallint"
	TypeInt       TypeKind = "int"
	TypeBigint    TypeKind = "bigint"
	TypeFloat     TypeKind = "float"
	TypeDouble    TypeKind = "double"
	TypeDecimal   TypeKind = "decimal"
	TypeString    TypeKind = "string"
	TypeVarchar   TypeKind = "varchar"
	TypeChar      TypeKind = "char"
	TypeBinary    TypeKind = "binary"
	TypeDate      TypeKind = "date"
	TypeTime      TypeKind = "time"
	TypeTimestamp TypeKind = "timestamp" // whose zone rule is the Table's engine's: Hive's is local, Spark's is UTC
	// TypeTimestampLocal is without a zone: Spark's timestamp_ntz, or "without time zone".
	TypeTimestampLocal TypeKind = "timestamp_ntz"
	// TypeTimestampZoned is a point in time: "with time zone", "with local time zone",
	// Spark's timestamp_ltz.
	TypeTimestampZoned TypeKind = "timestamp with local time zone"
	TypeInterval       TypeKind = "interval"
	TypeVoid           TypeKind = "void"
	TypeVariant        TypeKind = "variant"
	TypeArray          TypeKind = "array"
	TypeMap            TypeKind = "map"
	TypeStruct         TypeKind = "struct"
	TypeUnion          TypeKind = "uniontype"
)

// Type is a column's type, parsed.
type Type struct {
	Kind TypeKind
	// Size is the precision of a decimal, the length of a varchar or char, and the
	// fraction's digits of a time or timestamp, there -1 if the type does not say.
	Size int
	// Scale is a decimal's.
	Scale int
	// Fields are a struct's, and without names an array's element, a map's key and
	// value, and a union's branches, in order.
	Fields []TypeField
}

// TypeField is a part of a nested type. Name is as written, its quotes removed.
type TypeField struct {
	Name, Comment string
	Type          Type
	NotNull       bool
}

// Nested says that the type holds others.
func (t Type) Nested() bool {
	return t.Kind == TypeArray || t.Kind == TypeMap || t.Kind == TypeStruct || t.Kind == TypeUnion
}

// String is the type as Hive spells it, without comments; names are quoted that need it.
func (t Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t Type) write(b *strings.Builder) {
	b.WriteString(string(t.Kind))
	switch t.Kind {
	case TypeDecimal:
		fmt.Fprintf(b, "(%d,%d)", t.Size, t.Scale)
	case TypeVarchar, TypeChar:
		fmt.Fprintf(b, "(%d)", t.Size)
	case TypeTime, TypeTimestamp, TypeTimestampLocal:
		if t.Size >= 0 {
			fmt.Fprintf(b, "(%d)", t.Size)
		}
	case TypeArray, TypeMap, TypeStruct, TypeUnion:
		b.WriteByte('<')
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			if t.Kind == TypeStruct {
				b.WriteString(quoteField(f.Name))
				b.WriteByte(':')
			}
			f.Type.write(b)
		}
		b.WriteByte('>')
	}
}

// quoteField quotes a name that a type's text could not hold bare.
func quoteField(name string) string {
	if name != "" && !strings.ContainsAny(name, "`:,<>()' \t\r\n") {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Bounds of a type's text. The length is over Glue's own 131,072, for a schema in a
// table's parameters may be longer.
const (
	maxTypeDepth  = 64
	maxTypeLength = 1 << 20
)

// ParseType reads a type as Hive, Athena, Spark and Glue write it. The text is
// untrusted. An error quotes where it stops, and wraps nothing.
func ParseType(text string) (Type, error) {
	if len(text) > maxTypeLength {
		return Type{}, fmt.Errorf("type of %d bytes, over the limit of %d", len(text), maxTypeLength)
	}
	p := typeParser{text: text}
	t, err := p.parse(0)
	if err == nil && !p.end() {
		err = p.fail("more than a type")
	}
	if err != nil {
		return Type{}, fmt.Errorf("type %.100q: %w", text, err)
	}
	return t, nil
}

type typeParser struct {
	text string
	at   int
}

func (p *typeParser) fail(what string) error {
	return fmt.Errorf("%s at %.20q (byte %d)", what, p.text[p.at:], p.at)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (p *typeParser) space() {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *typeParser) end() bool {
	p.space()
	return p.at == len(p.text)
}

// take passes over the next character if it is c.
func (p *typeParser) take(c byte) bool {
	if !p.end() && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word returns the next word in lower case, "" if there is none.
func (p *typeParser) word() string {
	p.space()
	start := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		p.at++
	}
	return strings.ToLower(p.text[start:p.at])
}

// words passes over a sequence of words, all of them or none.
func (p *typeParser) words(want ...string) bool {
	start := p.at
	for _, w := range want {
		if p.word() != w {
			p.at = start
			return false
		}
	}
	return true
}

func (p *typeParser) parse(depth int) (Type, error) {
	if depth >= maxTypeDepth {
		return Type{}, p.fail(fmt.Sprintf("it nests deeper than %d", maxTypeDepth))
	}
	start := p.at
	name := p.word()
	switch kind := typeKind(name); kind {
	case TypeArray:
		return p.parts(kind, 1, 1, depth)
	case TypeMap:
		return p.parts(kind, 2, 2, depth)
	case TypeUnion:
		return p.parts(kind, 1, maxTypeLength, depth)
	case TypeStruct:
		return p.structure(depth)
	case TypeDecimal:
		return p.decimal()
	case TypeVarchar, TypeChar:
		return p.chars(kind)
	case TypeTime, TypeTimestamp, TypeTimestampLocal, TypeTimestampZoned:
		return p.timestamp(kind)
	case TypeInterval:
		return p.interval(), nil
	case "":
		p.at = start
		if name == "" {
			return Type{}, p.fail("no type")
		}
		return Type{}, p.fail("a type that is not known")
	default:
		if name == "double" {
			p.words("precision")
		}
		return Type{Kind: kind}, nil
	}
}

// typeKind is the kind of a type by its first word, "" if it is not known.
func typeKind(word string) TypeKind {
	switch word {
	case "byte":
		return TypeTinyint
	case "short":
		return TypeSmallint
	case "integer":
		return TypeInt
	case "long":
		return TypeBigint
	case "real":
		return TypeFloat
	case "bool":
		return TypeBoolean
	case "numeric", "dec":
		return TypeDecimal
	case "character":
		return TypeChar
	case "varbinary":
		return TypeBinary
	case "timestamp_ltz", "timestamptz":
		return TypeTimestampZoned
	case "null":
		return TypeVoid
	}
	switch kind := TypeKind(word); kind {
	case TypeBoolean, TypeTinyint, TypeSmallint, TypeInt, TypeBigint, TypeFloat, TypeDouble, TypeDecimal, TypeString,
		TypeVarchar, TypeChar, TypeBinary, TypeDate, TypeTime, TypeTimestamp, TypeTimestampLocal, TypeInterval,
		TypeVoid, TypeVariant, TypeArray, TypeMap, TypeStruct, TypeUnion:
		return kind
	}
	return ""
}

// sizes reads numbers in brackets; nil if there are none.
func (p *typeParser) sizes() ([]int, error) {
	if !p.take('(') {
		return nil, nil
	}
	var out []int
	for {
		p.space()
		start := p.at
		n, err := strconv.ParseUint(p.word(), 10, 31)
		if err != nil {
			p.at = start
			return nil, p.fail("no number")
		}
		out = append(out, int(n))
		if p.take(')') {
			return out, nil
		}
		if !p.take(',') || len(out) == 2 {
			return nil, p.fail("no closing bracket")
		}
	}
}

func (p *typeParser) decimal() (Type, error) {
	t := Type{Kind: TypeDecimal, Size: 10} // Hive's and Spark's
	sizes, err := p.sizes()
	if err != nil {
		return t, err
	}
	if len(sizes) > 0 {
		t.Size = sizes[0]
	}
	if len(sizes) > 1 {
		t.Scale = sizes[1]
	}
	if t.Size < 1 || t.Size > 38 || t.Scale > t.Size {
		return t, fmt.Errorf("decimal(%d,%d): a precision is 1 to 38, a scale no more than it", t.Size, t.Scale)
	}
	return t, nil
}

func (p *typeParser) chars(kind TypeKind) (Type, error) {
	if kind == TypeChar && p.words("varying") {
		kind = TypeVarchar
	}
	sizes, err := p.sizes()
	switch {
	case err != nil:
		return Type{}, err
	case len(sizes) == 0: // Trino's: a varchar of any length, a char of one
		if kind == TypeVarchar {
			return Type{Kind: TypeString}, nil
		}
		return Type{Kind: kind, Size: 1}, nil
	case len(sizes) > 1 || sizes[0] < 1:
		return Type{}, fmt.Errorf("%s has one length, of 1 or more", kind)
	}
	return Type{Kind: kind, Size: sizes[0]}, nil
}

func (p *typeParser) timestamp(kind TypeKind) (Type, error) {
	t := Type{Kind: kind, Size: -1}
	sizes, err := p.sizes()
	if err != nil {
		return t, err
	}
	if len(sizes) > 0 {
		t.Size = sizes[0]
	}
	if len(sizes) > 1 || t.Size > 12 {
		return t, fmt.Errorf("%s has one precision, of 0 to 12", kind)
	}
	switch {
	case p.words("without", "time", "zone"):
		if kind == TypeTimestamp {
			t.Kind = TypeTimestampLocal
		}
	case kind == TypeTimestamp && (p.words("with", "time", "zone") || p.words("with", "local", "time", "zone")):
		t.Kind = TypeTimestampZoned
	}
	return t, nil
}

// interval reads the units that Spark writes, "interval day to second", and keeps none.
func (p *typeParser) interval() Type {
	unit := func() bool {
		start := p.at
		switch p.word() {
		case "year", "month", "day", "hour", "minute", "second":
			return true
		}
		p.at = start
		return false
	}
	if unit() && p.words("to") {
		unit()
	}
	return Type{Kind: TypeInterval}
}

// parts reads the types between the angles of an array, a map or a union.
func (p *typeParser) parts(kind TypeKind, least, most, depth int) (Type, error) {
	t := Type{Kind: kind}
	if !p.take('<') {
		return t, p.fail(fmt.Sprintf("no < after %s", kind))
	}
	for {
		part, err := p.parse(depth + 1)
		if err != nil {
			return t, err
		}
		t.Fields = append(t.Fields, TypeField{Type: part})
		if p.take('>') {
			break
		}
		if !p.take(',') || len(t.Fields) == most {
			return t, p.fail("no closing >")
		}
	}
	if len(t.Fields) < least {
		return t, p.fail(fmt.Sprintf("%s of %d types, not %d", kind, len(t.Fields), least))
	}
	return t, nil
}

func (p *typeParser) structure(depth int) (Type, error) {
	t := Type{Kind: TypeStruct}
	if !p.take('<') {
		return t, p.fail("no < after struct")
	}
	if p.take('>') {
		return t, nil // Spark's empty one
	}
	for {
		f, err := p.field(depth)
		if err != nil {
			return t, err
		}
		t.Fields = append(t.Fields, f)
		if p.take('>') {
			return t, nil
		}
		if !p.take(',') {
			return t, p.fail("no closing >")
		}
	}
}

func (p *typeParser) field(depth int) (f TypeField, err error) {
	if f.Name, err = p.fieldName(); err != nil {
		return f, err
	}
	p.take(':')
	if f.Type, err = p.parse(depth + 1); err != nil {
		return f, err
	}
	f.NotNull = p.words("not", "null")
	if !p.words("comment") {
		return f, nil
	}
	f.Comment, err = p.quoted()
	return f, err
}

// fieldName reads a name up to its colon, for Hive and Spark write bare whatever the
// name holds; up to a space where the type comes before any colon, as in Spark's
// "struct<a struct<b:int>>".
func (p *typeParser) fieldName() (string, error) {
	p.space()
	rest := p.text[p.at:]
	if strings.HasPrefix(rest, "`") {
		return p.backquoted()
	}
	end := strings.IndexAny(rest, ":,<>('")
	if end < 0 || rest[end] != ':' {
		end = strings.IndexAny(rest, " \t\r\n,<>('")
	}
	if end <= 0 || !isSpace(rest[end]) && rest[end] != ':' {
		return "", p.fail("no name and type of a field")
	}
	p.at += end
	return strings.TrimRight(rest[:end], " \t\r\n"), nil
}

// backquoted reads a name in backquotes, in which two stand for one.
func (p *typeParser) backquoted() (string, error) {
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		if c := p.text[p.at]; c != '`' {
			b.WriteByte(c)
			continue
		}
		p.at++
		if p.at == len(p.text) || p.text[p.at] != '`' {
			return b.String(), nil
		}
		b.WriteByte('`')
	}
	p.at = start
	return "", p.fail("a name without its closing quote")
}

// quoted reads a string literal: a backslash takes the next character as it is, and
// two quotes stand for one.
func (p *typeParser) quoted() (string, error) {
	p.space()
	start := p.at
	if start == len(p.text) || p.text[start] != '\'' && p.text[start] != '"' {
		return "", p.fail("no text of a comment")
	}
	quote := p.text[start]
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			c = p.text[p.at]
		case c == quote && p.at+1 < len(p.text) && p.text[p.at+1] == quote:
			p.at++
		case c == quote:
			p.at++
			return b.String(), nil
		}
		b.WriteByte(c)
	}
	p.at = start
	return "", p.fail("a comment without its closing quote")
}
