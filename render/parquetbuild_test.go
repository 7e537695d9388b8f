package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pq "github.com/parquet-go/parquet-go/format"
)

// elementOf is an element of a schema: a group of children, or a leaf.
func elementOf(name string, rep pq.FieldRepetitionType, children int, leaf pq.Type, converted ...deprecated.ConvertedType) pq.SchemaElement {
	e := pq.SchemaElement{Name: name, RepetitionType: thrift.New(rep)}
	if children > 0 {
		e.NumChildren = thrift.New(int32(children))
	} else {
		e.Type = thrift.New(leaf)
	}
	if len(converted) > 0 {
		e.ConvertedType = thrift.New(converted[0])
	}
	return e
}

// testChunk is the one chunk of a column: its pages, and what the footer says of it.
type testChunk struct {
	physical pq.Type
	values   int64
	codec    pq.CompressionCodec
	pages    []testPage
}

type testPage struct {
	header pq.PageHeader
	body   []byte
}

// v1 is a page of values in PLAIN unless header's are others. Sizes that are 0 become
// the body's.
func v1(count int, body []byte) testPage {
	return testPage{pq.PageHeader{Type: pq.DataPage, DataPageHeader: thrift.New(pq.DataPageHeader{
		NumValues: int32(count), DefinitionLevelEncoding: pq.RLE, RepetitionLevelEncoding: pq.RLE,
	})}, body}
}

func (p testPage) encoded(e pq.Encoding) testPage {
	p.header.DataPageHeader.V.Encoding = e
	return p
}

// dictionaryPage is a dictionary of count values.
func dictionaryPage(count int, body []byte) testPage {
	return testPage{pq.PageHeader{Type: pq.DictionaryPage, DictionaryPageHeader: thrift.New(pq.DictionaryPageHeader{NumValues: int32(count)})}, body}
}

// parquetOf is a file of one row group.
func parquetOf(tb testing.TB, rows int64, schema []pq.SchemaElement, chunks ...testChunk) []byte {
	tb.Helper()
	var compact thrift.CompactProtocol
	out := []byte("PAR1")
	group := pq.RowGroup{NumRows: rows}
	for _, c := range chunks {
		m := pq.ColumnMetaData{Type: c.physical, NumValues: c.values, Codec: c.codec, DataPageOffset: int64(len(out)), Encoding: []pq.Encoding{pq.Plain}, PathInSchema: []string{"x"}}
		start := len(out)
		for _, p := range c.pages {
			if p.header.CompressedPageSize == 0 {
				p.header.CompressedPageSize = int32(len(p.body))
			}
			if p.header.UncompressedPageSize == 0 {
				p.header.UncompressedPageSize = int32(len(p.body))
			}
			header, err := thrift.Marshal(&compact, &p.header)
			if err != nil {
				tb.Fatal(err)
			}
			out = append(append(out, header...), p.body...)
			if p.header.Type == pq.DictionaryPage {
				m.DictionaryPageOffset, m.DataPageOffset = m.DataPageOffset, int64(len(out))
			}
		}
		m.TotalCompressedSize = int64(len(out) - start)
		group.Columns = append(group.Columns, pq.ColumnChunk{MetaData: m})
	}
	top, left := 0, 0
	for _, e := range schema {
		if left == 0 {
			top++
			left = 1
		}
		left += int(e.NumChildren.V) - 1
	}
	root := pq.SchemaElement{Name: "root", NumChildren: thrift.New(int32(top))}
	meta := pq.FileMetaData{Version: 1, Schema: append([]pq.SchemaElement{root}, schema...), NumRows: rows, RowGroups: []pq.RowGroup{group}}
	footer, err := thrift.Marshal(&compact, &meta)
	if err != nil {
		tb.Fatal(err)
	}
	out = binary.LittleEndian.AppendUint32(append(out, footer...), uint32(len(footer)))
	return append(out, "PAR1"...)
}

// rendered are a file's rows, and how they ended.
func rendered(file []byte, s Spec) (string, error) {
	var out bytes.Buffer
	s.Name = "f"
	if s.Output == "" {
		s.Output = OutputJSONL
	}
	err := Rows(context.Background(), &out, bytes.NewReader(file), int64(len(file)), s)
	return out.String(), err
}

func wantRows(t *testing.T, name string, file []byte, s Spec, want string) {
	t.Helper()
	got, err := rendered(file, s)
	if err != nil || got != want {
		t.Errorf("%s: got %v\n%s\nwant\n%s", name, err, got, want)
	}
}

// wantError is an *Error that names the file and says want.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.File != "f" || !bytes.Contains([]byte(e.Error()), []byte(want)) {
		t.Errorf("%s: got %v, want an Error that says %q", name, err, want)
	}
}

// int32s are as PLAIN has them, strings too.
func int32s(values ...int32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func plainStrings(values ...string) (b []byte) {
	for _, v := range values {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// levelsOf are levels of up to 8 bits, each a run of its own, after their length.
func levelsOf(values ...byte) []byte {
	var b []byte
	for _, v := range values {
		b = append(b, 2, v)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
