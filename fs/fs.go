// Package fs answers the kernel's FUSE requests from the tree of catalogview,
// the writes of staging and the publishes of commit. It is the only package
// that speaks FUSE.
//
// What it guarantees to programs:
//
//   - A node is one version of an object: a descriptor reads the version that it
//     opened, whatever happens to the name; a new open gets the current one.
//   - A file that is being written is found by its exact name, in this mount
//     alone, and is listed by nothing. It becomes visible whole, under a new
//     node, when it is published: at the close that the close rule picks
//     (closerule.go), or at fsync.
//   - Errors of a publish are the answer of close(2) or fsync(2).
//   - No request but a lock wait is ever answered EINTR.
//
// How a writing open of a published name gets a node of its own: OPEN answers
// ESTALE, the kernel looks the name up once more, from the same thread, and is
// given the staged node (names.promise); the open goes on there. truncate(2)
// takes the same way.
//
// Lock order, outermost first: away.lock, stagedNode.commit, stagedNode.mu, names.mu,
// lockTable.mu; draftNode.commit, draftNode.mu, drafts.mu. Only away.lock and the
// commit locks, a file's own, are held across calls to the store; LOOKUP never takes them.
package fs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/internal/operation"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

const rootIno = 1

// WriteLevel says what may be changed (tree.md, "What may be changed").
type WriteLevel int

// The levels, each allowing what the one before it does.
const (
	WriteNone      WriteLevel = iota // nothing
	WriteCreate                      // new names, and what this mount itself made
	WriteOverwrite                   // also replace and rename what others made
	WriteDelete                      // also remove it
)

// Config is what a file system is made of. All parts belong to the caller, who
// closes them after the mount has ended. The zero values of the settings below
// Log are usable.
type Config struct {
	View      *catalogview.View
	Store     objectstore.Store
	Area      *staging.Area
	Committer *commit.Committer
	Attr      *attr.Store
	Cache     *cache.Cache
	Disk      *cache.Disk // between Cache and a Store over a network; nil: none
	Metrics   *metrics.Set
	Log       *slog.Logger

	Version string // what .lakefs/version holds
	Source  string // for status.json and the mount table
	// Settings is what the root's .lakefs/config.json holds, for the owner alone; nil:
	// there is none.
	Settings []byte

	Write          WriteLevel
	ReadOnly       bool
	PublishKilled  bool        // --on-killed=publish
	Passthrough    bool        // offer local files to the kernel to read by itself (root, Linux 6.9)
	UID, GID       uint32      // owner shown for what nobody set an owner of
	FileMode       os.FileMode // for what has no mode; 0: 0600
	DirMode        os.FileMode // 0: 0700
	Umask          os.FileMode // taken off what is shown
	MetadataTTL    time.Duration
	NegativeTTL    time.Duration
	RequestTimeout time.Duration // bound of one request's work below; 0: 60 s
	// LocalDirectories is the file that keeps the directories which live in the
	// mount alone: those of staging trees, and all where the store has none; "": they
	// end with the mount.
	LocalDirectories string
	// RenameLimit is how many objects a directory that is renamed may have, where
	// the store has no directories; 0: 1,000.
	RenameLimit int
	// PrefetchFiles is how many small files of a directory are fetched at most ahead of
	// who opens its files in order; 0: none.
	PrefetchFiles int
	// TemporaryNames, LocalNames and BackupNames tell the names of files that are no
	// data yet (see hold.go); the zero values none. TemporaryLinger is how long a
	// closed file of a temporary name waits for its rename or removal before it is
	// published under that name, and a renamed file of a backup name for a new file in
	// its place before the rename is made; 0: 10 s.
	TemporaryNames, LocalNames, BackupNames Patterns
	TemporaryLinger                         time.Duration
	// WriteEntries: NAME.json may be written, created and removed (--catalog-writes=entries).
	WriteEntries bool
	// Deregistrar takes partitions out of the catalog that were removed in the mount,
	// DeregisterAfter that (0: 30 s), or when the mount ends. nil: registered partitions
	// are not removed.
	Deregistrar     Deregistrar
	DeregisterAfter time.Duration
	// SchemaSQL says in SQL how a table is made; an error where that cannot be said, which
	// is EIO. nil: tables have no schema.sql.
	SchemaSQL func(t *table.Table) (string, error)
	// Renderer makes the texts of .lakefs/rows and .lakefs/footer; nil: there are none.
	Renderer Renderer
	// StoreStatus tells what status.json shows of the store; nil: nothing.
	StoreStatus func() any
}

// FS is one lake, to be mounted once.
type FS struct {
	Config
	names   *names
	backups backups
	locks   *lockTable
	owners  *lockOwners
	mapped  *writeBacks
	proc    processTable
	entries entryTurns
	drafts  drafts
	jobs    jobs
	// ctls counts the nodes of control files, one a look-up: the kernel lets one write
	// at a time to a node, and no command is to wait for another's end.
	ctls     atomic.Uint64
	txns     transactions
	absences absences
	root     *dirNode
	started  time.Time

	operations *operation.IDs

	// flat: the store has no directories of its own, and no files (S3).
	flat     bool
	local    *localDirectories // those of staging trees alone unless flat
	verified *verified
	prefetch *prefetcher

	publishing inFlight
	departures *departures
	draining   atomic.Bool
}

