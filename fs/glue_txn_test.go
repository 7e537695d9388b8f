package fs_test

import (
	"fmt"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestTransactionInACatalog: new partitions are registered once all is published, a
// hundred in a request; what is written for one that lies elsewhere goes there.
func TestTransactionInACatalog(t *testing.T) {
	t.Parallel()
	const n = 300
	l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=5m"}}, inCatalog())
	l.MustSh(fmt.Sprintf(`mkdir %[1]s; cd %[1]s; mkdir dt=2; echo 3,three >dt=2/c; for i in $(seq 10 %[2]d); do mkdir dt=$i; echo $i,new >dt=$i/f; done`, txn, n+9))
	wantRegistered(t, l, "t", "1", "2", "3")
	written := l.Catalog.Server.Requests()
	l.Catalog.Server.Reset()
	l.MustSh(`echo commit >` + txn + `/ctl`)
	committed := l.Catalog.Server.Requests()
	if got := committed["BatchCreatePartition"]; got != n/100 || total(committed) > n/100+10 {
		t.Errorf("the commit of %d new partitions took the requests %v, want %d of BatchCreatePartition and a few", n, committed, n/100)
	}
	if total(written) > 60 {
		t.Errorf("writing into %d new partitions took the requests %v", n, written)
	}
	if got := inBucket(t, l, 1, "else/where/c"); got != "3,three\n" {
		t.Errorf("dt=2/c: %q", got)
	}
	wantContent(t, l, fmt.Sprintf("db/t/dt=%d/f", n), fmt.Sprintf("%d,new\n", n))
	names, err := l.Names("db/t")
	if err != nil || len(names) != n+3 {
		t.Errorf("%d partitions are listed, %v", len(names), err)
	}
}

// TestTransactionClearsWhereThePartitionLies, and leaves what lies where it would be.
func TestTransactionClearsWhereThePartitionLies(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{}}, inCatalog())
	l.MustSh(fmt.Sprintf(`mkdir %[1]s; cd %[1]s; mkdir dt=2; echo 3,three >dt=2/b; echo 4,four >dt=2/d; echo overwrite dt=2 >ctl`, txn))
	for key, want := range map[string]string{"else/where/b": "3,three\n", "else/where/d": "4,four\n"} {
		if got := inBucket(t, l, 1, key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	wantContent(t, l, "db/t/dt=1/a", "1,one\n")
	if got := stored(t, l, "db/t/dt=2/old"); got != "old\n" {
		t.Errorf("what lies at the default location: %q", got)
	}
}

func total(requests map[string]int) (n int) {
	for _, m := range requests {
		n += m
	}
	return n
}
