package render

import (
	"bytes"
	"context"
	"encoding/binary"
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

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

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

// avroFile builds a file of blocks.
type avroFile struct{ bytes.Buffer }

func newAvroFile(schema, codec string) *avroFile {
	f := &avroFile{}
	f.WriteString("Obj\x01")
	f.long(2)
	for _, kv := range [][2]string{{"avro.schema", schema}, {"avro.codec", codec}} {
		f.text(kv[0])
		f.text(kv[1])
	}
	f.long(0)
	f.WriteString(avroMark)
	return f
}

const avroMark = "0123456789abcdef"

func (f *avroFile) long(n int64) { f.Write(binary.AppendVarint(nil, n)) }

func (f *avroFile) text(s string) {
	f.long(int64(len(s)))
	f.WriteString(s)
}

func (f *avroFile) block(rows int64, data string) *avroFile {
	f.long(rows)
	f.text(data)
	f.WriteString(avroMark)
	return f
}

func (f *avroFile) read(t *testing.T, project ...string) ([]string, error) {
	t.Helper()
	return avroRows(t.Context(), bytes.NewReader(f.Bytes()), int64(f.Len()), Spec{Name: "f", Format: "avro", Project: project})
}

func avroRecordOf(fields string) string {
	return `{"type":"record","name":"R","fields":[` + fields + `]}`
}

// TestAvroDamage: rows before the damage are shown, then the error comes.
func TestAvroDamage(t *testing.T) {
	ints := func() *avroFile {
		return newAvroFile(avroRecordOf(`{"name":"a","type":"int"},{"name":"s","type":"string"}`), "null")
	}
	good := "\x02\x02x\x04\x02y" // rows 1, x and 2, y
	for _, c := range []struct {
		what string
		file *avroFile
		cut  int // from its end
		rows int
		want string
	}{
		{"none", ints().block(2, good), 0, 2, ""},
		{"empty blocks", ints().block(0, "").block(2, good).block(0, ""), 0, 2, ""},
		{"no block", ints(), 0, 0, ""},
		{"cut in a marker", ints().block(2, good).block(2, good), 3, 2, "ends at byte 21 of its 24"},
		{"cut in a block", ints().block(2, good).block(2, good), 18, 2, "ends at byte 6"},
		{"a wrong marker", &avroFile{*bytes.NewBuffer(bytes.Replace(ints().block(2, good).block(2, good).Bytes(), []byte("y"+avroMark+"\x04"), []byte("y0123456789abcdeX\x04"), 1))}, 0, 0, "does not end in the file's sync marker"},
		{"a wrong second marker", &avroFile{*bytes.NewBuffer(append(bytes.TrimSuffix(ints().block(2, good).block(2, good).Bytes(), []byte("f")), 'X'))}, 0, 2, "does not end in the file's sync marker"},
		{"fewer rows than bytes", ints().block(1, good), 0, 1, "3 bytes behind its last row"},
		{"more rows than bytes", ints().block(3, good), 0, 2, "it ends too early"},
		{"a row cut in half", ints().block(3, good+"\x06"), 0, 2, "it ends too early"},
		{"bytes of no rows", ints().block(0, good), 0, 0, "6 bytes of no rows"},
		{"a negative count", ints().block(-1, good), 0, 0, "-1 rows in 6 bytes"},
		{"a negative length", ints().block(1, "\x02\x01"), 0, 0, "a length of -1"},
		{"a long length", ints().block(1, "\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"), 0, 0, "it ends too early"},
		{"a number without end", ints().block(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0, 0, "a number of more than 64 bits"},
		{"a codec", newAvroFile(avroRecordOf(""), "lzo"), 0, 0, `its codec is "lzo"`},
		{"no JSON", newAvroFile("{", "null"), 0, 0, "its schema is no JSON"},
		{"no record", newAvroFile(`"int"`, "null"), 0, 0, "its schema is of type int"},
		{"an unknown type", newAvroFile(avroRecordOf(`{"name":"a","type":"frob"}`), "null"), 0, 0, `field "a": there is no type "frob"`},
		{"deep", newAvroFile(strings.Repeat(`{"type":"array","items":`, 100)+`"int"`+strings.Repeat("}", 100), "null"), 0, 0, "it nests deeper than 64"},
		{"deflate", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "deflate").block(1, "\xff\xff"), 0, 0, "its deflate data"},
		{"snappy", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "snappy").block(1, "\x01\x00\x02????"), 0, 0, "its checksum is wrong"},
		{"snappy's length", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "snappy").block(1, "\xff\xff\xff\xff\x0f\x00\x02????"), 0, 0, "more than 64 MiB"},
		{"zstandard", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "zstandard").block(1, "x"), 0, 0, "its zstandard data"},
		{"a cut header", ints(), 20, 0, "it ends within its header"},
	} {
		c.file.Truncate(c.file.Len() - c.cut)
		rows, err := c.file.read(t)
		if len(rows) != c.rows {
			t.Errorf("%s: got %d rows, want %d", c.what, len(rows), c.rows)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got error %v, want %q", c.what, err, c.want)
		}
	}
}

