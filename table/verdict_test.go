package table

import (
	"strings"
	"testing"
)

const (
	textInput = "org.apache.hadoop.mapred.TextInputFormat"
	lazy      = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
)

func TestKindsFormatsAndVerdicts(t *testing.T) {
	storage := func(lib, input string) func(obj) {
		return func(m obj) { serde(m)["serialization_library"], sd(m)["input_format"] = lib, input }
	}
	param := func(kv ...string) func(obj) {
		return func(m obj) {
			for i := 0; i < len(kv); i += 2 {
				parameters(m)[kv[i]] = kv[i+1]
			}
		}
	}
	for _, c := range []struct {
		what   string
		change func(obj)
		kind   Kind
		format string
		from   string
		class  Class
		reason string // part of it
	}{
		{"parquet", nil, Hive, "parquet", "serde org", "", ""},
		{"orc", storage("org.apache.hadoop.hive.ql.io.orc.OrcSerde", "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"), Hive, "orc", "serde", "", ""},
		{"avro", storage("org.apache.hadoop.hive.serde2.avro.AvroSerDe", "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat"), Hive, "avro", "serde", "", ""},
		{"rc", storage("org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe", "org.apache.hadoop.hive.ql.io.RCFileInputFormat"), Hive, "rc", "input format", "", ""},
		{"sequence", storage(lazy, "org.apache.hadoop.mapred.SequenceFileInputFormat"), Hive, "sequence", "input format", "", ""},
		{"text", storage(lazy, textInput), Hive, "text", "input format", "", ""},
		{"csv", func(m obj) {
			storage(lazy, textInput)(m)
			serde(m)["parameters"] = obj{"field.delim": ","}
		}, Hive, "csv", "field.delim", "", ""},
		{"open csv", storage("org.apache.hadoop.hive.serde2.OpenCSVSerde", textInput), Hive, "csv", "serde", "", ""},
		{"json", storage("org.openx.data.jsonserde.JsonSerDe", textInput), Hive, "json", "serde", "", ""},
		{"hcatalog json", storage("org.apache.hive.hcatalog.data.JsonSerDe", textInput), Hive, "json", "serde", "", ""},
		{"nothing said", storage("", ""), Hive, "", "", "", ""},

		{"unknown SerDe", storage("com.example.MySerDe", textInput), Hive, "text", "input format", ClassReadOnly, "com.example.MySerDe"},
		{"unknown property", func(m obj) { serde(m)["parameters"] = obj{"paths": "a"} }, Hive, "parquet", "serde", ClassReadOnly, "paths"},
		{"projection", param("projection.enabled", "true", "projection.dt.type", "date"), Hive, "parquet", "serde", ClassReadOnly, "projection.dt.type"},
		{"nested", func(m obj) {
			sd(m)["columns"] = []obj{{"name": "a", "type": "int"}, {"name": "tags", "type": "ARRAY<string>"}}
		}, Hive, "parquet", "serde", ClassReadOnly, "column tags"},
		{"stored by", param("storage_handler", "org.example.Handler"), Hive, "parquet", "serde", ClassReadOnly, "STORED BY org.example.Handler"},
		{"buckets", func(m obj) { sd(m)["number_of_buckets"] = 4 }, Hive, "parquet", "serde", ClassReadOnly, "4 buckets"},
		{"bucket columns", func(m obj) { sd(m)["bucket_columns"] = []string{"a"} }, Hive, "parquet", "serde", ClassReadOnly, "bucketing"},
		{"skew", func(m obj) { sd(m)["skewed_info"] = obj{"skewed_column_names": []string{"a"}} }, Hive, "parquet", "serde", ClassReadOnly, "skew"},
		{"empty skew", func(m obj) { sd(m)["skewed_info"] = obj{"skewed_column_names": []string{}} }, Hive, "parquet", "serde", "", ""},
		{"encrypted", param("has_encrypted_data", "true"), Hive, "parquet", "serde", ClassReadOnly, "has_encrypted_data"},
		{"not encrypted", param("has_encrypted_data", "false"), Hive, "parquet", "serde", "", ""},

		{"data source", func(m obj) {
			param("spark.sql.sources.provider", "PARQUET")(m)
			storage(lazy, "org.apache.hadoop.mapred.SequenceFileInputFormat")(m)
			serde(m)["parameters"] = obj{"path": "/x", "odd": "1"}
			sd(m)["columns"] = []obj{{"name": "col", "type": "array<string>"}}
		}, Hive, "parquet", "provider", "", ""},
		{"provider hive", param("spark.sql.sources.provider", "hive"), Hive, "parquet", "serde", "", ""},
		{"unknown provider", param("spark.sql.sources.provider", "jdbc"), Hive, "", "", ClassReadOnly, "jdbc"},

		{"delta", param("spark.sql.sources.provider", "DELTA"), Delta, "parquet", "provider", ClassReadOnly, "Delta"},
		{"delta by table_type", param("table_type", "delta"), Delta, "parquet", "table_type", ClassReadOnly, "Delta"},
		{"iceberg", param("table_type", "ICEBERG"), Iceberg, "", "", ClassReadOnly, "GlueCatalog"},
		{"iceberg by provider", param("spark.sql.sources.provider", "iceberg"), Iceberg, "", "", ClassReadOnly, "Iceberg"},
		{"iceberg by metadata", param("metadata_location", "s3://x/metadata.json"), Iceberg, "", "", ClassReadOnly, "Iceberg"},
		{"hudi", param("spark.sql.sources.provider", "hudi"), Hudi, "", "", ClassReadOnly, "Hudi"},
		{"hudi by class", storage("", "org.apache.hudi.hadoop.HoodieParquetInputFormat"), Hudi, "", "", ClassReadOnly, "Hudi"},
		{"view", func(m obj) { m["table_type"] = "VIRTUAL_VIEW"; delete(m, "storage_descriptor") }, View, "", "", ClassView, "view"},
		{"presto view", param("presto_view", "true"), View, "", "", ClassView, "view"},

		{"format table", param("type", "format-table", "file.format", "PARQUET"), FormatTable, "parquet", "file.format", "", ""},
		{"Delta by class", storage(parquetSerde, "io.delta.hive.HiveInputFormat"), Delta, "parquet", "input format io.delta.hive.HiveInputFormat", ClassReadOnly, "Delta Lake"},
		{"lists of paths", storage(parquetSerde, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), Hive, "text", "input format", ClassReadOnly, "lists of paths"},
		{"Spark's buckets", param("spark.sql.sources.provider", "parquet", "spark.sql.sources.schema.numBuckets", "4"), Hive, "parquet", "provider", ClassReadOnly, "bucketing"},
		{"format table orc", param("type", "Format-Table", "file.format", "orc"), FormatTable, "orc", "file.format", "", ""},
		{"format table csv", param("type", "format-table", "file.format", "csv"), FormatTable, "", "", ClassReadOnly, "file.format=csv"},
		{"format table without", param("type", "format-table"), FormatTable, "", "", ClassReadOnly, "file.format is not set"},
		{"rule 37 partitioned", param("type", "format-table", "file.format", "orc", "metastore.partitioned-table", "true"), FormatTable, "orc", "file.format", ClassReadOnly, "metastore.partitioned-table=true"},
		{"rule 37 default", param("type", "format-table", "file.format", "orc", "metastore.partitioned-table", "false"), FormatTable, "orc", "file.format", "", ""},
		{"rule 37 hive sync", param("type", "format-table", "file.format", "orc", "format-table.commit-hive-sync-url", "thrift://x"), FormatTable, "orc", "file.format", ClassReadOnly, "format-table.commit-hive-sync-url"},
		{"rule 37 branch", param("type", "format-table", "file.format", "orc", "branch", "dev"), FormatTable, "orc", "file.format", ClassReadOnly, "branch=dev"},
		{"rule 37 main branch", param("type", "format-table", "file.format", "orc", "branch", "main"), FormatTable, "orc", "file.format", "", ""},
		{"rule 37 harmless", param("type", "format-table", "file.format", "orc", "data-file.path-directory", "x", "format-table.implementation", "paimon", "write-buffer-spillable", "true"), FormatTable, "orc", "file.format", "", ""},
		{"rule 36 key type", func(m obj) {
			param("type", "format-table", "file.format", "orc")(m)
			m["partition_keys"] = []obj{{"name": "d", "type": "decimal(3,1)"}}
		}, FormatTable, "orc", "file.format", ClassReadOnly, "key d of type decimal(3,1)"},
		{"rule 36 keys alone", func(m obj) {
			param("type", "format-table", "file.format", "orc")(m)
			m["partition_keys"] = []obj{{"name": "A", "type": "int"}}
		}, FormatTable, "orc", "file.format", ClassReadOnly, "every column is a partition column"},
	} {
		tab := ParseManifest("db", "t", manifest(c.change), Limits{})
		if tab.Kind != c.kind || tab.Format != c.format || !strings.Contains(tab.FormatFrom, c.from) || c.from == "" && tab.FormatFrom != "" {
			t.Errorf("%s: got kind %s, format %q from %q, want %s, %q from %q", c.what, tab.Kind, tab.Format, tab.FormatFrom, c.kind, c.format, c.from)
		}
		readable, writable := c.class != ClassView, c.class == ""
		if tab.Class != c.class || tab.Readable != readable || tab.Writable != writable {
			t.Errorf("%s: got class %q, readable %t, writable %t, want class %q", c.what, tab.Class, tab.Readable, tab.Writable, c.class)
		}
		if !strings.Contains(tab.Reason, c.reason) || c.reason == "" && tab.Reason != "" {
			t.Errorf("%s: got reason %q, want %q in it", c.what, tab.Reason, c.reason)
		}
	}
}

