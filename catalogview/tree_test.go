package catalogview

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestEntriesStandBesideDirectoriesAtRootAndDatabaseAlone(t *testing.T) {
	l := newLake(t, nil)
	l.table("sales/orders", "data/orders", []string{"day:int"}, nil)
	l.table("sales/v", "", nil, func(m obj) { m["table_type"] = "VIRTUAL_VIEW" })
	l.write("data/orders/day=1/f", "x")
	l.mkdir("_hidden")
	l.mkdir(".git")
	l.write("file", "no database")
	l.mkdir("sales/no_manifest")
	l.write("sales/file", "no table")
	wantLs(t, l.view, "", "sales/", "sales.json", "data/", "data.json")
	wantLs(t, l.view, "sales", "orders/", "orders.json", "v.json")
	wantLs(t, l.view, "sales/orders", "day=1/")
	wantLs(t, l.view, "sales/orders/day=1", "f")
	for _, path := range []string{
		"_hidden", ".git", "file", "sales/v", "sales/no_manifest", "sales/file", "nope.json", "sales/nope.json",
		"sales/orders/day=1.json", "sales/orders/nope", ".json", "sales/.json", "sales//orders", "sales/../sales", "sales/.",
		"nope/orders", "sales.json/x", "sales/orders.json/x", "sales/orders/day=1/f/x", "sales/v/x",
	} {
		_, err := l.view.Lookup(t.Context(), path)
		wantErr(t, "Lookup("+path+")", err, objectstore.ErrNotExist)
	}
	for _, path := range []string{"nope", "sales/nope", "sales/v", "sales/orders/nope", "sales/orders/day=1/f", "sales.json", "file"} {
		_, err := list(t.Context(), l.view, path)
		wantErr(t, "ReadDir("+path+")", err, objectstore.ErrNotExist)
	}
	n := lookup(t, l.view, "sales/orders/day=1/f")
	if n.Kind != KindObject || n.Size != 1 || n.ETag == "" || n.Level != 2 || n.Table == nil || n.Object.Key != "data/orders/day=1/f" {
		t.Errorf("object: %+v", n)
	}
	n = lookup(t, l.view, "sales/orders")
	if n.Kind != KindTable || n.Location() != (objectstore.Location{Bucket: l.root, Key: "data/orders/"}) || n.ModTime.IsZero() {
		t.Errorf("table: %+v", n)
	}
}

func TestStatusOfEachLevel(t *testing.T) {
	l := newLake(t, nil)
	l.table("sales/orders", "data/orders", []string{"day:int"}, nil)
	l.table("sales/lake", "data/lake", nil, func(m obj) { m["parameters"] = obj{"table_type": "iceberg"} })
	l.write("data/orders/day=1/f", "x")
	l.write("data/orders/plain/f", "x")
	for path, want := range map[string]string{
		"":      `{"path":"","kind":"catalog","readable":true,"writable":false,"databases":2,"partitions":0,"unreachable_keys":0,"shadowed":0}`,
		"sales": `{"path":"sales","kind":"database","readable":true,"writable":false,"tables":2,"partitions":0,"unreachable_keys":0,"shadowed":0}`,
		"sales/orders": `{"path":"sales/orders","kind":"hive","format":"parquet","format_from":"serde org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",` +
			`"location":"` + l.root + `/data/orders","entry_location":"data/orders","readable":true,"writable":true,"partition_keys":["day"],"partitions":1,"unreachable_keys":0,"shadowed":0}`,
		"sales/orders/day=1": `{"path":"sales/orders/day=1","kind":"hive","format":"parquet","format_from":"serde org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",` +
			`"location":"` + l.root + `/data/orders/day=1","entry_location":"data/orders","readable":true,"writable":true,"partition_keys":["day"],"partitions":0,"unreachable_keys":0,"shadowed":0}`,
	} {
		s, err := l.view.Status(t.Context(), path)
		got, _ := json.Marshal(s)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", path, err, got, want)
		}
	}
	s, err := l.view.Status(t.Context(), "sales/lake")
	if err != nil || !s.Readable || s.Writable || !strings.Contains(s.Reason, "Iceberg") {
		t.Errorf("iceberg: %+v, %v", s, err)
	}
	for _, path := range []string{"nope", "sales/nope", "sales/orders/nope", "nope/x"} {
		_, err := l.view.Status(t.Context(), path)
		wantErr(t, "Status("+path+")", err, objectstore.ErrNotExist)
	}
	if got := lookup(t, l.view, "").Kind.String() + lookup(t, l.view, "sales").Kind.String(); got != "rootdatabase" {
		t.Errorf("kinds: %s", got)
	}
}

