package commit

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// bucket is a store as S3 is: two versions with the same bytes have the same
// ETag, an older version is gone when its name is replaced, and there is no
// rename.
type bucket struct {
	mu      sync.Mutex
	objects map[objectstore.Location]entry
}

type entry struct {
	data []byte
	meta map[string]string
	time time.Time
}

func newBucket() *bucket { return &bucket{objects: make(map[objectstore.Location]entry)} }

func (e entry) object(loc objectstore.Location) objectstore.Object {
	sum := md5.Sum(e.data)
	tag := hex.EncodeToString(sum[:])
	return objectstore.Object{Location: loc, Size: int64(len(e.data)), ETag: tag, Match: tag, ModTime: e.time, Meta: maps.Clone(e.meta)}
}

// at is what a reader sees; "absent" if nothing.
func (b *bucket) at(loc objectstore.Location) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.objects[loc]; ok {
		return string(e.data)
	}
	return "absent"
}

// put is what others do.
func (b *bucket) put(loc objectstore.Location, data []byte, meta map[string]string) objectstore.Object {
	o, _ := b.store(loc, data, meta, objectstore.Cond{})
	return o
}

func (b *bucket) remove(loc objectstore.Location) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, loc)
}

func (b *bucket) store(loc objectstore.Location, data []byte, meta map[string]string, cond objectstore.Cond) (objectstore.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, there := b.objects[loc]
	switch {
	case cond.IfNoneMatch && there:
		return objectstore.Object{}, objectstore.ErrExist
	case cond.IfMatch != "" && (!there || old.object(loc).ETag != cond.IfMatch):
		return objectstore.Object{}, objectstore.ErrChanged
	}
	e := entry{bytes.Clone(data), maps.Clone(meta), time.Now()}
	if e.meta == nil {
		e.meta = map[string]string{}
	}
	b.objects[loc] = e
	return e.object(loc), nil
}

// version is o's bytes, if they are still there.
func (b *bucket) version(o objectstore.Object) (entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.objects[o.Location]
	if !ok || e.object(o.Location).ETag != o.ETag {
		return e, objectstore.ErrChanged
	}
	return e, nil
}

func (b *bucket) Stat(_ context.Context, loc objectstore.Location) (objectstore.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.objects[loc]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotExist
	}
	return e.object(loc), nil
}

func (b *bucket) List(context.Context, objectstore.Location, objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) { yield(objectstore.Entry{}, errors.ErrUnsupported) }
}

func (b *bucket) Read(_ context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	e, err := b.version(o)
	if err != nil {
		return o, nil, err
	}
	return e.object(o.Location), io.NopCloser(io.NewSectionReader(bytes.NewReader(e.data), off, n)), nil
}

func (b *bucket) Put(_ context.Context, loc objectstore.Location, r io.ReaderAt, size int64, opts objectstore.PutOptions) (objectstore.Object, error) {
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); int64(n) < size {
		return objectstore.Object{}, err
	}
	return b.store(loc, data, opts.Meta, opts.Cond)
}

func (b *bucket) Copy(_ context.Context, dst objectstore.Location, src objectstore.Object, opts objectstore.PutOptions) (objectstore.Object, error) {
	e, err := b.version(src)
	if err != nil {
		return src, err
	}
	if opts.Meta == nil {
		opts.Meta = e.meta
	}
	return b.store(dst, e.data, opts.Meta, opts.Cond)
}

func (b *bucket) Delete(context.Context, []objectstore.Location) iter.Seq2[objectstore.Location, error] {
	return func(yield func(objectstore.Location, error) bool) {
		yield(objectstore.Location{}, errors.ErrUnsupported)
	}
}

func (b *bucket) DeleteVersion(_ context.Context, o objectstore.Object) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.objects[o.Location]
	switch {
	case !ok:
		return nil
	case e.object(o.Location).ETag != o.ETag:
		return objectstore.ErrChanged
	}
	delete(b.objects, o.Location)
	return nil
}
