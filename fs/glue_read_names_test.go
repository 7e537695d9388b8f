package fs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Values of partitions, as names of directories and in keys.

// valued is a partition: its value, and where its file f lies (a key of the first bucket).
type valued struct{ value, name, key string }

// mountValues mounts db.t of one string key, with these partitions. The file of each
// says which it is.
func mountValues(t *testing.T, server *s3test.Server, all []valued) *mounttest.Lake {
	t.Helper()
	l := newGlueLake(t, mounttest.Options{Server: server, Flags: []string{"--write=delete"}})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	for _, p := range all {
		entry, err := json.Marshal(map[string]any{"Values": []string{p.value}, "StorageDescriptor": map[string]string{"Location": l.Catalog.At("s3://{0}/" + p.key)}})
		if err != nil {
			t.Fatal(err)
		}
		l.Catalog.Server.AddPartition("db", "t", string(entry))
		putInBucket(t, l, 0, strings.TrimSuffix(p.key, "/")+"/f", "file of "+p.value)
	}
	l.Start()
	return l
}

// wantValues asserts that each partition has its name, its file and its entry, and
// is written at its key; before the table was listed, and after.
func wantValues(t *testing.T, l *mounttest.Lake, all []valued) {
	t.Helper()
	server, bucket := l.Bucket()
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	for _, when := range []string{"by name", "listed"} {
		if when == "listed" {
			wantNames(t, l, "db/t", names...)
		}
		for _, p := range all {
			dir := "db/t/" + p.name
			wantNames(t, l, dir, "f")
			wantContent(t, l, dir+"/f", "file of "+p.value)
			var entry struct{ Partition struct{ Values []string } }
			raw, err := l.ReadFile(dir + "/.lakefs/entry.json")
			if err == nil {
				err = json.Unmarshal([]byte(raw), &entry)
			}
			if err != nil || len(entry.Partition.Values) != 1 || entry.Partition.Values[0] != p.value {
				t.Errorf("%s: the entry of %q is %s, %v", when, p.value, raw, err)
			}
		}
	}
	for _, p := range all {
		dir, prefix := "db/t/"+p.name, strings.TrimSuffix(p.key, "/")+"/"
		write(t, l, dir+"/new", "new in "+p.value)
		if got := server.Keys(t, bucket, prefix); !slices.Equal(got, []string{prefix + "f", prefix + "new"}) {
			t.Errorf("%q has the keys %q after a write, want f and new below %q", p.value, got, prefix)
			continue
		}
		if got := inBucket(t, l, 0, prefix+"new"); got != "new in "+p.value {
			t.Errorf("%q: written: %q", p.value, got)
		}
		wantErrno(t, "unlink", unlink(l, dir+"/new"), 0)
	}
	if got := l.MustSh(`cat db/t/*/f | wc -c; find db/t -type f -printf . | wc -c; ls -b db/t | wc -l`); !strings.HasSuffix(got, fmt.Sprintf("\n%d\n%[1]d\n", len(all))) {
		t.Errorf("find and ls count %q, want %d", got, len(all))
	}
}

func TestCase46_ValuesLikeNull(t *testing.T) {
	t.Parallel()
	all := []valued{
		{"__HIVE_DEFAULT_PARTITION__", "k=__HIVE_DEFAULT_PARTITION__", "t/k=__HIVE_DEFAULT_PARTITION__"},
		{"null", "k=null", "t/k=null"},
		{"NULL", "k=NULL", "t/k=NULL"},
		{"default", "k=default", "t/k=default"},
		{"", "k=", "t/empty"},
	}
	wantValues(t, mountValues(t, s3test.Versity(t), all), all)
}

