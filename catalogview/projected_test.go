package catalogview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// projectedTable puts a table with partition projection into a catalog.
func projectedTable(t *testing.T, c *fakeCatalog, location string, keys []string, parameters ...string) {
	t.Helper()
	columns := make([]string, len(keys))
	for i, k := range keys {
		name, typ, _ := strings.Cut(k, ":")
		columns[i] = fmt.Sprintf(`{"Name":%q,"Type":%q}`, name, typ)
	}
	pairs := []string{`"projection.enabled":"true"`}
	for _, p := range parameters {
		key, value, _ := strings.Cut(p, "|")
		pairs = append(pairs, fmt.Sprintf("%q:%q", key, value))
	}
	tab := table.ParseGlue("db", "t", fmt.Appendf(nil, `{"Name":"t","DatabaseName":"db","PartitionKeys":[%s],"Parameters":{%s},
		"StorageDescriptor":{"Location":%q,"InputFormat":"org.apache.hadoop.mapred.TextInputFormat"}}`,
		strings.Join(columns, ","), strings.Join(pairs, ","), location))
	if tab.Partitions != table.PartitionsProjected || !tab.Readable {
		t.Fatalf("the table: %+v", tab)
	}
	c.table("t", location)
	c.tables["t"] = tab
}

// Glue's own partitions of a projected table are ignored, and nothing is registered.
func TestCase50ProjectionByDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		projectedTable(t, c, "s3://b/t/", []string{"r:string", "n:int"},
			"projection.r.type|enum", "projection.r.values|eu,us", "projection.n.type|integer", "projection.n.range|0,23", "projection.n.digits|2")
		c.partition("t", "s3://b/elsewhere", "eu", "05")
		s.set("t/r=eu/n=05/f", "x")
		s.set("t/r=eu/n=5/g", "not its spelling")
		s.set("t/r=eu/n=24/g", "out of range")
		s.set("t/r=asia/n=01/g", "out of range")
		s.set("t/_SUCCESS", "")
		wantLs(t, v, "db/t", "_SUCCESS", "r=eu/")
		wantLs(t, v, "db/t/r=eu", "n=05/")
		wantObject(t, v, "db/t/r=eu/n=05/f", "x")
		wantLs(t, v, "db/t/r=us/n=00") // in range, and nothing there
		for _, path := range []string{"db/t/r=asia", "db/t/r=eu/n=5", "db/t/r=eu/n=24", "db/t/r=eu/n=24/g", "db/t/r=asia/n=01"} {
			wantAbsent(t, v, path)
		}
		for path, want := range map[string]error{"db/t/r=asia": table.ErrName, "db/t/r=us/n=24": table.ErrName, "db/t/r=us/n=7": table.ErrName, "db/t/r=us/n=07": nil} {
			if _, err := v.ResolveDirectory(t.Context(), path); !errors.Is(err, want) {
				t.Errorf("ResolveDirectory(%s): %v, want %v", path, err, want)
			}
		}
		loc := objectstore.Location{Bucket: "b", Key: "t/r=us/n=07/f"}
		target, err := v.Resolve(t.Context(), "db/t/r=us/n=07/f")
		if err != nil || target.Location != loc {
			t.Errorf("Resolve: %+v, %v, want %v", target, err, loc)
		}
		requests := c.requests(func() {
			if err := v.Register(t.Context(), "db/t/r=us/n=07/f", loc); err != nil {
				t.Error(err)
			}
		})
		wantRequests(t, "all of it", requests, map[string]int{})
	})
}

func TestCase50ProjectionByTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		projectedTable(t, c, "s3://b/t/", []string{"r:string", "day:string"},
			"projection.r.type|enum", "projection.r.values|eu,us", "projection.day.type|date", "projection.day.format|yyyy/MM/dd",
			"projection.day.range|1999/12/30,1999/12/31", "storage.location.template|s3://other/x/${r}/${day}")
		s.set("x/eu/1999/12/31/f", "x")
		s.set("t/r=eu/f", "not by the template")
		s.set("t/README", "r")
		wantLs(t, v, "db/t", "README", "r=eu/", "r=us/")
		wantLs(t, v, "db/t/r=eu", "day=1999%2F12%2F30/", "day=1999%2F12%2F31/")
		wantObject(t, v, "db/t/r=eu/day=1999%2F12%2F31/f", "x")
		wantLs(t, v, "db/t/r=us/day=1999%2F12%2F30")
		wantAbsent(t, v, "db/t/r=us/day=1999%2F12%2F29")
		if _, err := v.Resolve(t.Context(), "db/t/r=us/f"); !errors.Is(err, table.ErrName) {
			t.Errorf("Resolve beside partitions: %v, want ErrName", err)
		}
		target, err := v.Resolve(t.Context(), "db/t/r=us/day=1999%2F12%2F30/f")
		if want := (objectstore.Location{Bucket: "other", Key: "x/us/1999/12/30/f"}); err != nil || target.Location != want {
			t.Errorf("Resolve: %+v, %v, want %v", target, err, want)
		}
	})
}

func TestCase50NothingIsExpandedByTheMillion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands at the beginning of 2000
		v, c, _ := catalogView(t, nil)
		projectedTable(t, c, "s3://b/t/", []string{"m:string", "tenant:string"},
			"projection.m.type|date", "projection.m.format|yyyy-MM-dd-HH-mm", "projection.m.range|1970-01-01-00-00,NOW",
			"projection.m.interval|1", "projection.m.interval.unit|MINUTES", "projection.tenant.type|injected",
			"storage.location.template|s3://b/t/${m}/${tenant}/")
		names := ls(t, v, "db/t")
		if len(names) != maxProjected || !slices.Contains(names, "m=2000-01-01-00-00/") {
			t.Errorf("%d names, the newest among them: %v", len(names), slices.Contains(names, "m=2000-01-01-00-00/"))
		}
		st, err := v.Status(t.Context(), "db/t")
		const minutes = 30*365*24*60 + 7*24*60 + 1
		if err != nil || st.NotListed != minutes-maxProjected || st.PartitionsFrom != "projection" {
			t.Errorf("status: %+v, %v, want %d not listed", st, err, minutes-maxProjected)
		}
		wantLs(t, v, "db/t/m=1970-01-01-00-00")
		if st, err = v.Status(t.Context(), "db/t/m=1970-01-01-00-00"); err != nil || !st.Injected {
			t.Errorf("status above an injected key: %+v, %v", st, err)
		}
		wantLs(t, v, "db/t/m=1970-01-01-00-00/tenant=any%2Fone")
	})
}
