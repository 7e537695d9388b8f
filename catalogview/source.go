package catalogview

import (
	"context"
	"iter"
	"time"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// Raw is a catalog entry as people see it: the content of NAME.json.
type Raw struct {
	Bytes   []byte // not to be changed; nil where only the rest was asked for
	Size    int64  // length of Bytes
	ETag    string // of this version of the entry
	ModTime time.Time
}

// Database is one database with its entry.
type Database struct {
	Name string
	Raw  Raw // with Bytes
	// Guessed: the source did not let us see whether it is there.
	Guessed bool
}

// TableInfo is what a listing of tables tells of one.
type TableInfo struct {
	Name string
	Raw  Raw // without Bytes; Size and ETag as Stat would tell them
}

// Source is a catalog: JSON manifests, or Glue. sourcetest holds each to this
// contract. Methods may be called concurrently, keep nothing, and end early
// when ctx is done. What is not there is objectstore.ErrNotExist; every other
// error says nothing of presence or absence.
type Source interface {
	// Databases yields each database once, in any order. After an error nothing
	// follows; a listing without one is complete.
	Databases(ctx context.Context) iter.Seq2[Database, error]
	// Database returns one; ErrNotExist for each name that Databases leaves out,
	// or a guess where that cannot be seen.
	Database(ctx context.Context, name string) (Database, error)
	// Tables yields each table of a database once, broken ones too, in any
	// order; none for a database that is not there.
	Tables(ctx context.Context, database string) iter.Seq2[TableInfo, error]
	// Stat returns a table's entry without Bytes; it is cheaper than Table.
	Stat(ctx context.Context, database, name string) (Raw, error)
	// Table returns a table and its entry, of one version. An entry that does
	// not load is a Table of kind broken with a nil error, and its Raw.
	Table(ctx context.Context, database, name string) (*table.Table, Raw, error)
}
