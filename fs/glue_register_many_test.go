package fs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestAThousandNewPartitions by mkdir and cp: a registration each at most, and few other
// requests: what is looked for in vain is asked for by lists, one a second at most.
func TestAThousandNewPartitions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key, script string
		most        int // registrations
	}{
		"one after the other": {"dt", `for i in $(seq 1000 1999); do mkdir dt=$i && cp one dt=$i/ || exit 1; done`, 1000},
		"of an int":           {"dt:int", `for i in $(seq 1000 1999); do mkdir dt=$i && cp one dt=$i/ || exit 1; done`, 1000},
		"sixteen at once":     {"dt", `seq 1000 1999 | xargs -P 16 -I{} sh -c 'mkdir dt={} && cp one dt={}/'`, 999},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{tt.key}, Files: map[string]string{"one": "1\n"}}}
			l := mountGlue(t, mounttest.Options{Timeout: 10 * time.Minute}, table)
			began := time.Now()
			l.MustSh(`cd db/t; ` + tt.script)
			seconds := int(time.Since(began) / time.Second)
			requests := l.Catalog.Server.Requests()
			registrations, others := requests[registration], 0
			for op, n := range requests {
				if op != registration {
					others += n
				}
			}
			t.Logf("%d s: %v", seconds, requests)
			// A list each second that it takes, and the database and the table each five.
			if most := 50 + 2*seconds; registrations > tt.most || others > most {
				t.Errorf("%d registrations and %d other requests, want %d and %d at most: %v", registrations, others, tt.most, most, requests)
			}
			var partitions int
			for _, c := range l.Catalog.Server.Calls(registration) {
				list, _ := c.Input["PartitionInputList"].([]any)
				partitions += len(list)
			}
			if partitions != 1000 {
				t.Errorf("%d partitions were registered", partitions)
			}
			if got := l.MustSh(`ls -d db/t/dt=*/one | wc -l`); got != "1000\n" {
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
