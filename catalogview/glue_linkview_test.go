package catalogview

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// linkedDatabases is a catalog with a link to a database of each sort.
func linkedDatabases(t *testing.T) *gluetest.Server {
	t.Helper()
	const other = "111122223333"
	server := gluetest.New(t)
	link := func(name, catalog, db, more string) {
		server.AddDatabase(fmt.Sprintf(`{"Name":%q,"TargetDatabase":{"CatalogId":%q,"DatabaseName":%q%s}}`, name, catalog, db, more))
	}
	server.AddDatabase("own")
	server.In(other).AddDatabase("hand")
	link("shared", other, "hand", "")
	link("dangling", other, "nope", "")
	link("own.json", other, "nope", "") // would hide own's entry
	link("denied", other, "secret", "")
	link("failing", other, "failing", "")
	link("far", other, "nope", `,"Region":"eu-north-1"`)
	link("near", other, "nope", `,"Region":"us-east-1"`)
	link("a", gluetest.Account, "b", "")
	link("b", gluetest.Account, "a", "")
	server.Fault(gluetest.Rule{Op: "GetDatabase", Database: "secret", Fault: gluetest.Denied()})
	server.Fault(gluetest.Rule{Op: "GetTables", Database: "secret", Fault: gluetest.Denied()})
	server.Fault(gluetest.Rule{Op: "GetDatabase", Database: "failing", Fault: gluetest.Body(200, "text/html", "<html>")})
	return server
}

// A link to a database that is not there is its entry alone. One that may not be
// seen, that can not be asked for, or that leads to another link is a directory.
func TestGlueLinksOfDatabasesInTheTree(t *testing.T) {
	t.Parallel()
	server := linkedDatabases(t)
	v := glueView(t, server, newPageStore())
	nowhere := []string{"dangling", "near", "own.json"}
	directories := []string{"a", "b", "denied", "failing", "far", "own", "shared"}

	got := map[string]Kind{}
	for n, err := range v.ReadDir(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if k, twice := got[n.Path]; twice {
			t.Errorf("%s is listed as %v and %v", n.Path, k, n.Kind)
		}
		got[n.Path] = n.Kind
	}
	want := map[string]Kind{}
	for _, name := range nowhere {
		want[name+".json"] = KindEntry
	}
	for _, name := range directories {
		want[name], want[name+".json"] = KindDatabase, KindEntry
	}
	if !maps.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if asked := server.Requests()["GetDatabases"]; asked != 1 {
		t.Errorf("GetDatabases was asked %d times", asked)
	}
	before := server.Requests()["GetDatabase"]
	for _, err := range v.ReadDir(t.Context(), "") { // from the cache
		if err != nil {
			t.Fatal(err)
		}
	}
	if asked := server.Requests()["GetDatabase"] - before; asked != 0 {
		t.Errorf("a second listing asked for %d databases", asked)
	}

	for name, kind := range want {
		if n, err := v.Lookup(t.Context(), name); err != nil || n.Kind != kind || n.Path != name {
			t.Errorf("%s is %+v, %v", name, n, err)
		}
	}
	for _, name := range nowhere {
		if n, err := v.Lookup(t.Context(), name); name != "own.json" && !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("%s is %+v, %v", name, n, err)
		}
		if n, err := v.Lookup(t.Context(), name+"/t"); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("%s/t is %+v, %v", name, n, err)
		}
		if b, _, err := v.EntryJSON(t.Context(), name); err != nil || len(member(member(b, "Database"), "TargetDatabase")) == 0 {
			t.Errorf("entry of %s: %s, %v", name, b, err)
		}
	}
	for name, sentinel := range map[string]error{
		"dangling": objectstore.ErrNotExist, "denied": objectstore.ErrPermission, "a": ErrLinkLoop, "b": ErrLinkLoop, "shared": nil,
	} {
		var err error
		for _, err = range v.ReadDir(t.Context(), name) { //nolint:revive // empty-block: the error counts
		}
		if !errors.Is(err, sentinel) {
			t.Errorf("listing of %s: %v, want %v", name, err, sentinel)
		}
	}
}

// A target that comes is seen when the listing is made anew, and so is one that goes.
func TestGlueLinkWhoseTargetChanges(t *testing.T) {
	t.Parallel()
	const other = "111122223333"
	server := gluetest.New(t)
	server.AddDatabase(`{"Name":"link","TargetDatabase":{"CatalogId":"` + other + `","DatabaseName":"later"}}`)
	v := glueView(t, server, newPageStore())
	for i, there := range []bool{false, true, false} {
		switch i {
		case 1:
			server.In(other).AddDatabase("later")
		case 2:
			server.In(other).Remove("later", "")
		}
		v.Refresh("")
		var names []string
		for n, err := range v.ReadDir(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, n.Path)
		}
		_, err := v.Lookup(t.Context(), "link")
		if slices.Contains(names, "link") != there || errors.Is(err, objectstore.ErrNotExist) == there || !slices.Contains(names, "link.json") {
			t.Errorf("target there: %t, listed %q, %v", there, names, err)
		}
	}
}
