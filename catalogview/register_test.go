package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestCase44RegisteredWithoutObjectsAndTheReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		c.partition("t", "s3://b/t/dt=1", "1")
		c.partition("t", "s3://b/t/dt=empty", "empty")
		s.set("t/dt=1/f", "1")
		s.set("t/dt=unknown/f", "2")
		s.set("t/_SUCCESS", "")
		s.set("t/notes/f", "3")
		wantLs(t, v, "db/t", "_SUCCESS", "dt=1/", "dt=empty/", "notes/")
		wantLs(t, v, "db/t/dt=empty")
		wantLs(t, v, "db/t/dt=1", "f")
		wantLs(t, v, "db/t/dt=unknown", "f") // by name
		wantObject(t, v, "db/t/dt=unknown/f", "2")
		wantAbsent(t, v, "db/t/dt=none")
		for name, registered := range map[string]bool{"dt=1": true, "dt=empty": true, "dt=unknown": false, "notes": false} {
			if n := lookup(t, v, "db/t/"+name); n.Registered != registered || n.Kind != KindDirectory {
				t.Errorf("%s: registered %v (%s), want %v", name, n.Registered, n.Kind, registered)
			}
		}
		st, err := v.Status(t.Context(), "db/t")
		if err != nil || st.Partitions != 2 || st.PartitionsFrom != "catalog" || st.UnregisteredAll != 1 ||
			!slices.Equal(st.Unregistered, []string{"dt=unknown"}) || !slices.Equal(st.WithoutObjects, []string{"dt=empty"}) {
			t.Errorf("status: %+v, %v", st, err)
		}
	})
}

func TestRegisterAtThePublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3a://b/t/", "dt:string", "r:string")
		c.table("flat", "s3://b/flat")
		wantLs(t, v, "db/t")
		at := func(path string) objectstore.Location {
			t.Helper()
			target, err := v.Resolve(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			return target.Location
		}
		publish := func(path string) error {
			loc := at(path)
			v.Wrote(s.set(loc.Key, "x"))
			return v.Register(t.Context(), path, loc)
		}
		const dir = "db/t/dt=a%2Fb/r=eu"
		requests := c.requests(func() {
			for _, name := range []string{"f", "g", "_SUCCESS"} {
				if err := publish(dir + "/" + name); err != nil {
					t.Error(err)
				}
			}
		})
		if requests["register"] != 1 {
			t.Errorf("requests: %v, want one registration", requests)
		}
		if p := c.partitions["t"][valuesKey([]string{"a/b", "eu"})]; p.Location != "s3a://b/t/dt=a%2Fb/r=eu" {
			t.Errorf("registered: %+v", p)
		}
		wantLs(t, v, "db/t", "dt=a%2Fb/") // at once, though it was listed before
		wantLs(t, v, "db/t/dt=a%2Fb", "r=eu/")
		if n := lookup(t, v, dir); !n.Registered {
			t.Error("the new partition is not told to be registered")
		}
		none := c.requests(func() {
			for _, path := range []string{"db/flat/f", "db/t/f", "db/t/dt=1/f", "db/t/notes/x/f", "db/t/dt=1/r=2/_hidden/f", "db/t/dt=1/r=2/.f"} {
				if err := publish(path); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
		if none["register"] != 0 {
			t.Errorf("%d registrations of what is in no partition", none["register"])
		}
	})
}

func TestRegisterOfAnotherSpelling(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "Dt:string", "n:int")
	for path, want := range map[string]string{
		"Dt=a%20b/n=1": "s3://b/t/Dt=a%20b/n=1", "dt=%C3%A9/N=2": "s3://b/t/dt=%C3%A9/N=2", "Dt=%zz/n=3": "s3://b/t/Dt=%zz/n=3",
	} {
		loc := objectstore.Location{Bucket: "b", Key: "t/" + path + "/f"}
		v.Wrote(s.set(loc.Key, "x"))
		if err := v.Register(t.Context(), "db/t/"+path+"/f", loc); err != nil {
			t.Fatal(err)
		}
		values := []string{table.Unescape(path[3:strings.IndexByte(path, '/')]), path[len(path)-1:]}
		if p := c.partitions["t"][valuesKey(values)]; p.Location != want {
			t.Errorf("%s: registered %+v, want %s", path, p, want)
		}
		if n := lookup(t, v, "db/t/"+path); !n.Registered {
			t.Errorf("%s is gone under its name", path)
		}
	}
	bad := objectstore.Location{Bucket: "b", Key: "t/Dt=a/n=x/f"} // every expression on n would fail
	if err := v.Register(t.Context(), "db/t/Dt=a/n=x/f", bad); err != nil || len(c.partitions["t"]) != 3 {
		t.Errorf("a value that is no int: %v, %v", err, c.partitions["t"])
	}
}

func TestConcurrentRegistrationsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		lookup(t, v, "db/t")
		c.setOn(func(ctx context.Context, _ string) error {
			return slow(500*time.Millisecond)(ctx, "", objectstore.Location{})
		})
		wantRequests(t, "20 publishes", c.requests(func() {
			var g sync.WaitGroup
			for i := range 20 {
				g.Go(func() {
					key := fmt.Sprint("t/dt=1/", i)
					if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
						t.Error(err)
					}
				})
			}
			g.Wait()
		}), map[string]int{"register": 1})
	})
}

func TestAFailedRegistrationIsTriedAgainByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		denied := objectstore.ErrPermission
		c.setOn(func(_ context.Context, op string) error {
			if op == "register" {
				return denied
			}
			return nil
		})
		for _, key := range []string{"t/dt=1/f", "t/dt=1/g", "t/dt=2/f", "t/dt=nothing/f"} {
			if !strings.Contains(key, "nothing") { // as where a rename was refused
				s.set(key, "x")
			}
			if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); !errors.Is(err, objectstore.ErrPermission) {
				t.Errorf("%s: %v", key, err)
			}
		}
		wantRequests(t, "the first attempts", registrations(c, time.Minute), map[string]int{"register": 1}) // after 30 s, two in one
		wantRequests(t, "the next", registrations(c, time.Minute), map[string]int{"register": 1})           // after 60 s more
		synctest.Wait()
		denied = nil
		wantRequests(t, "the last", registrations(c, time.Hour), map[string]int{"register": 1})
		if len(c.partitions["t"]) != 2 {
			t.Errorf("registered: %v", c.partitions["t"])
		}
		wantRequests(t, "and no more", registrations(c, time.Hour), map[string]int{})
	})
}

func registrations(c *fakeCatalog, d time.Duration) map[string]int {
	all := c.requests(func() { pass(d) })
	delete(all, "partition")
	delete(all, "table")
	return all
}

func TestRegisterWhileAListingIsRead(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	register := func(value string) {
		t.Helper()
		if err := v.Register(t.Context(), "db/t/dt="+value+"/f", objectstore.Location{Bucket: "b", Key: "t/dt=" + value + "/f"}); err != nil {
			t.Fatal(err)
		}
	}
	wantLs(t, v, "db/t")
	register("1")
	n := 0
	for _, err := range v.ReadDir(t.Context(), "db/t") {
		if err != nil {
			t.Fatal(err)
		}
		n++
		register("2")
	}
	if n != 1 {
		t.Errorf("%d names, want the one that was there", n)
	}
	wantLs(t, v, "db/t", "dt=1/", "dt=2/")
}

func TestRegisterFailsAndIsTriedAgain(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	loc := objectstore.Location{Bucket: "b", Key: "t/dt=1/f"}
	c.setOn(func(_ context.Context, op string) error {
		if op == "register" {
			return objectstore.ErrUnavailable
		}
		return nil
	})
	for range 2 {
		if err := v.Register(t.Context(), "db/t/dt=1/f", loc); !errors.Is(err, objectstore.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
	}
	c.setOn(nil)
	if err := v.Register(t.Context(), "db/t/dt=1/f", loc); err != nil || len(c.partitions["t"]) != 1 {
		t.Errorf("at last: %v, %v", err, c.partitions["t"])
	}
}

func TestCase53APartitionRegisteredElsewhereIsKept(t *testing.T) {
	var log strings.Builder
	v, c, _ := catalogView(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	c.table("t", "s3://b/t", "dt:string")
	c.elsewhere = "s3://other/x"
	loc := objectstore.Location{Bucket: "b", Key: "t/dt=1/f"}
	for range 2 {
		if err := v.Register(t.Context(), "db/t/dt=1/f", loc); err != nil {
			t.Error(err)
		}
	}
	if p := c.partitions["t"]["1"]; p.Location != "s3://other/x" || strings.Count(log.String(), "another location") != 1 {
		t.Errorf("partition %+v, log:\n%s", p, log.String())
	}
}

func TestNoRegistrationWithoutTheOption(t *testing.T) {
	v, c, _ := catalogView(t, func(o *Options) { o.Register = false })
	c.table("t", "s3://b/t", "dt:string")
	if err := v.Register(t.Context(), "db/t/dt=1/f", objectstore.Location{Bucket: "b", Key: "t/dt=1/f"}); err != nil || len(c.partitions["t"]) != 0 {
		t.Errorf("%v, %v", err, c.partitions["t"])
	}
}
