package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// rootView is the view of a catalog in s3://b/wh/, which alone is allowed but
// for s3://other/lake/.
func rootView(t *testing.T, change func(*Options)) (*View, *pageStore) {
	t.Helper()
	s := newPageStore()
	o := Options{TTL: -1, NegativeTTL: -1, Roots: []string{"s3://b/wh", "S3://other/lake/"}}
	if change != nil {
		change(&o)
	}
	v := NewView(NewManifests(s, objectstore.Location{Bucket: "b", Key: "wh/"}, o), s, o)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v, s
}

func TestCase43LocationsInABucket(t *testing.T) {
	v, s := rootView(t, nil)
	s.set("wh/file", "x")
	for _, c := range []struct {
		location string
		at       objectstore.Location // of a good one
		class    table.Class
		reason   string
	}{
		{"s3://b/wh/o", objectstore.Location{Bucket: "b", Key: "wh/o/"}, "", ""},
		{"s3://b/wh/o/", objectstore.Location{Bucket: "b", Key: "wh/o/"}, "", ""},
		{"s3a://b/wh/o", objectstore.Location{Bucket: "b", Key: "wh/o/"}, "", ""},
		{"s3n://b/wh/o", objectstore.Location{Bucket: "b", Key: "wh/o/"}, "", ""},
		{"S3://b/wh/o", objectstore.Location{Bucket: "b", Key: "wh/o/"}, "", ""},
		{"s3://b/wh//o/", objectstore.Location{Bucket: "b", Key: "wh//o/"}, "", ""},
		{"s3://b/wh", objectstore.Location{Bucket: "b", Key: "wh/"}, "", ""},
		{"s3://b/wh/x y%20+?#é/", objectstore.Location{Bucket: "b", Key: "wh/x y%20+?#é/"}, "", ""},
		{"s3://other/lake/env=prod", objectstore.Location{Bucket: "other", Key: "lake/env=prod/"}, "", ""},
		{"data/o", objectstore.Location{Bucket: "b", Key: "wh/data/o/"}, "", ""},
		{"env=prod:1/t", objectstore.Location{Bucket: "b", Key: "wh/env=prod:1/t/"}, "", ""},
		{"s3://b/wh2", objectstore.Location{}, table.ClassDenied, "--allow-location"},
		{"s3://b/", objectstore.Location{}, table.ClassDenied, "--allow-location"},
		{"s3://B/wh/o", objectstore.Location{}, table.ClassDenied, "--allow-location"},
		{"s3://other/lake2", objectstore.Location{}, table.ClassDenied, "--allow-location"},
		{"s3://prod@b/wh/o", objectstore.Location{}, table.ClassDenied, "no bucket"},
		{"s3:///wh/o", objectstore.Location{}, table.ClassDenied, "no bucket"},
		{"s3:wh/o", objectstore.Location{}, table.ClassDenied, "no bucket"},
		{"s3://b/wh/../wh/o", objectstore.Location{}, table.ClassDenied, `".."`},
		{"s3://b/wh/./o", objectstore.Location{}, table.ClassDenied, `"."`},
		{"../o", objectstore.Location{}, table.ClassDenied, `".."`},
		{"o\x00", objectstore.Location{}, table.ClassDenied, "NUL"},
		{"/etc", objectstore.Location{}, table.ClassUnsupported, "local path"},
		{"file:///etc", objectstore.Location{}, table.ClassUnsupported, "local path"},
		{"FILE:/etc", objectstore.Location{}, table.ClassUnsupported, "local path"},
		{"hdfs://nn/x", objectstore.Location{}, table.ClassUnsupported, "hdfs"},
		{"https://b.s3.amazonaws.com/wh", objectstore.Location{}, table.ClassUnsupported, "https"},
		{"s3://b/wh/file", objectstore.Location{}, table.ClassBroken, "is a file"},
	} {
		s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", c.location, nil, nil))
		n := lookup(t, v, "db/t")
		if n.Table.Class != c.class || !strings.Contains(n.Table.Reason, c.reason) {
			t.Errorf("%q: got class %q, %q, want %q, %q", c.location, n.Table.Class, n.Table.Reason, c.class, c.reason)
			continue
		}
		if n.Location() != c.at {
			t.Errorf("%q: got %v, want %v", c.location, n.Location(), c.at)
		}
		lookup(t, v, "db/t.json")
		status, err := v.Status(t.Context(), "db/t")
		if c.class == "" {
			if want := "s3://" + c.at.Bucket + "/" + c.at.Key; err != nil || status.Location != want {
				t.Errorf("%q: status has %q, %v, want %q", c.location, status.Location, err, want)
			}
			target, failed := v.Resolve(t.Context(), "db/t/f")
			if want := c.at.Key + "f"; failed != nil || target.Location.Key != want {
				t.Errorf("%q: to be written to %q, %v, want %q", c.location, target.Location.Key, failed, want)
			}
			continue
		}
		var verdict *VerdictError
		_, err = list(t.Context(), v, "db/t")
		if !errors.As(err, &verdict) || verdict.Class != c.class {
			t.Errorf("%q: ReadDir: got %v", c.location, err)
		}
		if outside := "s3://" + strings.TrimPrefix(c.location, "s3://"); strings.Contains(c.reason, "--allow") && n.Table.Outside != strings.TrimSuffix(outside, "/")+"/" {
			t.Errorf("%q: to be allowed: %q", c.location, n.Table.Outside)
		}
	}
}

