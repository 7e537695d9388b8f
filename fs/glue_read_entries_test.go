package fs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Entries as the catalog has them, good and bad, side by side.

// csvAt is the entry of a CSV table at a location; more is further fields, each
// with a comma in front.
func csvAt(name, location, more string) string {
	return fmt.Sprintf(`{"Name":%q,"TableType":"EXTERNAL_TABLE","StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":%q,
"InputFormat":"org.apache.hadoop.mapred.TextInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","Parameters":{"field.delim":","}}}%s}`, name, location, more)
}

// newGlueLake is a lake of an empty catalog with two buckets, not mounted yet.
func newGlueLake(t *testing.T, o mounttest.Options) *mounttest.Lake {
	t.Helper()
	o.Glue = &mounttest.Glue{Buckets: 2}
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Minute
	}
	return mounttest.New(t, o)
}

// addEntries puts entries into the database db.
func addEntries(l *mounttest.Lake, entries ...string) {
	for _, e := range entries {
		l.Catalog.Server.AddTable("db", l.Catalog.At(e))
	}
}

// putInBucket puts an object into the n-th bucket of a lake.
func putInBucket(t *testing.T, l *mounttest.Lake, n int, key, content string) {
	t.Helper()
	server, _ := l.Bucket()
	server.Put(t, l.Catalog.Buckets[n], key, []byte(content))
}

// glueStatus is what status.json says of a directory of a Glue catalog.
type glueStatus struct {
	Kind           string            `json:"kind"`
	Format         string            `json:"format"`
	FormatFrom     string            `json:"format_from"`
	Location       string            `json:"location"`
	Readable       bool              `json:"readable"`
	Writable       bool              `json:"writable"`
	Reason         string            `json:"reason"`
	PartitionsFrom string            `json:"partitions_from"`
	ResourceLink   string            `json:"resource_link"`
	Notes          []string          `json:"notes"`
	LakeFormation  *bool             `json:"lake_formation"`
	MultiFormat    json.RawMessage   `json:"hasMultiFormatPartitions"`
	Formats        map[string]int    `json:"formats"`
	Unregistered   []string          `json:"unregistered"`
	Unregistereds  int               `json:"unregistered_count"`
	Leaving        map[string]string `json:"leaving"`
	WithoutObjects []string          `json:"without_objects"`
	NotListed      int64             `json:"not_listed"`
	Injected       bool              `json:"injected"`
	Partitions     int               `json:"partitions"`
}

// catalogStatus reads the status.json of a directory.
func catalogStatus(t *testing.T, l *mounttest.Lake, dir string) glueStatus {
	t.Helper()
	raw, err := l.ReadFile(dir + "/.lakefs/status.json")
	if err != nil {
		t.Fatalf("status of %q: %v", dir, err)
	}
	var s struct {
		Catalog glueStatus `json:"catalog"`
	}
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatalf("status of %q: %v\n%s", dir, err, raw)
	}
	return s.Catalog
}

// listErr is the outcome of listing a directory.
func listErr(l *mounttest.Lake, dir string) error {
	_, err := l.Names(dir)
	return err
}

