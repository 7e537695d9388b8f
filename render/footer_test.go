package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mutated"
)

const formatFiles = "../format/testdata"

// footerOf is the footer of a file of data.
func footerOf(tb testing.TB, data []byte, s Spec) (string, error) {
	tb.Helper()
	var b bytes.Buffer
	err := Footer(tb.Context(), &b, bytes.NewReader(data), int64(len(data)), s)
	return b.String(), err
}

// footerFile is the footer of a file, which may be one of format's testdata.
func footerFile(tb testing.TB, path string) string {
	tb.Helper()
	if filepath.Base(path) == path {
		path = filepath.Join(formatFiles, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := footerOf(tb, data, Spec{Name: path})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// parsed is JSON, with its numbers as they are written.
func parsed(tb testing.TB, text string) map[string]any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%v in %.2000s", err, text)
	}
	return v
}

// TestFooterGolden: the whole text of one file's footer.
func TestFooterGolden(t *testing.T) {
	got := footerFile(t, "arrow-pages2.parquet")
	golden := filepath.Join("testdata", "footer.json")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the footer is not that of %s (-update writes it):\n%s", golden, got)
	}
}

// TestFooterAsPyarrow: what pyarrow says of each file: schema, row groups, columns and
// statistics; and of files that it and DuckDB write with everything that they can.
func TestFooterAsPyarrow(t *testing.T) {
	python := mounttest.Venv(t, "python3", "pyarrow", "duckdb")
	dir := t.TempDir()
	script := filepath.Join("testdata", "footer.py")
	if out, err := exec.CommandContext(t.Context(), python, script, "write", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	written, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || len(written) < 4 {
		t.Fatal(written, err)
	}
	formats, err := filepath.Glob(filepath.Join(formatFiles, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{script, "compare"}
	for _, path := range append(written, formats...) {
		if strings.Contains(path, "encrypted.parquet") {
			continue
		}
		as := filepath.Join(dir, filepath.Base(path)+".json")
		if err = os.WriteFile(as, []byte(footerFile(t, path)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path, as)
	}
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "compared ") {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestFooterEncrypted: what can be read is shown, and what cannot is said.
func TestFooterEncrypted(t *testing.T) {
	f := parsed(t, footerFile(t, "arrow-encrypted.parquet"))
	encryption, _ := f["encryption"].(map[string]any)
	algorithm, _ := encryption["encryption_algorithm"].(map[string]any)
	if encryption["footer_encrypted"] != true || algorithm["type"] != "AES_GCM_V1" || algorithm["aad_file_unique"] == nil || encryption["key_metadata"] == nil {
		t.Errorf("encryption: %v", encryption)
	}
	if note, _ := f["note"].(string); !strings.Contains(note, "without its key") || f["schema"] != nil {
		t.Errorf("note: %q, schema %v", note, f["schema"])
	}

	f = parsed(t, footerFile(t, "arrow-encrypted-columns.parquet"))
	encryption, _ = f["encryption"].(map[string]any)
	if encryption["footer_encrypted"] != false || encryption["footer_signed"] != true || encryption["footer_signing_key_metadata"] == nil {
		t.Errorf("encryption: %v", encryption)
	}
	groups, _ := f["row_groups"].([]any)
	columns, _ := groups[0].(map[string]any)["columns"].([]any)
	column, _ := columns[1].(map[string]any)
	crypto, _ := column["crypto_metadata"].(map[string]any)
	if crypto["type"] != "ENCRYPTION_WITH_COLUMN_KEY" || crypto["path_in_schema"] != "name" || column["encrypted_column_metadata_length"] == nil || column["statistics"] != nil {
		t.Errorf("the column that is encrypted: %v", column)
	}
}

// TestFooterOfMutated: of 5,000 damaged files each is an Error or whole JSON, none is a
// panic, none takes more than 64 MiB.
func TestFooterOfMutated(t *testing.T) {
	accepted := 0
	var before, after runtime.MemStats
	for i, f := range mutated.Of(mutated.Whole(t, formatFiles), 3, 5000) {
		runtime.ReadMemStats(&before)
		text, err := footerOf(t, f.Data, Spec{Name: f.Name, Format: f.Format})
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%d, %s with %s: %d bytes allocated", i, f.Name, f.How, took)
		}
		if bad := (*Error)(nil); err != nil && (!errors.As(err, &bad) || strings.Contains(bad.Reason, "panic") || bad.File != f.Name) {
			t.Errorf("%d, %s with %s: %v", i, f.Name, f.How, err)
		}
		if err == nil {
			accepted++
			if !json.Valid([]byte(text)) {
				t.Errorf("%d, %s with %s: no JSON: %s", i, f.Name, f.How, text)
			}
		}
	}
	if accepted < 100 || accepted > 4000 {
		t.Errorf("%d of 5000 damaged files are shown, want those of which data is damaged, or names and numbers in the footer", accepted)
	}
}

// TestFooterOfFlippedBytes: the same of each byte of each file.
func TestFooterOfFlippedBytes(t *testing.T) {
	for _, f := range mutated.Whole(t, formatFiles) {
		if f.Format == "orc" {
			continue
		}
		for i := range f.Data {
			mask := byte(1) << (i % 8)
			if i%3 == 0 {
				mask = 0xff
			}
			f.Data[i] ^= mask
			text, err := footerOf(t, f.Data, Spec{Name: f.Name, Format: f.Format})
			f.Data[i] ^= mask
			if bad := (*Error)(nil); err != nil && (!errors.As(err, &bad) || strings.Contains(bad.Reason, "panic")) {
				t.Errorf("%s, byte %d ^ %#x: %v", f.Name, i, mask, err)
			}
			if err == nil && !json.Valid([]byte(text)) {
				t.Errorf("%s, byte %d ^ %#x: no JSON: %s", f.Name, i, mask, text)
			}
		}
	}
}

// TestFooterOfOtherFormats: whatever is no footer is said to be none.
func TestFooterOfOtherFormats(t *testing.T) {
	for _, tt := range []struct{ name, data, as, want string }{
		{"text", "id,name\n1,a\n2,b\n", "", `it begins with "id,n": neither a Parquet nor an Avro file`},
		{"short", "x", "", `it begins with "x`},
		{"empty", "", "", "neither a Parquet nor an Avro file"},
		{"empty Parquet", "", "parquet", "0 bytes, the shortest has 12"},
		{"text as Parquet", "id,name\n1,a\n2,b\n", "parquet", "it ends in"},
		{"text as Avro", "id,name\n1,a\n2,b\n1,a\n2,b", "avro", "it begins with"},
		{"ORC", "ORC and some more that is none", "", "footers of format orc are not shown"},
		{"CSV", "a,b", "csv", "footers of format csv are not shown"},
		{"half of Parquet", "PAR1 and no end", "", "cut, or its writer has not finished"},
	} {
		text, err := footerOf(t, []byte(tt.data), Spec{Name: tt.name, Format: tt.as})
		if bad := (*Error)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || bad.File != tt.name || text != "" {
			t.Errorf("%s: %v and %q, want %q", tt.name, err, text, tt.want)
		}
	}
}

// TestFooterOfAvro: the header of files of several writers.
func TestFooterOfAvro(t *testing.T) {
	f := parsed(t, footerFile(t, "deflate.avro"))
	want := map[string]any{"type": "record", "name": "r", "fields": []any{
		map[string]any{"name": "id", "type": "long"}, map[string]any{"name": "name", "type": "string"},
	}}
	if f["codec"] != "deflate" || !reflect.DeepEqual(f["schema"], want) || len(f["sync_marker"].(string)) != 32 {
		t.Errorf("%v", f)
	}
	if first, _ := f["first_block"].(map[string]any); first["rows"] != json.Number("20") {
		t.Errorf("the first block: %v", f["first_block"])
	}
	if f = parsed(t, footerFile(t, "norows.avro")); f["first_block"] != nil || f["schema"] == nil {
		t.Errorf("without rows: %v", f)
	}
	schema := `{"type":"record","name":"r","fields":[` + strings.Repeat("\n", 100_000) + `]}` // longer than what is read at once
	pair := func(s string) string { return string(appendLong(nil, int64(len(s)))) + s }
	data := "Obj\x01\x06" + pair("avro.schema") + pair(schema) + pair("k\"") + pair("ä\n") + pair("b") + pair("\xff\x00") + "\x00" + strings.Repeat("s", 16)
	text, err := footerOf(t, []byte(data), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	f = parsed(t, text)
	wantPairs := []any{map[string]any{"key": "k\"", "value": "ä\n"}, map[string]any{"key": "b", "value_base64": "/wA="}}
	if f["codec"] != "null" || !reflect.DeepEqual(f["metadata"], wantPairs) {
		t.Errorf("%.1000s", text)
	}
}

// appendLong appends a number as Avro has it.
func appendLong(dst []byte, n int64) []byte {
	for u := uint64(n) << 1; ; u >>= 7 {
		if u < 0x80 {
			return append(dst, byte(u))
		}
		dst = append(dst, byte(u)|0x80)
	}
}

// reads counts what is read of a file.
type reads struct {
	io.ReaderAt
	calls int
	bytes int64
}

func (r *reads) ReadAt(p []byte, off int64) (int, error) {
	r.calls++
	r.bytes += int64(len(p))
	return r.ReaderAt.ReadAt(p, off)
}

// TestFooterReads: one read, of no more than 64 KiB, for a footer that is in there; two
// for a longer one.
func TestFooterReads(t *testing.T) {
	for _, f := range mutated.Whole(t, formatFiles) {
		if f.Format == "orc" {
			continue
		}
		for _, format := range []string{f.Format, ""} {
			most := 1
			if format == "" && f.Format == "avro" {
				most = 3 // the end and the beginning tell what it is
			}
			r := &reads{ReaderAt: bytes.NewReader(f.Data)}
			err := Footer(t.Context(), io.Discard, r, int64(len(f.Data)), Spec{Format: format})
			if err != nil || r.calls > most || r.bytes > 3*64<<10 {
				t.Errorf("%s as %q: %d reads of %d bytes, %v", f.Name, format, r.calls, r.bytes, err)
			}
		}
	}
	wide := wideFile(t, 10_000, 1)
	r := &reads{ReaderAt: wide}
	if err := Footer(t.Context(), io.Discard, r, wide.size(), Spec{}); err != nil || r.calls != 2 || r.bytes > 64<<10+wide.size() {
		t.Errorf("of 10,000 columns: %d reads of %d bytes, %v", r.calls, r.bytes, err)
	}
}
