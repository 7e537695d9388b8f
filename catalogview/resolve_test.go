package catalogview

import (
	"errors"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestResolve(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"day:int", "r:string"}, nil)
	l.table("db/ft", "data/ft", []string{"day:int"}, formatParameters())
	l.table("db/delta", "data/delta", nil, func(m obj) { m["parameters"] = obj{"table_type": "DELTA"} })
	l.table("db/v", "", nil, func(m obj) { m["table_type"] = "VIRTUAL_VIEW" })
	for _, c := range []struct {
		path   string
		key    string
		level  int
		hidden bool
		format string
	}{
		{"db/t/f", "data/t/f", 0, false, "parquet"},
		{"db/t/day=1/f", "data/t/day=1/f", 1, false, "parquet"},
		{"db/t/day=1/r=x/f", "data/t/day=1/r=x/f", 2, false, "parquet"},
		{"db/t/day=1/r=x/_SUCCESS", "data/t/day=1/r=x/_SUCCESS", 2, true, ""},
		{"db/t/.f", "data/t/.f", 0, true, ""},
		{"db/t/_temporary/0/day=x/f", "data/t/_temporary/0/day=x/f", 3, true, ""},
		{"db/t/plain/day=x/f", "data/t/plain/day=x/f", 2, false, "parquet"},
		{"db/ft/day=1/f", "data/ft/day=1/f", 1, false, "parquet"},
	} {
		got, err := l.view.Resolve(t.Context(), c.path)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		base := strings.Join(strings.Split(c.key, "/")[:2], "/") + "/"
		if got.Location != (objectstore.Location{Bucket: l.root, Key: c.key}) || got.Prefix != (objectstore.Location{Bucket: l.root, Key: base}) ||
			got.Level != c.level || got.Hidden != c.hidden || got.Format != c.format || got.Directory().Key != c.key+"/" {
			t.Errorf("%s: got %+v", c.path, got)
		}
	}
	for path, want := range map[string]error{
		"": ErrLevel, "db": ErrLevel, "db/t": ErrLevel, "db/new": ErrLevel, "new": ErrLevel, "db/t.json": ErrLevel,
		"db/nope/f": objectstore.ErrNotExist, "db/v/f": objectstore.ErrNotExist, "nope/t/f": objectstore.ErrNotExist,
		"db/t/..": objectstore.ErrNotExist, "db/t/a/../b": objectstore.ErrNotExist, "db/t/.lakefs": ErrLevel, "db/t/x/.lakefs/y": ErrLevel,
	} {
		_, err := l.view.Resolve(t.Context(), path)
		wantErr(t, "Resolve("+path+")", err, want)
	}
	for path, want := range map[string]table.Class{
		"db/delta/f": table.ClassReadOnly, "db/t/day=x/f": table.ClassBroken, "db/t/day=x/r=1/f": table.ClassBroken,
	} {
		var verdict *VerdictError
		_, err := l.view.Resolve(t.Context(), path)
		if !errors.As(err, &verdict) || verdict.Class != want {
			t.Errorf("Resolve(%s): got %v, want class %s", path, err, want)
		}
	}
}

func TestResolveKeysOverTheStoresLength(t *testing.T) {
	l := newLake(t, func(o *Options) { o.MaxKey = 20 })
	l.table("db/t", "data/t", nil, nil)
	if _, err := l.view.Resolve(t.Context(), "db/t/"+strings.Repeat("x", 13)); err != nil {
		t.Errorf("20 bytes: %v", err)
	}
	_, err := l.view.Resolve(t.Context(), "db/t/"+strings.Repeat("x", 14))
	wantErr(t, "21 bytes", err, ErrNameTooLong)
}

func TestRule45AValueThatDoesNotParseFailsAlone(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"day:int", "d:date"}, nil)
	for _, p := range []string{"day=1/d=2024-01-01", "day=1/d=soon", "day=x/d=2024-01-01", "day=" + table.HiveNull + "/d=" + table.HiveNull} {
		l.write("data/t/"+p+"/f", "x")
	}
	wantLs(t, l.view, "db/t", "day=1/", "day=x/", "day="+table.HiveNull+"/")
	wantLs(t, l.view, "db/t/day=1", "d=2024-01-01/", "d=soon/")
	wantLs(t, l.view, "db/t/day=1/d=2024-01-01", "f")
	wantLs(t, l.view, "db/t/day="+table.HiveNull+"/d="+table.HiveNull, "f")
	lookup(t, l.view, "db/t/day=x")
	for dir, segment := range map[string]string{"db/t/day=x": "day=x", "db/t/day=1/d=soon": "d=soon"} {
		_, lookupErr := l.view.Lookup(t.Context(), dir+"/f")
		_, listErr := list(t.Context(), l.view, dir)
		_, resolveErr := l.view.Resolve(t.Context(), dir+"/new")
		for _, err := range []error{lookupErr, listErr, resolveErr} {
			var verdict *VerdictError
			if !errors.As(err, &verdict) || verdict.Class != table.ClassBroken || !strings.Contains(verdict.Reason, segment) {
				t.Errorf("%s: got %v, want broken that names %s", dir, err, segment)
			}
		}
		s, err := l.view.Status(t.Context(), dir)
		if err != nil || s.Readable || !strings.Contains(s.Reason, segment) {
			t.Errorf("Status(%s): %+v, %v", dir, s, err)
		}
	}
	s, err := l.view.Status(t.Context(), "db/t")
	if err != nil || s.Partitions != 3 || len(s.Unparsable) != 1 || s.Unparsable[0] != "day=x" {
		t.Errorf("Status: %+v, %v", s, err)
	}
}

