package table

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// paimon is a format table of Parquet with a key.
func paimon(kv ...string) func(obj) {
	return all(keyed("dt", "date"), with("type", "format-table", "file.format", "parquet"), with(kv...))
}

func TestRule17_FormatTablesInGlue(t *testing.T) {
	got := glueTable(paimon("type", "FORMAT-TABLE", "file.format", "ORC"))
	if got.Kind != FormatTable || got.Format != "orc" || got.FormatFrom != "file.format" || !got.Writable || !got.InsertOnly() {
		t.Errorf("got %+v", got)
	}
	if got.Partitions != PartitionsOnDisk {
		t.Errorf("got partitions from %q, want the listing", got.Partitions)
	}
	if len(got.Notes) != 0 {
		t.Errorf("got notes %q", got.Notes)
	}
}

func TestRule18_ValueOnlyDirectoriesInGlue(t *testing.T) {
	got := glueTable(paimon("format-table.partition-path-only-value", "true", "partition.legacy-name", "false"))
	if v, err := got.Partition("2024-01-01", 0); err != nil || v != "2024-01-01" {
		t.Errorf("value only: got %q, %v", v, err)
	}
	got = glueTable(paimon("partition.legacy-name", "false"))
	if v, err := got.Partition("dt=2024-01-01", 0); err != nil || v != "2024-01-01" {
		t.Errorf("key=value: got %q, %v", v, err)
	}
}

func TestRule34_TheTableDecidesTheName(t *testing.T) {
	for _, c := range []struct {
		what, name string
		parameters []string
		want       error
	}{
		{"a day count", "dt=19723", nil, nil},
		{"a date by default", "dt=2024-01-01", nil, ErrName},
		{"a date", "dt=2024-01-01", []string{"partition.legacy-name", "false"}, nil},
		{"another spelling", "dt=2024-1-1", []string{"partition.legacy-name", "false"}, ErrName},
		{"what is no date", "dt=foo", nil, ErrName},
		{"null", "dt=__DEFAULT_PARTITION__", nil, nil},
		{"null of its own", "dt=nil", []string{"partition.default-name", "nil"}, nil},
	} {
		if err := glueTable(paimon(c.parameters...)).CheckNew(c.name, 0, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
	if err := glueTable(keyed("d", "int")).CheckNew("d=07", 0, nil); err != nil {
		t.Errorf("an ordinary table: %v", err)
	}
}

func TestRule35_AValueComesFromTheDirectory(t *testing.T) {
	tab := glueTable(all(paimon("partition.legacy-name", "false"), func(e obj) {
		glueSD(e)["Columns"] = []obj{{"Name": "a", "Type": "int"}, {"Name": "dt", "Type": "date"}}
	}))
	if v, err := tab.Partition("dt=2024-01-02", 0); err != nil || v != "2024-01-02" || !tab.Writable {
		t.Errorf("got %q, %v, %s", v, err, tab.Reason)
	}
}

func TestRule36_KeyTypesInGlue(t *testing.T) {
	for _, typ := range []string{"BOOLEAN", "tinyint", "smallint", "int", "bigint", "STRING", "date"} {
		if got := glueTable(all(paimon(), keyed("k", typ))); !got.Writable {
			t.Errorf("%s: got %s", typ, got.Reason)
		}
	}
	for _, typ := range []string{"double", "decimal(3,1)", "timestamp", "varchar(3)", "array<int>", ""} {
		got := glueTable(all(paimon(), keyed("k", typ)))
		if got.Class != ClassReadOnly || !got.Readable || !strings.Contains(got.Reason, "partition key k") {
			t.Errorf("format table, %q: got %q, %s", typ, got.Class, got.Reason)
		}
		if got = glueTable(keyed("k", typ)); !got.Writable {
			t.Errorf("Hive table, %q: got %s", typ, got.Reason)
		}
	}
	if v, err := glueTable(keyed("k", "interval")).Partition("k=x y", 0); err != nil || v != "x y" {
		t.Errorf("a type that is not understood: got %q, %v", v, err)
	}
	got := glueTable(all(paimon(), keyed("a", "int")))
	if got.Class != ClassReadOnly || !strings.Contains(got.Reason, "every column is a partition column") {
		t.Errorf("keys alone: got %q, %s", got.Class, got.Reason)
	}
}

func TestRule37_OptionsAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ key, value, word string }{
		{"file.format", "csv", "file.format=csv"},
		{"file.format", "", "file.format is not set"},
		{"metastore.partitioned-table", "true", "metastore.partitioned-table=true"},
		{"format-table.commit-hive-sync-url", "thrift://x", "format-table.commit-hive-sync-url"},
		{"branch", "dev", "branch=dev"},
		{"metastore.partitioned-table", "false", ""},
		{"branch", "main", ""},
		{"data-file.path-directory", "x", ""},
		{"format-table.implementation", "engine", ""},
		{"write-buffer-spillable", "true", ""},
		{"sink.writer-memory", "1g", ""},
	} {
		got := glueTable(paimon(c.key, c.value))
		if got.Writable != (c.word == "") || !got.Readable || !strings.Contains(got.Reason, c.word) {
			t.Errorf("%s=%s: got %s", c.key, c.value, got.Reason)
		}
	}
	got := glueTable(paimon("branch", "x", "metastore.partitioned-table", "true"))
	if !strings.Contains(got.Reason, "branch=x") || !strings.Contains(got.Reason, "; ") || !strings.Contains(got.Reason, "metastore.partitioned-table") {
		t.Errorf("two: got %s", got.Reason)
	}
}

