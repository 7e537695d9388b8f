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
)

// What a first publish tells the catalog, as the catalog got it.

// sentPartition is a partition as a registration has it.
type sentPartition struct {
	Values            []string
	StorageDescriptor map[string]any
}

// sentPartitions are the partitions of all registrations, by table and values
// ("t: 1/x").
func sentPartitions(t *testing.T, l *mounttest.Lake) map[string]sentPartition {
	t.Helper()
	all := map[string]sentPartition{}
	for _, c := range l.Catalog.Server.Calls(registration) {
		raw, err := json.Marshal(c.Input["PartitionInputList"])
		if err != nil {
			t.Fatal(err)
		}
		var list []sentPartition
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			name := c.Table + ": " + strings.Join(p.Values, "/")
			if _, twice := all[name]; twice {
				t.Errorf("%s was registered twice", name)
			}
			all[name] = p
		}
	}
	return all
}

// wantLocations asserts what was registered since the counts began, and where.
func wantLocations(t *testing.T, l *mounttest.Lake, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, p := range sentPartitions(t, l) {
		got[name] = fmt.Sprint(p.StorageDescriptor["Location"])
	}
	for name, at := range want {
		want[name] = l.Catalog.At(at)
	}
	if !maps.Equal(got, want) {
		t.Errorf("registered: %q\nwant %q", got, want)
	}
}

// wantDescriptor asserts a descriptor, but for its Location.
func wantDescriptor(t *testing.T, got map[string]any, want string) {
	t.Helper()
	got = maps.Clone(got)
	delete(got, "Location")
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(got) // with sorted keys
	b, errB := json.Marshal(wanted)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("registered with\n%s\nwant\n%s (%v, %v)", a, b, errA, errB)
	}
}

// keyed is the entry of a CSV table at a location with these keys, all strings.
func keyed(name, location string, keys ...string) string {
	var list []string
	for _, k := range keys {
		list = append(list, fmt.Sprintf(`{"Name":%q,"Type":"string"}`, k))
	}
	return csvAt(name, location, `,"PartitionKeys":[`+strings.Join(list, ",")+`]`)
}

// TestRule03_DescriptorOfASparkTable: the SerDe path says where the table is and
// nothing of its partitions; what nobody here knows stays.
func TestRule03_DescriptorOfASparkTable(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, `{"Name":"spark","TableType":"EXTERNAL_TABLE","PartitionKeys":[{"Name":"k","Type":"string"}],
"Parameters":{"spark.sql.sources.provider":"csv","spark.sql.sources.schema":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"k\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}",
"spark.sql.sources.schema.numPartCols":"1","spark.sql.sources.schema.partCol.0":"k","spark.sql.partitionProvider":"catalog"},
"StorageDescriptor":{"Columns":[{"Name":"col","Type":"array<string>","Comment":"from deserializer"}],"Location":"s3://{0}/db/spark-__PLACEHOLDER__",
"InputFormat":"org.apache.hadoop.mapred.SequenceFileInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
"SerdeInfo":{"Name":"n","SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","Parameters":{"path":"s3a://{1}/real/spark","header":"true"}},
"NumberOfBuckets":4,"Unknown":{"deep":[1.50,{"x":12345678901234567}]},"Parameters":{"own":"<&>"},"SortColumns":[],"Compressed":true}}`)
	l.Start()
	l.MustSh(`mkdir db/spark/k=a; echo 1 > db/spark/k=a/f`)
	wantLocations(t, l, map[string]string{"spark: a": "s3a://{1}/real/spark/k=a"})
	wantDescriptor(t, sentPartitions(t, l)["spark: a"].StorageDescriptor, `{"Columns":[{"Name":"col","Type":"array<string>","Comment":"from deserializer"}],
"InputFormat":"org.apache.hadoop.mapred.SequenceFileInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
"SerdeInfo":{"Name":"n","SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","Parameters":{"header":"true"}},
"NumberOfBuckets":4,"StoredAsSubDirectories":false,"Unknown":{"deep":[1.50,{"x":12345678901234567}]},"Parameters":{"own":"<&>"},"SortColumns":[],"Compressed":true}`)
	if got := inBucket(t, l, 1, "real/spark/k=a/f"); got != "1\n" {
		t.Errorf("the object is %q", got)
	}
	l.Remount()
	if got := l.MustSh(`cat db/spark/*/f; jq -c .Partition.StorageDescriptor.Unknown.deep[0] db/spark/k=a/.lakefs/entry.json`); got != "1\n1.5\n" { // jq's way with 1.50
		t.Errorf("after a remount: %q", got)
	}
}

