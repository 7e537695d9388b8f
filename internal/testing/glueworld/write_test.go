package glueworld_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	must(t, err)
	return string(raw)
}

// added are Parquet files with one row each, by id, in a folder.
func (w *world) added(t *testing.T, ids ...string) string {
	t.Helper()
	dir := t.TempDir()
	w.python(t, "add.py", append([]string{dir}, ids...)...)
	return dir
}

// partition is the entry of a partition of wr.orders by the CLI.
func (w *world) partition(t *testing.T, values ...string) string {
	t.Helper()
	return w.aws(t, append([]string{"get-partition", "--database-name", "wr", "--table-name", "orders", "--partition-values"}, values...)...)
}

// registers writes through the mount into a table of awswrangler, and reads it by
// the catalog with awswrangler.
func (w *world) registers(t *testing.T) {
	files := w.added(t, "100", "101")
	before := len(w.registered(t, "wr", "orders"))
	w.sh(t, fmt.Sprintf("mkdir -p 'wr/orders/dt=2026-02-01/region=eu%%2Fx y'; cp %s/100.parquet 'wr/orders/dt=2026-02-01/region=eu%%2Fx y/'", files))
	entry := w.partition(t, "2026-02-01", "eu/x y")
	w.checkRegistered(t, entry)
	c := comparison{world: w}
	c.add(t, "wr/orders/dt=2026-02-01/region=eu%2Fx y/.lakefs/entry.json", "get-partition", "--database-name", "wr", "--table-name", "orders", "--partition-values", "2026-02-01", "eu/x y")
	c.check(t)

	w.sh(t, fmt.Sprintf("cp %s/101.parquet 'wr/orders/dt=2026-02-01/region=eu%%2Fx y/'", files))
	if again := w.partition(t, "2026-02-01", "eu/x y"); again != entry {
		t.Errorf("a second file changed the entry: %s, was %s", again, entry)
	}
	if n := len(w.registered(t, "wr", "orders")); n != before+1 {
		t.Errorf("%d partitions are registered, want one more than %d", n, before)
	}
	var ids []int
	decode(t, w.python(t, "read.py", w.lake.Catalog.Endpoint, w.endpoint(), "wr", "orders", "2026-02-01"), &ids)
	if !slices.Equal(ids, []int{100, 101}) {
		t.Errorf("awswrangler finds the ids %v by the catalog, want 100 and 101", ids)
	}
}

func (w *world) registersNothing(t *testing.T) {
	files := w.added(t, "102")
	before := len(w.registered(t, "wr", "orders"))
	w.sh(t, fmt.Sprintf("mkdir -p wr/orders/dt=2026-02-02/region=eu; cp %s/102.parquet wr/orders/dt=2026-02-02/region=eu/", files))
	if n := len(w.registered(t, "wr", "orders")); n != before {
		t.Errorf("%d partitions are registered, want %d", n, before)
	}
	server, bucket := w.lake.Bucket()
	if got := server.Get(t, bucket, "wr/orders/dt=2026-02-02/region=eu/102.parquet"); string(got) != read(t, filepath.Join(files, "102.parquet")) {
		t.Error("the file is not published as it is")
	}
}

// descriptor is a StorageDescriptor with all its fields.
type descriptor map[string]any

// checkRegistered holds a new partition's descriptor to be the table's, at the
// location below it.
func (w *world) checkRegistered(t *testing.T, entry string) {
	t.Helper()
	_, bucket := w.lake.Bucket()
	var of struct {
		Partition, Table struct{ StorageDescriptor descriptor }
	}
	decode(t, entry, &of)
	decode(t, w.aws(t, "get-table", "--database-name", "wr", "--name", "orders"), &of)
	got, table := of.Partition.StorageDescriptor, of.Table.StorageDescriptor
	if want := "s3://" + bucket + "/wr/orders/dt=2026-02-01/region=eu%2Fx y"; strings.TrimSuffix(fmt.Sprint(got["Location"]), "/") != want {
		t.Errorf("the new partition is at %s, want %s", got["Location"], want)
	}
	delete(got, "Location")
	delete(table, "Location")
	if len(table) == 0 || !reflect.DeepEqual(got, table) {
		t.Errorf("the new partition has the descriptor %v, the table %v", got, table)
	}
}

// TestASecondFileIsNoSecondRegistration counts requests.
func TestASecondFileIsNoSecondRegistration(t *testing.T) {
	lake := mounttest.Mount(t, mounttest.Options{Glue: &mounttest.Glue{Tables: []mounttest.GlueTable{{
		Table: mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{"dt:date"}},
	}}}})
	lake.MustSh("mkdir db/t/dt=2026-01-01; echo 1,a > db/t/dt=2026-01-01/a; echo 2,b > db/t/dt=2026-01-01/b; cp db/t/dt=2026-01-01/b db/t/dt=2026-01-01/c")
	requests := lake.Catalog.Server.Requests()
	if n := requests["CreatePartition"] + requests["BatchCreatePartition"]; n != 1 {
		t.Errorf("%d registrations, want one: %v", n, requests)
	}
	lake.Remount("--catalog-writes=none")
	lake.Catalog.Server.Reset()
	lake.MustSh("mkdir db/t/dt=2026-01-02; echo 1,a > db/t/dt=2026-01-02/a")
	requests = lake.Catalog.Server.Requests()
	if n := requests["CreatePartition"] + requests["BatchCreatePartition"]; n != 0 {
		t.Errorf("%d registrations with --catalog-writes=none: %v", n, requests)
	}
}
