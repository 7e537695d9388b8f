package fs_test

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What a program sees of names that the catalog cannot tell of, and of what
// status.json says then.

// TestCase39_NamesWhileTheCatalogFails: a name that is not known is an error, one that
// was listed keeps its kind, and nothing is taken for absent.
func TestCase39_NamesWhileTheCatalogFails(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]gluetest.Fault{
		"500": gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no"), "no answer": gluetest.Hang(),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newGlueLake(t, mounttest.Options{Flags: []string{"--io-timeout=2s", "--metadata-ttl=1s", "--negative-ttl=5m"}})
			for _, db := range []string{"db", "new"} {
				l.Catalog.Server.AddTable(db, l.Catalog.At(csvAt("t", "s3://{0}/"+db+"/t", "")))
				putInBucket(t, l, 0, db+"/t/f", db)
			}
			l.Start()
			wantNames(t, l, "db", "t", "t.json")
			size := l.MustSh(`stat -c %s db/t.json`)
			l.Catalog.Server.Fault(gluetest.Rule{Op: "GetTable", Fault: fault})
			for _, path := range []string{"db/none", "db/none.json", "new/t", "new/t.json"} {
				wantErrno(t, path, statErr(l, path), syscall.EIO)
			}
			for range 2 {
				if got := l.MustSh(`stat -c '%F %s' db/t.json`); got != "regular file "+size {
					t.Errorf("the entry of a listed table is a %q, want a file of %s", got, size)
				}
				wantErrno(t, "the content of the entry", openErr(l, "db/t.json", syscall.O_RDONLY), syscall.EIO)
				if got := l.MustSh(`stat -c %F db/t`); got != "directory\n" {
					t.Errorf("a listed table is a %q", got)
				}
			}
			l.Catalog.Server.Clear()
			for _, db := range []string{"db", "new"} {
				wantContent(t, l, db+"/t/f", db)
				l.MustSh(`jq -e .Table.Name ` + db + `/t.json`)
				wantErrno(t, db+"/none", statErr(l, db+"/none"), syscall.ENOENT)
			}
			l.Catalog.Server.AddTable("db", l.Catalog.At(csvAt("later", "s3://{0}/later", "")))
			l.MustSh(`test -d db/later && test -f db/later.json`)
		})
	}
}

// TestCase39_ADeniedNameIsNoDirectory: only what a listing has is shown.
func TestCase39_ADeniedNameIsNoDirectory(t *testing.T) {
	t.Parallel()
	l := mountFaults(t)
	l.Catalog.Server.Fault(gluetest.Rule{Op: "GetTable", Database: "db", Fault: gluetest.Denied()})
	for _, path := range []string{"db/t", "db/t.json", "db/none", "db/none.json"} {
		wantErrno(t, path, statErr(l, path), syscall.EACCES)
	}
	wantNames(t, l, "db", "t", "t.json", "u", "u.json")
	wantErrno(t, "the entry of a listed table", statErr(l, "db/t.json"), 0)
	wantErrno(t, "its content", openErr(l, "db/t.json", syscall.O_RDONLY), syscall.EACCES)
	l.Catalog.Server.Clear()
	wantWhole(t, l, "db", "other")
}

// TestStatusExplainsWhatTheCatalogRefuses: what a program cannot read has the reason in
// its status.json.
func TestStatusExplainsWhatTheCatalogRefuses(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--io-timeout=3s", "--metadata-ttl=0", "--negative-ttl=0"}})
	keys := `,"PartitionKeys":[{"Name":"k","Type":"string"}]`
	addEntries(l, csvAt("t", "s3://{0}/t", keys), csvAt("arn", "s3://arn:aws:s3:eu-west-1:111122223333:accesspoint/ap/x", ""))
	l.Catalog.Server.AddPartition("db", "t", partitionAt(l, "gone", "s3://no-such-bucket-here/t/k=gone"))
	l.Catalog.Server.AddDatabase(`{"Name":"one","TargetDatabase":{"CatalogId":"` + gluetest.Account + `","DatabaseName":"two"}}`)
	l.Catalog.Server.AddDatabase(`{"Name":"two","TargetDatabase":{"CatalogId":"` + gluetest.Account + `","DatabaseName":"one"}}`)
	l.Start()
	explained := func(dir, kind string, reasons ...string) {
		t.Helper()
		s := catalogStatus(t, l, dir)
		if s.Kind != kind || s.Readable || s.Writable || !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(s.Reason, r) }) {
			t.Errorf("status of %s: %+v; want a %s that cannot be read: %q", dir, s, kind, reasons)
		}
	}
	explained("db/arn", "hive", "arn")
	explained("db/t/k=gone", "hive", "no such bucket")
	explained("one", "database", "resource link")
	for what, c := range map[string]struct {
		fault  gluetest.Fault
		reason string
	}{
		"denied": {gluetest.Denied(), "AccessDenied"},
		"500":    {gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "broken inside"), "broken inside"},
	} {
		l.Catalog.Server.Fault(gluetest.Rule{Op: "GetTables", Fault: c.fault})
		l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Fault: c.fault})
		explained("db", "database", c.reason)
		explained("db/t", "hive", c.reason)
		if s := catalogStatus(t, l, "db/t"); s.Format != "csv" || s.Location != "s3://"+l.Catalog.Buckets[0]+"/t/" {
			t.Errorf("%s: what is known of the table: %+v", what, s)
		}
		l.Catalog.Server.Clear()
	}
	if s := catalogStatus(t, l, "db/t"); !s.Readable || s.Partitions != 1 {
		t.Errorf("status when all is well: %+v", s)
	}
}
