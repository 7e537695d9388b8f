package catalogview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// repaired runs a repair of db.t that must succeed.
func repaired(t *testing.T, v *View, how Repair) Repaired {
	t.Helper()
	const path = "db/t"
	done, err := v.Repair(t.Context(), path, how)
	if err != nil {
		t.Fatalf("repair: %v", err)
	}
	if done.Table != path || done.DryRun != how.DryRun {
		t.Errorf("repaired %q, dry run %v", done.Table, done.DryRun)
	}
	return done
}

func skipped(all []RepairedSkipped) map[string]string {
	m := make(map[string]string)
	for _, s := range all {
		m[s.Path] = s.Reason
	}
	return m
}

// TestRepairAddsWhatTheCatalogLacks, at every level, by all rules of names, and nothing
// else: a dry run nothing at all, and a second run nothing more.
func TestRepairAddsWhatTheCatalogLacks(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:int", "r:string")
	c.partition("t", "s3://b/t/dt=1/r=eu", "1", "eu")
	for _, key := range []string{
		"dt=1/r=eu/f", "dt=1/r=us/f", "dt=2/r=a%2Fb%3Ac%3Dd%25/f", "Dt=3/R=x/f", "dt=4/r=" + table.HiveNull + "/f", "dt=5/r=a=b/f",
		"dt=x/r=eu/f", "notes/r=eu/f", "dt=6/notes/f", "dt=7/f", "_tmp/dt=8/f", "dt=9/r=_/f", "dt=9/_r=_/f", "dt=9/.hidden/f", "_SUCCESS", "dt=1_$folder$",
		"dt=10/r=\xff/f", "dt=2/r=eu/sub/dt=99/r=99/f",
	} {
		s.set("t/"+key, "x")
	}
	want := []string{"Dt=3/R=x", "dt=1/r=us", "dt=2/r=a%2Fb%3Ac%3Dd%25", "dt=2/r=eu", "dt=4/r=" + table.HiveNull, "dt=5/r=a=b", "dt=9/r=_"}
	before := maps.Clone(c.partitions["t"])
	var looked, missing, registered int
	progress := func(l, m, r int) { looked, missing, registered = max(looked, l), max(missing, m), max(registered, r) }
	dry := repaired(t, v, Repair{DryRun: true, Progress: progress})
	if !slices.Equal(dry.Added, want) || dry.Missing != 7 || dry.Looked != 8 || dry.Registered != 0 || len(c.partitions["t"]) != len(before) {
		t.Errorf("dry run: %+v, the catalog has %v", dry, c.partitions["t"])
	}
	if looked != 8 || missing != 7 || registered != 0 {
		t.Errorf("progress: %d, %d, %d", looked, missing, registered)
	}
	for _, path := range []string{"dt=x", "notes", "dt=6/notes", "_tmp", "dt=9/.hidden", "dt=9/_r=_", "dt=10/r=\xff"} {
		if skipped(dry.Skipped)[path] == "" {
			t.Errorf("%q is not among those that were skipped: %v", path, dry.Skipped)
		}
	}
	done := repaired(t, v, Repair{Progress: progress})
	if !slices.Equal(done.Added, want) || done.Registered != 7 || len(done.Failed) != 0 || registered != 7 {
		t.Errorf("repair: %+v, progress %d", done, registered)
	}
	for values, location := range map[[2]string]string{
		{"1", "eu"}: "dt=1/r=eu", {"2", "a/b:c=d%"}: "dt=2/r=a%2Fb%3Ac%3Dd%25", {"3", "x"}: "Dt=3/R=x", {"4", table.HiveNull}: "dt=4/r=" + table.HiveNull, {"5", "a=b"}: "dt=5/r=a=b",
	} {
		if p := c.partitions["t"][valuesKey(values[:])]; p.Location != "s3://b/t/"+location {
			t.Errorf("%q is registered as %+v", values, p)
		}
	}
	for _, path := range []string{"db/t/dt=1/r=us", "db/t/Dt=3/R=x"} {
		if n := lookup(t, v, path); !n.Registered {
			t.Errorf("%s is not shown as registered at once", path)
		}
	}
	wantRequests(t, "a second repair", c.requests(func() {
		if again := repaired(t, v, Repair{}); again.Missing != 0 || len(again.Added) != 0 || again.Looked != 8 {
			t.Errorf("a second repair: %+v", again)
		}
	}), map[string]int{"partitions": 1})
}