func TestCase42LocationsAreHeldApartBySlashes(t *testing.T) {
	v, s := rootView(t, nil)
	for id, location := range map[string]string{"db/orders": "s3://b/wh/data/orders", "db/orders_old": "s3://b/wh/data/orders_old/"} {
		s.set("wh/"+id+"/_sqe/table.json", manifestOf(id, location, nil, nil))
	}
	s.set("wh/data/orders/f", "1")
	s.set("wh/data/orders_old/g", "1")
	s.set("wh/data/orders.bak", "1")
	wantLs(t, v, "db/orders", "f")
	wantLs(t, v, "db/orders_old", "g")
}

func TestRule51InABucket(t *testing.T) {
	var log strings.Builder
	v, s := rootView(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil)) })
	for id, location := range map[string]string{
		"db/own": "db/own", "db/root": "s3://b/wh", "db/inside": "db/own/_sqe", "db/fine": "data/fine", "db/e": "s3://other/lake/",
	} {
		s.set("wh/"+id+"/_sqe/table.json", manifestOf(id, location, nil, nil))
	}
	s.set("wh/db/own/f", "x")
	wantLs(t, v, "db/own", "f")
	wantLs(t, v, "db/root/db/own", "f")
	wantLs(t, v, "db/inside", "table.json")
	for _, path := range []string{"db/fine", "db/e"} {
		wantLs(t, v, path)
	}
	for path, readOnly := range map[string]bool{
		"db/own/_sqe/x": true, "db/own/_sqe": true, "db/root/db/own/_sqe/table.json": true, "db/root/x/_sqe": true,
		"db/inside/new": true, "db/e/_sqe/f": false, "db/fine/x": false, "db/own/x": false,
	} {
		var verdict *VerdictError
		_, err := v.Resolve(t.Context(), path)
		if got := errors.As(err, &verdict) && verdict.Class == table.ClassReadOnly; got != readOnly || !readOnly && err != nil {
			t.Errorf("Resolve(%s): got %v, want read-only: %v", path, err, readOnly)
		}
	}
	for _, id := range []string{"db/own", "db/root", "db/inside"} {
		if n := strings.Count(log.String(), "table="+id+" "); n == 0 {
			t.Errorf("%s: no warning:\n%s", id, log.String())
		}
	}
	if strings.Contains(log.String(), "db/fine") || strings.Contains(log.String(), "db/e ") {
		t.Errorf("warned of a good location:\n%s", log.String())
	}
}

func TestRule51ALocationAboveTheRoot(t *testing.T) {
	v, s := rootView(t, func(o *Options) { o.Roots = append(o.Roots, "s3://b") })
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "s3://b/", nil, nil))
	var verdict *VerdictError
	_, err := v.Resolve(t.Context(), "db/t/wh/db/t/_sqe/table.json")
	if !errors.As(err, &verdict) || verdict.Class != table.ClassReadOnly {
		t.Errorf("a manifest: got %v, want read-only", err)
	}
	if _, err := v.Resolve(t.Context(), "db/t/elsewhere/_sqe/x"); err != nil {
		t.Errorf("a _sqe outside the root: %v", err)
	}
}

func TestRule54ASecretIsOfTheLocation(t *testing.T) {
	v, s := rootView(t, func(o *Options) { o.Secrets = []string{"prod"} })
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "s3://other/lake/t", nil, func(m obj) { m["sqe"] = obj{"secret": "prod"} }))
	want := objectstore.Location{Bucket: "prod@other", Key: "lake/t/"}
	if got := lookup(t, v, "db/t").Location(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	status, err := v.Status(t.Context(), "db/t")
	if err != nil || status.Location != "s3://other/lake/t/" {
		t.Errorf("status: %q, %v", status.Location, err)
	}
}

