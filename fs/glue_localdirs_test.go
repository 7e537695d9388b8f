package fs_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Directories that the mount keeps by itself, among partitions of a Glue catalog.

// makeLocal makes eight new partitions of db.t and three days of db.two, the last
// with two new partitions, and returns what ls shows of db.t.
func makeLocal(l *mounttest.Lake) []string {
	l.MustSh(`cd db/t; for i in 1 2 3 4 5 6 7 8; do mkdir dt=1$i; done; cd ../two; mkdir dt=7 dt=8 dt=9 dt=9/k=a dt=9/k=b`)
	names := []string{"dt=1", "dt=2", "dt=3"}
	for i := 1; i <= 8; i++ {
		names = append(names, fmt.Sprint("dt=1", i))
	}
	slices.Sort(names)
	return names
}

// wantLocalShown lists what makeLocal made, as names and with attributes.
func wantLocalShown(t *testing.T, l *mounttest.Lake, names []string) {
	t.Helper()
	wantNames(t, l, "db/t", names...)
	wantNames(t, l, "db/two", "dt=1", "dt=7", "dt=8", "dt=9")
	if got := l.MustSh(`ls -l db/t | grep -c ^d`); got != fmt.Sprintln(len(names)) {
		t.Errorf("ls -l counts %q", got)
	}
}

// TestRequestsOfLocalDirectories: a listing asks for the list alone.
func TestRequestsOfLocalDirectories(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog(), twoKeys())
	names := makeLocal(l)
	wantNames(t, l, "db/two/dt=9", "k=a", "k=b")
	l.Catalog.Server.Reset()
	wantNames(t, l, "db/t", names...)
	wantNames(t, l, "db/two", "dt=1", "dt=7", "dt=8", "dt=9")
	with := l.Catalog.Server.Requests()
	if with["GetPartition"] != 0 || with["GetPartitions"] != 2 {
		t.Errorf("two listings ask for %v; want two pages of partitions, and no partition", with)
	}
	l.MustSh(`rmdir db/t/dt=1[2-8] db/two/dt=8`)
	l.Catalog.Server.Reset()
	wantNames(t, l, "db/t", "dt=1", "dt=11", "dt=2", "dt=3")
	wantNames(t, l, "db/two", "dt=1", "dt=7", "dt=9")
	if few := l.Catalog.Server.Requests(); !maps.Equal(with, few) {
		t.Errorf("with few directories two listings ask for %v, with many for %v", few, with)
	}
	l.MustSh(`cd db/t; mkdir dt=12 dt=13 dt=14 dt=15 dt=16 dt=17 dt=18`)
	addPartition := `{"Values":["14"],"CreationTime":1767225600,"StorageDescriptor":{"Location":"s3://{1}/fourteen"}}`
	l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(addPartition))
	putInBucket(t, l, 1, "fourteen/f", "theirs\n")
	wantNames(t, l, "db/t", names...)
	wantContent(t, l, "db/t/dt=14/f", "theirs\n")
}

// TestCase40_ALocalDirectoryInAnOutage does not wait for a catalog that is silent
// as long as a request may take.
func TestCase40_ALocalDirectoryInAnOutage(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--io-timeout=5m", "--negative-ttl=0s"}, Timeout: time.Minute}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7; stat db/t/dt=7`)
	a := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartition", Fault: gluetest.Hang()})
	l.Eventually("the catalog is asked and does not answer", seenWithin, func() bool {
		wantErrno(t, "a local directory by name", statErr(l, "db/t/dt=7"), 0)
		return a.Hits() > 0
	})
	l.Catalog.Server.Clear()
	l.Catalog.Server.Release()
	l.MustSh(`echo 1 >db/t/dt=7/f`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}

// TestCase40_LocalDirectoriesInAnOutage are served with what is known of the catalog.
func TestCase40_LocalDirectoriesInAnOutage(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]gluetest.Fault{
		"500": gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no"), "no answer": gluetest.LoseRequest(), "hangs": gluetest.Hang(),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=1s", "--negative-ttl=100ms", "--io-timeout=3s"}}, inCatalog(), twoKeys())
			names := makeLocal(l)
			wantLocalShown(t, l, names)
			before := len(l.Catalog.Server.Calls("GetPartition"))
			a := l.Catalog.Server.Fault(gluetest.Rule{Fault: fault})
			l.Eventually("the catalog is asked and does not answer", seenWithin, func() bool {
				wantNames(t, l, "db/t", names...)
				return a.Hits() > 0
			})
			wantLocalShown(t, l, names)
			for _, c := range l.Catalog.Server.Calls("GetPartition")[before:] {
				t.Errorf("listings ask for the partition %v", c.Input["PartitionValues"])
			}
			wantErrno(t, "a local directory by name", statErr(l, "db/t/dt=15"), 0)
			wantErrno(t, "a new partition", mkdir(l, "db/t/dt=99"), syscall.EIO)
			l.Catalog.Server.Clear()
			l.Catalog.Server.Release()
			l.MustSh(`echo 1 >db/t/dt=11/f`)
			wantLocalShown(t, l, names)
		})
	}
}