func TestARealNameWinsOverAnEntry(t *testing.T) {
	l := newLake(t, nil)
	l.mkdir("sales.json")
	l.table("sales/orders", "d1", nil, nil)
	l.table("sales/orders.json", "d2", nil, nil)
	l.table("sales/seen", "d3", nil, nil)
	l.table("sales/seen.json", "", nil, func(m obj) { m["table_type"] = "VIRTUAL_VIEW" }) // has no directory
	wantLs(t, l.view, "", "sales/", "sales.json/", "sales.json.json")
	wantLs(t, l.view, "sales", "orders/", "orders.json/", "orders.json.json", "seen/", "seen.json", "seen.json.json")
	for path, want := range map[string]Kind{
		"sales.json": KindDatabase, "sales.json.json": KindEntry,
		"sales/orders.json": KindTable, "sales/orders.json.json": KindEntry, "sales/seen.json": KindEntry,
	} {
		if got := lookup(t, l.view, path).Kind; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestCase60LongNames(t *testing.T) {
	l := newLake(t, nil)
	n250, n251, n255 := strings.Repeat("a", 250), strings.Repeat("b", 251), strings.Repeat("c", 255)
	l.mkdir(n250)
	l.mkdir(n251)
	l.table("sales/"+n251, "d", nil, nil)
	l.table("sales/t", "data", nil, nil)
	l.write("data/"+n255, "x")
	wantLs(t, l.view, "", n250+"/", n250+".json", n251+"/", "sales/", "sales.json", "data/", "data.json")
	wantLs(t, l.view, "sales", n251+"/", "t/", "t.json")
	lookup(t, l.view, n250+".json")
	lookup(t, l.view, "sales/t/"+n255)
	got := l.store.requests(func() {
		for _, path := range []string{n251 + ".json", "sales/" + n255 + "d", "sales/t/" + n255 + "d", "sales/t/" + n255 + "d/x"} {
			_, err := l.view.Lookup(t.Context(), path)
			wantErr(t, "Lookup", err, ErrNameTooLong)
			_, err = l.view.Resolve(t.Context(), path)
			wantErr(t, "Resolve", err, ErrNameTooLong)
		}
	})
	if len(got) != 0 {
		t.Errorf("requests: %v, want none", got)
	}
	if b, _, err := l.view.EntryJSON(t.Context(), n251); err != nil || len(b) == 0 {
		t.Errorf("EntryJSON of a name without NAME.json: %v", err)
	}
}

func TestDatabaseEntryIsMade(t *testing.T) {
	l := newLake(t, nil)
	l.mkdir("a<b&c")
	got, n, err := l.view.EntryJSON(t.Context(), "a<b&c")
	want := "{\n  \"Database\": {\n    \"Name\": \"a<b&c\",\n    \"LocationUri\": \"file://" + l.root + "/a<b&c\"\n  }\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	m := lookup(t, l.view, "a<b&c.json")
	if n.Size != int64(len(want)) || m.Size != n.Size || m.ETag != n.ETag || m.Path != n.Path || m.Kind != KindEntry {
		t.Errorf("nodes: %+v, %+v", n, m)
	}
}

func TestCase55EntryIsTheManifestsBytes(t *testing.T) {
	l := newLake(t, nil)
	raw := "{ \"manifest_version\":1,\n\t\"parameters\": {\"p\":\"a<b && c>d\", \"n\":12345678901234567, \"u\":\"\u2028\\u2028\"},\"storage_descriptor\":{\"location\":\"d\"}}\r\n\n"
	l.write("db/t/_sqe/table.json", raw)
	got, n, err := l.view.EntryJSON(t.Context(), "db/t")
	if err != nil || string(got) != raw || n.Size != int64(len(raw)) {
		t.Errorf("got %q, %d, %v", got, n.Size, err)
	}
	if m := lookup(t, l.view, "db/t.json"); m.Size != n.Size || m.ETag != n.ETag {
		t.Errorf("Lookup %+v, EntryJSON %+v", m, n)
	}
	if tab := lookup(t, l.view, "db/t").Table; tab.Parameters["n"] != "12345678901234567" {
		t.Errorf("parameters: %q", tab.Parameters)
	}
	for _, path := range []string{"", "db/t/x", "nope", "db/nope"} {
		_, _, err := l.view.EntryJSON(t.Context(), path)
		wantErr(t, "EntryJSON("+path+")", err, objectstore.ErrNotExist)
	}
}

func TestCase54OneBrokenEntryFailsAloneAndHeals(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/good", "data/good", nil, nil)
	l.write("data/good/f", "x")
	big := strings.Repeat("x", 1<<20+100)
	broken := map[string]string{
		"empty": "", "cut": `{"manifest_version":1,`, "bom": "\xef\xbb\xbf{}", "garbage": "{}x", "twice": `{"a":1,"a":2}`,
		"array": "[]", "utf8": "{\"a\":\"\xff\"}", "big": big, "other": manifestOf("db/another", "data/good", nil, nil),
	}
	want := []string{"good/", "good.json"}
	for name, raw := range broken {
		l.write("db/"+name+"/_sqe/table.json", raw)
		want = append(want, name+"/", name+".json")
	}
	l.mkdir("db/none/_sqe")
	wantLs(t, l.view, "db", want...)
	wantLs(t, l.view, "db/good", "f")
	for name, raw := range broken {
		n := lookup(t, l.view, "db/"+name)
		if n.Table.Kind != table.Broken || n.Table.Reason == "" {
			t.Errorf("%s: %+v", name, n.Table)
		}
		var verdict *VerdictError
		for what, err := range map[string]error{
			"Lookup":  second(l.view.Lookup(t.Context(), "db/"+name+"/x")),
			"ReadDir": second(list(t.Context(), l.view, "db/"+name)),
			"Resolve": second(l.view.Resolve(t.Context(), "db/"+name+"/x")),
		} {
			if !errors.As(err, &verdict) || verdict.Class != table.ClassBroken || verdict.Reason != n.Table.Reason {
				t.Errorf("%s of %s: got %v, want a verdict", what, name, err)
			}
		}
		raw = raw[:min(len(raw), 1<<20)]
		got, e, err := l.view.EntryJSON(t.Context(), "db/"+name)
		if err != nil || string(got) != raw || e.Size != int64(len(raw)) || lookup(t, l.view, "db/"+name+".json").Size != e.Size {
			t.Errorf("EntryJSON(%s): %d bytes, node %d, %v, want %d", name, len(got), e.Size, err, len(raw))
		}
		s, err := l.view.Status(t.Context(), "db/"+name)
		if err != nil || s.Readable || s.Reason != n.Table.Reason || s.Kind != "broken" {
			t.Errorf("Status(%s): %+v, %v", name, s, err)
		}
	}
	if n := lookup(t, l.view, "db/big"); !strings.Contains(n.Table.Reason, "1048676") {
		t.Errorf("big: %s", n.Table.Reason)
	}
	l.table("db/cut", "data/good", nil, nil)
	wantLs(t, l.view, "db/cut", "f")
}

func second[T any](_ T, err error) error { return err }

func TestAnUnreadableManifestFailsAlone(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/good", "data/good", nil, nil)
	l.table("db/bad", "data/bad", nil, nil)
	for _, c := range []struct {
		err   error
		class table.Class
	}{{objectstore.ErrPermission, table.ClassDenied}, {objectstore.ErrUnavailable, table.ClassBroken}} {
		l.store.setFail(func(_ string, loc objectstore.Location) error {
			if strings.HasPrefix(loc.Key, "db/bad/") {
				return c.err
			}
			return nil
		})
		wantLs(t, l.view, "db", "good/", "good.json", "bad/", "bad.json")
		if n := lookup(t, l.view, "db/bad"); n.Kind != KindTable || n.Table.Class != c.class {
			t.Errorf("%v: %+v", c.err, n.Table)
		}
		_, err := l.view.Lookup(t.Context(), "db/bad/x")
		var verdict *VerdictError
		if !errors.As(err, &verdict) || verdict.Class != c.class {
			t.Errorf("%v: got %v", c.err, err)
		}
		_, _, err = l.view.EntryJSON(t.Context(), "db/bad")
		wantErr(t, "EntryJSON", err, c.err)
		l.store.setFail(nil)
		wantLs(t, l.view, "db/bad")
	}
}

func TestAListingIsWholeOrAnError(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", nil, nil)
	l.write("data/t/f", "x")
	l.store.setFail(func(op string, _ objectstore.Location) error {
		if op == "list" {
			return objectstore.ErrUnavailable
		}
		return nil
	})
	for _, path := range []string{"", "db", "db/t"} {
		_, err := list(t.Context(), l.view, path)
		wantErr(t, "ReadDir("+path+")", err, objectstore.ErrUnavailable)
	}
	l.store.setFail(nil)
	wantLs(t, l.view, "db/t", "f")
}

func TestCase51HiddenNames(t *testing.T) {
	l := newLake(t, nil)
	l.mkdir("_raw")
	l.table("db/t", "data/t", []string{"day:int"}, nil)
	for _, f := range []string{
		"_SUCCESS", "_metadata", "_delta_log/0.json", "_year/x", ".hidden", "_temporary/0/x", "_temporary-1/x",
		".hive-staging_1/x", ".spark-staging-1/x", "__magic_job/x", "day=1/_temporary/y", "day=1/f", ".lakefs/x", "_sqe/table.json",
	} {
		l.write("data/t/"+f, "x")
	}
	wantLs(t, l.view, "", "data/", "data.json", "db/", "db.json")
	wantLs(t, l.view, "db/t", "_SUCCESS", "_metadata", "_delta_log/", "_year/", ".hidden", "day=1/")
	wantLs(t, l.view, "db/t/day=1", "f")
	wantLs(t, l.view, "db/t/_temporary", "0/")
	for path, want := range map[string]Kind{
		"_temporary": KindDirectory, "_temporary/0/x": KindObject, "__magic_job": KindDirectory, "day=1/_temporary/y": KindObject,
		".hive-staging_1/x": KindObject, "_sqe": KindDirectory, "_sqe/table.json": KindObject,
	} {
		if got := lookup(t, l.view, "db/t/"+path).Kind; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	_, err := l.view.Lookup(t.Context(), "db/t/.lakefs")
	wantErr(t, ".lakefs", err, objectstore.ErrNotExist)
	s, err := l.view.Status(t.Context(), "db/t")
	if err != nil || s.Shadowed != 1 || s.Partitions != 1 {
		t.Errorf("Status: %+v, %v", s, err)
	}
}

func TestAPartitionThatLooksLikeAStagingTreeIsListed(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"__magic:int"}, nil)
	l.write("data/t/__magic=1/f", "x")
	l.write("data/t/__magic_job/f", "x")
	l.write("data/t/__magic=1/__magic=2/f", "x")
	wantLs(t, l.view, "db/t", "__magic=1/")
	wantLs(t, l.view, "db/t/__magic=1", "f")
}

func TestFolderMarkers(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", nil, nil)
	l.write("data/t/a_$folder$", "")
	l.write("data/t/b_$folder$", "")
	l.write("data/t/b/f", "x")
	l.write("data/t/c_$folder$", "bytes")
	l.write("data/t/d_$folder$", "")
	l.write("data/t/d", "a file")
	wantLs(t, l.view, "db/t", "a/", "b/", "c_$folder$", "d")
	wantLs(t, l.view, "db/t/a")
	wantLs(t, l.view, "db/t/b", "f")
	for _, gone := range []string{"a_$folder$", "b_$folder$", "c"} {
		_, err := l.view.Lookup(t.Context(), "db/t/"+gone)
		wantErr(t, gone, err, objectstore.ErrNotExist)
	}
}

func TestCase42NeighboursWithACommonPrefix(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/orders", filepath.Join(l.root, "data/orders"), nil, nil) // no slash
	l.table("db/orders_old", "data/orders_old/", nil, nil)
	l.write("data/orders/f", "x")
	l.write("data/orders_old/g", "x")
	wantLs(t, l.view, "db/orders", "f")
	wantLs(t, l.view, "db/orders_old", "g")
}

func TestCase49ManifestsDifferByCase(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/Orders", "data/1", []string{"year:int"}, nil)
	l.table("db/orders", "data/2", nil, nil)
	l.write("data/1/Year=2024/f", "x")
	l.write("data/2/f", "x")
	wantLs(t, l.view, "db", "Orders/", "Orders.json", "orders/", "orders.json")
	wantLs(t, l.view, "db/Orders", "Year=2024/")
	wantLs(t, l.view, "db/orders", "f")
}

func TestCase48And59NamesAreVerbatim(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", []string{"k:string"}, nil)
	names := []string{
		"k=a%2Fb", "k=12%3A30%3A00", "k=50%", "k=a%252Fb", "k=EUR=", "k=a b", "k=a|b", "k=h's", "k=a?b", "k=a#b", `k=a\b`,
		"k=é", "k=e\u0301", "k=new\nline", "k=..", "k=S%C3%A3o", "k=100%", "k=a%20b", "k=~", "k=😀", "k=*", "k=+", "k=" + table.HiveNull, "k=null", "k=NULL", "k=",
		"k=\xff", "plain",
	}
	want := make([]string, 0, len(names))
	for _, n := range names {
		l.write("data/t/"+n+"/"+n, n)
		want = append(want, n+"/")
	}
	wantLs(t, l.view, "db/t", want...)
	for _, n := range names {
		if got := lookup(t, l.view, "db/t/"+n+"/"+n); got.Size != int64(len(n)) || got.Object.Key != "data/t/"+n+"/"+n {
			t.Errorf("%q: %+v", n, got)
		}
	}
}

func TestATableWhoseLocationDoesNotExistYetIsEmpty(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/later", nil, nil)
	wantLs(t, l.view, "db/t")
	if _, err := l.view.Resolve(t.Context(), "db/t/f"); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(l.root, "db")); err != nil {
		t.Fatal(err)
	}
	_, err := l.view.Lookup(t.Context(), "db/t/f")
	wantErr(t, "after the database went", err, objectstore.ErrNotExist)
}
