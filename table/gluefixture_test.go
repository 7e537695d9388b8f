package table

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixture returns the entry of a folder of testdata/glue with the names that it says.
func fixture(tb testing.TB, folder string) (database, name string, raw []byte) {
	tb.Helper()
	var body struct{ Table json.RawMessage }
	readJSON(tb, filepath.Join("testdata/glue", folder, "table.json"), &body)
	var names struct{ DatabaseName, Name string }
	if err := json.Unmarshal(body.Table, &names); err != nil {
		tb.Fatal(err)
	}
	return names.DatabaseName, names.Name, body.Table
}

func parseFixture(tb testing.TB, folder string) *Table {
	tb.Helper()
	return ParseGlue(fixture(tb, folder))
}

func readJSON(tb testing.TB, file string, into any) {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if err = json.Unmarshal(raw, into); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
}

// fixtureFolders are all that hold an entry.
func fixtureFolders(tb testing.TB) []string {
	tb.Helper()
	var folders []string
	for _, pattern := range []string{"*", "made-by-hand/*"} {
		files, err := filepath.Glob(filepath.Join("testdata/glue", pattern, "table.json"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			folders = append(folders, strings.TrimPrefix(filepath.Dir(f), "testdata/glue/"))
		}
	}
	return folders
}

const (
	parquetInput = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
	parquetSerde = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
	avroInput    = "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat"
	avroSerde    = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
	orcInput     = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
	orcSerde     = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
	sequence     = "org.apache.hadoop.mapred.SequenceFileInputFormat"
	openCSV      = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
	openx        = "org.openx.data.jsonserde.JsonSerDe"
)

// verdict is what is expected of a fixture. Class "" stands for readable and
// writable; ClassReadOnly for readable; the others for neither.
type verdict struct {
	folder       string
	kind         Kind
	format, from string
	location     string
	partitions   PartitionSource
	class        Class
	reason       string // part of it
	note         string // part of one
	keys         string // names, with commas
}

// fixtureVerdicts follow the README of the fixtures, not the code. Locations that
// nothing can be read from (hdfs:, file:) are for whoever resolves them to refuse.
func fixtureVerdicts() []verdict {
	const hive, catalog = Hive, PartitionsInCatalog
	const noProvider = "gluecat and Spark's data source path refuse it"
	const parquet = "serde " + parquetSerde
	v := []verdict{
		{"awswrangler-parquet", hive, "parquet", parquet, "s3://lake/wr/orders/", catalog, "", "", noProvider, "dt,region"},
		{"awswrangler-csv", hive, "csv", "serde " + lazy + " with field.delim", "s3://lake/wr/orders_csv", catalog, "", "", noProvider, "dt"},
		{"awswrangler-orc", hive, "orc", "serde " + orcSerde, "s3://lake/wr/orders_orc/", catalog, "", "", noProvider, "dt"},
		{"awswrangler-projection", hive, "parquet", parquet, "s3://lake/wr/proj/", PartitionsProjected, "", "", noProvider, "y,m"},
		{"awswrangler-flat", hive, "parquet", parquet, "s3://lake/wr/flat/", "", "", "", noProvider, ""},
		{"pyiceberg", Iceberg, "", "", "s3://lake/ice/icedb.db/events", "", ClassReadOnly, "GlueCatalog", "old snapshots", ""},
	}
	byHand := []verdict{
		{"spark-specific-csv", hive, "csv", "provider", "s3://lake/hand/spark_specific_csv", catalog, "", "", "", "dt"},
		{"spark-hive-compatible-parquet", hive, "parquet", "provider", "s3://lake/hand/spark_hive_compat", catalog, "", "", "", "dt"},
		{"spark-partcol-first", hive, "parquet", "provider", "s3://lake/hand/spark_partcol_first", PartitionsOnDisk, "", "", "", "dt"},
		{"spark-schema-parts", hive, "parquet", "provider", "s3://lake/hand/spark_schema_parts", catalog, "", "", "", "dt"},
		{"broken-schema-part-missing", Broken, "", "", "", "", ClassBroken, "hand.broken_part_missing: parameter spark.sql.sources.schema.part.1 is missing of 3", "", ""},
		{"broken-schema-part-count", Broken, "", "", "", "", ClassBroken, "hand.broken_part_count: parameter spark.sql.sources.schema.numParts is 2, but there are 3", "", ""},
		{"broken-schema-json", Broken, "", "", "", "", ClassBroken, "hand.broken_schema_json: parameter spark.sql.sources.schema is no JSON schema", "", ""},
		{"broken-partcol-missing", Broken, "", "", "", "", ClassBroken, `hand.broken_partcol: partition column "dt"`, "", ""},
		{"broken-placeholder-only", Broken, "", "", "", "", ClassBroken, "hand.broken_placeholder: StorageDescriptor.Location is only a placeholder", "", ""},
		{"broken-no-location", Broken, "", "", "", "", ClassBroken, "hand.broken_no_location: StorageDescriptor.Location is missing", "", ""},
		{"bare-no-storage-descriptor", Broken, "", "", "", "", ClassBroken, "hand.bare: StorageDescriptor.Location is missing", "", ""},
		{"delta-spark35-ctas", Delta, "parquet", "provider", "s3://lake/hand/delta_spark35", "", ClassReadOnly, "write with Delta Lake", "_delta_log", ""},
		{"delta-spark35-replaced", Delta, "parquet", "provider", "s3://lake/hand/delta_replaced", "", ClassReadOnly, "write with Delta Lake", "_delta_log", ""},
		{"delta-gluecat", Delta, "parquet", "provider", "s3://lake/hand/delta_gluecat", "", ClassReadOnly, "write with Delta Lake", "_delta_log", ""},
		{"delta-trino", Delta, "parquet", "provider", "s3://lake/hand/delta_trino", "", ClassReadOnly, "write with Delta Lake", "_delta_log", ""},
		{"view-presto", View, "", "", "", "", ClassView, "a view has no files", "", ""},
		{"view-hive", View, "", "", "", "", ClassView, "a view has no files", "", ""},
		{"view-spark", View, "", "", "", "", ClassView, "a view has no files", "", ""},
		{"resource-link-table", Link, "", "", "", "", ClassView, "hand.spark_hive_compat of catalog 111122223333", "", ""},
		{"projected", hive, "json", "serde " + openx, "s3://lake/hand/projected/", PartitionsProjected, "", "", noProvider, "region,day,hour,tenant"},
		{"projected-hive-layout", hive, "parquet", parquet, "s3://lake/hand/projected_hive/", PartitionsProjected, "", "", noProvider, "dt"},
		{"multi-format-partitions", hive, "parquet", parquet, "s3://lake/hand/test.db/events", catalog, "", "", noProvider, "dt"},
	}
	for folder, location := range map[string]string{
		"location-s3a": "s3a://lake/hand/loc_s3a", "location-s3n": "s3n://lake/hand/loc_s3n/",
		"location-upper-scheme": "S3://lake/hand/loc_upper", "location-double-slash": "s3://lake/hand//loc_double/",
		"location-no-slash": "s3://lake/hand/orders", "location-bucket-root": "s3://lake",
		"location-is-file": "s3://lake/hand/loc_file/data.parquet",
		"location-hdfs":    "hdfs://namenode/warehouse/t", "location-file": "file:///etc",
	} {
		byHand = append(byHand, verdict{folder, hive, "parquet", parquet, location, "", "", "", noProvider, ""})
	}
	for _, h := range byHand {
		h.folder = "made-by-hand/" + h.folder
		v = append(v, h)
	}
	return v
}

func TestFixturesHaveTheVerdictsOfTheirReadme(t *testing.T) {
	var seen []string
	for _, want := range fixtureVerdicts() {
		seen = append(seen, want.folder)
		database, name, raw := fixture(t, want.folder)
		got := ParseGlue(database, name, raw)
		if got.Database != database || got.Name != name {
			t.Errorf("%s: got %s.%s", want.folder, got.Database, got.Name)
		}
		checkFixture(t, got, want)
	}
	for _, folder := range fixtureFolders(t) {
		if !slices.Contains(seen, folder) {
			t.Errorf("%s: no verdict is expected of it", folder)
		}
	}
}

func checkFixture(t *testing.T, got *Table, want verdict) {
	t.Helper()
	if got.Kind != want.kind || got.Format != want.format || got.FormatFrom != want.from || got.Location != want.location {
		t.Errorf("%s: got kind %s, format %q from %q, location %q", want.folder, got.Kind, got.Format, got.FormatFrom, got.Location)
	}
	if got.Partitions != want.partitions || (got.Projection != nil) != (want.partitions == PartitionsProjected) {
		t.Errorf("%s: got partitions from %q, projection %v, want %q", want.folder, got.Partitions, got.Projection, want.partitions)
	}
	readable := want.class == ClassNone || want.class == ClassReadOnly
	if got.Class != want.class || got.Readable != readable || got.Writable != (want.class == ClassNone) {
		t.Errorf("%s: got class %q, readable %t, writable %t (%s)", want.folder, got.Class, got.Readable, got.Writable, got.Reason)
	}
	if !strings.Contains(got.Reason, want.reason) || want.reason == "" && got.Reason != "" {
		t.Errorf("%s: got reason %q, want %q in it", want.folder, got.Reason, want.reason)
	}
	if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, want.note) || want.note == "" && notes != "" {
		t.Errorf("%s: got notes %q, want %q in them", want.folder, notes, want.note)
	}
	var keys []string
	for _, k := range got.Keys {
		keys = append(keys, k.Name)
	}
	if got := strings.Join(keys, ","); got != want.keys {
		t.Errorf("%s: got keys %q, want %q", want.folder, got, want.keys)
	}
}

func TestFixturesSayWhetherLakeFormationKnowsThem(t *testing.T) {
	if got := parseFixture(t, "made-by-hand/location-s3a").LakeFormation; got == nil || *got {
		t.Errorf("IsRegisteredWithLakeFormation false: got %v", got)
	}
	if got := parseFixture(t, "awswrangler-flat").LakeFormation; got != nil {
		t.Errorf("without: got %v", *got)
	}
}
