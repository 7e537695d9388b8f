package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// folderStore is what a local folder can do.
type folderStore interface {
	objectstore.Store
	objectstore.Opener
	objectstore.Adopter
	objectstore.Renamer
	objectstore.Directories
	io.Closer
}

// countedStore counts and times the requests to a folder.
type countedStore struct {
	folderStore
	metrics *metrics.Set
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return metrics.OutcomeOK
	case errors.Is(err, context.Canceled):
		return metrics.OutcomeCanceled
	case errors.Is(err, objectstore.ErrNotExist), errors.Is(err, objectstore.ErrExist), errors.Is(err, objectstore.ErrChanged),
		errors.Is(err, objectstore.ErrNotEmpty), errors.Is(err, objectstore.ErrName), errors.Is(err, objectstore.ErrPermission),
		errors.Is(err, objectstore.ErrCrossDevice), errors.Is(err, objectstore.ErrDirectory):
		return metrics.OutcomeRefused
	}
	return metrics.OutcomeError
}

// count notes one request that began at began.
func (s *countedStore) count(operation string, began time.Time, err error) {
	s.metrics.StoreRequests.With(operation, outcomeOf(err)).Observe(time.Since(began).Seconds())
}

func (s *countedStore) written(n int64, err error) {
	if err == nil {
		s.metrics.StoreBytes.With(metrics.DirectionWritten).Add(n)
	}
}

func (s *countedStore) Stat(ctx context.Context, loc objectstore.Location) (objectstore.Object, error) {
	began := time.Now()
	o, err := s.folderStore.Stat(ctx, loc)
	s.count("stat", began, err)
	return o, err
}

func (s *countedStore) List(ctx context.Context, prefix objectstore.Location, opts objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		began := time.Now()
		var failed error
		defer func() { s.count("list", began, failed) }()
		for e, err := range s.folderStore.List(ctx, prefix, opts) {
			failed = err
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *countedStore) Read(ctx context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	began := time.Now()
	got, body, err := s.folderStore.Read(ctx, o, off, n)
	s.count("read", began, err)
	return got, body, err
}

func (s *countedStore) Put(ctx context.Context, loc objectstore.Location, r io.ReaderAt, size int64, opts objectstore.PutOptions) (objectstore.Object, error) {
	began := time.Now()
	o, err := s.folderStore.Put(ctx, loc, r, size, opts)
	s.count("put", began, err)
	s.written(size, err)
	return o, err
}

func (s *countedStore) Copy(ctx context.Context, dst objectstore.Location, src objectstore.Object, opts objectstore.PutOptions) (objectstore.Object, error) {
	began := time.Now()
	o, err := s.folderStore.Copy(ctx, dst, src, opts)
	s.count("copy", began, err)
	return o, err
}

func (s *countedStore) Delete(ctx context.Context, locs []objectstore.Location) iter.Seq2[objectstore.Location, error] {
	return func(yield func(objectstore.Location, error) bool) {
		for loc, err := range s.folderStore.Delete(ctx, locs) {
			s.count("delete", time.Now(), err)
			if !yield(loc, err) {
				return
			}
		}
	}
}

func (s *countedStore) OpenObject(ctx context.Context, o objectstore.Object) (*os.File, error) {
	began := time.Now()
	f, err := s.folderStore.OpenObject(ctx, o)
	s.count("open", began, err)
	return f, err
}

func (s *countedStore) Adopt(ctx context.Context, loc objectstore.Location, path string, opts objectstore.PutOptions) (objectstore.Object, error) {
	began := time.Now()
	o, err := s.folderStore.Adopt(ctx, loc, path, opts)
	s.count("adopt", began, err)
	s.written(o.Size, err)
	return o, err
}

func (s *countedStore) Return(ctx context.Context, o objectstore.Object, path string) error {
	began := time.Now()
	err := s.folderStore.Return(ctx, o, path)
	s.count("return", began, err)
	return err
}

func (s *countedStore) Rename(ctx context.Context, dst objectstore.Location, src objectstore.Object, cond objectstore.Cond) (objectstore.Object, error) {
	began := time.Now()
	o, err := s.folderStore.Rename(ctx, dst, src, cond)
	s.count("rename", began, err)
	return o, err
}

func (s *countedStore) MakeDirectory(ctx context.Context, loc objectstore.Location) error {
	began := time.Now()
	err := s.folderStore.MakeDirectory(ctx, loc)
	s.count("make_directory", began, err)
	return err
}

func (s *countedStore) RenameDirectory(ctx context.Context, dst, src objectstore.Location) error {
	began := time.Now()
	err := s.folderStore.RenameDirectory(ctx, dst, src)
	s.count("rename_directory", began, err)
	return err
}
