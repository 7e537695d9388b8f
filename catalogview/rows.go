package catalogview

import (
	"context"
	"errors"
	"fmt"
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

	Value string // as [table.Table.RowValue] spells it
	Null  bool
}

// HasRows says that the format of a file is one whose rows can be shown: it is known
// from the file alone where the catalog does not tell.
func (r Rows) HasRows() bool { return r.Format == "parquet" || r.Format == "avro" || r.Format == "" }

// Format is [Rows] with the format alone: of a table that only a listing told of, it is
// known without a request.
func (v *View) Format(ctx context.Context, path string) (Rows, error) {
	b, err := v.dataBelow(ctx, path)
	if err != nil {
		return Rows{}, err
	}
	return Rows{Format: b.format()}, nil
}

// dataBelow is below for a path that may be a file's: ErrNotExist where no data lies, for
// hidden names too.
func (v *View) dataBelow(ctx context.Context, path string) (below, error) {
	comps, err := split(path)
	if err != nil {
		return below{}, err
	}
	if len(comps) < 3 {
		return below{}, notExist(path)
	}
	b, err := v.below(ctx, comps)
	if err == nil && b.hidden() {
		err = notExist(path)
	}
	return b, err
}

// Rows says what is known of the rows of the file at a path, which may be none. Nothing
// is asked of the store, and of the catalog no more than a look-up of the path does, but
// for the columns of a table that only a listing told of: these are asked for, and kept.
// ErrNotExist where no data lies, for hidden names too; a [*VerdictError] where what the
// entry asks of a reader is not known (rule 47), or the path has a value that is none of
// its key's type (rule 45).
func (v *View) Rows(ctx context.Context, path string) (Rows, error) {
	b, err := v.dataBelow(ctx, path)
	if err != nil {
		return Rows{}, err
	}
	if b.table.Slimmed {
		if b.entry, err = v.wholeTable(ctx, b.table.Database, b.table.Name); err == nil {
			err = b.verdict()
		}
		if err != nil {
			return Rows{}, fmt.Errorf("columns of %q: %w", path, err)
		}
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
			if err == nil {
				k.Value, err = b.table.RowValue(dirs[i], p, i)
			}
			switch {
			case errors.Is(err, table.ErrNotPartition):
				dirs = nil
			case err != nil:
				return nil, &VerdictError{
					Table: b.id() + "/" + strings.Join(b.comps[:i+1], "/"), Class: table.ClassBroken, Reason: err.Error(), Err: err,
				}
			default:
				k.Null = p.Null
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
