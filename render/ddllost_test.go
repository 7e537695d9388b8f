package render

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// wantSchema looks for texts in the statement of a table; those that begin with "!" must
// not be there. Where the first begins with "error: " there must be none, for that reason.
func wantSchema(t *testing.T, what string, tab *table.Table, wants ...string) {
	t.Helper()
	sql, err := SchemaSQL(tab)
	if reason, refused := strings.CutPrefix(wants[0], "error: "); refused {
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: error %v, want one with %q (%s)", what, err, reason, sql)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, want := range wants {
		text, not := strings.CutPrefix(want, "!")
		if strings.Contains(sql, text) == not {
			t.Errorf("%s: want %q in\n%s", what, want, sql)
		}
	}
}

func keyedTable(format, serde string) *table.Table {
	return &table.Table{
		Database: "d", Name: "t", Kind: table.Hive, Format: format, Serde: serde, Location: "s3://b/t/", Readable: true,
		Columns: []table.Column{{Name: "a", Type: "int"}, {Name: "Dt", Type: "date"}, {Name: "b", Type: "int"}},
		Keys:    []table.Column{{Name: "dt", Type: "string"}},
	}
}

// A column that is named as a key is left out where files have names, and said to be;
// where they have places nothing can be left out.
func TestSchemasOfColumnsNamedAsKeys(t *testing.T) {
	const hive = "org.apache.hadoop.hive.serde2."
	for _, tt := range []struct{ format, serde string }{
		{"parquet", parquetSerde}, {"avro", hive + "avro.AvroSerDe"}, {"json", openxSerde},
	} {
		wantSchema(t, tt.format, keyedTable(tt.format, tt.serde), "  `a` int,\n  -- \"Dt\" \"date\" is left out: a partition key", "  `b` int\n)", "!`Dt`")
	}
	for _, tt := range []struct{ format, serde string }{
		{"csv", lazySerde},
		{"text", ""},
		{"csv", hive + "OpenCSVSerde"},
		{"orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde"},
		{"rc", hive + "columnar.LazyBinaryColumnarSerDe"},
		{"sequence", lazySerde},
	} {
		wantSchema(t, tt.format, keyedTable(tt.format, tt.serde), `error: column "Dt": no schema.sql: it is named as a partition key is`)
	}
	spark := keyedTable("orc", "")
	spark.Parameters = map[string]string{"spark.sql.sources.provider": "orc", "spark.sql.sources.schema.numParts": "1"}
	wantSchema(t, "Spark's columns, keys among them", spark, "  `a` int,\n  `b` int\n)", "!left out")
	spark.Parameters = map[string]string{"spark.sql.sources.provider": "orc"}
	wantSchema(t, "Spark without a schema", spark, `error: column "Dt"`)
	iceberg := keyedTable("", "")
	iceberg.Kind = table.Iceberg
	wantSchema(t, "Iceberg", iceberg, "  `Dt` date,\n", "--   \"dt\" string\n")
}

func TestSchemasOfKeysThatAreNoValues(t *testing.T) {
	for _, typ := range []string{"array<int>", "map<string,int>", "struct<f:int>", "binary", "uniontype<int,string>"} {
		tab := keyedTable("parquet", parquetSerde)
		tab.Columns, tab.Keys[0].Type = tab.Columns[:1], typ
		wantSchema(t, typ, tab, `error: column "dt": no schema.sql: type "`+typ)
	}
}

func TestSchemasOfMapsByWhatIsNoValue(t *testing.T) {
	const typ = "array<map<struct<f:int>,int>>"
	tab := keyedTable("parquet", parquetSerde)
	tab.Columns[1] = table.Column{Name: "m", Type: typ}
	wantSchema(t, "Parquet", tab, "-- \"m\" \""+typ+"\" is left out: the keys of a map", "!`m`")
	tab = keyedTable("orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde")
	tab.Columns[1] = table.Column{Name: "m", Type: typ}
	wantSchema(t, "ORC", tab, `error: column "m"`)
}

