package catalogview

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestWhatTheMountWroteShowsAtOnce(t *testing.T) {
	for _, known := range []string{"listed", "looked up", "unknown", "expired"} {
		synctest.Test(t, func(t *testing.T) {
			v, s := bucketView(t, nil, "old|1")
			switch known {
			case "listed", "expired":
				ls(t, v, "db/t")
			case "looked up":
				wantObject(t, v, "db/t/old", "1")
				wantAbsent(t, v, "db/t/new")
				wantAbsent(t, v, "db/t/d")
			}
			if known == "expired" {
				pass(6 * time.Second)
				keepTable(t, v)
			}
			wantRequests(t, known, s.requests(func() {
				v.Wrote(s.set("data/old", "2"))
				v.Wrote(s.set("data/new", "3"))
				v.Wrote(s.set("data/d/e/f", "4"))
				wantObject(t, v, "db/t/old", "2")
				wantObject(t, v, "db/t/new", "3")
				wantDirectory(t, v, "db/t/d")
				wantDirectory(t, v, "db/t/d/e")
				wantObject(t, v, "db/t/d/e/f", "4")
				if known == "listed" {
					wantLs(t, v, "db/t", "old", "new", "d/")
				}
			}), none())
			wantLs(t, v, "db/t", "old", "new", "d/")
			wantLs(t, v, "db/t/d", "e/")
			wantLs(t, v, "db/t/d/e", "f")
			for path, kind := range map[string]Kind{"db/t/d": KindDirectory, "db/t/new": KindObject} {
				for n, err := range v.ReadDir(t.Context(), "db/t") {
					if err != nil || n.Path == path && n.Kind != kind {
						t.Errorf("%s is listed as %s, %v", n.Path, n.Kind, err)
					}
				}
			}
		})
	}
}

func TestWhatTheMountRemovedIsGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "b|1", "d/x|1", "d/y|1", "d/e/z|1")
		ls(t, v, "db/t")
		ls(t, v, "db/t/d")
		wantRequests(t, "removals", s.requests(func() {
			v.Removed(s.unset("data/a"))
			wantAbsent(t, v, "db/t/a")
			wantLs(t, v, "db/t", "b", "d/")
			v.Removed(s.unset("data/d/x"))
			wantLs(t, v, "db/t/d", "y", "e/")
			wantDirectory(t, v, "db/t/d")
			// Made again under the name of what went.
			v.Wrote(s.set("data/a/b", "1"))
			wantDirectory(t, v, "db/t/a")
			wantLs(t, v, "db/t", "a/", "b", "d/")
		}), none())
		s.unset("data/d/y")
		v.Removed(s.unset("data/d/e/z"))
		v.Removed(objectstore.Location{Bucket: "b", Key: "data/d/"})
		wantRequests(t, "a directory", s.requests(func() {
			wantAbsent(t, v, "db/t/d")
			wantLs(t, v, "db/t", "a/", "b")
		}), none())
		wantAbsent(t, v, "db/t/d/y")
	})
}

func TestADirectoryThatLostItsLastNameIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "d/e/f|1", "d/e/g|1", "x|1")
		for _, path := range []string{"db/t", "db/t/d", "db/t/d/e"} {
			ls(t, v, path)
		}
		v.Removed(s.unset("data/d/e/f"))
		wantRequests(t, "one is left", s.requests(func() { wantDirectory(t, v, "db/t/d/e"); wantLs(t, v, "db/t", "d/", "x") }), none())
		v.Removed(s.unset("data/d/e/g"))
		wantAbsent(t, v, "db/t/d/e")
		wantAbsent(t, v, "db/t/d")
		wantLs(t, v, "db/t", "x")
		// Another client made one more meanwhile, that was not seen.
		v.Wrote(s.set("data/d/e/f", "1"))
		s.set("data/d/e/foreign", "1")
		v.Removed(s.unset("data/d/e/f"))
		wantDirectory(t, v, "db/t/d/e")
		wantDirectory(t, v, "db/t/d")
		wantLs(t, v, "db/t/d/e", "foreign")
		wantLs(t, v, "db/t", "d/", "x")
	})
}

func TestRemovingManyAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, append(names(900), "g|last")...)
		ls(t, v, "db")
		ls(t, v, "db/t")
		wantRequests(t, "rm", s.requests(func() {
			for _, k := range names(900) {
				key, _, _ := strings.Cut(k, "|")
				v.Removed(s.unset("data/" + key))
				wantAbsent(t, v, "db/t/"+key)
			}
			wantLs(t, v, "db/t", "g")
		}), none())
	})
}

func TestAChangeDuringAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, append(names(2500), "a|1", "z|1")...)
		s.setOn(slow(100 * time.Millisecond))
		var g sync.WaitGroup
		wantRequests(t, "both readers", s.requests(func() {
			g.Go(func() { // reads a page before the changes
				got, err := list(t.Context(), v, "db/t")
				if err != nil || len(got) < 2501 || len(got) > 2503 {
					t.Errorf("the first reader: %d names, %v", len(got), err)
				}
			})
			pass(150 * time.Millisecond)
			v.Wrote(s.set("data/a", "2"))           // the listing has come past it
			v.Wrote(s.set("data/a0", "2"))          // it will miss this one
			v.Wrote(s.set("data/b/c", "2"))         // and this
			v.Wrote(s.set("data/f001700", "2"))     // it may have the old or the new
			v.Removed(s.unset("data/f000000"))      // it has this
			v.Removed(s.unset("data/f002400"))      // it will not have this
			v.Wrote(s.set("data/f001800/deep", "")) // a directory beside an object
			check := func() {
				for path, want := range map[string]string{"a": "2", "a0": "2", "f001700": "2", "z": "1"} {
					if path != "z" {
						wantObject(t, v, "db/t/"+path, want)
					}
				}
				wantDirectory(t, v, "db/t/b")
				wantAbsent(t, v, "db/t/f000000")
			}
			check()
			got := map[string]Node{}
			for n, err := range v.ReadDir(t.Context(), "db/t") {
				if _, twice := got[n.Path]; twice || err != nil {
					t.Errorf("%s twice, or %v", n.Path, err)
				}
				got[n.Path] = n
			}
			if len(got) != 2502 || got["db/t/a"].ETag != `"2"` || got["db/t/a0"].ETag != `"2"` || got["db/t/f001700"].ETag != `"2"` || got["db/t/b"].Kind != KindDirectory || got["db/t/f001800"].Kind != KindDirectory {
				t.Errorf("the second reader: %d names, %+v", len(got), got["db/t/a"])
			}
			check() // and what is kept has them as well
			g.Wait()
		}), map[string]int{"list": 3})
	})
}

func TestALookupThatAChangeOvertakesLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil)
		var begun atomic.Bool
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			if op == "stat" && loc.Key == "data/new_$folder$" {
				begun.Store(true)
				return slow(time.Second)(ctx, op, loc)
			}
			return nil
		})
		var g sync.WaitGroup
		g.Go(func() { wantObject(t, v, "db/t/new", "1") })
		pass(500 * time.Millisecond) // absent so far, the marker alone is to come
		if !begun.Load() {
			t.Error("the look-up did not begin")
		}
		v.Wrote(s.set("data/new", "1"))
		g.Wait()
		wantObject(t, v, "db/t/new", "1")
	})
}

func TestStaleIsAskedByHeadAndListingsAreDistrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|old", "b|1")
		ls(t, v, "db/t")
		s.set("data/a", "new")
		// The store's listings have the old version yet.
		behind := objectstore.Entry{Object: pageObject(objectstore.Location{Bucket: "b", Key: "data/a"}, "old")}
		s.behind = &behind
		wantObject(t, v, "db/t/a", "old")
		v.Stale(objectstore.Location{Bucket: "b", Key: "data/a"})
		wantRequests(t, "Stale", s.requests(func() { wantObject(t, v, "db/t/a", "new") }), both())
		wantRequests(t, "once", s.requests(func() { wantObject(t, v, "db/t/a", "new"); wantObject(t, v, "db/t/b", "1") }), none())
		pass(4 * time.Second)
		for n, err := range v.ReadDir(t.Context(), "db/t") { // a listing from after Stale
			if err != nil || n.Path == "db/t/a" && n.ETag != `"new"` {
				t.Errorf("listed %s with %s, %v", n.Path, n.ETag, err)
			}
		}
		wantObject(t, v, "db/t/a", "new")
		s.behind = nil
		pass(6 * time.Second)
		ls(t, v, "db/t")
		wantObject(t, v, "db/t/a", "new")
	})
}

func TestStaleOfAnObjectThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "b|1")
		ls(t, v, "db/t")
		v.Stale(s.unset("data/a"))
		wantAbsent(t, v, "db/t/a")
		wantLs(t, v, "db/t", "b")
	})
}

func TestAStaleAnswerDoesNotOutliveStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		ls(t, v, "db/t")
		v.Stale(objectstore.Location{Bucket: "b", Key: "data/a"})
		s.setOn(dead)
		_, err := v.Lookup(t.Context(), "db/t/a")
		wantErr(t, "what was found to be wrong", err, objectstore.ErrUnavailable)
	})
}

func TestRemovingAMarkerRemovesItsDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "d_$folder$|", "e_$folder$|", "e/x|1")
		wantLs(t, v, "db/t", "d/", "e/")
		v.Removed(s.unset("data/d_$folder$"))
		v.Removed(s.unset("data/e_$folder$"))
		wantAbsent(t, v, "db/t/d")
		wantDirectory(t, v, "db/t/e")
		wantLs(t, v, "db/t", "e/")
	})
}

func TestAFolderKnowsOfItsChangesByItself(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data", nil, nil)
	l.view.Wrote(objectstore.Object{Location: objectstore.Location{Bucket: l.root, Key: "data/a"}})
	l.view.Removed(objectstore.Location{Bucket: l.root, Key: "data/a"})
	l.view.Stale(objectstore.Location{Bucket: l.root, Key: "data/a"})
	wantAbsent(t, l.view, "db/t/a")
}

func TestAListingFromBeforeARemovalIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "d/x|1", "e|1")
		ls(t, v, "db/t/d")
		s.early = true
		s.setOn(slow(time.Second))
		var g sync.WaitGroup
		g.Go(func() { wantLs(t, v, "db/t", "d/", "e") })
		pass(500 * time.Millisecond)
		v.Removed(s.unset("data/d/x"))
		wantLs(t, v, "db/t", "e")
		g.Wait()
		wantLs(t, v, "db/t", "e")
	})
}

func TestALookupThatIsNewerThanAListingIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1")
		s.early = true
		s.setOn(func(ctx context.Context, op string, loc objectstore.Location) error {
			if op == "list" && loc.Key == "data/" {
				return slow(time.Second)(ctx, op, loc)
			}
			return nil
		})
		var g sync.WaitGroup
		g.Go(func() { ls(t, v, "db/t") })
		pass(500 * time.Millisecond)
		s.set("data/a", "2")
		wantObject(t, v, "db/t/a", "2")
		g.Wait()
		wantObject(t, v, "db/t/a", "2")
		for n, err := range v.ReadDir(t.Context(), "db/t") {
			if err != nil || n.ETag != `"2"` {
				t.Errorf("listed with %s, %v", n.ETag, err)
			}
		}
	})
}

func TestStaleIsAskedByHeadThoughTheListingExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|old")
		ls(t, v, "db/t")
		s.set("data/a", "new")
		s.behind = &objectstore.Entry{Object: pageObject(objectstore.Location{Bucket: "b", Key: "data/a"}, "old")}
		pass(4 * time.Second)
		v.Stale(objectstore.Location{Bucket: "b", Key: "data/a"})
		pass(2 * time.Second)
		keepTable(t, v)
		wantRequests(t, "Stale", s.requests(func() { wantObject(t, v, "db/t/a", "new") }), both())
	})
}

func TestAnObjectBesideItsDirectoryChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "a/x|1")
		wantLs(t, v, "db/t", "a/")
		wantRequests(t, "both changes", s.requests(func() {
			v.Wrote(s.set("data/a", "2"))
			wantDirectory(t, v, "db/t/a")
			v.Removed(s.unset("data/a"))
			wantDirectory(t, v, "db/t/a")
			wantLs(t, v, "db/t", "a/")
		}), none())
	})
}

func TestAMarkerComesToLightWhenItsObjectGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "a_$folder$|")
		wantLs(t, v, "db/t", "a")
		v.Removed(s.unset("data/a"))
		wantDirectory(t, v, "db/t/a")
		wantLs(t, v, "db/t", "a/")
	})
}
