package table

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func mustJSON(tb testing.TB, v any) []byte {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// fixturePartitions returns the registered partitions of a folder of testdata/glue.
func fixturePartitions(tb testing.TB, folder string) []json.RawMessage {
	tb.Helper()
	var body struct{ Partitions []json.RawMessage }
	readJSON(tb, filepath.Join("testdata/glue", folder, "partitions.json"), &body)
	return body.Partitions
}

// gluePart is a partition of values and classes.
func gluePart(serde, input string, values ...string) obj {
	return obj{"Values": values, "StorageDescriptor": obj{
		"Location": "s3://lake/t/dt=1", "InputFormat": input,
		"SerdeInfo": obj{"SerializationLibrary": serde, "Parameters": obj{"serialization.format": "1"}},
	}}
}

func TestRule57_EachPartitionHasItsOwnFormat(t *testing.T) {
	const folder = "made-by-hand/multi-format-partitions"
	tab := parseFixture(t, folder)
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const at = "s3://lake/hand/test.db/events/dt="
	want := []Partition{
		{[]string{"2018-01-25"}, at + "2018-01-25", "parquet", "serde " + parquetSerde, parquetInput, created, "", ""},
		{[]string{"2018-01-26"}, at + "2018-01-26", "parquet", "serde " + parquetSerde, parquetInput, created, "", ""},
		{[]string{"2018-01-27"}, at + "2018-01-27", "avro", "serde " + avroSerde, avroInput, created, "", ""},
		{[]string{"2018-01-28"}, at + "2018-01-28", "orc", "serde " + orcSerde, orcInput, created, "", ""},
		{[]string{"2018-01-29"}, "s3://lake/hand/other_table/dt=2018-01-29", "csv", "serde " + lazy + " with field.delim", textInput, created, "", ""},
		{[]string{"2018-01-30"}, at + "2018-01-30", "parquet", "serde " + parquetSerde, avroInput, created, "", ""},
	}
	var got []Partition
	inputs := make(map[string]bool)
	for _, raw := range fixturePartitions(t, folder) {
		p, err := tab.ParseGluePartition(raw)
		if err != nil {
			t.Error(err)
		}
		got = append(got, p)
		inputs[p.InputFormat] = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(inputs) != 4 {
		t.Errorf("got %d input formats, want 4", len(inputs))
	}
}

func TestRule57_TheProviderDecidesForADataSource(t *testing.T) {
	spec := parseFixture(t, "made-by-hand/spark-specific-csv")
	p, err := spec.ParseGluePartition(fixturePartitions(t, "made-by-hand/spark-specific-csv")[0])
	if err != nil || p.Format != "csv" || p.FormatFrom != "provider" || p.InputFormat != sequence {
		t.Errorf("got %+v, %v", p, err)
	}
	hive := glueTable(all(keyed("dt", "string"), with(providerKey, "HIVE")))
	if p, err = hive.ParseGluePartition(mustJSON(t, gluePart(orcSerde, orcInput, "1"))); err != nil || p.Format != "orc" {
		t.Errorf("hive: got %+v, %v", p, err)
	}
}

func TestRule57_AnUnknownSerdeOrNoneTellsNothing(t *testing.T) {
	tab := glueTable(keyed("dt", "string"))
	for what, raw := range map[string][]byte{
		"unknown":       mustJSON(t, gluePart("org.example.Serde", textInput, "1")),
		"none":          mustJSON(t, gluePart("", "", "1")),
		"no descriptor": []byte(`{"Values":["1"]}`),
	} {
		if p, err := tab.ParseGluePartition(raw); err != nil || p.Format != "" || p.FormatFrom != "" {
			t.Errorf("%s: got %q from %q, %v; the table's format is not the partition's", what, p.Format, p.FormatFrom, err)
		}
	}
}

// A partition's location is its own descriptor's; writers leave the table's path in
// its SerDe.
func TestRule03_APartitionsSerdePathIsNotItsLocation(t *testing.T) {
	const folder = "made-by-hand/spark-hive-compatible-parquet"
	tab := parseFixture(t, folder)
	for i, want := range []string{"2026-01-01", HiveNull} {
		p, err := tab.ParseGluePartition(fixturePartitions(t, folder)[i])
		if err != nil || p.Location != tab.Location+"/dt="+want || p.Values[0] != want {
			t.Errorf("got %+v, %v", p, err)
		}
		if got := tab.PartitionName(p.Values[0], 0); got != "dt="+want {
			t.Errorf("got name %q", got)
		}
	}
}

func TestPartitionsOfEachWriter(t *testing.T) {
	for _, folder := range fixtureFolders(t) {
		tab := parseFixture(t, folder)
		for _, raw := range fixturePartitions(t, folder) {
			p, err := tab.ParseGluePartition(raw)
			if err != nil || p.Location == "" || p.Format == "" || p.InputFormat == "" || p.Created.IsZero() {
				t.Errorf("%s: got %+v, %v", folder, p, err)
			}
		}
	}
	tab := parseFixture(t, "awswrangler-parquet")
	p, err := tab.ParseGluePartition(fixturePartitions(t, "awswrangler-parquet")[2])
	if err != nil || p.Location != "s3://lake/wr/orders/dt=2026-01-02/region=a/b:c=d%/" || !reflect.DeepEqual(p.Values, []string{"2026-01-02", "a/b:c=d%"}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if got, want := tab.PartitionName(p.Values[1], 1), "region=a%2Fb%3Ac%3Dd%25"; got != want {
		t.Errorf("got name %q, want %q", got, want)
	}
	if want := time.Date(2026, 11, 29, 19, 59, 5, 137_000_000, time.UTC); !p.Created.Equal(want) {
		t.Errorf("created: got %v, want %v", p.Created, want)
	}
}

func TestGluePartitionLocations(t *testing.T) {
	tab := glueTable(keyed("dt", "string"))
	for _, c := range []struct{ what, raw, want string }{
		{"no descriptor", `{"Values":["1"]}`, ""},
		{"null", `{"Values":["1"],"StorageDescriptor":null}`, ""},
		{"empty", `{"Values":["1"],"StorageDescriptor":{}}`, ""},
		{"an empty text", `{"Values":["1"],"StorageDescriptor":""}`, ""},
		{"an empty list", `{"Values":["1"],"StorageDescriptor":[]}`, ""},
		{"null location", `{"Values":["1"],"StorageDescriptor":{"Location":null}}`, ""},
		{"SerDe path alone", `{"Values":["1"],"StorageDescriptor":{"SerdeInfo":{"Parameters":{"path":"s3://lake/x"}}}}`, ""},
		{"empty SerDe of another type", `{"Values":["1"],"StorageDescriptor":{"Location":"s3://b/x","SerdeInfo":""}}`, "s3://b/x"},
		{"another bucket", `{"Values":["1"],"StorageDescriptor":{"Location":"s3://b//x /"}}`, "s3://b//x /"},
	} {
		p, err := tab.ParseGluePartition([]byte(c.raw))
		if err != nil || p.Location != c.want || len(p.Values) != 1 || p.Values[0] != "1" {
			t.Errorf("%s: got %+v, %v, want %q", c.what, p, err, c.want)
		}
	}
}

func TestGluePartitionErrorsNameTableAndValues(t *testing.T) {
	tab := glueTable(func(e obj) {
		e["PartitionKeys"] = []obj{{"Name": "a", "Type": "string"}, {"Name": "b", "Type": "string"}}
	})
	for _, c := range []struct {
		what, raw string
		words     []string
		values    int
	}{
		{"too few", `{"Values":["x/y"]}`, []string{`["x/y"]`, "1 values", "2 partition keys"}, 1},
		{"too many", `{"Values":["1","2","3"]}`, []string{`["1" "2" "3"]`, "3 values"}, 3},
		{"none", `{"Values":[]}`, []string{"0 values"}, 0},
		{"absent", `{}`, []string{"0 values"}, 0},
		{"a number", `{"Values":["1",2]}`, []string{`["1"]`, "Values[1] is a number, not a string"}, 1},
		{"a text", `{"Values":"1"}`, []string{"Values is a string, not an array"}, 0},
		{"location", `{"Values":["1","2"],"StorageDescriptor":{"Location":5}}`, []string{`["1" "2"]`, "StorageDescriptor.Location is a number"}, 2},
		{"descriptor", `{"Values":["1","2"],"StorageDescriptor":[5]}`, []string{`["1" "2"]`, "StorageDescriptor is an array"}, 2},
		{"SerDe", `{"Values":["1","2"],"StorageDescriptor":{"SerdeInfo":{"SerializationLibrary":true}}}`, []string{"StorageDescriptor.SerdeInfo.SerializationLibrary is a boolean"}, 2},
		{"input format", `{"Values":["1","2"],"StorageDescriptor":{"InputFormat":{"a":1}}}`, []string{"StorageDescriptor.InputFormat is an object"}, 2},
		{"cut", `{"Values":["1","2"]`, []string{"unexpected end"}, 0},
		{"no object", `[]`, []string{"an array, not an object"}, 0},
		{"null", `null`, []string{"0 values"}, 0},
	} {
		p, err := tab.ParseGluePartition([]byte(c.raw))
		if err == nil {
			t.Errorf("%s: no error", c.what)
			continue
		}
		for _, w := range append(c.words, "db.t: partition ") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.what, err, w)
			}
		}
		if len(p.Values) != c.values {
			t.Errorf("%s: got values %q, want %d", c.what, p.Values, c.values)
		}
	}
}