// TestCase44RepairTakesNoOtherPartitionsFilesForItsOwn: a custom location, one that
// writers did not escape, one below or above, a name that stands for the same, and one
// that is leaving are not registered once more.
func TestCase44RepairTakesNoOtherPartitionsFilesForItsOwn(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "k:int", "r:string")
	c.partition("t", "s3://b/elsewhere", "1", "moved")
	c.partition("t", "s3://b/t/k=2/r=a/b:c", "2", "a/b:c")
	c.partition("t", "s3://b/t/k=3/", "3", "all")
	c.partition("t", "s3://b/t/k=4/r=named", "4", "otherwise")
	c.partition("t", "s3://b/t/k=5/r=x", "5", "x")
	c.partition("t", "s3://b/t/k=6/r=gone", "6", "gone")
	c.partition("t", "ftp://refused", "7", "x")
	for _, dir := range []string{
		"k=1/r=moved", "k=2/r=a/b:c", "k=3/r=x", "k=4/r=named", "k=05/r=x", "k=6/r=gone", "k=7/r=x", "k=8/r=new", "k=08/r=new",
	} {
		s.set("t/"+dir+"/f", "x")
	}
	lookup(t, v, "db/t/k=6/r=gone")
	v.Leave("db/t/k=6/r=gone")
	done := repaired(t, v, Repair{})
	if !slices.Equal(done.Added, []string{"k=8/r=new"}) || done.Registered != 1 {
		t.Errorf("added %q, want k=8/r=new, the shorter of two that are equal", done.Added)
	}
	for path, why := range map[string]string{
		"k=1/r=moved": "s3://b/elsewhere", "k=2/r=a": "another partition", "k=3/r=x": "another partition", "k=4/r=named": "another partition",
		"k=05/r=x": `"k=5/r=x"`, "k=08/r=new": `"k=8/r=new"`, "k=6/r=gone": "removed",
	} {
		if got := skipped(done.Skipped)[path]; !strings.Contains(got, why) {
			t.Errorf("%s: skipped for %q, want %q", path, got, why)
		}
	}
}

// TestEdge9RepairOf101 is two requests; what is refused of one is told of that one.
func TestEdge9RepairOf101(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	for i := range 101 {
		s.set(fmt.Sprintf("t/dt=%03d/f", i), "x")
	}
	calls := 0
	c.setOn(func(_ context.Context, op string) error {
		if op != "register" {
			return nil
		}
		if calls++; calls == 2 {
			return errors.New("no more partitions")
		}
		return nil
	})
	wantRequests(t, "repair", c.requests(func() {
		done := repaired(t, v, Repair{})
		if done.Missing != 101 || done.Registered != 100 || len(done.Failed) != 1 || done.Failed[0].Path != "dt=100" || !strings.Contains(done.Failed[0].Reason, "no more partitions") {
			t.Errorf("missing %d, registered %d, failed %v", done.Missing, done.Registered, done.Failed)
		}
	}), map[string]int{"table": 1, "partitions": 1, "register": 2})
	if done := repaired(t, v, Repair{}); done.Missing != 1 || done.Registered != 1 {
		t.Errorf("a second repair: %+v", done)
	}
}

// TestRepairWhereTheCatalogRefusesAll asks it once, and tells of all.
func TestRepairWhereTheCatalogRefusesAll(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	for i := range 250 {
		s.set(fmt.Sprintf("t/dt=%03d/f", i), "x")
	}
	c.setOn(func(_ context.Context, op string) error {
		if op == "register" {
			return objectstore.ErrPermission
		}
		return nil
	})
	n := c.requests(func() {
		if done := repaired(t, v, Repair{}); done.Registered != 0 || done.Missing != 250 || len(done.Failed) != 250 {
			t.Errorf("missing %d, registered %d, failed %d", done.Missing, done.Registered, len(done.Failed))
		}
	})["register"]
	if n != 1 {
		t.Errorf("%d requests to register, want one", n)
	}
}

