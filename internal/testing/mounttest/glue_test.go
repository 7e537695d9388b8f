package mounttest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

// spread is a table with partitions of several kinds.
func spread() GlueTable {
	return GlueTable{
		Table: Table{Database: "db", Name: "spread", Format: "csv", Keys: []string{"dt:date", "k"}},
		Partitions: []GluePartition{
			{Values: []string{"2026-01-01", "a/b:c=d%"}, Files: map[string]string{"a.csv": "1,one\n"}},
			{Values: []string{"2026-01-02", "é x"}, Format: "orc", Location: "s3://{1}/else where/%41/", Files: map[string]string{"b": "ORC", "d/": ""}},
		},
	}
}

func TestGlueLakeHasItsEntriesAndFiles(t *testing.T) {
	lake := New(t, Options{Glue: &Glue{Buckets: 2, Tables: []GlueTable{spread()}}})
	c, server := lake.Catalog, lake.Catalog.server
	if got := c.Server.Requests(); len(got) != 0 {
		t.Errorf("requests are counted before the daemon makes any: %v", got)
	}
	if lake.Source != "glue:" || len(c.Buckets) != 2 || c.At("s3a://{1}/x/{0}") != "s3a://"+c.Buckets[1]+"/x/"+c.Buckets[0] {
		t.Errorf("source %q, buckets %q", lake.Source, c.Buckets)
	}
	var answer struct {
		Partitions []struct {
			Values            []string
			StorageDescriptor struct {
				Location, InputFormat string
				SerdeInfo             struct{ SerializationLibrary string }
			}
		}
	}
	if err := json.Unmarshal(c.Call("GetPartitions", `{"DatabaseName": "db", "TableName": "spread"}`), &answer); err != nil || len(answer.Partitions) != 2 {
		t.Fatalf("partitions are %+v, %v", answer, err)
	}
	first, second := answer.Partitions[0].StorageDescriptor, answer.Partitions[1].StorageDescriptor
	if want := "s3://" + c.Buckets[0] + "/wh/_data/db/spread/dt=2026-01-01/k=a%2Fb%3Ac%3Dd%25"; first.Location != want || !strings.HasSuffix(first.InputFormat, ".TextInputFormat") {
		t.Errorf("the first partition is %+v, want at %s", first, want)
	}
	if want := "s3://" + c.Buckets[1] + "/else where/%41/"; second.Location != want || !strings.HasSuffix(second.SerdeInfo.SerializationLibrary, ".OrcSerde") {
		t.Errorf("the second partition is %+v, want ORC at %s", second, want)
	}
	if got, err := lake.Stored("db/spread/dt=2026-01-01/k=a%2Fb%3Ac%3Dd%25/a.csv"); err != nil || got != "1,one\n" {
		t.Errorf("the first partition's file is %q, %v", got, err)
	}
	if got := server.Get(t, c.Buckets[1], "else where/%41/b"); string(got) != "ORC" || !server.Exists(t, c.Buckets[1], "else where/%41/d/") {
		t.Errorf("the second partition's file is %q", got)
	}
	if _, err := c.TryCall("GetTable", map[string]string{"DatabaseName": "db", "Name": "none"}); err == nil || !strings.Contains(err.Error(), "EntityNotFoundException") {
		t.Errorf("a table that is not there: %v", err)
	}
	if got := c.CLI("get-table", "--database-name", "db", "--name", "spread"); !strings.Contains(got, `"Name": "spread"`) || !strings.Contains(got, `+00:00"`) {
		t.Errorf("the AWS CLI prints %s", got)
	}
}

func TestGlueLakeIsMounted(t *testing.T) {
	lake := Mount(t, Options{Glue: &Glue{Buckets: 2, Tables: []GlueTable{spread()}}})
	if got := lake.MustSh("cd db/spread; cat dt=2026-01-01/*/a.csv dt=2026-01-02/*/b; jq -r .Table.Name ../spread.json"); got != "1,one\nORCspread\n" {
		t.Errorf("the mount has %q", got)
	}
	if lake.Catalog.Server.Requests()["GetTable"]+lake.Catalog.Server.Requests()["GetTables"] == 0 {
		t.Errorf("the mount asked for no table: %v", lake.Catalog.Server.Requests())
	}
	lake.Remount("--read-only")
	if err := lake.WriteFile("db/spread/dt=2026-01-01/k=a%2Fb%3Ac%3Dd%25/b", ""); err == nil {
		t.Error("a remount with --read-only can be written")
	}
	second := lake.Second()
	if got := second.MustSh("cat db/spread/dt=2026-01-01/*/a.csv"); got != "1,one\n" {
		t.Errorf("the second mount has %q", got)
	}
}

func TestHungCatalogFailsAtTheDeadline(t *testing.T) {
	r := &recorder{TB: t}
	lake := New(r, Options{Glue: &Glue{Buckets: 2, Tables: []GlueTable{spread()}}, Timeout: 4 * time.Second, Flags: []string{"--no-wait"}})
	lake.Catalog.Server.Fault(gluetest.Rule{Fault: gluetest.Hang()})
	lake.Start()
	err := lake.Do("list a database of a catalog that does not answer", func() error {
		_, err := os.ReadDir(lake.Path("db"))
		return err
	})
	r.end()
	if err == nil || !r.Failed() {
		t.Errorf("a catalog that hung: error %v, test failed: %v", err, r.Failed())
	}
	if lake.Mounted() {
		t.Error("still mounted after the test")
	}
}
