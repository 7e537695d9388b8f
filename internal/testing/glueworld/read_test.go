package glueworld_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestRealWriters looks at one world, which takes seconds to make.
func TestRealWriters(t *testing.T) {
	w := newWorld(t)
	w.lake.Start("--read-only")
	t.Run("Tree", func(t *testing.T) { w.golden(t, "tree.golden", w.sh(t, "ls -R")) })
	t.Run("Verdicts", w.verdicts)
	t.Run("EntriesAreTheCLIs", w.entries)
	t.Run("Rule57_EachPartitionHasItsOwnSerDe", w.partitionEntries)
	t.Run("Rule58_SeveralFormatsAreCounted", w.multiFormat)
	t.Run("FilesAreTheObjects", w.files)
	t.Run("Edge10_BytesOfOtherFormatsCopyOut", w.copiedOut)
	t.Run("EnginesCountWhatTheWritersWrote", w.engines)
	w.lake.Remount()
	t.Run("AFileInANewPartitionRegistersIt", w.registers)
	w.lake.Remount("--catalog-writes=none")
	t.Run("WithoutCatalogWritesNothingIsRegistered", w.registersNothing)
}

// verdicts holds what status.json makes of each table to a golden file.
func (w *world) verdicts(t *testing.T) {
	// Tables that have no directory, views, have no status.json.
	w.golden(t, "verdicts.golden", w.sh(t, `
for d in */ */*/ wr/orders/dt=2026-01-01/ wr/projected/dt=2026-01-01/; do
	printf '%s ' "$d"
	jq -cS '.catalog | {kind, format, location, partitions_from, resource_link, readable, writable, reason, notes, partitions, unregistered, without_objects} | with_entries(select(.value != null))' "$d.lakefs/status.json"
done`))
}

// entries compares NAME.json of every database and table with what the CLI prints.
func (w *world) entries(t *testing.T) {
	c := comparison{world: w}
	for _, db := range []string{"hand", "ice", "wr"} {
		for _, name := range names(t, w.aws(t, "get-tables", "--database-name", db)) {
			c.add(t, db+"/"+name+".json", "get-table", "--database-name", db, "--name", name)
		}
	}
	for _, db := range []string{"hand", "ice", "wr", "wr_link"} {
		c.add(t, db+".json", "get-database", "--name", db)
	}
	if len(c.files) != 16 {
		t.Errorf("%d entries in the catalog, want 16: %q", len(c.files), c.files)
	}
	c.check(t)
}

// comparison are entries in the mount, and what the CLI prints for them.
type comparison struct {
	*world

	files     []string
	got, want []string
}

// add reads a file of the mount, and runs the CLI.
func (c *comparison) add(t *testing.T, file string, command ...string) {
	t.Helper()
	got, err := c.lake.ReadFile(file)
	must(t, err)
	c.files, c.got, c.want = append(c.files, file), append(c.got, got), append(c.want, c.aws(t, command...))
}

func (c *comparison) check(t *testing.T) {
	t.Helper()
	got, want := sorted(t, c.got...), sorted(t, c.want...)
	for i, file := range c.files {
		if got[i] != want[i] {
			t.Errorf("%s is\n%s\nthe CLI has\n%s", file, got[i], want[i])
		}
	}
}

// registered are the partitions of a table, by the CLI's get-partitions.
type registered struct {
	Values            []string
	StorageDescriptor struct {
		Location, InputFormat string
		SerdeInfo             struct{ SerializationLibrary string }
	}
}

func (w *world) registered(t *testing.T, database, table string) []registered {
	t.Helper()
	var answer struct{ Partitions []registered }
	decode(t, w.aws(t, "get-partitions", "--database-name", database, "--table-name", table), &answer)
	return answer.Partitions
}

// partitionEntries compares entry.json with get-partition, and looks for the SerDe
// of each format in it.
func (w *world) partitionEntries(t *testing.T) {
	c := comparison{world: w}
	add := func(table, dir string, values ...string) {
		database, name, _ := strings.Cut(table, "/")
		command := []string{"get-partition", "--database-name", database, "--table-name", name, "--partition-values"}
		c.add(t, path.Join(table, dir, ".lakefs/entry.json"), append(command, values...)...)
	}
	add("wr/orders", "dt=2026-01-01/region=a%2Fb%3Ac%3Dd%25", "2026-01-01", "a/b:c=d%")
	add("wr/orders", "dt=2026-01-02/region=us west", "2026-01-02", "us west")
	add("wr/orders_csv", "dt=2026-01-02", "2026-01-02")
	add("hand/spread", "dt=2026-01-02", "2026-01-02")
	add("hand/spark_csv", "dt=2026-01-01", "2026-01-01")
	serdes := map[string]string{"2026-01-01": "ParquetHiveSerDe", "2026-01-02": "AvroSerDe", "2026-01-03": "OrcSerde"}
	for _, dt := range slices.Sorted(maps.Keys(serdes)) {
		add("hand/formats", "dt="+dt, dt)
	}
	c.check(t)
	for dt, serde := range serdes {
		got := w.sh(t, "jq -r .Partition.StorageDescriptor.SerdeInfo.SerializationLibrary hand/formats/dt="+dt+"/.lakefs/entry.json")
		if !strings.HasSuffix(got, "."+serde+"\n") {
			t.Errorf("the SerDe of %s is %s, want %s", dt, got, serde)
		}
	}
}

