package fs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// A transaction is the commit of several files of a table at once ("Several files at
// once"). While it is open it is a directory TABLE/.lakefs/txn/ID, which works as a
// staging tree does: its directories live in the mount alone, its files are staged and
// nobody lists them but who looks there. A line in its ctl publishes them, each at the
// place below the table that it has below the directory.

// transactionsName is the directory of a table's transactions, in its control directory.
const transactionsName = "txn"

// transactionControl is what a transaction takes its commands by; no file of it can
// have that name.
const transactionControl = "ctl"

// transactionID tells a name that a transaction can have.
var transactionID = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)

var (
	errTransactionID   = fmt.Errorf("a transaction's name is 1 to 64 letters, digits, \".\", \"_\" and \"-\": %w", errInvalid)
	errTransactionBusy = fmt.Errorf("the transaction is being committed: %w", errBusy)
	errHalfOverwritten = fmt.Errorf("an overwrite of it published a part, which another would clear: commit the rest: %w", errInvalid)
	errNoTransaction   = fmt.Errorf("no such transaction is open: %w", objectstore.ErrNotExist)
)

// transactionOf returns the path of the transaction that path is, or lies in; ok is
// false if it is in none.
func transactionOf(path string) (root string, ok bool) {
	parts := strings.SplitN(path, "/", 6)
	if len(parts) < 5 || parts[2] != controlName || parts[3] != transactionsName || parts[4] == "" {
		return "", false
	}
	return strings.Join(parts[:5], "/"), true
}

// InTransaction reports whether r is of a file of an open transaction, which stays until
// it is committed, dropped or removed: it is for [staging.Options].
func InTransaction(r staging.Record) bool { return inTransaction(r.Path) }

// inTransaction reports whether path is a transaction, or lies in one.
func inTransaction(path string) bool {
	_, ok := transactionOf(path)
	return ok
}

// finalPath is where a path in a transaction goes with its commit. ok is false for a
// transaction itself, and for what is in none.
func finalPath(path string) (final string, ok bool) {
	root, ok := transactionOf(path)
	if !ok || root == path {
		return "", false
	}
	return child(tableOf(root), path[len(root)+1:]), true
}

// tableOf is the path of the table that path lies below.
func tableOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return child(parts[0], parts[1])
}

// isTransactionControl reports whether path is the ctl of a transaction.
func isTransactionControl(path string) bool {
	dir, base := parent(path)
	root, ok := transactionOf(path)
	return ok && root == dir && base == transactionControl
}

// mayUse refuses a new name in a transaction that is not open. Who asks has entered it.
func (f *FS) mayUse(path string) error {
	root, ok := transactionOf(path)
	if ok && root != path && !f.local.has(root) && !f.names.stagedBelow(root) {
		return errNoTransaction
	}
	return nil
}

// mayLand refuses what could not go where its commit would have it: the rules of names
// are told when a name is made, not when all is written.
func (f *FS) mayLand(ctx context.Context, path string, directory bool) error {
	final, ok := finalPath(path)
	if !ok {
		return nil
	}
	_, err := f.View.Resolve(ctx, final)
	if err != nil || !directory {
		return err
	}
	n, err := f.lookup(ctx, final)
	switch {
	case err == nil && !n.Kind.Directory():
		return errNotDirectory
	case err == nil:
		return nil
	case !errors.Is(err, objectstore.ErrNotExist):
		return err
	}
	dir, _ := parent(path)
	above, _ := parent(final)
	_, err = f.View.ResolveDirectory(ctx, final, append(f.localIn(above), f.local.children(dir)...)...)
	return err
}

// transactionsDir is TABLE/.lakefs/txn: mkdir opens a transaction, rmdir aborts one that
// is empty. It lists those that are open.
type transactionsDir struct {
	fixed
	fs  *FS
	of  *dirNode
	ino uint64
}

var (
	_ gofs.NodeLookuper  = (*transactionsDir)(nil)
	_ gofs.NodeReaddirer = (*transactionsDir)(nil)
	_ gofs.NodeGetattrer = (*transactionsDir)(nil)
	_ gofs.NodeMkdirer   = (*transactionsDir)(nil)
	_ gofs.NodeRmdirer   = (*transactionsDir)(nil)
)

// transactionsOf returns the node of the table at dir.
func (c *controlDir) transactionsOf(ctx context.Context, dir string, out *fuse.EntryOut) *gofs.Inode {
	t := &transactionsDir{fs: c.fs, of: c.of, ino: c.fs.names.inode(child(child(dir, controlName), transactionsName))}
	t.attributes(&out.Attr)
	return c.NewInode(ctx, t, gofs.StableAttr{Mode: syscall.S_IFDIR, Ino: t.ino, Gen: 1})
}

func (t *transactionsDir) attributes(a *fuse.Attr) {
	t.fs.fill(a, t.ino, 0, t.fs.started)
	t.fs.owned(a, t.fs.DirMode)
	a.Mode = syscall.S_IFDIR | a.Mode&0o777 | syscall.S_ISVTX // each transaction is its owner's
}

// path is that of the directory itself.
func (t *transactionsDir) path() (string, error) {
	dir, err := t.of.path()
	if err != nil {
		return "", err
	}
	return child(child(dir, controlName), transactionsName), nil
}

