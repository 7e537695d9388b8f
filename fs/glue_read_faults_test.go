package fs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What the catalog refuses or cannot answer stays where it was asked for.

// mountFaults mounts the databases db and other, each with the tables t and u, of
// partitions and without, with TTLs that hide every second request.
func mountFaults(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := newGlueLake(t, mounttest.Options{Flags: quick})
	for _, db := range []string{"db", "other"} {
		l.Catalog.Server.AddTable(db, l.Catalog.At(csvAt("t", "s3://{0}/"+db+"/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`)))
		l.Catalog.Server.AddPartition(db, "t", l.Catalog.At(`{"Values":["v"],"StorageDescriptor":{"Location":"s3://{0}/`+db+`/t/k=v"}}`))
		l.Catalog.Server.AddTable(db, l.Catalog.At(csvAt("u", "s3://{0}/"+db+"/u", "")))
		putInBucket(t, l, 0, db+"/t/k=v/f", db+".t")
		putInBucket(t, l, 0, db+"/u/f", db+".u")
	}
	l.Start()
	return l
}

// wantWhole asserts that all of a lake that mountFaults made is there.
func wantWhole(t *testing.T, l *mounttest.Lake, databases ...string) {
	t.Helper()
	for _, db := range databases {
		wantContent(t, l, db+"/t/k=v/f", db+".t")
		wantContent(t, l, db+"/u/f", db+".u")
		wantNames(t, l, db, "t", "t.json", "u", "u.json")
		wantNames(t, l, db+"/t", "k=v")
		wantErrno(t, "what is not there", statErr(l, db+"/none"), syscall.ENOENT)
		wantErrno(t, "a partition that is not there", statErr(l, db+"/t/k=none"), syscall.ENOENT)
	}
}

func TestCase39_TablesOfOneDatabaseDenied(t *testing.T) {
	t.Parallel()
	l := mountFaults(t)
	l.Catalog.Server.Fault(gluetest.Rule{Op: "GetTables", Database: "db", Fault: gluetest.Denied()})
	for range 2 {
		wantErrno(t, "list", listErr(l, "db"), syscall.EACCES)
		if r := l.Sh(`ls db`); r.Code == 0 || r.Out != "" || !strings.Contains(r.Err, "Permission denied") {
			t.Errorf("ls: exit code %d, %q, %q", r.Code, r.Out, r.Err)
		}
	}
	wantNames(t, l, "", "db", "db.json", "other", "other.json")
	wantContent(t, l, "db/t/k=v/f", "db.t") // by its path
	wantWhole(t, l, "other")
	l.Catalog.Server.Clear()
	wantWhole(t, l, "db", "other")
}

// catalogFailures are answers that tell nothing of whether an entry is there.
func catalogFailures() map[string]struct {
	fault gluetest.Fault
	want  syscall.Errno
} {
	return map[string]struct {
		fault gluetest.Fault
		want  syscall.Errno
	}{
		"500":          {gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no"), syscall.EIO},
		"denied":       {gluetest.Denied(), syscall.EACCES},
		"a web page":   {gluetest.HTML(http.StatusNotFound), syscall.EIO},
		"a good page":  {gluetest.HTML(http.StatusOK), syscall.EIO},
		"throttled":    {gluetest.Throttle(), syscall.EIO},
		"no answer":    {gluetest.LoseRequest(), syscall.EIO},
		"cut":          {gluetest.CutBody(20), syscall.EIO},
		"empty":        {gluetest.Body(http.StatusOK, "application/x-amz-json-1.1", "{}"), syscall.EIO},
		"of the input": {gluetest.Error(http.StatusBadRequest, "InvalidInputException", "no"), syscall.EIO},
	}
}

// TestCase39_OneTableFails: whatever goes wrong but EntityNotFoundException, the
// table is not taken for absent, and is there as soon as the catalog answers.
func TestCase39_OneTableFails(t *testing.T) {
	t.Parallel()
	for what, c := range catalogFailures() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountFaults(t)
			a := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetTable", Database: "db", Table: "t", Fault: c.fault})
			wantErrno(t, "a file of it", statErr(l, "db/t/k=v/f"), c.want)
			wantErrno(t, "list of it", listErr(l, "db/t"), c.want)
			if a.Hits() == 0 {
				t.Error("nothing met the fault")
			}
			wantContent(t, l, "db/u/f", "db.u")
			wantWhole(t, l, "other")
			wantErrno(t, "a table that is not there", statErr(l, "db/none"), syscall.ENOENT)
			l.Catalog.Server.Clear()
			wantWhole(t, l, "db")
		})
	}
}

// TestCase39_OnePartitionFails likewise.
func TestCase39_OnePartitionFails(t *testing.T) {
	t.Parallel()
	for what, c := range catalogFailures() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountFaults(t)
			l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartition", Database: "db", Fault: c.fault})
			wantErrno(t, "the partition", statErr(l, "db/t/k=v"), c.want)
			wantErrno(t, "a file of it", statErr(l, "db/t/k=v/f"), c.want)
			wantErrno(t, "create in it", openErr(l, "db/t/k=v/new", creat), c.want)
			wantWhole(t, l, "other")
			wantContent(t, l, "db/u/f", "db.u")
			l.Catalog.Server.Clear()
			wantWhole(t, l, "db")
		})
	}
}