// TestRule15_DefaultsOfAnEntryWithoutThem: false and 0 are sent, and nothing else is
// made up.
func TestRule15_DefaultsOfAnEntryWithoutThem(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("t", "s3://{0}/t", "k"))
	l.Start()
	l.MustSh(`mkdir db/t/k=a; echo 1 > db/t/k=a/f`)
	wantDescriptor(t, sentPartitions(t, l)["t: a"].StorageDescriptor, `{"Columns":[{"Name":"id","Type":"bigint"}],
"InputFormat":"org.apache.hadoop.mapred.TextInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","Parameters":{"field.delim":","}},
"Compressed":false,"NumberOfBuckets":-1,"StoredAsSubDirectories":false}`)
	call := l.Catalog.Server.Calls(registration)[0]
	if got := slices.Sorted(maps.Keys(call.Input)); !slices.Equal(got, []string{"DatabaseName", "PartitionInputList", "TableName"}) {
		t.Errorf("the request has %q", got)
	}
}

// TestLocationsOfRegisteredPartitions: the table's location as it is spelt, one "/",
// and the directory's name as it is in the store.
func TestLocationsOfRegisteredPartitions(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	places := map[string]string{
		"plain": "s3://{0}/w/plain", "slash": "s3://{0}/w/slash/", "hadoop": "s3a://{0}/w/hadoop/", "native": "s3n://{0}/w/native",
		"double": "s3://{0}/w//double", "trailing": "s3://{0}/w/trailing//", "percent": "s3://{0}/w/%41 +é", "root": "s3://{1}/",
	}
	want := map[string]string{}
	for name, at := range places {
		addEntries(l, keyed(name, at, "k"))
		want[name+": v w"] = strings.TrimSuffix(at, "/") + "/k=v w"
	}
	l.Start()
	for name := range places {
		l.MustSh(`cd db/` + name + `; mkdir 'k=v w'; echo ` + name + ` > 'k=v w/f'; cat 'k=v w/f' >/dev/null`)
	}
	wantLocations(t, l, want)
	for name, at := range places {
		n, key := 0, strings.TrimPrefix(at, "s3://{1}/")
		if key != at {
			n = 1
		} else {
			_, key, _ = strings.Cut(at, "{0}/")
			key = strings.TrimSuffix(key, "/") + "/"
		}
		if got := inBucket(t, l, n, key+"k=v w/f"); got != name+"\n" {
			t.Errorf("%s: %sk=v w/f has %q", name, key, got)
		}
	}
	l.Remount() // by what was registered
	for name := range places {
		if got := l.MustSh(`cd db/` + name + `; ls; cat */f; echo more >> 'k=v w/f'; cat 'k=v w/f'`); got != "k=v w\n"+name+"\n"+name+"\nmore\n" {
			t.Errorf("%s, after a remount: %q", name, got)
		}
	}
}

// TestBucketAsLocation: a table whose location is a bucket without any "/".
func TestBucketAsLocation(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("bare", "s3://{1}", "k", "m"))
	l.Start()
	l.MustSh(`mkdir -p db/bare/k=v/m=w; echo 1 > db/bare/k=v/m=w/f`)
	wantLocations(t, l, map[string]string{"bare: v/w": "s3://{1}/k=v/m=w"})
	if got := inBucket(t, l, 1, "k=v/m=w/f"); got != "1\n" {
		t.Errorf("the object is %q", got)
	}
}

