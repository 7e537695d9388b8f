package table

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// glueEntry returns a good Parquet entry of db.t, as change leaves it.
func glueEntry(change func(e obj)) []byte {
	e := obj{
		"Name": "t", "DatabaseName": "db", "TableType": "EXTERNAL_TABLE", "PartitionKeys": []obj{}, "Parameters": obj{},
		"StorageDescriptor": obj{
			"Location": "s3://lake/t", "InputFormat": parquetInput, "NumberOfBuckets": -1, "BucketColumns": []any{},
			"SerdeInfo": obj{"SerializationLibrary": parquetSerde, "Parameters": obj{"serialization.format": "1"}},
			"Columns":   []obj{{"Name": "a", "Type": "bigint"}},
		},
	}
	if change != nil {
		change(e)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return b
}

func glueTable(change func(e obj)) *Table { return ParseGlue("db", "t", glueEntry(change)) }

func glueSD(e obj) obj    { return e["StorageDescriptor"].(obj) }
func glueSerde(e obj) obj { return glueSD(e)["SerdeInfo"].(obj) }

// with sets parameters, given as key and value in turn.
func with(kv ...string) func(obj) {
	return func(e obj) {
		for i := 0; i < len(kv); i += 2 {
			e["Parameters"].(obj)[kv[i]] = kv[i+1]
		}
	}
}

// all makes several changes.
func all(changes ...func(obj)) func(obj) {
	return func(e obj) {
		for _, c := range changes {
			c(e)
		}
	}
}

func keyed(name, typ string) func(obj) {
	return func(e obj) { e["PartitionKeys"] = []obj{{"Name": name, "Type": typ}} }
}

// sparkForm is the Spark-specific form of a data source table.
func sparkForm(provider string) func(obj) {
	return func(e obj) {
		glueSD(e)["Location"] = "s3://lake/db.db/t-__PLACEHOLDER__"
		glueSD(e)["InputFormat"] = sequence
		glueSD(e)["Columns"] = []obj{{"Name": "col", "Type": "array<string>", "Comment": "from deserializer"}}
		glueSD(e)["SerdeInfo"] = obj{"SerializationLibrary": lazy, "Parameters": obj{"path": "s3://lake/t", "serialization.format": "1"}}
		with(providerKey, provider)(e)
	}
}

const schemaOfAB = `{"type":"struct","fields":[{"name":"b","type":"string","nullable":true,"metadata":{}},{"name":"a","type":"long","nullable":true,"metadata":{"comment":"first"}}]}`

func wantLoadError(t *testing.T, what string, tab *Table, words ...string) {
	t.Helper()
	wantBroken(t, what, tab, append(words, "db.t: ")...)
}

func TestRule01_EveryParameterIsKept(t *testing.T) {
	for _, folder := range fixtureFolders(t) {
		_, _, raw := fixture(t, folder)
		tab := parseFixture(t, folder)
		if tab.Kind == Broken || tab.Kind == Link {
			continue // their JSON shows them
		}
		var e struct{ Parameters map[string]string }
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(tab.Parameters, e.Parameters) {
			t.Errorf("%s: got %q, want %q", folder, tab.Parameters, e.Parameters)
		}
	}
	tab := glueTable(with("trino_version", "484", "delta.x", "", "q", "a<b && c>d\u2028"))
	want := map[string]string{"trino_version": "484", "delta.x": "", "q": "a<b && c>d\u2028"}
	if !reflect.DeepEqual(tab.Parameters, want) {
		t.Errorf("got %q, want %q", tab.Parameters, want)
	}
}

func TestRule03_SerdePathWinsOverLocation(t *testing.T) {
	for _, c := range []struct{ what, path, location, want string }{
		{"path alone", "s3://lake/p", "", "s3://lake/p"},
		{"both", "s3://lake/p", "s3://lake/l", "s3://lake/p"},
		{"path and placeholder", "s3://lake/p", "s3://lake/l-__PLACEHOLDER__", "s3://lake/p"},
		{"empty path", "", "s3://lake/l", "s3://lake/l"},
		{"placeholder path", "s3://lake/p-__PLACEHOLDER__", "s3://lake/l", "s3://lake/l"},
		{"verbatim", "", "S3A://lake//l/../x y%20/", "S3A://lake//l/../x y%20/"},
		{"placeholder within", "", "s3://lake/l-__PLACEHOLDER__/x", "s3://lake/l-__PLACEHOLDER__/x"},
	} {
		tab := glueTable(func(e obj) {
			glueSD(e)["Location"] = c.location
			glueSerde(e)["Parameters"] = obj{"path": c.path}
		})
		if tab.Location != c.want || !tab.Writable {
			t.Errorf("%s: got %q, %s, want %q", c.what, tab.Location, tab.Reason, c.want)
		}
	}
}

func TestRule04_NoLocationIsALoadError(t *testing.T) {
	const missing, placeholder = "StorageDescriptor.Location is missing", "StorageDescriptor.Location is only a placeholder"
	for _, c := range []struct {
		what   string
		change func(obj)
		word   string
	}{
		{"empty", func(e obj) { glueSD(e)["Location"] = "" }, missing},
		{"null", func(e obj) { glueSD(e)["Location"] = nil }, missing},
		{"empty object", func(e obj) { glueSD(e)["Location"] = obj{} }, missing},
		{"absent", func(e obj) { delete(glueSD(e), "Location") }, missing},
		{"no descriptor", func(e obj) { delete(e, "StorageDescriptor") }, missing},
		{"null descriptor", func(e obj) { e["StorageDescriptor"] = nil }, missing},
		{"empty descriptor", func(e obj) { e["StorageDescriptor"] = obj{} }, missing},
		{"an empty text for a descriptor", func(e obj) { e["StorageDescriptor"] = "" }, missing},
		{"placeholder", func(e obj) { glueSD(e)["Location"] = "s3://lake/t-__PLACEHOLDER__" }, placeholder},
		{"placeholder with a slash", func(e obj) { glueSD(e)["Location"] = "s3://lake/t-__PLACEHOLDER__/" }, placeholder},
		{"two placeholders", func(e obj) {
			glueSD(e)["Location"] = "s3://lake/t-__PLACEHOLDER__"
			glueSerde(e)["Parameters"] = obj{"path": "s3://lake/t-__PLACEHOLDER__"}
		}, placeholder},
		{"Delta", all(with(providerKey, "delta"), func(e obj) { glueSD(e)["Location"] = "" }), missing},
		{"format table", all(with("type", "format-table", "file.format", "orc"), func(e obj) { glueSD(e)["Location"] = "" }), missing},
	} {
		wantLoadError(t, c.what, glueTable(c.change), c.word)
	}
}

func TestRule05_SchemaWholeOrInParts(t *testing.T) {
	tab := parseFixture(t, "made-by-hand/spark-schema-parts")
	if len(tab.Columns) != 111 {
		t.Fatalf("got %d columns, want 111", len(tab.Columns))
	}
	if got, want := tab.Columns[50], (Column{Name: "column_number_050", Type: "string", Comment: "c50"}); got != want {
		t.Errorf("column 50: got %+v, want %+v", got, want)
	}
	if got, want := tab.Columns[110], (Column{Name: "dt", Type: "string"}); got != want {
		t.Errorf("the last column: got %+v, want %+v", got, want)
	}

	const key = schemaKey
	for _, c := range []struct {
		what       string
		parameters []string
		words      []string
	}{
		{"part 1 of 3 missing", []string{key + ".numParts", "3", key + ".part.0", "{", key + ".part.2", "}"}, []string{"parameter " + key + ".part.1 is missing of 3"}},
		{"part 0 missing", []string{key + ".numParts", "1"}, []string{key + ".part.0 is missing of 1"}},
		{"a part too many", []string{key + ".numParts", "1", key + ".part.0", "{", key + ".part.1", "}"}, []string{key + ".numParts is 1, but there are 2"}},
		{"no count", []string{key + ".part.0", schemaOfAB}, []string{key + ".numParts is missing"}},
		{"no number", []string{key + ".numParts", "two"}, []string{key + `.numParts is "two", not a count`}},
		{"negative", []string{key + ".numParts", "-1"}, []string{key + `.numParts is "-1", not a count`}},
		{"huge", []string{key + ".numParts", "9999999999"}, []string{key + ".part.0 is missing"}},
		{"cut JSON", []string{key, `{"type":"struct","fields":[{`}, []string{"parameter " + key + " is no JSON schema", "byte 28"}},
		{"cut JSON in parts", []string{key + ".numParts", "2", key + ".part.0", `{"type":`, key + ".part.1", `"struct"`}, []string{key + ".part.0 to 1 is no JSON schema"}},
		{"no struct", []string{key, `{"type":"array"}`}, []string{`is of type "array", not a struct`}},
		{"no object", []string{key, `"string"`}, []string{key + " is no JSON schema", "a string, not an object"}},
		{"a field that is none", []string{key, `{"type":"struct","fields":[1]}`}, []string{key, "fields[0] is a number, not an object"}},
		{"a field without a name", []string{key, `{"type":"struct","fields":[{"type":"long"}]}`}, []string{"fields[0].name is missing"}},
		{"a type that is none", []string{key, `{"type":"struct","fields":[{"name":"a","type":7}]}`}, []string{"fields[0].type is a number, not a type"}},
		{"a nested type that is none", []string{key, `{"type":"struct","fields":[{"name":"a","type":{"type":"set"}}]}`}, []string{`fields[0].type.type is "set"`}},
		{"too deep", []string{key, `{"type":"struct","fields":[{"name":"a","type":` + strings.Repeat(`{"type":"array","elementType":`, 300) + `"long"` + strings.Repeat("}", 300) + "}]}"}, []string{"deeper than 256"}},
	} {
		wantLoadError(t, c.what, glueTable(all(with(providerKey, "parquet"), with(c.parameters...))), c.words...)
	}
}

func TestRule06_PartitionColumns(t *testing.T) {
	const count, col = schemaKey + ".numPartCols", schemaKey + ".partCol."
	parquet := with(providerKey, "parquet", schemaKey, schemaOfAB)
	got := glueTable(all(parquet, with(count, "1", col+"0", "b")))
	if want := []Column{{"a", "bigint", "first", false}, {"b", "string", "", false}}; !reflect.DeepEqual(got.Columns, want) {
		t.Errorf("columns: got %+v, want the partition column last", got.Columns)
	}
	if want := []Column{{"b", "string", "", false}}; !reflect.DeepEqual(got.Keys, want) || got.Partitions != PartitionsInCatalog {
		t.Errorf("keys: got %+v from %q, want %+v", got.Keys, got.Partitions, want)
	}
	got = glueTable(all(parquet, with(count, "2", col+"0", "a", col+"1", "B")))
	if want := []Column{{"a", "bigint", "first", false}, {"b", "string", "", false}}; !reflect.DeepEqual(got.Columns, want) {
		t.Errorf("in partCol order: got %+v", got.Columns)
	}
	got = glueTable(all(parquet, keyed("b", "string"), func(e obj) { delete(e["Parameters"].(obj), count) }))
	if got.Columns[1].Name != "b" {
		t.Errorf("by PartitionKeys alone: got %+v", got.Columns)
	}
	got = glueTable(all(with(providerKey, "delta", schemaKey, schemaOfAB, count, "1", col+"0", "b")))
	if got.Kind != Delta || got.Columns[0].Name != "b" || got.Partitions != PartitionsOnDisk {
		t.Errorf("Delta keeps its order: got %s %+v", got.Kind, got.Columns)
	}
	got = glueTable(all(with(providerKey, "delta", schemaKey, schemaOfAB, count, "1", col+"0", "c")))
	if got.Kind != Delta || !got.Readable {
		t.Errorf("a column that is not in a Delta schema: got %s, %s", got.Kind, got.Reason)
	}
	for _, c := range []struct {
		what       string
		parameters []string
		word       string
	}{
		{"not in the schema", []string{count, "1", col + "0", "c"}, `partition column "c" (parameter ` + col + "0) is not in " + schemaKey},
		{"one missing", []string{count, "2", col + "1", "b"}, col + "0 is missing of 2"},
		{"one too many", []string{count, "1", col + "0", "a", col + "1", "b"}, count + " is 1, but there are 2"},
		{"no count", []string{col + "0", "b"}, count + " is missing"},
		{"no number", []string{count, "x"}, count + ` is "x", not a count`},
		{"twice", []string{count, "2", col + "0", "a", col + "1", "A"}, `partition key "A" is there twice`},
	} {
		wantLoadError(t, c.what, glueTable(all(parquet, with(c.parameters...))), c.word)
	}
	wantLoadError(t, "an empty schema", glueTable(with(providerKey, "parquet", schemaKey, `{"type":"struct","fields":[]}`, count, "1", col+"0", "b")), `"b"`)
}

func TestRule07_OnlyProviderAndLocationAreNeeded(t *testing.T) {
	bare := func(parameters obj) *Table {
		raw, err := json.Marshal(obj{"StorageDescriptor": obj{"Location": "s3://lake/t"}, "Parameters": parameters})
		if err != nil {
			t.Fatal(err)
		}
		return ParseGlue("db", "t", raw)
	}
	if got := bare(obj{providerKey: "parquet"}); !got.Writable || got.Format != "parquet" || len(got.Keys)+len(got.Columns) > 0 {
		t.Errorf("parquet: got %+v", got)
	}
	if got := bare(obj{providerKey: "delta"}); got.Kind != Delta || !got.Readable || len(got.Keys) > 0 {
		t.Errorf("Delta: got %+v", got)
	}
	got := glueTable(with(providerKey, "parquet"))
	if want := []Column{{"a", "bigint", "", false}}; !reflect.DeepEqual(got.Columns, want) {
		t.Errorf("without a schema: got %+v, want those of StorageDescriptor.Columns", got.Columns)
	}
	got = glueTable(with(providerKey, "parquet", schemaKey+".numPartCols", "2", schemaKey+".partCol.0", "a", schemaKey+".partCol.1", "z"))
	if want := []Column{{"a", "bigint", "", false}, {"z", "string", "", false}}; !reflect.DeepEqual(got.Keys, want) {
		t.Errorf("partition columns without a schema: got %+v, %s", got.Keys, got.Reason)
	}
	if got = glueTable(sparkForm("delta")); !got.Readable || len(got.Columns) > 0 {
		t.Errorf("Spark's stand-in for columns: got %+v", got.Columns)
	}
}

func TestRule08_ProviderAndPartitionProviderWithoutCase(t *testing.T) {
	for provider, want := range map[string]Kind{
		"DELTA": Delta, "Delta": Delta, "io.delta.sql.DeltaDataSource": Delta, "ICEBERG": Iceberg, "Hudi": Hudi, "org.apache.hudi": Hudi,
		"PARQUET": Hive, "Csv": Hive,
	} {
		if got := glueTable(with(providerKey, provider)); got.Kind != want {
			t.Errorf("%s: got %s, want %s", provider, got.Kind, want)
		}
	}
	const partitionProvider = "spark.sql.partitionProvider"
	for _, c := range []struct {
		what   string
		change func(obj)
		want   PartitionSource
	}{
		{"absent", with(), PartitionsInCatalog},
		{"catalog", with(partitionProvider, "catalog"), PartitionsInCatalog},
		{"filesystem", with(partitionProvider, "filesystem"), PartitionsOnDisk},
		{"FileSystem", with(partitionProvider, "FileSystem"), PartitionsOnDisk},
		{"filesystem of a data source", with(providerKey, "orc", partitionProvider, "filesystem"), PartitionsOnDisk},
		{"format table", with("type", "format-table", "file.format", "orc"), PartitionsOnDisk},
		{"Delta", with(providerKey, "delta", partitionProvider, "catalog"), PartitionsOnDisk},
		{"Iceberg", with("table_type", "ICEBERG"), PartitionsOnDisk},
		{"Hudi", with(providerKey, "hudi"), PartitionsOnDisk},
		{"without keys", func(e obj) { e["PartitionKeys"] = nil }, PartitionsOnDisk},
		{"projection off", with("projection.enabled", "false", "projection.dt.type", "enum"), PartitionsInCatalog},
		{"projection on", with("projection.enabled", "TRUE", "projection.dt.type", "enum", "projection.dt.values", "a,b"), PartitionsProjected},
		{"projection and filesystem", with("projection.enabled", "true", "projection.dt.type", "injected", partitionProvider, "filesystem"), PartitionsProjected},
		{"projection of Delta", with("projection.enabled", "true", providerKey, "delta"), PartitionsOnDisk},
	} {
		got := glueTable(all(keyed("dt", "string"), c.change))
		if got.Partitions != c.want || (got.Projection != nil) != (c.want == PartitionsProjected) || !got.Readable {
			t.Errorf("%s: got %q, %s, want %q", c.what, got.Partitions, got.Reason, c.want)
		}
	}
	wantLoadError(t, "projection without a type", glueTable(all(keyed("dt", "string"), with("projection.enabled", "true"))), "projection.dt.type")
}

func TestRule09_BothSparkForms(t *testing.T) {
	spec := parseFixture(t, "made-by-hand/spark-specific-csv")
	compat := parseFixture(t, "made-by-hand/spark-hive-compatible-parquet")
	want := []Column{
		{"id", "int", "", false}, {"name", "string", "full\nname, on two lines", false}, {"price", "decimal(10,2)", "", false}, {"dt", "string", "", false},
	}
	for _, tab := range []*Table{spec, compat} {
		if !reflect.DeepEqual(tab.Columns, want) {
			t.Errorf("%s: got columns %+v, want %+v", tab.Name, tab.Columns, want)
		}
		if want := []Column{{"dt", "string", "", false}}; !reflect.DeepEqual(tab.Keys, want) {
			t.Errorf("%s: got keys %+v, want %+v", tab.Name, tab.Keys, want)
		}
	}
	for _, provider := range []string{"parquet", "orc", "avro", "csv", "text", "json"} {
		got := glueTable(sparkForm(provider))
		if got.Format != provider || got.FormatFrom != "provider" || !got.Writable || got.Serde != lazy || got.InputFormat != sequence {
			t.Errorf("%s: got %q from %q, %s", provider, got.Format, got.FormatFrom, got.Reason)
		}
	}
	if got := glueTable(all(sparkForm("hive"), with(providerKey, "Hive"))); got.Format != "sequence" {
		t.Errorf("hive: got %q, want the classes' format", got.Format)
	}
	if got := glueTable(sparkForm("org.example.Source")); got.Format != "" || got.Class != ClassReadOnly || !strings.Contains(got.Reason, "org.example.source") {
		t.Errorf("unknown: got %q, %s", got.Format, got.Reason)
	}
}

func TestRule09_SparkTypesAreWrittenAsHiveDoes(t *testing.T) {
	for spark, want := range map[string]string{
		`"byte"`: "tinyint", `"short"`: "smallint", `"integer"`: "int", `"long"`: "bigint", `"string"`: "string",
		`"decimal(10,2)"`: "decimal(10,2)", `"timestamp_ntz"`: "timestamp_ntz",
		`{"type":"array","elementType":"integer","containsNull":true}`:                                                          "array<int>",
		`{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true}`:                                         "map<string,bigint>",
		`{"type":"struct","fields":[{"name":"a","type":"integer"},{"name":"b","type":{"type":"array","elementType":"short"}}]}`: "struct<a:int,b:array<smallint>>",
		`{"type":"struct","fields":[{"name":"a,b","type":"integer"},{"name":"c:d","type":"long"}]}`:                             "struct<`a,b`:int,`c:d`:bigint>",
		`{"type":"udt","class":"x","sqlType":"double"}`:                                                                         "double",
		`"string","metadata":{"__CHAR_VARCHAR_TYPE_STRING":"varchar(7)"}`:                                                       "varchar(7)",
	} {
		tab := glueTable(with(providerKey, "parquet", schemaKey, `{"type":"struct","fields":[{"name":"a","type":`+spark+`}]}`))
		if len(tab.Columns) != 1 || tab.Columns[0].Type != want {
			t.Errorf("%s: got %+v, %s, want %s", spark, tab.Columns, tab.Reason, want)
		}
	}
}

func TestRule38_SparkSchemaSaysNotNull(t *testing.T) {
	tab := glueTable(with(providerKey, "parquet", schemaKey, `{"type":"struct","fields":[{"name":"a","type":"long","nullable":false},{"name":"b","type":"long","nullable":true},{"name":"c","type":"long"},{"name":"d","type":"long","nullable":"x"}]}`))
	want := []Column{{"a", "bigint", "", true}, {"b", "bigint", "", false}, {"c", "bigint", "", false}, {"d", "bigint", "", false}}
	if !reflect.DeepEqual(tab.Columns, want) {
		t.Errorf("got %+v, %s", tab.Columns, tab.Reason)
	}
}

func TestRule10_EmptySchemaAndDeltaProperties(t *testing.T) {
	got := parseFixture(t, "made-by-hand/delta-spark35-ctas")
	if !got.Readable || len(got.Columns) != 0 {
		t.Errorf("an empty schema: got %+v, %s", got.Columns, got.Reason)
	}
	if got = glueTable(with(providerKey, "parquet", schemaKey, `{"type":"struct","fields":[]}`)); !got.Writable || len(got.Columns) != 0 {
		t.Errorf("an empty schema of another: got %+v, %s", got.Columns, got.Reason)
	}
	got = parseFixture(t, "made-by-hand/delta-spark35-replaced")
	if want := []Column{{"id", "int", "", false}, {"dt", "string", "", false}}; !reflect.DeepEqual(got.Columns, want) {
		t.Errorf("replaced: got %+v, want %+v", got.Columns, want)
	}
	if got.Parameters["delta.minWriterVersion"] != "2" || got.Parameters["delta.lastCommitTimestamp"] != "1767225600000" {
		t.Errorf("replaced: got parameters %q", got.Parameters)
	}
}
