package objectstore

import (
	"context"

	"golang.org/x/sys/unix"
)

// Rename is [Renamer]'s. Missing directories on the way to dst are made. A
// source that is a symbolic link is [ErrCrossDevice]: its target lies elsewhere.
func (f *Folder) Rename(ctx context.Context, dst Location, src Object, cond Cond) (Object, error) {
	o, err := f.rename(ctx, dst, src, cond)
	return o, fail("rename "+src.Key+" to", dst, err)
}

func (f *Folder) rename(ctx context.Context, dst Location, src Object, cond Cond) (Object, error) {
	from, err := f.file(src.Location)
	if err != nil {
		return Object{}, err
	}
	in, err := from.openParent(false)
	if err != nil {
		return Object{}, errIsChanged(err)
	}
	defer in.close()
	to, out, err := f.target(ctx, dst, cond)
	if err != nil {
		return Object{}, err
	}
	defer out.close()
	s := source{dir: in.fd, name: in.name}
	var id string
	if err = f.renameLocked(ctx, &s, &id, renaming{src: src, in: in, to: to, out: out, cond: cond}); err != nil {
		return Object{}, err
	}
	o, err := publishedObject(to, out, s)
	if err == nil && in.id != out.id {
		err = in.sync()
	}
	o.Meta = metaOf(&s.st, id)
	return o, err
}

// renaming is one rename, with both directories open.
type renaming struct {
	src     Object
	in, out *parent
	to      place
	cond    Cond
}

// renameLocked checks both ends and renames, as one step; it fills s.st and the
// write id.
func (f *Folder) renameLocked(ctx context.Context, s *source, id *string, r renaming) error {
	unlock, err := f.locks.lock(ctx, r.in, r.out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.version(r.src, id); err != nil {
		return err
	}
	if r.cond.IfNoneMatch {
		err := rename(*s, r.out, unix.RENAME_NOREPLACE)
		if is(err, unix.EINVAL, unix.ENOSYS, unix.ENOTSUP) {
			err = renameChecked(*s, r.out)
		}
		return err
	}
	if err := checkVersion(r.to, r.cond.IfMatch); err != nil || sameEntry(r.in, r.out) {
		return err
	}
	return renameOver(*s, r.out)
}

// version fills s.st, and is ErrChanged unless the name is o's version.
func (s *source) version(o Object, id *string) error {
	if err := lstat(s.dir, s.name, &s.st); err != nil {
		return errIsChanged(err)
	}
	if isLink(&s.st) {
		return ErrCrossDevice
	}
	if !isRegular(&s.st) || !matches(&s.st, o.ETag) {
		return ErrChanged
	}
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(s.dir, s.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return errIsChanged(err)
	}
	defer closeFD(fd)
	*id = writeIDOf(fd)
	return nil
}
