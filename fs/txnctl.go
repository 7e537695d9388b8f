package fs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/google/uuid"
	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// transactionCtl returns the ctl of a transaction, which belongs to who opened it. Its
// lines are
//
//	commit            publishes all files, or none
//	overwrite         and first clears the partitions that are written; of a table
//	                  without partitions, or with dynamic-partition-overwrite off, all
//	overwrite dt=X/   and first clears every partition below that prefix
//	overwrite *       and first clears the table
//	abort             drops the files
//
// "--job ID" behind the verb gives the job in jobs.json a name.
func (d *dirNode) transactionCtl(ctx context.Context, root string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	work, cancel := d.fs.work(ctx)
	defer cancel()
	n, err := d.fs.lookup(work, root)
	if err != nil {
		return nil, d.fs.fail("lookup", root, err)
	}
	c := &ctlNode{fs: d.fs, ino: d.fs.names.inode(child(root, transactionControl))}
	c.command = func(ctx context.Context, line string) error { return d.fs.transactionCommand(ctx, root, line) }
	var of fuse.Attr
	d.fs.dirAttributes(&of, c.ino, n)
	c.owner = of.Owner
	c.attributes(&out.Attr)
	return d.NewInode(ctx, c, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: c.ino, Gen: d.fs.ctls.Add(1)}), 0
}

// transactionCommand runs one line, as a job.
func (f *FS) transactionCommand(ctx context.Context, root, line string) error {
	verb, rest, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	options, scope, err := jobOptions(verb, rest)
	switch {
	case err != nil:
	case verb != "commit" && verb != "abort" && verb != "overwrite":
		err = fmt.Errorf("%q: %w", verb, errCommand)
	case verb != "overwrite" && scope != "":
		err = fmt.Errorf("%s: what is %q behind it: %w", verb, scope, errCommand)
	}
	if options.id == "" {
		options.id = uuid.NewString()
	}
	j := f.jobs.begin(options.id, verb, root)
	var result any
	if err == nil {
		result, err = f.runTransaction(ctx, root, verb, scope, j)
	}
	j.end(result, err)
	return err
}

func (f *FS) runTransaction(ctx context.Context, root, verb, scope string, j *job) (any, error) {
	if f.ReadOnly {
		return nil, errReadOnly
	}
	if !f.txns.begin(root) {
		return nil, errTransactionBusy
	}
	defer f.txns.end(root)
	if !f.hasLocal(root) {
		return nil, errNoTransaction
	}
	if verb == "abort" {
		return nil, f.abortTransaction(ctx, root)
	}
	if err := f.mayCreate(); err != nil {
		return nil, err
	}
	if verb == "overwrite" && f.local.isHalf(root) {
		return nil, errHalfOverwritten
	}
	f.publishing.begin()
	defer f.publishing.end()
	t := newTransaction(f, root)
	defer t.tellKernel() // of what is so by now, with no file held any more
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
	f.dropKept(ctx, root)
	f.endTransaction(ctx, root)
	return nil
}

// dropKept drops what no name of a transaction leads to: files that were torn or failed,
// and were written anew, or go with it.
func (f *FS) dropKept(ctx context.Context, root string) {
	for _, w := range f.Area.Files() {
		if r := w.Record(); below(r.Path, root) && w.Dirty() {
			if err := f.discard(ctx, w); err != nil {
				f.Log.WarnContext(ctx, "a file of a transaction that is over stays", attrPath(r.Path), slog.Any("error", err))
			}
		}
	}
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
