package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pq "github.com/parquet-go/parquet-go/format"
)

type inner struct {
	A int64   `parquet:"a"`
	B *string `parquet:"b,optional"`
}

type everything struct {
	Bool  bool              `parquet:"bool"`
	Int   int32             `parquet:"int"`
	Uint  uint64            `parquet:"uint"`
	Maybe *int64            `parquet:"maybe,optional"`
	Float float32           `parquet:"float"`
	Text  string            `parquet:"text,dict"`
	Delta string            `parquet:"delta,delta"`
	Bytes []byte            `parquet:"bytes"`
	UUID  [16]byte          `parquet:"uuid,uuid"`
	Dec   int64             `parquet:"dec,decimal(2:18)"`
	Day   int32             `parquet:"day,date"`
	Time  int64             `parquet:"time,time(microsecond)"`
	Stamp int64             `parquet:"stamp,timestamp(millisecond)"`
	Local int64             `parquet:"local,timestamp(nanosecond:local)"`
	Old   deprecated.Int96  `parquet:"old"`
	List  []int32           `parquet:"list,list"`
	Bare  []string          `parquet:"bare"`
	Map   map[string]int32  `parquet:"map"`
	Codes map[int32]*string `parquet:"codes"`
	In    inner             `parquet:"in"`
	Many  []inner           `parquet:"many,list"`
}

// everythingRows are rows of each kind of column.
func everythingRows(n int) []everything {
	rows := make([]everything, n)
	for i := range rows {
		x, f := int64(i), fmt.Sprint("text ", i%3)
		rows[i] = everything{
			Bool: i%2 == 0, Int: int32(-i), Uint: math.MaxUint64 - uint64(i), Float: float32(i) / 4, Text: f, Delta: fmt.Sprint("delta ", i),
			Bytes: []byte{byte(i), 255}, UUID: [16]byte{15: byte(i)}, Dec: x - 1, Day: int32(i), Time: x, Stamp: x * 1000, Local: -x,
			Old:  deprecated.Int96{uint32(i), 0, 2440588},
			List: make([]int32, i%3), Map: map[string]int32{}, In: inner{A: x}, Codes: map[int32]*string{},
		}
		if i%4 != 0 {
			rows[i].Maybe, rows[i].In.B = &x, &f
			rows[i].Bare = []string{f, ""}
			rows[i].Map[f] = int32(i)
			rows[i].Codes[int32(i)] = &f
			rows[i].Many = []inner{{A: x}, {A: 2, B: &f}}
		}
	}
	return rows
}