// TestEdge01_ValuesOfRegisteredPartitions: the catalog gets the values, and
// locations with them escaped; NULL is one name everywhere.
func TestEdge01_ValuesOfRegisteredPartitions(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("t", "s3://{0}/t", "k", "m"))
	l.Start()
	names := map[string]string{ // directories by values
		"a/b:c=d%/1": "k=a%2Fb%3Ac%3Dd%25/m=1", "é x/+": "k=é x/m=+", "\x7f/ü": "k=%7F/m=ü",
		"%zz/%": "k=%25zz/m=%25", "NULL/null": "k=NULL/m=null", "default/~": "k=default/m=~",
		"__HIVE_DEFAULT_PARTITION__/x": "k=__HIVE_DEFAULT_PARTITION__/m=x", "a/__HIVE_DEFAULT_PARTITION__": "k=a/m=__HIVE_DEFAULT_PARTITION__",
	}
	want := map[string]string{}
	for values, dir := range names {
		want["t: "+values] = "s3://{0}/t/" + dir
		l.MustSh(`mkdir -p 'db/t/` + dir + `'; printf %s '` + dir + `' > 'db/t/` + dir + `/f'`)
	}
	wantLocations(t, l, want)
	got := sentPartitions(t, l)["t: a/b:c=d%/1"].Values
	if !slices.Equal(got, []string{"a/b:c=d%", "1"}) {
		t.Errorf("values %q", got)
	}
	l.Remount()
	for _, dir := range names {
		wantContent(t, l, "db/t/"+dir+"/f", dir)
		if got := inBucket(t, l, 0, "t/"+dir+"/f"); got != dir {
			t.Errorf("the object of %s has %q", dir, got)
		}
	}
	var listed []string
	for line := range strings.Lines(l.MustSh(`cd db/t; find . -type f -printf '%P\n' | sed 's,/f$,,'`)) {
		listed = append(listed, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(listed)
	if want := slices.Sorted(maps.Values(names)); !slices.Equal(listed, want) {
		t.Errorf("find has %q, want %q", listed, want)
	}
}

// TestEdge03_OtherSpellingsAreRegisteredAsTheyLie: a directory keeps the name that its
// writer gave it, in the catalog's Location too.
func TestEdge03_OtherSpellingsAreRegisteredAsTheyLie(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("t", "s3://{0}/t", "userid"))
	putInBucket(t, l, 0, "t/userId=1/old", "old\n")
	putInBucket(t, l, 0, "t/userid=S%C3%A3o/old", "old\n")
	l.Start()
	dirs := map[string]string{"userId=1": "1", "userid=S%C3%A3o": "São", "userid=%zz": "%zz", "userid=a%20b": "a b"}
	l.MustSh(`cd db/t; mkdir userid=%zz userid=a%20b`)
	want := map[string]string{}
	for dir, value := range dirs {
		l.MustSh(`cd db/t/` + dir + `; echo n > n; echo m > m; mkdir sub; echo s > sub/s`)
		if got := inBucket(t, l, 0, "t/"+dir+"/n"); got != "n\n" {
			t.Errorf("%s/n has %q", dir, got)
		}
		want["t: "+value] = l.Catalog.At("s3://{0}/t/" + dir)
	}
	wantLocations(t, l, want)
	if s := catalogStatus(t, l, "db/t"); s.Unregistereds != 0 || s.Partitions != len(dirs) {
		t.Errorf("status.json counts %d directories that are not registered, and %d partitions", s.Unregistereds, s.Partitions)
	}
	wantErrno(t, "another spelling", mkdir(l, "db/t/userid=a b"), syscall.EEXIST)
	l.Remount()
	wantNames(t, l, "db/t", slices.Collect(maps.Keys(dirs))...)
	if got := l.MustSh(`cd db/t; cat userId=1/old userid=S%C3%A3o/[no]* userid=%zz/m userid=a%20b/n`); got != "old\nn\nold\nm\nn\n" {
		t.Errorf("%q", got)
	}
}
