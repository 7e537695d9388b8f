package fs

import (
	"context"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
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
	text, err := f.SchemaSQL(f.located(ctx, dir, n.Table))
	return []byte(text), err
}

// located is t with the whole location of a table that has one relative to its catalog,
// as far as that may be used.
func (f *FS) located(ctx context.Context, dir string, t *table.Table) *table.Table {
	if strings.Contains(t.Location, "://") {
		return t
	}
	n, err := f.View.Lookup(ctx, dir)
	if at := uri(n.Location()); err == nil && at != "" {
		c := *t
		c.Location = at
		return &c
	}
	return t
}
