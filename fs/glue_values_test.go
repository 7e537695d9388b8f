package fs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Values that are made through the mount: what the directory, the key and the
// catalog's entry are then, to the byte.

// spelt is a new partition: its directory's name, and the value that it stands for.
type spelt struct{ name, value string }

// everyByte are values with each byte of ASCII, alone and between others, by the
// names that spelling gives them.
func everyByte(spelling func(value string) string) (all []spelt) {
	for c := byte(1); c < 0x80; c++ {
		for _, value := range []string{string(c), "x" + string(c) + "y"} {
			all = append(all, spelt{"k=" + spelling(value), value})
		}
	}
	return all
}

// publishValues makes each directory in db/t, and a file in it that says which it is.
func publishValues(t *testing.T, l *mounttest.Lake, all []spelt) {
	t.Helper()
	for _, p := range all {
		wantErrno(t, fmt.Sprintf("mkdir %q", p.name), mkdir(l, "db/t/"+p.name), 0)
		write(t, l, "db/t/"+p.name+"/f", "file of "+p.value)
	}
}

// registeredAt are the locations of a table's partitions by their values ("1/x"), as
// the catalog has them.
func registeredAt(t *testing.T, l *mounttest.Lake, name string) map[string]string {
	t.Helper()
	var answer struct {
		Partitions []struct {
			Values            []string
			StorageDescriptor struct{ Location string }
		}
	}
	if err := json.Unmarshal(l.Catalog.Call("GetPartitions", map[string]string{"DatabaseName": "db", "TableName": name}), &answer); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range answer.Partitions {
		values := strings.Join(p.Values, "/")
		if _, twice := got[values]; twice {
			t.Errorf("the catalog has %q twice", values)
		}
		got[values] = p.StorageDescriptor.Location
	}
	return got
}

// wantEntries asserts the values and the locations of all partitions of db.t, which
// lies at t in the first bucket.
func wantEntries(t *testing.T, l *mounttest.Lake, all []spelt) {
	t.Helper()
	got := registeredAt(t, l, "t")
	if len(got) != len(all) {
		t.Errorf("the catalog has %d partitions, want %d", len(got), len(all))
	}
	for _, p := range all {
		if want := l.Catalog.At("s3://{0}/t/" + p.name); got[p.value] != want {
			t.Errorf("the value %q is at %q, want %q", p.value, got[p.value], want)
		}
	}
}

// wantPublishedValues asserts names, keys and entries, and that nothing else is there;
// and the same for a mount that knows them by the catalog alone.
func wantPublishedValues(t *testing.T, l *mounttest.Lake, all []spelt) {
	t.Helper()
	wantEntries(t, l, all)
	server, bucket := l.Bucket()
	var names, keys []string
	for _, p := range all {
		names, keys = append(names, p.name), append(keys, "t/"+p.name+"/f")
		if got := inBucket(t, l, 0, "t/"+p.name+"/f"); got != "file of "+p.value {
			t.Errorf("the object of %q is %q", p.value, got)
		}
	}
	slices.Sort(keys)
	if got := server.Keys(t, bucket, "t/"); !slices.Equal(got, keys) {
		t.Errorf("the keys are\n%q\nwant\n%q", got, keys)
	}
	for _, lake := range []*mounttest.Lake{l, l.Second()} {
		wantNames(t, lake, "db/t", names...)
		for _, p := range all {
			wantContent(t, lake, "db/t/"+p.name+"/f", "file of "+p.value)
		}
	}
	if s := catalogStatus(t, l, "db/t"); s.Partitions != len(all) || s.Unregistereds != 0 {
		t.Errorf("status.json counts %d partitions and %d that are not registered, want %d and none", s.Partitions, s.Unregistereds, len(all))
	}
}

// newValues is a lake with db.t by one string key, without partitions.
func newValues(t *testing.T, server *s3test.Server) *mounttest.Lake {
	t.Helper()
	l := newGlueLake(t, mounttest.Options{Server: server, Flags: []string{"--write=delete"}})
	addEntries(l, keyed("t", "s3://{0}/t", "k"))
	l.Start()
	return l
}

