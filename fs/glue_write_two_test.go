package fs_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Two mounts of one Glue catalog write into its partitions.

// TestCase53_TwoMountsPublishOneName: one wins, the other is told, and there is one
// partition with the winner's bytes.
func TestCase53_TwoMountsPublishOneName(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	second := l.Second()
	l.MustSh(`mkdir db/t/dt=7`)
	second.MustSh(`mkdir db/t/dt=7`)
	err := writeErr(l, "db/t/dt=7/f", creat, "first\n", func() {
		wantErrno(t, "the other's close", writeErr(second, "db/t/dt=7/f", creat, "second\n", nil), 0)
	})
	wantErrno(t, "close", err, syscall.EEXIST)
	wantContent(t, second, "db/t/dt=7/f", "second\n")
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantContent(t, l, wantStaged(t, l, "db/t/dt=7", "f"), "first\n")
}

// TestTwoMountsSeePartitionsOfEachOther by name at once after the negative TTL, and
// write into them where they are, without a second registration.
func TestTwoMountsSeePartitionsOfEachOther(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog(), twoKeys())
	second := l.Second(noWait...)
	second.MustSh(`ls db/t db/two; ! stat db/t/dt=7 db/two/dt=5/k=z 2>/dev/null`)
	l.MustSh(`mkdir -p db/t/dt=7 db/two/dt=5/k=z; echo 7 > db/t/dt=7/f; echo z > db/two/dt=5/k=z/f`)
	l.Catalog.Server.Reset()
	second.MustSh(`cd db; cat t/dt=7/f two/dt=5/k=z/f; echo more >> t/dt=7/f; mv two/dt=5/k=z/f t/dt=7/g; rm -f t/dt=7/none`)
	if n := l.Catalog.Server.Requests()[registration]; n != 0 {
		t.Errorf("%d registrations", n)
	}
	wantNames(t, second, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
	wantContent(t, l, "db/t/dt=7/f", "7\nmore\n")
	wantContent(t, l, "db/t/dt=7/g", "z\n")
	wantNames(t, l, "db/two", "dt=1", "dt=5")
}

// TestTwoMountsWithAndWithoutCatalogWrites: what one only stores, the other registers
// with its first file, and both show the same then.
func TestTwoMountsWithAndWithoutCatalogWrites(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
	second := l.Second("--catalog-writes=none", "--metadata-ttl=0", "--negative-ttl=0")
	second.MustSh(`mkdir db/t/dt=7; echo 7 > db/t/dt=7/f`)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	wantContent(t, l, "db/t/dt=7/f", "7\n")
	wantRegistered(t, l, "t", "1", "2", "3")
	l.MustSh(`echo more >> db/t/dt=7/f`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	for _, lake := range []*mounttest.Lake{l, second} {
		wantNames(t, lake, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
		wantContent(t, lake, "db/t/dt=7/f", "7\nmore\n")
	}
}

// TestTwoMountsOfManyWriters: each of many partitions once, every file whole.
func TestTwoMountsOfManyWriters(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	second := l.Second()
	var writers sync.WaitGroup
	for i, lake := range []*mounttest.Lake{l, second} {
		writers.Go(func() {
			r := lake.Sh(fmt.Sprintf(`cd db/t; seq 10 29 | xargs -P 8 -I{} sh -c 'mkdir -p dt={} && echo {}.%d > dt={}/f%[1]d && mv dt={}/f%[1]d dt={}/g%[1]d'`, i))
			if r.Code != 0 {
				t.Errorf("mount %d: %s", i, r.Err)
			}
		})
	}
	writers.Wait()
	want := []string{"1"}
	for i := 10; i < 30; i++ {
		want = append(want, fmt.Sprint(i))
		for n := range 2 {
			if got, _ := inStore(t, l, fmt.Sprintf("db/t/dt=%d/g%d", i, n)); got != fmt.Sprintf("%d.%d\n", i, n) {
				t.Errorf("dt=%d/g%d has %q", i, n, got)
			}
		}
	}
	want = append(want, "2", "3")
	slices.Sort(want)
	wantRegistered(t, l, "t", want...)
}
