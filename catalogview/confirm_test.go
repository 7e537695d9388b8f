package catalogview

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// publishInto publishes one more file into dt=VALUE of db.t.
func publishInto(t *testing.T, v *View, s *pageStore, value, name string) {
	t.Helper()
	key := "t/dt=" + value + "/" + name
	v.Wrote(s.set(key, "x"))
	if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
}

// published is a view of db.t, with a file in each of n partitions that are registered,
// a second ago.
func published(t *testing.T, n int, change func(*Options)) (*View, *fakeCatalog, *pageStore) {
	t.Helper()
	v, c, s := catalogView(t, change)
	c.table("t", "s3://b/t", "dt:string")
	for i := range n {
		publishInto(t, v, s, fmt.Sprint(i), "first")
	}
	pass(time.Second)
	return v, c, s
}

func (c *fakeCatalog) dropped(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.partitions["t"], valuesKey([]string{value}))
}

func (c *fakeCatalog) has(value string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.partitions["t"][valuesKey([]string{value})]
	return there
}

// looks are the requests for partitions while d passes.
func looks(c *fakeCatalog, d time.Duration) map[string]int {
	all := c.requests(func() { pass(d) })
	delete(all, "table")
	return all
}

// TestDroppedElsewhereWithinTheTTL: the cache has it yet, so the publish asks nobody; it
// is registered again by itself.
func TestDroppedElsewhereWithinTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, nil)
		c.dropped("0")
		wantRequests(t, "the publish", c.requests(func() { publishInto(t, v, s, "0", "second") }), map[string]int{})
		wantRequests(t, "before the TTL is over", looks(c, 4*time.Second), map[string]int{})
		wantRequests(t, "then", looks(c, time.Minute), map[string]int{"partition": 1, "register": 1})
		if left := v.Unregistered(""); !c.has("0") || len(left) > 0 {
			t.Errorf("the catalog has %v, unregistered %+v", c.partitions["t"], left)
		}
	})
}

// TestWhatIsRegisteredIsConfirmedOnce, by one request, however many files came.
func TestWhatIsRegisteredIsConfirmedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, nil)
		wantRequests(t, "20 publishes", c.requests(func() {
			for i := range 20 {
				publishInto(t, v, s, "0", fmt.Sprint(i))
			}
		}), map[string]int{})
		wantRequests(t, "after them", looks(c, time.Hour), map[string]int{"partition": 1})
		// One that asks by itself, for its knowledge is too old, has nothing to confirm.
		wantRequests(t, "much later", c.requests(func() { publishInto(t, v, s, "0", "later"); pass(time.Hour) }), map[string]int{"partition": 1, "table": 1})
	})
}

// TestSteadyPublishesCostOneLookATTL.
func TestSteadyPublishesCostOneLookATTL(t *testing.T) {
	for _, every := range []time.Duration{70 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			v, c, s := published(t, 1, nil)
			requests := c.requests(func() {
				for end := v.o.Now().Add(100 * time.Second); v.o.Now().Before(end); pass(every) {
					publishInto(t, v, s, "0", "f")
				}
			})
			if n := requests["partition"]; n < 10 || n > 21 {
				t.Errorf("a publish each %v: %d look-ups in 100 s, want one in 5 s", every, n)
			}
		})
	}
}

// TestManyPartitionsAreConfirmedByAList, and few of a long table one by one.
func TestManyPartitionsAreConfirmedByAList(t *testing.T) {
	for _, tt := range []struct {
		n, others int
		want      map[string]int
	}{
		{8, 0, map[string]int{"partition": 8, "register": 1}},
		{9, 0, map[string]int{"partitions": 1, "register": 1}},
		{100, 0, map[string]int{"partitions": 1, "register": 1}},
		{9, 10 * headSize, map[string]int{"partitions": 1, "partition": 9, "register": 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, c, s := published(t, tt.n, nil)
			for i := range tt.others {
				c.partition("t", fmt.Sprintf("s3://b/t/dt=other%d", i), fmt.Sprintf("other%d", i))
			}
			for i := range tt.n {
				publishInto(t, v, s, fmt.Sprint(i), "second")
			}
			c.dropped("3")
			c.dropped("5")
			wantRequests(t, fmt.Sprint(tt.n, " partitions of ", tt.n+tt.others), looks(c, time.Minute), tt.want)
			if !c.has("3") || !c.has("5") {
				t.Error("a partition that was dropped is not registered again")
			}
		})
	}
}

