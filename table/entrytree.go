package table

// ParseObject reads one JSON object strictly: UTF-8 without a byte order mark, no key
// twice in an object, nested 64 deep at most, nothing behind it. Numbers are
// json.Number, as written. The error says what is wrong and where.
func ParseObject(raw []byte) (map[string]any, error) { return parseTree(raw) }

// DataSource is the Spark data source of the table, in lower case; "" for none, and
// for hive (rule 8).
func (t *Table) DataSource() string { return t.provider() }
