// Package mounttest mounts real lakes for tests: a warehouse made from a
// declaration, in a local folder or in a bucket of a real S3 server, served by the
// real binary in a child process.
//
//	lake := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{{
//		Database: "sales", Name: "orders", Keys: []string{"dt:date"},
//		Files: map[string]string{"dt=2026-01-01/a.parquet": mounttest.Parquet(t, 10)},
//	}}})
//	lake.MustSh(`cp sales/orders/dt=2026-01-01/a.parquet /dev/null`)
//
// Lakes are in folders, or with MOUNTTEST_STORE=s3 in buckets: one suite, two
// stores. A test looks at the store, and plays another program in it, by
// [Lake.Stored], [Lake.PutStored] and the like; one that is about the folder
// itself begins with [FolderOnly].
//
// With Options.Glue the catalog is a Glue server and [Lake.Catalog] the test's way
// to it; the data lie in buckets, whatever MOUNTTEST_STORE says:
//
//	lake := mounttest.Mount(t, mounttest.Options{Glue: &mounttest.Glue{Buckets: 2, Tables: []mounttest.GlueTable{{
//		Table: mounttest.Table{Database: "sales", Name: "orders", Keys: []string{"dt:date"}},
//		Partitions: []mounttest.GluePartition{
//			{Values: []string{"2026-01-01"}, Files: map[string]string{"a.parquet": mounttest.Parquet(t, 10)}},
//			{Values: []string{"2026-01-02"}, Format: "orc", Location: "s3://{1}/old/", Files: …},
//		},
//	}}}})
//
// Guarantees: a lake has a deadline, at which its daemon is killed and the
// connection aborted, so that no system call on it stays stuck and the test
// fails with the daemon's log; when the test ends nothing of it is left: a lake
// that still runs is drained and unmounted, and that it goes cleanly (exit 0,
// not in the mount table, no panic and no data race logged) is part of the
// test. The binary is built once a process, with -race when the test is.
//
// A test touches a mount through [Lake.Sh] and the like (child processes), or
// through [Lake.Do] and the file helpers (a goroutine with a deadline). Methods
// of a Lake are for the test's own goroutine, but Path, Data, Log, Do, Sh, the
// file helpers and those of the store, which may be called from several.
//
// Where no mount is possible (no /dev/fuse, a user without fusermount3) tests
// are skipped with the reason, unless MOUNTTEST_REQUIRED is set: then they
// fail. MOUNTTEST_COUNT names a file that gets a line for each test that mounted,
// MOUNTTEST_LEFT one for each that FolderOnly left out.
package mounttest

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// Table declares a table of the lake.
type Table = warehouse.Table

// Options describe a lake; the zero value is an empty one.
type Options struct {
	Tables []Table
	Files  map[string]string // further files of the warehouse, by path below its root; one that ends in "/" is a directory
	Source string            // a folder that is a warehouse, in place of a new one; where lakes are in buckets it is uploaded
	Flags  []string          // further flags of `mount`, at each start
	Env    []string          // further environment of the daemon, "NAME=value"
	Via    []string          // a command that becomes the daemon, which follows as its arguments ("unshare", "-m")

	// Timeout bounds the life of the lake, unmount included; 0: 60 s.
	Timeout time.Duration

	// S3 puts the lake into a bucket, whatever MOUNTTEST_STORE says. So do Server,
	// the server to use (nil: the versitygw of the process), and Bucket, one of it
	// that exists ("": a new one).
	S3     bool
	Server *s3test.Server
	Bucket string
	// Faulty puts the lake into a bucket, and Lake.Proxy between the daemon and the
	// server.
	Faulty bool
	// Glue makes the catalog a Glue server, and SOURCE `glue:`; the data lie in
	// buckets of Server. Tables is for manifests: there are none then.
	Glue *Glue

	of *Lake // whose store it is; nil: its own

	User uint32 // run the daemon and Sh as this user and group id (the test must be root); 0: as the test
}

// Lake is a warehouse, and where it is mounted.
type Lake struct {
	Source  string        // the warehouse: a folder, or s3://BUCKET/PREFIX/; or "glue:"
	Root    string        // the mount point
	State   string        // the state directory, kept over remounts
	Proxy   *faulty.Proxy // of Options.Faulty; the test itself uses the server directly
	Catalog *Catalog      // of Options.Glue; nil: the catalog is manifests

	t        testing.TB
	o        Options
	deadline time.Time
	store    store

	mu struct {
		sync.Mutex
		daemon *daemon          // nil: not running
		logs   []*log           // of every start
		door   *httptest.Server // nil: nobody has asked for it
	}
}

// New makes a lake without mounting it.
func New(tb testing.TB, o Options) *Lake {
	tb.Helper()
	requireFUSE(tb, o.User)
	Binary(tb) // its build is not part of the lake's life
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	dir := tb.TempDir()
	l := &Lake{t: tb, o: o, Root: filepath.Join(dir, "lake"), State: filepath.Join(dir, "state"), deadline: time.Now().Add(o.Timeout)}
	must(tb, os.Mkdir(l.Root, 0o755))
	must(tb, os.Mkdir(l.State, 0o700))
	l.open(dir)
	l.addDeclared()
	if o.User != 0 {
		l.give(dir)
	}
	watchdog := time.AfterFunc(o.Timeout, l.expire)
	tb.Cleanup(func() {
		l.cleanup()
		watchdog.Stop()
	})
	return l
}

// Mount makes a lake and mounts it.
func Mount(tb testing.TB, o Options) *Lake {
	tb.Helper()
	l := New(tb, o)
	l.Start()
	return l
}

// addDeclared makes what the options declare.
func (l *Lake) addDeclared() {
	l.t.Helper()
	if l.o.Glue != nil {
		if len(l.o.Tables) > 0 {
			l.t.Fatal("Options.Tables are manifests: a Glue lake has Options.Glue.Tables")
		}
		l.AddGlueTables(l.o.Glue.Tables...)
		if server := l.Catalog.Server; server != nil {
			server.Reset() // what is counted is the daemon's
		}
	}
	l.AddTables(l.o.Tables...)
	must(l.t, l.store.seed(l.o.Files))
}

// give makes the lake's user the owner of all below dir, and dir's parents
// passable.
func (l *Lake) give(dir string) {
	l.t.Helper()
	must(l.t, os.Chmod(filepath.Dir(dir), 0o755))
	must(l.t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(l.o.User), int(l.o.User))
	}))
}

// Path is the path of a name in the mount ("sales/orders").
func (l *Lake) Path(name string) string { return filepath.Join(l.Root, filepath.FromSlash(name)) }

// Staged is the staging directory, whatever is in it.
func (l *Lake) Staged() string { return filepath.Join(l.State, "staging") }

// Binary is the program under test, built when it was not.
func (l *Lake) Binary() string { return Binary(l.t) }

// row is what Parquet writes.
type row struct {
	ID   int64  `parquet:"id"`
	Name string `parquet:"name"`
}

// Parquet is a whole Parquet file of n rows.
func Parquet(tb testing.TB, n int) string {
	tb.Helper()
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{ID: int64(i), Name: "name"}
	}
	file, err := warehouse.Parquet(rows)
	must(tb, err)
	return file
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
