package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stat is [Store]'s. Meta holds the file's mode and mtime, and its write id.
func (f *Folder) Stat(ctx context.Context, loc Location) (Object, error) {
	o, err := f.stat(ctx, loc)
	return o, fail("stat", loc, err)
}

func (f *Folder) stat(ctx context.Context, loc Location) (Object, error) {
	p, err := f.place(loc)
	if err != nil {
		return Object{}, err
	}
	if err = ctx.Err(); err != nil {
		return Object{}, err
	}
	fd, err := p.root.resolve(p.path, unix.O_PATH)
	if isNotFollowed(err) {
		return Object{}, p.hidden()
	}
	if err != nil {
		return Object{}, err
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return Object{}, err
	}
	o := objectOf(loc, &st)
	switch {
	case p.directory && isDirectory(&st):
		o.Meta = metaOf(&st, "")
	case !p.directory && isRegular(&st):
		o.Meta = metaOf(&st, writeIDOf(fd))
	case isDirectory(&st):
		return Object{}, errNamesDirectory
	case isRegular(&st):
		return Object{}, ErrNotExist
	default:
		return Object{}, errHiddenName
	}
	return o, nil
}

// hidden tells why a path on which some link is not followed is not there: the
// name itself is that link, or what is above it is not there.
func (p place) hidden() error {
	dir, err := p.openParent(false)
	if err != nil {
		return err
	}
	defer dir.close()
	var st unix.Stat_t
	switch err := lstat(dir.fd, dir.name, &st); {
	case err != nil:
		return err
	case !isLink(&st): // it was replaced meanwhile
		return ErrNotExist
	}
	return errHiddenName
}

// OpenObject is [Opener]'s. A change in place by another program shows through
// the descriptor; compare the version again, or use [Pin].
func (f *Folder) OpenObject(ctx context.Context, o Object) (*os.File, error) {
	file, _, err := f.openObject(ctx, o)
	return file, fail("open", o.Location, err)
}

func (f *Folder) openObject(ctx context.Context, o Object) (*os.File, *unix.Stat_t, error) {
	file, st, err := f.openAny(ctx, o.Location)
	if err == nil && !matches(st, o.ETag) {
		return nil, nil, errors.Join(ErrChanged, file.Close())
	}
	return file, st, err
}

// openAny opens the version that is at loc now.
func (f *Folder) openAny(ctx context.Context, loc Location) (*os.File, *unix.Stat_t, error) {
	p, err := f.place(loc)
	if err != nil {
		return nil, nil, err
	}
	if p.directory {
		return nil, nil, ErrDirectory
	}
	if err = ctx.Err(); err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	file, err := p.root.openFile(p.path, &st)
	if err != nil {
		return nil, nil, err
	}
	return file, &st, nil
}

// Read is [Store]'s. The body fails with [ErrChanged] at the first bytes that
// may be of a later version, because the file was changed in place.
func (f *Folder) Read(ctx context.Context, o Object, off, n int64) (Object, io.ReadCloser, error) {
	if off < 0 || n < 0 {
		return Object{}, nil, fail("read", o.Location, fmt.Errorf("negative range %d+%d", off, n))
	}
	open := f.openObject
	if o.ETag == "" {
		open = func(ctx context.Context, o Object) (*os.File, *unix.Stat_t, error) { return f.openAny(ctx, o.Location) }
	}
	file, st, err := open(ctx, o)
	if err != nil {
		return Object{}, nil, fail("read", o.Location, err)
	}
	got := objectOf(o.Location, st)
	body := &fileBody{ctx: ctx, file: file, object: got, off: off, left: max(0, min(n, got.Size-off))}
	return got, body, nil
}

// fileBody is a range of one version of a file. The context is the call's own:
// a body lives no longer than the call that asked for it.
type fileBody struct {
	ctx       context.Context //nolint:containedctx // an io.Reader has no other place for it
	file      *os.File
	object    Object
	off, left int64
}

func (b *fileBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if err := b.ctx.Err(); err != nil {
		return 0, fail("read", b.object.Location, err)
	}
	n, err := readVersion(b.file, b.object, p[:min(int64(len(p)), b.left)], b.off)
	b.off += int64(n)
	b.left -= int64(n)
	if errors.Is(err, io.EOF) && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *fileBody) Close() error { return b.file.Close() }

// readVersion is ReadAt that answers with bytes of o's version only. It looks
// after the read: a writer moves the mtime before it changes a byte.
func readVersion(file *os.File, o Object, p []byte, off int64) (int, error) {
	n, err := file.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fail("read", o.Location, err)
	}
	if serr := sameVersion(file, o); serr != nil {
		return 0, serr
	}
	return n, err
}

// sameVersion is nil while the file holds o's version.
func sameVersion(file *os.File, o Object) error {
	var st unix.Stat_t
	err := control(file, func(fd int) error { return fstat(fd, &st) })
	if err == nil && !matches(&st, o.ETag) {
		err = ErrChanged
	}
	return fail("read", o.Location, err)
}
