package catalogview_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// tablesOf is what Tables yields, by name.
func tablesOf(t *testing.T, g *catalogview.Glue, db string) map[string]catalogview.TableInfo {
	t.Helper()
	all := map[string]catalogview.TableInfo{}
	for info, err := range g.Tables(t.Context(), db) {
		if err != nil {
			t.Fatalf("Tables(%s): %v", db, err)
		}
		if _, twice := all[info.Name]; twice {
			t.Errorf("Tables(%s): %s twice", db, info.Name)
		}
		all[info.Name] = info
	}
	return all
}

func wantRequests(t *testing.T, server *gluetest.Server, want map[string]int) {
	t.Helper()
	if got := server.Requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// A listing of 300 tables is three requests, and tells all there is to tell.
func TestGlueTablesNeedNoOtherRequest(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	for i := range 300 {
		server.AddTable("sales", parquetTable(t, fmt.Sprintf("t%03d", i), "s3://lake/t"))
	}
	g := glueOn(t, server.URL)
	all := tablesOf(t, g, "sales")
	wantRequests(t, server, map[string]int{"GetTables": 3})
	if len(all) != 300 {
		t.Fatalf("%d tables", len(all))
	}
	tab, raw, err := g.Table(t.Context(), "sales", "t123", "")
	if err != nil {
		t.Fatal(err)
	}
	info := all["t123"]
	if info.Table == nil || info.Table.Location != tab.Location || info.Table.Format != "parquet" || info.Table.Target != nil {
		t.Errorf("listed: %+v, got %+v", info.Table, tab)
	}
	if info.Raw.ETag != raw.ETag || info.Raw.Size != raw.Size || !info.Raw.ModTime.Equal(raw.ModTime) || raw.ModTime.Unix() != 1795981949 {
		t.Errorf("listed: %+v, got %+v", info.Raw, raw)
	}
}

// Pages of any size, and empty ones, give each name once.
func TestCase40_PagesOfTables(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 99, 100, 101, 177} {
		server := gluetest.New(t)
		server.AddDatabase("sales")
		for i := range n {
			server.AddTable("sales", parquetTable(t, fmt.Sprintf("t%03d", i), "s3://lake/t"))
		}
		server.Fault(gluetest.Rule{Op: "GetTables", Times: 1, Fault: gluetest.EmptyPage()})
		if got := len(tablesOf(t, glueOn(t, server.URL), "sales")); got != n {
			t.Errorf("%d tables, want %d", got, n)
		}
	}
}