// TestCase48_EveryByteOfASCII escaped as Hive does: pyarrow, which decodes names
// itself, has the values back.
func TestCase48_EveryByteOfASCII(t *testing.T) {
	t.Parallel()
	l := newValues(t, nil)
	all := everyByte(table.Escape)
	publishValues(t, l, all)
	wantPublishedValues(t, l, all)
	// The same value under another spelling is not another partition.
	for _, p := range all {
		raw := "k=" + p.value
		if raw == p.name || strings.ContainsAny(p.value, "/=") || table.Unescape(p.value) != p.value {
			continue
		}
		wantErrno(t, fmt.Sprintf("mkdir %q beside %q", raw, p.name), mkdir(l, "db/t/"+raw), syscall.EEXIST)
		wantErrno(t, fmt.Sprintf("stat %q beside %q", raw, p.name), statErr(l, "db/t/"+raw), syscall.ENOENT)
	}
	python := mounttest.Venv(t, "python3", "pyarrow")
	var values []string
	out := mustExec(t, l, python, "-c", `
import json, os, pyarrow as pa, pyarrow.dataset as ds
hive = ds.partitioning(pa.schema([("k", pa.string())]), flavor="hive")
print(json.dumps([ds.get_partition_keys(hive.parse("/" + name + "/f"))["k"] for name in os.listdir("db/t")]))`)
	if err := json.Unmarshal([]byte(out), &values); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range all {
		want = append(want, p.value)
	}
	slices.Sort(values)
	slices.Sort(want)
	if !slices.Equal(values, want) {
		t.Errorf("pyarrow reads the values\n%q\nwant\n%q", values, want)
	}
}

// TestCase48_EveryByteAsItIs: a program that escapes nothing makes directories by the
// raw value; they are what it made. (versitygw lists control bytes as U+FFFD.)
func TestCase48_EveryByteAsItIs(t *testing.T) {
	t.Parallel()
	l := newValues(t, s3test.Mini(t))
	all := slices.DeleteFunc(everyByte(func(v string) string { return v }), func(p spelt) bool { return strings.ContainsAny(p.value, "/=") })
	publishValues(t, l, all)
	wantPublishedValues(t, l, all)
}

// TestCase48_ValuesThatLookLikePaths, in several normal forms, and as long as names may be.
func TestCase48_ValuesThatLookLikePaths(t *testing.T) {
	t.Parallel()
	l := newValues(t, nil)
	longest := strings.Repeat("é", 126) + "x" // with k= 255 bytes
	all := []spelt{
		{"k=a%2Fb", "a/b"},
		{"k=a%2fc", "a/c"},
		{"k=..", ".."},
		{"k=.", "."},
		{"k=%2E%2E%2Fup", "../up"},
		{"k=%2F", "/"},
		{"k=a%2F%2Fb", "a//b"},
		{"k=\u00e9", "\u00e9"},
		{"k=e\u0301", "e\u0301"},
		{"k=%", "%"},
		{"k=%zz", "%zz"},
		{"k=%2", "%2"},
		{"k=a%3Db", "a=b"},
		{"k=%3D", "="},
		{"k=" + longest, longest},
		{"k=_x", "_x"},
		{"k=.x", ".x"},
		{"k=k%3Dk", "k=k"},
		{"k=%00", "\x00"},
	}
	publishValues(t, l, all)
	wantErrno(t, "another spelling of %", mkdir(l, "db/t/k=%25"), syscall.EEXIST)
	wantPublishedValues(t, l, all)
	l.Catalog.Server.Reset()
	over := "db/t/k=" + longest + "y"
	wantErrno(t, "mkdir of 256 bytes", mkdir(l, over), syscall.ENAMETOOLONG)
	wantErrno(t, "create of 256 bytes", openErr(l, over, creat), syscall.ENAMETOOLONG)
	wantErrno(t, "rename to 256 bytes", rename(l, "db/t/k=..", over), syscall.ENAMETOOLONG)
	if asked := l.Catalog.Server.Requests(); len(asked) > 0 {
		t.Errorf("names that are too long were asked for: %v", asked)
	}
	// Without an escape a slash is a directory within the partition.
	l.MustSh(`mkdir -p db/t/k=c/d; echo 1 > db/t/k=c/d/f`)
	wantEntries(t, l, append(all, spelt{"k=c", "c"}))
}

