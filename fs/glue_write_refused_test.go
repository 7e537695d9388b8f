package fs_test

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What must not be written leaves the catalog and the store as they were.

// bothBuckets is what the buckets of a lake hold: contents by bucket and key.
func bothBuckets(t *testing.T, l *mounttest.Lake) map[string]string {
	t.Helper()
	all := map[string]string{}
	server, _ := l.Bucket()
	for _, bucket := range l.Catalog.Buckets {
		for _, key := range server.Keys(t, bucket, "") {
			all[bucket+"/"+key] = string(server.Get(t, bucket, key))
		}
	}
	return all
}

// wantOnlyReads asserts that the catalog was asked for nothing that changes it.
func wantOnlyReads(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	for op, n := range l.Catalog.Server.Requests() {
		if !strings.HasPrefix(op, "Get") && !strings.HasPrefix(op, "BatchGet") {
			t.Errorf("%d requests of %s", n, op)
		}
	}
}

// wantUntouched asserts that nothing but reads reached the catalog, and that the
// buckets are as they were.
func wantUntouched(t *testing.T, l *mounttest.Lake, before map[string]string) {
	t.Helper()
	wantOnlyReads(t, l)
	if now := bothBuckets(t, l); !maps.Equal(now, before) {
		t.Errorf("the buckets have %q, had %q", now, before)
	}
}

// attempt is a change that must fail with an errno.
type attempt struct {
	what string
	do   func(l *mounttest.Lake) error
	want syscall.Errno
}

// attempts are all ways to change a table of a directory with the file "f", each with
// the same errno.
func attempts(dir string, want syscall.Errno) []attempt {
	file, fresh := dir+"/f", dir+"/new"
	return []attempt{
		{"create", func(l *mounttest.Lake) error { return openErr(l, fresh, creat) }, want},
		{"overwrite", func(l *mounttest.Lake) error { return openErr(l, file, syscall.O_WRONLY|syscall.O_TRUNC) }, want},
		{"append", func(l *mounttest.Lake) error { return openErr(l, file, syscall.O_WRONLY|syscall.O_APPEND) }, want},
		{"truncate", func(l *mounttest.Lake) error {
			return l.Do("truncate", func() error { return syscall.Truncate(l.Path(file), 1) })
		}, want},
		{"rename", func(l *mounttest.Lake) error { return rename(l, file, fresh) }, want},
		{"rename away", func(l *mounttest.Lake) error { return rename(l, file, "db/good/k=1/new") }, want},
		{"rename into", func(l *mounttest.Lake) error { return rename(l, "db/good/k=1/f", fresh) }, want},
		{"rename over", func(l *mounttest.Lake) error { return rename(l, "db/good/k=1/f", file) }, want},
		{"unlink", func(l *mounttest.Lake) error { return unlink(l, file) }, want},
		{"mkdir", func(l *mounttest.Lake) error { return mkdir(l, fresh) }, want},
	}
}

// try makes the attempts and asserts their errnos.
func try(t *testing.T, l *mounttest.Lake, dir string, all []attempt) {
	t.Helper()
	for _, a := range all {
		wantErrno(t, dir+": "+a.what, a.do(l), a.want)
	}
}

// goodTable is db.good with a file in a partition.
func goodTable() mounttest.GlueTable {
	return mounttest.GlueTable{
		Table:      mounttest.Table{Database: "db", Name: "good", Format: "csv", Keys: []string{"k"}},
		Partitions: []mounttest.GluePartition{{Values: []string{"1"}, Files: map[string]string{"f": "good\n"}}},
	}
}

