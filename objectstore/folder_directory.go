package objectstore

import (
	"context"

	"golang.org/x/sys/unix"
)

// MakeDirectory is [Directories]'. It is durable, with mode 0777 less the umask.
func (f *Folder) MakeDirectory(ctx context.Context, loc Location) error {
	return fail("make directory", loc, f.makeDirectory(ctx, loc))
}

func (f *Folder) makeDirectory(ctx context.Context, loc Location) error {
	dir, err := f.directory(ctx, loc)
	if err != nil {
		return err
	}
	defer dir.close()
	if err := mkdir(dir.fd, dir.name); err != nil {
		return err
	}
	return dir.sync()
}

// directory opens what holds a directory below the root.
func (f *Folder) directory(ctx context.Context, loc Location) (*parent, error) {
	p, err := f.place(loc)
	switch {
	case err != nil:
		return nil, err
	case !p.directory:
		return nil, ErrName
	case p.path == "":
		return nil, unix.EEXIST
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return p.openParent(false)
}

// RenameDirectory is [Directories]'. A directory that is reached by a symbolic
// link is [ErrCrossDevice].
func (f *Folder) RenameDirectory(ctx context.Context, dst, src Location) error {
	return fail("rename directory "+src.Key+" to", dst, f.renameDirectory(ctx, dst, src))
}

func (f *Folder) renameDirectory(ctx context.Context, dst, src Location) error {
	in, err := f.directory(ctx, src)
	if err != nil {
		return err
	}
	defer in.close()
	out, err := f.directory(ctx, dst)
	if err != nil {
		return err
	}
	defer out.close()
	s := source{dir: in.fd, name: in.name}
	if err = lstat(s.dir, s.name, &s.st); err != nil {
		return err
	}
	switch {
	case isLink(&s.st):
		return ErrCrossDevice
	case !isDirectory(&s.st):
		return ErrNotExist
	}
	switch err = rename(s, out, 0); {
	case is(err, unix.EEXIST, unix.ENOTEMPTY):
		return ErrNotEmpty
	case is(err, unix.ENOTDIR): // a file has the name
		return unix.EEXIST
	case err != nil:
		return err
	}
	if err := out.sync(); err != nil || in.id == out.id {
		return err
	}
	return in.sync()
}