func TestAvroSchemas(t *testing.T) {
	tree := avroRecordOf(`{"name":"id","type":"int"},{"name":"next","type":["null","R"]},{"name":"f","type":{"type":"fixed","name":"n.F","size":2}},{"name":"g","type":{"type":"array","items":["null","n.F"]}}`)
	_, err := newAvroFile(tree, "null").read(t)
	checkError(t, "recursive", err, `column "next": its type is recursive: a R may hold another R; leave the column out`)
	// A value that holds another, which holds none, is passed over.
	rows, err := newAvroFile(tree, "null").block(1, "\x02"+"\x02"+"\x04\x00"+"aa\x00"+"bb"+"\x04\x00\x02dd\x00").read(t, "id", "g", "f")
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "beside a recursive one", rows, []string{`{"id":1,"g":[null,"ZGQ="],"f":"YmI="}`})

	// Names that double at each level: 2^40 types.
	double := `{"name":"a","type":{"type":"record","name":"A0","fields":[{"name":"x","type":"int"}]}}`
	for i := range 40 {
		double += fmt.Sprintf(`,{"name":"f%d","type":{"type":"record","name":"A%d","fields":[{"name":"x","type":"A%d"},{"name":"y","type":"A%d"}]}}`, i, i+1, i, i)
	}
	_, err = newAvroFile(avroRecordOf(double), "null").read(t)
	checkError(t, "double", err, "the file's schema has more than")
	if _, err = newAvroFile(avroRecordOf(double), "null").read(t, "a", "f3"); err != nil {
		t.Error(err)
	}

	// What another reader's schema would need, and what is no logical type, does not matter.
	rows, err = newAvroFile(avroRecordOf(`{"name":"a b","type":"int","default":"x"},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":2,"scale":5}},`+
		`{"name":"o","type":{"type":{"type":"long","logicalType":"timestamp-millis"}}}`), "null").block(1, "\x02\x02?\x00").read(t)
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "lenient", rows, []string{`{"a b":1,"d":"Pw==","o":"1970-01-01T00:00:00.000Z"}`})
}

