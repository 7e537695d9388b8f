package fs

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// redirect begins a new version of the name for the calling thread and answers
// ESTALE, upon which the kernel looks the name up again and gets the staged node.
func (o *objectNode) redirect(ctx context.Context, flags uint32) syscall.Errno {
	tid := thread(ctx)
	work, cancel := o.fs.background()
	defer cancel()
	s, err := o.newVersion(work, flags)
	if errors.Is(err, objectstore.ErrNotExist) {
		return toErrno(errSuperseded) // the second look-up will say so
	}
	if err != nil {
		return o.fs.fail("open for writing", o.path(), err)
	}
	o.fs.names.promise(s, tid, s.abandon)
	return toErrno(errSuperseded)
}

// newVersion returns a staged node that begins as the object is now. O_APPEND
// opens of one name share one.
func (o *objectNode) newVersion(ctx context.Context, flags uint32) (*stagedNode, error) {
	if o.insertOnly {
		return nil, table.ErrInsertOnly
	}
	path, ok := o.fs.names.pathOf(o.name)
	if !ok {
		return nil, objectstore.ErrNotExist
	}
	// The precondition is taken here, from the store: a cached one would refuse
	// a good write, one taken at the publish would lose another's.
	base, err := o.fs.Store.Stat(ctx, o.object().Location)
	if err != nil {
		return nil, err
	}
	if err := o.fs.mayChange(base, WriteOverwrite); err != nil {
		return nil, err
	}
	if flags&syscall.O_APPEND != 0 && flags&syscall.O_TRUNC == 0 {
		if s := o.fs.names.appender(o.name); s != nil {
			return s, nil
		}
	}
	t, err := o.fs.View.Resolve(ctx, path)
	if err != nil {
		return nil, err
	}
	w := newWrite(path, t)
	w.Cond = objectstore.Cond{IfMatch: base.Match}
	w.Base = &base
	w.Append = flags&syscall.O_APPEND != 0
	w.Attributes = o.fs.baseAttributes(base)
	return o.fs.stage(ctx, w, false)
}

// baseAttributes are those that a new version takes over from the old one.
func (f *FS) baseAttributes(o objectstore.Object) staging.Attributes {
	mode := f.FileMode
	if m, ok := metaMode(o.Meta); ok {
		mode = m
	}
	a := staging.Attributes{Mode: uint32(mode), UID: f.UID, GID: f.GID, MTime: o.ModTime}
	set, _ := f.Attr.Get(attrKey(o.Location), o.ETag)
	if set.Mode != nil {
		a.Mode = *set.Mode
	}
	if set.UID != nil {
		a.UID = *set.UID
	}
	if set.GID != nil {
		a.GID = *set.GID
	}
	return a
}

// metaMode reads the mode that an object's metadata holds, masked to 0777.
func metaMode(meta map[string]string) (os.FileMode, bool) {
	m, err := strconv.ParseUint(meta[objectstore.MetaMode], 8, 32)
	if err != nil {
		return 0, false
	}
	return os.FileMode(m) & os.ModePerm, true
}