func TestCase47_SpellingsOfOneValue(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"string", "int", "date"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
			addEntries(l, csvAt("t", "s3://{0}/t", fmt.Sprintf(`,"PartitionKeys":[{"Name":"k","Type":%q}]`, kind)))
			values := map[string][]string{"string": {"1", "01", "2024-5-1", "2024-05-01"}, "int": {"1", "01", "001"}, "date": {"2024-5-1", "2024-05-01"}}[kind]
			var names []string
			for _, v := range values {
				names = append(names, "k="+v)
				l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(fmt.Sprintf(`{"Values":[%q],"StorageDescriptor":{"Location":"s3://{0}/t/k=%s"}}`, v, v)))
				putInBucket(t, l, 0, "t/k="+v+"/f", v)
			}
			l.Start()
			for range 2 {
				for _, v := range values {
					wantContent(t, l, "db/t/k="+v+"/f", v)
				}
				wantNames(t, l, "db/t", names...)
			}
			for _, v := range values {
				write(t, l, "db/t/k="+v+"/new", v)
				if got := inBucket(t, l, 0, "t/k="+v+"/new"); got != v {
					t.Errorf("%s: written: %q", v, got)
				}
			}
			wantErrno(t, "a spelling that is not there", statErr(l, "db/t/k=0001"), syscall.ENOENT)
		})
	}
}

// oddValues are values with what some layer may take for something else, and the
// names that Hive gives them.
func oddValues() map[string]string {
	return map[string]string{
		"a/b": "a%2Fb", "12:30:00": "12%3A30%3A00", "50%": "50%25", "a%2Fb": "a%252Fb", "EUR=": "EUR%3D", "a b": "a b", "a|b": "a|b", "h's": "h%27s",
		"a?b": "a%3Fb", "a#b": "a%23b", `a\b`: "a%5Cb", "é": "é", "a\nb": "a%0Ab", ".": ".", "..": "..", "+": "+", " ": " ", "&amp;": "&amp;", "*": "%2A", `"`: "%22", "\u007f": "%7F",
	}
}

// TestCase48_OddValues: where the key is what Hive makes of the value, where it is
// something else, and where it is the raw value.
func TestCase48_OddValues(t *testing.T) {
	t.Parallel()
	for what, key := range map[string]func(value, name string) string{
		"escaped":    func(_, name string) string { return "t/k=" + name },
		"elsewhere":  func(_, name string) string { return fmt.Sprintf("else where/%x %%41+é/", name) },
		"as a slash": func(_, name string) string { return "t/k=" + name + "/" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var all []valued
			for value, name := range oddValues() {
				all = append(all, valued{value, "k=" + name, key(value, name)})
			}
			for _, server := range []*s3test.Server{s3test.Versity(t), s3test.Mini(t)} {
				wantValues(t, mountValues(t, server, all), all)
			}
		})
	}
}

// TestCase48_UnescapedValues are as awswrangler and others leave them in keys. What
// lies on the way to them is no partition.
func TestCase48_UnescapedValues(t *testing.T) {
	t.Parallel()
	var all []valued
	for value, name := range oddValues() {
		if !strings.Contains(value, "/") && value != "a%2Fb" { // else its directory's name stands for another value, or for none
			name = value
		}
		all = append(all, valued{value, "k=" + name, "t/k=" + value + "/"})
	}
	all = append(all, valued{"a/b:c=d%", "k=a%2Fb%3Ac%3Dd%25", "t/k=a/b:c=d%/"}, valued{"us west", "k=us west", "t/k=us west/"})
	l := mountValues(t, s3test.Mini(t), all)
	wantValues(t, l, all)
	wantErrno(t, "the way to values with a slash", statErr(l, "db/t/k=a"), syscall.ENOENT)
	if s := catalogStatus(t, l, "db/t"); s.Unregistereds != 0 || s.Partitions != len(all) {
		t.Errorf("status: unregistered %q, %d partitions; want none, and %d", s.Unregistered, s.Partitions, len(all))
	}
	second := l.Second("--discover")
	wantErrno(t, "the way, with --discover", statErr(second, "db/t/k=a"), syscall.ENOENT)
	if got := second.MustSh(`ls -b db/t | wc -l`); got != fmt.Sprintln(len(all)) {
		t.Errorf("with --discover: %q names, want %d", got, len(all))
	}
}

