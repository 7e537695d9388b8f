package fs_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestCase38_OddPartitionsBesideGoodOnes: one that cannot be used fails alone.
func TestCase38_OddPartitionsBesideGoodOnes(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	for _, p := range []string{
		partitionAt(l, "good", "s3://{0}/t/k=good"),
		`{"Values":["bare"]}`,
		`{"Values":["null"],"StorageDescriptor":null,"Parameters":null}`,
		`{"Values":["nowhere"],"StorageDescriptor":{"Columns":[]}}`,
		partitionAt(l, "empty", ""),
		partitionAt(l, "path", "/t"),
		partitionAt(l, "file", "s3://{0}/a/file"),
		partitionAt(l, "bucket", "s3://{1}"),
		`{"Values":["two","values"],"StorageDescriptor":{"Location":"s3://x/y"}}`,
		`{"Values":[],"StorageDescriptor":{"Location":"s3://x/y"}}`,
	} {
		l.Catalog.Server.AddPartition("db", "t", p)
	}
	putInBucket(t, l, 0, "t/k=good/f", "good\n")
	putInBucket(t, l, 0, "a/file", "an object\n")
	putInBucket(t, l, 1, "f", "of a whole bucket\n")
	l.Start()
	want := map[string]syscall.Errno{
		"good": 0, "bucket": 0, "bare": syscall.EIO, "null": syscall.EIO, "nowhere": syscall.EIO, "empty": syscall.EIO, "path": syscall.EOPNOTSUPP, "file": syscall.EIO,
	}
	var names []string
	for n := range want {
		names = append(names, "k="+n)
	}
	for range 2 { // by name, and when they are listed
		for n, errno := range want {
			dir := "db/t/k=" + n
			wantErrno(t, dir+": stat", statErr(l, dir), 0)
			wantErrno(t, dir+": list", listErr(l, dir), errno)
			l.MustSh(`jq -e '.Partition.Values[0] == "` + n + `"' ` + dir + `/.lakefs/entry.json`)
			if errno == 0 {
				continue
			}
			if n != "file" {
				wantErrno(t, dir+": look-up", statErr(l, dir+"/f"), errno)
				wantErrno(t, dir+": create", openErr(l, dir+"/new", creat), errno)
			}
			if s := catalogStatus(t, l, dir); s.Readable || s.Writable || !strings.Contains(s.Reason, "location") {
				t.Errorf("%s: status %+v", dir, s)
			}
		}
		wantNames(t, l, "db/t", names...)
		wantContent(t, l, "db/t/k=good/f", "good\n")
		wantContent(t, l, "db/t/k=bucket/f", "of a whole bucket\n")
	}
	l.WaitLog("partitions that can not be used")
	l.MustSh(`ls -l db/t >/dev/null; wc -l <db/t/.lakefs/partitions.jsonl; jq -e . db/t/.lakefs/partitions.jsonl >/dev/null`)
}

// TestCase40_PagesOfDatabasesAndTablesThatFail: a listing is whole, or an error.
func TestCase40_PagesOfDatabasesAndTablesThatFail(t *testing.T) {
	t.Parallel()
	for what, c := range catalogFailures() {
		if what == "empty" {
			continue // some services leave the list out of a page that has none
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newGlueLake(t, mounttest.Options{Flags: quick})
			for i := range 250 {
				l.Catalog.Server.AddTable("db", csvAt(fmt.Sprintf("t%03d", i), "s3://x/y", ""))
				l.Catalog.Server.AddDatabase(fmt.Sprintf("d%03d", i))
			}
			l.Start()
			later := func(q *gluetest.Call) bool { return q.Input["NextToken"] != nil }
			for dir, op := range map[string]string{"": "GetDatabases", "db": "GetTables"} {
				// In this order: the check that runs beside a mount's start lists the
				// databases too, and may do so late.
				a := l.Catalog.Server.Fault(gluetest.Rule{Op: op, If: later, Skip: 1, Fault: c.fault})
				l.MustSh(`echo refresh >.lakefs/ctl`)
				wantErrno(t, op, listErr(l, dir), c.want)
				if r := l.Sh(`ls ./` + dir); r.Code == 0 || r.Out != "" || r.Err == "" {
					t.Errorf("%s: ls: exit code %d, %q, %q", op, r.Code, brief(r.Out), r.Err)
				}
				if a.Hits() == 0 {
					t.Errorf("%s: nothing met the fault", op)
				}
				l.MustSh(`stat db/t249 d249 d249.json db/t249.json >/dev/null`)
				l.Catalog.Server.Clear()
			}
			if got := l.MustSh(`ls | grep -c json; ls db | grep -c json`); got != "251\n250\n" {
				t.Errorf("later: %q", got)
			}
		})
	}
}

