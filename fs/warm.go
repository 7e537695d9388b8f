package fs

import (
	"context"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// warming prepares for a reader with O_DIRECT, past the page cache, as
// `lakefs-mount warm` is: all that it reads is to be on the disk after it, so the
// fetches of the context that it gets leave no block out, and what is in memory
// alone is fetched once more. So nothing is prefetched for it: what was, and is not on
// the disk yet, would be fetched twice.
func (f *FS) warming(ctx context.Context, o objectstore.Object) context.Context {
	if f.Disk == nil {
		return ctx
	}
	if v := cacheVersion(o); !f.Disk.Complete(v) {
		f.Cache.Drop(v.Bucket, v.Key)
	}
	return cache.Thorough(ctx)
}
