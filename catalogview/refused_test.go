package catalogview

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// refused stands for ErrPermission.
const refused Kind = 200

// onlyBelow grants what lies below some prefixes and refuses the rest.
func onlyBelow(granted ...string) func(context.Context, string, objectstore.Location) error {
	return func(_ context.Context, _ string, loc objectstore.Location) error {
		for _, prefix := range granted {
			if strings.HasPrefix(loc.Key, prefix) {
				return nil
			}
		}
		return objectstore.ErrPermission
	}
}

// TestCase39ANameLikeAnEntrysIsNoGuess: where nothing may be seen every name may be
// a directory, so that paths work, but not one that ends in ".json".
func TestCase39ANameLikeAnEntrysIsNoGuess(t *testing.T) {
	v, s := rootView(t, nil)
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "data", nil, nil))
	for _, c := range []struct {
		name    string
		granted []string
		want    map[string]Kind
	}{
		{"nothing", nil, map[string]Kind{
			"db": KindDatabase, "none": KindDatabase, "db.json": refused, "none.json": refused,
			"db/t": KindTable, "db/none": KindTable, "db/t.json": refused, "db/none.json": refused, "none/x.json": refused, "db/.json": refused,
			"db.json/t": refused, "db.json/t.json": refused,
		}},
		{"a table", []string{"wh/db/t/", "wh/data/"}, map[string]Kind{
			"db": KindDatabase, "db.json": refused, "db/t": KindTable, "db/t.json": KindEntry, "db/none.json": refused, "none.json": refused,
		}},
		{"a database", []string{"wh/db/", "wh/data/"}, map[string]Kind{
			"db": KindDatabase, "db.json": KindEntry, "none.json": refused, "db/t": KindTable, "db/t.json": KindEntry,
		}},
		{"all but a database", []string{"wh/db.json/"}, map[string]Kind{"db": KindDatabase, "db.json": refused}},
	} {
		s.setOn(onlyBelow(c.granted...))
		for path, kind := range c.want {
			n, err := v.Lookup(t.Context(), path)
			switch {
			case kind == refused:
				wantErr(t, c.name+" is granted: "+path, err, objectstore.ErrPermission)
			case err != nil || n.Kind != kind:
				t.Errorf("%s is granted: %s is %s, %v, want %s", c.name, path, n.Kind, err, kind)
			}
		}
	}
	_, _, err := v.EntryJSON(t.Context(), "db")
	wantErr(t, "the entry of a guess", err, objectstore.ErrPermission)
}

// TestATableNamedLikeAnEntryThatIsListedIsNoGuess for as long as a listing may serve.
func TestATableNamedLikeAnEntryThatIsListedIsNoGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := rootView(t, func(o *Options) { o.TTL, o.NegativeTTL = 5*time.Second, time.Second })
		for _, id := range []string{"db/t", "db/t.json"} {
			s.set("wh/"+id+"/_sqe/table.json", manifestOf(id, "data", nil, nil))
		}
		s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
			if strings.HasPrefix(loc.Key, "wh/db/t.json/") {
				return objectstore.ErrPermission
			}
			return nil
		})
		if got := lookup(t, v, "db/t.json").Kind; got != KindEntry {
			t.Errorf("where it is not listed: got %s, want the entry of t", got)
		}
		wantLs(t, v, "db", "t/", "t.json/", "t.json.json")
		pass(4 * time.Second)
		if got := lookup(t, v, "db/t.json").Kind; got != KindTable {
			t.Errorf("where it is listed: got %s, want a table", got)
		}
		pass(staleFactor * 5 * time.Second)
		if got := lookup(t, v, "db/t.json").Kind; got != KindEntry {
			t.Errorf("where the listing is too old: got %s, want the entry of t", got)
		}
	})
}