// TestCase39_OnlyATableGranted: a deep path works without any right on its parents.
func TestCase39_OnlyATableGranted(t *testing.T) {
	t.Parallel()
	l := mountFaults(t)
	for _, op := range []string{"GetDatabases", "GetDatabase", "GetTables"} {
		l.Catalog.Server.Fault(gluetest.Rule{Op: op, Fault: gluetest.Denied()})
	}
	l.Catalog.Server.Fault(gluetest.Rule{If: func(c *gluetest.Call) bool { return c.Database != "db" || c.Table != "t" }, Fault: gluetest.Denied()})
	l.MustSh(`echo refresh >.lakefs/ctl`)
	for range 2 {
		wantContent(t, l, "db/t/k=v/f", "db.t")
		wantNames(t, l, "db/t", "k=v")
		l.MustSh(`cd db/t/k=v && /bin/pwd && cat f && jq -e .Table.Name ../../t.json`)
		for _, dir := range []string{"", "db", "db/u", "other", "other/t"} {
			wantErrno(t, "list of "+dir, listErr(l, dir), syscall.EACCES)
		}
		for _, path := range []string{"db.json", "db/u/f", "db/u.json", "other/t/k=v/f", "elsewhere/t/f"} {
			wantErrno(t, "stat of "+path, statErr(l, path), syscall.EACCES)
		}
		wantErrno(t, "a partition that is not there", statErr(l, "db/t/k=none"), syscall.ENOENT)
		l.MustSh(`echo refresh >.lakefs/ctl`)
	}
	write(t, l, "db/t/k=v/new", "written")
	l.Catalog.Server.Clear()
	l.MustSh(`echo refresh >.lakefs/ctl; rm db/t/k=v/new`)
	wantWhole(t, l, "db", "other")
}

// inFirst are locations of partitions in the first bucket of a lake.
func inFirst(l *mounttest.Lake) func(values []string) string {
	return func(values []string) string { return l.Catalog.At("s3://{0}/many/" + strings.Join(values, "/")) }
}

