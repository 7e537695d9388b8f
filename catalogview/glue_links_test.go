package catalogview_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Resource links to tables are followed once, with the target's catalog.
func TestGlueTableLinks(t *testing.T) {
	t.Parallel()
	const other = "111122223333"
	server := gluetest.New(t)
	link := func(name, catalog, db, target string) {
		server.AddTable("sales", fmt.Sprintf(`{"Name":%q,"TargetTable":{"CatalogId":%q,"DatabaseName":%q,"Name":%q}}`, name, catalog, db, target))
	}
	server.In(other).AddTable("hand", parquetTable(t, "orders", "s3://lake/orders", table.Column{Name: "dt", Type: "string"}))
	server.In(other).AddPartition("hand", "orders", parquetPartition(t, []string{"2026-01-01"}, "s3://lake/x"))
	link("good", other, "hand", "orders")
	link("dangling", other, "hand", "nope")
	link("denied", other, "hand", "secret")
	link("failing", other, "hand", "failing")
	link("self", gluetest.Account, "sales", "self")
	link("twice", gluetest.Account, "sales", "good")
	server.Fault(gluetest.Rule{Op: "GetTable", Table: "secret", Fault: gluetest.Denied()})
	server.Fault(gluetest.Rule{Op: "GetTable", Database: "hand", Table: "failing", Fault: gluetest.HTML(http.StatusInternalServerError)})
	g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = time.Second })

	for name, want := range map[string]struct {
		kind  table.Kind
		class table.Class
	}{
		"good": {table.Hive, table.ClassNone}, "dangling": {table.Link, table.ClassView}, "denied": {table.Link, table.ClassView},
		"self": {table.Broken, table.ClassLoop}, "twice": {table.Broken, table.ClassLoop},
	} {
		tab, raw, err := g.Table(t.Context(), "sales", name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tab.Kind != want.kind || tab.Class != want.class || tab.Database != "sales" || tab.Name != name || tab.Target == nil {
			t.Errorf("%s: %+v", name, tab)
		}
		if (tab.Reason == "") != (name == "good") || !strings.Contains(string(raw.Bytes), `"TargetTable"`) {
			t.Errorf("%s: reason %q, entry %s", name, tab.Reason, raw.Bytes)
		}
		if same, r, err := g.Table(t.Context(), "sales", name, raw.ETag); same != nil || r.Bytes != nil || err != nil {
			t.Errorf("%s of the same version: %v, %v", name, same, err)
		}
		if info := tablesOf(t, g, "sales")[name]; info.Table != nil || info.Raw.ETag != "" || info.Raw.Size != raw.Size {
			t.Errorf("%s is listed as %+v", name, info)
		}
	}
	if _, _, err := g.Table(t.Context(), "sales", "failing", ""); !errors.Is(err, objectstore.ErrUnavailable) {
		t.Errorf("failing: %v", err)
	}

	good, before, err := g.Table(t.Context(), "sales", "good", "")
	if err != nil || *good.Target != (table.Ref{CatalogID: other, Database: "hand", Name: "orders"}) || good.Location != "s3://lake/orders" {
		t.Fatalf("good: %+v, %v", good, err)
	}
	if got := partitionsOf(t, g, good); !slices.Equal(got, []string{`["2026-01-01"] s3://lake/x`}) {
		t.Errorf("partitions of a link: %q", got)
	}
	server.In(other).SetTable("hand", parquetTable(t, "orders", "s3://lake/moved", table.Column{Name: "dt", Type: "string"}))
	moved, _, err := g.Table(t.Context(), "sales", "good", before.ETag)
	if err != nil || moved == nil || moved.Location != "s3://lake/moved" {
		t.Errorf("a link whose target changed: %+v, %v", moved, err)
	}
}

// partitionsOf is what Partitions yields, sorted.
func partitionsOf(t *testing.T, g *catalogview.Glue, tab *table.Table, prefix ...string) []string {
	t.Helper()
	var all []string
	for p, err := range g.Partitions(t.Context(), tab, prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%q %s", p.Values, p.Location))
	}
	slices.Sort(all)
	return all
}

// A database that is a link shows its target's tables.
func TestGlueDatabaseLinks(t *testing.T) {
	t.Parallel()
	const other = "111122223333"
	server := gluetest.New(t)
	link := func(name, catalog, db string) {
		server.AddDatabase(fmt.Sprintf(`{"Name":%q,"TargetDatabase":{"CatalogId":%q,"DatabaseName":%q}}`, name, catalog, db))
	}
	server.In(other).AddTable("hand", parquetTable(t, "orders", "s3://lake/orders"))
	link("shared", other, "hand")
	link("dangling", other, "nope")
	link("a", gluetest.Account, "b")
	link("b", gluetest.Account, "a")
	g := glueOn(t, server.URL)

	var names []string
	for d, err := range g.Databases(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, d.Name)
		one, err := g.Database(t.Context(), d.Name)
		if err != nil || one.NoDirectory != d.NoDirectory || (d.NoDirectory != "") != (d.Name == "dangling") {
			t.Errorf("%s: no directory: %q, asked for alone: %q, %v", d.Name, d.NoDirectory, one.NoDirectory, err)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b", "dangling", "shared"}) {
		t.Errorf("databases %q", names)
	}
	want := table.Ref{CatalogID: other, Database: "hand", Name: "orders"}
	info := tablesOf(t, g, "shared")["orders"]
	tab, raw, err := g.Table(t.Context(), "shared", "orders", "")
	if err != nil || tab.Database != "shared" || tab.Target == nil || *tab.Target != want || raw.ETag != info.Raw.ETag {
		t.Errorf("a table of a link: %+v, %v, listed %+v", tab, err, info.Raw)
	}
	if info.Table == nil || info.Table.Target == nil || *info.Table.Target != want || info.Table.Kind != table.Hive {
		t.Errorf("a table of a link is listed as %+v", info.Table)
	}
	if got := tablesOf(t, g, "dangling"); len(got) != 0 {
		t.Errorf("tables of a dangling link: %v", got)
	}
	for _, name := range []string{"shared", "dangling", "a"} {
		if _, _, err := g.Table(t.Context(), name, "nope", ""); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("a table that is not there, of %s: %v", name, err)
		}
	}
	var last error
	for _, last = range g.Tables(t.Context(), "a") { //nolint:revive // empty-block: the error counts
	}
	if !errors.Is(last, catalogview.ErrLinkLoop) {
		t.Errorf("tables of a loop: %v", last)
	}
}
