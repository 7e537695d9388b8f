package objectstore

import (
	"context"
	"errors"
	"io"
	"iter"
)

// Put is [Store]'s.
func (s *S3) Put(_ context.Context, loc Location, _ io.ReaderAt, _ int64, _ PutOptions) (Object, error) {
	return Object{}, failS3("put", loc, errors.ErrUnsupported)
}

// Copy is [Store]'s.
func (s *S3) Copy(_ context.Context, dst Location, _ Object, _ PutOptions) (Object, error) {
	return Object{}, failS3("copy", dst, errors.ErrUnsupported)
}

// Delete is [Store]'s.
func (s *S3) Delete(_ context.Context, locs []Location) iter.Seq2[Location, error] {
	return func(yield func(Location, error) bool) {
		for _, loc := range locs {
			if !yield(loc, failS3("delete", loc, errors.ErrUnsupported)) {
				return
			}
		}
	}
}