func TestGluePartitionTimes(t *testing.T) {
	tab := glueTable(keyed("dt", "string"))
	for in, want := range map[string]time.Time{
		"1767225600":     time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"1767225600.0":   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"1.7672256E9":    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"1767225600.137": time.Date(2026, 1, 1, 0, 0, 0, 137_000_000, time.UTC),
		"0":              {}, "-1": {}, "1e300": {}, "1e999": {}, "null": {}, `""`: {}, `"soon"`: {}, "{}": {}, "[1]": {}, "true": {},
	} {
		for _, descriptor := range []string{"{}", `""`} { // both ways to read
			raw := `{"Values":["1"],"CreationTime":` + in + `,"StorageDescriptor":` + descriptor + `}`
			if p, err := tab.ParseGluePartition([]byte(raw)); err != nil || !p.Created.Equal(want) {
				t.Errorf("%s: got %v, %v, want %v", raw, p.Created, err, want)
			}
		}
	}
}

func TestPartitionNamesAndTheirTexts(t *testing.T) {
	tab := glueTable(keyed("dt", "string"))
	for _, v := range []string{"a/b:c=d%", "us west", "", "é", HiveNull, "\x00\x7f", "=", "100%"} {
		name := tab.PartitionName(v, 0)
		if got, ok := tab.PartitionText(name, 0); !ok || got != v {
			t.Errorf("%q: got %q, %t from %q", v, got, ok, name)
		}
	}
	for _, name := range []string{"DT=1", "dt=a/b", "dt=%2f", "dt=a%20b", "x=1", "dt", "_temporary"} {
		if got, ok := tab.PartitionText(name, 0); ok {
			t.Errorf("%q: got %q; another spelling, or no partition", name, got)
		}
	}
	if _, ok := tab.PartitionText("dt=1", 1); ok {
		t.Error("below the keys: got a text")
	}
}

