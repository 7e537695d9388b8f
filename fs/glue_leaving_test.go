package fs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Partitions that are removed: gone from the mount at once, from the catalog after a
// while, unless they are back by then.

const deletion = "DeletePartition"

// shortly and late are how long a removed partition stays in the catalog: a moment, and
// longer than any test waits.
const (
	shortly = "--deregister-after=1s"
	late    = "--deregister-after=1h"
)

// mountLeaving mounts tables at --write=delete.
func mountLeaving(t *testing.T, after string, tables ...mounttest.GlueTable) *mounttest.Lake {
	t.Helper()
	return mountGlue(t, mounttest.Options{Flags: []string{"--write=delete", after}}, tables...)
}

// partitionEntry is what the catalog has of a partition of db.t.
func partitionEntry(t *testing.T, l *mounttest.Lake, values ...string) string {
	t.Helper()
	return string(l.Catalog.Call("GetPartition", map[string]any{"DatabaseName": "db", "TableName": "t", "PartitionValues": values}))
}

// wantDeleted asserts how many partitions were asked to be deleted, and that none was made.
func wantDeleted(t *testing.T, l *mounttest.Lake, want int) {
	t.Helper()
	asked := l.Catalog.Server.Requests()
	if asked[deletion] != want || asked[registration] != 0 {
		t.Errorf("%d requests of %s and %d of %s, want %d and none", asked[deletion], deletion, asked[registration], registration, want)
	}
}

// waitDeregistered waits until the catalog has no partition of these values.
func waitDeregistered(t *testing.T, l *mounttest.Lake, values ...string) {
	t.Helper()
	l.Eventually(fmt.Sprintf("the catalog to be without %q", values), 20*time.Second, func() bool {
		_, err := l.Catalog.TryCall("GetPartition", map[string]any{"DatabaseName": "db", "TableName": "t", "PartitionValues": values})
		return err != nil && strings.Contains(err.Error(), "EntityNotFound")
	})
}

func TestCase75_RemovedAndMadeAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]string{
		"mkdir": `mkdir dt=2; echo new > dt=2/new`,
		"cp":    `d=$(mktemp -d); echo new > $d/new; cp -r $d dt=2; rm -r $d`,
		"tree":  `mkdir -p .spark-staging-u/dt=2; echo new > .spark-staging-u/dt=2/new; python3 -c 'import os; os.rename(".spark-staging-u/dt=2", "dt=2")'; rm -r .spark-staging-u`,
		"mv":    `mkdir dt=1/tmp; echo new > dt=1/tmp/new; mkdir dt=2; mv dt=1/tmp/new dt=2/; rmdir dt=1/tmp`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountLeaving(t, late, inCatalog())
			l.Catalog.Call("UpdatePartition", `{"DatabaseName":"db","TableName":"t","PartitionValueList":["2"],"PartitionInput":{"Values":["2"],`+
				`"Parameters":{"statistics":"kept"},"StorageDescriptor":`+descriptorOf(t, l, "2")+`}}`)
			before := partitionEntry(t, l, "2")
			l.Catalog.Server.Reset()
			l.MustSh(`cd db/t; exec 3< dt=2; rm -r dt=2; test ! -e dt=2; test ! -e dt=2/.lakefs; ls >/dev/null`)
			wantNames(t, l, "db/t", "dt=1", "dt=3")
			if got := catalogStatus(t, l, "db/t").Leaving["dt=2"]; got == "" {
				t.Error("status.json does not tell that dt=2 is leaving")
			}
			l.MustSh(`cd db/t; ` + again)
			wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
			wantNames(t, l, "db/t/dt=2", "new")
			if got := inBucket(t, l, 1, "else/where/new"); got != "new\n" {
				t.Errorf("the partition's own location has %q", got)
			}
			if after := partitionEntry(t, l, "2"); after != before {
				t.Errorf("the entry is\n%s\nand was\n%s", after, before)
			}
			wantDeleted(t, l, 0)
			if got, _ := inStore(t, l, "db/t/dt=2/old"); got != "old\n" {
				t.Errorf("the object at the default path: %q", got)
			}
		})
	}
}

// descriptorOf is the storage descriptor of a partition of db.t.
func descriptorOf(t *testing.T, l *mounttest.Lake, values ...string) string {
	t.Helper()
	var answer struct {
		Partition struct{ StorageDescriptor json.RawMessage }
	}
	if err := json.Unmarshal([]byte(partitionEntry(t, l, values...)), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Partition.StorageDescriptor)
}

func TestRemovedPartitionIsDeregistered(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, shortly, inCatalog())
	l.Catalog.Server.Reset()
	l.MustSh(`cd db/t; rm -r dt=1; test ! -e dt=1`)
	waitDeregistered(t, l, "1")
	l.WaitLog("deregistered a removed partition")
	wantRegistered(t, l, "t", "2", "3")
	wantDeleted(t, l, 1)
	wantNames(t, l, "db/t", "dt=2", "dt=3")
	l.MustSh(`cd db/t; test ! -e dt=1; mkdir dt=1; echo 1 > dt=1/f`) // as any new one
	wantRegistered(t, l, "t", "1", "2", "3")
	wantStore(t, l, "db/t/dt=1/f", "1\n")
}