// TestCase38_OddEntriesBesideGoodOnes: each fails alone, as the tree's rules say.
func TestCase38_OddEntriesBesideGoodOnes(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	addEntries(l,
		csvAt("good", "s3://{0}/good", ""),
		`{"Name":"view","TableType":"VIRTUAL_VIEW","ViewOriginalText":"SELECT 1","ViewExpandedText":"SELECT 1","Parameters":{"presto_view":"true"}}`,
		`{"Name":"bare","TableType":"EXTERNAL_TABLE"}`,
		`{"Name":"link","TargetTable":{"CatalogId":"111122223333","DatabaseName":"db","Name":"gone"}}`,
		csvAt("empty", "", ""),
		csvAt("path", "/t", ""),
		strings.Replace(csvAt("placeholder", "s3://{0}/nowhere-__PLACEHOLDER__", ""), `"field.delim":","`, `"field.delim":",","path":"s3://{0}/by-serde"`, 1),
		csvAt("file", "s3://{0}/a/file", ""),
	)
	putInBucket(t, l, 0, "good/f", "good\n")
	putInBucket(t, l, 0, "by-serde/f", "by its SerDe\n")
	putInBucket(t, l, 0, "nowhere-__PLACEHOLDER__/f", "not it\n")
	putInBucket(t, l, 0, "a/file", "an object\n")
	l.Start()
	names := []string{"bare", "empty", "file", "good", "link", "path", "placeholder", "view"}
	var want []string
	for _, n := range names {
		want = append(want, n+".json")
		if n != "view" && n != "link" { // no directory of theirs could have anything
			want = append(want, n)
		}
	}
	for range 2 { // from the listing, and once more by entries that were looked up
		wantNames(t, l, "db", want...)
		for _, n := range names {
			if got := l.MustSh(`jq -er .Table.Name db/` + n + `.json; stat -c %F db/` + n + `.json`); got != n+"\nregular file\n" {
				t.Errorf("%s.json: %q", n, got)
			}
		}
		l.MustSh(`ls -l db >/dev/null; echo refresh >.lakefs/ctl`)
	}
	for n, errno := range map[string]syscall.Errno{
		"bare": syscall.EIO, "empty": syscall.EIO, "file": syscall.EIO, "path": syscall.EOPNOTSUPP, "view": syscall.ENOENT, "link": syscall.ENOENT,
		"good": 0, "placeholder": 0,
	} {
		wantErrno(t, n+": list", listErr(l, "db/"+n), errno)
		if errno != 0 && n != "file" { // an object at the location itself is found where a listing finds nothing
			wantErrno(t, n+": look-up", statErr(l, "db/"+n+"/f"), errno)
			wantErrno(t, n+": create", openErr(l, "db/"+n+"/new", creat), errno)
		}
		if errno == 0 || errno == syscall.ENOENT {
			continue
		}
		if s := catalogStatus(t, l, "db/"+n); s.Readable || s.Writable || !strings.Contains(s.Reason, n) && !strings.Contains(s.Reason, "location") {
			t.Errorf("%s: status %+v", n, s)
		}
	}
	wantContent(t, l, "db/good/f", "good\n")
	wantContent(t, l, "db/placeholder/f", "by its SerDe\n")
	write(t, l, "db/placeholder/new", "new\n")
	if got := inBucket(t, l, 0, "by-serde/new"); got != "new\n" {
		t.Errorf("written into the table of a placeholder: %q", got)
	}
	for _, n := range []string{"bare", "empty"} {
		if s := catalogStatus(t, l, "db/"+n); !strings.Contains(s.Reason, "db."+n) {
			t.Errorf("%s: the reason %q does not name the table", n, s.Reason)
		}
	}
}

