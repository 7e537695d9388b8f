package catalogview_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/catalogview/sourcetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// fixedSource has the same tables in each of its databases, and counts what it is
// asked for. It is not to be used concurrently.
type fixedSource struct {
	databases, tables []string
	fails             error // after the listings
	asked             []string
}

func (s *fixedSource) ask(words ...string) { s.asked = append(s.asked, strings.Join(words, " ")) }

func (s *fixedSource) Databases(context.Context) iter.Seq2[catalogview.Database, error] {
	s.ask("databases")
	return listed(s.databases, s.fails, func(name string) catalogview.Database { return catalogview.Database{Name: name} })
}

func (s *fixedSource) Database(_ context.Context, name string) (catalogview.Database, error) {
	s.ask("database", name)
	return catalogview.Database{Name: name}, s.fails
}

func (s *fixedSource) Tables(_ context.Context, database string) iter.Seq2[catalogview.TableInfo, error] {
	s.ask("tables", database)
	return listed(s.tables, s.fails, func(name string) catalogview.TableInfo { return catalogview.TableInfo{Name: name} })
}

func (s *fixedSource) Table(_ context.Context, database, name, known string) (*table.Table, catalogview.Raw, error) {
	s.ask("table", database, name, known)
	return &table.Table{Database: database, Name: name}, catalogview.Raw{ETag: "1"}, s.fails
}

func (s *fixedSource) Partitions(_ context.Context, t *table.Table, prefix []string) iter.Seq2[table.Partition, error] {
	s.ask(append([]string{"partitions", t.Database, t.Name}, prefix...)...)
	return listed([]string{"p"}, s.fails, func(value string) table.Partition { return table.Partition{Values: []string{value}} })
}

func (s *fixedSource) Partition(_ context.Context, t *table.Table, values []string) (table.Partition, catalogview.Raw, error) {
	s.ask(append([]string{"partition", t.Database, t.Name}, values...)...)
	return table.Partition{Values: values}, catalogview.Raw{ETag: "2"}, s.fails
}

func (s *fixedSource) PartitionLines(_ context.Context, t *table.Table) iter.Seq2[[]byte, error] {
	s.ask("lines", t.Database, t.Name)
	return listed([]string{"{}"}, s.fails, func(line string) []byte { return []byte(line) })
}

func (s *fixedSource) Register(_ context.Context, t *table.Table, all []catalogview.NewPartition) []catalogview.Registered {
	var done []catalogview.Registered
	for _, p := range all {
		s.ask(append([]string{"register", t.Database, t.Name, p.Location}, p.Values...)...)
		done = append(done, catalogview.Registered{Location: p.Location, Err: s.fails})
	}
	return done
}

func (s *fixedSource) Deregister(_ context.Context, t *table.Table, values []string) error {
	s.ask(append([]string{"deregister", t.Database, t.Name}, values...)...)
	return s.fails
}

func (s *fixedSource) PutTable(_ context.Context, database, name string, _ catalogview.EntryWrite) (*table.Table, catalogview.Raw, error) {
	s.ask("put", database, name)
	return &table.Table{Database: database, Name: name}, catalogview.Raw{ETag: "2"}, s.fails
}

func (s *fixedSource) DeleteTable(_ context.Context, database, name, _ string) error {
	s.ask("delete", database, name)
	return s.fails
}

func (s *fixedSource) SetFormat(_ context.Context, t *table.Table, values []string, _ table.FormatChange) error {
	s.ask(append([]string{"format", t.Database, t.Name}, values...)...)
	return s.fails
}

func listed[T any](names []string, fails error, item func(name string) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, name := range names {
			if !yield(item(name), nil) {
				return
			}
		}
		if fails != nil {
			var none T
			yield(none, fails)
		}
	}
}

func TestNarrowIsASource(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		root := t.TempDir()
		folder, err := objectstore.NewFolder(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := folder.Close(); err != nil {
				t.Error(err)
			}
		})
		must := func(t *testing.T, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		src := catalogview.NewManifests(folder, objectstore.Location{Bucket: root}, catalogview.Options{})
		h := sourcetest.Harness{
			Source: narrowed(t, src, []string{"sales*", "empty"}, []string{"orders*", "brok[e]n"}),
			Create: func(t *testing.T, database string) {
				t.Helper()
				must(t, os.MkdirAll(filepath.Join(root, database), 0o755))
			},
			Put: func(t *testing.T, tab sourcetest.Table) {
				t.Helper()
				must(t, writeManifest(filepath.Join(root, tab.Database, tab.Name), tab))
			},
			Drop: func(t *testing.T, database, name string) {
				t.Helper()
				must(t, os.RemoveAll(filepath.Join(root, database, name)))
			},
		}
		h.Create(t, "hidden")
		h.Put(t, sourcetest.Table{Database: "hidden", Name: "orders"})
		return h
	})
}

