// Package renderfiles makes files of every type that Parquet and Avro have, in every
// nesting, codec and encoding, by the writers that people use, and holds what is shown
// of them as text to what their readers give.
//
// The same values are written each time. Python of the tests' environment does most of
// it (make.py, compare.py); parquet-go writes what it alone can, and the footers of
// older writers are made of those of newer ones.
package renderfiles

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

//go:embed *.py
var programs embed.FS

// File is one that was made.
type File struct {
	Name string // in the folder
	Flat bool   // none of its columns is nested, so that it is CSV too
}

// about is what expect.json says of a file: what of it which reader is not asked.
type about struct {
	Flat       bool              `json:"flat"`
	Same       string            `json:"same,omitempty"`               // the file whose rows are these
	Int96      string            `json:"int96,omitempty"`              // the unit that pyarrow reads INT96 in
	NotDuckDB  string            `json:"not_duckdb,omitempty"`         // why DuckDB is not asked
	NotPyarrow string            `json:"not_pyarrow,omitempty"`        // why pyarrow is not
	NotColumns map[string]string `json:"not_duckdb_columns,omitempty"` // of which columns DuckDB is not, and why
	Zones      *bool             `json:"duckdb_zones,omitempty"`       // false: DuckDB takes all instants for local ones
}

// Make writes the files into a new folder. It takes some seconds.
func Make(tb testing.TB) (dir string, files []File) {
	tb.Helper()
	dir = tb.TempDir()
	python(tb, "make.py", dir)
	path := filepath.Join(dir, "expect.json")
	expect := map[string]about{}
	must(tb, json.Unmarshal(read(tb, path), &expect))
	byParquetGo(tb, dir, expect)
	older(tb, dir, expect)
	raw, err := json.Marshal(expect)
	must(tb, err)
	must(tb, os.WriteFile(path, raw, 0o600))
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		files = append(files, File{Name: name, Flat: expect[name].Flat})
	}
	return dir, files
}

// Wide writes a file of 10,000 columns whose each of 2,000 rows is 10 MB of text into
// dir, and returns its path. The file has some MB.
func Wide(tb testing.TB, dir string) string {
	tb.Helper()
	python(tb, "make.py", dir, "wide")
	return filepath.Join(dir, "wide.parquet")
}

// Difference is a value that is not the reader's.
type Difference struct {
	File, Column string
	Row          int // from 0
	Got, Want    string
	Why          string // which reader's it is, and how the text is none of the type
}

// Compare holds F.jsonl and, of a flat file, F.csv of each file F that Make wrote to
// what pyarrow, DuckDB and fastavro give, and returns what differs, three values a
// column at most, and how many files and values were compared. A file without F.jsonl is
// passed by.
func Compare(tb testing.TB, dir string) (differ []Difference, files, values int) {
	tb.Helper()
	lines := bufio.NewScanner(bytes.NewReader(python(tb, "compare.py", dir)))
	lines.Buffer(nil, 1<<20)
	ended := false
	for lines.Scan() {
		var line struct {
			Difference
			Files, Values *int
		}
		must(tb, json.Unmarshal(lines.Bytes(), &line))
		if line.Values != nil {
			files, values, ended = *line.Files, *line.Values, true
			continue
		}
		differ = append(differ, line.Difference)
	}
	must(tb, lines.Err())
	if !ended {
		tb.Fatal("compare.py ended before its last line")
	}
	return differ, files, values
}

// python runs one of the programs with arguments, and returns what it prints.
func python(tb testing.TB, program string, args ...string) []byte {
	tb.Helper()
	path := mounttest.Venv(tb, "python3", "pyarrow", "duckdb", "fastavro")
	dir := tb.TempDir()
	must(tb, os.CopyFS(dir, programs))
	out, err := exec.CommandContext(tb.Context(), path, append([]string{filepath.Join(dir, program)}, args...)...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		tb.Fatalf("%s: %v\n%s", program, err, failed.Stderr)
	}
	must(tb, err)
	return out
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	raw, err := os.ReadFile(path)
	must(tb, err)
	return raw
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
