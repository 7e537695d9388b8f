package renderfiles

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// Bomb is a small file that a reader could take much for: memory, time, its stack.
type Bomb struct {
	Name string
	Data []byte
	// Whole: what the file says is so, and all its rows can be had in bounded memory.
	// Else no more than its first rows are, and an error ends them.
	Whole bool
}

const (
	gib      = 1 << 30
	required = format.Required
	repeated = format.Repeated
)

// Bombs are files of a few MiB at most. Each is as honest as can be but for one thing.
func Bombs(tb testing.TB) []Bomb {
	tb.Helper()
	all := append(codecBombs(tb), encodingBombs(tb)...)
	all = append(append(all, footerBombs(tb)...), avroBombs(tb)...)
	return append(all, avroSchemaBombs(tb)...)
}

// zeros is n bytes of nothing, compressed.
func zeros(tb testing.TB, n int64, into func(io.Writer) io.WriteCloser) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := into(&out)
	block := make([]byte, 1<<20)
	for ; n > 0; n -= int64(len(block)) {
		_, err := w.Write(block[:min(int64(len(block)), n)])
		must(tb, err)
	}
	must(tb, w.Close())
	return out.Bytes()
}

func byZstd(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err) // of its options alone
	}
	return z
}

func byGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func codecBombs(tb testing.TB) (all []Bomb) {
	tb.Helper()
	number := []format.SchemaElement{leaf("n", format.Int64, required)}
	add := func(name string, codec format.CompressionCodec, body []byte, says int64, values int32) {
		p := dataPage(values, format.Plain, body).expands(int32(says)) //nolint:gosec // by intention
		all = append(all, Bomb{Name: name + ".parquet", Data: single{schema: number, codec: codec, rows: int64(values), pages: []page{p}}.file(tb)})
	}
	const mib = 1 << 20
	large := dataPage(100*mib/8, format.Plain, zeros(tb, 100*mib, byZstd)).expands(100 * mib)
	all = append(all, Bomb{Name: "zstd-100-mib.parquet", Whole: true, Data: single{schema: number, codec: format.Zstd, rows: 100 * mib / 8, pages: []page{large}}.file(tb)})
	z, g := zeros(tb, gib, byZstd), zeros(tb, gib/4, byGzip)
	add("zstd-gib", format.Zstd, z, gib, gib/8)
	add("zstd-lies", format.Zstd, z, 800, 100)
	add("zstd-negative", format.Zstd, z, -1, 100)
	add("gzip-quarter-gib", format.Gzip, g, gib/4, gib/32)
	add("gzip-lies", format.Gzip, g, 800, 100)
	add("snappy-claims", format.Snappy, append(varint(math.MaxUint32), 0), math.MaxInt32, 100)
	add("snappy-claims-alone", format.Snappy, append(varint(math.MaxUint32), 0), 800, 100)
	add("lz4-claims", format.Lz4Raw, []byte{0x1f, 0, 1, 0, 255, 255, 255, 0}, math.MaxInt32, 100)
	add("brotli-claims", format.Brotli, []byte{0x0b, 0x80, 0}, math.MaxInt32, 100)
	add("plain-claims", format.Uncompressed, make([]byte, 16), math.MaxInt32, math.MaxInt32)
	add("codec-99", 99, make([]byte, 16), 16, 2)
	add("codec-lzo", format.LZO, make([]byte, 16), 16, 2)
	return all
}

func encodingBombs(tb testing.TB) (all []Bomb) {
	tb.Helper()
	add := func(name string, whole bool, s single) {
		all = append(all, Bomb{Name: name + ".parquet", Data: s.file(tb), Whole: whole})
	}
	text := []format.SchemaElement{leaf("s", format.ByteArray, required)}
	number := []format.SchemaElement{leaf("n", format.Int64, required)}
	most := int32(math.MaxInt32)
	long := append(binary.LittleEndian.AppendUint32(nil, 1<<20), make([]byte, 1<<20)...)
	add("runs", true, single{schema: number, rows: int64(most), pages: []page{
		dictionaryPage(1, make([]byte, 8)), dataPage(most, format.RLEDictionary, append([]byte{1}, runs(uint64(most), 0)...)),
	}})
	add("runs-of-long-text", true, single{schema: text, rows: int64(most), pages: []page{
		dictionaryPage(1, long), dataPage(most, format.RLEDictionary, append([]byte{0}, runs(uint64(most), 0)...)),
	}})
	add("runs-claim", false, single{schema: number, rows: 10, pages: []page{
		dictionaryPage(1, make([]byte, 8)), dataPage(10, format.RLEDictionary, append([]byte{1}, runs(1<<62, 7)...)),
	}})
	add("dictionary-claims", false, single{schema: number, rows: 10, pages: []page{
		dictionaryPage(most, make([]byte, 8)), dataPage(10, format.RLEDictionary, append([]byte{31}, runs(10, 1)...)),
	}})
	add("width-255", false, single{schema: number, rows: 10, pages: []page{
		dictionaryPage(1, make([]byte, 8)), dataPage(10, format.RLEDictionary, append([]byte{255}, runs(10, 1)...)),
	}})
	add("length-claims", false, single{schema: text, rows: 1, pages: []page{dataPage(1, format.Plain, []byte{0xff, 0xff, 0xff, 0x7f, 0})}})
	add("encoding-77", false, single{schema: number, rows: 1, pages: []page{dataPage(1, 77, make([]byte, 8))}})
	// A list of 2^31 numbers in one row.
	list := []format.SchemaElement{leaf("l", format.Int64, repeated)}
	levels := func(first []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(first))), first...)
	} //nolint:gosec // small
	body := levels(append(runs(1, 0), runs(uint64(most)-1, 1)...))
	body = append(append(body, levels(runs(uint64(most), 1))...), 1)
	add("one-list", false, single{schema: list, rows: 1, values: int64(most), pages: []page{
		dictionaryPage(1, make([]byte, 8)), dataPage(most, format.RLEDictionary, append(body, runs(uint64(most), 0)...)),
	}})
	// The differences of 2^31 numbers are 0 bits wide; each text is one byte longer than the last.
	delta := append(append(append(varint(128), varint(4)...), varint(uint64(most))...), zigzag(7)...)
	block := append(zigzag(0), 0, 0, 0, 0)
	for range 1 << 14 {
		delta = append(delta, block...)
	}
	add("delta-claims", false, single{schema: number, rows: int64(most), pages: []page{dataPage(most, format.DeltaBinaryPacked, delta)}})
	n := int32(1 << 20)
	add("prefixes", false, single{schema: text, rows: int64(n), pages: []page{dataPage(n, format.DeltaByteArray, prefixes(int(n)))}})
	delta = append(append(append(varint(1<<30), varint(1)...), varint(1<<30)...), zigzag(7)...)
	add("delta-block", false, single{schema: number, rows: 1 << 30, pages: []page{dataPage(1<<30, format.DeltaBinaryPacked, append(delta, 0, 64, 0))}})
	return all
}