func writeManifest(dir string, tab sourcetest.Table) error {
	content := "{"
	if !tab.Broken {
		content = fmt.Sprintf(`{"manifest_version":1,"database_name":%q,"name":%q,
"partition_keys":[{"name":"day","type":"int"}],"storage_descriptor":{"location":%q,"serde_info":{
"serialization_library":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}}}`, tab.Database, tab.Name, tab.Location)
	}
	file := filepath.Join(dir, "_sqe", "table.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func narrowed(t *testing.T, src catalogview.Source, databases, tables []string) catalogview.Source {
	t.Helper()
	n, err := catalogview.Narrow(src, databases, tables)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNarrowListsWhatMatches(t *testing.T) {
	for _, c := range []struct {
		databases, tables []string
		wantDatabases     string
		wantTables        string // of sales
	}{
		{nil, nil, "sales Sales dev_a dev_b", "orders orders_old items"},
		{[]string{"*"}, []string{"*"}, "sales Sales dev_a dev_b", "orders orders_old items"},
		{[]string{"sales"}, []string{"orders"}, "sales", "orders"},
		{[]string{"dev_*", "sales"}, []string{"item?", "*_old"}, "sales dev_a dev_b", "orders_old items"},
		{[]string{"dev_[b-z]"}, nil, "dev_b", ""},
		{[]string{"[sS]ales"}, []string{"none"}, "sales Sales", ""},
		{[]string{""}, nil, "", ""},
	} {
		src := &fixedSource{databases: []string{"sales", "Sales", "dev_a", "dev_b"}, tables: []string{"orders", "orders_old", "items"}}
		n := narrowed(t, src, c.databases, c.tables)
		var databases, tables []string
		for d, err := range n.Databases(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			databases = append(databases, d.Name)
		}
		for info, err := range n.Tables(t.Context(), "sales") {
			if err != nil {
				t.Fatal(err)
			}
			tables = append(tables, info.Name)
		}
		if got := strings.Join(databases, " "); got != c.wantDatabases {
			t.Errorf("databases %q: got %q, want %q", c.databases, got, c.wantDatabases)
		}
		if got := strings.Join(tables, " "); got != c.wantTables {
			t.Errorf("tables %q of %q: got %q, want %q", c.tables, c.databases, got, c.wantTables)
		}
	}
}

func TestNarrowAsksForWhatMatchesOnly(t *testing.T) {
	src := &fixedSource{tables: []string{"orders"}}
	n := narrowed(t, src, []string{"sales"}, []string{"orders*"})
	ctx := t.Context()
	for _, name := range []string{"Sales", "sale", "sales_old", "", "sales/x"} {
		if _, err := n.Database(ctx, name); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("database %q: got %v, want ErrNotExist", name, err)
		}
		if _, _, err := n.Table(ctx, name, "orders", "1"); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("table of %q: got %v, want ErrNotExist", name, err)
		}
		for info, err := range n.Tables(ctx, name) {
			t.Errorf("tables of %q: got %+v, %v", name, info, err)
		}
	}
	for _, name := range []string{"items", "Orders", "order", "", "orders/x"} {
		if _, _, err := n.Table(ctx, "sales", name, ""); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("table %q: got %v, want ErrNotExist", name, err)
		}
	}
	if len(src.asked) != 0 {
		t.Errorf("asked for %q", src.asked)
	}
	if d, err := n.Database(ctx, "sales"); err != nil || d.Name != "sales" {
		t.Errorf("database: got %+v, %v", d, err)
	}
	if tab, raw, err := n.Table(ctx, "sales", "orders_old", "7"); err != nil || tab.Name != "orders_old" || raw.ETag != "1" {
		t.Errorf("table: got %+v, %+v, %v", tab, raw, err)
	}
	if want := []string{"database sales", "table sales orders_old 7"}; !slices.Equal(src.asked, want) {
		t.Errorf("asked for %q, want %q", src.asked, want)
	}
}

