// Package catalogview shows a catalog as a tree that is addressed by path:
//
//	""                     the root: databases, and DATABASE.json beside each
//	"sales"                a database: tables, and TABLE.json beside each
//	"sales/orders"         a table: what lies under its location
//	"sales/orders/dt=1/f"  a directory or an object below it
//
// A [View] joins a [Source] (what the catalog says) with an objectstore.Store
// (what lies under a location). Guarantees:
//
//   - one broken entry fails alone: it is listed, its JSON is readable, and
//     what lies below it is a [*VerdictError] with the reason (rule 55);
//   - a location is checked against the list of roots at every load, after
//     symbolic links are resolved (rule 43);
//   - a name that [View.ReadDir] yields is found by [View.Lookup] with the same
//     kind; what Lookup finds is listed, except what is hidden by rule (staging
//     trees, _sqe);
//   - a listing is whole or ends in an error; an error is never taken for
//     absence, nor remembered as such;
//   - catalog entries are cached for a TTL, one load at a time for each;
//   - what lies below a table is asked of the store each time if that is an
//     objectstore.Directories; of a flat store it is cached as entries are, by
//     location, and concurrent listings of a directory are one. What the mount
//     tells of its own changes ([View.Wrote], [View.Removed], [View.Stale])
//     shows at once;
//   - no lock is held across a call of the source or the store.
//
// The package never shows staging: unpublished files are fs's. Paths have no
// "/" first or last. Numbers of rules are those of the design's catalog rules.
package catalogview

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Sentinels. A path where nothing is wraps objectstore.ErrNotExist.
var (
	// ErrLevel: no file or directory can be made at the root or in a database (EPERM).
	ErrLevel = errors.New("only tables hold files")
	// ErrNameTooLong: a component of the path has over 255 bytes, or the key is
	// over the store's length; found before any request.
	ErrNameTooLong = errors.New("name too long")
	// ErrClosed: the View was closed.
	ErrClosed = errors.New("view closed")
)

// VerdictError says why a table, or what is below one, cannot be used.
type VerdictError struct {
	Table  string // "database/table", with the partition where it is that
	Class  table.Class
	Reason string
	Err    error // a sentinel of package table, or nil
}

func (e *VerdictError) Error() string { return e.Table + ": " + e.Reason }

// Unwrap returns Err.
func (e *VerdictError) Unwrap() error { return e.Err }

// Is says that what was refused is ErrPermission, to those who know no verdicts.
func (e *VerdictError) Is(target error) bool {
	return target == objectstore.ErrPermission && e.Class == table.ClassDenied
}

// Kind says what a Node is.
type Kind int

// The kinds of nodes; all but objects and entries are directories.
const (
	KindRoot Kind = iota
	KindDatabase
	KindTable
	KindDirectory // below a table
	KindObject
	KindEntry // NAME.json
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case KindRoot:
		return "root"
	case KindDatabase:
		return "database"
	case KindTable:
		return "table"
	case KindDirectory:
		return "directory"
	case KindObject:
		return "object"
	}
	return "entry"
}

// Directory says that nodes of the kind have names below them.
func (k Kind) Directory() bool { return k != KindObject && k != KindEntry }

// Node is one name of the tree. It is a value, made at the look-up.
type Node struct {
	Kind Kind
	Path string // "" is the root
	// Object is the object of KindObject. Of KindTable and KindDirectory it has
	// the Location (Key "" or ending in "/"; zero where a table has none that
	// may be used), and ModTime as far as it is known.
	Object objectstore.Object

	Size    int64 // bytes; of KindObject and KindEntry
	ETag    string
	ModTime time.Time // zero where it is not known

	// Table is set for KindTable and below, and for a table's KindEntry. Its
	// verdict applies to what is below the table. Shared; not to be changed.
	Table *table.Table
	Level int // number of components below the table; the table's own is 0
	// Registered: the catalog has it as a partition, or has partitions below it
	// (KindDirectory). It is there whatever the store holds.
	Registered bool
}

// Location returns where the node's object or directory lies in the store.
func (n Node) Location() objectstore.Location { return n.Object.Location }

// Options are those of [NewManifests] and [NewView]; zero fields stand for the
// values named.
type Options struct {
	Log *slog.Logger // none

	// TTL is how long catalog entries, and listings and look-ups below tables of
	// a flat store, are taken as they were (5 s), NegativeTTL how long absence is
	// that a look-up found (1 s). A negative value: not at all.
	TTL, NegativeTTL time.Duration
	// Patience is how long a caller waits for a fresh entry when a stale one, up
	// to 10 TTLs old, could serve (2 s).
	Patience time.Duration
	// LoadTimeout bounds one load from the source (60 s).
	LoadTimeout time.Duration
	// MaxCached bounds the cached entries of each kind (20,000).
	MaxCached int
	// MaxListed bounds the names below tables that are kept of a flat store
	// (200,000). A directory with more is streamed and not kept.
	MaxListed int
	// Probe is how many entries of a flat store's directory are asked for to learn
	// whether it is there; one that has fewer is known by that. 0: DefaultProbe.
	Probe int
	// MaxPartitions bounds the registered partitions that are kept (300,000). A
	// listing with more is not kept once it was served.
	MaxPartitions int

	// Roots are what a location may lie in (rule 43): the catalog's own first,
	// then the allowed ones, with {user} expanded. Folders are absolute paths, as
	// given to objectstore.NewFolder; of a catalog in S3 they are s3://bucket/prefix/.
	Roots []string
	// EvalSymlinks resolves symbolic links (filepath.EvalSymlinks).
	EvalSymlinks func(path string) (string, error)

	Limits table.Limits // of manifests (rule 42)
	// Rootless: the catalog lies in no folder or bucket (Glue). Roots are the allowed
	// locations alone, none of them the catalog's own; without any, every S3 location
	// that the catalog names may be used (rule 43).
	Rootless bool
	// Discover lists directories that the catalog does not know as partitions too.
	Discover bool
	// Register: View.Register registers new partitions (--catalog-writes); else it
	// does nothing.
	Register bool
	// WriteEntries: tables' entries may be written (--catalog-writes=entries).
	WriteEntries bool

	// Secrets names the credentials that sqe.secret may name (rule 54).
	Secrets []string
	// MaxKey bounds keys, in bytes; 0: no bound (a folder has none).
	MaxKey int
	// Now is the clock (time.Now).
	Now func() time.Time

	silence *silence // of the source; shared by all that is cached of it
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	setDuration(&o.TTL, 5*time.Second)
	setDuration(&o.NegativeTTL, time.Second)
	setDuration(&o.Patience, 2*time.Second)
	setDuration(&o.LoadTimeout, time.Minute)
	if o.MaxCached == 0 {
		o.MaxCached = 20_000
	}
	if o.MaxListed == 0 {
		o.MaxListed = 200_000
	}
	if o.Probe == 0 {
		o.Probe = DefaultProbe
	}
	if o.MaxPartitions == 0 {
		o.MaxPartitions = 300_000
	}
	if o.EvalSymlinks == nil {
		o.EvalSymlinks = filepath.EvalSymlinks
	}
	if o.silence == nil {
		o.silence = &silence{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Limits = o.Limits.OrDefault()
	return o
}

func setDuration(d *time.Duration, unset time.Duration) {
	if *d == 0 {
		*d = unset
	}
}
