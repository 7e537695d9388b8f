package renderfiles

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// page is a page as it is in a file. Its header says what it says.
type page struct {
	header format.PageHeader
	body   []byte
}

// dataPage is a page of the first kind, whose header is honest about its body if that
// is not compressed.
func dataPage(values int32, encoding format.Encoding, body []byte) page {
	n := int32(len(body)) //nolint:gosec // small
	return page{format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: n, CompressedPageSize: n,
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: values, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		}),
	}, body}
}

func dictionaryPage(values int32, body []byte) page {
	n := int32(len(body)) //nolint:gosec // small
	return page{format.PageHeader{
		Type: format.DictionaryPage, UncompressedPageSize: n, CompressedPageSize: n,
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: values, Encoding: format.Plain}),
	}, body}
}

// expands says that the page's body is compressed, of n bytes when it is not.
func (p page) expands(n int32) page {
	p.header.UncompressedPageSize = n
	return p
}

// single is a file of one column chunk in one row group.
type single struct {
	schema []format.SchemaElement // below the root
	codec  format.CompressionCodec
	rows   int64
	values int64 // 0: rows
	pages  []page
}

func leaf(name string, t format.Type, r format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(t), RepetitionType: thrift.New(r)}
}

func group(name string, children int32, r format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: name, NumChildren: thrift.New(children), RepetitionType: thrift.New(r)}
}

func root(children int32) format.SchemaElement {
	return format.SchemaElement{Name: "schema", NumChildren: thrift.New(children)}
}

// file is the file. Its footer is honest about where things are.
func (s single) file(tb testing.TB) []byte {
	tb.Helper()
	out := bytes.NewBufferString("PAR1")
	meta := format.ColumnMetaData{Codec: s.codec, NumValues: s.values, DataPageOffset: 4}
	if meta.NumValues == 0 {
		meta.NumValues = s.rows
	}
	for _, e := range s.schema {
		meta.PathInSchema = append(meta.PathInSchema, e.Name)
		if e.Type.Valid {
			meta.Type = e.Type.V
		}
	}
	for _, p := range s.pages {
		if p.header.Type == format.DictionaryPage {
			meta.DictionaryPageOffset = int64(out.Len())
		}
		raw, err := thrift.Marshal(&thrift.CompactProtocol{}, &p.header)
		must(tb, err)
		out.Write(raw)
		out.Write(p.body)
		if p.header.Type == format.DictionaryPage {
			meta.DataPageOffset = int64(out.Len())
		}
		if h := p.header.DataPageHeader; h.Valid {
			meta.Encoding = append(meta.Encoding, h.V.Encoding)
		}
		meta.TotalUncompressedSize += int64(len(raw)) + int64(p.header.UncompressedPageSize)
	}
	meta.TotalCompressedSize = int64(out.Len() - 4)
	return WithFooter(tb, out.Bytes(), &format.FileMetaData{
		Version: 1, NumRows: s.rows, CreatedBy: "bombs",
		Schema: append([]format.SchemaElement{root(1)}, s.schema...),
		RowGroups: []format.RowGroup{{
			NumRows: s.rows, TotalByteSize: meta.TotalUncompressedSize, Columns: []format.ColumnChunk{{FileOffset: 4, MetaData: meta}},
		}},
	})
}

// runs are n times the same in the hybrid of runs and bit packing, of values of a byte
// at most.
func runs(n uint64, value byte) []byte { return append(varint(n<<1), value) }

func varint(n uint64) []byte {
	var out []byte
	for n > 127 {
		out, n = append(out, byte(n)|0x80), n>>7
	}
	return append(out, byte(n))
}

func zigzag(n int64) []byte { return varint(uint64(n<<1) ^ uint64(n>>63)) } //nolint:gosec // any bits
