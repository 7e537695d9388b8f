package table

import (
	"fmt"
	"strings"
)

// schemaColumns reads the fields of a Spark struct type in JSON. Types are written
// as Spark's catalogString does, which is Hive's spelling: integer becomes int.
func schemaColumns(root node) ([]Column, error) {
	fields, err := root.list("fields")
	if err != nil {
		return nil, err
	}
	columns := make([]Column, 0, len(fields))
	for _, f := range fields {
		c, err := schemaColumn(f)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func schemaColumn(field node) (c Column, err error) {
	if _, ok := field.v.(map[string]any); !ok {
		return c, field.mismatch("an object")
	}
	if c.Name, err = field.text("name"); err != nil {
		return c, err
	}
	if c.Name == "" {
		return c, fmt.Errorf("%s.name is missing", field.path)
	}
	typ, err := field.child("type")
	if err != nil {
		return c, err
	}
	var b strings.Builder
	if err = writeType(&b, typ); err != nil {
		return c, err
	}
	c.Type = b.String()
	nullable, ok := field.v.(map[string]any)["nullable"].(bool)
	c.NotNull = ok && !nullable
	// Comments and the length of a varchar are in a metadata that anyone may write
	// to: what is not of the right type there is passed over.
	metadata, _ := field.v.(map[string]any)["metadata"].(map[string]any)
	c.Comment, _ = metadata["comment"].(string)
	if s, _ := metadata["__CHAR_VARCHAR_TYPE_STRING"].(string); s != "" {
		c.Type = s
	}
	return c, nil
}

// writeType writes a type in JSON, which nests no deeper than its text (maxSchemaDepth).
func writeType(b *strings.Builder, n node) error {
	switch v := n.v.(type) {
	case nil: // a field without a type is one that nothing here needs
		return nil
	case string:
		b.WriteString(simpleType(v))
		return nil
	case map[string]any:
		return writeNested(b, n)
	}
	return n.mismatch("a type")
}

func simpleType(spark string) string {
	switch spark {
	case "byte":
		return "tinyint"
	case "short":
		return "smallint"
	case "integer":
		return "int"
	case "long":
		return "bigint"
	}
	return spark
}

func writeNested(b *strings.Builder, n node) error {
	kind, err := n.text("type")
	if err != nil {
		return err
	}
	switch kind {
	case "array":
		return writeParts(b, n, "array<", "elementType")
	case "map":
		return writeParts(b, n, "map<", "keyType", "valueType")
	case "struct":
		return writeStruct(b, n)
	case "udt":
		c, err := n.child("sqlType")
		if err != nil {
			return err
		}
		return writeType(b, c)
	}
	return fmt.Errorf("%s.type is %.40q; a type is a name, array, map, struct or udt", n.path, kind)
}

func writeParts(b *strings.Builder, n node, open string, parts ...string) error {
	b.WriteString(open)
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		c, err := n.child(part)
		if err != nil {
			return err
		}
		if err = writeType(b, c); err != nil {
			return err
		}
	}
	b.WriteByte('>')
	return nil
}

func writeStruct(b *strings.Builder, n node) error {
	fields, err := n.list("fields")
	if err != nil {
		return err
	}
	b.WriteString("struct<")
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := f.text("name")
		if err != nil {
			return err
		}
		b.WriteString(quoteField(name))
		b.WriteByte(':')
		c, err := f.child("type")
		if err != nil {
			return err
		}
		if err = writeType(b, c); err != nil {
			return err
		}
	}
	b.WriteByte('>')
	return nil
}
