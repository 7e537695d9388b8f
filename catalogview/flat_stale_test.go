package catalogview

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestAStaleListingServesWhileTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		wantLs(t, v, "db/t", "a")
		s.set("data/b", "1")
		pass(6 * time.Second)
		keepTable(t, v)
		s.setOn(slow(3 * time.Second))
		var g sync.WaitGroup
		got := s.requests(func() {
			for range 10 {
				g.Go(func() {
					begin := time.Now()
					wantLs(t, v, "db/t", "a")
					wantObject(t, v, "db/t/a", "1")
					if took := time.Since(begin); took != 2*time.Second {
						t.Errorf("served after %s, want Patience", took)
					}
				})
			}
			g.Wait()
		})
		wantRequests(t, "one refresh", got, map[string]int{"list": 1})
		pass(2 * time.Second) // it has come meanwhile
		wantLs(t, v, "db/t", "a", "b")

		s.setOn(dead)
		pass(40 * time.Second)
		wantLs(t, v, "db/t", "a", "b")
		wantObject(t, v, "db/t/a", "1")
		_, err := v.Lookup(t.Context(), "db/t/never asked for")
		wantErr(t, "absence of a stale listing", err, objectstore.ErrUnavailable)
	})
}

func TestAStaleListingServesNeverTooLongNorAgainstARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.LoadTimeout = time.Second }, "a|1")
		wantLs(t, v, "db/t", "a")
		s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
			if loc.Key == "data/" || loc.Key == "data/a" || loc.Key == "data/a/" {
				return objectstore.ErrPermission
			}
			return nil
		})
		pass(6 * time.Second)
		_, err := list(t.Context(), v, "db/t")
		wantErr(t, "a refusal", err, objectstore.ErrPermission)
		_, err = v.Lookup(t.Context(), "db/t/a")
		wantErr(t, "a refused name", err, objectstore.ErrPermission)
		s.setOn(nil)
		wantLs(t, v, "db/t", "a")
		pass(99 * time.Second)
		s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
			if loc.Key == "data/" {
				return objectstore.ErrUnavailable
			}
			return nil
		})
		wantLs(t, v, "db/t", "a")
		pass(2 * time.Second)
		_, err = list(t.Context(), v, "db/t")
		wantErr(t, "after twenty TTLs", err, objectstore.ErrUnavailable)
	})
}

func TestAStoreThatFailedIsNotAskedByEachLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "b|1", "d/x|1")
		wantLs(t, v, "db/t", "a", "b", "d/")
		wantObject(t, v, "db/t/d/x", "1")
		pass(6 * time.Second)
		keepTable(t, v)
		s.setOn(dead)
		wantRequests(t, "at first", s.requests(func() { wantLs(t, v, "db/t", "a", "b", "d/") }), map[string]int{"list": 1})
		wantRequests(t, "then", s.requests(func() {
			wantLs(t, v, "db/t", "a", "b", "d/")
			wantObject(t, v, "db/t/a", "1")
			wantObject(t, v, "db/t/b", "1")
		}), none())
		wantRequests(t, "a look-up", s.requests(func() { wantObject(t, v, "db/t/d/x", "1") }), both())
		wantRequests(t, "again", s.requests(func() { wantObject(t, v, "db/t/d/x", "1") }), none())
		pass(1100 * time.Millisecond)
		s.setOn(nil)
		wantRequests(t, "after the negative TTL", s.requests(func() { wantLs(t, v, "db/t", "a", "b", "d/") }), map[string]int{"list": 1})
	})
}

func TestCase39ANameIsFoundWhereItsDirectoryMayNoLongerBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		wantLs(t, v, "db/t", "a")
		pass(6 * time.Second)
		s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
			if op == "list" && loc.Key == "data/" {
				return objectstore.ErrPermission
			}
			return nil
		})
		s.set("data/a", "2")
		wantObject(t, v, "db/t/a", "2")
	})
}