// written is a file of the rows.
func written[T any](tb testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestParquetRows(t *testing.T) {
	want := `{"bool":true,"int":0,"uint":18446744073709551615,"maybe":null,"float":0.0,"text":"text 0","delta":"delta 0","bytes":"AP8=","uuid":"00000000-0000-0000-0000-000000000000","dec":-0.01,"day":"1970-01-01","time":"00:00:00.000000","stamp":"1970-01-01T00:00:00.000Z","local":"1970-01-01T00:00:00.000000000","old":"1970-01-01T00:00:00.000000000","list":[],"bare":[],"map":{},"codes":[],"in":{"a":0,"b":null},"many":[]}
{"bool":false,"int":-1,"uint":18446744073709551614,"maybe":1,"float":0.25,"text":"text 1","delta":"delta 1","bytes":"Af8=","uuid":"00000000-0000-0000-0000-000000000001","dec":0.00,"day":"1970-01-02","time":"00:00:00.000001","stamp":"1970-01-01T00:00:01.000Z","local":"1969-12-31T23:59:59.999999999","old":"1970-01-01T00:00:00.000000001","list":[0],"bare":["text 1",""],"map":{"text 1":1},"codes":[{"key":1,"value":"text 1"}],"in":{"a":1,"b":"text 1"},"many":[{"a":1,"b":null},{"a":2,"b":"text 1"}]}
`
	wantRows(t, "two rows", written(t, everythingRows(2)), Spec{}, want)

	// Pages, row groups and codecs cut rows anywhere: the text is the same.
	const n = 1000
	plain, err := rendered(written(t, everythingRows(n), parquet.DataPageVersion(1)), Spec{})
	if err != nil || strings.Count(plain, "\n") != n || !strings.HasPrefix(plain, want) {
		t.Fatalf("%v, %d rows", err, strings.Count(plain, "\n"))
	}
	for _, codec := range []pq.CompressionCodec{pq.Uncompressed, pq.Snappy, pq.Gzip, pq.Brotli, pq.Zstd, pq.Lz4Raw} {
		for version := 1; version <= 2; version++ {
			file := written(t, everythingRows(n), parquet.Compression(parquet.LookupCompressionCodec(codec)), parquet.DataPageVersion(version),
				parquet.PageBufferSize(300), parquet.MaxRowsPerRowGroup(170))
			wantRows(t, fmt.Sprint(codec, " v", version), file, Spec{}, plain)
			wantRows(t, "limited", file, Spec{Limit: 2}, want)
		}
	}
}

// Shapes that writers of today do not make, but files have.
func TestParquetShapes(t *testing.T) {
	leaf := func(name string, rep pq.FieldRepetitionType, converted ...deprecated.ConvertedType) pq.SchemaElement {
		return elementOf(name, rep, 0, pq.Int32, converted...)
	}
	three := levelsOf(0, 1, 0) // repetition: two rows, of two values and of one
	column := func(values int64, body []byte) testChunk {
		return testChunk{physical: pq.Int32, values: values, pages: []testPage{v1(int(values), body)}}
	}
	for _, c := range []struct {
		name   string
		schema []pq.SchemaElement
		chunks []testChunk
		want   string
	}{
		{
			"a list of two levels",
			[]pq.SchemaElement{elementOf("l", pq.Optional, 1, 0, deprecated.List), leaf("element", pq.Repeated)},
			[]testChunk{column(3, joined(three, levelsOf(2, 2, 1), int32s(1, 2)))},
			"{\"l\":[1,2]}\n{\"l\":[]}\n",
		},
		{
			"a list as Avro's writer had them",
			[]pq.SchemaElement{elementOf("l", pq.Required, 1, 0, deprecated.List), elementOf("array", pq.Repeated, 1, 0), leaf("x", pq.Required)},
			[]testChunk{column(3, joined(three, levelsOf(1, 1, 1), int32s(1, 2, 3)))},
			"{\"l\":[{\"x\":1},{\"x\":2}]}\n{\"l\":[{\"x\":3}]}\n",
		},
		{
			"a list as Thrift's writer had them",
			[]pq.SchemaElement{elementOf("l", pq.Required, 1, 0, deprecated.List), elementOf("l_tuple", pq.Repeated, 1, 0), leaf("x", pq.Required)},
			[]testChunk{column(3, joined(three, levelsOf(1, 1, 1), int32s(1, 2, 3)))},
			"{\"l\":[{\"x\":1},{\"x\":2}]}\n{\"l\":[{\"x\":3}]}\n",
		},
		{
			"a list as Hive's writer has them",
			[]pq.SchemaElement{elementOf("l", pq.Optional, 1, 0, deprecated.List), elementOf("bag", pq.Repeated, 1, 0), leaf("array_element", pq.Optional)},
			[]testChunk{column(3, joined(three, levelsOf(3, 2, 0), int32s(1)))},
			"{\"l\":[1,null]}\n{\"l\":null}\n",
		},
		{
			"repeated, without an annotation",
			[]pq.SchemaElement{leaf("l", pq.Repeated)},
			[]testChunk{column(3, joined(three, levelsOf(1, 1, 0), int32s(1, 2)))},
			"{\"l\":[1,2]}\n{\"l\":[]}\n",
		},
		{
			"a map by its older annotation",
			[]pq.SchemaElement{elementOf("m", pq.Optional, 1, 0, deprecated.MapKeyValue), elementOf("map", pq.Repeated, 2, 0), leaf("k", pq.Required), leaf("v", pq.Optional)},
			[]testChunk{column(3, joined(three, levelsOf(2, 2, 0), int32s(1, 2))), column(3, joined(three, levelsOf(3, 2, 0), int32s(7)))},
			"{\"m\":[{\"key\":1,\"value\":7},{\"key\":2,\"value\":null}]}\n{\"m\":null}\n",
		},
		{
			"numbers of few bits",
			[]pq.SchemaElement{leaf("s", pq.Required, deprecated.Int8), leaf("u", pq.Required, deprecated.Uint32)},
			[]testChunk{column(2, int32s(-128, 127)), column(2, int32s(-1, 1))},
			"{\"s\":-128,\"u\":4294967295}\n{\"s\":127,\"u\":1}\n",
		},
	} {
		wantRows(t, c.name, parquetOf(t, 2, c.schema, c.chunks...), Spec{}, c.want)
	}
}

func TestParquetOutputs(t *testing.T) {
	type row struct {
		N int64   `parquet:"n"`
		S *string `parquet:"s,optional"`
	}
	a, b := "a,\"b\"\n", ""
	file := written(t, []row{{1, &a}, {-20, &b}, {3, nil}})
	s := Spec{Keys: []Key{{Name: "k", Type: "int", Value: "7"}, {Name: "s2", Type: "string", Null: true}}}
	s.Output = OutputCSV
	wantRows(t, "csv", file, s, "n,s,k,s2\n1,\"a,\"\"b\"\"\n\",7,\n-20,\"\",7,\n3,,7,\n")
	s.Output = OutputTable
	wantRows(t, "table", file, s, "  n  s        k  s2\n---  -------  -  ----\n  1  a,\"b\"\\n  7  NULL\n-20  \"\"       7  NULL\n  3  NULL     7  NULL\n")
	s.Output = OutputJSONL
	s.Project = []string{"k", "n"}
	wantRows(t, "some", file, s, "{\"k\":7,\"n\":1}\n{\"k\":7,\"n\":-20}\n{\"k\":7,\"n\":3}\n")
	s.Project = []string{"k"}
	wantRows(t, "keys alone", file, s, strings.Repeat("{\"k\":7}\n", 3))
	s.Limit = 2
	wantRows(t, "keys alone, limited", file, s, strings.Repeat("{\"k\":7}\n", 2))
	_, err := rendered(file, Spec{Output: "xml"})
	wantError(t, "xml", err, "no output \"xml\"")
}

// TestTableForATerminal: what is not seen or changes what is beside it is escaped, in names
// and in nested values too, and columns are as wide as a terminal shows them.
func TestTableForATerminal(t *testing.T) {
	type row struct {
		S string   `parquet:"s\u202e"`
		L []string `parquet:"l,list"`
		W string   `parquet:"w"`
	}
	file := written(t, []row{{"a\u0085\u009bm\u202eb", []string{"x\u2066\u200b"}, "日本"}, {"e\u0301\u200f\u3164\ufeff", nil, strings.Repeat("語", 40)}})
	want := `s\u202e                l                  w
---------------------  -----------------  ` + strings.Repeat("-", 63) + `
a\u0085\u009bm\u202eb  ["x\u2066\u200b"]  日本
` + "e\u0301" + `\u200f\u3164\ufeff    []                 ` + strings.Repeat("語", 31) + "…\n"
	got, err := rendered(file, Spec{Output: OutputTable})
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	for _, text := range []string{strings.Repeat("x", 64), strings.Repeat("é", 64)} {
		if got := string(shortText([]byte(text))); got != text {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
	if got := string(shortText([]byte(strings.Repeat("é", 1<<20)))); got != strings.Repeat("é", 63)+"…" {
		t.Errorf("a long one is cut to %q", got)
	}
}

// TestIntegersThatDoNotFit: a file's int32 is the table's smaller integer as far as its
// values fit; the rows before one that does not are there.
func TestIntegersThatDoNotFit(t *testing.T) {
	const n = 200
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(i % 100)
	}
	numbers[150] = 128
	lines := func(n int) string {
		var b strings.Builder
		for _, v := range numbers[:n] {
			fmt.Fprintf(&b, "{\"c\":%d}\n", v)
		}
		return b.String()
	}
	schema, plain := oneColumn(pq.Int32, n, v1(n, int32s(numbers...)))
	index := []byte{8} // bits
	for i := range n {
		index = append(index, 2, byte(i)) // one of each, a run of its own
	}
	_, indexed := oneColumn(pq.Int32, n, dictionaryPage(n, int32s(numbers...)), v1(n, index).encoded(pq.RLEDictionary))
	for name, chunk := range map[string]testChunk{"plain": plain, "dictionary": indexed} {
		file := parquetOf(t, n, schema, chunk)
		wantRows(t, name+", smallint", file, Spec{Columns: []Column{{Name: "c", Type: "smallint"}}}, lines(n))
		got, err := rendered(file, Spec{Columns: []Column{{Name: "c", Type: "tinyint"}}})
		if got != lines(150) {
			t.Errorf("%s: got\n%s", name, got)
		}
		wantError(t, name, err, `column "c": the file has the value 128, which is no tinyint`)
		wantRows(t, name+", limited", file, Spec{Columns: []Column{{Name: "c", Type: "tinyint"}}, Limit: 150}, lines(150))
	}
	type row struct {
		L []int32 `parquet:"l,list"`
	}
	nested := written(t, []row{{[]int32{1, -128}}, {[]int32{127}}, {[]int32{5, -129}}})
	_, err := rendered(nested, Spec{Columns: []Column{{Name: "l", Type: "array<tinyint>"}}})
	wantError(t, "nested", err, "the file has the value -129, which is no tinyint")
	wantRows(t, "nested", nested, Spec{Columns: []Column{{Name: "l", Type: "array<smallint>"}}}, "{\"l\":[1,-128]}\n{\"l\":[127]}\n{\"l\":[5,-129]}\n")
}

// TestParquetDepth: lists of 60 nest in 121 elements. What is deeper than is shown is not
// called damaged.
func TestParquetDepth(t *testing.T) {
	deep := func(lists int) []byte {
		var schema []pq.SchemaElement
		var reps, defs []byte
		for range lists {
			schema = append(schema, elementOf("l", pq.Required, 1, 0, deprecated.List), elementOf("list", pq.Repeated, 1, 0))
		}
		schema = append(schema, elementOf("element", pq.Required, 0, pq.Int32))
		width := (bits.Len(uint(lists)) + 7) / 8
		level := func(n int) []byte {
			run := append([]byte{2}, make([]byte, width)...)
			run[1] = byte(n)
			return append([]byte{byte(len(run)), 0, 0, 0}, run...)
		}
		reps, defs = level(0), level(lists)
		return parquetOf(t, 1, schema, testChunk{physical: pq.Int32, values: 1, pages: []testPage{v1(1, joined(reps, defs, int32s(7)))}})
	}
	for _, lists := range []int{1, 60, 99} {
		wantRows(t, fmt.Sprint(lists), deep(lists), Spec{}, `{"l":`+strings.Repeat("[", lists)+"7"+strings.Repeat("]", lists)+"}\n")
	}
	_, err := rendered(deep(120), Spec{})
	wantError(t, "deeper", err, "nests deeper than 200")
	if strings.Contains(err.Error(), "damaged") {
		t.Errorf("deeper: %v", err)
	}
}

// A row group is of one column and a number of rows where nothing else matters.
func oneColumn(physical pq.Type, rows int64, pages ...testPage) ([]pq.SchemaElement, testChunk) {
	return []pq.SchemaElement{elementOf("c", pq.Required, 0, physical)}, testChunk{physical: physical, values: rows, pages: pages}
}

// What a page claims takes no memory.
func TestParquetBombs(t *testing.T) {
	const many = math.MaxInt32
	long := func(p testPage, encoded, decoded int32) testPage {
		p.header.CompressedPageSize, p.header.UncompressedPageSize = encoded, decoded
		return p
	}
	uvarints := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	for _, c := range []struct {
		name     string
		physical pq.Type
		rows     int64
		codec    pq.CompressionCodec
		pages    []testPage
		want     string
	}{
		{"a page of 2 GiB", pq.Int32, 1, 0, []testPage{long(v1(1, int32s(1)), many, many)}, "a page of 2147483647 bytes where 4 are"},
		{"one that decodes to 2 GiB", pq.Int32, 1, pq.Snappy, []testPage{long(v1(1, int32s(1)), 0, many)}, "up to 134217728 are read"},
		{"snappy of another length", pq.Int32, 1, pq.Snappy, []testPage{long(v1(1, uvarints(1<<30)), 0, 4)}, "decodes to 1073741824 bytes"},
		{"zstd of nothing", pq.Int32, 1, pq.Zstd, []testPage{long(v1(1, int32s(1)), 0, 4)}, "does not decode"},
		{"gzip of nothing", pq.Int32, 1, pq.Gzip, []testPage{long(v1(1, int32s(1)), 0, 4)}, "damaged"},
		{"brotli of nothing", pq.Int32, 1, pq.Brotli, []testPage{long(v1(1, int32s(1)), 0, 4)}, "does not decode"},
		{"lz4 of nothing", pq.Int32, 1, pq.Lz4, []testPage{long(v1(1, int32s(1)), 0, 4)}, "does not decode"},
		{"an unknown codec", pq.Int32, 1, 99, []testPage{v1(1, int32s(1))}, "is not known"},
		{"lzo", pq.Int32, 1, pq.LZO, []testPage{v1(1, int32s(1))}, "is not known"},
		{"a dictionary of 2^31", pq.Int32, 1, 0, []testPage{dictionaryPage(many, int32s(1)), v1(1, []byte{1, 2, 0}).encoded(pq.RLEDictionary)}, "promises 2147483647 values in 4 bytes"},
		{"a dictionary of 2^31 texts", pq.ByteArray, 1, 0, []testPage{dictionaryPage(many, plainStrings("a")), v1(1, []byte{1, 2, 0}).encoded(pq.RLEDictionary)}, "promises 2147483647 values"},
		{"a text of 4 GiB", pq.ByteArray, 1, 0, []testPage{v1(1, []byte{255, 255, 255, 255})}, "ends before its values do"},
		{"an index beyond", pq.Int32, 1, 0, []testPage{dictionaryPage(1, int32s(1)), v1(1, []byte{8, 2, 200}).encoded(pq.RLEDictionary)}, "value 200 of a dictionary of 1"},
		{"indexes of 33 bits", pq.Int32, 1, 0, []testPage{dictionaryPage(1, int32s(1)), v1(1, []byte{33, 2, 200}).encoded(pq.RLEDictionary)}, "of 33 bits"},
		{"no dictionary", pq.Int32, 1, 0, []testPage{v1(1, []byte{1, 2, 0}).encoded(pq.RLEDictionary)}, "without a dictionary"},
		{"more values than promised", pq.Int32, 1, 0, []testPage{v1(many, int32s(1))}, "a page of 2147483647 values where 1 are"},
		{"differences of 2^31 values", pq.Int32, 1, 0, []testPage{v1(1, uvarints(128, 4, many, 0)).encoded(pq.DeltaBinaryPacked)}, "promises 2147483647 values where 1 are"},
		{"differences in huge blocks", pq.Int32, 1, 0, []testPage{v1(1, uvarints(1<<30, 1, 1, 0)).encoded(pq.DeltaBinaryPacked)}, "in blocks of 1073741824"},
		{"an unknown encoding", pq.Int32, 1, 0, []testPage{v1(1, int32s(1)).encoded(77)}, "which is not known"},
		{"the page is missing", pq.Int32, 1, 0, nil, "cannot be read"},
		{"a page without values", pq.Int32, 2, 0, []testPage{v1(1, int32s(1)), v1(0, nil)}, "cannot be read"},
	} {
		schema, chunk := oneColumn(c.physical, c.rows, c.pages...)
		chunk.codec = c.codec
		file := parquetOf(t, c.rows, schema, chunk)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rendered(file, Spec{})
		runtime.ReadMemStats(&after)
		wantError(t, c.name, err, c.want)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s took %d bytes", c.name, took)
		}
	}
}

// Texts that grow from few bytes: each value begins as the one before, and a list of
// 2^31 NULLs is two bytes.
func TestParquetGrows(t *testing.T) {
	schema := []pq.SchemaElement{elementOf("l", pq.Required, 1, 0, deprecated.List), elementOf("list", pq.Repeated, 1, 0), elementOf("element", pq.Optional, 0, pq.Int32)}
	const n = math.MaxInt32
	run := func(value byte, count uint64) []byte { return append(binary.AppendUvarint(nil, count<<1), value) }
	reps := joined(run(0, 1), run(1, n-1))
	defs := run(1, n)
	size := func(b []byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...) }
	file := parquetOf(t, 1, schema, testChunk{physical: pq.Int32, values: n, pages: []testPage{v1(n, joined(size(reps), size(defs)))}})
	_, err := rendered(file, Spec{})
	wantError(t, "a list of 2^31 NULLs", err, "a row of more than")
}