func TestGlueTablesThatTakeNoPlainFiles(t *testing.T) {
	set := func(kv ...any) func(obj) {
		return func(e obj) {
			for i := 0; i < len(kv); i += 2 {
				glueSD(e)[kv[i].(string)] = kv[i+1]
			}
		}
	}
	for _, c := range []struct {
		what   string
		change func(obj)
		word   string // "": writable
	}{
		{"buckets", set("NumberOfBuckets", 4, "BucketColumns", []string{"a"}), "bucketing (4 buckets)"},
		{"a number alone", set("NumberOfBuckets", 1), ""},
		{"bucket columns alone", set("NumberOfBuckets", -1, "BucketColumns", []string{"a"}), ""},
		{"no buckets", set("NumberOfBuckets", 0, "BucketColumns", nil), ""},
		{"Spark's buckets", with(providerKey, "parquet", schemaKey+".numBuckets", "8"), schemaKey + ".numBuckets=8"},
		{"skew", set("SkewedInfo", obj{"SkewedColumnNames": []string{"a"}}), "skew"},
		{"no skew", set("SkewedInfo", obj{"SkewedColumnNames": []string{}, "SkewedColumnValueLocationMaps": obj{}}), ""},
		{"sub directories", set("StoredAsSubDirectories", true), "skew"},
		{"encrypted", with("has_encrypted_data", "true"), "has_encrypted_data"},
		{"not encrypted", with("has_encrypted_data", "FALSE"), ""},
		{"storage handler", with("storage_handler", "org.apache.hadoop.hive.dynamodb.DynamoDBStorageHandler"), "STORED BY org.apache.hadoop.hive.dynamodb"},
		{"no storage handler", with("storage_handler", ""), ""},
		{"governed", func(e obj) { e["TableType"] = "GOVERNED" }, "governed"},
		{"managed", func(e obj) { e["TableType"] = "MANAGED_TABLE" }, ""},
		{"no table type", func(e obj) { delete(e, "TableType") }, ""},
		{"Hive's transactions", with("transactional", "true"), "transactional=true"},
		{"transactions in capitals", with("TRANSACTIONAL", "TRUE", "transactional_properties", "default"), "transactional=true"},
		{"inserts only", with("transactional", "True", "transactional_properties", "insert_only"), "transactional=true"},
		{"inserts only, no more", with("transactional_properties", "INSERT_ONLY"), "transactional_properties=insert_only"},
		{"no transactions", with("transactional", "false", "transactional_properties", "insert_only"), ""},
		{"no word of transactions", with("transactional", "", "transactional_properties", ""), ""},
		{"Paimon's table type", with("table_type", "PAIMON"), "table type PAIMON is not known"},
		{"Lance's", with("table_type", "lance"), "table type lance is not known"},
		{"a table type of Hive's provider", with("table_type", "PAIMON", providerKey, "hive"), "table type PAIMON is not known"},
		{"a table type beside a provider", with("table_type", "PAIMON", providerKey, "parquet"), ""},
		{"external", with("table_type", "EXTERNAL_TABLE"), ""},
		{"external, Hive's spelling", with("table_type", "External"), ""},
		{"a managed table type", with("table_type", "managed_table"), ""},
		{"no word of the type", with("table_type", ""), ""},
		{"what a crawler writes", with("classification", "parquet", "typeOfData", "file", "CrawlerSchemaSerializerVersion", "1.0", "compressionType", "none", "EXTERNAL", "TRUE"), ""},
		{"what awswrangler writes", with("classification", "parquet", "compressionType", "snappy", "typeOfData", "file"), ""},
		{"lists of paths", set("InputFormat", "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), "lists of paths"},
		{"unknown data source", with(providerKey, "jdbc"), "data source jdbc is not known"},
		{"nested columns", set("Columns", []obj{{"Name": "a", "Type": "array<struct<b:int>>"}}), ""},
		{"SerDe properties", func(e obj) { glueSerde(e)["Parameters"] = obj{"paths": "a,b", "mapping.x": "y"} }, ""},
		{"projection of a table without keys", with("projection.enabled", "true"), ""},
		{"many keys and columns", manyColumns, ""},
	} {
		got := glueTable(c.change)
		if got.Kind != Hive || !got.Readable || got.Writable != (c.word == "") || !strings.Contains(got.Reason, c.word) {
			t.Errorf("%s: got %s, readable %t, reason %q", c.what, got.Kind, got.Readable, got.Reason)
		}
		if want := ClassReadOnly; c.word != "" && got.Class != want {
			t.Errorf("%s: got class %q, want %q", c.what, got.Class, want)
		}
	}
}

// manyColumns is more than a manifest may have.
func manyColumns(e obj) {
	e["PartitionKeys"] = numberedColumns("k", 40)
	glueSD(e)["Columns"] = numberedColumns("c", 5000)
}

func numberedColumns(prefix string, n int) []obj {
	var out []obj
	for i := range n {
		out = append(out, obj{"Name": prefix + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26), "Type": "string"})
	}
	return out
}

func TestRule60_FormatIsTheEntrysAndNeverTheExtension(t *testing.T) {
	class := func(serde, input string) func(obj) {
		return func(e obj) {
			glueSD(e)["Location"] = "s3://lake/t.csv/data.avro"
			glueSerde(e)["SerializationLibrary"], glueSD(e)["InputFormat"] = serde, input
		}
	}
	for _, c := range []struct{ serde, input, format, from string }{
		{parquetSerde, parquetInput, "parquet", "serde " + parquetSerde},
		{orcSerde, orcInput, "orc", "serde " + orcSerde},
		{avroSerde, avroInput, "avro", "serde " + avroSerde},
		{openCSV, textInput, "csv", "serde " + openCSV},
		{openx, textInput, "json", "serde " + openx},
		{lazy, textInput, "text", "input format " + textInput},
		{lazy, sequence, "sequence", "input format " + sequence},
		{"", parquetInput, "parquet", "input format " + parquetInput},
		{parquetSerde, "", "parquet", "serde " + parquetSerde},
		{parquetSerde, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat", "text", "input format org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"},
		{"", "", "", ""},
	} {
		got := glueTable(class(c.serde, c.input))
		if got.Format != c.format || got.FormatFrom != c.from || got.Serde != c.serde || got.InputFormat != c.input {
			t.Errorf("%s, %s: got %q from %q", c.serde, c.input, got.Format, got.FormatFrom)
		}
	}
	const grok = "com.amazonaws.glue.serde.GrokSerDe"
	got := glueTable(class(grok, textInput))
	if got.Format != "" || got.FormatFrom != "" || !got.Writable || !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, grok) }) {
		t.Errorf("an unknown SerDe: got %q from %q, notes %q, %s", got.Format, got.FormatFrom, got.Notes, got.Reason)
	}
}