func TestADatabasesEntryInABucket(t *testing.T) {
	v, s := rootView(t, nil)
	s.set("wh/sales/t/_sqe/table.json", manifestOf("sales/t", "data", nil, nil))
	got, _, err := v.EntryJSON(t.Context(), "sales")
	want := "{\n  \"Database\": {\n    \"Name\": \"sales\",\n    \"LocationUri\": \"s3://b/wh/sales\"\n  }\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRequestsForManifestsInABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := rootView(t, func(o *Options) { o.TTL, o.NegativeTTL = 0, 0 })
		for i := range 40 {
			id := fmt.Sprintf("db/t%02d", i)
			s.set("wh/"+id+"/_sqe/table.json", manifestOf(id, "data/"+id, nil, formatParameters()))
		}
		s.setOn(slow(100 * time.Millisecond))
		begin := time.Now()
		// A database, its tables; of each its manifest's HEAD and GET, that its
		// location is no file, and whether it holds a schema.
		wantRequests(t, "cold ls", s.requests(func() { ls(t, v, "db") }), map[string]int{"list": 2 + 40*2, "stat": 40 * 2, "read": 40})
		// Sixteen at a time: three rounds of each, by two rounds of what judges them.
		if took := time.Since(begin); took != (2+3+3*3)*100*time.Millisecond {
			t.Errorf("cold ls took %s", took)
		}
		wantRequests(t, "walk", s.requests(func() {
			lookup(t, v, "db")
			lookup(t, v, "db/t07")
			if _, err := v.Resolve(t.Context(), "db/t07/new"); err != nil {
				t.Error(err)
			}
		}), none())
		pass(6 * time.Second)
		wantRequests(t, "walk after the TTL", s.requests(func() { lookup(t, v, "db/t07") }), map[string]int{"list": 1, "stat": 1})
		pass(6 * time.Second)
		wantRequests(t, "ls after the TTL", s.requests(func() { ls(t, v, "db") }), map[string]int{"list": 2, "stat": 40})
	})
}

func TestCase39ALocationNeedsNoRightsOnItsName(t *testing.T) {
	for _, denied := range []string{"stat", "list"} {
		v, s := rootView(t, nil)
		s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "data/t", nil, nil))
		s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
			if op == denied && strings.HasPrefix(loc.Key, "wh/data/") {
				return objectstore.ErrPermission
			}
			return nil
		})
		if tab := lookup(t, v, "db/t").Table; !tab.Readable || !tab.Writable {
			t.Errorf("%s denied: %+v", denied, tab)
		}
	}
}

// Credentials in a location are in nothing that is said of it.
func TestCredentialsInALocationAreNotShown(t *testing.T) {
	for location, want := range map[string]string{
		"s3://KEY:SECRET@bucket/wh/o":   "s3://…@bucket/wh/o",
		"s3://KEY:SEC/RET@bucket/wh":    "s3://…@bucket/wh",
		"s3://KEY:SECRET@bucket/wh/a@b": "s3://…@b", // as a "/" may be in a key
		"S3A://KEY@bucket/wh/a@b":       "S3A://…@bucket/wh/a@b",
		"s3:KEY:SECRET@bucket/wh":       "s3:…@bucket/wh",
		"s3:/KEY:SECRET@bucket/wh":      "s3:/…@bucket/wh",
		"s3:///KEY:SECRET@bucket/wh":    "s3:///…@bucket/wh",
		" s3://KEY:SECRET@bucket/wh":    " s3://…@bucket/wh",
		"https://user:SECRET@h:9000/b":  "https://…@h:9000/b",
		"file://user:SECRET@host/d":     "file://…@host/d",
		"file:///home/a@b/c":            "file:///home/a@b/c",
		"s3://bucket/wh/a@b":            "s3://bucket/wh/a@b",
		"/home/a@b":                     "/home/a@b",
		"data/a@b":                      "data/a@b",
		"":                              "",
	} {
		if got := maskUserinfo(location); got != want {
			t.Errorf("%q: got %q, want %q", location, got, want)
		}
	}
	var log strings.Builder
	v, s := rootView(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil)) })
	folder := folderResolver{roots: []string{"/wh"}, eval: func(p string) (string, error) { return p, nil }}
	for _, location := range []string{
		"s3://KEY:SECRET@b/wh/o", "s3a://KEY:SE/CRET@b/wh/o", "s3:KEY:SECRET@b/wh", "s3://KEY:SECRET@b/wh/../o", "s3://KEY:x/SECRET@b/.",
		"s3://KEY:SECRET@b/x\x00", "hdfs://KEY:SECRET@nn/x", "file://KEY:SECRET@host/x",
	} {
		manifest := manifestOf("db/t", location, nil, nil)
		s.set("wh/db/t/_sqe/table.json", manifest)
		n := lookup(t, v, "db/t")
		status, err := v.Status(t.Context(), "db/t")
		if err != nil || n.Table.Readable {
			t.Errorf("%q: readable %v, %v", location, n.Table.Readable, err)
		}
		_, ref := folder.resolve(location, "")
		if ref == nil {
			t.Fatalf("%q: a folder takes it", location)
		}
		for _, said := range []string{n.Table.Reason, n.Table.Outside, status.Reason, status.EntryLocation, ref.reason, ref.outside} {
			if strings.Contains(said, "CRET") || strings.Contains(said, "KEY") {
				t.Errorf("%q: shown in %q", location, said)
			}
		}
		if !strings.Contains(n.Table.Reason, "…@") || !strings.Contains(ref.reason, "…@") {
			t.Errorf("%q: not to be recognised in %q, %q", location, n.Table.Reason, ref.reason)
		}
		raw, _, err := v.EntryJSON(t.Context(), "db/t")
		if err != nil || string(raw) != manifest {
			t.Errorf("the entry is changed: %q, %v", raw, err)
		}
	}
	if strings.Contains(log.String(), "CRET") {
		t.Errorf("logged: %s", log.String())
	}
}
