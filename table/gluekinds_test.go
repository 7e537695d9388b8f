package table

import (
	"strings"
	"testing"
)

func TestRule11_TablesWithALogAreReadOnly(t *testing.T) {
	class := func(input string) func(obj) { return func(e obj) { glueSD(e)["InputFormat"] = input } }
	for _, c := range []struct {
		what   string
		change func(obj)
		kind   Kind
		from   string // of the format
		words  []string
	}{
		{"table_type", with("table_type", "iceberg"), Iceberg, "", []string{"GlueCatalog", "old snapshots"}},
		{"TABLE_TYPE", with("table_type", "ICEBERG"), Iceberg, "", []string{"GlueCatalog"}},
		{"metadata_location", with("metadata_location", "s3://lake/t/metadata/0.json"), Iceberg, "", []string{"GlueCatalog"}},
		{"provider iceberg", with(providerKey, "iceberg"), Iceberg, "", []string{"GlueCatalog"}},
		{"Hive's Iceberg", with("storage_handler", "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"), Iceberg, "", []string{"GlueCatalog"}},
		{"Athena's Delta", with("table_type", "DELTA"), Delta, "table_type", []string{"Delta Lake", "_delta_log"}},
		{"Delta in lower case", with("table_type", "delta"), Delta, "table_type", []string{"Delta Lake"}},
		{"Hive's Delta", class("io.delta.hive.HiveInputFormat"), Delta, "input format io.delta.hive.HiveInputFormat", []string{"Delta Lake"}},
		{"Hudi", class("org.apache.hudi.hadoop.HoodieParquetInputFormat"), Hudi, "", []string{"Hudi", ".hoodie"}},
		{"Hudi merge on read", class("org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"), Hudi, "", []string{"Hudi"}},
		{"old Hudi", class("com.uber.hoodie.hadoop.HoodieInputFormat"), Hudi, "", []string{"Hudi"}},
	} {
		got := glueTable(c.change)
		if got.Kind != c.kind || !got.Readable || got.Writable || got.Class != ClassReadOnly || got.FormatFrom != c.from || (got.Format == "parquet") != (c.kind == Delta) {
			t.Errorf("%s: got %s, format %q from %q, class %q", c.what, got.Kind, got.Format, got.FormatFrom, got.Class)
		}
		for _, w := range c.words {
			if !strings.Contains(got.Reason+strings.Join(got.Notes, ""), w) {
				t.Errorf("%s: neither %q nor %q says %q", c.what, got.Reason, got.Notes, w)
			}
		}
	}
}

// Rule 8: Spark takes its data sources by their classes and packages, too.
func TestRule8_ProvidersByTheirClass(t *testing.T) {
	const spark = "org.apache.spark.sql."
	for provider, format := range map[string]string{
		spark + "parquet": "parquet", spark + "parquet.DefaultSource": "parquet", spark + "json": "json", spark + "json.DefaultSource": "json",
		spark + "execution.datasources.parquet.ParquetFileFormat": "parquet", spark + "execution.datasources.orc.OrcFileFormat": "orc",
		spark + "execution.datasources.csv.CSVFileFormat": "csv", spark + "execution.datasources.json.JsonFileFormat": "json",
		spark + "execution.datasources.text.TextFileFormat": "text", spark + "execution.datasources.json": "json",
		spark + "execution.datasources.v2.csv.CSVDataSourceV2": "csv", spark + "v2.avro.AvroDataSourceV2": "avro",
		spark + "avro.AvroFileFormat": "avro", spark + "hive.orc": "orc", spark + "hive.orc.OrcFileFormat": "orc",
		"com.databricks.spark.csv": "csv", "com.databricks.spark.avro": "avro",
		spark + "execution.datasources.jdbc.JdbcRelationProvider": "", spark + "execution": "", "com.example.parquet": "", spark + "parquet.Mine": "",
	} {
		got := glueTable(with(providerKey, provider))
		if got.Kind != Hive || got.Format != format || got.Writable != (format != "") || format != "" && (got.FormatFrom != "provider" || got.DataSource() != format) {
			t.Errorf("%s: %s, format %q from %q, %s", provider, got.Kind, got.Format, got.FormatFrom, got.Reason)
		}
	}
	for _, provider := range []string{spark + "delta.sources.DeltaDataSource", spark + "delta.sources", "io.delta.sql.DeltaDataSource"} {
		if got := glueTable(with(providerKey, provider)); got.Kind != Delta || got.Format != "parquet" || got.Writable {
			t.Errorf("%s: %s, format %q", provider, got.Kind, got.Format)
		}
	}
}