// Getattr describes a directory in which transactions are made and removed.
func (t *transactionsDir) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	t.attributes(&out.Attr)
	return 0
}

// Lookup finds an open transaction.
func (t *transactionsDir) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := t.path()
	if err != nil {
		return nil, toErrno(err)
	}
	root := child(dir, base)
	if !transactionID.MatchString(base) || !t.fs.hasLocal(root) {
		return nil, toErrno(objectstore.ErrNotExist)
	}
	return t.node(ctx, root, out)
}

func (t *transactionsDir) node(ctx context.Context, root string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	work, cancel := t.fs.work(ctx)
	defer cancel()
	n, err := t.fs.lookup(work, root)
	if err != nil {
		return nil, t.fs.fail("lookup", root, err)
	}
	out.SetEntryTimeout(0) // it is over as soon as it is committed
	out.SetAttrTimeout(0)
	return t.fs.directoryInode(ctx, t.EmbeddedInode(), n, out), 0
}

// Readdir lists the open transactions.
func (t *transactionsDir) Readdir(context.Context) (gofs.DirStream, syscall.Errno) {
	dir, err := t.path()
	if err != nil {
		return nil, toErrno(err)
	}
	var list []fuse.DirEntry
	for _, base := range t.fs.openTransactions(dir) {
		list = append(list, fuse.DirEntry{Name: base, Mode: syscall.S_IFDIR, Ino: t.fs.names.inode(child(dir, base))})
	}
	return gofs.NewListDirStream(list), 0
}

// openTransactions are the names of those in a transactionsDir.
func (f *FS) openTransactions(dir string) []string {
	open := make(map[string]struct{})
	for _, base := range append(f.local.children(dir), f.names.stagedDirectories(dir)...) {
		open[base] = struct{}{}
	}
	return sortedKeys(open)
}

// Mkdir opens a transaction.
func (t *transactionsDir) Mkdir(ctx context.Context, base string, mode uint32, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := t.path()
	if err != nil {
		return nil, toErrno(err)
	}
	root := child(dir, base)
	if err := t.open(ctx, root, mode); err != nil {
		return nil, t.fs.fail("mkdir", root, err)
	}
	return t.node(ctx, root, out)
}

func (t *transactionsDir) open(ctx context.Context, root string, mode uint32) error {
	if _, base := parent(root); !transactionID.MatchString(base) || base == "." || base == ".." {
		return errTransactionID
	}
	if t.fs.hasLocal(root) {
		return objectstore.ErrExist
	}
	if err := t.fs.mayCreate(); err != nil {
		return err
	}
	work, cancel := t.fs.background()
	defer cancel()
	target, err := t.fs.makeInTree(work, root)
	if err != nil {
		return err
	}
	t.fs.rememberLocal(ctx, target.Directory(), mode)
	return nil
}

// Rmdir aborts a transaction with nothing in it.
func (t *transactionsDir) Rmdir(_ context.Context, base string) syscall.Errno {
	dir, err := t.path()
	if err != nil {
		return toErrno(err)
	}
	root := child(dir, base)
	ctx, cancel := t.fs.background()
	defer cancel()
	if !t.fs.txns.begin(root) {
		return t.fs.fail("rmdir", root, errTransactionBusy)
	}
	defer t.fs.txns.end(root)
	return t.fs.fail("rmdir", root, t.fs.rmdirTree(ctx, root))
}

// TransactionStatus is an open transaction in status.json. Sizes are in bytes.
type TransactionStatus struct {
	Path       string    `json:"path"`
	Files      int       `json:"files"`
	Bytes      int64     `json:"bytes"`
	Created    time.Time `json:"created"` // of its first file; zero: it has none
	Committing bool      `json:"committing"`
	// Half: an overwrite published a part of it, and what is left can only be committed.
	Half bool `json:"half_published"`
}

// transactionsBelow lists the open transactions of the table at dir; of the root, of all.
func (f *FS) transactionsBelow(dir string) []TransactionStatus {
	all := []TransactionStatus{}
	for _, table := range f.tablesWithTransactions() {
		if dir != "" && dir != table {
			continue
		}
		at := child(child(table, controlName), transactionsName)
		for _, base := range f.openTransactions(at) {
			all = append(all, f.transactionStatus(child(at, base)))
		}
	}
	return all
}

func (f *FS) transactionStatus(root string) TransactionStatus {
	f.txns.mu.Lock()
	t := TransactionStatus{Path: root, Committing: f.txns.busy[root], Half: f.local.isHalf(root)}
	f.txns.mu.Unlock()
	for _, s := range f.names.stagedTree(root) {
		r := s.node.file.Record()
		t.Files++
		t.Bytes += s.node.file.Size()
		if t.Created.IsZero() || r.Created.Before(t.Created) {
			t.Created = r.Created
		}
	}
	return t
}

// tablesWithTransactions are the paths of tables that have, or had, open transactions.
func (f *FS) tablesWithTransactions() []string {
	found := make(map[string]struct{})
	for _, inside := range []func(string) []string{f.local.children, f.names.stagedDirectories} {
		for _, db := range inside("") {
			for _, base := range inside(db) {
				table := child(db, base)
				for _, name := range inside(table) {
					if name == controlName {
						found[table] = struct{}{}
					}
				}
			}
		}
	}
	return sortedKeys(found)
}