// mountManyPartitions mounts db.many with n partitions, n=0 and on, that have no objects.
func mountManyPartitions(t *testing.T, n int, flags ...string) *mounttest.Lake {
	t.Helper()
	l := newGlueLake(t, mounttest.Options{Flags: flags})
	addEntries(l, csvAt("many", "s3://{0}/many", `,"PartitionKeys":[{"Name":"n","Type":"int"}]`))
	l.Catalog.Server.AddMany("db", "many", gluetest.Many{Count: n, Location: inFirst(l), Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	l.Start()
	return l
}

// manyCount are three pages of partitions, the last with one.
const manyCount = 2501

// wantPartitions asserts that db.many lists the partitions of manyCount, each once.
func wantPartitions(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	names, err := l.Names("db/many")
	if err != nil || len(names) != manyCount {
		t.Errorf("%d partitions are listed, %v; want %d", len(names), err, manyCount)
		return
	}
	for i := range manyCount {
		if _, found := slices.BinarySearch(names, fmt.Sprint("n=", i)); !found {
			t.Errorf("n=%d is not listed", i)
			return
		}
	}
}

// TestCase40_ExactCountsOfACatalog: at the edges of a page, and over many.
func TestCase40_ExactCountsOfACatalog(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	server := l.Catalog.Server
	counts := []int{0, 1, 177, 999, 1000, 1001, 2501}
	for _, n := range counts {
		table := fmt.Sprint("t", n)
		addEntries(l, csvAt(table, "s3://{0}/"+table, `,"PartitionKeys":[{"Name":"n","Type":"int"}]`))
		server.AddMany("db", table, gluetest.Many{Count: n, Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	}
	for _, n := range []int{1, 99, 100, 101, 277} {
		for i := range n {
			server.AddTable(fmt.Sprint("d", n), csvAt(fmt.Sprintf("t%03d", i), "s3://x/y", ""))
		}
	}
	for i := range 150 {
		server.AddDatabase(fmt.Sprintf("many%03d", i))
	}
	l.Start()
	for _, n := range counts {
		if got := l.MustSh(fmt.Sprintf(`cd db/t%d; ls | wc -l; ls | sort -u | wc -l; ls -U | grep -c '^n=[0-9]*$'; true`, n)); got != fmt.Sprintf("%d\n%[1]d\n%[1]d\n", n) {
			t.Errorf("%d partitions: %q", n, got)
		}
	}
	for _, n := range []int{1, 99, 100, 101, 277} {
		if got := l.MustSh(fmt.Sprintf(`ls d%d | sort -u | grep -vc json; ls d%[1]d | wc -l`, n)); got != fmt.Sprintf("%d\n%d\n", n, 2*n) {
			t.Errorf("%d tables: %q", n, got)
		}
	}
	if got := l.MustSh(`ls | sort -u | grep -c '^many[0-9]*$'`); got != "150\n" {
		t.Errorf("150 databases: %q", got)
	}
}

// isFirst takes the requests for first pages, those of segments too.
func isFirst(c *gluetest.Call) bool { return c.Input["NextToken"] == nil }

// TestCase40_PagesOfACatalogThatFail: a listing is whole, or an error.
func TestCase40_PagesOfACatalogThatFail(t *testing.T) {
	t.Parallel()
	for what, c := range catalogFailures() {
		if what == "empty" {
			continue // some services leave the list out of a page that has none
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountManyPartitions(t, manyCount, quick...)
			segment := func(q *gluetest.Call) bool {
				s, _ := q.Input["Segment"].(map[string]any)
				return fmt.Sprint(s["SegmentNumber"]) == "4"
			}
			for which, rule := range map[string]func(*gluetest.Call) bool{"one segment": segment, "the first page": func(q *gluetest.Call) bool { return q.Input["Segment"] == nil }} {
				a := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", If: rule, Fault: c.fault})
				wantErrno(t, which, listErr(l, "db/many"), c.want)
				if r := l.Sh(`ls db/many | wc -l; exit ${PIPESTATUS[0]}`); r.Code == 0 || r.Err == "" || r.Out != "0\n" {
					t.Errorf("%s: ls: exit code %d, %q, %q", which, r.Code, r.Out, r.Err)
				}
				if a.Hits() == 0 {
					t.Errorf("%s: nothing met the fault", which)
				}
				wantErrno(t, "a partition", statErr(l, "db/many/n=7"), 0)
				l.Catalog.Server.Clear()
			}
			wantPartitions(t, l)
		})
	}
}

// TestCase40_PassingFaultsOfPages are not seen.
func TestCase40_PassingFaultsOfPages(t *testing.T) {
	t.Parallel()
	for what, rule := range map[string]gluetest.Rule{
		"throttled":    {Op: "GetPartitions", Skip: 1, Times: 12, Fault: gluetest.Throttle()},
		"500":          {Op: "GetPartitions", Skip: 1, Times: 5, Fault: gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no")},
		"cut":          {Op: "GetPartitions", Times: 3, Fault: gluetest.CutBody(50_000)},
		"lost answers": {Op: "GetPartitions", Times: 3, Fault: gluetest.LoseAnswer()},
		"empty pages":  {Op: "GetPartitions", If: isFirst, Times: 7, Fault: gluetest.EmptyPage()},
		"compressed":   {Op: "GetPartitions", Fault: gluetest.Gzip()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountManyPartitions(t, manyCount, "--metadata-ttl=5m")
			a := l.Catalog.Server.Fault(rule)
			wantPartitions(t, l)
			if a.Hits() < rule.Times || a.Hits() == 0 {
				t.Errorf("%d requests met the fault, want %d", a.Hits(), rule.Times)
			}
		})
	}
}

// TestEdge09_AnEmptyPageWithAToken goes on, in each kind of listing.
func TestEdge09_AnEmptyPageWithAToken(t *testing.T) {
	t.Parallel()
	l := mountFaults(t)
	for _, op := range []string{"GetDatabases", "GetTables", "GetPartitions"} {
		l.Catalog.Server.Fault(gluetest.Rule{Op: op, If: isFirst, Fault: gluetest.EmptyPage()})
	}
	l.MustSh(`echo refresh >.lakefs/ctl`)
	wantNames(t, l, "", "db", "db.json", "other", "other.json")
	wantWhole(t, l, "db", "other")
}

// TestCase40_ARepeatedToken is an error, in bounded time and requests.
func TestCase40_ARepeatedToken(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, quick...)
	for i := range 250 {
		l.Catalog.Server.AddTable("tables", csvAt(fmt.Sprint("t", i), "s3://x/y", ""))
		l.Catalog.Server.AddDatabase(fmt.Sprint("d", i))
	}
	for dir, op := range map[string]string{"": "GetDatabases", "tables": "GetTables", "db/many": "GetPartitions"} {
		l.Catalog.Server.Reset()
		l.Catalog.Server.Fault(gluetest.Rule{Op: op, Fault: gluetest.RepeatToken()})
		// Only now: the check that runs beside a mount's start lists the databases too,
		// and may do so late.
		l.MustSh(`echo refresh >.lakefs/ctl`)
		wantErrno(t, "list of "+dir, listErr(l, dir), syscall.EIO)
		if n := l.Catalog.Server.Requests()[op]; n > 40 {
			t.Errorf("%q: %d requests of %s", dir, n, op)
		}
		l.Catalog.Server.Clear()
	}
	wantPartitions(t, l)
	if got := l.MustSh(`ls tables | grep -vc json; ls | grep -c '^d[0-9]*$'`); got != "250\n250\n" {
		t.Errorf("later: %q", got)
	}
}

// TestHangingCatalog: a listing ends by the time limit, and what is elsewhere does
// not wait for it.
func TestHangingCatalog(t *testing.T) {
	t.Parallel()
	l := mountFaults(t)
	a := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Database: "db", Fault: gluetest.Hang()})
	done := make(chan error, 1)
	go func() { done <- listErr(l, "db/t") }()
	a.Wait(t, 1)
	wantWhole(t, l, "other")
	wantContent(t, l, "db/u/f", "db.u")
	wantContent(t, l, "db/t/k=v/f", "db.t")
	select {
	case err := <-done:
		wantErrno(t, "the listing that hangs", err, syscall.EIO)
	case <-time.After(30 * time.Second):
		t.Error("the listing did not end")
	}
	l.Catalog.Server.Clear()
	wantWhole(t, l, "db")
}