// TestNamesThatMakeNoPartition: neither a key nor an entry is left of them.
func TestNamesThatMakeNoPartition(t *testing.T) {
	t.Parallel()
	two := mounttest.Table{Database: "db", Name: "two", Format: "csv", Keys: []string{"dt:int", "k"}, Files: map[string]string{"dt=1/k=a/f": "a\n"}}
	in := map[string]*mounttest.Lake{
		"Glue":      mountGlue(t, mounttest.Options{}, mounttest.GlueTable{Table: two, Partitions: []mounttest.GluePartition{{Values: []string{"1", "a"}}}}),
		"manifests": mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{two}}),
	}
	for what, l := range in {
		before := storedTree(t, l, "db/two")
		for _, name := range []string{
			"k=a", "dt=", "=1", "dt", "dt==1", "dt=1=1", "DT=2", "dt=1/dt=1", "dt=1/dt=1/k=a", "dt=1/k=", "dt=1/k", "dt=1/k=a=b", "dt=1/k==", "dt=1/K=b", "dt=1/K=a",
			"dt=%", "dt=1%", "dt= 1", "dt=1 ", "dt=+", "dt=0x1", "dt=1_0", "dt=1e3", "dt=١", "dt=2147483648", "dt=-2147483649", "dt=%2F",
		} {
			want := syscall.EINVAL
			if strings.Count(name, "/") > 1 { // its parent is not there
				want = syscall.ENOENT
			}
			wantErrno(t, what+": mkdir "+name, mkdir(l, "db/two/"+name), want)
			wantErrno(t, what+": stat "+name, statErr(l, "db/two/"+name), syscall.ENOENT)
			wantErrno(t, what+": create below "+name, openErr(l, "db/two/"+name+"/f", creat), syscall.ENOENT)
		}
		if after := storedTree(t, l, "db/two"); !before.equal(after) {
			t.Errorf("%s: the store has %q, had %q", what, after, before)
		}
		if l.Catalog != nil {
			wantRegistered(t, l, "two", "1/a")
		}
	}
}

// TestKeysAndValuesOfOddBytes: a key that needs escaping is escaped in the names of
// directories alone; a value that is no UTF-8 reads as Latin-1.
func TestKeysAndValuesOfOddBytes(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("two", "s3://{0}/two", "a b", "k:1"), keyed("u", "s3://{0}/u", "é"), keyed("v", "s3://{0}/v", "k=x"), keyed("w", "s3://{0}/w", "k"))
	l.Start()
	for _, dir := range []string{"two/a b=1/k%3A1=2", "u/é=1", "v/k%3Dx=1", "w/k=%E9", "w/k=%C3%A9%20"} {
		l.MustSh(`mkdir -p 'db/` + dir + `'; echo 1 > 'db/` + dir + `/f'`)
		if got := inBucket(t, l, 0, dir+"/f"); got != "1\n" {
			t.Errorf("the object of %s is %q", dir, got)
		}
	}
	for path, want := range map[string]syscall.Errno{
		"v/k=x=1": syscall.EINVAL, "v/k=2": syscall.EINVAL, "two/a%20b=1": syscall.EEXIST, "two/a=1": syscall.EINVAL, "two/A b=2": syscall.EINVAL,
		"w/k=é": syscall.EEXIST, "w/k=%e9": syscall.EEXIST, "w/k=é ": syscall.EEXIST,
	} {
		wantErrno(t, "mkdir "+path, mkdir(l, "db/"+path), want)
	}
	for table, want := range map[string]map[string]string{
		"two": {"1/2": "a b=1/k%3A1=2"}, "u": {"1": "é=1"}, "v": {"1": "k%3Dx=1"}, "w": {"é": "k=%E9", "é ": "k=%C3%A9%20"},
	} {
		for values, name := range want {
			want[values] = l.Catalog.At("s3://{0}/"+table+"/") + name
		}
		if got := registeredAt(t, l, table); !maps.Equal(got, want) {
			t.Errorf("%s: the catalog has %q, want %q", table, got, want)
		}
	}
	if got := l.Second().MustSh(`cd db; find two u v w -type f | sort`); got != "two/a b=1/k%3A1=2/f\nu/é=1/f\nv/k%3Dx=1/f\nw/k=%C3%A9%20/f\nw/k=%E9/f\n" {
		t.Errorf("another mount finds %q", got)
	}
}

