package catalogview

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestRule43Locations(t *testing.T) {
	l := newLake(t, nil)
	tmp := filepath.Dir(l.root)
	for link, to := range map[string]string{
		"wh/in": filepath.Join(l.root, "data"), "wh/out": "/etc", "wh/neighbour": filepath.Join(tmp, "wh2"), "wh/loop": "loop",
		"wh/allowed": l.extra,
	} {
		if err := os.Symlink(to, filepath.Join(tmp, link)); err != nil {
			t.Fatal(err)
		}
	}
	l.write("data/file", "x")
	root, extra := l.root, l.extra
	for _, c := range []struct {
		location string
		bucket   string // of a good one
		key      string
		class    table.Class
		reason   string
	}{
		{"data/o", root, "data/o/", "", ""},
		{"data/o/", root, "data/o/", "", ""},
		{"./data//o/./", root, "data/o/", "", ""},
		{root + "/data/o", root, "data/o/", "", ""},
		{"file:" + root + "/data/o", root, "data/o/", "", ""},
		{"file://" + root + "/data/o", root, "data/o/", "", ""},
		{"FILE://localhost" + root + "/o", root, "o/", "", ""},
		{extra, extra, "", "", ""},
		{extra + "/x y%20", extra, "x y%20/", "", ""},
		{"in/o", root, "data/o/", "", ""},
		{"allowed/o", extra, "o/", "", ""},
		{"env=prod/t", root, "env=prod/t/", "", ""},
		{"/etc", "", "", table.ClassDenied, "--allow-location"},
		{"file:///etc", "", "", table.ClassDenied, "--allow-location"},
		{"file://other/etc", "", "", table.ClassDenied, "another host"},
		{"file:relative", "", "", table.ClassDenied, "no absolute path"},
		{root + "2/x", "", "", table.ClassDenied, "outside"},
		{"out/x", "", "", table.ClassDenied, "outside"},
		{"neighbour/x", "", "", table.ClassDenied, "outside"},
		{"../wh/data", "", "", table.ClassDenied, `".."`},
		{root + "/data/../data", "", "", table.ClassDenied, `".."`},
		{"s3://b/wh", "", "", table.ClassDenied, "local folder"},
		{"S3A://b/wh", "", "", table.ClassDenied, "local folder"},
		{"hdfs://nn/x", "", "", table.ClassUnsupported, "hdfs"},
		{"gs://b/x", "", "", table.ClassUnsupported, "gs"},
		{"loop/x", "", "", table.ClassBroken, "loop"},
		{"data/file", "", "", table.ClassBroken, "is a file"},
		{"data/file/x", "", "", table.ClassBroken, "data/file"},
		{"data\x00/x", "", "", table.ClassDenied, "NUL"},
	} {
		l.table("db/t", c.location, nil, nil)
		n := lookup(t, l.view, "db/t")
		if n.Table.Class != c.class || !strings.Contains(n.Table.Reason, c.reason) {
			t.Errorf("%q: got class %q, %q, want %q, %q", c.location, n.Table.Class, n.Table.Reason, c.class, c.reason)
			continue
		}
		if want := (objectstore.Location{Bucket: c.bucket, Key: c.key}); n.Location() != want {
			t.Errorf("%q: got %v, want %v", c.location, n.Location(), want)
		}
		if c.class == "" {
			continue
		}
		var verdict *VerdictError
		_, err := list(t.Context(), l.view, "db/t")
		if !errors.As(err, &verdict) || verdict.Class != c.class {
			t.Errorf("%q: ReadDir: got %v", c.location, err)
		}
		lookup(t, l.view, "db/t.json")
	}
}

