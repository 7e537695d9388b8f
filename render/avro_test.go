package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// avroFiles are written by fastavro.
func avroFiles(t *testing.T) string {
	t.Helper()
	python := mounttest.Venv(t, "python3", "fastavro")
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), python, "testdata/avro.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// avroRows are the rows of a file as JSON, an error behind those before it.
func avroRows(ctx context.Context, src io.ReaderAt, size int64, s Spec) (rows []string, err error) {
	in, err := open(ctx, src, size, s)
	if err != nil {
		return nil, err
	}
	defer in.close()
	outputs, err := conform(s, in.fields())
	if err != nil {
		return nil, err
	}
	if err = in.start(outputs, asJSON); err != nil {
		return nil, err
	}
	columns, ended := make([]cells, len(outputs)), make([]bool, len(outputs))
	for round, left := 0, len(outputs); left > 0; round++ {
		for i := range columns {
			// Columns are asked for different numbers of rows: what they get must not depend on it.
			var got cells
			if ended[i] {
				continue
			}
			if err = in.fill(ctx, i, &got, 1+(i+round)%3*1000); err != nil {
				ended[i] = true
				left--
			}
			for _, at := range got.at {
				start := len(columns[i].own)
				columns[i].own = append(columns[i].own, got.text[at.off:at.off+at.n]...)
				columns[i].end(start)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	for n := range columns[0].at {
		var b strings.Builder
		for i, o := range outputs {
			at := columns[i].at[n]
			text := "null"
			if at.n > 0 {
				text = string(columns[i].own[at.off : at.off+at.n])
			}
			fmt.Fprintf(&b, "%s%q:%s", [2]string{"{", ","}[min(i, 1)], o.name, text)
		}
		rows = append(rows, b.String()+"}")
	}
	return rows, err
}

func readAvroFile(t *testing.T, path string, s Spec) ([]string, error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return avroRows(t.Context(), bytes.NewReader(b), int64(len(b)), s)
}

func TestAvroTypesAndCodecs(t *testing.T) {
	dir := avroFiles(t)
	want := []string{
		`{"nothing":null,"flag":true,"i":-2147483648,"l":9223372036854775807,"f":0.1,"d":1e+300,"b":"AP8=","s":"é\"\n","e":"GREEN","fx":"YWJjZA==",` +
			`"list":[1,null,3],"map":{"k":1,"q\"":-2},"point":{"x":1,"y":0.5},"points":[{"x":2,"y":null}],"either":"text","number":1099511627776,` +
			`"dec":-1234567890123456789012345678901234.5678,"fdec":-0.05,"id":"00000000-0000-0000-0000-000000000001","day":"1969-12-31",` +
			`"tms":"01:02:03.004","tus":"23:59:59.999999","ms":"2026-01-31T12:34:56.789Z","us":"0001-01-01T00:00:00.000000Z",` +
			`"lms":"2026-01-31T00:00:00.000","lus":"9999-12-31T23:59:59.999999","ns":"1970-01-01T00:00:00.000000001Z","lns":"1969-12-31T23:59:59.999999999",` +
			`"dur":"P14M3DT4.500S","odd":"x"}`,
		`{"nothing":null,"flag":false,"i":0,"l":0,"f":"NaN","d":"-Infinity","b":"","s":"","e":"RED","fx":"AAAAAA==",` +
			`"list":[],"map":{},"point":null,"points":[],"either":{"x":5,"y":null},"number":null,` +
			`"dec":0.0000,"fdec":12.30,"id":"ffffffff-ffff-ffff-ffff-ffffffffffff","day":"2026-01-31",` +
			`"tms":"00:00:00.000","tus":"00:00:00.000000","ms":"1970-01-01T00:00:00.000Z","us":null,` +
			`"lms":"1970-01-01T00:00:00.000","lus":"1970-01-01T00:00:00.000000","ns":"1970-01-01T00:00:00.000000000Z","lns":"1970-01-01T00:00:00.000000000",` +
			`"dur":"P0M0DT0.000S","odd":""}`,
	}
	for _, codec := range []string{"null", "deflate", "snappy", "zstandard", "bzip2"} {
		path := filepath.Join(dir, "types."+codec+".avro")
		if _, err := os.Stat(path); err != nil {
			t.Logf("no fastavro for %s", codec)
			continue
		}
		got, err := readAvroFile(t, path, Spec{Format: "avro"})
		if err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		wantLines(t, codec, got, want)
		for _, line := range got {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %s", codec, line)
			}
		}
	}
}

func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s, row %d: got %d rows, want %d\n got %s\nwant %s", what, i, len(got), len(want),
				strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
			return
		}
	}
}

