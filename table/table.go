// Package table reads catalog entries and names: what a table is, whether it
// can be read and written and why not, and which value a directory's name
// stands for.
//
// Everything here is pure: bytes and names in, verdicts out; no input makes it
// panic, block or allocate more than a small multiple of the entry's size cap.
// An entry that cannot be used is still a [Table], of kind [Broken], whose
// Reason says what is wrong and where, so that it fails alone (rule 55). All
// functions may be called concurrently; a Table is not changed once it is made.
//
// Numbers of rules are those of the design's catalog rules.
package table

import "errors"

// Kind says what sort of table an entry describes.
type Kind string

// The kinds of table.
const (
	Hive        Kind = "hive"         // ordinary: Hive style, data source or manifest
	FormatTable Kind = "format-table" // rule 17
	Delta       Kind = "delta"
	Iceberg     Kind = "iceberg"
	Hudi        Kind = "hudi"
	View        Kind = "view"   // an entry without files
	Link        Kind = "link"   // a resource link that leads to no table (yet)
	Broken      Kind = "broken" // the entry does not load
)

// Class says why a table cannot be read or written; fs turns it into an errno.
type Class string

// The classes of refusal.
const (
	ClassNone        Class = ""
	ClassBroken      Class = "broken"      // EIO: the entry or the partition's name does not load
	ClassReadOnly    Class = "read-only"   // EROFS: plain writes would harm the table
	ClassDenied      Class = "denied"      // EACCES: outside the allow list
	ClassUnsupported Class = "unsupported" // EOPNOTSUPP: a scheme that no store here speaks
	ClassView        Class = "view"        // no directory
	ClassLoop        Class = "loop"        // ELOOP: resource links that lead to one another
)

// Sentinels; errors of this package wrap them.
var (
	// ErrName: the name can not be that of a new partition directory (EINVAL).
	ErrName = errors.New("not a partition name")
	// ErrEqual: a directory of equal value is there under this or another
	// spelling, which the message names (EEXIST).
	ErrEqual = errors.New("partition exists")
	// ErrInsertOnly: a published file of a format table can not change (rule 22, EROFS).
	ErrInsertOnly = errors.New("format table takes new files only")
	// ErrMetadata: the name is the table's own metadata (rule 21, EROFS).
	ErrMetadata = errors.New("table metadata")
	// ErrValue: an existing directory's value is not of its key's type (rule 45, EIO).
	ErrValue = errors.New("value is not of its key's type")
	// ErrNotPartition: an existing directory is no partition of its level (no
	// "key=", or hidden); it is an ordinary directory.
	ErrNotPartition = errors.New("not a partition directory")
)

// Names that stand for NULL.
const (
	HiveNull        = "__HIVE_DEFAULT_PARTITION__"
	formatTableNull = "__DEFAULT_PARTITION__"
)

// Column is a column or a partition key as the entry holds it. NotNull is of a schema
// that Spark keeps in the entry; no other says so.
type Column struct {
	Name, Type, Comment string
	NotNull             bool
}

// PartitionSource says who knows which partitions a table has.
type PartitionSource string

// The sources of partitions.
const (
	PartitionsOnDisk    PartitionSource = ""           // the directories below its location
	PartitionsInCatalog PartitionSource = "catalog"    // the catalog's own, each with its location
	PartitionsProjected PartitionSource = "projection" // the values in range: Table.Projection
)

// Ref names a table of a catalog. CatalogID "" is the source's own.
type Ref struct{ CatalogID, Database, Name string }

// String is the reference for people: database.name, and the catalog if it is another.
func (r Ref) String() string {
	s := r.Database + "." + r.Name
	if r.CatalogID != "" {
		s += " of catalog " + r.CatalogID
	}
	return s
}

