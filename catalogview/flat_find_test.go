package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func both() map[string]int { return map[string]int{"list": 1, "stat": 1} }

// absence costs the marker too.
func absence() map[string]int { return map[string]int{"list": 1, "stat": 2} }

func TestLookupAsksForBothAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "f|1", "d/x|1", "both|1", "both/x|1", "m_$folder$|", "n_$folder$|bytes")
		s.setOn(slow(100 * time.Millisecond))
		for _, c := range []struct {
			name     string
			requests map[string]int
			took     time.Duration
			check    func(t *testing.T, v *View, path string)
		}{
			{"f", both(), 100 * time.Millisecond, func(t *testing.T, v *View, path string) { t.Helper(); wantObject(t, v, path, "1") }},
			{"d", both(), 100 * time.Millisecond, wantDirectory},
			{"both", both(), 100 * time.Millisecond, wantDirectory},
			{"m", absence(), 200 * time.Millisecond, wantDirectory},
			{"n", absence(), 200 * time.Millisecond, wantAbsent},
			{"m_$folder$", both(), 100 * time.Millisecond, wantAbsent},
			{"none", absence(), 200 * time.Millisecond, wantAbsent},
			{"other", map[string]int{"list": 1}, 100 * time.Millisecond, wantAbsent}, // two names were not there
		} {
			begin := time.Now()
			got := s.requests(func() { c.check(t, v, "db/t/"+c.name) })
			wantRequests(t, c.name, got, c.requests)
			if took := time.Since(begin); took != c.took {
				t.Errorf("%s took %s, want %s", c.name, took, c.took)
			}
			wantRequests(t, c.name+" again", s.requests(func() { c.check(t, v, "db/t/"+c.name) }), none())
		}
	})
}

// TestManyNewNames: who makes new files in a directory that nobody listed has it
// listed once a NegativeTTL, not each name asked for.
func TestManyNewNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "old|1")
		got := s.requests(func() {
			for i := range 100 {
				wantAbsent(t, v, fmt.Sprintf("db/t/new%d", i))
				pass(20 * time.Millisecond) // its publish
			}
		})
		if got["stat"] != 2*manyMisses || got["list"] > manyMisses+3 {
			t.Errorf("100 new names in 2 s: %v", got)
		}
	})
}

// TestNewNamesInADirectoryThatIsNotThere: mkdir found that nothing is there, so that
// no name below it has to be asked for.
func TestNewNamesInADirectoryThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "old|1")
		for range 3 { // the last time by a listing
			wantAbsent(t, v, "db/t/new")
			pass(1001 * time.Millisecond)
		}
		wantAbsent(t, v, "db/t/new")
		wantRequests(t, "below it", s.requests(func() { wantAbsent(t, v, "db/t/new/a"); wantAbsent(t, v, "db/t/new/b") }), none())
		s.set("data/new/b", "2")
		wantRequests(t, "who reads it", s.requests(func() { wantLs(t, v, "db/t/new", "b") }), map[string]int{"list": 1})
		pass(1001 * time.Millisecond) // another's file is seen within the NegativeTTL
		wantObject(t, v, "db/t/new/b", "2")
	})
}

// TestManyNewNamesInALargeDirectory: one that a listing of one page does not tell
// of is tried ever more seldom.
func TestManyNewNamesInALargeDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old []string
		for i := range 2 * onePage {
			old = append(old, fmt.Sprintf("old%04d|1", i))
		}
		v, s := bucketView(t, func(o *Options) { o.MaxListed = onePage }, old...)
		got := s.requests(func() {
			for i := range 100 {
				wantAbsent(t, v, fmt.Sprintf("db/t/new%d", i))
				pass(20 * time.Millisecond)
			}
		})
		if pages := got["list"] - 100; pages < 1 || pages > 12 || got["stat"] != 200 {
			t.Errorf("100 new names: %v, %d pages listed in vain", got, pages)
		}
	})
}

func TestADirectoryIsNotWaitedForByItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "d/x|1")
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			if op == "stat" {
				return slow(time.Minute)(ctx, op, loc)
			}
			return nil
		})
		begin := time.Now()
		wantDirectory(t, v, "db/t/d")
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

func TestCase32AbsenceIsBelievedForTheNegativeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil)
		wantAbsent(t, v, "db/t/a")
		s.set("data/a", "1")
		pass(999 * time.Millisecond)
		wantAbsent(t, v, "db/t/a")
		pass(2 * time.Millisecond)
		wantObject(t, v, "db/t/a", "1")
		s.set("data/a", "2")
		pass(4900 * time.Millisecond)
		wantObject(t, v, "db/t/a", "1")
		pass(200 * time.Millisecond)
		wantObject(t, v, "db/t/a", "2")
	})
}

func TestConcurrentLookupsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		s.setOn(slow(100 * time.Millisecond))
		wantRequests(t, "50 look-ups", s.requests(func() {
			ctx, cancel := context.WithCancel(t.Context())
			var g sync.WaitGroup
			g.Go(func() {
				if _, err := v.Lookup(ctx, "db/t/a"); !errors.Is(err, context.Canceled) {
					t.Errorf("the interrupted one: %v", err)
				}
			})
			synctest.Wait()
			for range 49 {
				g.Go(func() { wantObject(t, v, "db/t/a", "1") })
			}
			pass(50 * time.Millisecond)
			cancel()
			g.Wait()
		}), both())
	})
}

func TestAnInterruptedLookupServesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		s.setOn(slow(time.Second))
		wantRequests(t, "both", s.requests(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := v.Lookup(ctx, "db/t/a")
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 100*time.Millisecond {
				t.Errorf("the interrupted one: %v after %s", err, time.Since(begin))
			}
			pass(time.Second)
			wantObject(t, v, "db/t/a", "1")
		}), both())
	})
}

func TestALookupIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		s.setOn(slow(time.Hour))
		begin := time.Now()
		_, err := v.Lookup(t.Context(), "db/t/a")
		wantErr(t, "a store that never answers", err, objectstore.ErrUnavailable)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestCase29AnErrorIsNeverAbsence(t *testing.T) {
	for _, failing := range []string{"stat", "list"} {
		for _, fault := range []error{objectstore.ErrUnavailable, objectstore.ErrPermission} {
			synctest.Test(t, func(t *testing.T) {
				v, s := bucketView(t, nil)
				s.setOn(func(_ context.Context, op string, _ objectstore.Location) error {
					if op == failing {
						return fault
					}
					return nil
				})
				for range 3 {
					_, err := v.Lookup(t.Context(), "db/t/a")
					if !errors.Is(err, fault) || errors.Is(err, objectstore.ErrNotExist) {
						t.Errorf("%s fails with %v: got %v", failing, fault, err)
					}
				}
				s.setOn(nil)
				s.set("data/a", "1")
				wantObject(t, v, "db/t/a", "1")
			})
		}
	}
}

func TestCase39ADirectoryNeedsNoRightsButItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, func(o *Options) { o.TTL = 5 * time.Minute }, "dt=1/f|1", "dt=2/f|1")
		// As a policy is that grants one prefix: the table itself cannot be listed.
		s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
			switch {
			case op == "list" && len(loc.Key) >= len("data/dt=1/") && loc.Key[:len("data/dt=1/")] == "data/dt=1/":
				return nil
			case op != "list" && loc.Key == "data/dt=1/f":
				return nil
			}
			return objectstore.ErrPermission
		})
		// The table is loaded with such rights too.
		e, _, _ := v.tables.peek("db/t")
		if again, err := v.judge(t.Context(), e.value.base, e.value.raw); err != nil || again.place != e.value.place {
			t.Errorf("the table: %+v, %v", again, err)
		}
		wantDirectory(t, v, "db/t/dt=1")
		wantLs(t, v, "db/t/dt=1", "f")
		wantObject(t, v, "db/t/dt=1/f", "1")
		_, err := list(t.Context(), v, "db/t")
		wantErr(t, "the table", err, objectstore.ErrPermission)
		_, err = v.Lookup(t.Context(), "db/t/dt=2")
		wantErr(t, "another partition", err, objectstore.ErrPermission)
	})
}

func TestAnObjectIsFoundWhereNothingMayBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "f|1")
		s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
			if op == "list" || loc.Key != "data/f" {
				return objectstore.ErrPermission
			}
			return nil
		})
		wantObject(t, v, "db/t/f", "1")
		_, err := v.Lookup(t.Context(), "db/t/g")
		wantErr(t, "another", err, objectstore.ErrPermission)
	})
}

func TestAStaleAnswerServesWhileTheStoreIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		wantObject(t, v, "db/t/a", "1")
		wantAbsent(t, v, "db/t/b")
		s.setOn(dead)
		pass(40 * time.Second)
		wantObject(t, v, "db/t/a", "1")
		_, err := v.Lookup(t.Context(), "db/t/b")
		wantErr(t, "absence", err, objectstore.ErrUnavailable)
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			return slow(time.Hour)(ctx, op, loc)
		})
		pass(2 * time.Second)
		begin := time.Now()
		wantObject(t, v, "db/t/a", "1")
		if took := time.Since(begin); took > 3*2*time.Second { // of the database, of the table, of the name
			t.Errorf("took %s", took)
		}
		pass(2 * time.Second)
		s.setOn(nil)
		s.set("data/a", "2")
		pass(time.Minute)
		wantObject(t, v, "db/t/a", "2")
	})
}

func TestMetadataIsOfNoNode(t *testing.T) {
	v, _ := bucketView(t, nil, "a|1")
	asked := lookup(t, v, "db/t/a")
	v.Refresh("")
	ls(t, v, "db/t")
	if listed := lookup(t, v, "db/t/a"); asked.Object.Meta != nil || listed.Object.Meta != nil || asked.Object.Match != listed.Object.Match {
		t.Errorf("asked for: %+v, listed: %+v", asked.Object, listed.Object)
	}
}

func TestRefreshForgetsWhatIsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"", "db", "db/t", "db/t/d", "db/t/d/f", "db/t.json", "other"} {
			v, s := bucketView(t, nil, "d/f|1", "e/f|1")
			look := func() {
				wantLs(t, v, "db/t/d", "f")
				wantObject(t, v, "db/t/d/f", "1")
			}
			look()
			wantLs(t, v, "db/t/e", "f")
			v.Refresh(path)
			keepTable(t, v)
			wantRequests(t, path, s.requests(look), map[string]int{"list": 1})
			want := map[string]int{"list": 1}
			if strings.HasPrefix(path, "db/t/") {
				want = none()
			}
			wantRequests(t, path+": beside it", s.requests(func() { wantLs(t, v, "db/t/e", "f") }), want)
		}
	})
}

func TestOnlyWhatIsStaleIsServedImpatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		wantLs(t, v, "db/t", "a")
		s.set("data/b", "1")
		pass(6 * time.Second)
		keepTable(t, v)
		s.setOn(slow(4 * time.Second))
		// b may be there for all that is known.
		wantObject(t, v, "db/t/b", "1")
	})
}
