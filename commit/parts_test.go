package commit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// partSize is that of the uploads of a world of parts: no store takes one so
// small, and no test would end with larger ones.
const partSize = 128 << 10

// bucketOfParts is a bucket that takes multipart uploads too.
type bucketOfParts struct {
	*bucket

	uploading sync.Mutex
	uploads   map[objectstore.Upload]*inParts
	begun     int
}

type inParts struct {
	meta  map[string]string
	parts map[int][]byte
}

var _ objectstore.Multipart = (*bucketOfParts)(nil)

func newBucketOfParts(b *bucket) *bucketOfParts {
	return &bucketOfParts{bucket: b, uploads: make(map[objectstore.Upload]*inParts)}
}

func (b *bucketOfParts) CreateUpload(_ context.Context, loc objectstore.Location, opts objectstore.PutOptions) (objectstore.Upload, error) {
	b.uploading.Lock()
	defer b.uploading.Unlock()
	b.begun++
	u := objectstore.Upload{Location: loc, ID: fmt.Sprintf("upload %d", b.begun)}
	b.uploads[u] = &inParts{meta: opts.Meta, parts: make(map[int][]byte)}
	return u, nil
}

// part stores one; the caller has its bytes.
func (b *bucketOfParts) part(u objectstore.Upload, number int, data []byte) (objectstore.Part, error) {
	b.uploading.Lock()
	defer b.uploading.Unlock()
	in, ok := b.uploads[u]
	if !ok {
		return objectstore.Part{}, noUpload(u)
	}
	in.parts[number] = data
	tag := entry{data: data}.object(u.Location).ETag
	return objectstore.Part{Number: number, Size: int64(len(data)), ETag: tag}, nil
}

func noUpload(u objectstore.Upload) error {
	return fmt.Errorf("%s: %w: %w", u.ID, objectstore.ErrNoUpload, objectstore.ErrUnavailable)
}

func (b *bucketOfParts) UploadPart(_ context.Context, u objectstore.Upload, number int, r io.ReaderAt, size int64) (objectstore.Part, error) {
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); int64(n) < size {
		return objectstore.Part{}, err
	}
	return b.part(u, number, data)
}

func (b *bucketOfParts) CopyPart(_ context.Context, u objectstore.Upload, number int, src objectstore.Object, off, n int64) (objectstore.Part, error) {
	e, err := b.version(src)
	if err != nil {
		return objectstore.Part{}, err
	}
	return b.part(u, number, bytes.Clone(e.data[off:off+n]))
}

func (b *bucketOfParts) CompleteUpload(_ context.Context, u objectstore.Upload, parts []objectstore.Part, opts objectstore.PutOptions) (objectstore.Object, error) {
	b.uploading.Lock()
	defer b.uploading.Unlock()
	in, ok := b.uploads[u]
	if !ok {
		return objectstore.Object{}, noUpload(u)
	}
	var data []byte
	for _, p := range parts {
		has := in.parts[p.Number]
		if tag := (entry{data: has}).object(u.Location).ETag; tag != p.ETag {
			return objectstore.Object{}, noUpload(u)
		}
		data = append(data, has...)
	}
	o, err := b.store(u.Location, data, in.meta, opts.Cond)
	if err == nil {
		delete(b.uploads, u)
	}
	return o, err
}

func (b *bucketOfParts) AbortUpload(_ context.Context, u objectstore.Upload) error {
	b.uploading.Lock()
	defer b.uploading.Unlock()
	delete(b.uploads, u)
	return nil
}

// left counts the uploads that take room.
func (b *bucketOfParts) left() int {
	b.uploading.Lock()
	defer b.uploading.Unlock()
	return len(b.uploads)
}

// lostUploads counts those whose process ended after they were begun and before a
// record could name them.
func (w *world) lostUploads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost + w.unnamed
}

// uploading is a store that takes parts, step by step.
type uploading struct{ removing }

func (s uploading) CreateUpload(ctx context.Context, loc objectstore.Location, opts objectstore.PutOptions) (u objectstore.Upload, err error) {
	began := false
	err = s.w.call("upload", loc.Key, func() (err error) {
		u, err = s.w.parts.CreateUpload(ctx, loc, opts)
		began = err == nil
		return err
	})
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case began && err == nil:
		s.w.unnamed++
	case began:
		s.w.lost++
	}
	return u, err
}

func (s uploading) UploadPart(ctx context.Context, u objectstore.Upload, number int, r io.ReaderAt, size int64) (p objectstore.Part, err error) {
	err = s.w.call("part", fmt.Sprintf("%s %d size=%d", u.Key, number, size), func() (err error) {
		p, err = s.w.parts.UploadPart(ctx, u, number, r, size)
		return err
	})
	return p, err
}

func (s uploading) CopyPart(ctx context.Context, u objectstore.Upload, number int, src objectstore.Object, off, n int64) (p objectstore.Part, err error) {
	err = s.w.call("copypart", fmt.Sprintf("%s %d of %s %d+%d", u.Key, number, src.Key, off, n), func() (err error) {
		p, err = s.w.parts.CopyPart(ctx, u, number, src, off, n)
		return err
	})
	return p, err
}

func (s uploading) CompleteUpload(ctx context.Context, u objectstore.Upload, parts []objectstore.Part, opts objectstore.PutOptions) (o objectstore.Object, err error) {
	err = s.w.call("complete", fmt.Sprintf("%s parts=%d %s", u.Key, len(parts), condition(opts.Cond)), func() (err error) {
		o, err = s.w.parts.CompleteUpload(ctx, u, parts, opts)
		return err
	})
	return o, err
}

func (s uploading) AbortUpload(ctx context.Context, u objectstore.Upload) error {
	return s.w.call("abort", u.Key, func() error { return s.w.parts.AbortUpload(ctx, u) })
}

// Copy is by parts, whatever the size: two.
func (s uploading) Copy(ctx context.Context, dst objectstore.Location, src objectstore.Object, opts objectstore.PutOptions) (objectstore.Object, error) {
	u, err := s.CreateUpload(ctx, dst, opts)
	if err == nil && opts.Begun != nil {
		err = opts.Begun(u)
	}
	var copied []objectstore.Part
	for i, from := range []int64{0, src.Size / 2} {
		var p objectstore.Part
		if err == nil {
			p, err = s.CopyPart(ctx, u, i+1, src, from, []int64{src.Size / 2, src.Size - src.Size/2}[i])
		}
		copied = append(copied, p)
	}
	if err != nil {
		return objectstore.Object{}, err // the process may have ended: nothing is aborted
	}
	return s.CompleteUpload(ctx, u, copied, opts)
}