// Table is what a catalog entry says, and the verdict on it.
type Table struct {
	Database, Name string
	Kind           Kind

	// Format of the files: "parquet", "orc", "avro", "csv", "text", "json",
	// "sequence", "rc"; "" if the entry does not tell (then their first bytes
	// do, rule 60). FormatFrom says which part of the entry told: "provider",
	// "table_type", "file.format", "serde CLASS", "input format CLASS",
	// "storage_handler CLASS".
	Format, FormatFrom string

	// LooseJSON: files of the format json need not be an object on each line, for the
	// options of the Spark table let them be otherwise.
	LooseJSON bool

	// InputFormat and Serde are the classes that the entry names; "" if none.
	InputFormat, Serde string

	// Description is the entry's text about the table; "" if none.
	Description string
	Storage     Storage

	Location      string // as the entry holds it; "" if none
	Keys, Columns []Column
	Parameters    map[string]string // exact; numbers and booleans as written

	// Slimmed: Columns, Description and Storage are left out, and most Parameters, though
	// the entry may have them (see [Table.Slim]).
	Slimmed bool

	PathOnlyValue      bool   // directories are values without "key=" (rule 18)
	NullName           string // the value that stands for NULL
	LegacyDate         bool   // format table: DATE directories are day counts (rule 34)
	MetadataUnderTable bool   // schema/ and branch/ below it are metadata (rule 21); set by whoever lists
	Secret             string // sqe.secret: names a credential (rule 54)

	// Partitions is who knows the partitions; without Keys it is PartitionsOnDisk.
	Partitions PartitionSource
	Projection *Projection // not nil if PartitionsProjected
	// Target is where a resource link leads: of kind Link, where it is to be
	// followed to; else where the rest of this Table was read. nil: no link.
	Target *Ref
	// LakeFormation: the entry is registered with Lake Formation; nil if it does
	// not say.
	LakeFormation *bool
	// Notes are what a user of the table should know though it can be used: rule 11.
	Notes []string

	// Strict: what the entry holds that is not known, and nested columns, are refused
	// where its rows are shown (a manifest's, rule 47). Then Writable is false.
	Strict bool

	Readable, Writable bool
	Reason             string // why not readable or not writable; several joined by "; "
	Class              Class
	// Outside is the absolute directory that would have to be allowed for the
	// table to be readable; "" where that is no remedy. Set by whoever resolves
	// locations.
	Outside string
}

// Storage is what an entry says of the files beyond their format, as it spells it.
type Storage struct {
	OutputFormat    string            // the class; "" if none
	SerdeProperties map[string]string // exact; numbers and booleans as written
	// Buckets is into how many files rows go by the hash of BucketColumns; 0: none.
	Buckets       int64
	BucketColumns []string
	SkewedColumns []string // whose frequent values have directories of their own
}

// HasDirectory says that the table shows as a directory: views and links that
// lead nowhere are their JSON alone.
func (t *Table) HasDirectory() bool { return t.Kind != View && t.Kind != Link }

// Ref is how the catalog is asked for the table's partitions: by the target of a
// resource link.
func (t *Table) Ref() Ref {
	if t.Target != nil {
		return *t.Target
	}
	return Ref{Database: t.Database, Name: t.Name}
}

// slimParameters are those that the use of directories asks for.
var slimParameters = []string{providerKey, DynamicOverwrite} //nolint:gochecknoglobals // a constant list

// DynamicOverwrite is the parameter that is "false" where an overwrite clears more than
// the partitions that it writes (rule 30).
const DynamicOverwrite = "dynamic-partition-overwrite"

// Slim returns a copy without what most of an entry is: its columns, description and
// storage, and all parameters but those by which partitions are read and cleared. nil
// stays nil.
func (t *Table) Slim() *Table {
	if t == nil {
		return nil
	}
	c := *t
	c.Slimmed, c.Columns, c.Parameters, c.Description, c.Storage = true, nil, nil, "", Storage{}
	for _, name := range slimParameters {
		if p, ok := t.Parameters[name]; ok {
			if c.Parameters == nil {
				c.Parameters = make(map[string]string)
			}
			c.Parameters[name] = p
		}
	}
	return &c
}

// InsertOnly says that published files may not be changed in place (rule 22).
func (t *Table) InsertOnly() bool { return t.Kind == FormatTable }

// WithVerdict returns a copy of t that can not be read for another reason than
// its entry's: a refused location, a manifest that could not be fetched.
func (t *Table) WithVerdict(class Class, reason string) *Table {
	c := *t
	c.Readable, c.Writable, c.Class, c.Reason = false, false, class, reason
	return &c
}

// NewBroken returns a table that stands for an entry which does not load.
func NewBroken(database, name string, class Class, reason string) *Table {
	return &Table{
		Database: database, Name: name, Kind: Broken, NullName: HiveNull,
		Class: class, Reason: reason,
	}
}
