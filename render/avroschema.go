package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// avroKind is what a value is in Avro's binary encoding.
type avroKind string

const (
	avroNull    avroKind = "null"
	avroBoolean avroKind = "boolean"
	avroInt     avroKind = "int"
	avroLong    avroKind = "long"
	avroFloat   avroKind = "float"
	avroDouble  avroKind = "double"
	avroString  avroKind = "string"
	avroBin     avroKind = "bytes"
	avroRecord  avroKind = "record"
	avroEnum    avroKind = "enum"
	avroArray   avroKind = "array"
	avroMap     avroKind = "map"
	avroUnion   avroKind = "union"
	avroFixed   avroKind = "fixed"
)

// avroType is a type of a file's schema. A named type is there once, so a recursive schema
// is a graph with cycles.
type avroType struct {
	kind             avroKind
	name             string // of record, enum and fixed, with its namespace
	logical          string
	precision, scale int
	size             int         // of fixed
	fields           []avroField // of record; branches of union; element of array; value of map
	symbols          []string
	open             bool // a walk is within it
}

type avroField struct {
	name string
	typ  *avroType
}

// Bounds of a schema. What one of a few KiB expands to is bounded where it is expanded.
const maxAvroDepth = 64

// parseAvroSchema reads a file's schema as readers of the file's own rows must take it:
// what only matters to another reader's schema is not looked at (defaults, aliases), names
// may hold anything, and a logical type that does not fit is none.
func parseAvroSchema(text []byte) (*avroType, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("its schema is no JSON: %w", err)
	}
	p := avroSchemaParser{named: map[string]*avroType{}}
	t, err := p.parse(tree, "", 0)
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	return t, nil
}

type avroSchemaParser struct{ named map[string]*avroType }

func (p *avroSchemaParser) parse(tree any, namespace string, depth int) (*avroType, error) {
	if depth > maxAvroDepth {
		return nil, fmt.Errorf("it nests deeper than %d", maxAvroDepth)
	}
	switch v := tree.(type) {
	case string:
		return p.byName(v, namespace)
	case []any:
		return p.union(v, namespace, depth)
	case map[string]any:
		return p.object(v, namespace, depth)
	}
	return nil, fmt.Errorf("%.40v is no type", tree)
}

// byName is the type of a name: a primitive one, or one that was defined before.
func (p *avroSchemaParser) byName(name, namespace string) (*avroType, error) {
	switch kind := avroKind(name); kind {
	case avroNull, avroBoolean, avroInt, avroLong, avroFloat, avroDouble, avroString, avroBin:
		return &avroType{kind: kind}, nil
	}
	if t := p.named[fullName(name, namespace)]; t != nil {
		return t, nil
	}
	if t := p.named[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no type %.100q", name)
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (p *avroSchemaParser) union(branches []any, namespace string, depth int) (*avroType, error) {
	t := &avroType{kind: avroUnion}
	for _, b := range branches {
		branch, err := p.parse(b, namespace, depth+1)
		if err != nil {
			return nil, err
		}
		t.fields = append(t.fields, avroField{name: branch.title(), typ: branch})
	}
	return t, nil
}

// title names a type in few words: a branch of a union.
func (t *avroType) title() string {
	if t.name != "" {
		return t.name
	}
	return string(t.kind)
}

func (p *avroSchemaParser) object(o map[string]any, namespace string, depth int) (t *avroType, err error) {
	name, ok := o["type"].(string)
	if !ok { // {"type": {"type": …}}
		if o["type"] == nil {
			return nil, errors.New("a type without its \"type\"")
		}
		return p.parse(o["type"], namespace, depth+1)
	}
	if name == "error" {
		name = "record"
	}
	switch kind := avroKind(name); kind {
	case avroRecord, avroEnum, avroFixed:
		t, err = p.define(kind, o, namespace, depth)
	case avroArray:
		t, err = p.items(kind, o["items"], namespace, depth)
	case avroMap:
		t, err = p.items(kind, o["values"], namespace, depth)
	default:
		t, err = p.byName(name, namespace)
		if err != nil || p.named[t.name] == t { // defined elsewhere, with what it is there
			return t, err
		}
	}
	if err != nil {
		return nil, err
	}
	t.logical, _ = o["logicalType"].(string)
	t.precision, t.scale = avroNumber(o["precision"]), avroNumber(o["scale"])
	return t, nil
}

// avroNumber is a whole number of a schema, or -1; 0 if it is not there.
func avroNumber(v any) int {
	switch n := v.(type) {
	case nil:
		return 0
	case float64:
		if n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n) {
			return int(n)
		}
	}
	return -1
}

func (p *avroSchemaParser) items(kind avroKind, of any, namespace string, depth int) (*avroType, error) {
	item, err := p.parse(of, namespace, depth+1)
	return &avroType{kind: kind, fields: []avroField{{typ: item}}}, err
}

func (p *avroSchemaParser) define(kind avroKind, o map[string]any, namespace string, depth int) (*avroType, error) {
	name, _ := o["name"].(string) // polars has a record of no name
	if space, ok := o["namespace"].(string); ok && !strings.Contains(name, ".") {
		namespace = space
	}
	t := &avroType{kind: kind, name: fullName(name, namespace)}
	if i := strings.LastIndexByte(t.name, '.'); i >= 0 {
		namespace = t.name[:i]
	}
	p.named[t.name] = t // before its fields, which may be of it
	switch kind {
	case avroFixed:
		if t.size = avroNumber(o["size"]); t.size < 0 || o["size"] == nil {
			return nil, fmt.Errorf("%.100q has no size", t.name)
		}
		return t, nil
	case avroEnum:
		return t, t.readSymbols(o["symbols"])
	}
	fields, ok := o["fields"].([]any)
	if !ok {
		return nil, fmt.Errorf("record %.100q has no fields", t.name)
	}
	for _, f := range fields {
		f, _ := f.(map[string]any)
		name, ok := f["name"].(string)
		if !ok {
			return nil, fmt.Errorf("a field of record %.100q has no name", t.name)
		}
		typ, err := p.parse(f["type"], namespace, depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %.100q: %w", name, err)
		}
		t.fields = append(t.fields, avroField{name, typ})
	}
	return t, nil
}

func (t *avroType) readSymbols(list any) error {
	symbols, _ := list.([]any)
	for _, s := range symbols {
		text, ok := s.(string)
		if !ok {
			return fmt.Errorf("a symbol of enum %.100q is no text", t.name)
		}
		t.symbols = append(t.symbols, text)
	}
	return nil
}