func TestNarrowPassesPartitionsThrough(t *testing.T) {
	src := &fixedSource{}
	n := narrowed(t, src, []string{"sales"}, []string{"orders"})
	target := &table.Table{Database: "elsewhere", Name: "target"} // where a link leads
	ctx := t.Context()
	for p, err := range n.Partitions(ctx, target, []string{"1"}) {
		if err != nil || p.Values[0] != "p" {
			t.Errorf("partitions: got %+v, %v", p, err)
		}
	}
	if p, raw, err := n.Partition(ctx, target, []string{"1"}); err != nil || p.Values[0] != "1" || raw.ETag != "2" {
		t.Errorf("partition: got %+v, %+v, %v", p, raw, err)
	}
	for line, err := range n.PartitionLines(ctx, target) {
		if err != nil || string(line) != "{}" {
			t.Errorf("lines: got %q, %v", line, err)
		}
	}
	if got := n.Register(ctx, target, []catalogview.NewPartition{{Values: []string{"1"}, Location: "s3://b/1"}}); len(got) != 1 || got[0].Err != nil || got[0].Location != "s3://b/1" {
		t.Errorf("register: got %+v", got)
	}
	want := []string{
		"partitions elsewhere target 1", "partition elsewhere target 1", "lines elsewhere target",
		"register elsewhere target s3://b/1 1",
	}
	if !slices.Equal(src.asked, want) {
		t.Errorf("asked for %q, want %q", src.asked, want)
	}
}

func TestNarrowKeepsErrors(t *testing.T) {
	fails := errors.New("denied")
	n := narrowed(t, &fixedSource{databases: []string{"other", "sales"}, tables: []string{"orders"}, fails: fails}, []string{"sales"}, []string{"none"})
	var names []string
	var last error
	for d, err := range n.Databases(t.Context()) {
		names, last = append(names, d.Name), err
	}
	if !slices.Equal(names, []string{"sales", ""}) || !errors.Is(last, fails) {
		t.Errorf("databases: got %q, %v", names, last)
	}
	last = nil
	for _, err := range n.Tables(t.Context(), "sales") {
		last = err
	}
	if !errors.Is(last, fails) {
		t.Errorf("tables: got %v", last)
	}
	if _, err := n.Database(t.Context(), "sales"); !errors.Is(err, fails) {
		t.Errorf("database: got %v", err)
	}
	for d, err := range n.Databases(t.Context()) {
		if d.Name != "sales" || err != nil {
			t.Errorf("first database: got %+v, %v", d, err)
		}
		break // and nothing is yielded after it
	}
}

func TestNarrowRefusesBadPatterns(t *testing.T) {
	for _, pattern := range []string{"[", "a[", "[]a]", "a\\", "long[-]x"} {
		for _, c := range [][2][]string{{{"ok", pattern}, nil}, {nil, {pattern}}} {
			n, err := catalogview.Narrow(&fixedSource{}, c[0], c[1])
			if !errors.Is(err, path.ErrBadPattern) || !strings.Contains(err.Error(), pattern[:1]) || n != nil {
				t.Errorf("%q: got %v, %v", pattern, n, err)
			}
		}
	}
}

// TestNarrowWritesNoEntryThatIsNotSeen: who wrote one would not find it.
func TestNarrowWritesNoEntryThatIsNotSeen(t *testing.T) {
	src := &fixedSource{}
	n := narrowed(t, src, []string{"sales"}, []string{"orders"})
	for _, id := range [][2]string{{"sales", "other"}, {"hidden", "orders"}} {
		if _, _, err := n.PutTable(t.Context(), id[0], id[1], catalogview.EntryWrite{}); !errors.Is(err, objectstore.ErrPermission) {
			t.Errorf("PutTable(%s): %v, want ErrPermission", id, err)
		}
		if err := n.DeleteTable(t.Context(), id[0], id[1], ""); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("DeleteTable(%s): %v, want ErrNotExist", id, err)
		}
	}
	if _, _, err := n.PutTable(t.Context(), "sales", "orders", catalogview.EntryWrite{}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(src.asked, ", "); got != "put sales orders" {
		t.Errorf("asked %q", got)
	}
}
