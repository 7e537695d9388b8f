package table

// dialect is the catalog that an entry comes from. Both hold the same fields
// (rule 41); all that is read or judged differently is said here.
type dialect int

const (
	manifestDialect dialect = iota
	glueDialect
)

// field spells a field that is named in the manifests' snake_case; dots separate
// fields. Glue has the same names in PascalCase.
func (d dialect) field(snake string) string {
	if d == manifestDialect {
		return snake
	}
	b := make([]byte, 0, len(snake))
	upper := true
	for i := range len(snake) {
		c := snake[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = c == '.'
		b = append(b, c)
	}
	return string(b)
}

// absent says that a field's value is the same as none. Emulators of Glue write
// empty values for what they do not have.
func (d dialect) absent(v any) bool {
	if d == manifestDialect {
		return v == nil
	}
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// refusesUnknown says that what an entry asks of whoever renders rows (an unknown
// SerDe or property of one, nested columns, projection) makes the table read-only:
// rule 47. In Glue these are ordinary, and raw files are what is written.
func (d dialect) refusesUnknown() bool { return d == manifestDialect }

// formatOfUnknownSerde says that the input format decides where the SerDe class is
// not known. In Glue nothing does then, and the files' first bytes tell (rule 60).
func (d dialect) formatOfUnknownSerde() bool { return d == manifestDialect }

// bucketed says that the table has buckets. Writers to Glue leave a number or
// columns behind that mean nothing alone.
func (d dialect) bucketed(buckets int64, columns int) bool {
	if d == manifestDialect {
		return buckets > 0 || columns > 0
	}
	return buckets > 0 && columns > 0
}

// sparkColumns says that columns and keys are looked for in Spark's parameters
// (rules 6, 7 and 9).
func (d dialect) sparkColumns() bool { return d == glueDialect }

// holdsPartitions says that the catalog can hold partitions (rule 54: manifests can not).
func (d dialect) holdsPartitions() bool { return d == glueDialect }

// needsProvider says that other readers of the catalog refuse a table without a
// data source provider (rule 11).
func (d dialect) needsProvider() bool { return d == glueDialect }
