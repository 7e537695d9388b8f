package fs

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// redirect begins a new version of the name for the calling thread and answers
// ESTALE, upon which the kernel looks the name up again and gets the staged node.
func (o *objectNode) redirect(ctx context.Context, flags uint32) syscall.Errno {
	return o.fs.redirect(ctx, o.name, flags)
}

func (f *FS) redirect(ctx context.Context, n *name, flags uint32) syscall.Errno {
	tid := thread(ctx)
	work, cancel := f.background()
	defer cancel()
	path, ok := f.names.pathOf(n)
	if !ok { // replaced since the look-up: there is one more, so it must lead to a version to write
		cancel()
		return f.reopen(ctx, n, flags)
	}
	if s := f.names.leads(n); s != nil {
		f.names.promise(s, tid, s.unclaimed)
		return toErrno(errSuperseded)
	}
	s, err := f.newVersion(work, n, flags)
	if errors.Is(err, objectstore.ErrNotExist) {
		return toErrno(errSuperseded) // the second look-up will say so
	}
	if err != nil {
		return f.fail("open for writing", path, err)
	}
	f.names.promise(s, tid, s.abandon)
	return toErrno(errSuperseded)
}

// reopen sends the calling thread from a version that has ended to what the
// name leads to now; the one more look-up that the kernel makes must suffice.
func (f *FS) reopen(ctx context.Context, n *name, flags uint32) syscall.Errno {
	if flags&syscall.O_ACCMODE == syscall.O_RDONLY && flags&syscall.O_TRUNC == 0 {
		f.names.turnAway(n, thread(ctx))
		return toErrno(errSuperseded)
	}
	work, cancel := f.background()
	defer cancel()
	path, _ := f.names.pathOf(n)
	now, err := f.lookup(work, path)
	if err != nil || now.Kind != catalogview.KindObject {
		return toErrno(errSuperseded)
	}
	nm := f.names.acquire(path)
	defer f.names.release(nm)
	return f.redirect(ctx, nm, flags)
}

// newVersion returns a staged node, reserved for one open, that begins as the
// object at n's path is now. O_APPEND opens of one name share one.
func (f *FS) newVersion(ctx context.Context, n *name, flags uint32) (*stagedNode, error) {
	path, _ := f.names.pathOf(n)
	t, err := f.View.Resolve(ctx, path)
	if err != nil {
		return nil, err
	}
	if t.Table.InsertOnly() && !t.Hidden {
		return nil, table.ErrInsertOnly
	}
	if belowStagingTree(path) {
		return nil, errWriteLevel // another's: rule 24
	}
	for {
		s, err := f.beginVersion(ctx, n, newWrite(path, t), flags)
		if !errors.Is(err, objectstore.ErrChanged) || ctx.Err() != nil {
			return s, err
		}
		// Replaced between the look at it and its being opened: an overwrite
		// has no wrong version to begin as.
	}
}

// beginVersion is newVersion; ErrChanged if the object was replaced meanwhile.
func (f *FS) beginVersion(ctx context.Context, n *name, w staging.NewWrite, flags uint32) (*stagedNode, error) {
	// The precondition is taken here, from the store: a cached one would refuse
	// a good write, one taken at the publish would lose another's.
	base, err := f.Store.Stat(ctx, w.Target)
	if errors.Is(err, objectstore.ErrNotExist) {
		f.superseded(w.Target)
	}
	if err != nil {
		return nil, err
	}
	if err = f.mayChange(base, WriteOverwrite); err != nil {
		return nil, err
	}
	if flags&syscall.O_APPEND != 0 && flags&syscall.O_TRUNC == 0 {
		if s := f.names.appender(n); s != nil {
			return s, nil
		}
	}
	if s := f.names.waiting(n); s != nil {
		if s.file.Record().Cond.IfMatch == base.Match {
			return s, nil
		}
		// Another's version came: this one could only fail, and has no bytes to keep.
		s.release()
		s.unlink()
	}
	w.Cond = objectstore.Cond{IfMatch: base.Match}
	w.Base = &base
	w.Append = flags&syscall.O_APPEND != 0
	w.Attributes = f.baseAttributes(base)
	return f.stage(ctx, w, false)
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
	if set.MTime != nil {
		a.MTime = *set.MTime
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
