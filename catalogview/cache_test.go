package catalogview

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// cachedLake has a clock of its own.
func cachedLake(t *testing.T) (*lake, *time.Time) {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	l := newLake(t, func(o *Options) {
		o.TTL, o.NegativeTTL = 5*time.Second, time.Second
		o.Now = func() time.Time { return now }
	})
	return l, &now
}

func wantRequests(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: requests %v, want %v", what, got, want)
	}
}

func TestRequestsAreFew(t *testing.T) {
	l, now := cachedLake(t)
	for _, name := range []string{"a", "b", "c"} {
		l.table("db/"+name, "data/"+name, nil, nil)
		l.write("data/"+name+"/f", "x")
	}
	v := l.view
	none := map[string]int{}
	wantRequests(t, "NewView", l.store.requests(func() {}), none)
	// A database: itself, its tables, their manifests, and that no location is a file.
	wantRequests(t, "cold ls of a database", l.store.requests(func() { ls(t, v, "db") }), map[string]int{"list": 2, "stat": 9, "read": 3})
	wantRequests(t, "warm ls of a database", l.store.requests(func() { ls(t, v, "db") }), none)
	wantRequests(t, "warm stat of entries", l.store.requests(func() {
		lookup(t, v, "db/a")
		lookup(t, v, "db")
	}), none)
	wantRequests(t, "ls of a table", l.store.requests(func() { ls(t, v, "db/a") }), map[string]int{"list": 1})
	wantRequests(t, "stat of a file", l.store.requests(func() { lookup(t, v, "db/a/f") }), map[string]int{"stat": 1})
	wantRequests(t, "where to write", l.store.requests(func() {
		if _, err := v.Resolve(t.Context(), "db/a/new"); err != nil {
			t.Error(err)
		}
	}), none)
	*now = now.Add(6 * time.Second)
	// Unchanged manifests are not read again.
	wantRequests(t, "ls after the TTL", l.store.requests(func() { ls(t, v, "db") }), map[string]int{"list": 2, "stat": 6})
	*now = now.Add(6 * time.Second)
	wantRequests(t, "stat after the TTL", l.store.requests(func() { lookup(t, v, "db/a") }), map[string]int{"list": 1, "stat": 2})
}

func TestChangesAreSeenAfterTheTTLOrARefresh(t *testing.T) {
	l, now := cachedLake(t)
	l.table("db/t", "data/1", nil, nil)
	l.write("data/1/one", "x")
	l.write("data/2/two", "x")
	wantLs(t, l.view, "db/t", "one")
	wantLs(t, l.view, "db", "t/", "t.json")

	l.table("db/t", "data/2", nil, nil)
	wantLs(t, l.view, "db/t", "one")
	*now = now.Add(5 * time.Second)
	wantLs(t, l.view, "db/t", "two")

	for _, path := range []string{"", "db", "db.json", "db/t", "db/t.json", "db/t/x/y"} {
		l.table("db/t", "data/1", nil, nil)
		l.view.Refresh(path)
		wantLs(t, l.view, "db/t", "one")
		l.table("db/t", "data/2", nil, nil)
		l.view.Refresh(path)
		wantLs(t, l.view, "db/t", "two")
	}
	l.table("db/t", "data/1", nil, nil)
	l.view.Refresh("db/other")
	wantLs(t, l.view, "db/t", "two")

	// An entry that is opened is the newest, and the tree follows it.
	_, n, err := l.view.EntryJSON(t.Context(), "db/t")
	if err != nil || lookup(t, l.view, "db/t.json").ETag != n.ETag {
		t.Errorf("EntryJSON: %v, and Lookup has another version", err)
	}
	wantLs(t, l.view, "db/t", "one")
}

func TestANewTableIsSeenAfterTheNegativeTTL(t *testing.T) {
	l, now := cachedLake(t)
	l.mkdir("db")
	_, err := l.view.Lookup(t.Context(), "db/t")
	wantErr(t, "before", err, objectstore.ErrNotExist)
	l.table("db/t", "data/1", nil, nil)
	_, err = l.view.Lookup(t.Context(), "db/t")
	wantErr(t, "at once", err, objectstore.ErrNotExist)
	*now = now.Add(time.Second)
	lookup(t, l.view, "db/t")

	if err = os.RemoveAll(filepath.Join(l.root, "db/t")); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(5 * time.Second)
	_, err = l.view.Lookup(t.Context(), "db/t")
	wantErr(t, "after it went", err, objectstore.ErrNotExist)
}

func TestADeadStoreServesStaleEntriesAndNeverAbsence(t *testing.T) {
	l, now := cachedLake(t)
	l.table("db/t", "data/1", nil, nil)
	wantLs(t, l.view, "db", "t/", "t.json")
	l.store.setFail(func(string, objectstore.Location) error { return objectstore.ErrUnavailable })
	*now = now.Add(30 * time.Second)
	wantLs(t, l.view, "db", "t/", "t.json")
	lookup(t, l.view, "db/t")
	_, err := l.view.Lookup(t.Context(), "db/t/x")
	wantErr(t, "below a table", err, objectstore.ErrUnavailable)
	_, err = l.view.Lookup(t.Context(), "other")
	wantErr(t, "a name never asked for", err, objectstore.ErrUnavailable)
	*now = now.Add(80 * time.Second)
	_, err = list(t.Context(), l.view, "db")
	wantErr(t, "after twenty TTLs", err, objectstore.ErrUnavailable)
	l.store.setFail(nil)
	*now = now.Add(time.Second)
	wantLs(t, l.view, "db", "t/", "t.json")
}

func TestAManifestReplacedBetweenStatAndReadIsReadAgain(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/first", nil, nil)
	replaced := false
	l.store.setFail(func(op string, _ objectstore.Location) error {
		if op == "read" && !replaced {
			replaced = true
			l.table("db/t", "data/the_second", nil, nil)
		}
		return nil
	})
	if got := lookup(t, l.view, "db/t").Table.Location; got != "data/the_second" {
		t.Errorf("got %q", got)
	}
}

func TestASlowTableHoldsUpNoOther(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/slow", "data/1", nil, nil)
	l.table("db/fast", "data/2", nil, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	l.store.setFail(func(_ string, loc objectstore.Location) error {
		if loc.Key == "db/slow/_sqe/table.json" {
			entered <- struct{}{}
			<-leave
		}
		return nil
	})
	done := make(chan error)
	go func() {
		_, err := l.view.Lookup(t.Context(), "db/slow")
		done <- err
	}()
	<-entered
	lookup(t, l.view, "db/fast")
	l.store.setFail(nil)
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
