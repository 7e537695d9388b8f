package fs_test

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Values of keys that have a type: what is taken, what is no value of it, and what is
// the same value as one that is there.

// typedValues are the names for a type: the first is there before the others.
type typedValues struct {
	key              string
	good, same, evil []string
}

func allTypes() []typedValues {
	return []typedValues{
		{
			"i:int",
			[]string{"7", "-7", "0", "2147483647", "-2147483648"},
			[]string{"07", "+7", "-07", "-0", "007"},
			[]string{"7.0", "1e3", "0x7", "2147483648", " 7", "7 ", "7_0", "seven", "+", "-", "٧", "%", "7%"},
		},
		{"t:tinyint", []string{"127", "-128"}, []string{"0127"}, []string{"128", "-129"}},
		{"s:smallint", []string{"32767"}, []string{"032767"}, []string{"32768"}},
		{"l:bigint", []string{"9223372036854775807", "-9223372036854775808"}, []string{"09223372036854775807"}, []string{"9223372036854775808"}},
		{
			"d:date",
			[]string{"2024-02-29", "1969-12-31", "0001-01-01"},
			[]string{"2024-2-29", "1969-12-31"},
			[]string{"2023-02-29", "2024-13-01", "2024-00-01", "20240229", "19723", "2024-02-29 00%3A00%3A00", "soon", "2024-02", "2024-02-30", "29.02.2024"},
		},
		{"b:boolean", []string{"true", "false"}, []string{"TRUE", "False"}, []string{"1", "0", "yes", "t", " true"}},
		{"c:decimal(10,2)", []string{"1.50", "-2", "0", "99999999.99"}, []string{"1.5", "01.50", "+1.5", "-2.00", "0.00", "-0"}, []string{"1,5", "1%2F2", "1.5.0", "0x1", "one", "1_0", "NaN", "inf", ".", "1e2", "1.555", "0.001", "123456789", "-100000000.00"}},
		{"f:double", []string{"1.5", "-0.25"}, []string{"1.50", "15e-1", "+1.5", "-2.5E-1"}, []string{"0x1p4", "1_0", "one", "1%2C5"}},
		{
			"ts:timestamp",
			[]string{"2024-01-01 12%3A30%3A00", "2024-01-02 00%3A00%3A00"},
			[]string{"2024-01-01 12:30:00", "2024-1-1 12%3A30", "2024-01-02"},
			[]string{"12%3A30%3A00", "2024-02-30 00%3A00%3A00", "now", "1704067200", "2024-01-01 25%3A00%3A00", "2024-01-01 12%3A30%3A00,5"},
		},
		{"v:varchar(3)", []string{"a", "A", "07", "7", "a ", "ééé"}, []string{"%61", "%41"}, []string{"abcd", "éééé", "abc "}},
		{"h:char(3)", []string{"a", "7", "07", "abc"}, []string{"%61", "a ", "7%20%20", "abc   "}, []string{"abcd", "a  b"}},
	}
}

// TestRule36_ValuesOfEveryType: what is no value of its key's type makes no partition,
// and what is equal by type to one that is there is EEXIST; in Glue and in manifests.
func TestRule36_ValuesOfEveryType(t *testing.T) {
	t.Parallel()
	var glue []mounttest.GlueTable
	var manifests []mounttest.Table
	for _, typ := range allTypes() {
		key, _, _ := strings.Cut(typ.key, ":")
		table := mounttest.Table{Database: "db", Name: "of_" + key, Format: "csv", Keys: []string{typ.key}}
		manifests, glue = append(manifests, table), append(glue, mounttest.GlueTable{Table: table})
	}
	lakes := map[string]*mounttest.Lake{
		"Glue":      mountGlue(t, mounttest.Options{}, glue...),
		"manifests": mounttest.Mount(t, mounttest.Options{Tables: manifests}),
	}
	for what, l := range lakes {
		t.Run(what, func(t *testing.T) {
			for _, typ := range allTypes() {
				wantTypedValues(t, l, typ)
			}
		})
	}
}

