package catalogview

import (
	"context"
	"errors"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// Rows is what the catalog says of the rows of a file.
type Rows struct {
	Format  string         // by the file's partition (rule 57); "": the entry does not tell
	Columns []table.Column // without the keys; nil: only the file tells
	Keys    []KeyValue     // one a partition key, in their order
	Flat    bool           // nested columns are not for this table's rows (rule 47)
}

// KeyValue is a partition key with the value that a path gives it (rule 35).
type KeyValue struct {
	table.Column

	Value string // dates as YYYY-MM-DD, integers in digits, all else as in the path
	Null  bool
}

// HasRows says that the format of a file is one whose rows can be shown: it is known
// from the file alone where the catalog does not tell.
func (r Rows) HasRows() bool { return r.Format == "parquet" || r.Format == "avro" || r.Format == "" }

// Rows says what is known of the rows of the file at a path, which may be none. Nothing
// is asked of the store, and of the catalog no more than a look-up of the path does.
// ErrNotExist where no data lies, for hidden names too; a [*VerdictError] where what the
// entry asks of a reader is not known (rule 47), or the path has a value that is none of
// its key's type (rule 45).
func (v *View) Rows(ctx context.Context, path string) (Rows, error) {
	comps, err := split(path)
	if err != nil {
		return Rows{}, err
	}
	if len(comps) < 3 {
		return Rows{}, notExist(path)
	}
	b, err := v.below(ctx, comps)
	if err != nil {
		return Rows{}, err
	}
	if b.hidden() {
		return Rows{}, notExist(path)
	}
	t := b.table
	r := Rows{Format: b.format(), Flat: t.Strict}
	if t.Kind != table.Hive && t.Kind != table.FormatTable {
		return r, nil // its own metadata has schema and values
	}
	if t.Strict && !t.Writable {
		return Rows{}, &VerdictError{Table: b.id(), Class: table.ClassBroken, Reason: "its rows are not shown: " + t.Reason}
	}
	if r.Keys, err = b.keyValues(); err != nil {
		return Rows{}, err
	}
	if !t.PlaceholderColumns() {
		r.Columns = withoutKeys(t)
	}
	return r, nil
}

// keyValues are the keys with their values by the path; NULL is the value of those below
// which the file does not lie.
func (b below) keyValues() ([]KeyValue, error) {
	var keys []KeyValue
	dirs := b.comps[:len(b.comps)-1]
	for i, c := range b.table.Keys {
		k := KeyValue{Column: c, Null: true}
		if i < len(dirs) {
			p, err := b.table.ParsePartition(dirs[i], i)
			switch {
			case errors.Is(err, table.ErrNotPartition):
				dirs = nil
			case err != nil:
				return nil, &VerdictError{
					Table: b.id() + "/" + strings.Join(b.comps[:i+1], "/"), Class: table.ClassBroken, Reason: err.Error(), Err: err,
				}
			default:
				k.Value, k.Null = b.table.KeyText(p, i), p.Null
			}
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// withoutKeys are a table's columns but its partition keys; nil if there are none.
func withoutKeys(t *table.Table) []table.Column {
	keys := make(map[string]bool, len(t.Keys))
	for _, k := range t.Keys {
		keys[strings.ToLower(k.Name)] = true
	}
	var columns []table.Column
	for _, c := range t.Columns {
		if !keys[strings.ToLower(c.Name)] {
			columns = append(columns, c)
		}
	}
	return columns
}
