package render

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/renderfiles"
)

// TestRowsAreThoseOfOtherReaders: of files with every type, nesting, codec and encoding,
// each value as text is the one that pyarrow, DuckDB and fastavro give.
func TestRowsAreThoseOfOtherReaders(t *testing.T) {
	t.Parallel()
	dir, files := renderfiles.Make(t)
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		outputs := []string{OutputJSONL}
		if f.Flat {
			outputs = append(outputs, OutputCSV)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, output := range outputs {
			var text bytes.Buffer
			err := Rows(t.Context(), &text, bytes.NewReader(data), int64(len(data)), Spec{Name: f.Name, Kind: KindRows, Output: output})
			if refused[f.Name] != "" {
				if err == nil || !strings.Contains(err.Error(), refused[f.Name]) {
					t.Errorf("%s: got %v, want %s", f.Name, err, refused[f.Name])
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", output, err)
			}
			if err := os.WriteFile(path+"."+output, text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	differ, compared, values := renderfiles.Compare(t, dir)
	for i, d := range differ {
		if i == 100 {
			t.Fatalf("%d more values differ", len(differ)-i)
		}
		where := fmt.Sprintf("%s, column %q, row %d", d.File, d.Column, d.Row)
		t.Errorf("%s: got %s, want %s (%s)", where, d.Got, d.Want, d.Why)
	}
	if compared != len(files)-1 || values < 1_000_000 { // all but the refused one
		t.Errorf("%d values of %d files were compared, want a million, and of %d", values, compared, len(files)-1)
	}
	t.Logf("%d values of %d files", values, compared)
}