func wantTypedValues(t *testing.T, l *mounttest.Lake, typ typedValues) {
	t.Helper()
	key, _, _ := strings.Cut(typ.key, ":")
	dir, locations := "db/of_"+key, map[string]string{}
	null := "__HIVE_DEFAULT_PARTITION__"
	var names []string
	for _, text := range append(typ.good, null) {
		name := key + "=" + text
		wantErrno(t, typ.key+": mkdir "+name, mkdir(l, dir+"/"+name), 0)
		write(t, l, dir+"/"+name+"/f", text)
		if got := stored(t, l, dir+"/"+name+"/f"); got != text {
			t.Errorf("%s: %s/f is %q in the store", typ.key, name, got)
		}
		names = append(names, name)
		locations[strings.NewReplacer("%3A", ":").Replace(text)] = l.Location(dir) + "/" + name
	}
	for _, text := range typ.same {
		name := key + "=" + text
		wantErrno(t, typ.key+": mkdir "+name+", which is there", mkdir(l, dir+"/"+name), syscall.EEXIST)
		if !slices.Contains(names, name) {
			wantErrno(t, typ.key+": stat "+name, statErr(l, dir+"/"+name), syscall.ENOENT)
		}
	}
	for _, text := range typ.evil {
		name := key + "=" + text
		wantErrno(t, typ.key+": mkdir "+name, mkdir(l, dir+"/"+name), syscall.EINVAL)
		wantErrno(t, typ.key+": stat "+name, statErr(l, dir+"/"+name), syscall.ENOENT)
		wantErrno(t, typ.key+": create in "+name, openErr(l, dir+"/"+name+"/f", creat), syscall.ENOENT)
	}
	wantNames(t, l, dir, names...)
	if got := storedTree(t, l, dir); len(got) != len(names) {
		t.Errorf("%s: the store has %q, want a file of each of %q", typ.key, got, names)
	}
	if l.Catalog != nil {
		got := registeredAt(t, l, "of_"+key)
		if !maps.Equal(got, locations) {
			t.Errorf("%s: the catalog has\n%q\nwant\n%q", typ.key, got, locations)
		}
	}
}

// TestRule61_EqualNamesBesideRegisteredPartitions that have no objects, or lie
// elsewhere: no second directory is made of their values, by mkdir or by rename.
func TestRule61_EqualNamesBesideRegisteredPartitions(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"dt","Type":"int"}]`))
	want := map[string]string{"7": "s3://{0}/t/dt=7", "8": "s3://{1}/eight", "009": "s3://{0}/odd/nine"}
	for value, at := range want {
		addPartition(l, value, at)
		want[value] = l.Catalog.At(at)
	}
	l.Start()
	l.MustSh(`cd db/t; mkdir -p _tmp/x _temporary/0/dt=07 _temporary/0/dt=7; echo x > _tmp/x/f; echo 07 > _temporary/0/dt=07/f; echo 7 > _temporary/0/dt=7/g`)
	for _, name := range []string{"dt=07", "dt=+7", "dt=08", "dt=9", "dt=09"} {
		wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), syscall.EEXIST)
		wantErrno(t, "rename to "+name, rename(l, "db/t/_tmp/x", "db/t/"+name), syscall.EEXIST)
		wantErrno(t, "rename out of a tree to "+name, rename(l, "db/t/_temporary/0/dt=07", "db/t/"+name), syscall.EEXIST)
		wantErrno(t, "stat "+name, statErr(l, "db/t/"+name), syscall.ENOENT)
	}
	for _, name := range []string{"dt=x", "dt=", "dt", "dt=1=1"} {
		wantErrno(t, "rename to "+name, rename(l, "db/t/_tmp/x", "db/t/"+name), syscall.EINVAL)
		wantErrno(t, "rename out of a tree to "+name, rename(l, "db/t/_temporary/0/dt=07", "db/t/"+name), syscall.EINVAL)
	}
	wantErrno(t, "rename to its own name", rename(l, "db/t/_temporary/0/dt=7", "db/t/dt=7"), 0)
	if got := inBucket(t, l, 0, "t/dt=7/g"); got != "7\n" {
		t.Errorf("dt=7/g is %q", got)
	}
	wantContent(t, l, "db/t/_temporary/0/dt=07/f", "07\n")
	wantContent(t, l, "db/t/_tmp/x/f", "x\n")
	wantNames(t, l, "db/t", "_tmp", "dt=7", "dt=8", "dt=009")
	if got := registeredAt(t, l, "t"); !maps.Equal(got, want) {
		t.Errorf("the catalog has %q, want %q", got, want)
	}
}
