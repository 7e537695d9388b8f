package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/table"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenSchema compares the statement of a table with its golden file.
func goldenSchema(t *testing.T, name string, tab *table.Table) {
	t.Helper()
	got, err := SchemaSQL(tab)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	file := filepath.Join("testdata/schema", name+".sql")
	if *update {
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%swant\n%s", name, got, want)
	}
}

// glueFixtures are the entries of table's testdata, by folder.
func glueFixtures(tb testing.TB) map[string]*table.Table {
	tb.Helper()
	const root = "../table/testdata/glue"
	tables := make(map[string]*table.Table)
	for _, pattern := range []string{"*", "made-by-hand/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern, "table.json"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				tb.Fatal(err)
			}
			var body struct{ Table json.RawMessage }
			var names struct{ DatabaseName, Name string }
			if err = errors.Join(json.Unmarshal(raw, &body), json.Unmarshal(body.Table, &names)); err != nil {
				tb.Fatal(f, err)
			}
			tables[strings.TrimPrefix(filepath.Dir(f), root+"/")] = table.ParseGlue(names.DatabaseName, names.Name, body.Table)
		}
	}
	if len(tables) < 30 {
		tb.Fatalf("%d fixtures", len(tables))
	}
	return tables
}

func TestSchemasOfFixtures(t *testing.T) {
	for folder, tab := range glueFixtures(t) {
		if tab.Readable {
			goldenSchema(t, "glue/"+folder, tab)
			continue
		}
		if got, err := SchemaSQL(tab); err == nil {
			t.Errorf("%s is not readable, and has the schema %s", folder, got)
		}
	}
}

// schemaTables are made for the forms that no fixture has; rule 50's among them.
func schemaTables(tb testing.TB) map[string]*table.Table {
	tb.Helper()
	files, err := filepath.Glob("testdata/schema/tables/*.json")
	if err != nil || len(files) == 0 {
		tb.Fatal(len(files), err)
	}
	tables := make(map[string]*table.Table)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		tab := table.ParseGlue("kinds", name, raw)
		if bytes.Contains(raw, []byte(`"manifest_version"`)) {
			tab = table.ParseManifest("kinds", name, raw, table.Limits{})
		}
		tables[name] = tab
	}
	return tables
}

func TestRule50SchemasOfKinds(t *testing.T) {
	for name, tab := range schemaTables(t) {
		goldenSchema(t, "tables/"+name, tab)
	}
}

// What has no statement says why, by name.
func TestSchemasThatAreNone(t *testing.T) {
	columns := []table.Column{{Name: "a", Type: "int"}}
	parquet := func(change func(*table.Table)) *table.Table {
		tab := &table.Table{Database: "d", Name: "t", Kind: table.Hive, Format: "parquet", Serde: parquetSerde, Location: "s3://b/t/", Columns: columns, Readable: true}
		change(tab)
		return tab
	}
	for want, tab := range map[string]*table.Table{
		"com.example.MySerDe": parquet(func(t *table.Table) { t.Serde, t.Format = "com.example.MySerDe", "" }),
		"com.example.Handler": parquet(func(t *table.Table) { t.Parameters = map[string]string{"storage_handler": "com.example.Handler"} }),
		"a view has no files": {Database: "d", Name: "v", Kind: table.View, Reason: "a view has no files"},
		"Location is missing": table.NewBroken("d", "t", table.ClassBroken, "d.t: Location is missing"),
		"neither a SerDe nor": parquet(func(t *table.Table) { t.Serde, t.Format = "", "" }),
		"no column is known":  parquet(func(t *table.Table) { t.Columns = nil }),
		`column "b": no sch`:  parquet(func(t *table.Table) { t.Columns = []table.Column{{Name: "b", Type: "blob"}} }),
		`column "A": no sch`:  parquet(func(t *table.Table) { t.Columns = []table.Column{{Name: "a", Type: "int"}, {Name: "A", Type: "int"}} }),
		"control characters":  parquet(func(t *table.Table) { t.Name = "t\n-- x" }),
		`column "x\ny": no`:   parquet(func(t *table.Table) { t.Keys = []table.Column{{Name: "x\ny", Type: "int"}} }),
		`has no . and no :`:   parquet(func(t *table.Table) { t.Serde, t.Columns = lazySerde, []table.Column{{Name: "x.y", Type: "int"}} }),
		"columns by their place": parquet(func(t *table.Table) {
			t.Format, t.Serde, t.Columns = "orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", []table.Column{{Name: "u", Type: "uniontype<int,string>"}}
		}),
		"data source jdbc is not known": parquet(func(t *table.Table) {
			t.Parameters = map[string]string{"spark.sql.sources.provider": "jdbc"}
			t.Format, t.Reason = "", "data source jdbc is not known"
		}),
	} {
		got, err := SchemaSQL(tab)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tab.Database+"."+tab.Name) && !strings.Contains(want, "control") {
			t.Errorf("error %v (%q), want one with %q", err, got, want)
		}
	}
}

