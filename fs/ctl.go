package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// errCommand: a line of ctl that means nothing.
var errCommand = fmt.Errorf("unknown command: %w", errInvalid)

// ctlNode is .lakefs/ctl: write-only, a line a command, the error of the
// command is the error of the write.
type ctlNode struct {
	fixed
	fs      *FS
	ino     uint64
	owner   fuse.Owner
	command func(ctx context.Context, line string) error // runs a line
}

var (
	_ gofs.NodeGetattrer = (*ctlNode)(nil)
	_ gofs.NodeSetattrer = (*ctlNode)(nil)
	_ gofs.NodeOpener    = (*ctlNode)(nil)
	_ gofs.NodeWriter    = (*ctlNode)(nil)
	_ gofs.NodeFsyncer   = (*ctlNode)(nil)
)

func (n *ctlNode) attributes(a *fuse.Attr) {
	n.fs.fill(a, n.ino, 0, n.fs.started)
	a.Mode, a.Owner = syscall.S_IFREG|0o200, n.owner
}

// Getattr describes a write-only file.
func (n *ctlNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// Setattr takes the truncation that a shell's redirection does.
func (n *ctlNode) Setattr(_ context.Context, _ gofs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.attributes(&out.Attr)
	return 0
}

// Open bypasses the page cache: each write is a command.
func (n *ctlNode) Open(_ context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE == syscall.O_RDONLY {
		return nil, 0, toErrno(objectstore.ErrPermission)
	}
	return &contentHandle{}, fuse.FOPEN_DIRECT_IO, 0
}

// Fsync has nothing to do: a command has run when its write returns.
func (n *ctlNode) Fsync(context.Context, gofs.FileHandle, uint32) syscall.Errno { return 0 }

// Write runs the commands.
func (n *ctlNode) Write(ctx context.Context, _ gofs.FileHandle, data []byte, _ int64) (uint32, syscall.Errno) {
	lines := string(data) // the server takes data back once this returns
	err := n.fs.attended(ctx, func(ctx context.Context) error {
		for line := range strings.SplitSeq(lines, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			if err := n.command(ctx, line); err != nil {
				n.fs.Log.ErrorContext(ctx, "command failed", slog.String("command", line), slog.Any("error", err))
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, toErrno(err)
	}
	return uint32(len(data)), 0
}

// command runs one line of ctl.
func (f *FS) command(ctx context.Context, line string) error {
	verb, rest, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	switch verb {
	case "refresh":
		f.Refresh(strings.Trim(rest, "/"))
		return nil
	case "drain":
		if left := f.settle(ctx); len(left) > 0 {
			return fmt.Errorf("%d files are not published: %w", len(left), errBusy)
		}
		return nil
	case "recover":
		what, id, _ := strings.Cut(rest, " ")
		return f.recover(ctx, what, strings.TrimSpace(id))
	case jobRepair, jobSetFormat:
		return f.runJob(ctx, verb, rest)
	}
	return fmt.Errorf("%q: %w", verb, errCommand)
}

// Refresh drops what is cached of the catalog and of names below path, the
// kernel's part included. It may be called at any time.
func (f *FS) Refresh(path string) {
	f.View.Refresh(path)
	f.dropDentries(path)
}

// recover finishes a kept write, or a rename that is half done, by hand.
func (f *FS) recover(ctx context.Context, what, id string) error {
	if r, ok := f.Area.FindRename(id); ok {
		return f.recoverRename(ctx, what, r.Record())
	}
	if b, ok := f.Area.FindBatch(id); ok {
		return f.recoverBatch(ctx, what, b.Record())
	}
	w, ok := f.Area.Find(id)
	if !ok {
		return fmt.Errorf("write %q: %w", id, objectstore.ErrNotExist)
	}
	if b, ok := f.Area.BatchOf(id); ok {
		return fmt.Errorf("write %q is one of those that %s publishes together: %w", id, b.Record().ID, errBusy)
	}
	if f.ReadOnly {
		return errReadOnly
	}
	leave, err := f.txns.enter(w.Record().Path)
	if err != nil {
		return fmt.Errorf("write %q: %w", id, err)
	}
	defer leave()
	if f.open(id) {
		return fmt.Errorf("write %q: %w", id, errBusy)
	}
	switch what {
	case "publish":
		if w.Record().Hold == staging.Local { // failed, too: it would lie in the store under its private name
			return fmt.Errorf("write %q is a file of this mount alone; a rename to a name that is published publishes it: %w", id, errInvalid)
		}
		return f.publishKept(ctx, w)
	case "abort":
		return f.discard(ctx, w)
	}
	return fmt.Errorf("recover %q: %w", what, errCommand)
}

// byHand is what settles a note, by its id: of a rename, or of files that are published
// together.
func (f *FS) byHand(what string) (func(ctx context.Context, id string) error, error) {
	switch {
	case f.ReadOnly:
		return nil, errReadOnly
	case what == "publish":
		return func(ctx context.Context, id string) error { return f.Committer.Publish(ctx, id, nil) }, nil
	case what == "abort":
		return f.Committer.Abort, nil
	}
	return nil, fmt.Errorf("recover %q: %w", what, errCommand)
}

// recoverRename finishes or forgets a rename by hand. One that is under way is
// waited for.
func (f *FS) recoverRename(ctx context.Context, what string, r staging.Record) error {
	settle, err := f.byHand(what)
	if err != nil {
		return err
	}
	err = settle(ctx, r.ID)
	f.superseded(r.Source.Location)
	f.superseded(r.Target)
	f.Refresh("") // which path leads to the source is not noted
	return err
}

// recoverBatch publishes files together, or takes them back, by hand. One that is under
// way is waited for.
func (f *FS) recoverBatch(ctx context.Context, what string, r staging.Record) error {
	settle, err := f.byHand(what)
	if err != nil {
		return err
	}
	err = settle(ctx, r.ID)
	for _, m := range r.Members {
		f.superseded(m.To.Target)
	}
	f.Refresh(r.Path)
	return err
}

// publishKept publishes a kept write under its name, if that leads to where it was
// written for.
func (f *FS) publishKept(ctx context.Context, w *staging.File) error {
	r := w.Record()
	held, err := f.backups.lockPaths(r.Path)
	if err != nil {
		return err
	}
	defer held.unlock()
	if err = f.secureBackup(ctx, r.Path); err != nil {
		return err
	}
	f.View.Refresh(r.Path) // where it leads is asked anew
	published := f.Committer.Publish(ctx, r.ID, func(ctx context.Context, path string) (objectstore.Location, error) {
		t, err := f.View.Resolve(ctx, path)
		return t.Location, err
	})
	if published != nil && unregistered(published) == nil {
		return published
	}
	f.replaced(r.Path)
	f.forgetKept(r.ID)
	f.superseded(r.Target)
	if n, err := f.View.Lookup(ctx, r.Path); err == nil {
		f.remember(r.Path, n.Object, r.Attributes)
	}
	f.Refresh(r.Path)
	return published
}

// discard drops a kept write whose writer is gone.
func (f *FS) discard(ctx context.Context, w *staging.File) error {
	if f.open(w.ID()) {
		return errBusy
	}
	f.forgetKept(w.ID())
	err := f.Committer.Abort(ctx, w.ID())
	if errors.Is(err, objectstore.ErrNotExist) {
		return nil
	}
	return err
}

// open reports whether a program has the write open.
func (f *FS) open(id string) bool {
	s := f.names.writerOf(id)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles > 0
}

// forgetKept takes the name from a kept write that is being finished by hand.
func (f *FS) forgetKept(id string) {
	s := f.names.writerOf(id)
	if s == nil {
		return
	}
	s.mu.Lock()
	was := s.ended
	s.ended = true
	s.mu.Unlock()
	if was {
		return
	}
	f.names.dropWriter(s)
	s.file.Release()
	f.names.release(s.name)
}

// shown is the path of a write in the mount.
func (f *FS) shown(w *staging.File) string { return w.Record().Path }

func attrPath(path string) slog.Attr { return slog.String("path", path) }
func attrWrite(id string) slog.Attr  { return slog.String("write_id", id) }