// TestCase37_EntriesOfACatalogHaveTheirSize, while they grow and shrink.
func TestCase37_EntriesOfACatalogHaveTheirSize(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: shortTTL})
	entry := func(text string) string {
		return l.Catalog.At(csvAt("t", "s3://{0}/t", fmt.Sprintf(`,"PartitionKeys":[{"Name":"k","Type":"string"}],"Parameters":{"text":%q}`, text)))
	}
	addEntries(l, entry(""))
	l.Catalog.Server.AddPartition("db", "t", partitionAt(l, "1", "s3://{0}/t/k=1"))
	l.Start()
	for _, n := range []int{0, 5000, 3, 300_000, 70} {
		l.Catalog.Server.SetTable("db", entry(strings.Repeat("é", n)))
		l.Eventually(fmt.Sprintf("a text of %d characters", n), seenWithin, func() bool {
			return l.Sh(fmt.Sprintf(`test $(jq -r '.Table.Parameters.text | length' db/t.json) = %d`, n)).Code == 0
		})
		for _, path := range []string{"db.json", "db/t.json", "db/t/.lakefs/entry.json", "db/t/.lakefs/status.json", "db/.lakefs/entry.json", "db/t/k=1/.lakefs/entry.json", "db/t/k=1/.lakefs/status.json"} {
			script := fmt.Sprintf(`set -e; f=%s; t=$(mktemp -d); trap 'rm -r $t' EXIT
exec 3<$f; n=$(stat -Lc %%s /dev/fd/3); cat <&3 >$t/copy; jq -e . <$t/copy >/dev/null; echo $((n - $(wc -c <$t/copy)))
cp $f $t/cp; cmp $t/copy $t/cp; dd if=$f of=$t/dd bs=777 status=none; cmp $t/copy $t/dd; tail -c 2 $f | cmp - <(tail -c 2 $t/copy)`, path)
			if r := l.Sh(script); r.Out != "0\n" || r.Code != 0 {
				t.Errorf("%s with a text of %d characters: %q, exit code %d, %s", path, n, r.Out, r.Code, r.Err)
			}
		}
	}
}

// TestRefusedCredentials: nothing is there to see, and nothing is taken for absent.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: quick})
	addEntries(l, csvAt("t", "s3://{0}/t", ""))
	putInBucket(t, l, 0, "t/f", "content")
	for _, code := range []string{"UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException"} {
		l.Catalog.Server.Clear()
		l.Catalog.Server.Fault(gluetest.Rule{Fault: gluetest.Error(http.StatusBadRequest, code, "no")})
		l.Remount(quick...)
		wantErrno(t, code+": list", listErr(l, ""), syscall.EACCES)
		wantErrno(t, code+": a table", statErr(l, "db/t/f"), syscall.EACCES)
		wantErrno(t, code+": no table", statErr(l, "db/none.json"), syscall.EACCES)
		l.WaitLog(code)
		l.Catalog.Server.Clear()
		wantContent(t, l, "db/t/f", "content")
		wantNames(t, l, "db", "t", "t.json")
	}
}