func TestResourceLinks(t *testing.T) {
	link := func(target any) *Table {
		return ParseGlue("db", "t", mustJSON(t, obj{"Name": "t", "TargetTable": target, "StorageDescriptor": obj{"Columns": 1}}))
	}
	got := link(obj{"CatalogId": "111122223333", "DatabaseName": "d", "Name": "n", "Region": "eu-west-1"})
	if got.Kind != Link || got.Readable || got.Writable || got.Class != ClassView || got.HasDirectory() || got.Reason != "a resource link to d.n of catalog 111122223333" {
		t.Errorf("got %+v", got)
	}
	if want := (Ref{"111122223333", "d", "n"}); got.Ref() != want || got.Database != "db" || got.Name != "t" {
		t.Errorf("got %s.%s to %+v, want %+v", got.Database, got.Name, got.Ref(), want)
	}
	if got = link(obj{"DatabaseName": "d", "Name": "n"}); got.Kind != Link || got.Reason != "a resource link to d.n" {
		t.Errorf("without a catalog: got %s, %s", got.Kind, got.Reason)
	}
	for what, c := range map[string]struct {
		target any
		word   string
	}{
		"no name":     {obj{"DatabaseName": "d"}, "TargetTable names no table"},
		"no database": {obj{"Name": "n"}, "TargetTable names no table"},
		"a text":      {"d.n", "TargetTable is a string, not an object"},
		"a number":    {obj{"DatabaseName": "d", "Name": 1}, "TargetTable.Name is a number"},
	} {
		wantLoadError(t, what, link(c.target), c.word)
	}
	for what, absent := range map[string]any{"null": nil, "empty": obj{}, "an empty text": ""} {
		if got := glueTable(func(e obj) { e["TargetTable"] = absent }); got.Kind != Hive || got.Target != nil || !got.Writable {
			t.Errorf("%s is no link: got %s, %s", what, got.Kind, got.Reason)
		}
	}
}