// New returns a file system over c's parts.
func New(c Config) *FS {
	if c.FileMode == 0 {
		c.FileMode = 0o600
	}
	if c.DirMode == 0 {
		c.DirMode = 0o700
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 60 * time.Second
	}
	if c.TemporaryLinger == 0 {
		c.TemporaryLinger = defaultLinger
	}
	if c.DeregisterAfter == 0 {
		c.DeregisterAfter = defaultDeregister
	}
	f := &FS{
		Config: c, names: newNames(), locks: newLockTable(),
		proc: processTable{root: "/proc"}, started: time.Now(), operations: operation.NewIDs(), departures: newDepartures(),
	}
	f.owners, f.mapped = &lockOwners{}, &writeBacks{}
	f.verified = newVerified(f.MetadataTTL)
	if _, ok := c.Store.(objectstore.Directories); !ok {
		f.flat = true
	}
	f.prefetch = newPrefetcher(f)
	var err error
	if f.local, err = newLocalDirectories(c.LocalDirectories); err != nil {
		f.Log.Warn("directories that were made in an earlier mount are gone", slog.Any("error", err))
	}
	f.root = &dirNode{fs: f, held: held{name: f.names.acquire(""), on: true}}
	return f
}

// thread returns the calling thread's id; 0 if it is in another pid namespace.
func thread(ctx context.Context) uint32 {
	if c, ok := fuse.FromContext(ctx); ok {
		return c.Pid
	}
	return 0
}

// owner returns the user and group of the caller.
func (f *FS) caller(ctx context.Context) (uid, gid uint32) {
	if c, ok := fuse.FromContext(ctx); ok {
		return c.Uid, c.Gid
	}
	return f.UID, f.GID
}

// child returns the path of name in dir.
func child(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// parent returns the directory and the last component of path.
func parent(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// made reports whether this mount made o's version.
func (f *FS) made(o objectstore.Object) bool {
	a, ok := f.Attr.Get(attrKey(o.Location), o.ETag)
	return ok && a.Made
}

// mayChange checks the write level against a change of o, which is there.
func (f *FS) mayChange(o objectstore.Object, need WriteLevel) error {
	if f.ReadOnly {
		return errReadOnly
	}
	if f.Write >= need || (f.Write >= WriteCreate && f.made(o)) {
		return nil
	}
	return errWriteLevel
}

// mayCreate checks the write level against a new name.
func (f *FS) mayCreate() error {
	switch {
	case f.ReadOnly:
		return errReadOnly
	case f.Write < WriteCreate:
		return errWriteLevel
	case f.draining.Load():
		return errDraining
	}
	return nil
}

// fill completes attributes that every node has.
func (f *FS) fill(a *fuse.Attr, ino uint64, size int64, t time.Time) {
	a.Ino, a.Nlink, a.Blksize = ino, 1, 4096
	a.Size = uint64(max(size, 0))
	a.Blocks = (a.Size + 511) / 512
	if t.IsZero() {
		t = f.started
	}
	a.SetTimes(&t, &t, &t)
}

// owned fills mode and owner as they are where nothing was set.
func (f *FS) owned(a *fuse.Attr, def os.FileMode) {
	a.Mode, a.Uid, a.Gid = a.Mode&unix.S_IFMT|uint32(def&^f.Umask), f.UID, f.GID
}

// overlay puts what was set through the mount over the defaults: mode, owner,
// modification time of an object or directory.
func overlay(a *fuse.Attr, set attr.Attributes) {
	if set.Mode != nil {
		a.Mode = a.Mode&unix.S_IFMT | *set.Mode&0o7777
	}
	if set.UID != nil {
		a.Uid = *set.UID
	}
	if set.GID != nil {
		a.Gid = *set.GID
	}
	if set.MTime != nil {
		a.SetTimes(set.MTime, set.MTime, set.MTime)
	}
}

// opPublish is the operation of a failed publish in the log: nothing of it is
// ordinary, for bytes that a program wrote are not where they belong.
const opPublish = "publish"

// fail logs err once, with what it was about, and returns its errno. Errors
// that a program is meant to meet in the course of its work are not logged.
func (f *FS) fail(op, path string, err error) errno {
	if err == nil {
		return 0
	}
	if told, ok := err.(syscall.Errno); ok { //nolint:errorlint // the answer of a step that has logged it
		return told
	}
	e := toErrno(err)
	misspelt := errors.Is(err, table.ErrName) // the log names the right spelling, which no errno can
	if op == opPublish || misspelt || !ordinary(e) && !errors.Is(err, io.EOF) {
		attrs := append(operation.Attrs(err), slog.String("operation", op), slog.String("path", path), slog.Any("error", err), slog.String("errno", e.Error()))
		f.Log.LogAttrs(context.Background(), slog.LevelError, "request failed", attrs...)
	}
	return e
}
