package fs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestManyNewPartitions by mkdir and cp: a registration each at most, and few other
// requests.
func TestManyNewPartitions(t *testing.T) {
	t.Parallel()
	manyNewPartitions(t, 200)
}

// TestLargeAThousandNewPartitions is TestManyNewPartitions at the size that is promised.
func TestLargeAThousandNewPartitions(t *testing.T) {
	if os.Getenv(largeVariable) == "" {
		t.Skipf("set %s (make test-large): it takes minutes", largeVariable)
	}
	manyNewPartitions(t, 1000)
}

func manyNewPartitions(t *testing.T, n int) {
	t.Helper()
	last := 1000 + n - 1
	each := fmt.Sprintf(`for i in $(seq 1000 %d); do mkdir dt=$i && cp one dt=$i/ || exit 1; done`, last)
	for name, tt := range map[string]struct {
		key, script string
		most        int // registrations
	}{
		"one after the other": {"dt", each, n},
		"of an int":           {"dt:int", each, n},
		"sixteen at once":     {"dt", fmt.Sprintf(`seq 1000 %d | xargs -P 16 -I{} sh -c 'mkdir dt={} && cp one dt={}/'`, last), n - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{tt.key}, Files: map[string]string{"one": "1\n"}}}
			// What is looked for in vain is asked for again when the TTLs are over, however
			// long all of it takes.
			l := mountGlue(t, mounttest.Options{Timeout: 10 * time.Minute, Flags: []string{"--metadata-ttl=20m", "--negative-ttl=20m"}}, table)
			l.MustSh(`cd db/t; ` + tt.script)
			requests := l.Catalog.Server.Requests()
			if others := total(requests) - requests[registration]; requests[registration] > tt.most || others > n/10 {
				t.Errorf("%d registrations and %d other requests, want %d and %d at most: %v", requests[registration], others, tt.most, n/10, requests)
			}
			var partitions int
			for _, c := range l.Catalog.Server.Calls(registration) {
				list, _ := c.Input["PartitionInputList"].([]any)
				partitions += len(list)
			}
			if partitions != n {
				t.Errorf("%d partitions were registered", partitions)
			}
			if got := l.MustSh(`ls -d db/t/dt=*/one | wc -l`); got != fmt.Sprintln(n) {
				t.Errorf("%q are listed", got)
			}
		})
	}
}

// TestUnregisteredIsTold in status.json of the root and of the directories above, with
// the reason, until the next publish.
func TestUnregisteredIsTold(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
	if r := l.Sh(`cp db/t/dt=1/a db/t/dt=7/f`); r.Code == 0 {
		t.Error("cp is told of nothing")
	}
	const told = `jq -r '.unregistered[]? | .path + ": " + .reason' %s.lakefs/status.json`
	for _, dir := range []string{"", "db/", "db/t/", "db/t/dt=7/"} {
		got := l.MustSh(fmt.Sprintf(told, dir))
		if want := "db/t/dt=7: "; !strings.HasPrefix(got, want) || !strings.Contains(got, "AccessDeniedException") {
			t.Errorf("%sstatus.json tells of %q", dir, got)
		}
	}
	if got := l.MustSh(fmt.Sprintf(told, "db/t/dt=1/")); got != "" {
		t.Errorf("another partition's tells of %q", got)
	}
	l.Catalog.Server.Clear()
	l.MustSh(`echo 8 > db/t/dt=7/g`)
	if got := l.MustSh(fmt.Sprintf(told, "")); got != "" {
		t.Errorf("after the next publish: %q", got)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
