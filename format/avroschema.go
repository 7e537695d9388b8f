package format

import (
	"encoding/json"
	"strings"
)

// avroSchemaBytes is how long a schema may be to be understood, which takes some ten
// times its length in memory; a longer one is JSON, and that is all that is asked of it.
const avroSchemaBytes = 1 << 20

// avroTypes knows the types that a schema has named so far, without their namespaces.
type avroTypes map[string]bool

// schemaFlaw says what is wrong with a schema; "" if nothing is.
func schemaFlaw(text []byte) string {
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		return "the schema is not JSON: " + err.Error()
	}
	return avroTypes{}.flaw(schema)
}

func (t avroTypes) flaw(schema any) string {
	switch s := schema.(type) {
	case string:
		return t.flawOfName(s)
	case []any: // a union
		return t.flawOfAll(s)
	case map[string]any:
		name, isName := s["type"].(string)
		if !isName {
			if s["type"] == nil {
				return "a part of the schema has no type"
			}
			return t.flaw(s["type"])
		}
		return t.flawOfObject(name, s)
	}
	return "a part of the schema is no type"
}

func (t avroTypes) flawOfAll(schemas []any) string {
	for _, s := range schemas {
		if flaw := t.flaw(s); flaw != "" {
			return flaw
		}
	}
	return ""
}

func (t avroTypes) flawOfName(name string) string {
	switch name {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return ""
	}
	if !t[name[strings.LastIndexByte(name, '.')+1:]] {
		return "the schema names a type that there is not"
	}
	return ""
}

func (t avroTypes) flawOfObject(kind string, s map[string]any) string {
	switch kind {
	case "array":
		return t.flaw(s["items"])
	case "map":
		return t.flaw(s["values"])
	case "record", "error", "enum", "fixed":
		name, ok := s["name"].(string)
		if !ok {
			return "a type of the schema has no name"
		}
		t[name[strings.LastIndexByte(name, '.')+1:]] = true
	default:
		return t.flawOfName(kind)
	}
	switch kind {
	case "enum":
		if _, ok := s["symbols"].([]any); !ok {
			return "an enumeration of the schema has no symbols"
		}
	case "fixed":
		if _, ok := s["size"].(float64); !ok {
			return "a type of the schema has no size"
		}
	default:
		fields, ok := s["fields"].([]any)
		if !ok {
			return "a record of the schema has no fields"
		}
		return t.flawOfFields(fields)
	}
	return ""
}

func (t avroTypes) flawOfFields(fields []any) string {
	for _, f := range fields {
		field, _ := f.(map[string]any)
		if _, ok := field["name"].(string); !ok {
			return "a field of the schema has no name"
		}
		if flaw := t.flaw(field["type"]); flaw != "" {
			return flaw
		}
	}
	return ""
}