func TestRemovedPartitionAndUnmount(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, late, inCatalog())
	l.Catalog.Server.Reset()
	l.MustSh(`rm -r db/t/dt=1; rmdir db/t/dt=3`)
	wantDeleted(t, l, 0)
	l.Unmount()
	wantRegistered(t, l, "t", "2")
	wantDeleted(t, l, 2)
}

func TestRemovedPartitionAndKill(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, late, inCatalog())
	l.MustSh(`rmdir db/t/dt=3; test ! -e db/t/dt=3`)
	l.Kill()
	l.Start()
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	wantRegistered(t, l, "t", "1", "2", "3")
}

// TestRemovedPartitionIsWrittenByAnother: it stays, and is shown again.
func TestRemovedPartitionIsWrittenByAnother(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete", shortly, "--metadata-ttl=1h"}}, inCatalog())
	l.MustSh(`ls db/t db/t/*`)
	l.Catalog.Server.Reset()
	held := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartition", Times: 1, Fault: gluetest.Hang()})
	l.MustSh(`rmdir db/t/dt=3`)
	held.Wait(t, 1) // before it looks at the store
	l.PutStored("db/t/dt=3/theirs", "3\n")
	l.Catalog.Server.Release()
	l.WaitLog("objects lie in a removed partition")
	l.Eventually("it to be shown", 20*time.Second, func() bool {
		names, err := l.Names("db/t/dt=3")
		return err == nil && strings.Join(names, " ") == "theirs"
	})
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	wantDeleted(t, l, 0)
}

func TestDeregisteringIsDenied(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, shortly, inCatalog())
	l.Catalog.Server.Fault(gluetest.Rule{Op: deletion, Fault: gluetest.Denied()})
	l.Catalog.Server.Reset()
	l.MustSh(`rmdir db/t/dt=3`)
	l.WaitLog("a removed partition stays in the catalog")
	l.WaitLog("AccessDenied")
	l.Eventually("it to be shown", 20*time.Second, func() bool { return l.Sh(`test -d db/t/dt=3`).Code == 0 })
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	if n := strings.Count(l.Log(), "a removed partition stays in the catalog"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
	l.MustSh(`echo new > db/t/dt=3/new`)
	wantDeleted(t, l, 1)
}

// TestDeregisteringTakesItsTime: what is made meanwhile waits, and is registered anew.
func TestDeregisteringTakesItsTime(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, shortly, inCatalog())
	held := l.Catalog.Server.Fault(gluetest.Rule{Op: deletion, Times: 1, Fault: gluetest.Hang()})
	l.MustSh(`rmdir db/t/dt=3`)
	held.Wait(t, 1)
	l.MustSh(`ls db/t >/dev/null; cat db/t/dt=1/a; test ! -e db/t/dt=3`) // nothing else waits
	made := make(chan error, 1)
	go func() { made <- syscall.Mkdir(l.Path("db/t/dt=3"), 0o755) }()
	l.Catalog.Server.Release()
	select {
	case err := <-made:
		if err != nil {
			t.Fatalf("mkdir: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("mkdir waits for ever")
	}
	l.MustSh(`echo new > db/t/dt=3/new`)
	wantRegistered(t, l, "t", "1", "2", "3")
	wantStore(t, l, "db/t/dt=3/new", "new\n")
}

func TestRemovedPartitionsOfTwoKeys(t *testing.T) {
	t.Parallel()
	table := twoKeys()
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"2", "x"}, Files: map[string]string{"f": "2\n"}})
	l := mountLeaving(t, shortly, table)
	l.MustSh(`cd db/two; ls -R >/dev/null; rm -r dt=1/k=x; ls dt=1; rm -r dt=1; test ! -e dt=1; test "$(ls)" = dt=2; test ! -e dt=1/k=x`)
	l.Eventually("the catalog to have one", 20*time.Second, func() bool {
		raw := l.Catalog.Call("GetPartitions", map[string]string{"DatabaseName": "db", "TableName": "two"})
		return strings.Count(string(raw), `"Values"`) == 1
	})
	wantRegistered(t, l, "two", "2/x")
	wantNames(t, l, "db/two", "dt=2")
	l.MustSh(`cd db/two; test ! -e dt=1; mkdir -p dt=1/k=z; echo z > dt=1/k=z/f`)
	wantRegistered(t, l, "two", "1/z", "2/x")
}

// TestUpperLevelIsMadeAgain: its partitions are taken back one by one.
func TestUpperLevelIsMadeAgain(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, late, twoKeys())
	l.Catalog.Server.Reset()
	l.MustSh(`cd db/two; rm -r dt=1; mkdir dt=1; test -z "$(ls dt=1)"; mkdir dt=1/k=y; echo new > dt=1/k=y/new; test "$(ls dt=1)" = k=y`)
	if got := inBucket(t, l, 1, "new"); got != "new\n" {
		t.Errorf("the partition's own bucket has %q", got)
	}
	wantDeleted(t, l, 0)
	l.Unmount()
	wantRegistered(t, l, "two", "1/y")
	wantDeleted(t, l, 1)
}

