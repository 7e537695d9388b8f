package render

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

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
		{"cut in a marker", ints().block(2, good).block(2, good), 3, 2, "has 21 bytes of its 24"},
		{"cut in a block", ints().block(2, good).block(2, good), 18, 2, "has 6 bytes of its 24"},
		{"a wrong marker", &avroFile{*bytes.NewBuffer(bytes.Replace(ints().block(2, good).block(2, good).Bytes(), []byte("y"+avroMark+"\x04"), []byte("y0123456789abcdeX\x04"), 1))}, 0, 0, "does not end in the file's sync marker"},
		{"a wrong second marker", &avroFile{*bytes.NewBuffer(append(bytes.TrimSuffix(ints().block(2, good).block(2, good).Bytes(), []byte("f")), 'X'))}, 0, 2, "does not end in the file's sync marker"},
		{"fewer rows than bytes", ints().block(1, good), 0, 1, "has bytes behind its last row"},
		{"more rows than bytes", ints().block(3, good), 0, 2, "ends within its rows"},
		{"a row cut in half", ints().block(3, good+"\x06"), 0, 2, "ends within its rows"},
		{"bytes of no rows", ints().block(0, good), 0, 0, "has bytes behind its last row"},
		{"a negative count", ints().block(-1, good), 0, 0, "-1 rows in 6 bytes"},
		{"a negative length", ints().block(1, "\x02\x01"), 0, 0, "a length of -1"},
		{"a long length", ints().block(1, "\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"), 0, 0, "ends within its rows"},
		{"a number without end", ints().block(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0, 0, "a number of more than 64 bits"},
		{"a codec", newAvroFile(avroRecordOf(""), "lzo"), 0, 0, `its codec is "lzo"`},
		{"no JSON", newAvroFile("{", "null"), 0, 0, "its schema is no JSON"},
		{"no record", newAvroFile(`"int"`, "null"), 0, 0, "its schema is of type int"},
		{"an unknown type", newAvroFile(avroRecordOf(`{"name":"a","type":"frob"}`), "null"), 0, 0, `field "a": there is no type "frob"`},
		{"deep", newAvroFile(strings.Repeat(`{"type":"array","items":`, 100)+`"int"`+strings.Repeat("}", 100), "null"), 0, 0, "it nests deeper than 64"},
		{"deflate", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "deflate").block(1, "\xff\xff"), 0, 0, "has damaged deflate data"},
		{"snappy", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "snappy").block(1, "\x01\x00\x02????"), 0, 0, "its checksum is wrong"},
		{"snappy's length", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "snappy").block(1, "\xff\xff\xff\xff\x0f\x00\x02????"), 0, 0, "has damaged snappy data"},
		{"zstandard", newAvroFile(avroRecordOf(`{"name":"a","type":"int"}`), "zstandard").block(1, "x"), 0, 0, "has damaged zstandard data"},
		{"a cut header", ints(), 20, 0, "the header is damaged"},
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
		rows, err = newAvroFile(avroRecordOf(`{"name":"id","type":"int"}`), codec).block(3, packed(t, codec, "", 3)).read(t)
		if err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		wantLines(t, codec, rows, []string{`{"id":0}`, `{"id":0}`, `{"id":0}`})

		bomb := packed(t, codec, string(binary.AppendVarint(nil, 1<<40)), maxAvroRow+1<<20)
		f := newAvroFile(avroRecordOf(`{"name":"s","type":"bytes"}`), codec).block(1, bomb)
		if _, err = f.read(t); err == nil || !strings.Contains(err.Error(), "a row of more than 64 MiB") {
			t.Errorf("%s: got %v", codec, err)
		}
		f = newAvroFile(avroRecordOf(`{"name":"id","type":"int"}`), codec).block(1<<40, bomb)
		var b strings.Builder
		if err = Rows(t.Context(), &b, bytes.NewReader(f.Bytes()), int64(f.Len()), Spec{Output: OutputJSONL, Limit: 2}); err != nil || strings.Count(b.String(), "\n") != 2 {
			t.Errorf("%s: got %q, %v", codec, b.String(), err)
		}
	}
}

