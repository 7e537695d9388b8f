package fs_test

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Engines that write Hive partitions by path: what they write is read back, and each
// partition is registered once.

// parquetTable is db.p of Parquet files, with one partition that is registered
// elsewhere.
func parquetTable() mounttest.GlueTable {
	return mounttest.GlueTable{
		Table:      mounttest.Table{Database: "db", Name: "p", Columns: []string{"id:bigint", "v:string"}, Keys: []string{"dt"}},
		Partitions: []mounttest.GluePartition{{Values: []string{"b"}, Location: "s3://{1}/of/b"}},
	}
}

// wantRows asserts the rows of db.p that DuckDB reads through the mount, and the
// partitions with how many were registered by it.
func wantRows(t *testing.T, l *mounttest.Lake, program, want string, registered int, partitions ...string) {
	t.Helper()
	got := mustExec(t, l, program, "-c", `import duckdb
print(duckdb.sql("SELECT dt, count(*) AS n, sum(id) AS s FROM read_parquet('db/p/*/*.parquet', hive_partitioning=true) GROUP BY dt ORDER BY dt").fetchall())`)
	if got != want+"\n" {
		t.Errorf("DuckDB reads %swant %s", got, want)
	}
	wantRegistered(t, l, "p", partitions...)
	if n := l.Catalog.Server.Requests()[registration]; n != registered {
		t.Errorf("%d registrations, want %d", n, registered)
	}
	server, _ := l.Bucket()
	if n := len(server.Keys(t, l.Catalog.Buckets[1], "of/b/")); n == 0 {
		t.Error("nothing is at the location of the partition b")
	}
	if n := len(storedTree(t, l, "db/p/dt=b")); n != 0 {
		t.Errorf("%d files are where the partition b is not", n)
	}
}

func TestEnginesWritePartitions(t *testing.T) {
	t.Parallel()
	// a, b and c have the ids of 0 to 299 by their rest.
	const want = "[('a', 100, 14850), ('b', 100, 14950), ('c', 100, 15050)]"
	const arrow = `
import pyarrow as pa, pyarrow.dataset as ds
t = pa.table({"id": list(range(300)), "v": ["x"]*300, "dt": ["abc"[i%3] for i in range(300)]})
`
	for name, tt := range map[string]struct {
		module, script string
	}{
		"DuckDB": {"duckdb", `
import duckdb
duckdb.sql("COPY (SELECT i AS id, 'x' AS v, substr('abc', (i%3+1)::INT, 1) AS dt FROM range(300) t(i)) TO 'db/p' (FORMAT parquet, PARTITION_BY (dt), OVERWRITE_OR_IGNORE)")`},
		"DuckDB, appending": {"duckdb", `
import duckdb
duckdb.sql("COPY (SELECT i AS id, 'x' AS v, substr('abc', (i%3+1)::INT, 1) AS dt FROM range(300) t(i)) TO 'db/p' (FORMAT parquet, PARTITION_BY (dt), APPEND)")`},
		"pyarrow": {"pyarrow", arrow + `
ds.write_dataset(t, "db/p", format="parquet", partitioning=ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive"), existing_data_behavior="overwrite_or_ignore")`},
		"pyarrow.parquet": {"pyarrow", arrow + `
import pyarrow.parquet as pq
pq.write_to_dataset(t, "db/p", partition_cols=["dt"])`},
		"polars": {"polars", `
import polars as pl
pl.DataFrame({"id": list(range(300)), "v": ["x"]*300, "dt": ["abc"[i%3] for i in range(300)]}).write_parquet("db/p", partition_by=["dt"])`},
		"pandas": {"pandas", `
import pandas as pd
pd.DataFrame({"id": list(range(300)), "v": ["x"]*300, "dt": ["abc"[i%3] for i in range(300)]}).to_parquet("db/p", partition_cols=["dt"])`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := mounttest.Venv(t, "python3", tt.module, "duckdb")
			l := mountGlue(t, mounttest.Options{}, parquetTable())
			mustExec(t, l, program, "-c", tt.script)
			wantRows(t, l, program, want, 2, "a", "b", "c")
			if names, err := l.Names("db/p"); err != nil || len(names) != 3 {
				t.Errorf("the table has %q, %v", names, err)
			}
		})
	}
}

// TestEnginesDeleteMatchingPartitions: pyarrow empties the partitions that it writes,
// one of them in another bucket, and none of the others.
func TestEnginesDeleteMatchingPartitions(t *testing.T) {
	t.Parallel()
	program := mounttest.Venv(t, "python3", "pyarrow", "duckdb")
	table := parquetTable()
	table.Partitions[0].Files = map[string]string{"old.parquet": mounttest.Parquet(t, 7), "sub/old.parquet": mounttest.Parquet(t, 7)}
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"other"}, Files: map[string]string{"kept.parquet": mounttest.Parquet(t, 3)}})
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, table)
	mustExec(t, l, program, "-c", `
import pyarrow as pa, pyarrow.dataset as ds
t = pa.table({"id": list(range(300)), "v": ["x"]*300, "dt": ["abc"[i%3] for i in range(300)]})
ds.write_dataset(t, "db/p", format="parquet", partitioning=ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive"), existing_data_behavior="delete_matching")`)
	wantRows(t, l, program, "[('a', 100, 14850), ('b', 100, 14950), ('c', 100, 15050), ('other', 3, 3)]", 2, "a", "b", "c", "other")
	server, _ := l.Bucket()
	if keys := server.Keys(t, l.Catalog.Buckets[1], ""); len(keys) != 1 {
		t.Errorf("the partition b has %q, want the new file alone", keys)
	}
}