// TestCase75_TableIsEmptiedAndRemoved: as Spark's overwrite does.
func TestCase75_TableIsEmptiedAndRemoved(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, late, inCatalog(), twoKeys())
	l.Catalog.Server.Reset()
	for _, table := range []string{"db/t", "db/two"} {
		l.MustSh(`ls -lR ` + table + `; rm -r ` + table + `/*; rmdir ` + table + `; test -d ` + table + `; test -z "$(ls ` + table + `)"; echo x > ` + table + `/f; cat ` + table + `/f; rm ` + table + `/f`)
	}
	l.MustSh(`rm -r db/t; mkdir db/t/dt=2; echo new > db/t/dt=2/new`) // whole, as Hadoop's delete does
	if got := inBucket(t, l, 1, "else/where/new"); got != "new\n" {
		t.Errorf("the partition's own location has %q", got)
	}
	wantDeleted(t, l, 0)
	wantNames(t, l, "db/t", "dt=2")
	l.Unmount()
	wantRegistered(t, l, "t", "2")
	wantRegistered(t, l, "two", "1/y") // the new file lies in its location too, which is a bucket
}

// TestLeavingByWriteLevel: another's partition needs --write=delete, one that this
// mount made none; no level is enough where the catalog is not written.
func TestLeavingByWriteLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags       []string
		their, ours syscall.Errno
	}{
		{[]string{"--write=create"}, syscall.EPERM, 0},
		{[]string{"--write=overwrite"}, syscall.EPERM, 0},
		{[]string{"--write=delete"}, 0, 0},
		{[]string{"--write=delete", "--catalog-writes=none"}, syscall.EPERM, 0}, // ours is not registered
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: append(c.flags, late)}, inCatalog())
			l.MustSh(`cd db/t; mkdir dt=8; echo 8 > dt=8/f; rm dt=8/f`)
			wantErrno(t, "rmdir of another's", rmdir(l, "db/t/dt=3"), c.their)
			wantErrno(t, "rmdir of our own", rmdir(l, "db/t/dt=8"), c.ours)
			wantErrno(t, "rmdir of one with objects", rmdir(l, "db/t/dt=1"), syscall.ENOTEMPTY)
			wantErrno(t, "rmdir of one elsewhere", rmdir(l, "db/t/dt=2"), syscall.ENOTEMPTY)
		})
	}
	for _, flag := range []string{"--write=none", "--read-only"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{flag}}, inCatalog())
			if err := rmdir(l, "db/t/dt=3"); err == nil {
				t.Error("rmdir of a partition: no error")
			}
			wantOnlyReads(t, l)
		})
	}
}

// TestLeavingWithASharedLocation: the entry goes, and no object of the other's.
func TestLeavingWithASharedLocation(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"4"}, Location: "s3://{0}/shared/"}, mounttest.GluePartition{Values: []string{"5"}, Location: "s3://{0}/shared/"})
	l := mountLeaving(t, late, table)
	putInBucket(t, l, 0, "shared/", "") // a directory's marker
	wantErrno(t, "rmdir", rmdir(l, "db/t/dt=4"), 0)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=5")
	l.Unmount()
	wantRegistered(t, l, "t", "1", "2", "3", "5")
	if got := inBucket(t, l, 0, "shared/"); got != "" {
		t.Errorf("the marker is %q", got)
	}
}

// TestLeavingInMoto: another's catalog answers likewise.
func TestLeavingInMoto(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Flags: []string{"--write=delete", late}, Timeout: 3 * time.Minute,
		Glue: &mounttest.Glue{Endpoint: gluetest.FreshMoto(t).URL, Buckets: 2, Tables: []mounttest.GlueTable{inCatalog()}},
	})
	before := partitionEntry(t, l, "2")
	l.MustSh(`cd db/t; rm -r dt=2 dt=1; test "$(ls)" = dt=3; mkdir dt=2; echo new > dt=2/new; cat dt=2/new`)
	if got := inBucket(t, l, 1, "else/where/new"); got != "new\n" {
		t.Errorf("the partition's own location has %q", got)
	}
	l.Unmount()
	wantRegistered(t, l, "t", "2", "3")
	if after := partitionEntry(t, l, "2"); after != before {
		t.Errorf("the entry is\n%s\nand was\n%s", after, before)
	}
	l.Catalog.Call("DeletePartition", map[string]any{"DatabaseName": "db", "TableName": "t", "PartitionValues": []string{"3"}})
	l.Start()
	wantNames(t, l, "db/t", "dt=2")
	l.MustSh(`rm -r db/t/dt=2`)
	l.Catalog.Call("DeletePartition", map[string]any{"DatabaseName": "db", "TableName": "t", "PartitionValues": []string{"2"}}) // another is first
	l.Unmount()
	if strings.Contains(l.Log(), "stays in the catalog") {
		t.Error("a partition that another dropped is an error")
	}
	wantRegistered(t, l, "t")
}