func TestEdge11LocationIsCheckedAtEveryLoad(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/link", nil, nil)
	l.write("data/real/f", "x")
	link := filepath.Join(l.root, "data/link")
	if err := os.Symlink(filepath.Join(l.root, "data/real"), link); err != nil {
		t.Fatal(err)
	}
	wantLs(t, l.view, "db/t", "f")
	// The link turns, the manifest stays as it was.
	if err := errors.Join(os.Remove(link), os.Symlink("/etc", link)); err != nil {
		t.Fatal(err)
	}
	var verdict *VerdictError
	_, err := l.view.Lookup(t.Context(), "db/t/passwd")
	if !errors.As(err, &verdict) || verdict.Class != table.ClassDenied {
		t.Errorf("link turned: got %v, want denied", err)
	}
	// The manifest moves.
	l.table("db/t", "data/real", nil, nil)
	wantLs(t, l.view, "db/t", "f")
	l.table("db/t", "/etc", nil, nil)
	_, err = list(t.Context(), l.view, "db/t")
	if !errors.As(err, &verdict) || verdict.Class != table.ClassDenied {
		t.Errorf("manifest moved: got %v, want denied", err)
	}
}

func TestRule51UnwiseLocationsWorkAndAreWarnedOfOnce(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/own", "db/own", nil, nil)
	l.table("db/root", "", nil, func(m obj) { m["storage_descriptor"].(obj)["location"] = l.root })
	l.table("db/inside", "db/own/_sqe", nil, nil)
	l.table("db/fine", "data/fine", nil, nil)
	l.write("db/own/f", "x")
	for range 3 {
		wantLs(t, l.view, "db/own", "f")
		wantLs(t, l.view, "db/root", "db/")
		wantLs(t, l.view, "db/root/db/own", "f")
		wantLs(t, l.view, "db/inside", "table.json")
		wantLs(t, l.view, "db/fine")
	}
	log := l.log.String()
	for _, id := range []string{"db/own", "db/root", "db/inside"} {
		if n := strings.Count(log, "table="+id+" "); n != 1 {
			t.Errorf("%s: %d warnings, want 1:\n%s", id, n, log)
		}
	}
	if strings.Contains(log, "db/fine") {
		t.Errorf("warned of a good location:\n%s", log)
	}
	for _, path := range []string{
		"db/own/_sqe/x", "db/own/_sqe", "db/own/a/_sqe/x", "db/root/db/own/_sqe/table.json", "db/root/x/y/_sqe", "db/inside/table.json", "db/inside/new",
	} {
		var verdict *VerdictError
		_, err := l.view.Resolve(t.Context(), path)
		if !errors.As(err, &verdict) || verdict.Class != table.ClassReadOnly {
			t.Errorf("Resolve(%s): got %v, want read-only", path, err)
		}
	}
	// Outside the manifests' root _sqe is a name like others.
	l.table("db/e", l.extra, nil, nil)
	l.write(filepath.Join(l.extra, "_sqe/f"), "x")
	wantLs(t, l.view, "db/e", "_sqe/")
	if _, err := l.view.Resolve(t.Context(), "db/e/_sqe/f"); err != nil {
		t.Error(err)
	}
}

func TestRule54AnUnknownSecretIsALoadError(t *testing.T) {
	for _, secrets := range [][]string{nil, {"prod"}} {
		l := newLake(t, func(o *Options) { o.Secrets = secrets })
		l.table("db/t", "data", nil, func(m obj) { m["sqe"] = obj{"secret": "prod"} })
		tab := lookup(t, l.view, "db/t").Table
		if tab.Readable != (secrets != nil) || !tab.Readable && !strings.Contains(tab.Reason, `"prod"`) {
			t.Errorf("secrets %q: %+v", secrets, tab)
		}
	}
}

// A name that the store holds but does not show is told from a free one, also
// where a marker of that name says that there is a directory.
func TestLookupHiddenName(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", nil, nil)
	l.write("data/t/link_$folder$", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(l.root, "data/t/link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"link": true, "free": false} {
		_, err := l.view.Lookup(t.Context(), "db/t/"+name)
		if got := errors.Is(err, objectstore.ErrHidden); got != want || !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("Lookup of %s: %v: hidden %v, want %v, and ErrNotExist", name, err, got, want)
		}
	}
}
