package table

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

type obj = map[string]any

// manifest returns a good manifest of db.t, as change leaves it.
func manifest(change func(m obj)) []byte {
	m := obj{
		"manifest_version": 1, "table_type": "EXTERNAL_TABLE", "database_name": "db", "name": "t",
		"partition_keys": []obj{}, "parameters": obj{},
		"storage_descriptor": obj{
			"location":      "data/t",
			"input_format":  "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
			"output_format": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
			"serde_info": obj{
				"serialization_library": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
				"parameters":            obj{},
			},
			"columns": []obj{{"name": "a", "type": "bigint", "comment": nil}},
		},
	}
	if change != nil {
		change(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func wantBroken(t *testing.T, what string, tab *Table, reasons ...string) {
	t.Helper()
	if tab.Kind != Broken || tab.Class != ClassBroken || tab.Readable || tab.Writable {
		t.Errorf("%s: got %+v, want broken", what, tab)
	}
	for _, r := range reasons {
		if !strings.Contains(tab.Reason, r) {
			t.Errorf("%s: reason %q does not say %q", what, tab.Reason, r)
		}
	}
}

// The key names on disk are asserted by a literal manifest, not by a round trip
// (rule 41).
func TestManifestOfTheSeedLoads(t *testing.T) {
	raw, err := os.ReadFile("testdata/events_parquet.json")
	if err != nil {
		t.Fatal(err)
	}
	got := ParseManifest("demo", "events_parquet", raw, Limits{})
	want := &Table{
		Database: "demo", Name: "events_parquet", Kind: Hive,
		Format: "parquet", FormatFrom: "serde org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
		InputFormat: "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
		Serde:       "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
		Location:    "s3://lake/data/events_parquet/",
		Keys:        []Column{{"dt", "string", "", false}, {"region", "string", "", false}},
		Columns:     []Column{{"event_id", "bigint", "", false}},
		Parameters:  map[string]string{}, NullName: HiveNull,
		Storage: Storage{
			OutputFormat: "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat", SerdeProperties: map[string]string{},
		},
		Strict: true, Readable: true, Writable: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCase54BadManifestsSayWhatAndWhere(t *testing.T) {
	good := string(manifest(nil))
	for _, c := range []struct {
		what, raw string
		want      []string
	}{
		{"empty", "", []string{"empty", "0 bytes"}},
		{"spaces", " \n ", []string{"cut", "line 2"}},
		{"cut", good[:len(good)-5], []string{"cut", "byte"}},
		{"cut after a key", `{"name"`, []string{"cut"}},
		{"BOM", "\xef\xbb\xbf" + good, []string{"byte order mark"}},
		{"trailing garbage", good + "\n\nx", []string{"follows", "line 3, column 1"}},
		{"second object", good + good, []string{"follows"}},
		{"duplicate key", `{"name":"t",` + "\n" + `"name":"u"}`, []string{`"name"`, "twice", "line 2"}},
		{"deep duplicate key", `{"a":[{"b":1,"b":2}]}`, []string{`"b"`, "twice"}},
		{"array", `[{"name":"t"}]`, []string{"an array, not an object"}},
		{"string", `"t"`, []string{"a string, not an object"}},
		{"null", `null`, []string{"null, not an object"}},
		{"bad UTF-8", "{\"name\":\n\"\xff\"}", []string{"UTF-8", "byte 10 (line 2, column 2)"}},
		{"no JSON", `{"name" "t"}`, []string{"no JSON at byte"}},
		{"bad number", `{"manifest_version": 01}`, []string{"no JSON at byte"}},
		{"deep", strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), []string{"deeper than 64"}},
		{"deep arrays", `{"a":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + "}", []string{"deeper than 64"}},
		{"no version", `{}`, []string{"manifest_version is missing"}},
		{"version 2", `{"manifest_version":2}`, []string{"manifest_version is 2"}},
		{"version 1.5", `{"manifest_version":1.5}`, []string{"1.5"}},
		{"version as text", `{"manifest_version":"1"}`, []string{"manifest_version is a string, not a number"}},
		{"another case", `{"Manifest_Version":1}`, []string{"manifest_version is missing"}},
		{"another name", string(manifest(func(m obj) { m["name"] = "T" })), []string{`name is "T"`, `"t"`}},
		{"another database", string(manifest(func(m obj) { m["database_name"] = "x" })), []string{`database_name is "x"`, `"db"`}},
		{"columns no array", string(manifest(func(m obj) { sd(m)["columns"] = obj{} })), []string{"storage_descriptor.columns is an object, not an array"}},
		{"column no object", string(manifest(func(m obj) { sd(m)["columns"] = []any{obj{"name": "a", "type": "int"}, 1} })), []string{"storage_descriptor.columns[1] is a number"}},
		{"column type", string(manifest(func(m obj) { m["partition_keys"] = []obj{{"name": "a", "type": 1}} })), []string{"partition_keys[0].type is a number, not a string"}},
		{"column without name", string(manifest(func(m obj) { m["partition_keys"] = []obj{{"type": "int"}} })), []string{"partition_keys[0].name is missing"}},
		{"key twice", string(manifest(func(m obj) { m["partition_keys"] = []obj{{"name": "A"}, {"name": "a"}} })), []string{`key "a" is there twice`}},
		{"parameter", string(manifest(func(m obj) { m["parameters"] = obj{"p": []int{1}} })), []string{"parameters.p is an array, not a string"}},
		{"no storage", `{"manifest_version":1}`, []string{"location is missing"}},
		{"storage no object", `{"manifest_version":1,"storage_descriptor":[]}`, []string{"storage_descriptor is an array, not an object"}},
		{"empty location", string(manifest(func(m obj) { sd(m)["location"] = "" })), []string{"location is missing"}},
		{"placeholder", string(manifest(func(m obj) { sd(m)["location"] = "/x/t-__PLACEHOLDER__" })), []string{"placeholder"}},
	} {
		wantBroken(t, c.what, ParseManifest("db", "t", []byte(c.raw), Limits{}), c.want...)
	}
}

func sd(m obj) obj         { return m["storage_descriptor"].(obj) }
func serde(m obj) obj      { return sd(m)["serde_info"].(obj) }
func parameters(m obj) obj { return m["parameters"].(obj) }

func TestCase55ParametersAreExact(t *testing.T) {
	raw := strings.Replace(string(manifest(nil)), `"parameters":{},"partition_keys"`,
		`"parameters":{"q":"a<b && c>d","n":12345678901234567,"e":1.50e3,"u":"`+"\u2028"+`\u2028","b":true,"z":null},"partition_keys"`, 1)
	got := ParseManifest("db", "t", []byte(raw), Limits{}).Parameters
	want := map[string]string{"q": "a<b && c>d", "n": "12345678901234567", "e": "1.50e3", "u": "\u2028\u2028", "b": "true"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNullAndAbsentAreTheSame(t *testing.T) {
	raw := manifest(func(m obj) {
		m["database_name"], m["name"], m["table_type"], m["sqe"] = nil, nil, nil, nil
		sd(m)["skewed_info"], sd(m)["number_of_buckets"] = nil, -1
		sd(m)["serde_info"] = nil
		delete(m, "parameters")
	})
	tab := ParseManifest("db", "t", raw, Limits{})
	if !tab.Writable || tab.Database != "db" || tab.Name != "t" || tab.Parameters == nil {
		t.Errorf("got %+v", tab)
	}
}

func TestSerdePathWinsOverLocation(t *testing.T) {
	raw := manifest(func(m obj) {
		sd(m)["location"] = "/x/t-__PLACEHOLDER__"
		serde(m)["parameters"] = obj{"path": "/data/t"}
	})
	if tab := ParseManifest("db", "t", raw, Limits{}); tab.Location != "/data/t" || !tab.Writable {
		t.Errorf("got %q, %s", tab.Location, tab.Reason)
	}
}

func TestRule5SchemaParts(t *testing.T) {
	const key = "spark.sql.sources.schema"
	for _, c := range []struct {
		what       string
		parameters obj
		reason     string // "" loads
	}{
		{"whole", obj{key: `{"type":"struct","fields":[]}`}, ""},
		{"parts", obj{key + ".numParts": "2", key + ".part.0": `{"type":"struct",`, key + ".part.1": `"fields":[{"name":"a"}]}`}, ""},
		{"part 1 of 3 missing", obj{key + ".numParts": "3", key + ".part.0": `{`, key + ".part.2": `}`}, key + ".part.1 is missing of 3"},
		{"a part too many", obj{key + ".numParts": "1", key + ".part.0": `{`, key + ".part.1": `}`}, "numParts is 1, but there are 2"},
		{"no count", obj{key + ".part.0": `{}`}, "numParts is missing"},
		{"count", obj{key + ".numParts": "many"}, `"many"`},
		{"huge count", obj{key + ".numParts": "999999999999"}, "part.0 is missing"},
		{"bad JSON", obj{key: `{"type":`}, "no JSON"},
		{"no struct", obj{key: `{"type":"map"}`}, `"map"`},
		{"a field that is none", obj{key: `{"type":"struct","fields":[1]}`}, "fields[0] is a number"},
	} {
		tab := ParseManifest("db", "t", manifest(func(m obj) { m["parameters"] = c.parameters }), Limits{})
		if c.reason == "" {
			if !tab.Writable {
				t.Errorf("%s: %s", c.what, tab.Reason)
			}
			continue
		}
		wantBroken(t, c.what, tab, c.reason)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(manifest(nil))
	f.Add([]byte(`{"manifest_version":1,"storage_descriptor":{"location":"x","columns":[{"name":"a","type":"array<int>"}]}}`))
	f.Add([]byte(`[{}]`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tab := ParseManifest("db", "t", raw, Limits{})
		if tab.Database != "db" || tab.Name != "t" {
			t.Fatalf("names: %q %q", tab.Database, tab.Name)
		}
		if tab.Writable && !tab.Readable || !tab.Writable && tab.Reason == "" || !tab.Writable && tab.Class == ClassNone {
			t.Fatalf("a verdict without reason: %+v", tab)
		}
		if tab.Writable && (tab.Reason != "" || tab.Location == "" || !json.Valid(raw)) {
			t.Fatalf("a good verdict on a bad entry: %+v", tab)
		}
		if tab.Kind != Broken && (len(tab.Keys) > 32 || len(tab.Columns) > 4096) {
			t.Fatal("limits")
		}
		for _, name := range []string{"a=1", "1", "_temporary", string(raw[:min(20, len(raw))])} {
			_, _ = tab.Partition(name, 0)
			_ = tab.CheckNew(name, 0, nil)
		}
	})
}