func TestParquetRefused(t *testing.T) {
	type row struct {
		N int64 `parquet:"n"`
		M int64 `parquet:"m"`
	}
	file := written(t, []row{{1, 2}})
	cut := file[:len(file)-1]
	_, err := rendered(cut, Spec{Format: "parquet"})
	wantError(t, "cut", err, "not a complete Parquet file")
	_, err = rendered([]byte("hello"), Spec{})
	wantError(t, "text", err, "neither a Parquet nor an Avro file; it seems to be text (JSON, CSV) already")
	_, err = rendered([]byte(`{"a":1}`+"\n"), Spec{Format: "parquet"})
	wantError(t, "text where Parquet is to be", err, "it seems to be text (JSON, CSV) already")
	_, err = rendered(nil, Spec{Format: "parquet"})
	wantError(t, "nothing", err, "not a complete Parquet file")
	_, err = rendered(file, Spec{Format: "orc"})
	wantError(t, "orc", err, "rows of format orc are not shown")

	odd := []pq.SchemaElement{elementOf("v", pq.Required, 1, 0), elementOf("x", pq.Required, 0, pq.ByteArray), elementOf("n", pq.Required, 0, pq.Int32)}
	odd[0].LogicalType.Value = &pq.VariantType{}
	file = parquetOf(t, 1, odd,
		testChunk{physical: pq.ByteArray, values: 1, pages: []testPage{v1(1, plainStrings("x"))}},
		testChunk{physical: pq.Int32, values: 1, pages: []testPage{v1(1, int32s(5))}})
	_, err = rendered(file, Spec{})
	wantError(t, "variant", err, `column "v": values of type VARIANT are not shown; leave the column out`)
	wantRows(t, "without it", file, Spec{Project: []string{"n"}}, "{\"n\":5}\n")
}

