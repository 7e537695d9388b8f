package catalogview

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// locationOf is where the object of a name lies in db.t.
func locationOf(t *testing.T, v *View, name string) objectstore.Location {
	t.Helper()
	n, err := v.Lookup(t.Context(), "db/t")
	if err != nil {
		t.Fatal(err)
	}
	loc := n.Location()
	loc.Key += name
	return loc
}

func TestNearbyAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := bucketView(t, nil, "a|1", "b|2", "c_$folder$|", "d/x|1", "e|3", "_temporary/0|1")
		at := locationOf(t, v, "a")
		unknown := func(when string) {
			t.Helper()
			wantRequests(t, when, s.requests(func() {
				if names := v.Nearby(at, 100); names != nil {
					t.Errorf("%s: %q", when, names)
				}
				if g, ok := v.Guess(at); ok {
					t.Errorf("%s: %v is guessed", when, g.Object)
				}
			}), none())
		}
		unknown("nothing is known")
		wantObject(t, v, "db/t/a", "1")
		unknown("one name is known")
		wantLs(t, v, "db/t", "a", "b", "c/", "d/", "e")
		wantRequests(t, "the listing is known", s.requests(func() {
			if names := v.Nearby(at, 100); !slices.Equal(names, []string{"a", "b", "e"}) {
				t.Errorf("nearby: %q", names)
			}
			if names := v.Nearby(at, 5); names != nil {
				t.Errorf("of too many names: %q", names)
			}
			for name, want := range map[string]bool{"a": true, "e": true, "c": false, "d": false, "none": false, "d/": false} {
				if g, ok := v.Guess(locationOf(t, v, name)); ok != want || ok && g.Object.Key != locationOf(t, v, name).Key {
					t.Errorf("guess of %s: %v, %v", name, g.Object, ok)
				}
			}
		}), none())
		v.Stale(at)
		if g, ok := v.Guess(at); ok {
			t.Errorf("what is no longer so: %v is guessed", g.Object)
		}
		pass(staleFactor * 5 * time.Second)
		unknown("it is too old to serve")
	})
}

// TestConfirmedNamesAreNotAskedFor: who reads a directory for longer than its listing
// is believed has it confirmed file by file.
func TestConfirmedNamesAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var files, names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("f%02d", i))
			files = append(files, names[i]+"|1")
		}
		v, s := bucketView(t, nil, files...)
		wantLs(t, v, "db/t", names...)
		locationOf(t, v, "")
		guess := func(name string) Guess {
			t.Helper()
			g, ok := v.Guess(locationOf(t, v, name))
			if !ok {
				t.Fatalf("%s is not guessed", name)
			}
			return g
		}
		pass(4 * time.Second)
		v.Confirm(guess("f00"))
		early, removed, replaced := guess("f01"), guess("f02"), guess("f03")
		v.Stale(early.Object.Location)
		v.Removed(removed.Object.Location)
		other := replaced.Object
		other.ETag = "other"
		v.Wrote(other)
		for _, g := range []Guess{early, removed, replaced} {
			v.Confirm(g)
		}
		wantAbsent(t, v, "db/t/f02")
		if n, err := v.Lookup(t.Context(), "db/t/f03"); err != nil || n.Object.ETag != "other" {
			t.Errorf("a change since the guess: %v, %v", n.Object, err)
		}
		pass(4 * time.Second) // the listing is 8 s old
		keepTable(t, v)
		wantRequests(t, "a confirmed name", s.requests(func() { wantObject(t, v, "db/t/f00", "1") }), none())
		if got := s.requests(func() { wantObject(t, v, "db/t/f01", "1") }); got["list"]+got["stat"] == 0 {
			t.Errorf("one that was said to be stale: %v", got)
		}
		pass(5 * time.Second)
		keepTable(t, v)
		if got := s.requests(func() { wantObject(t, v, "db/t/f00", "1") }); got["list"]+got["stat"] == 0 {
			t.Errorf("a name that was confirmed 9 s ago: %v", got)
		}
	})
}
