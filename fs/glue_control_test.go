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

// manyPartitions is db.many with n partitions, none of which has a file.
func manyPartitions(n int) mounttest.GlueTable {
	table := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "many", Format: "csv", Keys: []string{"n:int"}}}
	for i := range n {
		table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{fmt.Sprint(i)}, Parameters: map[string]string{"number": fmt.Sprint(i)}})
	}
	return table
}

func TestPartitionsAreStreamed(t *testing.T) {
	t.Parallel()
	const n = 2501
	l := mountGlue(t, mounttest.Options{}, manyPartitions(n), inCatalog())
	got := l.MustSh(`cd db/many/.lakefs; stat -c %s partitions.jsonl; wc -l <partitions.jsonl; jq -r .Parameters.number partitions.jsonl | sort -n | sha1sum; seq 0 2500 | sha1sum
		grep -c '"number":"2500"' partitions.jsonl; cat partitions.jsonl | cmp - partitions.jsonl; head -1 partitions.jsonl | jq -r '.TableName'`)
	lines := strings.Split(got, "\n")
	if len(lines) != 7 || lines[0] != "0" || lines[1] != fmt.Sprint(n) || lines[2] != lines[3] || lines[4] != "1" || lines[5] != "many" {
		t.Errorf("partitions.jsonl: %q", got)
	}
	wantNames(t, l, "db/many/.lakefs", "entry.json", "footer", "partitions.jsonl", "rows", "schema.sql", "staged", "status.json", "txn")
	wantNames(t, l, "db/t/.lakefs", "entry.json", "footer", "partitions.jsonl", "rows", "schema.sql", "staged", "status.json", "txn")
	wantErrno(t, "open for writing", openErr(l, "db/many/.lakefs/partitions.jsonl", syscall.O_WRONLY), syscall.EPERM)
	wantErrno(t, "of a partition", statErr(l, "db/t/dt=1/.lakefs/partitions.jsonl"), syscall.ENOENT)
	wantErrno(t, "of a database", statErr(l, "db/.lakefs/partitions.jsonl"), syscall.ENOENT)
	if script := `import os
f=os.open("db/many/.lakefs/partitions.jsonl",os.O_RDONLY)
whole=b""
while b:=os.read(f,100000): whole+=b
assert os.pread(f,50,70000)==whole[70000:70050]
assert os.pread(f,50,60000)==whole[60000:60050]
assert os.pread(f,50,len(whole))==b""
print(whole.count(b"\n"))`; mustPython(t, l, script) != fmt.Sprintln(n) {
		t.Error("reads at offsets")
	}
}

// TestPartitionsThatAreNotTheCatalogs have no file.
func TestPartitionsThatAreNotTheCatalogs(t *testing.T) {
	t.Parallel()
	plain := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "plain", Format: "csv"}}
	l := mountGlue(t, mounttest.Options{}, plain)
	wantNames(t, l, "db/plain/.lakefs", "entry.json", "footer", "rows", "schema.sql", "staged", "status.json", "txn")
	wantErrno(t, "stat", statErr(l, "db/plain/.lakefs/partitions.jsonl"), syscall.ENOENT)
}

// TestPartitionsThatBreakOff: no reader takes a part for the whole.
func TestPartitionsThatBreakOff(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, manyPartitions(2501))
	l.MustSh(`stat db/many/.lakefs/partitions.jsonl >/dev/null`)
	l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 1, Fault: gluetest.Error(http.StatusBadRequest, "InvalidInputException", "no more")})
	r := l.Sh(`cat db/many/.lakefs/partitions.jsonl | wc -l; exit ${PIPESTATUS[0]}`)
	if r.Code == 0 || !strings.Contains(r.Err, "Input/output error") || r.Out == "2501\n" {
		t.Errorf("cat: exit code %d, %s, %q; want EIO", r.Code, r.Out, r.Err)
	}
	l.WaitLog("the list of partitions broke off")
	l.Catalog.Server.Clear()
	if got := l.MustSh(`wc -l <db/many/.lakefs/partitions.jsonl`); got != "2501\n" {
		t.Errorf("later: %q lines", got)
	}
}

// TestPartitionsClosedEarly: nobody asks for what nobody reads.
func TestPartitionsClosedEarly(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, manyPartitions(5000))
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 1, Fault: gluetest.Hang()})
	l.Catalog.Server.Reset()
	l.MustSh(`head -c 100 db/many/.lakefs/partitions.jsonl >/dev/null`)
	if hung.Hits() > 0 { // the reader did not wait for it; what was asked ends with the descriptor
		hung.Remove()
	}
	l.Catalog.Server.Clear()
	if n := l.Catalog.Server.Requests()["GetPartitions"]; n > 2 {
		t.Errorf("%d requests for the first 100 bytes", n)
	}
}

func TestPartitionEntries(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m"}}, inCatalog(), twoKeys())
	for dir, want := range map[string]string{"db/t/dt=2": `["2"]`, "db/two/dt=1/k=y": `["1","y"]`} {
		if got := l.MustSh(`jq -c '.Partition.Values' ` + dir + `/.lakefs/entry.json`); got != want+"\n" {
			t.Errorf("%s: entry.json of %q, want %s", dir, got, want)
		}
		wantNames(t, l, dir+"/.lakefs", "entry.json", "footer", "rows", "staged", "status.json")
	}
	l.MustSh(`mkdir db/t/dt=7`)
	for _, dir := range []string{"db/two/dt=1", "db/two/dt=1/k=x/sub", "db/t/dt=7"} {
		wantNames(t, l, dir+"/.lakefs", "footer", "rows", "staged", "status.json")
		wantErrno(t, dir, statErr(l, dir+"/.lakefs/entry.json"), syscall.ENOENT)
	}
	l.MustSh(`ls db/t/dt=1 db/t`)
	l.Catalog.Server.Reset()
	wantNames(t, l, "db/t/.lakefs", "entry.json", "footer", "partitions.jsonl", "rows", "schema.sql", "staged", "status.json", "txn")
	wantNames(t, l, "db/.lakefs", "entry.json", "staged", "status.json")
	wantNames(t, l, "db/t/dt=1/.lakefs", "entry.json", "footer", "rows", "staged", "status.json")
	if asked := l.Catalog.Server.Requests(); len(asked) > 0 {
		t.Errorf("listing control directories asks the catalog: %v", asked)
	}
}

// TestPartitionsWhoseReaderIsKilled: a reader that waits for the catalog dies when it
// is killed, and the file can be read later.
func TestPartitionsWhoseReaderIsKilled(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, manyPartitions(1500))
	l.MustSh(`stat db/many/.lakefs/partitions.jsonl >/dev/null`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Fault: gluetest.Hang()})
	if r := l.Sh(`timeout -s KILL 2 cat db/many/.lakefs/partitions.jsonl; echo $?`); r.Out != "137\n" {
		t.Errorf("cat: %s, want 137, by SIGKILL", brief(r.Out))
	}
	if hung.Hits() == 0 {
		t.Error("the catalog was not asked")
	}
	l.Catalog.Server.Clear()
	if got := l.MustSh(`wc -l <db/many/.lakefs/partitions.jsonl`); got != "1500\n" {
		t.Errorf("later: %q lines", got)
	}
}
