package fs_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// What lies in a table's location and is not registered, by names that other programs
// made: repair registers what is a partition by its name, to the byte, and nothing else.

func TestRepairOfEveryByte(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("t", "s3://{0}/t", "k"))
	all := everyByte(table.Escape)
	for _, p := range all {
		putInBucket(t, l, 0, "t/"+p.name+"/f", "file of "+p.value)
	}
	l.Start()
	l.MustSh(`echo "repair db/t" > .lakefs/ctl`)
	wantPublishedValues(t, l, all)
}

func TestRepairOfOddNames(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--discover"}})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"d","Type":"int"},{"Name":"k","Type":"string"}]`), keyed("raw", "s3://{0}/raw", "k"))
	for _, key := range []string{
		"d=7/k=a/f", "D=8/K=a=b/f", "d=9/k=%zz/f", "d=__HIVE_DEFAULT_PARTITION__/k=__HIVE_DEFAULT_PARTITION__/f", "d=10/k=S%C3%A3o/f", "d=11/k=a/sub/deep/f", "d=4/k=a/_SUCCESS", "d=5/k=a/_d/f", "d=6/k=a/", // partitions
		"d=07/k=a/f",                                                                                                                                                // equal to one
		"d=x/k=a/f", "d=/k=a/f", "d=1/d=1/f", "k=a/d=1/f", "d=1/f", "d=2/k/f", "f", "plain/k=a/f", "_d=1/k=a/f", ".d/k=a/f", "_temporary/0/d=1/k=a/f", "d=3/_k=a/f", // none
	} {
		content := "x\n"
		if key[len(key)-1] == '/' {
			content = ""
		}
		putInBucket(t, l, 0, "t/"+key, content)
	}
	putInBucket(t, l, 0, "raw/k=a/b:c=d%/f", "x\n") // as a writer that escapes nothing leaves it
	l.Catalog.Server.AddPartition("db", "raw", l.Catalog.At(`{"Values":["a/b:c=d%"],"StorageDescriptor":{"Location":"s3://{0}/raw/k=a/b:c=d%/"}}`))
	l.Start()
	l.Sh(`echo "repair db/t" > .lakefs/ctl`)
	l.MustSh(`echo "repair db/raw" > .lakefs/ctl`)
	at := l.Catalog.At("s3://{0}/t/")
	null := "__HIVE_DEFAULT_PARTITION__"
	want := map[string]string{
		"4/a": at + "d=4/k=a", "5/a": at + "d=5/k=a", "6/a": at + "d=6/k=a", "7/a": at + "d=7/k=a", "8/a=b": at + "D=8/K=a=b", "9/%zz": at + "d=9/k=%zz", null + "/" + null: at + "d=" + null + "/k=" + null,
		"10/São": at + "d=10/k=S%C3%A3o", "11/a": at + "d=11/k=a",
	}
	got := registeredAt(t, l, "t")
	if !maps.Equal(got, want) {
		t.Errorf("the catalog has\n%q\nwant\n%q", got, want)
	}
	if raw := registeredAt(t, l, "raw"); !maps.Equal(raw, map[string]string{"a/b:c=d%": l.Catalog.At("s3://{0}/raw/k=a/b:c=d%/")}) {
		t.Errorf("the catalog has %q of raw, want what it had", raw)
	}
	told := l.MustSh(`jq -c '[.. | .skipped? // empty | .[].path] | unique' .lakefs/jobs.json`)
	for _, path := range []string{"d=7/k=a", "d=07/k=a", "d=x"} {
		if _, registered := want[strings.NewReplacer("d=", "", "k=", "").Replace(path)]; registered == strings.Contains(told, `"`+path+`"`) {
			t.Errorf("jobs.json tells of %s (registered: %v): %s", path, registered, told)
		}
	}
	for _, values := range []string{"8/a=b", "9/%zz", null + "/" + null, "10/São"} {
		wantContent(t, l, "db/t/"+strings.TrimPrefix(want[values], at)+"/f", "x\n")
	}
}