// TestCase39_OnePartitionsPrefixGranted: the store grants that alone; the catalog's
// listing of the table is then no whole one, for other files may lie beside.
func TestCase39_OnePartitionsPrefixGranted(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Faulty: true, Flags: shortTTL})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"},{"Name":"l","Type":"string"}]`))
	for _, k := range []string{"1", "2"} {
		l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(fmt.Sprintf(`{"Values":[%q,"x"],"CreationTime":1767225600,"StorageDescriptor":{"Location":"s3://{0}/far/%s"}}`, k, k)))
		putInBucket(t, l, 0, "far/"+k+"/sub/f", "file of "+k)
	}
	l.Proxy.Add(denied(func(q *faulty.Request) bool { return strings.HasPrefix(q.Key, "far/1/") || q.Op == "HeadBucket" }))
	l.Start()
	for range 2 {
		wantContent(t, l, "db/t/k=1/l=x/sub/f", "file of 1")
		wantNames(t, l, "db/t/k=1/l=x", "sub")
		l.MustSh(`cd db/t/k=1/l=x/sub && /bin/pwd && ls -l && find . -type f; stat ../../../k=2/l=x`)
		wantErrno(t, "a file without rights", statErr(l, "db/t/k=2/l=x/sub/f"), syscall.EACCES)
		wantErrno(t, "list without rights", listErr(l, "db/t/k=2/l=x"), syscall.EACCES)
		wantErrno(t, "list of the table", listErr(l, "db/t"), syscall.EACCES)
		wantErrno(t, "what is not there", statErr(l, "db/t/k=1/l=x/none"), syscall.ENOENT)
		l.MustSh(`echo refresh >.lakefs/ctl`)
	}
	if got := l.MustSh(`stat -c %Y db/t/k=1/l=x`); got != "1767225600\n" {
		t.Errorf("the partition's time is %q, want that of its entry", got)
	}
	write(t, l, "db/t/k=1/l=x/new", "written")
	if got := inBucket(t, l, 0, "far/1/new"); got != "written" {
		t.Errorf("written: %q", got)
	}
}

