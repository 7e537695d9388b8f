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
	// NoDirectory says why it shows as its entry alone: a resource link whose target
	// is not there. "": it has a directory.
	NoDirectory string
}

// TableInfo is what a listing of tables tells of one.
type TableInfo struct {
	Name string
	// Raw is without Bytes; Size and ETag are those of Table. ETag is "" where the
	// listing does not tell the version: a resource link's target is part of its.
	Raw Raw
	// Table is what Source.Table would return, where the listing has it all; else nil.
	Table *table.Table
}

// EntryWrite is an entry that is to be written: Entry is what NAME.json is to be.
type EntryWrite struct {
	Entry []byte // not to be changed
	Base  string // ETag of the version that it replaces; "": the table is new
	// Own: who writes made the version Base too. What Entry says of its own version, and
	// of what the catalog sets by itself, is of an older one, and counts for nothing.
	Own bool
	// Accept is asked about the table that the entry would load as, before anything is
	// written; its error ends the write. nil: nobody is asked.
	Accept func(ctx context.Context, t *table.Table) error
}

func (w EntryWrite) accept(ctx context.Context, t *table.Table) error {
	if w.Accept == nil {
		return nil
	}
	return w.Accept(ctx, t)
}

// NewPartition is one that is to be registered.
type NewPartition struct {
	Values   []string // of all keys, in their order
	Location string
}

// Registered is what became of a NewPartition.
type Registered struct {
	Location string // that the catalog has now, where Err is nil
	Err      error  // ErrNotExist: the table went
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
	// order; none for a database that is not there. Those of a resource link are its
	// target's; ErrLinkLoop where that is a link too.
	Tables(ctx context.Context, database string) iter.Seq2[TableInfo, error]
	// Table returns a table and its entry, of one version; with known, an ETag that
	// the caller has, of a version that is still that one: no Table, and the Raw
	// without Bytes. An entry that does not load is a Table of kind broken with a nil
	// error, and its Raw. A resource link is followed once (see table.Table.Target);
	// the Raw is the link's own.
	Table(ctx context.Context, database, name, known string) (*table.Table, Raw, error)

	// Partitions yields the registered partitions of a table (as Table returned it)
	// whose first values are these, each once, in any order; all without any. After
	// an error nothing follows; a listing without one is complete. Those that can not
	// be used are Broken. Only for tables whose Partitions are in
	// the catalog; ErrNotExist where the table went.
	Partitions(ctx context.Context, t *table.Table, prefix []string) iter.Seq2[table.Partition, error]
	// Partition returns one registered partition by all of its values, with its
	// entry; ErrNotExist where it is not registered. One that can not be used is an
	// error of no sentinel, with its Raw.
	Partition(ctx context.Context, t *table.Table, values []string) (table.Partition, Raw, error)
	// PartitionLines yields the entries of all registered partitions, each as one
	// line of JSON with no newline in or after it; not to be kept.
	PartitionLines(ctx context.Context, t *table.Table) iter.Seq2[[]byte, error]
	// Register registers partitions with the table's storage descriptor, as it is or
	// was some seconds ago, each with its location, unless it is registered: that is no
	// error, and nothing is changed ("Registering partitions"). The values are all
	// different. It tells of each, in their order; what becomes of one does not depend
	// on the others, as far as the catalog was asked.
	Register(ctx context.Context, t *table.Table, all []NewPartition) []Registered
	// Deregister removes the entry of a partition, and nothing of the store. What is
	// not there, the table neither, is no error.
	Deregister(ctx context.Context, t *table.Table, values []string) error

	// PutTable writes the entry of a table, and returns both as the catalog has them
	// then. Nothing is written on an error: an *EntryError, ErrExist, ErrChanged (it is
	// not of the version w.Base, or not there), what w.Accept returned; but
	// ErrUnavailable says that it may have been. The data is not looked at.
	PutTable(ctx context.Context, database, name string, w EntryWrite) (*table.Table, Raw, error)
	// DeleteTable removes the entry of a table that is of the version base ("": of any),
	// and nothing of the store. ErrNotExist, ErrChanged.
	DeleteTable(ctx context.Context, database, name, base string) error
	// SetFormat changes the formats of a registered partition, or with values nil those
	// of the table alone, and nothing else of its entry. ErrNotExist;
	// errors.ErrUnsupported where it has none of its own, or none that can be set.
	SetFormat(ctx context.Context, t *table.Table, values []string, f table.FormatChange) error
}
