package fs_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What the mount asks of a catalog, and what memory it takes.

// wantCalls asserts what was asked of the catalog since the last time, and that it
// was all; but for the listing of databases, by which a mount looks at its catalog
// once, beside its start.
func wantCalls(t *testing.T, l *mounttest.Lake, what string, want map[string]int) {
	t.Helper()
	got := l.Catalog.Server.Requests()
	delete(got, "GetDatabases")
	if !maps.Equal(got, want) {
		t.Errorf("%s: asked the catalog for %v, want %v", what, got, want)
	}
	l.Catalog.Server.Reset()
}

// longTTL keeps all that was asked for.
var longTTL = []string{"--metadata-ttl=5m", "--negative-ttl=5m"}

func TestRequestsOfAListingOfPartitions(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, longTTL...)
	l.MustSh(`stat db/many >/dev/null`)
	l.Catalog.Server.Reset()
	wantPartitions(t, l)
	calls := l.Catalog.Server.Calls("GetPartitions")
	segments := make(map[string]bool)
	for _, c := range calls {
		if c.Input["ExcludeColumnSchema"] != true || fmt.Sprint(c.Input["MaxResults"]) != "1000" || c.Input["Expression"] != nil {
			t.Errorf("asked for %v: want no columns, pages of 1000 and no expression", c.Input)
		}
		if s, ok := c.Input["Segment"].(map[string]any); ok {
			segments[fmt.Sprint(s["SegmentNumber"], " of ", s["TotalSegments"])] = true
		}
	}
	if len(calls) > 10 || len(segments) != 9 {
		t.Errorf("%d requests, of the segments %v; want 10 at most, 9 of them of segments", len(calls), segments)
	}
	l.Catalog.Server.Reset()
	l.MustSh(`cd db/many; ls -l >/dev/null; stat n=7 n=2500 >/dev/null; ls -R >/dev/null; find . >/dev/null; test -d n=2; echo n=1*`)
	wantCalls(t, l, "what the listing told", map[string]int{})
}

// TestCase68_TwentyThousandPartitions, of 170 columns: their 20 pages come in four round
// trips. That the segments do not end where pages do costs eight requests (docs/design.md);
// one partition is one request.
func TestCase68_TwentyThousandPartitions(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: longTTL})
	addEntries(l, csvAt("many", "s3://{0}/many", `,"PartitionKeys":[{"Name":"n","Type":"int"}]`))
	l.Catalog.Server.AddMany("db", "many", gluetest.Many{Count: 20_000, Columns: 170, Location: inFirst(l), Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	l.Start()
	l.MustSh(`stat db/many >/dev/null`)
	l.Catalog.Server.Reset()
	l.MustSh(`stat db/many/n=12345`)
	wantCalls(t, l, "stat of a partition", map[string]int{"GetPartition": 1})
	if got := l.MustSh(`ls db/many | wc -l`); got != "20000\n" {
		t.Errorf("ls counts %q", got)
	}
	pages := make(map[string]int) // by segment
	for _, c := range l.Catalog.Server.Calls("GetPartitions") {
		if c.Input["ExcludeColumnSchema"] != true {
			t.Errorf("asked for %v: want no columns", c.Input)
		}
		pages[fmt.Sprint(c.Input["Segment"])]++
	}
	all := 0
	for segment, n := range pages {
		if all += n; n > 3 {
			t.Errorf("%d pages of segment %s, one after the other; want 3", n, segment)
		}
	}
	if all > 28 {
		t.Errorf("%d requests, want 28 at most", all)
	}
}

func TestRequestsOfOnePartition(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, longTTL...)
	l.MustSh(`stat db`) // the listing at the start may have told of it, or not yet
	l.Catalog.Server.Reset()
	l.MustSh(`stat db/many/n=77`)
	wantCalls(t, l, "stat of a partition", map[string]int{"GetTable": 1, "GetPartition": 1})
	l.MustSh(`stat db/many/n=78; ls db/many/n=78; test ! -e db/many/n=78/f; cat db/many/n=78/.lakefs/entry.json`)
	wantCalls(t, l, "stat of another, and its entry", map[string]int{"GetPartition": 2}) // the entry is read anew
	l.MustSh(`ls -l db/many/n=77 db/many/n=78`)
	wantCalls(t, l, "what is known", map[string]int{})
}

// TestRequestsOfManyWhoAskAtOnce: equal questions at a time are one.
func TestRequestsOfManyWhoAskAtOnce(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, manyCount, longTTL...)
	l.Catalog.Server.Reset()
	a := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", Times: 1, Fault: gluetest.Hang()})
	done := make(chan string, 1)
	go func() {
		done <- l.Sh(`for i in $(seq 50); do ls db/many | wc -l & done; wait`).Out
	}()
	a.Wait(t, 1)
	l.Catalog.Server.Release()
	if got := <-done; got != strings.Repeat("2501\n", 50) {
		t.Errorf("50 listings at once: %q", got)
	}
	if n := l.Catalog.Server.Requests()["GetPartitions"]; n > 10 {
		t.Errorf("50 listings at once: %d requests, want those of one", n)
	}
}

