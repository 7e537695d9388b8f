package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	pq "github.com/parquet-go/parquet-go/format"
)

// wide is a file with a footer that has one row group many times.
type wide struct {
	head, group, tail []byte
	groups            int64
}

func (w *wide) size() int64 {
	return int64(len(w.head)) + w.groups*int64(len(w.group)) + int64(len(w.tail))
}

// ReadAt makes the bytes up.
func (w *wide) ReadAt(p []byte, off int64) (n int, err error) {
	groups := int64(len(w.head)) + w.groups*int64(len(w.group))
	for n < len(p) {
		at := off + int64(n)
		switch {
		case at < int64(len(w.head)):
			n += copy(p[n:], w.head[at:])
		case at < groups:
			n += copy(p[n:], w.group[(at-int64(len(w.head)))%int64(len(w.group)):])
		case at < w.size():
			n += copy(p[n:], w.tail[at-groups:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

func marshal(tb testing.TB, v any) []byte {
	tb.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func thriftStructs(n int) []byte { return binary.AppendUvarint([]byte{0xfc}, uint64(n)) }

// wideFile is a file of so many columns and row groups, of 3 rows each.
func wideFile(tb testing.TB, columns, groups int) *wide {
	tb.Helper()
	w := &wide{groups: int64(groups), head: []byte("PAR1\x15\x04\x19")}
	w.head = append(w.head, thriftStructs(columns+1)...)
	w.head = append(w.head, marshal(tb, pq.SchemaElement{Name: "r", NumChildren: thrift.New(int32(columns))})...)
	group := pq.RowGroup{NumRows: 3, TotalByteSize: 1 << 60}
	var chunks []pq.ColumnChunk
	for i := range columns {
		name := fmt.Sprintf("column_%05d", i)
		w.head = append(w.head, marshal(tb, pq.SchemaElement{Name: name, Type: thrift.New(pq.Int64)})...)
		chunks = append(chunks, pq.ColumnChunk{MetaData: pq.ColumnMetaData{
			Type: pq.Int64, PathInSchema: sliceOf(name), Codec: pq.Zstd, NumValues: 3, DataPageOffset: 4,
			Encoding:   sliceOf(pq.Plain, pq.RLE),
			Statistics: pq.Statistics{MinValue: binary.LittleEndian.AppendUint64(nil, uint64(i)), MaxValue: []byte("\xff\xff\xff\xff\xff\xff\xff\x7f")},
		}})
	}
	group.Columns = sliceOf(chunks...)
	w.group = marshal(tb, group)
	w.head = append(binary.AppendUvarint(append(w.head, 0x16), uint64(groups)*3*2), 0x19)
	w.head = append(w.head, thriftStructs(groups)...)
	w.tail = append(w.tail, 0)
	length := w.size() - 4
	w.tail = append(binary.LittleEndian.AppendUint32(w.tail, uint32(length)), "PAR1"...)
	return w
}

// counter is a writer that counts.
type counter struct{ bytes, writes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	c.writes++
	return len(p), nil
}

// TestFooterWide: memory does not grow with the row groups, of which those here are some
// 40 MiB, and their text three times that.
func TestFooterWide(t *testing.T) {
	file := wideFile(t, 10_000, 40)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := &counter{}
	if err := Footer(t.Context(), c, file, file.size(), Spec{Name: "wide"}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MiB allocated for a footer of %d MiB", took>>20, file.size()>>20)
	}
	if c.bytes < file.size() || c.writes < 100 {
		t.Errorf("%d bytes in %d writes, of a footer of %d", c.bytes, c.writes, file.size())
	}
}

// TestFooterIsExact: numbers of 64 bits keep all their digits.
func TestFooterIsExact(t *testing.T) {
	file := wideFile(t, 2, 2)
	var b bytes.Buffer
	if err := Footer(t.Context(), &b, file, file.size(), Spec{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Count(text, `"total_byte_size": 1152921504606846976`) != 2 || strings.Count(text, `"min_value": 1, "max_value": 9223372036854775807`) != 2 || !json.Valid(b.Bytes()) {
		t.Errorf("%s", text)
	}
}

// TestFooterOddities: what no writer should write is shown as JSON all the same.
func TestFooterOddities(t *testing.T) {
	column := func(e pq.SchemaElement, lowest, highest []byte) string {
		e.Name = "c"
		meta := pq.FileMetaData{
			Version: 1, CreatedBy: "a \xff\"\n\u2028",
			Schema: sliceOf(pq.SchemaElement{Name: "r", NumChildren: thrift.New(int32(1))}, e),
			RowGroups: sliceOf(pq.RowGroup{Columns: sliceOf(pq.ColumnChunk{MetaData: pq.ColumnMetaData{
				Codec: 99, Encoding: sliceOf(pq.Encoding(-1)), PathInSchema: sliceOf("c"), Statistics: pq.Statistics{Min: lowest, Max: highest},
			}})}),
			KeyValueMetadata: sliceOf(pq.KeyValue{Key: "long", Value: strings.Repeat("é", footerText)}, pq.KeyValue{Key: "k"}, pq.KeyValue{Key: "k", Value: "\x00"}),
		}
		footer := marshal(t, meta)
		data := "PAR1" + string(footer) + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
		text, err := footerOf(t, []byte(data), Spec{Columns: []Column{{Name: "C", Type: "string"}}})
		if err != nil || !json.Valid([]byte(text)) {
			t.Fatalf("%v: %.3000s", err, text)
		}
		if !strings.Contains(text, `"codec": 99, "encodings": [-1]`) || !strings.Contains(text, `"a `+"\ufffd"+`\"\n`) || !strings.Contains(text, `"value_length": 2097152`) {
			t.Errorf("%.1000s", text)
		}
		_, text, _ = strings.Cut(text, `"statistics": `)
		text, _, _ = strings.Cut(text, "}")
		return text
	}
	for _, tt := range []struct {
		e        pq.SchemaElement
		min, max string
		want     string
	}{
		{pq.SchemaElement{Type: thrift.New(pq.Int32)}, "\x01", "\x01\x00\x00\x00", `"min": "AQ==", "max": 1`},
		{pq.SchemaElement{Type: thrift.New(pq.ByteArray)}, "a\xff", "b", `"min": "a` + "\ufffd" + `", "max": "b"`}, // the table says that it is text
		{pq.SchemaElement{Type: thrift.New(pq.Type(77))}, "a", "b", `"min": "YQ==", "max": "Yg=="`},
		{pq.SchemaElement{Type: thrift.New(pq.FixedLenByteArray), LogicalType: pq.LogicalType{Value: &pq.NullType{}}}, "a", "b", `"min": "YQ==", "max": "Yg=="`},
		{pq.SchemaElement{Type: thrift.New(pq.Int64), LogicalType: pq.LogicalType{Value: &pq.StringType{}}}, "12345678", "", `"min": "MTIzNDU2Nzg="`},
		{pq.SchemaElement{Type: thrift.New(pq.Double)}, "\x00\x00\x00\x00\x00\x00\xf8\x7f", "\x00\x00\x00\x00\x00\x00\xf0\x7f", `"min": "NaN", "max": "Infinity"`},
		{pq.SchemaElement{Type: thrift.New(pq.Int96)}, "\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x3d\x25\x00", "\x01\x00\x00\x00\x00\x00\x00\x00\x8d\x3d\x25\x00", `"min": "1970-01-01T00:00:00.000000000", "max": "1970-01-02T00:00:00.000000001"`},
		{pq.SchemaElement{Type: thrift.New(pq.FixedLenByteArray), TypeLength: thrift.New(int32(16)), LogicalType: pq.LogicalType{Value: &pq.UUIDType{}}}, "0123456789abcdef", "x", `"min": "30313233-3435-3637-3839-616263646566", "max": "eA=="`},
	} {
		if got := column(tt.e, []byte(tt.min), []byte(tt.max)); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.e.Type, got, tt.want)
		}
	}
}

// TestFooterIsATree: a schema that is none is an error.
func TestFooterIsATree(t *testing.T) {
	group := func(children int32) pq.SchemaElement {
		return pq.SchemaElement{Name: "g", NumChildren: thrift.New(children)}
	}
	leaf := pq.SchemaElement{Name: "c", Type: thrift.New(pq.Int32)}
	deep := []pq.SchemaElement{}
	for range 100_000 {
		deep = append(deep, group(1))
	}
	for name, schema := range map[string][]pq.SchemaElement{
		"too few": {group(2), leaf}, "too many": {group(1), leaf, leaf}, "none": {}, "very many": {group(1 << 30), leaf}, "deep": deep, "negative": {group(-1), leaf},
	} {
		footer := marshal(t, pq.FileMetaData{Schema: sliceOf(schema...)})
		data := "PAR1" + string(footer) + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
		if _, err := footerOf(t, []byte(data), Spec{}); err == nil || !strings.Contains(err.Error(), "schema") || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failsAfter fails, as a writer or a file.
type failsAfter struct{ writes int }

var errFailsAfter = errors.New("fails")

func (f *failsAfter) Write(p []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		return 0, errFailsAfter
	}
	return len(p), nil
}

func (f *failsAfter) ReadAt([]byte, int64) (int, error) { return 0, errFailsAfter }

// TestFooterEnds: at a writer's error, a file's, and the context's.
func TestFooterEnds(t *testing.T) {
	file := wideFile(t, 1000, 3)
	if err := Footer(t.Context(), &failsAfter{writes: 2}, file, file.size(), Spec{}); !errors.Is(err, errFailsAfter) {
		t.Errorf("a writer that fails: %v", err)
	}
	if err := Footer(t.Context(), io.Discard, &failsAfter{}, 1000, Spec{}); !errors.Is(err, errFailsAfter) {
		t.Errorf("a file that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Footer(ctx, io.Discard, file, file.size(), Spec{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func sliceOf[T any](v ...T) thrift.Slice[T] { return v }
