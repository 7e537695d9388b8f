package fs_test

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

// TestRequestsOfALongWalk: a walk that takes longer than a listing is fresh asks for
// the list again, and not for each partition.
func TestRequestsOfALongWalk(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, shortTTL...)
	l.MustSh(`stat db/many >/dev/null`)
	l.Catalog.Server.Reset()
	if got := l.MustSh(`find db/many -type d | wc -l`); got != "2502\n" {
		t.Errorf("find counts %q", got)
	}
	n := l.Catalog.Server.Requests()
	if lists := n["GetPartitions"]; n["GetPartition"] > lists+10 {
		t.Errorf("a walk asks %d times for one partition, and %d times for a page; want no more of the first", n["GetPartition"], lists)
	}
}

// TestListedPartitionsAreServedInAnOutage, though none of them was asked for alone.
func TestListedPartitionsAreServedInAnOutage(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, "--metadata-ttl=1s", "--negative-ttl=100ms", "--io-timeout=3s")
	wantPartitions(t, l)
	a := l.Catalog.Server.Fault(gluetest.Rule{Fault: gluetest.LoseRequest()})
	a.Wait(t, 0)
	l.Eventually("the catalog is asked and does not answer", seenWithin, func() bool {
		wantErrno(t, "a listed partition", statErr(l, "db/many/n=7"), 0)
		return a.Hits() > 0
	})
	wantErrno(t, "another listed partition", statErr(l, "db/many/n=2500"), 0)
	wantNames(t, l, "db/many/n=8")
	wantPartitions(t, l)
}
