package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

// Pin opens o's version for reading; the caller closes it. From an [Opener] it
// is a descriptor, which keeps the version when its name is replaced or
// removed; else each ReadAt is a Read, which fails with [ErrChanged] from then
// on. Bytes of another version are never returned. ErrNotExist, ErrChanged.
func Pin(ctx context.Context, s Store, o Object) (Pinned, error) {
	opener, ok := s.(Opener)
	if !ok {
		return &pinnedReads{store: s, object: o}, nil
	}
	file, err := opener.OpenObject(ctx, o)
	if err != nil {
		return nil, err
	}
	return &pinnedFile{file: file, object: o}, nil
}

type pinnedFile struct {
	file   *os.File
	object Object
}

func (p *pinnedFile) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return readVersion(p.file, p.object, b, off)
}

// NextData is [DataSeeker]'s.
func (p *pinnedFile) NextData(ctx context.Context, off int64) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	next := min(sparse.NextData(p.file, off), p.object.Size)
	if err := sameVersion(p.file, p.object); err != nil {
		return 0, err
	}
	return max(off, next), nil
}

func (p *pinnedFile) Close() error { return p.file.Close() }

type pinnedReads struct {
	store  Store
	object Object
}

func (p *pinnedReads) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %q: negative offset %d", p.object.Key, off)
	}
	want := b[:max(0, min(int64(len(b)), p.object.Size-off))]
	n, err := p.read(ctx, want, off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (p *pinnedReads) read(ctx context.Context, b []byte, off int64) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	_, body, err := p.store.Read(ctx, p.object, off, int64(len(b)))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	n, err = io.ReadFull(body, b)
	if errors.Is(err, io.EOF) { // the object is as long as it says, so this is a cut
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (p *pinnedReads) Close() error { return nil }