func (w *world) multiFormat(t *testing.T) {
	for table, want := range map[string]string{"hand/formats": "true", "hand/spread": "false", "wr/orders": "false"} {
		if got := w.sh(t, "jq .catalog.hasMultiFormatPartitions "+table+"/.lakefs/status.json"); got != want+"\n" {
			t.Errorf("hasMultiFormatPartitions of %s is %s, want %s", table, got, want)
		}
	}
	const hive = "org.apache.hadoop.hive.ql.io."
	var formats map[string]int
	decode(t, w.sh(t, "jq .catalog.formats hand/formats/.lakefs/status.json"), &formats)
	want := map[string]int{hive + "avro.AvroContainerInputFormat": 1, hive + "orc.OrcInputFormat": 1, hive + "parquet.MapredParquetInputFormat": 1}
	if !maps.Equal(formats, want) {
		t.Errorf("formats are %v, want %v", formats, want)
	}
}

// files compares each file below each location of the catalog with its object.
func (w *world) files(t *testing.T) {
	bucket := w.lake.Catalog.Buckets[0]
	w.compareFiles(t, "wr/flat", "s3://"+bucket+"/wr/flat/")
	w.compareFiles(t, "hand/delta", "s3://"+bucket+"/hand/delta/")
	w.compareFiles(t, "ice/events", "s3://"+bucket+"/iceberg/ice.db/events/")
	for table, keys := range map[string][]string{
		"wr/orders": {"dt", "region"}, "wr/orders_csv": {"dt"}, "wr/orders_orc": {"dt"}, "hand/spread": {"dt"}, "hand/formats": {"dt"}, "hand/spark_csv": {"dt"},
	} {
		database, name, _ := strings.Cut(table, "/")
		partitions := w.registered(t, database, name)
		if len(partitions) == 0 {
			t.Errorf("%s has no partitions", table)
		}
		for _, p := range partitions {
			dir := table
			for i, key := range keys {
				dir += "/" + key + "=" + strings.NewReplacer("/", "%2F", ":", "%3A", "=", "%3D", "%", "%25").Replace(p.Values[i])
			}
			w.compareFiles(t, dir, p.StorageDescriptor.Location)
		}
	}
}

// compareFiles holds the files below a directory of the mount to be the objects
// below a location.
func (w *world) compareFiles(t *testing.T, dir, location string) {
	t.Helper()
	server, _ := w.lake.Bucket()
	_, rest, _ := strings.Cut(location, "://")
	bucket, prefix, _ := strings.Cut(strings.TrimSuffix(rest, "/")+"/", "/")
	var want []string
	for _, key := range server.Keys(t, bucket, prefix) {
		name := strings.TrimPrefix(key, prefix)
		want = append(want, name)
		got, err := w.lake.ReadFile(path.Join(dir, name))
		if err != nil || got != string(server.Get(t, bucket, key)) {
			t.Errorf("%s of %s has other bytes than s3://%s/%s (%v)", name, dir, bucket, key, err)
		}
	}
	slices.Sort(want)
	got := strings.Fields(w.sh(t, fmt.Sprintf("cd %q && find . -type f -printf '%%P\\n' | LC_ALL=C sort", dir)))
	if !slices.Equal(got, want) {
		t.Errorf("%s has the files %q, want %q", dir, got, want)
	}
}

func (w *world) copiedOut(t *testing.T) {
	server, bucket := w.lake.Bucket()
	out := t.TempDir()
	for name, magic := range map[string]string{"dt=2026-01-02/data.avro": "Obj\x01", "dt=2026-01-03/000000_0": "ORC"} {
		copied := path.Join(out, path.Base(name))
		w.sh(t, fmt.Sprintf("cp hand/formats/%s %q", name, copied))
		want := string(server.Get(t, bucket, "hand/formats/"+name))
		if got := read(t, copied); got != want || !strings.HasPrefix(got, magic) {
			t.Errorf("%s was copied out with other bytes", name)
		}
	}
}

// engines compares what DuckDB and pyarrow find by path with what the writers say.
func (w *world) engines(t *testing.T) {
	var seen map[string]totalsOrKeys
	decode(t, w.python(t, "engines.py", w.lake.Root), &seen)
	checked := 0
	for what, got := range seen {
		engine, table, _ := strings.Cut(what, " ")
		if strings.Contains(table, " by ") {
			continue // below
		}
		if want, told := w.told[table]; !told || got.totals() != want {
			t.Errorf("%s finds %+v in %s, the writer wrote %+v", engine, got, table, want)
		}
		checked++
	}
	if checked != 12 {
		t.Errorf("%d tables were read, want 12: %v", checked, seen)
	}
	for what, want := range map[string]totalsOrKeys{
		"wr.orders by region":    {"a/b:c=d%": 6, "eu": 6, "us west": 6},
		"wr.projected by region": {"eu": 4, "us west": 4},
	} {
		for _, engine := range []string{"DuckDB", "pyarrow"} {
			if got := seen[engine+" "+what]; !maps.Equal(got, want) {
				t.Errorf("%s finds %v in %s, want %v", engine, got, what, want)
			}
		}
	}
}

// totalsOrKeys is an object of numbers: totals, or rows by a key's value.
type totalsOrKeys map[string]int64

func (o totalsOrKeys) totals() totals { return totals{o["rows"], o["sum"]} }
