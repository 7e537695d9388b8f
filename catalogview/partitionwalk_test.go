package catalogview

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// walked is a view of a table of so many partitions, listed, and a second older than
// the listing is fresh.
func walked(t *testing.T, n int, keys ...string) (*View, *fakeCatalog) {
	t.Helper()
	v, c, _ := catalogView(t, func(o *Options) { o.TTL, o.NegativeTTL = 5*time.Second, time.Second })
	c.table("t", "s3://b/t", keys...)
	for i := range n {
		values := []string{fmt.Sprint("v", i), "w"}[:len(keys)]
		c.partition("t", fmt.Sprint("s3://b/t/", i), values...)
	}
	ls(t, v, "db/t")
	pass(6 * time.Second)
	return v, c
}

// TestAWalkAsksForTheListAgain: not for each partition of a list that is no longer
// fresh; and for a few not for the list.
func TestAWalkAsksForTheListAgain(t *testing.T) {
	for _, c := range []struct{ n, few, lists int }{{500, 1, 1}, {2500, 10, 1}} {
		synctest.Test(t, func(t *testing.T) {
			v, catalog := walked(t, c.n, "k:string")
			got := catalog.requests(func() {
				for i := range c.few {
					lookup(t, v, fmt.Sprint("db/t/k=v", i))
				}
			})
			if got["partition"] != c.few || got["partitions"] != 0 {
				t.Errorf("%d of %d partitions: %v", c.few, c.n, got)
			}
			got = catalog.requests(func() {
				for i := range c.n {
					lookup(t, v, fmt.Sprint("db/t/k=v", i))
				}
			})
			if got["partition"] > c.few || got["partitions"] != c.lists {
				t.Errorf("a walk through %d partitions: %v", c.n, got)
			}
			catalog.partition("t", "s3://b/t/new", "new")
			pass(2 * time.Second)
			lookup(t, v, "db/t/k=new")
		})
	}
}

// TestAWalkOfTwoLevels likewise, of the directories above partitions.
func TestAWalkOfTwoLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, catalog := walked(t, 500, "k:string", "l:string")
		got := catalog.requests(func() {
			for i := range 500 {
				lookup(t, v, fmt.Sprint("db/t/k=v", i))
				lookup(t, v, fmt.Sprint("db/t/k=v", i, "/l=w"))
			}
		})
		if got["partition"]+got["partitions"] > 4 {
			t.Errorf("a walk through 500 directories: %v", got)
		}
	})
}

// TestAListTellsOfWhatLiesBelow: the directories of a list that is fresh are listed
// from it, and those of an older one from a new one.
func TestAListTellsOfWhatLiesBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, catalog := walked(t, 500, "k:string", "l:string")
		below := func() {
			t.Helper()
			for i := range 500 {
				wantLs(t, v, fmt.Sprint("db/t/k=v", i), "l=w/")
				wantLs(t, v, fmt.Sprint("db/t/k=v", i, "/l=w"))
			}
		}
		if got := catalog.requests(below); got["partition"]+got["partitions"] > 4 {
			t.Errorf("below an old list: %v", got)
		}
		ls(t, v, "db/t")
		if got := catalog.requests(below); got["partition"]+got["partitions"] > 0 {
			t.Errorf("below a fresh list: %v", got)
		}
		pass(6 * time.Second)
		catalog.setOn(func(context.Context, string) error { return objectstore.ErrUnavailable })
		below()
		catalog.setOn(nil)
		pass(time.Second)
		catalog.partition("t", "s3://b/elsewhere", "v7", "x")
		wantLs(t, v, "db/t/k=v7", "l=w/", "l=x/")
		wantLs(t, v, "db/t/k=v8", "l=w/")
	})
}

// TestAListServesWhileTheCatalogIsSilent, of partitions that nobody asked for alone too.
func TestAListServesWhileTheCatalogIsSilent(t *testing.T) {
	for _, keys := range [][]string{{"k:string"}, {"k:string", "l:string"}} {
		synctest.Test(t, func(t *testing.T) {
			v, catalog := walked(t, 50, keys...)
			catalog.setOn(func(context.Context, string) error { return objectstore.ErrUnavailable })
			for i := range 50 {
				lookup(t, v, fmt.Sprint("db/t/k=v", i))
				if len(keys) > 1 {
					lookup(t, v, fmt.Sprint("db/t/k=v", i, "/l=w"))
				}
			}
			_, err := v.Lookup(t.Context(), "db/t/k=none")
			wantErr(t, "what the list does not have", err, objectstore.ErrUnavailable)
			pass(staleFactor * 5 * time.Second)
			if n, err := v.Lookup(t.Context(), "db/t/k=v7"); err == nil {
				t.Errorf("when the list is too old: got %+v", n)
			}
			catalog.setOn(nil)
			delete(catalog.partitions["t"], valuesKey([]string{"v7", "w"}[:len(keys)]))
			wantAbsent(t, v, "db/t/k=v7")
			wantAbsent(t, v, "db/t/k=v7/l=w")
		})
	}
}