// TestCase48_KeysOfALocationAreVerbatim: a percent sign in a Location is one in a key.
func TestCase48_KeysOfALocationAreVerbatim(t *testing.T) {
	t.Parallel()
	all := []valued{
		{"1", "k=1", "v/%2F"},
		{"2", "k=2", "v/%252F"},
		{"3", "k=3", "v/a%2Fb"},
		{"4", "k=4", "v/a/b"},
		{"5", "k=5", "v/a+b"},
		{"6", "k=6", "v/a b"},
		{"7", "k=7", "v/a%20b"},
		{"8", "k=8", "v/%"},
	}
	for _, server := range []*s3test.Server{s3test.Versity(t), s3test.Mini(t)} {
		wantValues(t, mountValues(t, server, all), all)
	}
}

// TestCase49_TheLocationsCase is followed, in names too.
func TestCase49_TheLocationsCase(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	addEntries(l, csvAt("t", "s3://{0}/T", `,"PartitionKeys":[{"Name":"year","Type":"int"}]`))
	l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(`{"Values":["2024"],"StorageDescriptor":{"Location":"s3://{0}/T/Year=2024"}}`))
	putInBucket(t, l, 0, "T/Year=2024/f", "upper")
	putInBucket(t, l, 0, "T/Year=2025/f", "not registered")
	l.Start()
	wantContent(t, l, "db/t/Year=2024/f", "upper")
	wantNames(t, l, "db/t", "Year=2024")
	write(t, l, "db/t/Year=2024/new", "new")
	if got := inBucket(t, l, 0, "T/Year=2024/new"); got != "new" {
		t.Errorf("written: %q", got)
	}
	if got := l.MustSh(`find db/t -type f | sort`); got != "db/t/Year=2024/f\ndb/t/Year=2024/new\n" {
		t.Errorf("find: %q", got)
	}
	if s := catalogStatus(t, l, "db/t"); !slices.Equal(s.Unregistered, []string{"Year=2025"}) || s.Partitions != 1 {
		t.Errorf("status: unregistered %q, %d partitions", s.Unregistered, s.Partitions)
	}
}

