package mounttest

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// storeVariable names the store of every lake of the process: "", a folder, or
// "s3", a bucket of a test server.
const storeVariable = "MOUNTTEST_STORE"

// againVariable is set where all tests ran before, on folders: those that are on
// S3 anyhow need not run once more.
const againVariable = "MOUNTTEST_AGAIN"

// inBuckets tells whether the lakes of this process are in buckets.
func inBuckets(tb testing.TB) bool {
	tb.Helper()
	switch s := os.Getenv(storeVariable); s {
	case "", "folder":
		return false
	case "s3":
		return true
	default:
		tb.Fatalf("%s=%s: want folder or s3", storeVariable, s)
		return false
	}
}

// FolderOnly skips a test that is about the local folder itself where lakes are
// in buckets. Why says it in few words; the same words for the same reason.
func FolderOnly(tb testing.TB, why string) {
	tb.Helper()
	if inBuckets(tb) {
		appendLine(tb, os.Getenv("MOUNTTEST_LEFT"), why+"\t"+tb.Name())
		tb.Skipf("of the folder alone: %s", why)
	}
}

// Storable tells whether lakes can have a file of that name: keys of a bucket are
// UTF-8.
func Storable(tb testing.TB, name string) bool {
	tb.Helper()
	return !inBuckets(tb) || utf8.ValidString(name)
}

// open finds or makes the lake's store; a folder lies below dir.
func (l *Lake) open(dir string) {
	l.t.Helper()
	o := l.o
	switch {
	case o.of != nil:
		l.store, l.Source, l.Catalog = o.of.store, o.of.Source, o.of.Catalog
	case o.Glue != nil:
		l.openBucket()
		l.openCatalog()
	case o.S3 || o.Faulty || o.Server != nil || o.Bucket != "" || inBuckets(l.t):
		l.openBucket()
	default:
		if l.Source = o.Source; l.Source == "" {
			l.Source = filepath.Join(dir, "warehouse")
			must(l.t, os.Mkdir(l.Source, 0o755))
		}
		l.store = folder{l.Source}
	}
}

func (l *Lake) openBucket() {
	l.t.Helper()
	if os.Getenv(againVariable) != "" && (l.o.S3 || l.o.Faulty || l.o.Server != nil || l.o.Glue != nil) {
		l.t.Skip("ran on S3 in the run before this one")
	}
	b := bucket{server: l.o.Server, name: l.o.Bucket}
	if b.server == nil {
		b.server = s3test.Versity(l.t)
	}
	if b.name == "" {
		b.name = b.server.Bucket(l.t)
	}
	l.store, l.Source = b, "s3://"+b.name+"/"+prefix
	if l.o.Faulty {
		l.Proxy = faulty.New(l.t, b.server)
	}
	if l.o.Source != "" {
		files, err := folder{l.o.Source}.tree("")
		must(l.t, err)
		must(l.t, b.seed(files))
	}
}

// endpoint is the daemon's.
func (l *Lake) endpoint(b bucket) string {
	if l.Proxy != nil {
		return l.Proxy.URL
	}
	return b.server.Endpoint
}

// storeFlags are those of `mount` that name the store.
func (l *Lake) storeFlags() []string {
	b, ok := l.store.(bucket)
	if !ok {
		return nil
	}
	flags := []string{"--endpoint-url=" + l.endpoint(b), "--path-style"}
	if l.Catalog != nil {
		flags = append(flags, "--glue-endpoint-url="+l.Catalog.Endpoint)
	}
	return flags
}

// storeEnv has the store's credentials, and for commands that are not given the
// flags the same by variables.
func (l *Lake) storeEnv() []string {
	b, ok := l.store.(bucket)
	if !ok {
		return nil
	}
	env := append(b.server.Env(), "LAKEFS_MOUNT_ENDPOINT_URL="+l.endpoint(b), "LAKEFS_MOUNT_PATH_STYLE=true")
	if l.Catalog != nil {
		env = append(env, "LAKEFS_MOUNT_GLUE_ENDPOINT_URL="+l.Catalog.Endpoint)
	}
	return env
}

// Second mounts the lake's store once more, with a state directory of its own,
// and no proxy.
func (l *Lake) Second(flags ...string) *Lake {
	l.t.Helper()
	return Mount(l.t, Options{Flags: flags, Timeout: l.o.Timeout, of: l})
}

// OnS3 tells that the lake is in a bucket.
func (l *Lake) OnS3() bool {
	_, ok := l.store.(bucket)
	return ok
}

// Bucket is the server and the bucket of a lake in one.
func (l *Lake) Bucket() (server *s3test.Server, name string) {
	l.t.Helper()
	b, ok := l.store.(bucket)
	if !ok {
		l.t.Fatal("the lake is in no bucket")
	}
	return b.server, b.name
}

// Key is the key of a name's object in the lake's bucket.
func (l *Lake) Key(name string) string { return prefix + dataName(name) }

// Data is the path in the warehouse's folder of the file that lies at name in
// the mount, for a table at its usual location: "sales/orders/dt=1/f" to
// <source>/_data/sales/orders/dt=1/f. Tests that are of the folder alone use it.
func (l *Lake) Data(name string) string { return l.folder().path(dataName(name)) }

// Manifest is the path in the warehouse's folder of the manifest of a table
// ("sales/orders").
func (l *Lake) Manifest(table string) string { return l.folder().path(manifestName(table)) }

func (l *Lake) folder() folder {
	l.t.Helper()
	f, ok := l.store.(folder)
	if !ok {
		l.t.Fatal("the lake is in no folder: the test is of the folder alone, or should ask the store")
	}
	return f
}

// Location is what the mount calls the place of a name's data: a path, or an
// s3:// URI. URI is the same as a URI.
func (l *Lake) Location(name string) string {
	switch s := l.store.(type) {
	case folder:
		return s.path(dataName(name))
	case bucket:
		return "s3://" + s.name + "/" + prefix + dataName(name)
	}
	return ""
}

// URI is the Location as a URI.
func (l *Lake) URI(name string) string {
	if _, ok := l.store.(folder); ok {
		return "file://" + l.Location(name)
	}
	return l.Location(name)
}

// Window is the path at which programs outside the mount read the store's file of
// a name, and never write it: in the warehouse's folder, or where the S3 server
// keeps its objects, each of which is put there whole.
func (l *Lake) Window(name string) string {
	l.t.Helper()
	if f, ok := l.store.(folder); ok {
		return f.path(dataName(name))
	}
	server, name2 := l.Bucket()
	return bucket{server, name2}.window(dataName(name))
}
