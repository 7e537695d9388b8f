package objectstore

import (
	"context"
	"errors"
	"iter"
)

// List is [Store]'s.
func (s *S3) List(_ context.Context, prefix Location, _ ListOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		yield(Entry{}, failS3("list", prefix, errors.ErrUnsupported))
	}
}
