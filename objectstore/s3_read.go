package objectstore

import (
	"context"
	"errors"
	"io"
)

// Read is [Store]'s.
func (s *S3) Read(_ context.Context, o Object, _, _ int64) (Object, io.ReadCloser, error) {
	return Object{}, nil, failS3("read", o.Location, errors.ErrUnsupported)
}