func TestNewDirectories(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"d:int", "r:string"}, nil)
	l.table("db/ft", "data/ft", []string{"d:int"}, formatParameters())
	l.table("db/dates", "data/dates", []string{"dt:date"}, formatParameters())
	l.table("db/iso", "data/iso", []string{"dt:date"}, formatParameters("partition.legacy-name", "false"))
	l.table("db/vo", "data/vo", []string{"k:string"}, formatParameters("format-table.partition-path-only-value", "true"))
	l.table("db/meta", "data/meta", []string{"k:string"}, formatParameters("format-table.partition-path-only-value", "true"))
	l.mkdir("data/t/d=7/r=a b")
	l.mkdir("data/ft/d=7")
	l.write("data/meta/schema/schema-0", "{}")
	for _, c := range []struct {
		path string
		want error
	}{
		{"db/t/d=8", nil},
		{"db/t/d=07", table.ErrEqual}, // edge case 6
		{"db/t/d=a=b", table.ErrName}, // edge case 4
		{"db/t/d=x", table.ErrName},
		{"db/t/plain", table.ErrName},
		{"db/t/_hidden", nil},
		{"db/t/_temporary", nil},
		{"db/t/_temporary/d=x", nil},
		{"db/t/_hidden/anything", nil},
		{"db/t/d=7/r=a%20b", table.ErrEqual},
		{"db/t/d=7/r=b", nil},
		{"db/t/d=7/d=1", table.ErrName},
		{"db/t/d=7/r=b/sub", nil},
		{"db/t/d=9/r=b", nil}, // the parent is the caller's concern
		{"db/ft/d=07", table.ErrName},
		{"db/ft/d=8", nil},
		{"db/dates/dt=19723", nil}, // edge case 7
		{"db/dates/dt=2024-01-01", table.ErrName},
		{"db/dates/dt=foo", table.ErrName},
		{"db/iso/dt=2024-01-01", nil},
		{"db/iso/dt=19723", table.ErrName},
		{"db/vo/__DEFAULT_PARTITION__", nil}, // edge case 8
		{"db/vo/_x", table.ErrName},
		{"db/vo/schema", nil},
		{"db/meta/schema", table.ErrMetadata},
		{"db/meta/branch", table.ErrMetadata},
		{"db/meta/other", nil},
		{"db/t", ErrLevel},
		{"newdb", ErrLevel},
	} {
		_, err := l.view.ResolveDirectory(t.Context(), c.path)
		wantErr(t, "ResolveDirectory("+c.path+")", err, c.want)
	}
	var verdict *VerdictError
	_, err := l.view.ResolveDirectory(t.Context(), "db/meta/schema")
	if !errors.As(err, &verdict) || verdict.Class != table.ClassReadOnly {
		t.Errorf("metadata: got %v, want a read-only verdict", err)
	}
}

func TestRule21MetadataUnderTheTable(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/meta", "data/meta", []string{"k:string"}, formatParameters("format-table.partition-path-only-value", "true"))
	l.table("db/plain", "data/plain", []string{"k:string"}, formatParameters("format-table.partition-path-only-value", "true"))
	l.write("data/meta/schema/schema-0", "{}")
	l.write("data/meta/branch/b/f", "x")
	l.write("data/meta/v/f", "x")
	l.write("data/plain/branch/f", "x")
	for _, path := range []string{"db/meta/schema/new", "db/meta/branch/b/new", "db/meta/schema"} {
		_, err := l.view.Resolve(t.Context(), path)
		wantErr(t, "Resolve("+path+")", err, table.ErrMetadata)
	}
	for _, path := range []string{"db/meta/v/new", "db/plain/branch/new", "db/plain/schemas/new"} {
		if _, err := l.view.Resolve(t.Context(), path); err != nil {
			t.Errorf("Resolve(%s): %v", path, err)
		}
	}
	lookup(t, l.view, "db/meta/schema/schema-0")
	s, err := l.view.Status(t.Context(), "db/meta")
	if err != nil || s.Partitions != 1 {
		t.Errorf("Status: %+v, %v, want 1 partition", s, err)
	}
	if s, err = l.view.Status(t.Context(), "db/meta/schema"); err != nil || s.Writable {
		t.Errorf("Status of schema/: %+v, %v", s, err)
	}
}

func TestAFailedListingNeverAllowsADirectory(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"d:int"}, nil)
	l.mkdir("data/t/d=7")
	l.store.setFail(func(op string, loc objectstore.Location) error {
		if op == "list" && loc.Key == "data/t/" {
			return objectstore.ErrUnavailable
		}
		return nil
	})
	_, err := l.view.ResolveDirectory(t.Context(), "db/t/d=07")
	wantErr(t, "ResolveDirectory", err, objectstore.ErrUnavailable)
}
