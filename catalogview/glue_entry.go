package catalogview

import (
	"context"
	"errors"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// PutTable is [Source]'s.
func (g *Glue) PutTable(context.Context, string, string, EntryWrite) (*table.Table, Raw, error) {
	return nil, Raw{}, errors.ErrUnsupported
}

// DeleteTable is [Source]'s.
func (g *Glue) DeleteTable(context.Context, string, string, string) error {
	return errors.ErrUnsupported
}

// SetFormat is [Source]'s.
func (g *Glue) SetFormat(context.Context, *table.Table, []string, table.FormatChange) error {
	return errors.ErrUnsupported
}
