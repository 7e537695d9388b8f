package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mutated"
)

// calls counts what is read of a file.
type calls struct {
	io.ReaderAt
	n, bytes int
}

func (c *calls) ReadAt(p []byte, off int64) (int, error) {
	c.n++
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, off)
}

// TestRowsAsPyarrow: of each file of testdata, as pyarrow tells; of the one whose footer
// is encrypted nobody knows.
func TestRowsAsPyarrow(t *testing.T) {
	python := mounttest.Venv(t, "python3", "pyarrow")
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import glob, json, pyarrow.orc as orc, pyarrow.parquet as pq
rows = {f: orc.ORCFile(f).nrows for f in glob.glob("*.orc")}
rows |= {f: pq.read_metadata(f).num_rows for f in glob.glob("*.parquet") if f != "arrow-encrypted.parquet"}
print(json.dumps(rows))`)
	cmd.Dir = "testdata"
	out, err := cmd.Output()
	want := map[string]int64{}
	if err == nil {
		err = json.Unmarshal(out, &want)
	}
	if err != nil || len(want) < 20 {
		t.Fatal(len(want), err)
	}
	for name, data := range realFiles(t) {
		format := strings.TrimPrefix(filepath.Ext(name), ".")
		rows, known, err := Rows(format, bytes.NewReader(data), int64(len(data)))
		if n, told := want[name]; err != nil || rows != n || known != told {
			t.Errorf("%s: %d rows, known %v, %v; want %d, %v", name, rows, known, err, n, told)
		}
	}
}

// TestRowsReads: of a footer in the last 64 KiB by one read.
func TestRowsReads(t *testing.T) {
	for name, data := range realFiles(t) {
		format := strings.TrimPrefix(filepath.Ext(name), ".")
		r := &calls{ReaderAt: bytes.NewReader(data)}
		if _, _, err := Rows(format, r, int64(len(data))); err != nil || r.n > 1 {
			t.Errorf("%s: %d reads, %v", name, r.n, err)
		}
	}
}

// TestRowsReadsNoGroups: of a long footer the schema alone, not the row groups behind it.
func TestRowsReadsNoGroups(t *testing.T) {
	footer := compact("\xfc\x80\x08" + strings.Repeat(group("\x26\x00\x6c\x00"), 1024)) // encrypted columns
	footer = strings.Replace(footer, "\x16\x00\x19", "\x16\x0e\x19", 1)
	footer += strings.Repeat("x", 1<<20) // more, which nobody looks at
	data := "PAR1" + footer + le32(len(footer)) + "PAR1"
	r := &calls{ReaderAt: strings.NewReader(data)}
	rows, known, err := Rows("parquet", r, int64(len(data)))
	if rows != 7 || !known || err != nil || r.n > 2 || r.bytes > 2*window {
		t.Errorf("%d rows, known %v, %v, by %d reads of %d bytes", rows, known, err, r.n, r.bytes)
	}
}

// TestRowsOfMutated: a number or an Error, and never a panic.
func TestRowsOfMutated(t *testing.T) {
	for i, f := range mutated.Of(mutated.Whole(t, "testdata"), 2, 3000) {
		rows, _, err := Rows(f.Format, bytes.NewReader(f.Data), int64(len(f.Data)))
		if bad := (*Error)(nil); rows < 0 || err != nil && (!errors.As(err, &bad) || strings.Contains(bad.Reason, "panic")) {
			t.Errorf("%d, %s with %s: %d rows, %v", i, f.Name, f.How, rows, err)
		}
	}
}
