package renderfiles

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	largeGroups  = 8
	largeColumns = 8
	largePages   = 16      // in a column chunk
	largeRows    = 1 << 17 // in a page, which is of 1 MiB
)

// Large is a Parquet file of 1 GiB as what is at which offset of it: between there are
// zeros. In column c of its first pages the value of row i is i times c, else 0.
func Large(tb testing.TB) (pieces map[int64]string, size int64) {
	tb.Helper()
	pieces = map[int64]string{0: "PAR1"}
	meta := format.FileMetaData{Version: 1, NumRows: largeGroups * largePages * largeRows, CreatedBy: "large", Schema: []format.SchemaElement{root(largeColumns)}}
	for c := range largeColumns {
		meta.Schema = append(meta.Schema, leaf(fmt.Sprint("c", c), format.Int64, required))
	}
	at := int64(4)
	for range largeGroups {
		g := format.RowGroup{NumRows: largePages * largeRows}
		for c := range largeColumns {
			begin := at
			for p := range largePages {
				body := make([]byte, 8*largeRows)
				if p == 0 {
					for i := range largeRows {
						binary.LittleEndian.PutUint64(body[8*i:], uint64(i*c)) //nolint:gosec // small
					}
				}
				of := dataPage(largeRows, format.Plain, body)
				raw, err := thrift.Marshal(&thrift.CompactProtocol{}, &of.header)
				must(tb, err)
				pieces[at] = string(raw)
				if p == 0 {
					pieces[at] += string(body)
				}
				at += int64(len(raw) + len(body))
			}
			g.Columns = append(g.Columns, format.ColumnChunk{FileOffset: begin, MetaData: format.ColumnMetaData{
				Type: format.Int64, Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{fmt.Sprint("c", c)},
				NumValues: g.NumRows, TotalUncompressedSize: at - begin, TotalCompressedSize: at - begin, DataPageOffset: begin,
			}})
			g.TotalByteSize += at - begin
		}
		meta.RowGroups = append(meta.RowGroups, g)
	}
	footer := WithFooter(tb, nil, &meta)
	pieces[at] = string(footer)
	return pieces, at + int64(len(footer))
}