// TestModesThatWriteNothing to the catalog, nor, but for the last, to the store.
func TestModesThatWriteNothing(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]syscall.Errno{"--read-only": syscall.EROFS, "--write=none": syscall.EPERM} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{flag}}, inCatalog(), goodTable())
			before := bothBuckets(t, l)
			for _, dir := range []string{"db/t/dt=1", "db/t/dt=2", "db/good/k=1"} {
				file := map[string]string{"db/t/dt=1": "a", "db/t/dt=2": "b", "db/good/k=1": "f"}[dir]
				wantErrno(t, "create", openErr(l, dir+"/new", creat), want)
				wantErrno(t, "overwrite", openErr(l, dir+"/"+file, syscall.O_WRONLY|syscall.O_TRUNC), want)
				wantErrno(t, "append", openErr(l, dir+"/"+file, syscall.O_WRONLY|syscall.O_APPEND), want)
				wantErrno(t, "unlink", unlink(l, dir+"/"+file), want)
				wantErrno(t, "rename", rename(l, dir+"/"+file, "db/good/k=1/new"), want)
				wantErrno(t, "mkdir", mkdir(l, dir+"/sub"), want)
				l.MustSh(`cat ` + dir + `/` + file + ` >/dev/null`)
			}
			wantErrno(t, "mkdir of a partition", mkdir(l, "db/t/dt=7"), want)
			wantErrno(t, "rmdir of a partition", rmdir(l, "db/t/dt=3"), want)
			l.MustSh(`! cp -r db/t/. db/good/ 2>/dev/null; ls -lR db >/dev/null; cat db/t/.lakefs/status.json db/t/.lakefs/partitions.jsonl db/t.json >/dev/null`)
			wantUntouched(t, l, before)
			wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
		})
	}
	t.Run("--catalog-writes=none", func(t *testing.T) {
		t.Parallel()
		l := mountGlue(t, mounttest.Options{Flags: []string{"--catalog-writes=none", "--write=delete"}}, inCatalog(), goodTable())
		l.MustSh(`cd db/t; mkdir dt=7 dt=8; echo 7 > dt=7/f; mv dt=1/a dt=8/a; cp -r dt=7 dt=10; echo >> dt=2/b; rm dt=2/b; rsync -a dt=7/ dt=11/; cp dt=7/f ../good/k=1/; sed -i s/7/8/ dt=7/f`)
		l.MustSh(`! rmdir db/t/dt=3`)
		wantOnlyReads(t, l)
		for key, want := range map[string]string{"dt=7/f": "8\n", "dt=8/a": "1,one\n", "dt=10/f": "7\n", "dt=11/f": "7\n"} {
			wantStore(t, l, "db/t/"+key, want)
		}
		if s := catalogStatus(t, l, "db/t"); s.Unregistereds != 4 {
			t.Errorf("status.json counts %d directories that are not registered, want 4: %q", s.Unregistereds, s.Unregistered)
		}
	})
}

// TestRule11_TablesOfOtherWriters: Delta, Iceberg and Hudi tables are read, and not
// written; status.json says why.
func TestRule11_TablesOfOtherWriters(t *testing.T) {
	t.Parallel()
	table := func(name, parameters string) string {
		return csvAt(name, "s3://{0}/w/"+name, `,"Parameters":{`+parameters+`}`)
	}
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	l.AddGlueTables(goodTable())
	kinds := map[string]string{ // with a word of the reason
		"delta": "Delta", "athena": "Delta", "iceberg": "Iceberg", "hudi": "Hudi",
	}
	addEntries(l, table("delta", `"spark.sql.sources.provider":"DELTA"`), table("athena", `"table_type":"DELTA"`),
		table("iceberg", `"table_type":"ICEBERG","metadata_location":"s3://{0}/w/iceberg/metadata/0.json"`), table("hudi", `"spark.sql.sources.provider":"hudi"`))
	for name := range kinds {
		putInBucket(t, l, 0, "w/"+name+"/f", name)
		putInBucket(t, l, 0, "w/"+name+"/sub/f", name)
	}
	l.Start()
	l.Catalog.Server.Reset()
	before := bothBuckets(t, l)
	for name, word := range kinds {
		for _, dir := range []string{"db/" + name, "db/" + name + "/sub"} {
			try(t, l, dir, attempts(dir, syscall.EROFS))
			wantContent(t, l, dir+"/f", name)
		}
		wantErrno(t, "rmdir", rmdir(l, "db/"+name+"/sub"), syscall.EROFS)
		s := catalogStatus(t, l, "db/"+name)
		if !s.Readable || s.Writable || !strings.Contains(s.Reason, word) {
			t.Errorf("%s: status %+v, want a reason with %q", name, s, word)
		}
	}
	wantUntouched(t, l, before)
}

// TestTablesThatDoNotLoad: EIO for every change, whatever is tried first.
func TestTablesThatDoNotLoad(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	l.AddGlueTables(goodTable())
	addEntries(l, csvAt("broken", "s3://{0}/w/broken", `,"Parameters":{"spark.sql.sources.provider":"csv","spark.sql.sources.schema":"{"}`),
		keyed("part", "s3://{0}/w/part", "k"))
	l.Catalog.Server.AddPartition("db", "part", `{"Values":["v"],"StorageDescriptor":{"Location":""}}`)
	putInBucket(t, l, 0, "w/broken/f", "f")
	putInBucket(t, l, 0, "w/part/k=v/f", "f")
	l.Start()
	l.Catalog.Server.Reset()
	before := bothBuckets(t, l)
	for _, dir := range []string{"db/broken", "db/part/k=v"} {
		try(t, l, dir, attempts(dir, syscall.EIO))
		if s := catalogStatus(t, l, dir); s.Readable || s.Writable || s.Reason == "" {
			t.Errorf("%s: status %+v", dir, s)
		}
	}
	wantErrno(t, "mkdir beside", mkdir(l, "db/part/k=w"), 0)
	wantUntouched(t, l, before)
}

