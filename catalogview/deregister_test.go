package catalogview

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// leavingView is a view of db.t with the partitions 1/x (with an object), 1/y and 2/x.
func leavingView(t *testing.T) (*View, *fakeCatalog, *pageStore) {
	t.Helper()
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "k:string")
	c.partition("t", "s3://b/t/dt=1/k=x", "1", "x")
	c.partition("t", "s3://b/else/where", "1", "y")
	c.partition("t", "s3://b/t/dt=2/k=x", "2", "x")
	s.set("t/dt=1/k=x/f", "f")
	return v, c, s
}

func TestLeavingPartitionIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := leavingView(t)
		wantLs(t, v, "db/t", "dt=1/", "dt=2/")
		v.Leave("db/t/dt=2/k=x")
		v.Leave("db/t/dt=1/k=y")
		wantLs(t, v, "db/t", "dt=1/")
		wantLs(t, v, "db/t/dt=1", "k=x/")
		for _, path := range []string{"dt=2", "dt=2/k=x", "dt=2/k=x/f", "dt=1/k=y"} {
			wantAbsent(t, v, "db/t/"+path)
		}
		if st, err := v.Status(t.Context(), "db/t/dt=1"); err != nil || len(st.Leaving) != 1 || st.Leaving["k=y"].IsZero() {
			t.Errorf("status: %+v, %v", st, err)
		}
		target, err := v.Resolve(t.Context(), "db/t/dt=1/k=y/new")
		if err != nil || target.Location.Key != "else/where/new" {
			t.Errorf("what is written there goes to %+v, %v", target.Location, err)
		}
		if v.Stay(t.Context(), "db/t/dt=1") || !v.Stay(t.Context(), "db/t/dt=1/k=y/sub/f") || v.Stay(t.Context(), "db/t/dt=1/k=y") {
			t.Error("Stay takes back what the path lies in, once")
		}
		wantLs(t, v, "db/t/dt=1", "k=x/", "k=y/")
		if gone, err := v.Deregister(t.Context(), "db/t/dt=1/k=y"); gone || err != nil || len(c.partitions["t"]) != 3 {
			t.Errorf("Deregister of what stays: %v, %v", gone, err)
		}
	})
}

func TestDeregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := leavingView(t)
		wantLs(t, v, "db/t/dt=1", "k=x/", "k=y/")
		for path, want := range map[string]error{"db/t/dt=1/k=x": objectstore.ErrNotEmpty, "db/t/dt=1/k=y": nil, "db/t/dt=2/k=x": nil} {
			v.Leave(path)
			if gone, err := v.Deregister(t.Context(), path); gone != (want == nil) || !errors.Is(err, want) {
				t.Errorf("%s: %v, %v, want %v", path, gone, err, want)
			}
		}
		asked := c.requests(func() {
			wantLs(t, v, "db/t", "dt=1/")
			wantLs(t, v, "db/t/dt=1", "k=x/")
			wantLs(t, v, "db/t/dt=1/k=x", "f")
			wantAbsent(t, v, "db/t/dt=2")
		})
		if asked["partitions"] > 1 {
			t.Errorf("the list of partitions is asked for %d times after it is known", asked["partitions"])
		}
		if n := len(c.partitions["t"]); n != 1 {
			t.Errorf("the catalog has %d partitions, want one", n)
		}
		// As any new one, within the time that the list is trusted.
		loc := objectstore.Location{Bucket: "b", Key: "t/dt=2/k=x/f"}
		v.Wrote(s.set(loc.Key, "again"))
		if err := v.Register(t.Context(), "db/t/dt=2/k=x/f", loc); err != nil || len(c.partitions["t"]) != 2 {
			t.Errorf("registered again: %v, %d partitions", err, len(c.partitions["t"]))
		}
		wantLs(t, v, "db/t", "dt=1/", "dt=2/")
		wantLs(t, v, "db/t/dt=2", "k=x/")
		if err := c.Deregister(t.Context(), c.tables["t"], []string{"1", "x"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		v.Leave("db/t/dt=1/k=x")
		if gone, err := v.Deregister(t.Context(), "db/t/dt=1/k=x"); !gone || err != nil {
			t.Errorf("of one that another dropped: %v, %v", gone, err)
		}
	})
}

// TestDeregisterFails: it is shown again.
func TestDeregisterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := leavingView(t)
		c.setOn(func(_ context.Context, op string) error {
			if op == "deregister" {
				return objectstore.ErrUnavailable
			}
			return nil
		})
		const path = "db/t/dt=2/k=x"
		v.Leave(path)
		if gone, err := v.Deregister(t.Context(), path); gone || !errors.Is(err, objectstore.ErrUnavailable) {
			t.Errorf("%v, %v", gone, err)
		}
		wantLs(t, v, "db/t/dt=2", "k=x/")
		c.setOn(nil)
		s.setOn(func(context.Context, string, objectstore.Location) error { return objectstore.ErrUnavailable })
		v.Leave(path)
		if gone, err := v.Deregister(t.Context(), path); gone || !errors.Is(err, objectstore.ErrUnavailable) {
			t.Errorf("where the location cannot be listed: %v, %v", gone, err)
		}
		if lookup(t, v, path); len(c.partitions["t"]) != 3 {
			t.Error("what could not be looked at was deregistered")
		}
	})
}