// TestCase43_LocationsOfGlue: the spellings of S3, with keys verbatim, and what is
// none of S3's.
func TestCase43_LocationsOfGlue(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Server: s3test.Mini(t), Flags: []string{"--write=delete"}})
	served := map[string]string{"a": "s3a://{0}/w/a/", "n": "s3n://{0}/w/n", "upper": "S3://{0}/w/s", "slashes": "s3://{0}/wh//o/", "percent": "s3://{0}/w/%41 +/"}
	refused := map[string]string{"hdfs": "hdfs://name:8020/wh", "etc": "file:///etc", "abfs": "abfss://c@account/x"}
	for n, at := range served {
		addEntries(l, csvAt(n, at, ""), csvAt("p_"+n, "s3://{0}/unused", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
		l.Catalog.Server.AddPartition("db", "p_"+n, l.Catalog.At(fmt.Sprintf(`{"Values":["v"],"StorageDescriptor":{"Location":%q}}`, at)))
		_, key, _ := strings.Cut(strings.SplitN(at, "//", 2)[1], "/")
		putInBucket(t, l, 0, strings.TrimSuffix(key, "/")+"/f", "at "+n)
	}
	for n, at := range refused {
		addEntries(l, csvAt(n, at, ""), csvAt("p_"+n, "s3://{0}/unused", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
		l.Catalog.Server.AddPartition("db", "p_"+n, fmt.Sprintf(`{"Values":["v"],"StorageDescriptor":{"Location":%q}}`, at))
	}
	l.Start()
	server, bucket := l.Bucket()
	for n, at := range served {
		_, key, _ := strings.Cut(strings.SplitN(at, "//", 2)[1], "/")
		prefix := strings.TrimSuffix(key, "/") + "/"
		wantNames(t, l, "db/"+n, "f")
		wantContent(t, l, "db/"+n+"/f", "at "+n)
		wantContent(t, l, "db/p_"+n+"/k=v/f", "at "+n)
		write(t, l, "db/"+n+"/new", "by "+n)
		write(t, l, "db/p_"+n+"/k=v/part", "by "+n)
		write(t, l, "db/p_"+n+"/k=v/f", "over "+n)
		if got, want := server.Keys(t, bucket, prefix), []string{prefix + "f", prefix + "new", prefix + "part"}; !slices.Equal(got, want) {
			t.Errorf("%s is written to %q, want %q", n, got, want)
		}
		if got := inBucket(t, l, 0, prefix+"f"); got != "over "+n {
			t.Errorf("%s: overwritten: %q", n, got)
		}
	}
	if all := server.Keys(t, bucket, ""); len(all) != 3*len(served) {
		t.Errorf("the bucket has other keys than those: %q", all)
	}
	for n, at := range refused {
		for _, dir := range []string{"db/" + n, "db/p_" + n + "/k=v"} {
			wantErrno(t, dir+": list", listErr(l, dir), syscall.EOPNOTSUPP)
			wantErrno(t, dir+": look-up", statErr(l, dir+"/passwd"), syscall.EOPNOTSUPP)
			wantErrno(t, dir+": create", openErr(l, dir+"/new", creat), syscall.EOPNOTSUPP)
			if s := catalogStatus(t, l, dir); s.Readable || s.Reason == "" {
				t.Errorf("%s: status %+v", dir, s)
			}
		}
		wantNames(t, l, "db/p_"+n, "k=v")
		if got := l.MustSh(`jq -r .Table.StorageDescriptor.Location db/` + n + `.json; jq -r .Partition.StorageDescriptor.Location db/p_` + n + `/k=v/.lakefs/entry.json`); got != at+"\n"+at+"\n" {
			t.Errorf("%s: the JSON has %q, want %q", n, got, at)
		}
	}
}

// TestCase55_ExactJSON: nothing is escaped, rounded or sorted anew.
func TestCase55_ExactJSON(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	const sep = "\u2028"
	addEntries(l, `{"Zuerst":1,"Name":"t","CreateTime":1767225600.125,"Unknown":{"b":12345678901234567,"a":1.50,"e":1E5},"PartitionKeys":[{"Name":"k","Type":"string"}],`+
		`"Parameters":{"z":"a<b && c>d","n":"12345678901234567","line":"x`+sep+`y","quote":"\"\\\u0000"},"StorageDescriptor":{"Location":"s3://{0}/t"}}`)
	l.Catalog.Server.AddPartition("db", "t", `{"CreationTime":1767225600,"Values":["a<b"],"More":[12345678901234567,1.0],"Parameters":{"x":"&`+sep+`"}}`)
	l.Start()
	wantNames(t, l, "db/t", "k=a<b")
	for path, has := range map[string][]string{
		"db/t.json": {
			`"z": "a<b && c>d"`, `"n": "12345678901234567"`, `"b": 12345678901234567`, `"a": 1.50`, `"e": 1E5`, `"line": "x` + sep + `y"`,
			`"quote": "\"\\\u0000"`, `"CreateTime": "2026-01-01T00:00:00.125000+00:00"`, "{\n  \"Table\": {\n    \"Zuerst\": 1,\n    \"Name\": \"t\",\n",
		},
		"db/t/k=a<b/.lakefs/entry.json": {`"CreationTime": "2026-01-01T00:00:00+00:00"`, `12345678901234567`, `1.0`, `"x": "&` + sep + `"`, `"a<b"`},
	} {
		first, err := l.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range has {
			if !strings.Contains(first, want) {
				t.Errorf("%s lacks %s:\n%s", path, want, first)
			}
		}
		if !strings.HasSuffix(first, "\n}\n") || !json.Valid([]byte(first)) {
			t.Errorf("%s ends in %q", path, first[max(0, len(first)-10):])
		}
		if path == "db/t.json" {
			wantContent(t, l, "db/t/.lakefs/entry.json", first)
			if got := stat(t, l, path).Size; got != int64(len(first)) {
				t.Errorf("%s has %d bytes by stat, %d when read", path, got, len(first))
			}
		}
		l.MustSh(`echo refresh >.lakefs/ctl`)
		wantContent(t, l, path, first)
	}
}

// TestEdge09_AMissingSchemaPart names the table and the part.
func TestEdge09_AMissingSchemaPart(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"Parameters":{"spark.sql.sources.provider":"parquet","spark.sql.sources.schema.numParts":"3",
"spark.sql.sources.schema.part.0":"{\"type\":\"struct\",","spark.sql.sources.schema.part.2":"\"fields\":[]}"}`), csvAt("good", "s3://{0}/good", ""))
	putInBucket(t, l, 0, "good/f", "good\n")
	l.Start()
	wantErrno(t, "list", listErr(l, "db/t"), syscall.EIO)
	if s := catalogStatus(t, l, "db/t"); !strings.Contains(s.Reason, "db.t") || !strings.Contains(s.Reason, "part.1") {
		t.Errorf("the reason is %q, want the table and part 1", s.Reason)
	}
	l.WaitLog("schema.part.1")
	l.MustSh(`jq -e .Table.Parameters db/t.json; cat db/good/f`)
}

// TestEdge10_PartitionsOfSeveralFormats, each with a SerDe of its own.
func TestEdge10_PartitionsOfSeveralFormats(t *testing.T) {
	t.Parallel()
	avro := "Obj\x01" + strings.Repeat("avro bytes \x00\xff", 1000)
	orc := "ORC" + strings.Repeat("orc bytes \x00\xff", 1000) + "ORC\x17"
	table := mounttest.GlueTable{
		Table: mounttest.Table{Database: "db", Name: "t", Keys: []string{"dt"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"1"}, Files: map[string]string{"a.parquet": mounttest.Parquet(t, 3)}},
			{Values: []string{"2"}, Format: "avro", Files: map[string]string{"data.avro": avro}},
			{Values: []string{"3"}, Format: "orc", Location: "s3://{1}/orc", Files: map[string]string{"000000_0": orc}},
		},
	}
	l := mountGlue(t, mounttest.Options{}, table)
	got := l.MustSh(`cd db/t; for d in dt=*; do jq -r '.Partition.StorageDescriptor.SerdeInfo.SerializationLibrary' $d/.lakefs/entry.json; done; jq -r .Table.StorageDescriptor.SerdeInfo.SerializationLibrary .lakefs/entry.json`)
	if want := "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe\norg.apache.hadoop.hive.serde2.avro.AvroSerDe\norg.apache.hadoop.hive.ql.io.orc.OrcSerde\norg.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe\n"; got != want {
		t.Errorf("SerDes of the partitions and the table: %q, want %q", got, want)
	}
	wantContent(t, l, "db/t/dt=2/data.avro", avro)
	wantContent(t, l, "db/t/dt=3/000000_0", orc)
	s := catalogStatus(t, l, "db/t")
	if string(s.MultiFormat) != "true" || len(s.Formats) != 3 || s.Formats["org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat"] != 1 {
		t.Errorf("status: hasMultiFormatPartitions %s, formats %v", s.MultiFormat, s.Formats)
	}
	for dir, want := range map[string]string{"dt=1": "parquet", "dt=2": "avro", "dt=3": "orc"} {
		if s := catalogStatus(t, l, "db/t/"+dir); s.Format != want || s.FormatFrom == "" || !s.Readable || !s.Writable {
			t.Errorf("%s: status %+v, want %s", dir, s, want)
		}
	}
}
