package glueworld_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// emptyTable is db.NAME by dt and region.
func emptyTable(name, format string) mounttest.GlueTable {
	return mounttest.GlueTable{Table: mounttest.Table{
		Database: "db", Name: name, Format: format, Columns: []string{"id:bigint", "name:string"}, Keys: []string{"dt", "region"},
	}}
}

// TestRowsOfDuckDB: DuckDB writes by path, Parquet and CSV, and cp copies what it
// wrote; awswrangler reads the same rows by the catalog.
func TestRowsOfDuckDB(t *testing.T) {
	mounttest.Venv(t, "python3", "awswrangler", "duckdb")
	lake := mounttest.Mount(t, mounttest.Options{Timeout: 5 * time.Minute, Glue: &mounttest.Glue{
		Endpoint: s3test.FreshMoto(t).Endpoint,
		Tables:   []mounttest.GlueTable{emptyTable("parquet", "parquet"), emptyTable("csv", "csv"), emptyTable("one", "parquet"), emptyTable("copied", "parquet"), emptyTable("csv_copied", "csv")},
	}})
	w := &world{lake: lake}
	var wrote, found map[string][][]any
	decode(t, w.python(t, "duck.py", lake.Root), &wrote)
	w.sh(t, `cp -r db/parquet/. db/copied/; cd db/csv; find . -type f -exec cp --parents '{}' ../csv_copied/ \;`)
	wrote["copied"], wrote["csv_copied"] = wrote["parquet"], wrote["csv"]
	decode(t, w.python(t, "rows.py", lake.Catalog.Endpoint, w.endpoint(), "db", "parquet", "csv", "one", "copied", "csv_copied"), &found)
	for table, want := range wrote {
		if len(want) != 30 || !reflect.DeepEqual(found[table], want) {
			t.Errorf("%s: awswrangler reads %d rows\n%v\nDuckDB wrote %d\n%v", table, len(found[table]), found[table], len(want), want)
		}
	}
}

// TestTwentyMountsOfOneNewPartition: each is a daemon of its own; they write into one
// new partition at once. It is registered once, and no writer is told of another's.
func TestTwentyMountsOfOneNewPartition(t *testing.T) {
	const mounts = 20
	mounttest.Venv(t, "python3", "awswrangler")
	lake := mounttest.Mount(t, mounttest.Options{Timeout: 8 * time.Minute, Glue: &mounttest.Glue{
		Endpoint: s3test.FreshMoto(t).Endpoint, Tables: []mounttest.GlueTable{emptyTable("t", "parquet")},
	}})
	lakes := []*mounttest.Lake{lake}
	for len(lakes) < mounts {
		lakes = append(lakes, lake.Second("--memory-limit=32MiB"))
	}
	w := &world{lake: lake}
	var ids []string
	for i := range mounts {
		ids = append(ids, fmt.Sprint(i))
	}
	files := w.added(t, ids...)
	var ready, writers sync.WaitGroup
	ready.Add(mounts)
	begin := make(chan struct{})
	for i, l := range lakes {
		writers.Go(func() {
			ready.Done()
			<-begin
			r := l.Sh(fmt.Sprintf(`mkdir -p db/t/dt=2026-01-01/region=eu && cp %s/%d.parquet db/t/dt=2026-01-01/region=eu/ && cat db/t/dt=2026-01-01/region=eu/%[2]d.parquet >/dev/null`, files, i))
			if r.Code != 0 {
				t.Errorf("mount %d: exit code %d: %s", i, r.Code, r.Err)
			}
		})
	}
	ready.Wait()
	close(begin)
	writers.Wait()
	var answer struct {
		Partitions []struct {
			Values            []string
			StorageDescriptor struct{ Location string }
		}
	}
	decode(t, string(lake.Catalog.Call("GetPartitions", `{"DatabaseName":"db","TableName":"t"}`)), &answer)
	if p := answer.Partitions; len(p) != 1 || !slices.Equal(p[0].Values, []string{"2026-01-01", "eu"}) || p[0].StorageDescriptor.Location != lake.Location("db/t")+"/dt=2026-01-01/region=eu" {
		t.Errorf("the catalog has the partitions %+v, want one", p)
	}
	server, bucket := lake.Bucket()
	if keys := server.Keys(t, bucket, lake.Key("db/t")); len(keys) != mounts {
		t.Errorf("the store has %q, want %d files", keys, mounts)
	}
	for i, l := range lakes {
		if log := l.Log(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			t.Errorf("the log of mount %d:\n%s", i, log)
		}
	}
	var read []int
	decode(t, w.python(t, "read.py", lake.Catalog.Endpoint, w.endpoint(), "db", "t", "2026-01-01"), &read)
	if len(read) != mounts || read[0] != 0 || read[mounts-1] != mounts-1 {
		t.Errorf("awswrangler reads the ids %v by the catalog", read)
	}
}
