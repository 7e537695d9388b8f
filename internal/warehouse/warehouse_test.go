package warehouse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManifestHasGluesKeysOnDisk41(t *testing.T) {
	root := t.TempDir()
	err := Write(root, Table{
		Database: "db", Name: "t", Format: "csv", Keys: []string{"dt:date"}, Columns: []string{"s:struct<a:int>"},
		Files: map[string]string{"dt=2026-01-01/f": "x\n", "dt=2026-01-02/": ""},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "db", "t", "_sqe", "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"manifest_version": 1`, `"table_type": "EXTERNAL_TABLE"`, `"database_name": "db"`, `"name": "t"`, `"partition_keys": [`,
		`"storage_descriptor": {`, `"location": "_data/db/t/"`, `"input_format": "org.apache.hadoop.mapred.TextInputFormat"`,
		`"serde_info": {`, `"serialization_library": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"`, `"field.delim": ","`,
		`"type": "date"`, `"type": "struct\u003ca:int\u003e"`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("table.json lacks %s:\n%s", want, raw)
		}
	}
	if got, err := os.ReadFile(filepath.Join(root, "_data", "db", "t", "dt=2026-01-01", "f")); err != nil || string(got) != "x\n" {
		t.Errorf("data file is %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(root, "_data", "db", "t", "dt=2026-01-02")); err != nil || !info.IsDir() {
		t.Errorf("empty directory: %v", err)
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	if err := Write(t.TempDir(), Table{Database: "db", Name: "t", Format: "xml"}); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("format xml: %v, want an error that names it", err)
	}
}

func TestParquetIsTheSameEachTime(t *testing.T) {
	type row struct {
		ID int64 `parquet:"id"`
	}
	a, errA := Parquet([]row{{1}, {2}})
	b, errB := Parquet([]row{{1}, {2}})
	if errA != nil || errB != nil || a != b || !strings.HasPrefix(a, "PAR1") || !strings.HasSuffix(a, "PAR1") {
		t.Errorf("two files of the same rows: %d and %d bytes, %v, %v", len(a), len(b), errA, errB)
	}
}