// TestCase39RepairNeverTakesAFailedListingForAnEmptyOne: neither the store's, at any
// level, nor the catalog's.
func TestCase39RepairNeverTakesAFailedListingForAnEmptyOne(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "r:string")
	for i := range 40 {
		s.set(fmt.Sprintf("t/dt=%d/r=1/f", i), "x")
	}
	broken := errors.New("connection reset")
	for _, prefix := range []string{"t/", "t/dt=17/"} {
		s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
			if op == "list" && loc.Key == prefix {
				return broken
			}
			return nil
		})
		if done, err := v.Repair(t.Context(), "db/t", Repair{}); !errors.Is(err, broken) || done.Registered != 0 || len(c.partitions["t"]) != 0 {
			t.Errorf("%s: %+v, %v", prefix, done, err)
		}
	}
	s.setOn(nil)
	c.setOn(func(_ context.Context, op string) error {
		if op == "partitions" {
			return broken
		}
		return nil
	})
	if done, err := v.Repair(t.Context(), "db/t", Repair{}); !errors.Is(err, broken) || len(c.partitions["t"]) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.setOn(nil)
	if _, err := v.Repair(ctx, "db/t", Repair{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestRepairIsRefusedWhereNothingIsRegistered(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("flat", "s3://b/flat")
	c.table("files", "s3://b/files", "dt:string")
	c.tables["files"].Partitions = table.PartitionsOnDisk
	c.table("projected", "s3://b/projected", "dt:string")
	c.tables["projected"].Partitions = table.PartitionsProjected
	for name, why := range map[string]string{"flat": "no partition keys", "files": "partitionProvider", "projected": "projection.enabled"} {
		if _, err := v.Repair(t.Context(), "db/"+name, Repair{}); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", name, err, why)
		}
	}
	for _, path := range []string{"", "db", "db/none", "db/files/dt=1"} {
		if _, err := v.Repair(t.Context(), path, Repair{}); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("%q: %v, want ErrNotExist", path, err)
		}
	}
	off, c, s := catalogView(t, func(o *Options) { o.Register = false })
	c.table("t", "s3://b/t", "dt:string")
	s.set("t/dt=1/f", "x")
	if _, err := off.Repair(t.Context(), "db/t", Repair{}); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "catalog-writes") {
		t.Errorf("a mount that registers nothing: %v", err)
	}
	if done := repaired(t, off, Repair{DryRun: true}); done.Missing != 1 {
		t.Errorf("a dry run of a mount that registers nothing: %+v", done)
	}
}

// TestRepairSettlesWhatFailedBefore, and what is told of it.
func TestRepairSettlesWhatFailedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		c.setOn(func(_ context.Context, op string) error {
			if op == "register" {
				return objectstore.ErrPermission
			}
			return nil
		})
		s.set("t/dt=1/f", "x")
		s.set("t/dt=1/sub/f", "x")
		for _, key := range []string{"t/dt=1/f", "t/dt=1/sub/f"} {
			if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); !errors.Is(err, objectstore.ErrPermission) {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"", "db", "db/t", "db/t/dt=1"} {
			left := v.Unregistered(dir)
			if len(left) != 1 || left[0].Path != "db/t/dt=1" || !strings.Contains(left[0].Reason, "permission") || left[0].Since.IsZero() {
				t.Errorf("%q: %+v", dir, left)
			}
		}
		if left := v.Unregistered("db/t/dt=10"); len(left) != 0 {
			t.Errorf("another's: %+v", left)
		}
		c.setOn(nil)
		if done := repaired(t, v, Repair{}); done.Registered != 1 || len(v.Unregistered("")) != 0 {
			t.Errorf("%+v, left %+v", done, v.Unregistered(""))
		}
	})
}