// TestNamesThatNoPathCanHave are counted, and leave their neighbours alone.
func TestNamesThatNoPathCanHave(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`), csvAt(strings.Repeat("x", 252), "s3://{0}/x", ""), csvAt(strings.Repeat("y", 255), "s3://{0}/y", ""))
	longest := strings.Repeat("é", 126) + "x"
	for _, v := range []string{longest, longest + "x", strings.Repeat("/", 90), "short"} {
		l.Catalog.Server.AddPartition("db", "t", partitionAt(l, v, "s3://{0}/at/"+fmt.Sprint(len(v))))
	}
	putInBucket(t, l, 0, fmt.Sprintf("at/%d/f", len(longest)), "long")
	l.Start()
	wantNames(t, l, "db/t", "k="+longest, "k=short")
	wantContent(t, l, "db/t/k="+longest+"/f", "long")
	wantErrno(t, "256 bytes", statErr(l, "db/t/k="+longest+"x"), syscall.ENAMETOOLONG)
	if s := status(t, l, "db/t").Catalog; s.UnreachableKeys != 2 {
		t.Errorf("%d names are counted as unreachable, want 2", s.UnreachableKeys)
	}
	wantNames(t, l, "db", "t", "t.json", strings.Repeat("x", 252), strings.Repeat("y", 255))
	l.MustSh(`jq -e .Table.Name db/` + strings.Repeat("x", 252) + `/.lakefs/entry.json; jq -e .Table.Name db/` + strings.Repeat("y", 255) + `/.lakefs/entry.json`)
}
