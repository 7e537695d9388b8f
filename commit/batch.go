package commit

import (
	"context"
	"errors"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Member is one file of a batch.
type Member struct {
	File *staging.File
	// To is where it is to be published: Target, Prefix, Path, Format, Cond and Hold
	// count, as [staging.File.SetTarget] takes them.
	To staging.NewWrite
}

// PublishAll publishes all members or none.
func (c *Committer) PublishAll(context.Context, []Member) ([]objectstore.Object, error) {
	return nil, errors.ErrUnsupported
}
