package fs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// transactionCtl is the ctl of a transaction: write-only, a line a command, whose error
// is the error of the write. It belongs to who opened the transaction.
//
//	commit            publishes all files, or none
//	overwrite         and first clears the partitions that are written; of a table
//	                  without partitions, or with dynamic-partition-overwrite off, all
//	overwrite dt=X/   and first clears every partition below that prefix
//	overwrite *       and first clears the table
//	abort             drops the files
//
// "--job ID" behind the verb gives the job in jobs.json a name.
type transactionCtl struct {
	ctlNode
	root string
	mode fuse.Attr // of the transaction
}

var (
	_ gofs.NodeGetattrer = (*transactionCtl)(nil)
	_ gofs.NodeSetattrer = (*transactionCtl)(nil)
	_ gofs.NodeWriter    = (*transactionCtl)(nil)
)

// transactionControl returns the node.
func (d *dirNode) transactionControl(ctx context.Context, root string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	work, cancel := d.fs.work(ctx)
	defer cancel()
	n, err := d.fs.lookup(work, root)
	if err != nil {
		return nil, d.fs.fail("lookup", root, err)
	}
	path := child(root, transactionControl)
	c := &transactionCtl{ctlNode: ctlNode{fs: d.fs, ino: d.fs.names.inode(path)}, root: root}
	d.fs.dirAttributes(&c.mode, c.ino, n)
	c.attributes(&out.Attr)
	return d.NewInode(ctx, c, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: c.ino, Gen: 1}), 0
}

func (c *transactionCtl) attributes(a *fuse.Attr) {
	c.ctlNode.attributes(a)
	a.Uid, a.Gid = c.mode.Uid, c.mode.Gid
}

// Getattr describes a write-only file.
func (c *transactionCtl) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	c.attributes(&out.Attr)
	return 0
}

// Setattr takes the truncation that a shell's redirection does.
func (c *transactionCtl) Setattr(_ context.Context, _ gofs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	c.attributes(&out.Attr)
	return 0
}

// Write runs the commands.
func (c *transactionCtl) Write(_ context.Context, _ gofs.FileHandle, data []byte, _ int64) (uint32, syscall.Errno) {
	ctx, cancel := c.fs.lasting()
	defer cancel()
	for line := range strings.SplitSeq(string(data), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := c.fs.transactionCommand(ctx, c.root, line); err != nil {
			c.fs.Log.ErrorContext(ctx, "command failed", attrPath(c.root), slog.String("command", line), slog.Any("error", err))
			return 0, toErrno(err)
		}
	}
	return uint32(len(data)), 0
}

// transactionCommand runs one line, as a job.
func (f *FS) transactionCommand(ctx context.Context, root, line string) error {
	verb, rest, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	id := ""
	if given, ok := strings.CutPrefix(rest, "--job "); ok {
		id, rest, _ = strings.Cut(given, " ")
	}
	switch {
	case verb == "overwrite":
	case rest != "":
		return fmt.Errorf("%q: %w", line, errCommand)
	case verb != "commit" && verb != "abort":
		return fmt.Errorf("%q: %w", verb, errCommand)
	}
	if f.ReadOnly {
		return errReadOnly
	}
	if !f.txns.begin(root) {
		return errTransactionBusy
	}
	defer f.txns.end(root)
	if !f.hasLocal(root) {
		return errNoTransaction
	}
	j := f.jobs.begin(id, verb, root)
	result, err := f.runTransaction(ctx, root, verb, rest, j)
	j.end(result, err)
	f.dropDentries(root)
	return err
}

func (f *FS) runTransaction(ctx context.Context, root, verb, scope string, j *job) (any, error) {
	if verb == "abort" {
		return nil, f.abortTransaction(ctx, root)
	}
	if err := f.mayCreate(); err != nil {
		return nil, err
	}
	f.publishing.begin()
	defer f.publishing.end()
	t := newTransaction(f, root)
	return t.commit(ctx, verb, scope, j)
}

// abortTransaction drops the staged files of a transaction, and nothing that was
// published (rule 33): it does what rm -r does.
func (f *FS) abortTransaction(ctx context.Context, root string) error {
	for _, s := range f.names.stagedTree(root) {
		if err := f.unlinkStaged(ctx, s.path); err != nil {
			f.Log.WarnContext(ctx, "a file of an aborted transaction stays", attrPath(s.path), slog.Any("error", err))
			return err
		}
	}
	for _, w := range f.Area.Files() { // torn and failed ones
		if r := w.Record(); below(r.Path, root) && w.Dirty() {
			if err := f.discard(ctx, w); err != nil {
				f.Log.WarnContext(ctx, "a file of an aborted transaction stays", attrPath(r.Path), slog.Any("error", err))
				return err
			}
		}
	}
	f.endTransaction(ctx, root)
	return nil
}

// endTransaction removes the directory of a transaction with no file.
func (f *FS) endTransaction(ctx context.Context, root string) {
	for _, path := range append(f.local.below(root), root) {
		if t, err := f.View.Resolve(ctx, path); err == nil {
			f.Attr.Delete(attrKey(t.Directory()))
			f.Attr.Delete(timeKey(t.Directory()))
		}
	}
	f.warnLocal(root, f.local.remove(root))
	f.names.removeTree(root)
}