// A mutated file gives rows, or an Error; never more.
func TestParquetMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for version := 1; version <= 2; version++ {
		whole := written(t, everythingRows(40), parquet.DataPageVersion(version), parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(200))
		for range 400 {
			file := bytes.Clone(whole)
			for range 1 + rng.IntN(3) {
				file[rng.IntN(len(file))] = byte(rng.Uint32())
			}
			_, err := rendered(file, Spec{Format: "parquet"})
			if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
		}
	}
}

// counted answers after a moment, and counts.
type counted struct {
	src      io.ReaderAt
	requests atomic.Int64
	bytes    atomic.Int64
}

const moment = 20 * time.Millisecond

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.requests.Add(1)
	c.bytes.Add(int64(len(p)))
	<-time.After(moment)
	return c.src.ReadAt(p, off)
}

// The first rows of a large row group take the footer, and one look at all columns: in as
// many moments as there are round trips.
func TestParquetFirstRows(t *testing.T) {
	type wide struct {
		A, B, C, D, E, F, G, H int64
		S, T                   string
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]wide, 300_000)
	for i := range rows {
		n := func() int64 { return rng.Int64() }
		rows[i] = wide{n(), n(), n(), n(), n(), n(), n(), n(), fmt.Sprint(n()), fmt.Sprint("text ", i%1000)}
	}
	file := written(t, rows, parquet.PageBufferSize(1<<20), parquet.MaxRowsPerRowGroup(1<<30))
	synctest.Test(t, func(t *testing.T) {
		src := &counted{src: bytes.NewReader(file)}
		start := time.Now()
		if err := Rows(t.Context(), io.Discard, src, int64(len(file)), Spec{Name: "f", Format: "parquet", Output: OutputJSONL, Limit: 3}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 3*moment {
			t.Errorf("%v, which is %d round trips", took, took/moment)
		}
		if n, most := src.bytes.Load(), int64(16<<20); n > most || n > int64(len(file))/2 {
			t.Errorf("%d bytes of %d in %d requests", n, len(file), src.requests.Load())
		}
		if n := src.requests.Load(); n > 1+2*10 {
			t.Errorf("%d requests", n)
		}
	})
	synctest.Test(t, func(t *testing.T) { // of all rows, the requests are large and ahead of their use
		src := &counted{src: bytes.NewReader(file)}
		start := time.Now()
		if err := Rows(t.Context(), io.Discard, src, int64(len(file)), Spec{Name: "f", Format: "parquet", Output: OutputJSONL}); err != nil {
			t.Fatal(err)
		}
		if n := src.bytes.Load(); n > int64(len(file))+parquetFirstRead {
			t.Errorf("%d bytes of %d", n, len(file))
		}
		t.Logf("%d bytes, %d requests, %d round trips", len(file), src.requests.Load(), time.Since(start)/moment)
		if n := src.requests.Load(); n > 10*10 {
			t.Errorf("%d requests", n)
		}
	})
}