func BenchmarkParseGluePartition(b *testing.B) {
	tab := glueTable(func(e obj) {
		e["PartitionKeys"] = []obj{{"Name": "dt", "Type": "string"}, {"Name": "region", "Type": "string"}}
	})
	for _, columns := range []int{0, 170} {
		part := gluePart(parquetSerde, parquetInput, "2026-01-01", "eu")
		part["CreationTime"] = 1767225600.5
		part["StorageDescriptor"].(obj)["Columns"] = numberedColumns("column_", columns)
		raw := mustJSON(b, part)
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := tab.ParseGluePartition(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What makes plain files harmful is a partition's own matter, as its format is.
func TestRule57_APartitionMayBeReadOnly(t *testing.T) {
	tab := &Table{Database: "db", Name: "t", Kind: Hive, Keys: []Column{{Name: "dt", Type: "string"}}, Readable: true, Writable: true}
	for what, c := range map[string]struct {
		descriptor obj
		want       string
	}{
		"plain":      {obj{"InputFormat": textInput, "NumberOfBuckets": -1, "BucketColumns": []string{}}, ""},
		"symlinks":   {obj{"InputFormat": "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"}, "lists of paths"},
		"buckets":    {obj{"InputFormat": textInput, "NumberOfBuckets": 3, "BucketColumns": []string{"id"}}, "3 buckets"},
		"no columns": {obj{"InputFormat": textInput, "NumberOfBuckets": 3, "BucketColumns": nil}, ""},
		"skew":       {obj{"InputFormat": textInput, "StoredAsSubDirectories": true}, "skew"},
		"loose":      {obj{"InputFormat": textInput, "NumberOfBuckets": 3, "BucketColumns": []string{"id"}, "SerdeInfo": ""}, "3 buckets"},
	} {
		raw, err := json.Marshal(obj{"Values": []string{"1"}, "StorageDescriptor": c.descriptor})
		if err != nil {
			t.Fatal(err)
		}
		p, err := tab.ParseGluePartition(raw)
		if err != nil || (c.want == "") != (p.ReadOnly == "") || !strings.Contains(p.ReadOnly, c.want) {
			t.Errorf("%s: %q, %v; want %q", what, p.ReadOnly, err, c.want)
		}
	}
}