// TestCase50_ProjectionsAreBounded: a minute range since 1970, an enum, an injected key.
func TestCase50_ProjectionsAreBounded(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	const minutes = `"projection.enabled":"true","projection.dt.type":"date","projection.dt.range":"1970-01-01-00-00,NOW","projection.dt.format":"yyyy-MM-dd-HH-mm","projection.dt.interval":"1","projection.dt.interval.unit":"MINUTES"`
	keys := func(names ...string) string {
		var all []string
		for _, n := range names {
			all = append(all, fmt.Sprintf(`{"Name":%q,"Type":"string"}`, n))
		}
		return `,"PartitionKeys":[` + strings.Join(all, ",") + `],"Parameters":{`
	}
	addEntries(l,
		csvAt("minutes", "s3://{0}/m", keys("dt")+minutes+`,"storage.location.template":"s3://{0}/at/${dt}/x"}`),
		csvAt("stored", "s3://{0}/s", keys("dt")+minutes+`}`),
		csvAt("enum", "s3://{0}/e", keys("k")+`"projection.enabled":"true","projection.k.type":"enum","projection.k.values":"a,b,c d","storage.location.template":"s3://{1}/e/${k}/"}`),
		csvAt("injected", "s3://{0}/i", keys("k")+`"projection.enabled":"true","projection.k.type":"injected","storage.location.template":"s3://{0}/i/${k}"}`),
		csvAt("broken", "s3://{0}/b", keys("k")+`"projection.enabled":"true"}`),
	)
	putInBucket(t, l, 0, "at/1970-01-01-00-01/x/f", "old")
	putInBucket(t, l, 0, "s/dt=1970-01-01-00-01/f", "old")
	putInBucket(t, l, 0, "s/dt=none/f", "no value")
	putInBucket(t, l, 1, "e/c d/f", "of c d")
	putInBucket(t, l, 0, "i/any/f", "injected")
	l.Start()
	start := time.Now()
	if got := l.MustSh(`ls db/minutes | wc -l`); got != "10000\n" {
		t.Errorf("ls counts %q of a minute range, want 10000", got)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("ls of a minute range took %v", took)
	}
	if s := catalogStatus(t, l, "db/minutes"); s.NotListed < 25_000_000 || s.PartitionsFrom != "projection" {
		t.Errorf("status: %d not listed, partitions from %q", s.NotListed, s.PartitionsFrom)
	}
	wantContent(t, l, "db/minutes/dt=1970-01-01-00-01/f", "old")
	wantNames(t, l, "db/minutes/dt=1970-01-01-00-02")
	wantErrno(t, "out of range", statErr(l, "db/minutes/dt=1969-01-01-00-01"), syscall.ENOENT)
	wantNames(t, l, "db/stored", "dt=1970-01-01-00-01")
	wantContent(t, l, "db/stored/dt=1970-01-01-00-01/f", "old")
	wantNames(t, l, "db/enum", "k=a", "k=b", "k=c d")
	wantNames(t, l, "db/enum/k=a")
	wantContent(t, l, "db/enum/k=c d/f", "of c d")
	wantErrno(t, "no value of an enum", statErr(l, "db/enum/k=d"), syscall.ENOENT)
	wantErrno(t, "mkdir of no value", mkdir(l, "db/enum/k=d"), syscall.EINVAL)
	wantNames(t, l, "db/injected")
	wantContent(t, l, "db/injected/k=any/f", "injected")
	if s := catalogStatus(t, l, "db/injected"); !s.Injected {
		t.Errorf("status of an injected key: %+v", s)
	}
	wantErrno(t, "a projection without a type", listErr(l, "db/broken"), syscall.EIO)
	if s := catalogStatus(t, l, "db/broken"); !strings.Contains(s.Reason, "db.broken") || !strings.Contains(s.Reason, "projection.k.type") {
		t.Errorf("the reason is %q", s.Reason)
	}
	if n := l.Catalog.Server.Requests(); n["GetPartitions"]+n["GetPartition"] > 0 {
		t.Errorf("projected tables ask for partitions: %v", n)
	}
}

// TestCase74_AnExpressionThatTheServiceRefuses, for one value that is no integer.
func TestCase74_AnExpressionThatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"n","Type":"int"},{"Name":"k","Type":"string"}]`))
	for _, n := range []string{"1", "2", "__HIVE_DEFAULT_PARTITION__"} {
		for _, k := range []string{"a", "b"} {
			at := "t/n=" + n + "/k=" + k
			l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(fmt.Sprintf(`{"Values":[%q,%q],"StorageDescriptor":{"Location":"s3://{0}/%s"}}`, n, k, at)))
			putInBucket(t, l, 0, at+"/f", n+k)
		}
	}
	refused := l.Catalog.Server.Fault(gluetest.Rule{Op: "GetPartitions", If: func(c *gluetest.Call) bool { return c.Input["Expression"] != nil }})
	l.Start()
	for range 2 {
		for _, n := range []string{"1", "__HIVE_DEFAULT_PARTITION__", "2"} {
			wantNames(t, l, "db/t/n="+n, "k=a", "k=b")
			wantContent(t, l, "db/t/n="+n+"/k=b/f", n+"b")
		}
		wantErrno(t, "a value that is not there", statErr(l, "db/t/n=3"), syscall.ENOENT)
		wantErrno(t, "a partition that is not there", statErr(l, "db/t/n=1/k=c"), syscall.ENOENT)
		wantNames(t, l, "db/t", "n=1", "n=2", "n=__HIVE_DEFAULT_PARTITION__")
		l.MustSh(`echo refresh >.lakefs/ctl`)
	}
	if refused.Hits() == 0 {
		t.Error("no expression was sent")
	}
}