// firstWrite ends the rows at their first write.
type firstWrite struct {
	cancel context.CancelFunc
	bytes  int
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.bytes += len(p)
	f.cancel()
	return len(p), nil
}

// Rows leave before the rest is read, and nothing is read once nobody wants them.
func TestRowsStream(t *testing.T) {
	type row struct{ N int64 }
	rows := make([]row, 200_000)
	for i := range rows {
		rows[i].N = rand.Int64()
	}
	file := written(t, rows, parquet.MaxRowsPerRowGroup(10_000))
	for _, output := range []string{OutputJSONL, OutputCSV} {
		ctx, cancel := context.WithCancel(t.Context())
		w := &firstWrite{cancel: cancel}
		src := &counted{src: bytes.NewReader(file)}
		err := Rows(ctx, w, src, int64(len(file)), Spec{Name: "f", Output: output})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", output, err)
		}
		if n := src.bytes.Load(); w.bytes > 64<<10 || n > int64(len(file))/2 {
			t.Errorf("%s: %d bytes of rows and %d of %d read", output, w.bytes, n, len(file))
		}
		cancel()
	}
}

// What the file's reader fails with is no fault of the file, and the rows before it stay.
func TestRowsOfAFailingReader(t *testing.T) {
	type row struct{ N int64 }
	file := written(t, make([]row, 500_000), parquet.MaxRowsPerRowGroup(10_000))
	broken := errors.New("broken")
	var out bytes.Buffer
	err := Rows(t.Context(), &out, brokenFile{bytes.NewReader(file), int64(len(file)) / 2, broken}, int64(len(file)), Spec{Name: "f", Format: "parquet", Output: OutputJSONL})
	if e := (*Error)(nil); !errors.Is(err, broken) || errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if !bytes.HasSuffix(out.Bytes(), []byte("}\n")) {
		t.Errorf("%d bytes that are no whole rows", out.Len())
	}
}

// brokenFile fails in the middle of the file.
type brokenFile struct {
	src    io.ReaderAt
	middle int64
	err    error
}

func (f brokenFile) ReadAt(p []byte, off int64) (int, error) {
	if off <= f.middle && f.middle < off+int64(len(p)) {
		return 0, f.err
	}
	return f.src.ReadAt(p, off)
}
