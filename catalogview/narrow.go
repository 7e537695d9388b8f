package catalogview

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"path"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// narrow is a Source of which only some names are seen.
type narrow struct {
	Source            // asked as it is for partitions: those of a table that was seen
	databases, tables []string
}

// Narrow returns a Source that has those databases and tables of src whose names
// match one of the patterns (the syntax of path.Match; of none: all). What does not
// match is objectstore.ErrNotExist and not listed, and src is not asked for it.
// Where a resource link leads is not narrowed. The patterns are not to be changed;
// one that is malformed is an error that wraps path.ErrBadPattern.
func Narrow(src Source, databases, tables []string) (Source, error) {
	for _, patterns := range [][]string{databases, tables} {
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
		}
	}
	return &narrow{Source: src, databases: databases, tables: tables}, nil
}

// matchesAny says that a name matches one of the patterns, which are well-formed.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return len(patterns) == 0
}

// warnUnmatched tells once that patterns leave no database, which is a root without
// names: more often a word misspelt than what was meant.
func (v *View) warnUnmatched(n *narrow) {
	if len(n.databases) > 0 && v.firstOf("", "unmatched") {
		v.o.Log.Warn("no database of the catalog matches: the mount is empty", slog.Any("patterns", n.databases))
	}
}

// Databases is [Source]'s.
func (n *narrow) Databases(ctx context.Context) iter.Seq2[Database, error] {
	return filter(n.Source.Databases(ctx), func(d Database) bool { return matchesAny(n.databases, d.Name) })
}

// Database is [Source]'s.
func (n *narrow) Database(ctx context.Context, name string) (Database, error) {
	if !matchesAny(n.databases, name) {
		return Database{}, fmt.Errorf("database %q is not among those to be seen: %w", name, objectstore.ErrNotExist)
	}
	return n.Source.Database(ctx, name)
}

// Tables is [Source]'s.
func (n *narrow) Tables(ctx context.Context, database string) iter.Seq2[TableInfo, error] {
	if !matchesAny(n.databases, database) {
		return func(func(TableInfo, error) bool) {}
	}
	return filter(n.Source.Tables(ctx, database), func(t TableInfo) bool { return matchesAny(n.tables, t.Name) })
}

// Table is [Source]'s.
func (n *narrow) Table(ctx context.Context, database, name, known string) (*table.Table, Raw, error) {
	if !matchesAny(n.databases, database) || !matchesAny(n.tables, name) {
		return nil, Raw{}, fmt.Errorf("table %q is not among those to be seen: %w", database+"/"+name, objectstore.ErrNotExist)
	}
	return n.Source.Table(ctx, database, name, known)
}

// PutTable is [Source]'s. Who wrote an entry that is not to be seen would not find it.
func (n *narrow) PutTable(ctx context.Context, database, name string, w EntryWrite) (*table.Table, Raw, error) {
	if !matchesAny(n.databases, database) || !matchesAny(n.tables, name) {
		return nil, Raw{}, fmt.Errorf("table %q is not among those to be seen: %w", database+"/"+name, objectstore.ErrPermission)
	}
	return n.Source.PutTable(ctx, database, name, w)
}

// DeleteTable is [Source]'s.
func (n *narrow) DeleteTable(ctx context.Context, database, name, base string) error {
	if !matchesAny(n.databases, database) || !matchesAny(n.tables, name) {
		return fmt.Errorf("table %q is not among those to be seen: %w", database+"/"+name, objectstore.ErrNotExist)
	}
	return n.Source.DeleteTable(ctx, database, name, base)
}

// filter yields the items to keep, and errors.
func filter[T any](items iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if (err != nil || keep(item)) && !yield(item, err) {
				return
			}
		}
	}
}