// TestOneOfEqualNamesIsMade, of those who make them at the same time.
func TestOneOfEqualNamesIsMade(t *testing.T) {
	t.Parallel()
	tables := []mounttest.Table{{Database: "db", Name: "t", Format: "csv", Keys: []string{"d:int"}}}
	onBoth(t, mounttest.Options{}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		var want []string
		for i := 10; i < 40; i++ {
			out := l.MustSh(fmt.Sprintf(`cd db/t; for n in d=%d d=0%[1]d d=00%[1]d d=+%[1]d; do { mkdir $n 2>/dev/null && echo $n; } & done; wait`, i))
			names := strings.Fields(out)
			if len(names) != 1 {
				t.Errorf("%q were made, want one", names)
			}
			want = append(want, names...)
		}
		wantNames(t, l, "db/t", want...)
	})
}

// TestCase48_EveryByteInManifests: names and keys alike, where the directories are all
// that tells of partitions.
func TestCase48_EveryByteInManifests(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(nil, "k")}})
	all := everyByte(table.Escape)
	for _, c := range "\x01\t\n\x1f \"#%'*:?[\\]^`{|}~\x7f" { // other values than theirs, as they are
		all = append(all, spelt{"k=raw " + string(c), "raw " + string(c)})
	}
	all = slices.DeleteFunc(all, func(p spelt) bool { return l.OnS3() && strings.ContainsAny(p.name, "\x01\x1f\x7f") }) // which versitygw lists as U+FFFD
	publishValues(t, l, all)
	want := tree{}
	var names []string
	for _, p := range all {
		names = append(names, p.name)
		want[p.name+"/f"] = "file of " + p.value
	}
	wantNames(t, l, "db/t", names...)
	if got := storedTree(t, l, "db/t"); !got.equal(want) {
		t.Errorf("the store has\n%q\nwant\n%q", got, want)
	}
	for _, p := range all {
		if raw := "k=" + p.value; raw != p.name && !strings.ContainsAny(p.value, "/=") && table.Unescape(p.value) == p.value {
			wantErrno(t, fmt.Sprintf("mkdir %q beside %q", raw, p.name), mkdir(l, "db/t/"+raw), syscall.EEXIST)
		}
	}
	l.Remount()
	wantNames(t, l, "db/t", names...)
	if s := status(t, l, "db/t").Catalog; s.Partitions != len(all) || len(s.Unparsable) > 0 {
		t.Errorf("status.json counts %d partitions, want %d: %q do not parse", s.Partitions, len(all), s.Unparsable)
	}
}

// TestRule34_EveryByteOfFormatTables has one spelling there: any other is EINVAL, and
// so is a value alone that would be hidden.
func TestRule34_EveryByteOfFormatTables(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	l := mountGlue(t, mounttest.Options{}, formatTable("named", []string{"k"}), formatTable("alone", []string{"k"}, "format-table.partition-path-only-value", "true"))
	for _, name := range []string{"named", "alone"} {
		var names []string
		for _, p := range everyByte(table.Escape) {
			spelling, raw := p.name, "k="+p.value
			want := syscall.Errno(0)
			if name == "alone" {
				spelling, raw = strings.TrimPrefix(p.name, "k="), p.value
				if strings.HasPrefix(spelling, "_") || strings.HasPrefix(spelling, ".") {
					want = syscall.EINVAL
				}
			}
			if spelling == "." { // no name
				continue
			}
			dir := "db/" + name + "/" + spelling
			wantErrno(t, fmt.Sprintf("mkdir %q", dir), mkdir(l, dir), want)
			if want == 0 {
				names = append(names, spelling)
				write(t, l, dir+"/f", parquet)
			}
			if raw != spelling && !strings.Contains(raw, "/") && raw != "." {
				wantErrno(t, fmt.Sprintf("mkdir %q", "db/"+name+"/"+raw), mkdir(l, "db/"+name+"/"+raw), syscall.EINVAL)
			}
		}
		wantNames(t, l, "db/"+name, names...)
		if got := storedTree(t, l, "db/"+name); len(got) != len(names) {
			t.Errorf("%s: the store has %d files, want %d", name, len(got), len(names))
		}
	}
	wantNothingRegistered(t, l)
}