// TestEdge09_EmptyPageWithToken, and a token that comes again.
func TestEdge09_EmptyPageWithToken(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	for i := range 150 {
		server.AddDatabase(fmt.Sprintf("d%03d", i))
	}
	server.AddTable("d000", parquetTable(t, "orders", "s3://lake/t"))
	for _, op := range []string{"GetDatabases", "GetTables"} {
		server.Fault(gluetest.Rule{Op: op, Times: 1, Fault: gluetest.EmptyPage()})
	}
	g := glueOn(t, server.URL)
	n := 0
	for _, err := range g.Databases(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if got := len(tablesOf(t, g, "d000")); n != 150 || got != 1 {
		t.Errorf("%d databases and %d tables, want 150 and 1", n, got)
	}
	wantRequests(t, server, map[string]int{"GetDatabases": 3, "GetTables": 2})
	server.Clear()
	server.Fault(gluetest.Rule{Fault: gluetest.RepeatToken()})
	var last error
	for _, err := range g.Databases(t.Context()) {
		last = err
	}
	if last == nil || errors.Is(last, objectstore.ErrNotExist) || !strings.Contains(last.Error(), "read already") {
		t.Errorf("repeated token: %v", last)
	}
}

// TestCase40_NoListInTheAnswer: only a list that is sent can be an empty one.
func TestCase40_NoListInTheAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"DatabaseList":null,"TableList":null,"Partitions":null}`, `{"DatabaseList":{},"TableList":"","Partitions":0}`, `{"NextToken":"2"}`} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			server := gluetest.New(t)
			partitionedOn(t, server, 2)
			g := glueOn(t, server.URL)
			tab := daysOf(t, g)
			listings := map[string]func() (int, error){
				"GetDatabases":  func() (int, error) { return lengthOf(g.Databases(t.Context())) },
				"GetTables":     func() (int, error) { return lengthOf(g.Tables(t.Context(), "sales")) },
				"GetPartitions": func() (int, error) { return lengthOf(g.Partitions(t.Context(), tab, nil)) },
				"of lines":      func() (int, error) { return lengthOf(g.PartitionLines(t.Context(), tab)) },
			}
			want := map[string]int{"GetDatabases": 1, "GetTables": 1, "GetPartitions": 2, "of lines": 2}
			odd := gluetest.Rule{If: func(c *gluetest.Call) bool { return c.Op != "GetDatabase" }, Fault: gluetest.Body(http.StatusOK, "application/x-amz-json-1.1", body)}
			for name, list := range listings {
				server.Fault(odd)
				if _, err := list(); !errors.Is(err, objectstore.ErrUnavailable) {
					t.Errorf("%s answered %s: %v", name, body, err)
				}
				server.Clear()
				passing := odd
				passing.Times = 1
				server.Fault(passing)
				if n, err := list(); n != want[name] || err != nil {
					t.Errorf("%s answered %s once: %d, %v, want %d", name, body, n, err, want[name])
				}
			}
		})
	}
}

func lengthOf[T any](seq iter.Seq2[T, error]) (int, error) {
	n := 0
	for _, err := range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A page that fails for good is the listing's error; one that fails for a while is not seen.
func TestCase40_FailingPage(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	for i := range 250 {
		server.AddTable("sales", parquetTable(t, fmt.Sprintf("t%03d", i), "s3://lake/t"))
	}
	fault := server.Fault(gluetest.Rule{Op: "GetTables", Skip: 2, Times: 2, Fault: gluetest.Throttle()})
	if got := len(tablesOf(t, glueOn(t, server.URL), "sales")); got != 250 || fault.Hits() != 2 {
		t.Errorf("%d tables, want 250", got)
	}
	for name, fault := range map[string]gluetest.Fault{
		"throttled": gluetest.Throttle(), "500": gluetest.HTML(http.StatusInternalServerError), "page": gluetest.HTML(http.StatusOK), "cut": gluetest.CutBody(100),
	} {
		server.Clear()
		server.Fault(gluetest.Rule{Op: "GetTables", Skip: 1, Fault: fault})
		g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = time.Second })
		n, last := 0, error(nil)
		for _, last = range g.Tables(t.Context(), "sales") {
			n++
		}
		if !errors.Is(last, objectstore.ErrUnavailable) || n != 101 {
			t.Errorf("%s: %d tables, then %v", name, n-1, last)
		}
	}
}

// TestCase39_FaultsOfOne: a database that is denied, and a table that fails, are
// that and nothing else; and a listing is no place for either.
func TestCase39_FaultsOfOne(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	server.AddTable("sales", parquetTable(t, "orders", "s3://lake/t"))
	server.AddTable("secret", parquetTable(t, "orders", "s3://lake/t"))
	server.Fault(gluetest.Rule{Database: "secret", Fault: gluetest.Denied()})
	server.Fault(gluetest.Rule{Op: "GetTable", Table: "orders", Database: "sales", Fault: gluetest.HTML(http.StatusInternalServerError)})
	g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = time.Second })
	for _, err := range g.Tables(t.Context(), "secret") {
		if !errors.Is(err, objectstore.ErrPermission) {
			t.Errorf("Tables: %v", err)
		}
	}
	if d, err := g.Database(t.Context(), "secret"); err != nil || !d.Guessed {
		t.Errorf("Database: %+v, %v", d, err)
	}
	if _, _, err := g.Table(t.Context(), "secret", "orders", ""); !errors.Is(err, objectstore.ErrPermission) {
		t.Errorf("Table: %v", err)
	}
	if _, _, err := g.Table(t.Context(), "sales", "orders", ""); !errors.Is(err, objectstore.ErrUnavailable) {
		t.Errorf("Table that fails: %v", err)
	}
	if _, _, err := g.Table(t.Context(), "sales", "nope", ""); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("Table that is not there: %v", err)
	}
	if got := len(tablesOf(t, g, "sales")); got != 1 {
		t.Errorf("%d tables", got)
	}
}

// TestCase38_OddEntries: all are listed, every JSON is valid.
func TestCase38_OddEntries(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	server.AddTable("odd", parquetTable(t, "good", "s3://lake/good"))
	for name, rest := range map[string]string{
		"view":      `"TableType":"VIRTUAL_VIEW","ViewOriginalText":"/* Presto View: x */"`,
		"bare":      `"CreateTime":1.5E9`,
		"link":      `"TargetTable":{"CatalogId":"` + gluetest.Account + `","DatabaseName":"odd","Name":"good"}`,
		"empty":     `"StorageDescriptor":{"Location":""}`,
		"short":     `"StorageDescriptor":{"Location":"/t"}`,
		"held":      `"Parameters":{"spark.sql.sources.provider":"parquet"},"StorageDescriptor":{"Location":"s3://lake/x-__PLACEHOLDER__","SerdeInfo":{"Parameters":{"path":"s3://lake/held"}}}`,
		"nulls":     `"StorageDescriptor":null,"PartitionKeys":null,"Parameters":null,"UpdateTime":null`,
		"wrong":     `"StorageDescriptor":[1],"PartitionKeys":{"a":1},"CreateTime":"yesterday"`,
		"numbers":   `"Retention":1.50,"Unknown":{"CreateTime":1,"n":12345678901234567890.10}`,
		"duplicate": `"Retention":1,"Retention":2`,
	} {
		server.AddTable("odd", `{"Name":"`+name+`",`+rest+`}`)
	}
	g := glueOn(t, server.URL)
	all := tablesOf(t, g, "odd")
	if len(all) != 11 {
		t.Errorf("%d tables, want 11", len(all))
	}
	for name, info := range all {
		tab, raw, err := g.Table(t.Context(), "odd", name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !json.Valid(raw.Bytes) || int64(len(raw.Bytes)) != info.Raw.Size || tab.Name != name {
			t.Errorf("%s: %d bytes, listed %d: %s", name, len(raw.Bytes), info.Raw.Size, raw.Bytes)
		}
		if (info.Table == nil) != (name == "link") || info.Table != nil && info.Table.Kind != tab.Kind {
			t.Errorf("%s: listed as %+v, is %s", name, info.Table, tab.Kind)
		}
	}
	held, _, err := g.Table(t.Context(), "odd", "held", "")
	if err != nil || held.Location != "s3://lake/held" {
		t.Errorf("held: %+v, %v", held, err)
	}
}

// TestRule01_EntryIsExact: every parameter and field, known or not, in its order;
// numbers, escapes and texts as they came; times as ISO-8601; what is null left out.
func TestRule01_EntryIsExact(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	server.AddTable("sales", `{"Name":"t","Zeta":1.50,"CreateTime":1.795981949713E9,"Parameters":{"trino_x":"1","delta.y":"<&>","a":""},
"Alpha":[],"Owner":null,"Nested":{"LastAccessTime":0,"Beta":{},"Gamma":null},"Retention":0}`)
	g := glueOn(t, server.URL)
	_, raw, err := g.Table(t.Context(), "sales", "t", "")
	want := `{
  "Table": {
    "Name": "t",
    "Zeta": 1.50,
    "CreateTime": "2026-11-29T19:52:29.713000+00:00",
    "Parameters": {
      "trino_x": "1",
      "delta.y": "<&>",
      "a": ""
    },
    "Alpha": [],
    "Nested": {
      "LastAccessTime": "1970-01-01T00:00:00+00:00",
      "Beta": {}
    },
    "Retention": 0,
    "DatabaseName": "sales",
    "CatalogId": "123456789012",
    "VersionId": "0"
  }
}
`
	if err != nil || string(raw.Bytes) != want {
		t.Errorf("got %s, %v, want %s", raw.Bytes, err, want)
	}
}

// TestCase55_ParametersAreLiteral: the same bytes each read, a newline at the end.
func TestCase55_ParametersAreLiteral(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	line := "\u2028"
	server.AddTable("sales", `{"Name":"t","Parameters":{"a":"a<b && c>d","n":"12345678901234567","raw":"`+line+`","escaped":"\u2028\u00e9"},"Big":12345678901234567,
"StorageDescriptor":{"Location":"s3://lake/t",`+parquetDescriptor+`}}`)
	g := glueOn(t, server.URL)
	tab, raw, err := g.Table(t.Context(), "sales", "t", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"a": "a<b && c>d"`, `"n": "12345678901234567"`, `"raw": "` + line + `"`, `"escaped": "\u2028\u00e9"`, `"Big": 12345678901234567`} {
		if !strings.Contains(string(raw.Bytes), want) {
			t.Errorf("no %s in %s", want, raw.Bytes)
		}
	}
	if tab.Parameters["a"] != "a<b && c>d" || tab.Parameters["escaped"] != line+"é" || !strings.HasSuffix(string(raw.Bytes), "}\n") {
		t.Errorf("parameters %q", tab.Parameters)
	}
	_, again, err := g.Table(t.Context(), "sales", "t", "")
	if err != nil || string(again.Bytes) != string(raw.Bytes) || again.ETag != raw.ETag {
		t.Errorf("another read: %s, %v", again.Bytes, err)
	}
}

