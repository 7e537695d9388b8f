package glueworld_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestSpark: Spark writes tables by s3a, and reads them by path in the mount. Their
// entries are those that Spark itself put into a Hive metastore: of Parquet and ORC
// in the form that Hive reads too, of CSV and JSON in Spark's own.
func TestSpark(t *testing.T) {
	dir := os.Getenv("MOUNTTEST_SPARK") // as tools/spark.sh makes it
	if dir == "" {
		t.Skip("make test-spark runs it: its download is several hundred megabytes")
	}
	lake := mounttest.New(t, mounttest.Options{Glue: &mounttest.Glue{Endpoint: s3test.FreshMoto(t).Endpoint}, Timeout: 40 * time.Minute})
	w := &world{lake: lake}
	python := filepath.Join(dir, "venv", "bin", "python3")
	type row [4]any
	var wrote, found map[string][]row
	spark := func(args ...string) string {
		out := run(t, "", append(w.env(t), "JAVA_HOME="+os.Getenv("JAVA_HOME")), python, append([]string{"testdata/spark.py"}, args...)...)
		return out[strings.LastIndex(out, "\n")+1:] // behind what Ivy prints
	}
	decode(t, spark("write", lake.Catalog.Endpoint, w.endpoint(), lake.Catalog.Buckets[0], dir, t.TempDir()), &wrote)
	lake.Start("--read-only")
	w.golden(t, "spark-tree.golden", w.sh(t, "ls -R"))
	w.golden(t, "spark-verdicts.golden", w.sh(t, `
for d in */*/; do
	printf '%s ' "$d"
	jq -cS '.catalog | {kind, format, format_from, location, partitions_from, readable, writable, reason, notes} | with_entries(select(.value != null))' "$d.lakefs/status.json"
	jq -c '.Table | [.StorageDescriptor.Columns[].Type, .StorageDescriptor.SerdeInfo.SerializationLibrary, .Parameters["spark.sql.sources.provider"]]' "${d%/}.json"
done`))
	decode(t, spark("read", lake.Root, dir), &found)
	for _, format := range []string{"parquet", "orc", "csv", "json"} {
		if len(wrote[format]) != 16 {
			t.Errorf("Spark wrote %d rows of %s, want 16", len(wrote[format]), format)
		}
		if !reflect.DeepEqual(found[format], wrote[format]) {
			t.Errorf("%s: Spark finds by path\n%v\nwrote\n%v", format, found[format], wrote[format])
		}
	}
}