// TestAvroTables: rows of a file as a table's schema has them that has changed since.
func TestAvroTables(t *testing.T) {
	dir := avroFiles(t)
	file := filepath.Join(dir, "evolved.avro")
	at := "struct<a:int,added:array<int>,b:string>"
	got, err := readAvroFile(t, file, Spec{
		Columns: []Column{{Name: "id", Type: "smallint"}, {Name: "new", Type: "date"}, {Name: "at", Type: at}, {Name: "name", Type: "varchar(10)"}},
	})
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "evolved", got, []string{
		`{"id":1,"new":null,"at":{"a":1,"added":null,"b":"text"},"name":"one"}`,
		`{"id":2,"new":null,"at":null,"name":"two"}`,
	})
	got, err = readAvroFile(t, file, Spec{Columns: []Column{{Name: "new", Type: "date"}}})
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "missing columns alone", got, []string{`{"new":null}`, `{"new":null}`})
	for typ, want := range map[string]string{
		"struct<b:binary,a:int>": `column "at.a": the file has this child before "b"`,
		"struct<a:bigint>":       `column "at.a": it is int in the file and bigint in the table`,
		"array<int>":             `it is record {a int, old string, b bytes} in the file and array<int> in the table`,
	} {
		_, err = readAvroFile(t, file, Spec{Columns: []Column{{Name: "at", Type: typ}}})
		checkError(t, typ, err, want)
	}
}

func TestAvroManyRows(t *testing.T) {
	got, err := readAvroFile(t, filepath.Join(avroFiles(t), "many.avro"), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 20000 {
		s := fmt.Sprintf(`"row %d"`, i)
		if i%7 == 0 {
			s = "null"
		}
		want = append(want, fmt.Sprintf(`{"n":%d,"s":%s}`, i, s))
	}
	wantLines(t, "many", got, want)
}

// TestAvroShown: what Rows writes of a file.
func TestAvroShown(t *testing.T) {
	dir := avroFiles(t)
	for _, c := range []struct {
		file string
		spec Spec
		want string
	}{
		{"evolved", Spec{Output: OutputJSONL, Columns: []Column{{Name: "id", Type: "int"}}, Keys: []Key{{Name: "dt", Type: "date", Value: "2026-01-31"}}}, "{\"id\":1,\"dt\":\"2026-01-31\"}\n{\"id\":2,\"dt\":\"2026-01-31\"}\n"},
		{"evolved", Spec{Output: OutputCSV, Columns: []Column{{Name: "new", Type: "int"}}, Keys: []Key{{Name: "n", Type: "int", Value: "7"}}, Project: []string{"n", "new"}}, "n,new\n7,\n7,\n"},
		{"evolved", Spec{Output: OutputJSONL, Project: []string{"Name"}, Limit: 1}, "{\"Name\":\"one\"}\n"},
		{"many", Spec{Output: OutputCSV, Limit: 3}, "n,s\n0,\n1,row 1\n2,row 2\n"},
	} {
		raw, err := os.ReadFile(filepath.Join(dir, c.file+".avro"))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err = Rows(t.Context(), &b, bytes.NewReader(raw), int64(len(raw)), c.spec); err != nil || b.String() != c.want {
			t.Errorf("%s, %+v: got %q, %v, want %q", c.file, c.spec, b.String(), err, c.want)
		}
	}
}

// countedReads is a file of zeros behind its first bytes.
type countedReads struct {
	b     []byte
	bytes atomic.Int64
	reads atomic.Int64
}

func (c *countedReads) ReadAt(b []byte, off int64) (int, error) {
	c.reads.Add(1)
	c.bytes.Add(int64(len(b)))
	clear(b)
	if off < int64(len(c.b)) {
		copy(b, c.b[off:])
	}
	return len(b), nil
}

// BenchmarkAvro takes a file of its own: RENDER_AVRO=FILE.
func BenchmarkAvro(b *testing.B) {
	path := os.Getenv("RENDER_AVRO")
	if path == "" {
		b.Skip("RENDER_AVRO names no file")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var n countedBytes
		if err = Rows(b.Context(), &n, bytes.NewReader(raw), int64(len(raw)), Spec{Format: "avro", Output: OutputJSONL}); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(n))
	}
}

type countedBytes int64

func (n *countedBytes) Write(b []byte) (int, error) {
	*n += countedBytes(len(b))
	return len(b), nil
}

// TestAvroOfPolars: its record has no name.
func TestAvroOfPolars(t *testing.T) {
	got, err := readAvroFile(t, "../format/testdata/polars.avro", Spec{})
	if err != nil || len(got) == 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAvroWide: a schema of 10,000 columns, which is longer than the first read.
func TestAvroWide(t *testing.T) {
	var fields, data, want strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&fields, `%s{"name":"column_%d","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null}`, [2]string{"", ","}[min(i, 1)], i)
		data.WriteString("\x02\x00")
		fmt.Fprintf(&want, `%s"column_%d":"1970-01-01T00:00:00.000000Z"`, [2]string{"{", ","}[min(i, 1)], i)
	}
	f := newAvroFile(avroRecordOf(fields.String()), "null").block(2, data.String()+data.String())
	got, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "wide", got, []string{want.String() + "}", want.String() + "}"})
	got, err = f.read(t, "COLUMN_9999")
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "one of many", got, []string{`{"column_9999":"1970-01-01T00:00:00.000000Z"}`, `{"column_9999":"1970-01-01T00:00:00.000000Z"}`})
}
