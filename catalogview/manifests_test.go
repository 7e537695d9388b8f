package catalogview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/catalogview/sourcetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestManifestsAreASource(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		root := t.TempDir()
		folder, err := objectstore.NewFolder(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := folder.Close(); err != nil {
				t.Error(err)
			}
		})
		must := func(t *testing.T, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// What is no database and no table, whatever a test puts in.
		must(t, os.MkdirAll(filepath.Join(root, "_sqe"), 0o755))
		must(t, os.MkdirAll(filepath.Join(root, ".git/x/_sqe"), 0o755))
		must(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
		return sourcetest.Harness{
			Source: catalogview.NewManifests(folder, objectstore.Location{Bucket: root}, catalogview.Options{}),
			Create: func(t *testing.T, db string) {
				t.Helper()
				must(t, os.MkdirAll(filepath.Join(root, db, "no_table"), 0o755))
			},
			Put: func(t *testing.T, tab sourcetest.Table) {
				t.Helper()
				content := fmt.Sprintf(`{"manifest_version":1,"database_name":%q,"name":%q,
"partition_keys":[{"name":"day","type":"int"}],"storage_descriptor":{"location":%q,"serde_info":{
"serialization_library":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}}}`, tab.Database, tab.Name, tab.Location)
				if tab.Broken {
					content = content[:20]
				}
				dir := filepath.Join(root, tab.Database, tab.Name, "_sqe")
				must(t, os.MkdirAll(dir, 0o755))
				must(t, os.WriteFile(filepath.Join(dir, "new"), []byte(content), 0o600))
				must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "table.json")))
			},
			Drop: func(t *testing.T, db, name string) {
				t.Helper()
				must(t, os.Remove(filepath.Join(root, db, name, "_sqe/table.json")))
			},
		}
	})
}
