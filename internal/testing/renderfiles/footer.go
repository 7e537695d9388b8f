package renderfiles

import (
	"encoding/binary"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Refooted is a Parquet file with a changed footer. Its pages are as they were.
func Refooted(tb testing.TB, file []byte, change func(*format.FileMetaData)) []byte {
	tb.Helper()
	end := len(file) - 8
	begin := end - int(binary.LittleEndian.Uint32(file[end:]))
	var meta format.FileMetaData
	must(tb, thrift.Unmarshal(&thrift.CompactProtocol{}, file[begin:end], &meta))
	change(&meta)
	return WithFooter(tb, file[:begin], &meta)
}

// WithFooter is pages with a footer behind them.
func WithFooter(tb testing.TB, pages []byte, meta *format.FileMetaData) []byte {
	tb.Helper()
	raw, err := thrift.Marshal(&thrift.CompactProtocol{}, meta)
	must(tb, err)
	out := append(append([]byte(nil), pages...), raw...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(raw))) //nolint:gosec // small
	return append(out, "PAR1"...)
}