// TestTheLookWaitsForTheCatalog: what it could not look for, it looks for again.
func TestTheLookWaitsForTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, nil)
		publishInto(t, v, s, "0", "second")
		c.dropped("0")
		c.setOn(func(context.Context, string) error { return objectstore.ErrUnavailable })
		pass(10 * time.Second)
		if left := v.Unregistered(""); len(left) > 0 {
			t.Errorf("unregistered: %+v, which nobody knows", left)
		}
		c.setOn(func(_ context.Context, op string) error {
			if op == "register" {
				return objectstore.ErrPermission
			}
			return nil
		})
		pass(time.Minute)
		if left := v.Unregistered(""); len(left) != 1 || left[0].Path != "db/t/dt=0" {
			t.Errorf("unregistered: %+v, want what the catalog refused", left)
		}
		c.setOn(nil)
		pass(10 * time.Minute)
		if left := v.Unregistered(""); len(left) > 0 || !c.has("0") {
			t.Errorf("unregistered: %+v", left)
		}
	})
}

// TestADroppedPartitionThatWasEmptiedStaysSo: what another deregistered with nothing in it.
func TestADroppedPartitionThatWasEmptiedStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, nil)
		publishInto(t, v, s, "0", "second")
		v.Removed(s.unset("t/dt=0/first"))
		v.Removed(s.unset("t/dt=0/second"))
		c.dropped("0")
		wantRequests(t, "the look", looks(c, time.Hour), map[string]int{"partition": 1})
		if left := v.Unregistered(""); len(left) > 0 || c.has("0") {
			t.Errorf("unregistered %+v, the catalog has %v", left, c.partitions["t"])
		}
	})
}

// TestACloseLooksOnceMore, and not for long.
func TestACloseLooksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, nil)
		publishInto(t, v, s, "0", "second")
		c.dropped("0")
		wantRequests(t, "the close", c.requests(func() {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}), map[string]int{"partition": 1, "register": 1})
		if !c.has("0") {
			t.Error("it is not registered again")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		v, c, s := published(t, 1, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		publishInto(t, v, s, "0", "second")
		c.setOn(func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		began := time.Now()
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != lastConfirmation || !strings.Contains(log.String(), "dt=0") {
			t.Errorf("it took %v, want %v; log:\n%s", took, lastConfirmation, log.String())
		}
	})
}

// TestWithoutATTLNothingIsConfirmed: each publish asks.
func TestWithoutATTLNothingIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := published(t, 1, func(o *Options) { o.TTL = -1 })
		wantRequests(t, "a publish, and an hour", c.requests(func() {
			publishInto(t, v, s, "0", "second")
			pass(time.Hour)
		}), map[string]int{"partition": 1, "table": 1})
	})
}

// TestConfirmationsAreBounded, and it is told once.
func TestConfirmationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		v, _, _ := catalogView(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)); o.TTL = time.Hour })
		for i := range maxUnconfirmed + 3 {
			v.confirms.add(v, confirmation{dir: fmt.Sprint(i)})
		}
		if n := len(v.confirms.take()); n != maxUnconfirmed || strings.Count(log.String(), "stays unregistered") != 1 {
			t.Errorf("%d are remembered, log:\n%s", n, log.String())
		}
	})
}

// TestGlueIsAskedForOneListing by a mount that ends after it published into a hundred
// partitions.
func TestGlueIsAskedForOneListing(t *testing.T) {
	t.Parallel()
	v, server := registeringView(t, nil)
	for range 2 {
		server.Reset()
		if err := v.RegisterAll(t.Context(), objects(100)); err != nil {
			t.Fatal(err)
		}
	}
	v.store.(*pageStore).set("t/dt=0042/f", "x")
	e, err := v.getTable(t.Context(), "db", "t")
	if err == nil {
		err = v.src.Deregister(t.Context(), e.base, []string{"0042"}) // as another program does
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if r := server.Requests(); r["GetPartition"] != 0 || r["GetPartitions"] != 1 || r["BatchCreatePartition"] != 1 {
		t.Errorf("requests: %v", r)
	}
	if p, _, err := v.src.Partition(t.Context(), e.base, []string{"0042"}); err != nil || p.Location != "s3://b/t/dt=0042" {
		t.Errorf("registered: %+v, %v", p, err)
	}
}