// Entries that real writers made: each loads as itself, and is shown whole.
func TestGlueFixtures(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	all := server.LoadFixtures(filepath.Join("..", "table", "testdata", "glue"))
	if len(all) == 0 {
		t.Skip("no fixtures")
	}
	g := glueOn(t, server.URL)
	for _, f := range all {
		if f.Table == "" {
			continue
		}
		_, raw, err := g.Table(t.Context(), f.Database, f.Table, "")
		if err != nil {
			t.Errorf("%s: %v", f.Folder, err)
			continue
		}
		file, err := os.ReadFile(filepath.Join("..", "table", "testdata", "glue", filepath.FromSlash(f.Folder), "table.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := withoutTimes(t, raw.Bytes), withoutTimes(t, file); got != want {
			t.Errorf("%s: got  %s\nwant %s", f.Folder, got, want)
		}
	}
}

// withoutTimes is an entry without its times and what a server adds, in one form.
func withoutTimes(t *testing.T, raw []byte) string {
	t.Helper()
	var entry struct{ Table map[string]any }
	if err := json.Unmarshal(raw, &entry); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"CreateTime", "UpdateTime", "LastAccessTime", "CatalogId", "VersionId"} {
		delete(entry.Table, name)
	}
	b, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A caller that leaves within a listing ends it.
func TestGlueListingCancelled(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	for i := range 150 {
		server.AddTable("sales", parquetTable(t, fmt.Sprintf("t%03d", i), "s3://lake/t"))
	}
	hung := server.Fault(gluetest.Rule{Op: "GetTables", Skip: 1, Fault: gluetest.Hang()})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		hung.Wait(t, 1)
		cancel()
	}()
	var last error
	for _, last = range glueOn(t, server.URL).Tables(ctx, "sales") { //nolint:revive // empty-block: the error counts
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v", last)
	}
}