func TestRule11_ViewsAreJSONAlone(t *testing.T) {
	typ := func(s string) func(obj) { return func(e obj) { e["TableType"] = s } }
	for what, change := range map[string]func(obj){
		"VIRTUAL_VIEW": typ("VIRTUAL_VIEW"), "lower case": typ("virtual_view"), "MATERIALIZED_VIEW": typ("MATERIALIZED_VIEW"),
		"presto_view": with("presto_view", "true"), "Iceberg view": with("table_type", "ICEBERG-VIEW"),
		"Spark view": all(typ("VIRTUAL_VIEW"), with("view.query.out.numCols", "1", schemaKey, "{")),
		"text alone": func(e obj) {
			e["ViewOriginalText"] = "SELECT 1"
			delete(e, "StorageDescriptor")
			delete(e, "TableType")
		},
		"null target":   all(typ("VIRTUAL_VIEW"), func(e obj) { e["TargetTable"] = nil }),
		"no parameters": all(typ("VIRTUAL_VIEW"), func(e obj) { delete(e, "Parameters"); e["StorageDescriptor"] = obj{} }),
	} {
		got := glueTable(change)
		if got.Kind != View || got.Readable || got.Writable || got.Class != ClassView || got.HasDirectory() || got.Reason == "" {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	for _, text := range []string{"", "SELECT 1"} {
		if got := glueTable(func(e obj) { e["ViewOriginalText"] = text }); got.Kind != Hive {
			t.Errorf("view text %q beside a location: got %s", text, got.Kind)
		}
	}
}

func TestRule11_HiveSerdeTableWithoutProviderIsOrdinary(t *testing.T) {
	got := glueTable(nil)
	if got.Kind != Hive || !got.Writable || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "gluecat") {
		t.Errorf("got %s, %s, notes %q", got.Kind, got.Reason, got.Notes)
	}
	for _, provider := range []string{"parquet", "hive"} {
		if got = glueTable(with(providerKey, provider)); len(got.Notes) != 0 {
			t.Errorf("provider %s: got notes %q", provider, got.Notes)
		}
	}
}

// Glue has lower-case names; what another writer put there is shown as it is, and
// compares without case.
func TestRule12_NamesCompareWithoutCase(t *testing.T) {
	const schema = `{"type":"struct","fields":[{"name":"userId","type":"long"},{"name":"v","type":"string"}]}`
	got := glueTable(all(keyed("userid", "bigint"), with(providerKey, "parquet", schemaKey, schema,
		schemaKey+".numPartCols", "1", schemaKey+".partCol.0", "userID")))
	if !got.Writable || len(got.Columns) != 2 || got.Columns[1].Name != "userId" || got.Keys[0].Name != "userid" {
		t.Errorf("got columns %+v, keys %+v, %s", got.Columns, got.Keys, got.Reason)
	}
	if v, err := got.Partition("userId=7", 0); err != nil || v != "7" {
		t.Errorf("Partition: got %q, %v", v, err)
	}
	wantLoadError(t, "a key twice", glueTable(func(e obj) {
		e["PartitionKeys"] = []obj{{"Name": "dt", "Type": "string"}, {"Name": "DT", "Type": "string"}}
	}), `"DT" is there twice`)
}
