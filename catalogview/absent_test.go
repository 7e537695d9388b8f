package catalogview

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestManyAbsentPartitionsAreLookedForByLists: who makes a thousand directories, some
// a second, looks for each before.
func TestManyAbsentPartitionsAreLookedForByLists(t *testing.T) {
	for name, there := range map[string]int{"new": 0, "of some": 300, "of many": 2500} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, c, _ := catalogView(t, nil)
				c.table("t", "s3://b/t", "dt:string")
				for i := range there {
					c.partition("t", fmt.Sprint("s3://b/t/dt=", i), fmt.Sprint(i))
				}
				requests := c.requests(func() {
					for i := range 1000 {
						wantAbsent(t, v, fmt.Sprintf("db/t/dt=new%d", i))
						pass(20 * time.Millisecond) // 20 s in all: one list a second
					}
				})
				single, lists := requests["partition"], requests["partitions"]
				if lists > 21 || there <= headSize && single > firstAbsent || single > 400 {
					t.Errorf("%d single requests, %d lists", single, lists)
				}
			})
		})
	}
}

// TestAPartitionOfAnotherIsSeenWhileManyAreAbsent: an absence is believed for the
// negative TTL, whatever told of it.
func TestAPartitionOfAnotherIsSeenWhileManyAreAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		for i := range 300 {
			name := fmt.Sprintf("new%d", i)
			wantAbsent(t, v, "db/t/dt="+name)
			c.partition("t", "s3://b/t/dt="+name, name) // another mount's
			pass(time.Second)
			if n := lookup(t, v, "db/t/dt="+name); !n.Registered {
				t.Fatalf("%s is not seen after the negative TTL", name)
			}
		}
	})
}

// TestARegistrationWhileAListIsLoadedIsInIt, though the catalog answered the list before.
func TestARegistrationWhileAListIsLoadedIsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string", "r:string")
		lookup(t, v, "db/t")
		for i, load := range []func(){
			func() { _, _ = list(t.Context(), v, "db/t") },
			func() { _, _ = list(t.Context(), v, "db/t/dt=1") },
			func() { _, _ = v.Lookup(t.Context(), "db/t/dt=2") },
			func() { _, _ = v.Lookup(t.Context(), "db/t/dt=3/r=3") },
		} {
			v.Refresh("")
			lookup(t, v, "db/t")
			release := make(chan struct{})
			c.setOn(func(_ context.Context, op string) error {
				if op == "partitions" || op == "partition" {
					<-release
					if op == "partition" {
						return objectstore.ErrNotExist // as it was when it was asked
					}
				}
				return nil
			})
			go load()
			synctest.Wait()
			key := fmt.Sprintf("t/dt=%d/r=%d/f", i, i)
			if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
				t.Fatal(err)
			}
			close(release)
			synctest.Wait()
			for _, dir := range []string{fmt.Sprintf("db/t/dt=%d/r=%d", i, i), fmt.Sprintf("db/t/dt=%d", i)} {
				if n := lookup(t, v, dir); !n.Registered {
					t.Errorf("%d: %s is not shown", i, dir)
				}
			}
		}
	})
}

// TestListsThatAreDeniedLeaveTheLookUps: the one is asked for then, and a silent catalog
// is an error.
func TestListsThatAreDeniedLeaveTheLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		answer := objectstore.ErrPermission
		c.setOn(func(_ context.Context, op string) error {
			if op == "partitions" {
				return answer
			}
			return nil
		})
		for i := range 50 {
			wantAbsent(t, v, fmt.Sprintf("db/t/dt=%d", i))
		}
		answer = objectstore.ErrUnavailable
		failed := 0
		for i := range 50 {
			_, err := v.Lookup(t.Context(), fmt.Sprintf("db/t/dt=more%d", i))
			switch {
			case errors.Is(err, objectstore.ErrUnavailable):
				failed++
			case !errors.Is(err, objectstore.ErrNotExist):
				t.Errorf("%d: %v", i, err)
			}
		}
		if failed == 0 || failed > 10 {
			t.Errorf("%d of 50 look-ups met a list that failed", failed)
		}
	})
}