// packed are n zeros behind some bytes.
func packed(t *testing.T, codec, first string, n int) string {
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
		_, err = w.Write(append([]byte(first), make([]byte, n)...))
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

// brokenReads fails behind a position.
type brokenReads struct {
	io.ReaderAt
	from int64
	err  error
}

func (r brokenReads) ReadAt(b []byte, off int64) (int, error) {
	if n := r.from - off; n < int64(len(b)) {
		got, _ := r.ReaderAt.ReadAt(b[:max(n, 0)], off)
		return got, r.err
	}
	return r.ReaderAt.ReadAt(b, off)
}

// TestAvroRanges: blocks that lie across the ranges which are read, of all sizes.
func TestAvroRanges(t *testing.T) {
	f := newAvroFile(avroRecordOf(`{"name":"n","type":"int"},{"name":"b","type":"string"}`), "null")
	var want []string
	for n := 0; f.Len() < 12<<20; n++ {
		var b avroFile
		text := strings.Repeat("x", n*n*97%(2<<20))
		b.long(int64(n))
		b.text(text)
		f.block(1, b.String())
		want = append(want, fmt.Sprintf(`{"n":%d,"b":"%s"}`, n, text))
	}
	got, err := f.read(t)
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %d rows, %v, want %d", len(got), err, len(want))
	}
	for what, src := range map[string]brokenReads{
		"it ends before its size": {bytes.NewReader(f.Bytes()), 7 << 20, io.EOF},
		io.ErrNoProgress.Error():  {bytes.NewReader(f.Bytes()), 7 << 20, io.ErrNoProgress},
	} {
		got, err = avroRows(t.Context(), src, int64(f.Len()), Spec{Format: "avro"})
		if err == nil || !strings.Contains(err.Error(), what) || len(got) == 0 || len(got) >= len(want) || strings.Join(got, "\n") != strings.Join(want[:len(got)], "\n") {
			t.Errorf("%s: got %d rows, %v", what, len(got), err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	src := stuckReads{bytes.NewReader(f.Bytes()), cancel, make(chan struct{})}
	context.AfterFunc(ctx, func() { close(src.free) })
	if _, err = avroRows(ctx, src, int64(f.Len()), Spec{Format: "avro"}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}

// stuckReads ends the context by its second read, which waits for that.
type stuckReads struct {
	io.ReaderAt
	cancel context.CancelCauseFunc
	free   chan struct{}
}

func (r stuckReads) ReadAt(b []byte, off int64) (int, error) {
	if off > 0 {
		r.cancel(nil)
		<-r.free
		return 0, io.ErrUnexpectedEOF
	}
	return r.ReaderAt.ReadAt(b, off)
}

// TestAvroOneBlock: all rows in one block, as some writers make it; it ends without the
// file's marker, which is only seen behind its rows.
func TestAvroOneBlock(t *testing.T) {
	var data avroFile
	var want []string
	for n := range 60_000 { // a block that is too large to be read before its rows are shown, packed too
		s := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n), byte(n >> 8)}))[n%20:]
		data.long(int64(n))
		data.text(s)
		want = append(want, fmt.Sprintf(`{"n":%d,"s":"%s"}`, n, s))
	}
	stored := map[string]string{"null": data.String()}
	for _, codec := range []string{"deflate", "zstandard"} {
		stored[codec] = packed(t, codec, data.String(), 0)
	}
	stored["snappy"] = string(snappy.Encode(nil, data.Bytes())) + string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data.Bytes())))
	for codec, block := range stored {
		f := newAvroFile(avroRecordOf(`{"name":"n","type":"int"},{"name":"s","type":"string"}`), codec).block(int64(len(want)), block)
		got, err := f.read(t)
		if err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		wantLines(t, codec, got, want)
		f.Bytes()[f.Len()-1] = 'X'
		got, err = f.read(t)
		if err == nil || !strings.Contains(err.Error(), "sync marker") {
			t.Errorf("%s: got %v", codec, err)
		}
		wantLines(t, codec, got, want)
	}
}

// TestSnappy: an element of each kind, and what refers to nothing.
func TestSnappy(t *testing.T) {
	unsnap := func(packed string) (string, error) {
		var u unsnapper
		if err := u.reset(bufio.NewReader(strings.NewReader(packed))); err != nil {
			return "", err
		}
		b, err := io.ReadAll(&u)
		return string(b), err
	}
	sum := func(s string) string {
		return string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(s))))
	}
	long := strings.Repeat("0123456789", 2<<20) // more than is held
	much := string(binary.AppendUvarint(nil, uint64(len(long)+4))) + "\xfc" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(long)-1))) + long
	for _, c := range []struct{ packed, want, err string }{
		{"\x00" + sum(""), "", ""},
		{"\x0c\x0cabcd" + "\x11\x04" + sum("abcdabcdabcd"), "abcdabcdabcd", ""},     // of 8, from 4 before
		{"\x09\x00a" + "\x1e\x01\x00" + sum("aaaaaaaaa"), "aaaaaaaaa", ""},          // of 8, from 1 before
		{"\x09\x00a" + "\x1f\x01\x00\x00\x00" + sum("aaaaaaaaa"), "aaaaaaaaa", ""},  // in four bytes
		{"\x09\x00a" + "\x1e\x02\x00" + sum(""), "", "it refers to 2 bytes before"}, //
		{"\x09\x00a" + "\x1e\x00\x00" + sum(""), "", "it refers to 0 bytes before"}, //
		{"\x02\x0cabcd" + sum("ab"), "", errSnappy.Error()},                         // more than it says
		{"\x05\x0cabcd", "", errMore.Error()},                                       //
		{much + "\x0f\x0a\x00\x00\x00" + sum(long+"0123"), long + "0123", ""},
		{much + "\x0f\x00\x00\x00\x01" + sum(""), "", "it refers to 16777216 bytes before"},
	} {
		got, err := unsnap(c.packed)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%.30q: got %.30q, %v, want %.30q, %q", c.packed, got, err, c.want, c.err)
		}
	}
}