// What emulators write for what they do not have.
func TestGlueEmptyValuesAreAbsent(t *testing.T) {
	want := glueTable(func(e obj) {
		delete(e, "Parameters")
		delete(e, "PartitionKeys")
		delete(e, "TableType")
		e["StorageDescriptor"] = obj{"Location": "s3://lake/t"}
	})
	if !want.Writable {
		t.Fatal(want.Reason)
	}
	for _, empty := range []any{nil, "", obj{}, []any{}} {
		got := glueTable(func(e obj) {
			for _, k := range []string{
				"Parameters", "PartitionKeys", "TableType", "Name", "DatabaseName", "TargetTable", "ViewOriginalText", "IsRegisteredWithLakeFormation",
			} {
				e[k] = empty
			}
			sd := obj{"Location": "s3://lake/t"}
			for _, k := range []string{
				"Columns", "InputFormat", "OutputFormat", "SerdeInfo", "NumberOfBuckets", "BucketColumns", "SkewedInfo", "StoredAsSubDirectories",
			} {
				sd[k] = empty
			}
			e["StorageDescriptor"] = sd
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%#v: got %+v, want %+v", empty, got, want)
		}
	}
}

func TestGlueEntriesThatAreNone(t *testing.T) {
	for _, c := range []struct{ what, raw, word string }{
		{"nothing", "", "cut"},
		{"null", "null", "null, not an object"},
		{"a list", "[]", "an array, not an object"},
		{"HTML", "<html>", "no JSON at byte"},
		{"cut", `{"Name":"t"`, "cut"},
		{"two", "{}{}", "something follows"},
		{"deep", strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), "deeper than 64"},
		{"very deep", strings.Repeat("[", 1_000_000), "deeper than 64"},
		{"a descriptor of another type", `{"StorageDescriptor":[1]}`, "StorageDescriptor is an array, not an object"},
		{"a location of another type", `{"StorageDescriptor":{"Location":5}}`, "StorageDescriptor.Location is a number, not a string"},
		{"a column of another type", `{"StorageDescriptor":{"Columns":[5]}}`, "StorageDescriptor.Columns[0] is a number, not an object"},
		{"a column without a name", `{"StorageDescriptor":{"Columns":[{"Type":"int"}]}}`, "StorageDescriptor.Columns[0].Name is missing"},
		{"a key of another type", `{"PartitionKeys":[{"Name":"a","Type":1}]}`, "PartitionKeys[0].Type is a number"},
		{"a parameter of another type", `{"Parameters":{"p":[1]}}`, "Parameters.p is an array"},
		{"buckets", `{"StorageDescriptor":{"NumberOfBuckets":1.5}}`, "StorageDescriptor.NumberOfBuckets is 1.5"},
		{"Lake Formation", `{"IsRegisteredWithLakeFormation":"no"}`, "IsRegisteredWithLakeFormation is a string, not a boolean"},
	} {
		wantLoadError(t, c.what, ParseGlue("db", "t", []byte(c.raw)), c.word)
	}
	got := ParseGlue("db", "t", []byte("{\"Parameters\":{\"p\":\"1\",\"p\":\"2\"},\"StorageDescriptor\":{\"Location\":\"s3://lake/\xff\"}}"))
	if !got.Writable || got.Parameters["p"] != "2" || got.Location != "s3://lake/\ufffd" {
		t.Errorf("equal keys and bad UTF-8: got %+v", got)
	}
}

func TestFieldsInBothSpellings(t *testing.T) {
	for snake, want := range map[string]string{
		"name": "Name", "storage_descriptor.location": "StorageDescriptor.Location", "stored_as_sub_directories": "StoredAsSubDirectories",
		"is_registered_with_lake_formation": "IsRegisteredWithLakeFormation", "serde_info": "SerdeInfo", "": "",
	} {
		if got := glueDialect.field(snake); got != want {
			t.Errorf("Glue's %q: got %q, want %q", snake, got, want)
		}
		if got := manifestDialect.field(snake); got != snake {
			t.Errorf("a manifest's %q: got %q", snake, got)
		}
	}
}
