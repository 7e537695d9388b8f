package catalogview

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// failTables makes the catalog answer each request for one table with an error.
func failTables(c *fakeCatalog, err error) {
	c.setOn(func(_ context.Context, op string) error {
		if op == "table" {
			return err
		}
		return nil
	})
}

// TestCase39_WhatIsNotKnownIsNoDirectory: while the catalog cannot tell of a table, a
// name that is not known is an error, for as long as that lasts.
func TestCase39_WhatIsNotKnownIsNoDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t")
		for _, want := range []error{objectstore.ErrUnavailable, objectstore.ErrPermission, errors.New("of no sentinel")} {
			failTables(c, want)
			for _, path := range []string{"db/t", "db/t.json", "db/none", "db/none.json", "db/.json", "db/.json.json"} {
				_, err := v.Lookup(t.Context(), path)
				wantErr(t, path, err, want)
			}
			c.setOn(nil)
			if n := lookup(t, v, "db/t.json"); n.Kind != KindEntry || n.Size == 0 {
				t.Errorf("after %v: %+v", want, n)
			}
			if n := lookup(t, v, "db/t"); n.Kind != KindTable || !n.Table.Readable {
				t.Errorf("after %v: %+v", want, n)
			}
			_, err := v.Lookup(t.Context(), "db/none")
			wantErr(t, "db/none", err, objectstore.ErrNotExist)
			v.Refresh("")
		}
	})
}

// TestCase39_WhatIsListedKeepsItsKind for as long as the listing may serve.
func TestCase39_WhatIsListedKeepsItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t")
		wantLs(t, v, "db", "t/", "t.json")
		whole := lookup(t, v, "db/t.json")
		v.tables.drop(func(string) bool { return true }) // the listing alone knows
		for _, failure := range []error{objectstore.ErrUnavailable, objectstore.ErrPermission} {
			failTables(c, failure)
			for range 3 {
				n := lookup(t, v, "db/t.json")
				if n.Kind != KindEntry || n.Size != whole.Size || n.ETag != whole.ETag || n.Size == 0 || n.Path != "db/t.json" {
					t.Errorf("%v: the entry is %+v, want %+v", failure, n, whole)
				}
				if n := lookup(t, v, "db/t"); n.Kind != KindTable || n.Table.Readable {
					t.Errorf("%v: the table is %+v", failure, n)
				}
				for _, path := range []string{"db/none", "db/none.json"} {
					_, err := v.Lookup(t.Context(), path)
					wantErr(t, path, err, failure)
				}
				_, _, err := v.EntryJSON(t.Context(), "db/t")
				wantErr(t, "EntryJSON", err, failure)
				pass(4 * time.Second)
			}
		}
		pass(staleFactor * v.o.TTL)
		for _, path := range []string{"db/t", "db/t.json"} {
			_, err := v.Lookup(t.Context(), path)
			wantErr(t, path+", listed long ago", err, objectstore.ErrPermission)
		}
	})
}

// TestCase39_WhatWasReadKeepsItsKind: an entry that may still serve tells of a table too.
func TestCase39_WhatWasReadKeepsItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t")
		lookup(t, v, "db/t")
		failTables(c, objectstore.ErrPermission)
		pass(v.o.TTL)
		if n := lookup(t, v, "db/t"); n.Kind != KindTable || n.Table.Readable {
			t.Errorf("denied after it was read: %+v", n)
		}
		pass(staleFactor * v.o.TTL)
		_, err := v.Lookup(t.Context(), "db/t")
		wantErr(t, "denied long after it was read", err, objectstore.ErrPermission)
	})
}

// TestCase39_AManifestThatCannotBeAskedForIsNoTable in a bucket; where rights are
// lacking names open as directories.
func TestCase39_AManifestThatCannotBeAskedForIsNoTable(t *testing.T) {
	v, s := rootView(t, nil)
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "data", nil, nil))
	fail := func(failure error) {
		s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
			if strings.HasSuffix(loc.Key, "/table.json") {
				return failure
			}
			return nil
		})
	}
	fail(objectstore.ErrUnavailable)
	for _, path := range []string{"db/t", "db/t.json", "db/none", "db/none.json"} {
		_, err := v.Lookup(t.Context(), path)
		wantErr(t, path, err, objectstore.ErrUnavailable)
	}
	fail(objectstore.ErrPermission)
	for _, path := range []string{"db/t", "db/none"} {
		if n := lookup(t, v, path); n.Kind != KindTable || n.Table.Readable {
			t.Errorf("%s, denied: %+v", path, n)
		}
	}
	_, err := v.Lookup(t.Context(), "db/none.json")
	wantErr(t, "db/none.json, denied", err, objectstore.ErrPermission)
}

// TestCase39_ATableWhoseLocationCannotBeAskedForIsThere: its entry was read.
func TestCase39_ATableWhoseLocationCannotBeAskedForIsThere(t *testing.T) {
	v, s := rootView(t, nil)
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "s3://other/lake/data", nil, nil))
	s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
		if loc.Bucket == "other" {
			return objectstore.ErrUnavailable
		}
		return nil
	})
	if n := lookup(t, v, "db/t"); n.Kind != KindTable || n.Table.Readable {
		t.Errorf("the table: %+v", n)
	}
	if n := lookup(t, v, "db/t.json"); n.Kind != KindEntry || n.Size == 0 || n.ETag == "" {
		t.Errorf("its entry: %+v", n)
	}
	if b, n, err := v.EntryJSON(t.Context(), "db/t"); err != nil || n.Size != int64(len(b)) {
		t.Errorf("EntryJSON: %d bytes, %+v, %v", len(b), n, err)
	}
}

// TestCase39_AListedDatabaseKeepsItsKind while it cannot be asked for alone.
func TestCase39_AListedDatabaseKeepsItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &deafDatabases{fakeCatalog: newFakeCatalog()}
		v := NewView(c, newPageStore(), Options{Rootless: true})
		defer func() {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}()
		wantLs(t, v, "", "db/", "db.json")
		c.deaf.Store(true)
		for range 4 {
			if n := lookup(t, v, "db"); n.Kind != KindDatabase {
				t.Errorf("db is %+v", n)
			}
			if n := lookup(t, v, "db.json"); n.Kind != KindEntry || n.Size == 0 {
				t.Errorf("db.json is %+v", n)
			}
			for _, path := range []string{"none", "none.json"} {
				_, err := v.Lookup(t.Context(), path)
				wantErr(t, path, err, objectstore.ErrUnavailable)
			}
			pass(4 * time.Second)
		}
		pass(staleFactor * v.o.TTL)
		for _, path := range []string{"db", "db.json"} {
			_, err := v.Lookup(t.Context(), path)
			wantErr(t, path+", listed long ago", err, objectstore.ErrUnavailable)
		}
	})
}

// deafDatabases does not answer when it is asked for one database.
type deafDatabases struct {
	*fakeCatalog
	deaf atomic.Bool
}

func (c *deafDatabases) Database(ctx context.Context, name string) (Database, error) {
	if c.deaf.Load() {
		return Database{}, objectstore.ErrUnavailable
	}
	return c.fakeCatalog.Database(ctx, name)
}