func TestEachReasonIsNamedAndTheirNumberBounded(t *testing.T) {
	tab := ParseManifest("db", "t", manifest(func(m obj) {
		serde(m)["parameters"] = obj{"b.unknown": "1", "a.unknown": "2"}
		parameters(m)["has_encrypted_data"] = "true"
	}), Limits{})
	if want := "SerDe property a.unknown is not known; SerDe property b.unknown is not known; has_encrypted_data"; !strings.HasPrefix(tab.Reason, want) {
		t.Errorf("got %q, want %q first", tab.Reason, want)
	}
	tab = ParseManifest("db", "t", manifest(func(m obj) {
		p := obj{}
		for i := range 5000 {
			p[strings.Repeat("x", 50)+string(rune('0'+i%10))+strings.Repeat("y", i%97)+string(rune(0x4e00+i))] = "1"
		}
		serde(m)["parameters"] = p
	}), Limits{})
	if len(tab.Reason) > 8<<10 || !strings.Contains(tab.Reason, "4980 more") {
		t.Errorf("reason of %d bytes: …%s", len(tab.Reason), tab.Reason[max(0, len(tab.Reason)-40):])
	}
}

func TestFormatTableSettings(t *testing.T) {
	tab := ParseManifest("db", "t", manifest(func(m obj) {
		m["parameters"] = obj{
			"type": "format-table", "file.format": "parquet", "partition.default-name": "__NIL__",
			"format-table.partition-path-only-value": "true", "partition.legacy-name": "false",
		}
	}), Limits{})
	if !tab.PathOnlyValue || tab.LegacyDate || tab.NullName != "__NIL__" || !tab.InsertOnly() {
		t.Errorf("got %+v", tab)
	}
	tab = ParseManifest("db", "t", manifest(func(m obj) {
		m["parameters"] = obj{"type": "format-table", "file.format": "parquet"}
	}), Limits{})
	if tab.PathOnlyValue || !tab.LegacyDate || tab.NullName != "__DEFAULT_PARTITION__" {
		t.Errorf("defaults: got %+v", tab)
	}
	if ParseManifest("db", "t", manifest(nil), Limits{}).InsertOnly() {
		t.Error("a Hive table is insert-only")
	}
}

func TestSecretIsKept(t *testing.T) {
	tab := ParseManifest("db", "t", manifest(func(m obj) { m["sqe"] = obj{"secret": "prod"} }), Limits{})
	if tab.Secret != "prod" {
		t.Errorf("got %q", tab.Secret)
	}
}