// prefixes are n texts in the encoding that shares prefixes: each has the whole of the
// one before it, and one byte more.
func prefixes(n int) []byte {
	counts := func(first, step int64) []byte { // n numbers that rise by step
		out := append(append(append(varint(128), varint(4)...), varint(uint64(n))...), zigzag(first)...) //nolint:gosec // small
		for at := 1; at < n; at += 128 {
			out = append(append(out, zigzag(step)...), 0, 0, 0, 0)
		}
		return out
	}
	out := append(counts(0, 1), counts(1, 0)...)
	return append(out, bytes.Repeat([]byte("x"), n)...)
}

func footerBombs(tb testing.TB) (all []Bomb) {
	tb.Helper()
	add := func(name string, data []byte) { all = append(all, Bomb{Name: name + ".parquet", Data: data}) }
	end := func(body []byte, n uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(append([]byte("PAR1"), body...), n), "PAR1"...)
	}
	add("footer-of-4-gib", end(nil, math.MaxUint32))
	add("footer-too-long", end(make([]byte, 100), 1000))
	add("footer-of-nothing", end(nil, 0))
	add("footer-of-zeros", end(make([]byte, 100), 100))
	add("list-claims", end([]byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07}, 9))
	add("name-claims", end([]byte{0x15, 2, 0x19, 0x1c, 0x48, 0xff, 0xff, 0xff, 0xff, 0x07}, 10))
	deep := []byte{0x15, 2}
	for range 200_000 { // unknown fields of unknown structures
		deep = append(deep, 0xfc)
	}
	add("footer-deep", end(deep, uint32(len(deep)))) //nolint:gosec // small
	lists := []byte{0x15, 2, 0xf9}
	for range 200_000 {
		lists = append(lists, 0x19)
	}
	add("footer-deep-lists", end(lists, uint32(len(lists)))) //nolint:gosec // small
	number := single{schema: []format.SchemaElement{leaf("n", format.Int64, required)}, rows: 2, pages: []page{dataPage(2, format.Plain, make([]byte, 16))}}.file(tb)
	change := func(name string, f func(*format.FileMetaData)) { add(name, Refooted(tb, number, f)) }
	change("children-claimed", func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = math.MaxInt32 })
	change("children-negative", func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = -1 })
	change("no-schema", func(m *format.FileMetaData) { m.Schema = nil })
	change("schema-deep", func(m *format.FileMetaData) {
		schema := []format.SchemaElement{root(1)}
		for range 50_000 {
			schema = append(schema, group("g", 1, format.Optional))
		}
		m.Schema = append(schema, m.Schema[1])
	})
	change("levels-deep", func(m *format.FileMetaData) {
		schema := []format.SchemaElement{root(1)}
		for range 300 {
			schema = append(schema, group("g", 1, repeated))
		}
		m.Schema = append(schema, m.Schema[1])
	})
	change("rows-claimed", func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = math.MaxInt64, math.MaxInt64 })
	change("rows-negative", func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -5, -5 })
	change("values-claimed", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.NumValues = math.MaxInt64 })
	change("chunk-outside", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = math.MaxInt64 - 3 })
	change("chunk-negative", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = math.MinInt64 })
	change("chunk-of-8-eib", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = math.MaxInt64 })
	change("no-columns", func(m *format.FileMetaData) { m.RowGroups[0].Columns = nil })
	change("elsewhere", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].FilePath = "/etc/passwd" })
	change("other-type", func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Type = format.ByteArray })
	change("type-99", func(m *format.FileMetaData) { m.Schema[1].Type.V, m.RowGroups[0].Columns[0].MetaData.Type = 99, 99 })
	return all
}
