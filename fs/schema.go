package fs

import (
	"context"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// schemaName is the control file of a table that says in SQL how it is made.
const schemaName = "schema.sql"

// hasSchema says that the directory dir is one of a table, which has a schema.sql.
func (f *FS) hasSchema(dir string) bool { return f.SchemaSQL != nil && strings.Count(dir, "/") == 1 }

// schemaSQL makes schema.sql of a table, by its entry as the catalog has it now.
func (f *FS) schemaSQL(ctx context.Context, dir string) ([]byte, error) {
	if !f.hasSchema(dir) {
		return nil, objectstore.ErrNotExist
	}
	_, n, err := f.View.EntryJSON(ctx, dir) // a look-up's may be without columns
	if err != nil {
		return nil, err
	}
	if n.Table == nil || !n.Table.HasDirectory() {
		return nil, objectstore.ErrNotExist
	}
	text, err := f.SchemaSQL(n.Table)
	return []byte(text), err
}
