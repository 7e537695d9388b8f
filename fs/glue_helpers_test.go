package fs_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// inCatalog is db.t of CSV files, whose partitions are in a Glue catalog: dt=1
// with a file, dt=2 with one in another bucket, and dt=3 without any. Old objects
// lie where dt=2 would be.
func inCatalog() mounttest.GlueTable {
	return mounttest.GlueTable{
		Table: mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{"dt:int"}, Files: map[string]string{"dt=2/old": "old\n"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"1"}, Files: map[string]string{"a": "1,one\n"}},
			{Values: []string{"2"}, Location: "s3://{1}/else/where", Files: map[string]string{"b": "2,two\n"}},
			{Values: []string{"3"}},
		},
	}
}

// twoKeys is db.two, whose partitions have two keys.
func twoKeys() mounttest.GlueTable {
	return mounttest.GlueTable{
		Table: mounttest.Table{Database: "db", Name: "two", Format: "csv", Keys: []string{"dt:int", "k"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"1", "x"}, Files: map[string]string{"f": "x\n", "sub/g": "g\n"}},
			{Values: []string{"1", "y"}, Location: "s3://{1}/", Files: map[string]string{"h": "y\n"}}, // a whole bucket
		},
	}
}

// mountGlue mounts a lake of these tables, in two buckets.
func mountGlue(t *testing.T, o mounttest.Options, tables ...mounttest.GlueTable) *mounttest.Lake {
	t.Helper()
	o.Glue = &mounttest.Glue{Buckets: 2, Tables: tables}
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Minute
	}
	return mounttest.Mount(t, o)
}

// wantRegistered asserts the values of a table's partitions, "1/x" of two keys.
func wantRegistered(t *testing.T, l *mounttest.Lake, name string, want ...string) {
	t.Helper()
	var answer struct{ Partitions []struct{ Values []string } }
	raw := l.Catalog.Call("GetPartitions", map[string]string{"DatabaseName": "db", "TableName": name})
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range answer.Partitions {
		got = append(got, strings.Join(p.Values, "/"))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the catalog has the partitions %q of %s, want %q", got, name, want)
	}
}

// inBucket is what the n-th bucket of the lake has under a key; "absent" if nothing.
func inBucket(t *testing.T, l *mounttest.Lake, n int, key string) string {
	t.Helper()
	server, _ := l.Bucket()
	if !server.Exists(t, l.Catalog.Buckets[n], key) {
		return "absent"
	}
	return string(server.Get(t, l.Catalog.Buckets[n], key))
}