// TestAvroBombs: small files that claim much.
func TestAvroBombs(t *testing.T) {
	nulls := avroRecordOf(`{"name":"id","type":"int"},{"name":"a","type":{"type":"array","items":"null"}}`)
	many := string(binary.AppendVarint([]byte("\x02"), 1<<60)) + "\x00"
	_, err := newAvroFile(nulls, "null").block(1, many).read(t)
	if err == nil || !strings.Contains(err.Error(), "a value of more than 64 MiB as text") {
		t.Errorf("2^60 nulls: got %v", err)
	}
	rows, err := newAvroFile(nulls, "null").block(1, many).read(t, "id")
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "2^60 nulls passed over", rows, []string{`{"id":1}`})

	endless := avroRecordOf(`{"name":"id","type":"int"},{"name":"r","type":{"type":"record","name":"S","fields":[{"name":"s","type":"S"}]}}`)
	if _, err = newAvroFile(endless, "null").block(1, "\x02").read(t, "id"); err == nil || !strings.Contains(err.Error(), "nests too deep") {
		t.Errorf("a record within itself: got %v", err)
	}

	for _, codec := range []string{"deflate", "zstandard"} {
		rows, err = newAvroFile(avroRecordOf(`{"name":"id","type":"int"}`), codec).block(3, packed(t, codec, 3)).read(t)
		if err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		wantLines(t, codec, rows, []string{`{"id":0}`, `{"id":0}`, `{"id":0}`})
		f := newAvroFile(avroRecordOf(`{"name":"s","type":"bytes"}`), codec).block(1, packed(t, codec, maxAvroBlock+1))
		if _, err = f.read(t); err == nil || !strings.Contains(err.Error(), "more than 64 MiB unpacked") {
			t.Errorf("%s: got %v", codec, err)
		}
	}
}

// packed are n zeros.
func packed(t *testing.T, codec string, n int) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	if codec == "deflate" {
		w, err = flate.NewWriter(&b, 9)
	} else {
		w, err = zstd.NewWriter(&b)
	}
	if err == nil {
		_, err = w.Write(make([]byte, n))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func FuzzAvro(f *testing.F) {
	f.Add(newAvroFile(avroRecordOf(`{"name":"a","type":"int"},{"name":"m","type":{"type":"map","values":["null","R"]}},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}}`), "null").block(2, "\x02\x02\x02x\x00\x00\x02y\x04\x00\x04??").Bytes(), true)
	f.Add(newAvroFile(avroRecordOf(`{"name":"u","type":["int","null",{"type":"enum","name":"E","symbols":["A"]},{"type":"fixed","name":"F","size":12,"logicalType":"duration"}]}`), "deflate").block(1, "\x63\x00").Bytes(), false)
	f.Fuzz(func(t *testing.T, b []byte, one bool) {
		s := Spec{Name: "f", Format: "avro"}
		if one {
			s.Columns = []Column{{Name: "a", Type: "int"}, {Name: "x", Type: "date"}}
		}
		in, err := openAvro(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		defer in.close()
		outputs, err := conform(s, in.fields())
		if err != nil || in.start(outputs, asJSON) != nil {
			return
		}
		for rows := 0; rows < 10_000; {
			for i := range outputs {
				var c cells
				if err := in.fill(t.Context(), i, &c, 100); err != nil {
					return
				}
				rows += len(c.at)
				for _, at := range c.at {
					if text := c.text[at.off : at.off+at.n]; len(text) > 0 && !json.Valid(text) {
						t.Fatalf("no JSON: %q", text)
					}
				}
			}
			if len(outputs) == 0 {
				return
			}
		}
	})
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

// TestAvroFirstRows: some rows of a large file take one read.
func TestAvroFirstRows(t *testing.T) {
	f := newAvroFile(avroRecordOf(`{"name":"id","type":"int"}`), "null")
	for range 1000 {
		f.block(100, strings.Repeat("\x02", 100))
	}
	src := &countedReads{b: f.Bytes()}
	var b strings.Builder
	err := Rows(t.Context(), &b, src, 1<<30, Spec{Format: "avro", Output: OutputJSONL, Limit: 3})
	if err != nil || b.String() != strings.Repeat("{\"id\":1}\n", 3) {
		t.Errorf("got %q, %v", b.String(), err)
	}
	if n := src.reads.Load(); n != 1 || src.bytes.Load() > 1<<20 {
		t.Errorf("%d reads of %d bytes, want one", n, src.bytes.Load())
	}
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
