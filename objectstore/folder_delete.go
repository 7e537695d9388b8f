package objectstore

import (
	"context"
	"errors"
	"iter"
	"strings"

	"golang.org/x/sys/unix"
)

// Delete is [Store]'s. It is durable once the iteration has ended; outcomes of
// one directory come before that, the last of them with the sync's. A directory
// under a file's key is [ErrDirectory]; what is not shown (a link that leaves
// the folder, a pipe) is not there, and stays.
func (f *Folder) Delete(ctx context.Context, locs []Location) iter.Seq2[Location, error] {
	return func(yield func(Location, error) bool) {
		var changed *parent // not yet durable
		defer func() {
			if changed != nil { // the consumer left: nobody is there to hear of it
				_ = changed.syncClose()
			}
		}()
		for i, loc := range locs {
			dir, err := f.delete(ctx, loc)
			switch {
			case dir == nil:
			case changed == nil:
				changed = dir
			default: // the same directory: it is settled whenever the next is another
				dir.close()
			}
			last := i == len(locs)-1 || parentKey(locs[i+1]) != parentKey(loc)
			if last && changed != nil {
				err = errors.Join(err, changed.syncClose())
				changed = nil
			}
			if !yield(loc, fail("delete", loc, err)) {
				return
			}
		}
	}
}

// syncClose is sync and close.
func (d *parent) syncClose() error {
	defer d.close()
	return d.sync()
}

// parentKey is the location of the directory that holds loc.
func parentKey(loc Location) Location {
	dir, _ := place{path: strings.TrimSuffix(loc.Key, "/")}.split()
	return Location{Bucket: loc.Bucket, Key: dir}
}

// delete removes one name; it returns the directory it was in if it did.
func (f *Folder) delete(ctx context.Context, loc Location) (*parent, error) {
	p, err := f.place(loc)
	switch {
	case err != nil:
		return nil, err
	case p.path == "":
		return nil, unix.EPERM
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	dir, err := p.openParent(false)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	removed, err := f.deleteName(ctx, p, dir)
	if !removed {
		dir.close()
		return nil, err
	}
	return dir, err
}

func (f *Folder) deleteName(ctx context.Context, p place, dir *parent) (removed bool, err error) {
	unlock, err := f.locks.lock(ctx, dir)
	if err != nil {
		return false, err
	}
	defer unlock()
	var name, st unix.Stat_t
	err = lstat(dir.fd, dir.name, &name)
	if err == nil {
		err = p.root.stat(p.path, &st)
	}
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, err
	case p.directory && isDirectory(&st):
		if isLink(&name) {
			return false, unix.EPERM // it may be removed where it lies
		}
		err = unlink(dir.fd, dir.name, unix.AT_REMOVEDIR)
		if is(err, unix.EEXIST) {
			err = unix.ENOTEMPTY
		}
	case isDirectory(&st):
		return false, ErrDirectory
	case !p.directory && isRegular(&st):
		err = unlink(dir.fd, dir.name, 0)
	default:
		return false, nil
	}
	if is(err, unix.ENOENT) {
		err = nil
	}
	return err == nil, err
}