// TestOutsideTheAllowedLocations: a partition elsewhere is refused in a table that is
// not, and a table elsewhere whole.
func TestOutsideTheAllowedLocations(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	l.AddGlueTables(goodTable(), inCatalog())
	addEntries(l, csvAt("out", "s3://{1}/out", ""), csvAt("beside", "s3://{0}/wh2/beside", ""))
	putInBucket(t, l, 1, "out/f", "f")
	putInBucket(t, l, 0, "wh2/beside/f", "f")
	l.Start("--write=delete", l.Catalog.At("--allow-location=s3://{0}/wh"))
	l.Catalog.Server.Reset()
	before := bothBuckets(t, l)
	for _, dir := range []string{"db/out", "db/beside", "db/t/dt=2"} {
		try(t, l, dir, attempts(dir, syscall.EACCES))
		wantErrno(t, "list", listErr(l, dir), syscall.EACCES)
	}
	wantUntouched(t, l, before)
	l.MustSh(`cd db/t; mkdir dt=7; cp dt=1/a dt=7/; cat dt=7/a`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	l.Catalog.Call("CreatePartition", l.Catalog.At(`{"DatabaseName":"db","TableName":"t","PartitionInput":{"Values":["8"],"StorageDescriptor":{"Location":"s3://{1}/eight"}}}`))
	l.MustSh(`echo refresh > .lakefs/ctl`)
	wantErrno(t, "create where the catalog has moved it", openErr(l, "db/t/dt=8/f", creat), syscall.EACCES)
	if keys := slices.Sorted(maps.Keys(bothBuckets(t, l))); slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, "eight") }) {
		t.Errorf("the buckets have %q", keys)
	}
}

// TestNamesThatAreNoPartitions are refused before anything is asked or staged.
func TestNamesThatAreNoPartitions(t *testing.T) {
	t.Parallel()
	projected := mounttest.GlueTable{Table: mounttest.Table{
		Database: "db", Name: "p", Format: "csv", Keys: []string{"dt:date", "e", "n:int"},
		Parameters: map[string]string{
			"projection.enabled": "true", "projection.dt.type": "date", "projection.dt.format": "yyyy-MM-dd", "projection.dt.range": "2026-01-01,2026-01-31",
			"projection.e.type": "enum", "projection.e.values": "a,b", "projection.n.type": "integer", "projection.n.range": "1,9",
		},
		Files: map[string]string{"dt=2026-01-01/e=a/n=1/f": "1\n"},
	}}
	l := mountGlue(t, mounttest.Options{}, inCatalog(), projected, goodTable())
	before := bothBuckets(t, l)
	for dir, names := range map[string][]string{
		"db/t":                   {"dt=x", "dt=", "dt=1=2", "=1", "k=1", "dt=1.5", "dt=2147483648", "dt= 1", "DT=x"},
		"db/good":                {"k=", "k=a=b", "=x"},
		"db/p":                   {"dt=2026-02-01", "dt=2025-12-31", "dt=2026-1-1", "dt=x", "dt="},
		"db/p/dt=2026-01-02":     {"e=c", "e=A", "e=", "n=1"},
		"db/p/dt=2026-01-02/e=b": {"n=0", "n=10", "n=x", "n=01", "n=-1"},
	} {
		for _, name := range names {
			wantErrno(t, "mkdir "+dir+"/"+name, mkdir(l, dir+"/"+name), syscall.EINVAL)
			if err := rename(l, "db/good/k=1/f", dir+"/"+name+"/f"); err == nil {
				t.Errorf("a file was renamed into %s/%s", dir, name)
			}
		}
	}
	wantErrno(t, "mkdir of another spelling", mkdir(l, "db/t/dt=01"), syscall.EEXIST)
	wantErrno(t, "mkdir of a key in another case", mkdir(l, "db/good/K=2"), syscall.EINVAL)
	wantUntouched(t, l, before)
	l.MustSh(`echo 2 > db/p/dt=2026-01-31/e=b/n=9/f; cat db/p/dt=2026-01-31/e=b/n=9/f`)
	wantRegistered(t, l, "p")
	wantOnlyReads(t, l)
}
