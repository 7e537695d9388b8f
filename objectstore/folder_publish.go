package objectstore

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// source is a finished file that is to get the name of an object.
type source struct {
	dir  int // descriptor, or AT_FDCWD
	name string
	st   unix.Stat_t // of the version that is published
}

// publish renames src to p in dir under cond, durably. Published tells whether
// the file has moved, also where an error follows.
func (f *Folder) publish(ctx context.Context, p place, dir *parent, src source, cond Cond) (o Object, published bool, err error) {
	if err = ctx.Err(); err != nil {
		return Object{}, false, err
	}
	if cond.IfNoneMatch {
		err = f.publishNew(ctx, dir, src)
	} else {
		err = f.publishOver(ctx, p, dir, src, cond.IfMatch)
	}
	if err != nil {
		return Object{}, false, err
	}
	o, err = publishedObject(p, dir, src)
	return o, true, err
}

// publishedObject tells the new object and makes its name durable.
func publishedObject(p place, dir *parent, src source) (Object, error) {
	st := src.st
	var now unix.Stat_t
	// The rename moved the change time. The rest stays as it was published: if
	// it is otherwise by now, that is another version.
	if err := lstat(dir.fd, dir.name, &now); err == nil && now.Ino == st.Ino {
		st.Ctim = now.Ctim
	}
	return objectOf(p.loc, &st), dir.sync()
}

// publishNew takes no lock: the kernel checks and renames in one step, and a
// name that is there stays there while another write holds the lock.
func (f *Folder) publishNew(ctx context.Context, dir *parent, src source) error {
	err := rename(src, dir, unix.RENAME_NOREPLACE)
	if !is(err, unix.EINVAL, unix.ENOSYS, unix.ENOTSUP) {
		return err
	}
	// A file system without RENAME_NOREPLACE (NFS): link(2) checks as well.
	err = retry(func() error { return unix.Linkat(src.dir, src.name, dir.fd, dir.name, 0) })
	switch {
	case err == nil:
		return unlink(src.dir, src.name, 0)
	case !is(err, unix.EPERM, unix.ENOTSUP, unix.ENOSYS, unix.EMLINK):
		return err
	}
	unlock, err := f.locks.lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	return renameChecked(src, dir)
}

// renameChecked is for file systems that have no rename with a check: it keeps
// out the users of this package alone. The caller holds the lock.
func renameChecked(src source, dir *parent) error {
	var st unix.Stat_t
	switch err := lstat(dir.fd, dir.name, &st); {
	case is(err, unix.ENOENT):
		return rename(src, dir, 0)
	case err != nil:
		return err
	}
	return unix.EEXIST
}

// publishOver replaces what is there, if that is the version match; any, or
// nothing, if match is "".
func (f *Folder) publishOver(ctx context.Context, p place, dir *parent, src source, match string) error {
	unlock, err := f.locks.lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkVersion(p, match); err != nil {
		return err
	}
	return renameOver(src, dir)
}

// checkVersion is ErrChanged unless the object at p is the version match.
func checkVersion(p place, match string) error {
	if match == "" {
		return nil
	}
	var st unix.Stat_t
	err := p.root.stat(p.path, &st)
	switch {
	case absent(err):
		return ErrChanged
	case err != nil:
		return err
	case !isRegular(&st) || !matches(&st, match):
		return ErrChanged
	}
	return nil
}

// renameOver is rename(2), which does nothing at all when both names are links
// of one file: then the source's goes.
func renameOver(src source, dir *parent) error {
	var st unix.Stat_t
	err := lstat(dir.fd, dir.name, &st)
	if err == nil && isDirectory(&st) {
		return unix.EISDIR
	}
	if err == nil && st.Ino == src.st.Ino && st.Dev == src.st.Dev {
		return unlink(src.dir, src.name, 0)
	}
	if err != nil && !is(err, unix.ENOENT) {
		return err
	}
	return rename(src, dir, 0)
}

func rename(src source, dir *parent, flags uint) error {
	err := retry(func() error { return unix.Renameat2(src.dir, src.name, dir.fd, dir.name, flags) })
	if flags == 0 && is(err, unix.EINVAL, unix.ENOSYS) {
		err = retry(func() error { return unix.Renameat(src.dir, src.name, dir.fd, dir.name) })
	}
	return err
}

// sameEntry reports that two names are one and the same directory entry.
func sameEntry(a, b *parent) bool { return a.id == b.id && a.name == b.name }

// errIsChanged turns a missing source into ErrChanged.
func errIsChanged(err error) error {
	if absent(err) {
		return errors.Join(ErrChanged, errText(err))
	}
	return err
}
