package catalogview

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// ErrEntry: what was written is no entry of that table: its JSON, its limits, or what
// it says (EINVAL).
var ErrEntry = errors.New("not a valid entry")

// EntryError says what is wrong with an entry that was to be written. It unwraps to
// ErrEntry.
type EntryError struct {
	Path   string // "database/table"
	Reason string
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry of %q: %s", e.Path, e.Reason) }

// Unwrap returns ErrEntry.
func (e *EntryError) Unwrap() error { return ErrEntry }

// FreshEntry returns the entry of the table at path ("database/table") as the catalog
// has it now, with its node, past all caches; ErrNotExist where there is none.
func (v *View) FreshEntry(ctx context.Context, path string) ([]byte, Node, error) {
	return nil, Node{}, errors.ErrUnsupported
}

// WriteEntry makes entry the entry of the table at path: an update of the version base
// (an ETag of FreshEntry or EntryJSON), or with base "" a new table. It returns the
// node of the new version. Nothing of it is written on an error: an *EntryError,
// ErrChanged where the catalog has another version than base (or than the one that the
// entry itself names), ErrExist for a new one that is there, ErrPermission,
// ErrTooLarge, or a location's [*VerdictError]. The reason of a refusal is in Status
// until a write of that entry succeeds.
func (v *View) WriteEntry(ctx context.Context, path string, entry []byte, base string) (Node, error) {
	return Node{}, errors.ErrUnsupported
}

// RemoveEntry drops the table at path from the catalog, if its entry is still of the
// version base, and never its data (rules 14 and 49). ErrChanged; ErrNotExist.
func (v *View) RemoveEntry(ctx context.Context, path, base string) error {
	return errors.ErrUnsupported
}

// MaxEntry is the most bytes that an entry may have to be written.
func (v *View) MaxEntry() int64 { return int64(v.o.Limits.MaxBytes) }

// SetFormat changes the formats of the partition at path, or of the table: that entry
// alone (rule 59). objectstore.ErrNotExist where the catalog has no such partition;
// errors.ErrUnsupported for a manifest's partition, a data source table and a view.
func (v *View) SetFormat(ctx context.Context, path string, f table.FormatChange) error {
	return errors.ErrUnsupported
}
