package table

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

const schemaKey = "spark.sql.sources.schema"

// sparkSchema is the schema that Spark keeps in an entry's parameters.
type sparkSchema struct {
	columns []Column
	byName  map[string]Column
}

// byName finds columns by their names in lower case, the first of equal ones. An entry
// may have so many that looking through them for each key would never end.
func byName(columns []Column) map[string]Column {
	m := make(map[string]Column, len(columns))
	for _, c := range columns {
		lower := strings.ToLower(c.Name)
		if _, twice := m[lower]; !twice {
			m[lower] = c
		}
	}
	return m
}

// readSchema reads it, whole or in parts (rule 5); nil for none, which is no error
// (rule 7). Each error names the parameter.
func readSchema(parameters map[string]string) (*sparkSchema, error) {
	text, parts, err := joinSchema(parameters)
	if err != nil || text == "" {
		return nil, err
	}
	what := schemaKey
	if parts > 0 {
		what = fmt.Sprintf("%s.part.0 to %d", schemaKey, parts-1)
	}
	tree, err := parseLoose([]byte(text), maxSchemaDepth)
	if err != nil {
		return nil, fmt.Errorf("parameter %s is no JSON schema: %w", what, err)
	}
	root := node{v: tree}
	kind, err := root.text("type")
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", what, err)
	}
	if kind != "struct" {
		return nil, fmt.Errorf("parameter %s is of type %.40q, not a struct", what, kind)
	}
	columns, err := schemaColumns(root)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", what, err)
	}
	return &sparkSchema{columns, byName(columns)}, nil
}

// joinSchema returns the schema's text, and of how many parts it was joined.
func joinSchema(parameters map[string]string) (text string, count int, err error) {
	if s, ok := parameters[schemaKey]; ok {
		return s, 0, nil
	}
	parts, err := numbered(parameters, schemaKey+".numParts", schemaKey+".part.")
	return strings.Join(parts, ""), len(parts), err
}

// partColumns returns the names of the partition columns that Spark keeps (rule 6).
func partColumns(parameters map[string]string) ([]string, error) {
	return numbered(parameters, schemaKey+".numPartCols", schemaKey+".partCol.")
}

// numbered returns the values of the parameters prefix0, prefix1 …, of which there
// must be as many as the parameter count says.
func numbered(parameters map[string]string, count, prefix string) ([]string, error) {
	there := 0
	for k := range parameters {
		if strings.HasPrefix(k, prefix) {
			there++
		}
	}
	text, ok := parameters[count]
	if !ok {
		if there > 0 {
			return nil, fmt.Errorf("parameter %s is missing beside its parts", count)
		}
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("parameter %s is %.40q, not a count", count, text)
	}
	var values []string
	for i := range n { // ends at the first that is missing
		v, ok := parameters[prefix+strconv.Itoa(i)]
		if !ok {
			return nil, fmt.Errorf("parameter %s%d is missing of %d parts", prefix, i, n)
		}
		values = append(values, v)
	}
	if there != n {
		return nil, fmt.Errorf("parameter %s is %d, but there are %d parts", count, n, there)
	}
	return values, nil
}

// has says that the schema has a column, without case. Without a schema none is missing.
func (s *sparkSchema) has(name string) bool {
	if s == nil {
		return true
	}
	_, ok := s.byName[strings.ToLower(name)]
	return ok
}

// settleColumns takes columns and keys from Spark's parameters where they are the
// truth (rules 6, 7, 9): the columns of a data source table, and keys that the entry
// does not have.
func (e *entry) settleColumns(schema *sparkSchema) error {
	if !e.dialect.sparkColumns() {
		return nil
	}
	partCols, err := partColumns(e.Parameters)
	if err != nil {
		return err
	}
	for i, name := range partCols {
		if !schema.has(name) && e.Kind != Delta {
			return fmt.Errorf("partition column %.255q (parameter %s.partCol.%d) is not in %s", name, schemaKey, i, schemaKey)
		}
	}
	if len(e.Keys) == 0 {
		e.Keys = e.sparkKeys(schema, partCols)
	}
	if err = e.checkKeys(); err != nil || e.provider() == "" {
		return err
	}
	switch {
	case schema != nil && e.Kind == Delta:
		e.Columns = schema.columns
	case schema != nil:
		e.Columns = schema.partitionsLast(e.Keys, partCols)
	case e.PlaceholderColumns():
		e.Columns = nil
	}
	return nil
}

// sparkKeys makes keys of partition columns. Where neither schema nor columns tell a
// type it is string.
func (e *entry) sparkKeys(schema *sparkSchema, partCols []string) []Column {
	known := byName(e.Columns)
	if schema != nil {
		maps.Copy(known, schema.byName)
	}
	keys := make([]Column, 0, len(partCols))
	for _, name := range partCols {
		c, ok := known[strings.ToLower(name)]
		if !ok {
			c.Type = "string"
		}
		keys = append(keys, Column{Name: name, Type: c.Type, Comment: c.Comment})
	}
	return keys
}

// partitionsLast orders columns as Spark restores them: data columns, then the
// partition columns in the order of partCols, or of the keys if there are none.
func (s *sparkSchema) partitionsLast(keys []Column, partCols []string) []Column {
	if len(partCols) == 0 {
		for _, k := range keys {
			partCols = append(partCols, k.Name)
		}
	}
	last := make(map[string]bool, len(partCols))
	for _, name := range partCols {
		last[strings.ToLower(name)] = true
	}
	out := make([]Column, 0, len(s.columns))
	for _, c := range s.columns {
		if !last[strings.ToLower(c.Name)] {
			out = append(out, c)
		}
	}
	for _, name := range partCols {
		if c, ok := s.byName[strings.ToLower(name)]; ok {
			out = append(out, c)
		}
	}
	return out
}
