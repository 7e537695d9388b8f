package render

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// duckDB makes a file as an order table has them, and tells how many seconds its own COPY
// TO takes for it, of one thread: the best of three.
const duckDB = `
import duckdb, sys, time
c = duckdb.connect()
path = sys.argv[1]
c.execute(f"""COPY (SELECT i AS id, (i * 7919) % 1000000 AS customer, (hash(i) % 100000)::INT AS qty,
  (hash(i + 1) % 1000000) / 1000.0 AS price, (hash(i + 2) % 1000000007) / 3.0 AS score,
  ['new', 'paid', 'shipped', 'returned', 'cancelled'][1 + (hash(i) % 5)::INT] AS status,
  'city-' || (hash(i * 3) % 2000) AS city,
  'order number ' || i || ' of somebody with a longer comment ' || (hash(i) % 100000) AS comment,
  TIMESTAMP '2026-01-01' + INTERVAL (i * 13) SECOND AS created,
  CASE WHEN i % 7 = 0 THEN NULL ELSE TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i * 17) SECOND END AS updated,
  ((hash(i * 5) % 10000000) / 100.0)::DECIMAL(12, 2) AS amount,
  CASE WHEN i % 10 = 0 THEN NULL ELSE (hash(i) % 1000)::INT END AS maybe, i % 3 = 0 AS flag, DATE '2020-01-01' + (i % 2000)::INT AS day
  FROM range(500000) t(i)) TO '{path}' (FORMAT parquet, COMPRESSION snappy)""")
c.execute("SET threads = 1")
best = 1e9
for _ in range(3):
    start = time.time()
    c.execute(f"COPY (FROM read_parquet('{path}')) TO '/dev/null' (FORMAT json)")
    best = min(best, time.time() - start)
print(best)
`

// BenchmarkRowsOfDuckDB compares with DuckDB's writer of JSON lines, on one core.
func BenchmarkRowsOfDuckDB(b *testing.B) {
	path := filepath.Join(b.TempDir(), "orders.parquet")
	out, err := exec.CommandContext(b.Context(), mounttest.Venv(b, "python", "duckdb"), "-c", duckDB, path).Output()
	if err != nil {
		b.Fatal(err)
	}
	theirs, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if err := Rows(b.Context(), io.Discard, file, info.Size(), Spec{Name: "orders.parquet", Output: OutputJSONL}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(theirs*float64(b.N)/b.Elapsed().Seconds(), "×DuckDB")
}
