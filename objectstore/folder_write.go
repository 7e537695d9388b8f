package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

const (
	putBuffer = 1 << 20  // bytes of a Put in memory
	copyChunk = 64 << 20 // bytes of a Copy between two looks at the context
)

// Put is [Store]'s. Missing directories on the way are made. The file gets the
// mode of opts.Meta, else 0666 less the umask.
func (f *Folder) Put(ctx context.Context, loc Location, r io.ReaderAt, size int64, opts PutOptions) (Object, error) {
	o, err := f.write(ctx, loc, opts, func(file *os.File) error {
		return fill(ctx, file, r, size)
	})
	return o, fail("put", loc, err)
}

// write makes a file beside loc, lets write fill it, and publishes it.
func (f *Folder) write(ctx context.Context, loc Location, opts PutOptions, fill func(*os.File) error) (Object, error) {
	meta, err := parseMeta(opts.Meta)
	if err != nil {
		return Object{}, err
	}
	p, dir, err := f.target(ctx, loc, opts.Cond)
	if err != nil {
		return Object{}, err
	}
	defer dir.close()
	t, err := f.temps.create(ctx, dir, meta.writeID)
	if err != nil {
		return Object{}, err
	}
	defer t.close()
	if err = fill(t.file); err != nil {
		return Object{}, err
	}
	var st unix.Stat_t
	if err = control(t.file, func(fd int) error { return finish(fd, meta, &st) }); err != nil {
		return Object{}, err
	}
	o, published, err := f.publish(ctx, p, dir, source{dir: t.dir, name: t.name, st: st}, opts.Cond)
	if published {
		t.name = ""
	}
	o.Meta = metaOf(&st, meta.writeID)
	return o, err
}

// target is the place and the open directory, made if missing, of an object. A
// condition that asks for a version makes none: nothing can be there.
func (f *Folder) target(ctx context.Context, loc Location, cond Cond) (place, *parent, error) {
	p, err := f.file(loc)
	if err != nil {
		return place{}, nil, err
	}
	if err = ctx.Err(); err != nil {
		return place{}, nil, err
	}
	dir, err := p.openParent(cond.IfMatch == "")
	if cond.IfMatch != "" {
		err = errIsChanged(err)
	}
	return p, dir, err
}

// finish gives an open file its metadata, makes it durable and tells its version.
func finish(fd int, meta fileMeta, st *unix.Stat_t) error {
	if err := meta.apply(fd); err != nil {
		return err
	}
	if err := fsync(fd); err != nil {
		return err
	}
	return fstat(fd, st)
}

// fill copies size bytes of r to the empty file, whose holes it keeps.
func fill(ctx context.Context, file *os.File, r io.ReaderAt, size int64) error {
	if size < 0 {
		return fmt.Errorf("negative size %d", size)
	}
	buf := make([]byte, min(size, putBuffer))
	out := sparse.Writer{File: file}
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if hole := holeAt(r, off, size); hole > 0 {
			if err := out.Skip(hole); err != nil {
				return err
			}
			off += hole
			continue
		}
		b := buf[:min(int64(len(buf)), size-off)]
		n, err := r.ReadAt(b, off)
		if n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read source at %d: %w", off+int64(n), err)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		off += int64(n)
	}
	return out.Finish()
}

// holeAt tells how many bytes of r from off on, of size, lie in a hole: 0 where
// r is no file of this host.
func holeAt(r io.ReaderAt, off, size int64) int64 {
	file, ok := r.(*os.File)
	if !ok {
		return 0
	}
	return min(sparse.NextData(file, off), size) - off
}

// Copy is [Store]'s. The kernel copies, sharing blocks where the file system
// can. Source and target may lie in different buckets.
func (f *Folder) Copy(ctx context.Context, dst Location, src Object, opts PutOptions) (Object, error) {
	o, err := f.copy(ctx, dst, src, opts)
	return o, fail("copy "+src.Key+" to", dst, err)
}

func (f *Folder) copy(ctx context.Context, dst Location, src Object, opts PutOptions) (Object, error) {
	in, st, err := f.openObject(ctx, src)
	if errors.Is(err, ErrNotExist) || absent(err) {
		return Object{}, ErrChanged
	}
	if err != nil {
		return Object{}, err
	}
	defer func() { _ = in.Close() }() // read only
	if opts.Meta == nil {
		var id string
		err := control(in, func(fd int) error { id = writeIDOf(fd); return nil })
		if err != nil {
			return Object{}, err
		}
		opts.Meta = metaOf(st, id)
	}
	return f.write(ctx, dst, opts, func(out *os.File) error {
		return copyVersion(ctx, out, in, src)
	})
}

// copyVersion fails with ErrChanged if the source was changed meanwhile.
func copyVersion(ctx context.Context, out, in *os.File, src Object) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := io.CopyN(out, in, copyChunk)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := control(in, func(fd int) error { return fstat(fd, &st) }); err != nil {
		return err
	}
	if !matches(&st, src.ETag) {
		return ErrChanged
	}
	return nil
}

// Adopt is [Adopter]'s. The file keeps its inode, so that a descriptor on it
// becomes one on the object; nobody may write to it any more. With
// [ErrUnavailable] it may have been moved, its durability unknown: Stat tells. What
// is wrong with the file itself is told by no sentinel: those are the store's.
func (f *Folder) Adopt(ctx context.Context, loc Location, path string, opts PutOptions) (Object, error) {
	o, err := f.adopt(ctx, loc, path, opts)
	return o, fail("adopt "+path+" as", loc, err)
}

func (f *Folder) adopt(ctx context.Context, loc Location, path string, opts PutOptions) (Object, error) {
	meta, err := parseMeta(opts.Meta)
	if err != nil {
		return Object{}, err
	}
	file, before, err := openLocal(path)
	if err != nil {
		return Object{}, errText(err)
	}
	defer func() { _ = file.Close() }() // read only
	p, dir, err := f.target(ctx, loc, opts.Cond)
	if err != nil {
		return Object{}, err
	}
	defer dir.close()
	if dir.id.dev != before.Dev {
		return Object{}, ErrCrossDevice
	}
	var o Object
	err = control(file, func(fd int) error {
		var st unix.Stat_t
		ferr := finish(fd, meta, &st)
		if is(ferr, unix.EROFS, unix.EACCES, unix.EPERM) {
			ferr = errText(ferr)
		}
		published := false
		if ferr == nil {
			o, published, ferr = f.publish(ctx, p, dir, source{dir: unix.AT_FDCWD, name: path, st: st}, opts.Cond)
			o.Meta = metaOf(&st, meta.writeID)
		}
		if !published { // as it was, for the next attempt
			_ = retry(func() error { return unix.Fchmod(fd, before.Mode&modeBits) })
		}
		return ferr
	})
	return o, err
}

// openLocal opens a regular file of this host.
func openLocal(path string) (*os.File, *unix.Stat_t, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	err = control(file, func(fd int) error { return fstat(fd, &st) })
	if err == nil && !isRegular(&st) {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, &st, nil
}
