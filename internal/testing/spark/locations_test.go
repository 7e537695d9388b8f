package spark_test

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// entry is of a partition in the catalog what must survive an overwrite.
type entry struct {
	Values            []string
	Parameters        map[string]string
	StorageDescriptor json.RawMessage
}

// own is a table in Glue whose partitions lie where they like: k=a and k=b at Locations
// of their own, k=c below the table.
type own struct {
	*tab
	places map[string]string // Location by value
}

// locations: overwrites and appends go where the catalog says, and change no entry that
// they write to (case 75).
func (w *world) locations(t *testing.T) {
	lake := mounttest.Mount(t, mounttest.Options{Timeout: lakeTimeout, Flags: []string{"--write=delete"}, Glue: &mounttest.Glue{Buckets: 2, Tables: []mounttest.GlueTable{{
		Table: mounttest.Table{Database: "spark", Name: "own", Keys: []string{"k"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"a"}, Location: "s3://{1}/old/first", Parameters: map[string]string{"owner": "a"}, Files: map[string]string{"old.parquet": mounttest.Parquet(t, 2)}},
			{Values: []string{"b"}, Location: "s3://{0}/elsewhere/k=b", Parameters: map[string]string{"owner": "b"}, Files: map[string]string{"old.parquet": mounttest.Parquet(t, 1)}},
			{Values: []string{"c"}, Parameters: map[string]string{"owner": "c"}, Files: map[string]string{"old.parquet": mounttest.Parquet(t, 1)}},
		},
	}}}})
	o := &own{
		tab: w.table(&place{name: "glue", root: lake.Path("spark"), lake: lake, arrow: w.arrow}, "own", "parquet"),
		places: map[string]string{
			"a": lake.Catalog.Buckets[1] + "/old/first",
			"b": lake.Catalog.Buckets[0] + "/elsewhere/k=b",
		},
	}
	for _, k := range []string{"c", "d", "e"} {
		o.places[k] = lake.Catalog.Buckets[0] + "/" + lake.Key("spark/own/k="+k)
	}
	server, _ := lake.Bucket()
	var watchers []*folderwatch.Watcher
	for _, bucket := range lake.Catalog.Buckets {
		watchers = append(watchers, folderwatch.Watch(t, server.Dir(bucket)))
	}
	o.want = []row{{0.0, "name", "a"}, {1.0, "name", "a"}, {0.0, "name", "b"}, {0.0, "name", "c"}}
	before := o.entries(t)

	j := o.job("write")
	j.Algorithm, j.Mode, j.Rows = "1", "append", rows(100, "a", "d")
	o.step(t, before, j, "a", "b", "c", "d")
	j.Mode, j.Dynamic, j.Rows = "overwrite", true, rows(200, "a", "c", "e")
	o.step(t, before, j, "a", "b", "c", "d", "e")
	j.Algorithm, j.Dynamic, j.Rows = "2", false, rows(300, "a", "b", "a", "b")
	o.step(t, before, j, "a", "b")
	lake.Unmount()
	if entries := o.entries(t); len(entries) != 2 {
		t.Errorf("partitions that the overwrite left out are still registered: %v", entries)
	}
	for _, w := range watchers {
		for seen := range w.Take() {
			if strings.Contains(seen, "_temporary") || strings.Contains(seen, ".spark-staging") || strings.HasSuffix(seen, ".crc") {
				t.Errorf("%q was seen in a bucket", seen)
			}
		}
	}
}

// entries are those of the partitions, by value.
func (o *own) entries(t *testing.T) map[string]entry {
	t.Helper()
	var answer struct{ Partitions []entry }
	must(t, json.Unmarshal(o.lake.Catalog.Call("GetPartitions", map[string]string{"DatabaseName": "spark", "TableName": "own"}), &answer))
	entries := map[string]entry{}
	for _, e := range answer.Partitions {
		entries[e.Values[0]] = e
	}
	return entries
}

// step runs a job after which the partitions with these values are to have rows.
func (o *own) step(t *testing.T, before map[string]entry, j job, values ...string) {
	t.Helper()
	o.spark.must(t, j, nil)
	o.expect(j)
	for _, rows := range []struct {
		by  string
		got []row
	}{{"Spark by the mount", o.bySpark(t)}, {"pyarrow at the Locations", o.byLocation(t, values)}} {
		if !reflect.DeepEqual(rows.got, o.want) {
			t.Errorf("%s %v: %s reads\n%v\nwant\n%v", j.Mode, values, rows.by, rows.got, o.want)
		}
	}
	entries := o.entries(t)
	for _, k := range values {
		e, found := entries[k]
		if !found {
			t.Errorf("%s: k=%s is not registered", j.Mode, k)
		}
		if was, old := before[k]; old && !reflect.DeepEqual(e, was) {
			t.Errorf("%s: the entry of k=%s is\n%s\nwas\n%s", j.Mode, k, text(e), text(was))
		}
	}
	server, bucket := o.lake.Bucket()
	for _, key := range server.Keys(t, bucket, o.lake.Key("spark/own")+"/") {
		if base := path.Base(key); strings.HasPrefix(base, "_temporary") || strings.HasSuffix(base, ".crc") ||
			strings.Contains(key, "/k=a/") || strings.Contains(key, "/k=b/") {
			t.Errorf("%s: the bucket has %q", j.Mode, key)
		}
	}
}

func text(e entry) string {
	return fmt.Sprintf("%v %v %s", e.Values, e.Parameters, e.StorageDescriptor)
}

func (o *own) bySpark(t *testing.T) (got []row) {
	t.Helper()
	o.spark.must(t, o.job("read"), &got)
	return ordered(got)
}

// byLocation reads each partition at its place.
func (o *own) byLocation(t *testing.T, values []string) (got []row) {
	t.Helper()
	server, _ := o.lake.Bucket()
	for _, k := range values {
		var rows []row
		o.arrow.must(t, job{
			Path: o.places[k], Format: o.format, Flat: true, Endpoint: server.Endpoint, Access: server.Access, Secret: server.Secret,
		}, &rows)
		for _, r := range rows {
			got = append(got, row{r[0], r[1], k})
		}
	}
	return ordered(got)
}

// ordered sorts rows of which several may have one id.
func ordered(rows []row) []row {
	slices.SortFunc(rows, func(x, y row) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	return rows
}
