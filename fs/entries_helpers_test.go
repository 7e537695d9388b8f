package fs_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// editable is a lake whose tables' entries can be written: db.text, which has the
// parameter k.
type editable struct {
	*mounttest.Lake
	t *testing.T
}

// editText is db.text. Its parameter "x-unknown" is nothing that the mount knows.
func editText() mounttest.Table {
	return mounttest.Table{
		Database: "db", Name: "text", Format: "csv", Keys: []string{"dt:date"},
		Parameters: map[string]string{"k": "old", "x-unknown": "kept"},
		Files:      map[string]string{"dt=2026-01-01/a": "1,a\n"},
	}
}

// onCatalogs runs f on a lake of each kind of catalog.
func onCatalogs(t *testing.T, flags []string, f func(l editable)) {
	t.Helper()
	flags = append([]string{"--catalog-writes=entries"}, flags...)
	for _, glue := range []bool{false, true} {
		name := map[bool]string{false: "manifests", true: "glue"}[glue]
		t.Run(name, func(t *testing.T) {
			o := mounttest.Options{Flags: flags, Timeout: 4 * time.Minute}
			if glue {
				o.Glue = &mounttest.Glue{Tables: []mounttest.GlueTable{{
					Table: editText(), Partitions: []mounttest.GluePartition{{Values: []string{"2026-01-01"}}},
				}}}
			} else {
				o.Tables = []mounttest.Table{editText()}
			}
			f(editable{mounttest.Mount(t, o), t})
		})
	}
}

// catalogEntry is a table's entry as the catalog itself has it; there is false where it
// has none.
func (l editable) catalogEntry(table string) (entry map[string]any, there bool) {
	l.t.Helper()
	if l.Catalog == nil {
		if !l.HasManifest("db/" + table) {
			return nil, false
		}
		raw := l.StoredManifest("db/" + table)
		if err := json.Unmarshal([]byte(raw), &entry); err != nil {
			l.t.Fatalf("the manifest of %s is %s: %v", table, brief(raw), err)
		}
		return entry, true
	}
	raw, err := l.Catalog.TryCall("GetTable", map[string]string{"DatabaseName": "db", "Name": table})
	if err != nil {
		if !strings.Contains(err.Error(), "EntityNotFound") {
			l.t.Fatal(err)
		}
		return nil, false
	}
	var answer struct{ Table map[string]any }
	if err := json.Unmarshal(raw, &answer); err != nil {
		l.t.Fatal(err)
	}
	return answer.Table, true
}

// parameters are a table's in the catalog.
func (l editable) parameters(table string) map[string]any {
	l.t.Helper()
	entry, _ := l.catalogEntry(table)
	field := "parameters"
	if l.Catalog != nil {
		field = "Parameters"
	}
	p, _ := entry[field].(map[string]any)
	return p
}

// wantK asserts the parameter k of db.text in the catalog, and that the ones beside it
// are kept.
func (l editable) wantK(want string) {
	l.t.Helper()
	if p := l.parameters("text"); p["k"] != want || p["x-unknown"] != "kept" {
		l.t.Errorf("the catalog has the parameters %v, want k %q, and x-unknown kept", p, want)
	}
}

// wantTables asserts which tables the catalog has, and that the mount lists them at
// once, and nothing else.
func (l editable) wantTables(want ...string) {
	l.t.Helper()
	var names []string
	for _, table := range want {
		if _, there := l.catalogEntry(table); !there {
			l.t.Errorf("the catalog has no table %s", table)
		}
		names = append(names, table, table+".json")
	}
	slices.Sort(names)
	got, err := l.Names("db")
	if err != nil || !slices.Equal(got, names) {
		l.t.Errorf("the database lists %q, %v; want %q", got, err, names)
	}
}

// foreign changes a parameter of db.text as another program would.
func (l editable) foreign(from, to string) {
	l.t.Helper()
	if l.Catalog == nil {
		l.PutManifest("db/text", strings.ReplaceAll(l.StoredManifest("db/text"), from, to))
		return
	}
	entry, _ := l.catalogEntry("text")
	input := maps.Clone(entry)
	for _, told := range []string{"DatabaseName", "CreateTime", "UpdateTime", "VersionId", "CatalogId", "CreatedBy", "IsRegisteredWithLakeFormation"} {
		delete(input, told)
	}
	raw, err := json.Marshal(map[string]any{"DatabaseName": "db", "TableInput": input})
	if err != nil {
		l.t.Fatal(err)
	}
	l.Catalog.Call("UpdateTable", strings.ReplaceAll(string(raw), from, to))
}

// rejections are the reasons that a directory's status.json has of entries that were
// not taken, by their path.
func (l editable) rejections(dir string) map[string]string {
	l.t.Helper()
	raw, err := l.ReadFile(strings.TrimPrefix(dir+"/.lakefs/status.json", "/"))
	if err != nil {
		l.t.Fatal(err)
	}
	var status struct {
		Catalog struct {
			Rejected []struct{ Path, Reason string } `json:"entry_rejected"`
		} `json:"catalog"`
	}
	if err := json.Unmarshal([]byte(raw), &status); err != nil {
		l.t.Fatal(err)
	}
	reasons := make(map[string]string)
	for _, r := range status.Catalog.Rejected {
		reasons[r.Path] = r.Reason
	}
	return reasons
}

// write writes an entry through the mount.
func (l editable) write(name, content string) error { return l.WriteFile("db/"+name, content) }

// read reads an entry through the mount.
func (l editable) read(name string) string {
	l.t.Helper()
	content, err := l.ReadFile("db/" + name)
	if err != nil {
		l.t.Fatal(err)
	}
	return content
}
