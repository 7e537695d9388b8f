package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func none() map[string]int { return map[string]int{} }

func TestCase68LsLOfManyKeysCostsItsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(10_000)...)
		got := s.requests(func() {
			// ls stats each name as it comes, and again later.
			var all []Node
			for n, err := range v.ReadDir(t.Context(), "db/t") {
				if err != nil {
					t.Fatal(err)
				}
				wantObject(t, v, n.Path, "x")
				all = append(all, n)
			}
			for _, n := range all {
				wantObject(t, v, n.Path, "x")
			}
			wantAbsent(t, v, "db/t/g")
			if len(all) != 10_000 {
				t.Errorf("%d names", len(all))
			}
		})
		wantRequests(t, "ls -l", got, map[string]int{"list": 10})
	})
}

func TestTheFirstNameComesBeforeTheLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(5000)...)
		s.setOn(slow(100 * time.Millisecond))
		begin := time.Now()
		for _, err := range v.ReadDir(t.Context(), "db/t") {
			if took := time.Since(begin); err != nil || took != 100*time.Millisecond {
				t.Errorf("first name after %s, %v", took, err)
			}
			break
		}
	})
}

func TestFiftyReadersAreOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(2500)...)
		s.setOn(slow(100 * time.Millisecond))
		got := s.requests(func() {
			var g sync.WaitGroup
			for i := range 50 {
				g.Go(func() {
					pass(time.Duration(i) * 7 * time.Millisecond) // some join late, some when all is there
					if got, err := list(t.Context(), v, "db/t"); err != nil || len(got) != 2500 {
						t.Errorf("reader %d: %d names, %v", i, len(got), err)
					}
				})
			}
			g.Wait()
		})
		wantRequests(t, "50 readers", got, map[string]int{"list": 3})
	})
}

func TestAListingIsFreshForItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "d/x|1")
		wantLs(t, v, "db/t", "a", "d/")
		s.set("data/a", "2")
		s.set("data/b", "2")
		s.unset("data/d/x")
		pass(4999 * time.Millisecond)
		wantRequests(t, "fresh", s.requests(func() {
			wantLs(t, v, "db/t", "a", "d/")
			wantObject(t, v, "db/t/a", "1")
			wantDirectory(t, v, "db/t/d")
		}), none())
		pass(2 * time.Millisecond)
		keepTable(t, v)
		wantRequests(t, "expired", s.requests(func() {
			wantObject(t, v, "db/t/b", "2") // by one listing, and the rest by it too
			wantObject(t, v, "db/t/a", "2")
			wantAbsent(t, v, "db/t/d")
			wantLs(t, v, "db/t", "a", "b")
		}), map[string]int{"list": 1})
	})
}

// Who polls for a name sees it within the negative TTL, whether it was listed or
// looked up before; and who makes new files in a directory asks once in that time.
func TestCase32AbsenceByAListingIsBelievedForTheNegativeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		wantLs(t, v, "db/t", "a")
		s.set("data/b", "2")
		pass(999 * time.Millisecond)
		wantRequests(t, "in time", s.requests(func() {
			wantAbsent(t, v, "db/t/b")
			synctest.Wait() // it is listed behind who asks so late
		}), map[string]int{"list": 1})
		pass(2 * time.Millisecond)
		wantRequests(t, "later", s.requests(func() {
			wantObject(t, v, "db/t/b", "2")
			wantAbsent(t, v, "db/t/c")
			wantAbsent(t, v, "db/t/d")
		}), none())
		pass(2 * time.Second)
		wantRequests(t, "much later", s.requests(func() {
			wantAbsent(t, v, "db/t/c")
			wantAbsent(t, v, "db/t/d")
		}), map[string]int{"list": 1})
	})
}

func TestNamesOfALargeExpiredListingAreAskedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(1001)...)
		ls(t, v, "db/t")
		pass(6 * time.Second)
		keepTable(t, v)
		wantRequests(t, "one name", s.requests(func() { wantObject(t, v, "db/t/f000007", "x") }), map[string]int{"list": 1, "stat": 1})
		wantRequests(t, "again", s.requests(func() { wantObject(t, v, "db/t/f000007", "x") }), none())
	})
}

func TestWithoutATTLEachListingIsTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.TTL, o.NegativeTTL = -1, -1 }, "a|1")
		wantLs(t, v, "db/t", "a")
		s.set("data/b", "1")
		wantLs(t, v, "db/t", "a", "b")
		s.set("data/a", "2")
		wantObject(t, v, "db/t/a", "2")
		v.Wrote(s.set("data/a", "3"))
		wantObject(t, v, "db/t/a", "3")
		v.Removed(s.unset("data/a"))
		wantAbsent(t, v, "db/t/a")
		wantLs(t, v, "db/t", "b")
	})
}

func TestACancelledReaderDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(3000)...)
		s.setOn(slow(100 * time.Millisecond))
		got := s.requests(func() {
			ctx, cancel := context.WithCancel(t.Context())
			var g sync.WaitGroup
			g.Go(func() {
				begin := time.Now()
				if _, err := list(ctx, v, "db/t"); !errors.Is(err, context.Canceled) || time.Since(begin) != 150*time.Millisecond {
					t.Errorf("the cancelled one: %v after %s", err, time.Since(begin))
				}
			})
			synctest.Wait()
			g.Go(func() {
				if got, err := list(t.Context(), v, "db/t"); err != nil || len(got) != 3000 {
					t.Errorf("the other: %d names, %v", len(got), err)
				}
			})
			pass(150 * time.Millisecond)
			cancel()
			g.Wait()
		})
		wantRequests(t, "both", got, map[string]int{"list": 3})
	})
}

func TestAListingThatNobodyReadsGoesOnForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(30_000)...)
		s.setOn(slow(10 * time.Millisecond))
		first := func() {
			for _, err := range v.ReadDir(t.Context(), "db/t") {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			pass(time.Second)
		}
		if n := s.requests(first)["list"]; n < 11 || n > 13 {
			t.Errorf("%d pages were listed for nobody, want some ten", n)
		}
		// The next reader has all, by a listing of its own.
		if got := ls(t, v, "db/t"); len(got) != 30_000 {
			t.Errorf("%d names", len(got))
		}
	})
}

func TestAnErrorEndsTheListingOfAllWhoReadIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(3000)...)
		pages := 0
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			if pages++; pages == 3 {
				return objectstore.ErrUnavailable
			}
			return slow(100*time.Millisecond)(ctx, op, loc)
		})
		var g sync.WaitGroup
		for i := range 20 {
			g.Go(func() {
				pass(time.Duration(i) * 9 * time.Millisecond)
				_, err := list(t.Context(), v, "db/t")
				wantErr(t, "a reader", err, objectstore.ErrUnavailable)
			})
		}
		g.Wait()
		s.setOn(nil)
		// Nothing of it is remembered, least of all absence.
		wantRequests(t, "afterwards", s.requests(func() {
			wantObject(t, v, "db/t/f002999", "x")
			if got := ls(t, v, "db/t"); len(got) != 3000 {
				t.Errorf("%d names", len(got))
			}
		}), map[string]int{"list": 4, "stat": 1})
	})
}

func TestADirectoryTooLargeIsStreamedAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.MaxListed = 1500 }, names(40_000)...)
		n, most := 0, 0
		for _, err := range v.ReadDir(t.Context(), "db/t") {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if n%500 == 0 {
				synctest.Wait()
				v.flat.mu.Lock()
				if l := anyListing(v.flat); l != nil {
					most = max(most, l.count-n)
				}
				v.flat.mu.Unlock()
			}
		}
		if n != 40_000 || most != 0 {
			t.Errorf("%d names; a running listing that can be joined is %d ahead", n, most)
		}
		got := s.requests(func() { wantObject(t, v, "db/t/f000001", "x") })
		wantRequests(t, "a name of it", got, map[string]int{"list": 1, "stat": 1})
	})
}

// anyListing returns a listing beyond the limit that the cache holds, which there is none.
func anyListing(c *flat) *listing {
	for _, d := range c.mu.dirs {
		for _, l := range []*listing{d.running, d.whole} {
			if l != nil && l.large() {
				return l
			}
		}
	}
	return nil
}

func TestALargeListingKeepsPaceWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.MaxListed = 1500 }, names(40_000)...)
		got := s.requests(func() {
			n := 0
			for _, err := range v.ReadDir(t.Context(), "db/t") {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == 5000 {
					break
				}
			}
			synctest.Wait()
		})
		if got["list"] > 17 {
			t.Errorf("%d pages were listed for 5000 names", got["list"])
		}
	})
}

func TestListingsAreEvictedTheOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.MaxListed = 40 }, "a/1|x", "a/2|x", "a/3|x", "a/4|x", "a/5|x", "a/6|x", "b/1|x", "b/2|x", "b/3|x", "b/4|x", "b/5|x", "b/6|x", "b/7|x", "c/1|x", "c/2|x", "c/3|x", "c/4|x", "c/5|x", "c/6|x")
		held := 0
		for _, err := range v.ReadDir(t.Context(), "db/t/a") { // a handle on what is evicted meanwhile
			if err != nil {
				t.Fatal(err)
			}
			if held++; held == 1 {
				ls(t, v, "db/t/b")
				ls(t, v, "db/t/c")
			}
		}
		if held != 6 {
			t.Errorf("the handle has %d names", held)
		}
		wantRequests(t, "the newer", s.requests(func() { ls(t, v, "db/t/c"); ls(t, v, "db/t/b") }), none())
		wantRequests(t, "the oldest", s.requests(func() { ls(t, v, "db/t/a") }), map[string]int{"list": 1})
		if v.flat.mu.total > 40 {
			t.Errorf("%d names are kept", v.flat.mu.total)
		}
	})
}

func TestCloseEndsListingsAndLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		s.setOn(slow(time.Hour))
		var g sync.WaitGroup
		g.Go(func() {
			if _, err := list(t.Context(), v, "db/t"); err == nil {
				t.Error("the listing has no error")
			}
		})
		g.Go(func() {
			if _, err := v.Lookup(t.Context(), "db/t/a"); err == nil {
				t.Error("the look-up has no error")
			}
		})
		synctest.Wait()
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		g.Wait()
		_, err := list(t.Context(), v, "db/t")
		wantErr(t, "after it", err, ErrClosed)
		_, err = v.Lookup(t.Context(), "db/t/a")
		wantErr(t, "after it", err, ErrClosed)
	})
}

// A directory may follow the object of its name pages later.
func TestAnObjectThatWasListedMayBeADirectoryYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := []string{"a|1", "a/x|1"}
		for i := range 1500 {
			keys = append(keys, fmt.Sprintf("a-%04d|1", i))
		}
		v, s := bucketView(t, nil, keys...)
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			if op == "list" && loc.Key == "data/" {
				return slow(time.Second)(ctx, op, loc)
			}
			return nil
		})
		var g sync.WaitGroup
		g.Go(func() {
			if got := ls(t, v, "db/t"); len(got) != 1501 {
				t.Errorf("%d names", len(got))
			}
		})
		pass(1500 * time.Millisecond)
		wantRequests(t, "during it", s.requests(func() { wantDirectory(t, v, "db/t/a") }), both())
		g.Wait()
		wantDirectory(t, v, "db/t/a")
	})
}

func TestNamesOfALongListingAreFreshWhenTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, names(3000)...)
		var asked atomic.Int64
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			switch {
			case op == "list" && loc.Key == "data/":
				return slow(4*time.Second)(ctx, op, loc)
			case strings.HasPrefix(loc.Key, "data/"):
				asked.Add(1)
			}
			return nil
		})
		for n, err := range v.ReadDir(t.Context(), "db/t") {
			if err != nil {
				t.Fatal(err)
			}
			wantObject(t, v, n.Path, "x")
		}
		wantObject(t, v, "db/t/f002999", "x")
		if n := asked.Load(); n != 0 {
			t.Errorf("%d requests for names of the listing", n)
		}
		wantAbsent(t, v, "db/t/g") // the listing is too old for that
		if n := asked.Load(); n != 3 {
			t.Errorf("%d requests for a name that it did not have", n)
		}
	})
}