// Hive's parser takes a newline alone behind LINES TERMINATED BY.
func TestSchemasOfLineEnds(t *testing.T) {
	for ends, want := range map[string]string{
		"\n": `LINES TERMINATED BY '\n'`, `\012`: `LINES TERMINATED BY '\n'`, "10": `LINES TERMINATED BY '10'`,
		"\r\n": `-- Lines end in "\r\n" by the entry`, ";": `-- Lines end in "\x3b" by the entry`, "13": `-- Lines end in "13" by`,
	} {
		tab := keyedTable("csv", lazySerde)
		tab.Columns = tab.Columns[:1]
		tab.Storage.SerdeProperties = map[string]string{"field.delim": ",", "line.delim": ends}
		wants := []string{want, "FIELDS TERMINATED BY ','"}
		if strings.HasPrefix(want, "--") {
			wants = append(wants, "!LINES TERMINATED")
		}
		wantSchema(t, ends, tab, wants...)
		if tab.Storage.SerdeProperties["line.delim"] != ends {
			t.Errorf("the table's own properties were changed")
		}
	}
}

// What is between Spark's fields is what LazySimpleSerDe is told, which takes digits for
// the number of a byte and one byte alone.
func TestSchemasOfSparksDelimiters(t *testing.T) {
	const none = "error: between fields (option sep or delimiter)"
	for _, tt := range []struct {
		option, value string
		want          string
	}{
		{"sep", "|", "FIELDS TERMINATED BY '|'"},
		{"SEP", `\t`, `FIELDS TERMINATED BY '\t'`},
		{"delimiter", `\\`, `FIELDS TERMINATED BY '\\'`},
		{"sep", `\u0000`, `FIELDS TERMINATED BY '\000'`},
		{"sep", "\x01", `FIELDS TERMINATED BY '\001'`},
		{"sep", "7", "FIELDS TERMINATED BY '55'"},
		{"sep", "||", none},
		{"delimiter", "¦", none},
		{"sep", "12", none},
		{"escape", "8", "ESCAPED BY '56'"},
		{"escape", "", "!ESCAPED BY"},
		{"escape", "¬", "-- Spark's options that have no equal in Athena: \"escape\".\n"},
		{"lineSep", "\r", "-- Spark's options that have no equal in Athena: \"lineSep\".\n"},
	} {
		tab := keyedTable("csv", "")
		tab.Columns = tab.Columns[:1]
		tab.Parameters = map[string]string{"spark.sql.sources.provider": "csv"}
		tab.Storage.SerdeProperties = map[string]string{tt.option: tt.value}
		wantSchema(t, tt.option+"="+tt.value, tab, tt.want)
	}
	text := keyedTable("text", "")
	text.Columns = text.Columns[:1]
	text.Parameters = map[string]string{"spark.sql.sources.provider": "text"}
	text.Storage.SerdeProperties = map[string]string{"wholetext": "true"}
	wantSchema(t, "text", text, "-- Spark's options that have no equal in Athena: \"wholetext\".\n")
}

// Rule 13: descriptions have 2,048 bytes at most.
func TestRule13DescriptionsOfSchemas(t *testing.T) {
	tab := keyedTable("parquet", parquetSerde)
	tab.Description = "a" + strings.Repeat("é", 2000)
	wantSchema(t, "description", tab, "\nCOMMENT 'a"+strings.Repeat("é", 1023)+"'\n")
	tab.Description, tab.Parameters = "", map[string]string{"comment": strings.Repeat("é", 2000)}
	wantSchema(t, "comment", tab, "\nCOMMENT '"+strings.Repeat("é", 1024)+"'\n")
}

func TestSchemasOfDeltaNameTheKeys(t *testing.T) {
	tab := keyedTable("parquet", "")
	tab.Kind = table.Delta
	wantSchema(t, "Delta", tab, "-- The catalog's entry has these partition keys:\n--   \"dt\" string\n")
}
