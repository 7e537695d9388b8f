package catalogview

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

var update = flag.Bool("update", false, "write the golden files")

// glueView is the view of a Glue server over a store.
func glueView(t *testing.T, server *gluetest.Server, store objectstore.Store) *View {
	t.Helper()
	src := NewGlue(GlueOptions{
		Config:   aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")},
		Endpoint: server.URL,
	})
	v := NewView(src, store, Options{Rootless: true})
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// fixtureKeys puts the keys of a fixture into the store.
func fixtureKeys(t *testing.T, s *pageStore, folder string) {
	t.Helper()
	f, err := os.Open(filepath.Join("../table/testdata/glue", folder, "keys.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, key, ok := strings.Cut(lines.Text(), "\t"); ok {
			s.set(key, "x")
		}
	}
}

// What a mount makes of each entry that real writers, and people, have written:
// to be checked by a person against README.md there.
func TestFixturesByTable(t *testing.T) {
	server, store := gluetest.New(t), newPageStore()
	fixtures := server.LoadFixtures("../table/testdata/glue")
	server.In("111122223333").AddTable("hand", readFixture(t, "made-by-hand/spark-hive-compatible-parquet/table.json"))
	store.set("hand/loc_file/data.parquet", "a file where a table is said to lie")
	var got strings.Builder
	view := glueView(t, server, store)
	for _, f := range fixtures {
		if f.Table == "" {
			continue
		}
		fixtureKeys(t, store, f.Folder)
		describe(t, &got, view, f)
	}
	const golden = "testdata/fixtures.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("what is made of the fixtures has changed (-update writes it):\n%s", got.String())
	}
}

func readFixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../table/testdata/glue", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// describe writes what the view shows of a table.
func describe(t *testing.T, w *strings.Builder, v *View, f gluetest.Fixture) {
	t.Helper()
	path := f.Database + "/" + f.Table
	fmt.Fprintf(w, "%s (%s)\n", f.Folder, path)
	b, n, err := v.EntryJSON(t.Context(), path)
	if err != nil || int64(len(b)) != n.Size || n.Table == nil {
		t.Errorf("EntryJSON(%s): %d bytes, %+v, %v", path, len(b), n, err)
		return
	}
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "    %-14s %s\n", name, text)
		}
	}
	if !n.Table.HasDirectory() {
		line("kind", string(n.Table.Kind))
		line("directory", "none: "+n.Table.Reason)
		return
	}
	st, err := v.Status(t.Context(), path)
	if err != nil {
		t.Errorf("Status(%s): %v", path, err)
	}
	line("kind", st.Kind)
	line("format", strings.TrimSuffix(st.Format+" by "+st.FormatFrom, " by "))
	line("location", st.Location)
	line("resource link", st.ResourceLink)
	line("partitions", string(n.Table.Partitions))
	verdict := map[bool]string{true: "yes", false: "no"}
	line("readable", verdict[st.Readable])
	line("writable", verdict[st.Writable])
	line("class", string(n.Table.Class))
	line("reason", st.Reason)
	for _, note := range st.Notes {
		line("note", note)
	}
	line("multi-format", string(st.MultiFormat))
	line("unregistered", strings.Join(st.Unregistered, " "))
	names, err := list(t.Context(), v, path)
	var verdictErr *VerdictError
	switch {
	case errors.As(err, &verdictErr):
		line("listing", "refused: "+string(verdictErr.Class))
	case err != nil:
		line("listing", err.Error())
	case len(names) > 8:
		line("listing", fmt.Sprintf("%s … (%d names)", strings.Join(names[:8], " "), len(names)))
	default:
		line("listing", strings.Join(names, " "))
	}
}

// What a listing of tables told of one is enough to read its partitions by.
func TestRule57_AfterAListingTheProviderStillDecides(t *testing.T) {
	server := gluetest.New(t)
	server.LoadFixtures("../table/testdata/glue")
	view := glueView(t, server, newPageStore())
	ls(t, view, "hand")
	const dir = "hand/spark_specific_csv/dt=2026-01-01"
	st, err := view.Status(t.Context(), dir)
	if err != nil || st.Format != "csv" || st.FormatFrom != "provider" {
		t.Errorf("status of %s: format %q by %q, %v; want csv by provider", dir, st.Format, st.FormatFrom, err)
	}
	target, err := view.Resolve(t.Context(), dir+"/f")
	if err != nil || target.Format != "csv" {
		t.Errorf("a file there is to be %q, %v; want csv", target.Format, err)
	}
}