// parsedTable is what a parser has to find in a statement.
type parsedTable struct {
	File, SQL, Database, Name, Location string
	External                            bool
	Columns, Keys                       [][2]string // name and type
}

// parsedOf is what has to be found in the statement of a table.
func parsedOf(file string, tab *table.Table, sql string) parsedTable {
	want := parsedTable{File: file, SQL: sql, Database: tab.Database, Name: tab.Name, Location: tab.Location, External: true}
	for _, k := range tab.Keys {
		want.Keys = append(want.Keys, [2]string{k.Name, k.Type})
	}
	for _, c := range tab.Columns {
		isKey := func(k table.Column) bool { return strings.EqualFold(k.Name, c.Name) }
		left := "-- " + shown(c.Name) + " " + shown(c.Type) + " is left out: "
		if !slices.ContainsFunc(tab.Keys, isKey) && !strings.Contains(sql, left) {
			want.Columns = append(want.Columns, [2]string{c.Name, c.Type})
		}
	}
	switch tab.Kind {
	case table.Delta:
		want.Columns = nil
	case table.Iceberg:
		want.Location, want.External = noPlace, false
	}
	return want
}

// allSchemas are the golden files and the statements of hostile texts, and what has to be
// in them.
func allSchemas(t *testing.T) []byte {
	t.Helper()
	var all []parsedTable
	collect := func(dir string, tables map[string]*table.Table) {
		for name, tab := range tables {
			sql, err := os.ReadFile(filepath.Join("testdata/schema", dir, name+".sql"))
			switch {
			case err == nil:
				all = append(all, parsedOf(name, tab, string(sql)))
			case tab.Readable:
				t.Error(err)
			}
		}
	}
	collect("glue", glueFixtures(t))
	collect("tables", schemaTables(t))
	for _, text := range hostile() {
		tab := hostileTable(text)
		sql, err := SchemaSQL(tab)
		switch {
		case err == nil:
			all = append(all, parsedOf("hostile "+text, tab, sql))
		case unspellable(text) == "":
			t.Error(err)
		}
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// wantParsed has a script read the statements, which prints what is wrong.
func wantParsed(t *testing.T, python, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata/schema", script))
	cmd.Stdin = bytes.NewReader(allSchemas(t))
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A parser of Athena's language takes each statement whole, and finds the table in it.
func TestSchemasParseAsAthena(t *testing.T) {
	wantParsed(t, mounttest.Venv(t, "python3", "sqlglot"), "parse.py")
}

// TestSpark: so does the parser of Hive, whose language Athena's is; Spark brings it.
func TestSpark(t *testing.T) {
	spark := os.Getenv("MOUNTTEST_SPARK")
	if spark == "" {
		t.Skip("run by make test-spark")
	}
	wantParsed(t, filepath.Join(spark, "venv/bin/python3"), "hive.py")
}