func TestRequestsOfADatabase(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Faulty: true, Flags: longTTL})
	for i := range 300 {
		addEntries(l, csvAt(fmt.Sprintf("t%03d", i), fmt.Sprintf("s3://{0}/t%03d", i), `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	}
	l.Start()
	l.MustSh(`ls`)
	l.Catalog.Server.Reset()
	l.Proxy.Reset()
	if got := l.MustSh(`ls -l db | wc -l`); got != "601\n" {
		t.Errorf("ls -l counts %q", got)
	}
	wantCalls(t, l, "ls -l of a database", map[string]int{"GetTables": 3}) // the root's listing told of the database
	l.MustSh(`ls -l . db >/dev/null; stat db/t007 db/t007.json db.json; test ! -e db/none.json/x`)
	if n := l.Catalog.Server.Requests()["GetTables"]; n > 0 {
		t.Errorf("%d further listings", n)
	}
	if requested := l.Proxy.Counts(); len(requested) > 0 {
		t.Errorf("ls of databases and tables asks the store: %v\n%s", requested, asked(l))
	}
	l.Catalog.Server.Reset()
	l.MustSh(`grep -l t299 db/t299.json`)
	wantCalls(t, l, "read of an entry", map[string]int{"GetTable": 1})
}

// TestRequestsOfTwoLevels: the first keys narrow what is asked for.
func TestRequestsOfTwoLevels(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: longTTL})
	addEntries(l, csvAt("two", "s3://{0}/two", `,"PartitionKeys":[{"Name":"dt","Type":"string"},{"Name":"h","Type":"int"}]`))
	l.Catalog.Server.AddMany("db", "two", gluetest.Many{Count: 2400, Location: inFirst(l), Values: func(i int) []string { return []string{fmt.Sprint("d", i/24), fmt.Sprint(i % 24)} }})
	l.Start()
	l.MustSh(`stat db/two >/dev/null`)
	l.Catalog.Server.Reset()
	if got := l.MustSh(`ls db/two/dt=d7 | wc -l`); got != "24\n" {
		t.Errorf("24 hours of a day: %q", got)
	}
	for _, c := range l.Catalog.Server.Calls("GetPartitions") {
		if got, _ := c.Input["Expression"].(string); !strings.Contains(got, "d7") {
			t.Errorf("asked with the expression %q, want one on d7", got)
		}
	}
	wantCalls(t, l, "ls of a day", map[string]int{"GetPartitions": 1})
	l.MustSh(`stat db/two/dt=d7/h=3; ls -R db/two/dt=d7 >/dev/null`)
	wantCalls(t, l, "below what was listed", map[string]int{})
	l.MustSh(`stat db/two/dt=d8/h=3`)
	wantCalls(t, l, "stat of a partition below a day that is not known", map[string]int{"GetPartitions": 1})
	l.MustSh(`ls db/two | wc -l`)
	l.Catalog.Server.Reset()
	if got := l.MustSh(`find db/two -type d | wc -l; ls -R db/two | wc -l`); !strings.HasPrefix(got, "2501\n") {
		t.Errorf("find counts %q, want a table, 100 days and 2400 hours", got)
	}
	wantCalls(t, l, "a walk through what was listed", map[string]int{})
}

// peak is the most memory that the daemon has had, in MiB.
func peak(t *testing.T, l *mounttest.Lake) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// withColumns has a service send so many columns of each partition, asked or not, as
// the emulators do.
func withColumns(n int) gluetest.Fault {
	var columns []string
	for i := range n {
		columns = append(columns, fmt.Sprintf(`{"Name":"c%04d","Type":"string"}`, i))
	}
	const descriptor = `"StorageDescriptor":{`
	with := []byte(descriptor + `"Columns":[` + strings.Join(columns, ",") + `],`)
	return gluetest.Edit(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(descriptor), with) })
}

// TestMemoryOfAHundredThousandPartitions: 256 MiB at most, whether or not the service
// leaves 170 columns out of each.
func TestMemoryOfAHundredThousandPartitions(t *testing.T) {
	if built, ok := debug.ReadBuildInfo(); ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("a program that looks for data races takes several times the memory")
	}
	const count, most = 100_000, 256
	for what, ignores := range map[string]bool{"columns left out": false, "columns sent": true} {
		t.Run(what, func(t *testing.T) {
			l := newGlueLake(t, mounttest.Options{Flags: longTTL, Timeout: 5 * time.Minute})
			addEntries(l, csvAt("many", "s3://{0}/many", `,"PartitionKeys":[{"Name":"n","Type":"int"}]`))
			l.Catalog.Server.AddMany("db", "many", gluetest.Many{Count: count, Columns: 170, Location: inFirst(l), Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
			if ignores {
				l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", If: func(c *gluetest.Call) bool { return c.Input["ExcludeColumnSchema"] == true }, Fault: withColumns(170)})
			}
			l.Start()
			before := peak(t, l)
			if got := l.MustSh(`ls db/many | wc -l`); got != "100000\n" {
				t.Errorf("ls counts %q", got)
			}
			listed, streamed := peak(t, l), 0
			if !ignores { // its lines have the columns at any rate
				if got := l.MustSh(`wc -l <db/many/.lakefs/partitions.jsonl`); got != "100000\n" {
					t.Errorf("partitions.jsonl has %q lines", got)
				}
				streamed = peak(t, l)
			}
			t.Logf("%d MiB before, %d after a listing, %d after partitions.jsonl", before, listed, streamed)
			if max(listed, streamed) > most {
				t.Errorf("the daemon had %d MiB after a listing, %d after partitions.jsonl; want %d at most", listed, streamed, most)
			}
		})
	}
}
