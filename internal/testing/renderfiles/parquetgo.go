package renderfiles

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
)

// flatRow has what parquet-go writes and neither pyarrow nor DuckDB does: ENUM, JSON of
// bytes, times as Go has them, decimals in each physical form.
type flatRow struct {
	ID       int64         `parquet:"id,delta"`
	Bool     bool          `parquet:"bool"`
	Int8     int8          `parquet:"int8"`
	Uint64   uint64        `parquet:"uint64"`
	Float    float32       `parquet:"float,split"`
	Double   *float64      `parquet:"double,optional,split"`
	Text     string        `parquet:"text,dict"`
	Delta    string        `parquet:"delta,delta"`
	Maybe    *string       `parquet:"maybe,optional,dict"`
	Bytes    []byte        `parquet:"bytes"`
	UUID     [16]byte      `parquet:"uuid,uuid"`
	Enum     string        `parquet:"enum,enum"`
	JSON     string        `parquet:"json,json"`
	Day      int32         `parquet:"day,date"`
	Millis   int32         `parquet:"millis,time(millisecond)"`
	Micros   int64         `parquet:"micros,time(microsecond)"`
	Nanos    int64         `parquet:"nanos,time(nanosecond)"`
	UTC      int64         `parquet:"utc,timestamp(millisecond:utc)"`
	Local    int64         `parquet:"local,timestamp(microsecond:local)"`
	LocalNS  int64         `parquet:"local_ns,timestamp(nanosecond:local)"`
	Time     time.Time     `parquet:"time,timestamp(nanosecond)"`
	Duration time.Duration `parquet:"duration,time(nanosecond)"`
	Dec32    int32         `parquet:"dec32,decimal(2:9)"`
	Dec64    int64         `parquet:"dec64,decimal(0:18)"`
	DecFixed [9]byte       `parquet:"dec_fixed,decimal(5:20)"`
	DecDict  int64         `parquet:"dec_dict,decimal(3:10),dict,optional"`
}

type nestedRow struct {
	ID     int32               `parquet:"id"`
	List   []string            `parquet:"list_of_text,list"`
	Plain  []int64             `parquet:"plain"` // repeated, without LIST
	Map    map[string]int32    `parquet:"map"`
	Record *record             `parquet:"record,optional"`
	Many   []record            `parquet:"many,list"`
	Groups []record            `parquet:"groups"` // a repeated group, without LIST
	Lists  map[string][]record `parquet:"lists" parquet-value:",list"`
}

type record struct {
	A int64    `parquet:"a"`
	B *string  `parquet:"b,optional"`
	C []string `parquet:"c,list"`
}

// flatRows are some whose values are at the edges. Each is different.
func flatRows(n int) []flatRow {
	rows := make([]flatRow, n)
	for i := range rows {
		x := int64(i) - int64(n/2)
		r := &rows[i]
		*r = flatRow{
			ID: x, Bool: i%3 == 0, Int8: int8(x), Uint64: math.MaxUint64 - uint64(i), //nolint:gosec // by intention
			Float: float32(x) / 3, Text: fmt.Sprintf("text %d\x00\"", i%7), Delta: fmt.Sprintf("common %05d", i),
			Bytes: []byte{byte(i), 0xff, 0}, Enum: []string{"A", "B c", ""}[i%3], JSON: fmt.Sprintf(`{"a": [%d]}`, i),
			Day: int32(x * 1000), Millis: int32(i), Micros: int64(i) * 719999999, Nanos: 71999999999999 - int64(i), //nolint:gosec // small
			UTC: x * 1e11, Local: x * 1e14, LocalNS: math.MaxInt64/int64(n)*x + 1, Time: time.Unix(x*1e7, 7).UTC(),
			Duration: time.Duration(i) * time.Second, Dec32: int32(x), Dec64: x * 1e15, DecDict: x / 2, //nolint:gosec // small
		}
		r.DecFixed = [9]byte{byte(x >> 63), byte(i), 1, 2, 3, 4, 5, 6, 7}
		if x < 0 {
			r.DecFixed[1] = 0xff
		}
		binary.BigEndian.PutUint64(r.UUID[:], uint64(x)) //nolint:gosec // any bits
		if i%4 != 0 {
			d, s := math.Ldexp(1, int(x)), fmt.Sprint(i)
			r.Double, r.Maybe = &d, &s
		}
	}
	return rows
}

func nestedRows(n int) []nestedRow {
	rows := make([]nestedRow, n)
	for i := range rows {
		b := fmt.Sprint("b", i)
		some := func(k int) []record {
			all := make([]record, k)
			for j := range all {
				all[j] = record{A: int64(i * j), C: []string{"x", ""}[:j%3]}
				if j%2 == 0 {
					all[j].B = &b
				}
			}
			return all
		}
		r := &rows[i]
		r.ID = int32(i) //nolint:gosec // small
		for j := range i % 4 {
			r.List, r.Plain = append(r.List, fmt.Sprint(i, j)), append(r.Plain, int64(j)<<60)
		}
		r.Map = map[string]int32{"only": r.ID}
		r.Many, r.Groups = some(i%3), some((i+1)%3)
		r.Lists = map[string][]record{"k": some(i % 4)}
		if i%3 == 0 {
			r.Record = &record{A: -1, B: &b, C: []string{}}
		}
	}
	return rows
}

// byParquetGo writes files by parquet-go.
func byParquetGo(tb testing.TB, dir string, expect map[string]about) {
	tb.Helper()
	codecs := map[string]compress.Codec{
		"uncompressed": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip,
		"brotli": &parquet.Brotli, "zstd": &parquet.Zstd, "lz4_raw": &parquet.Lz4Raw,
	}
	for name, codec := range codecs {
		for version := 1; version <= 2; version++ {
			options := []parquet.WriterOption{
				parquet.Compression(codec), parquet.DataPageVersion(version), parquet.PageBufferSize(300), parquet.MaxRowsPerRowGroup(50),
			}
			file := fmt.Sprintf("go-flat-%s-v%d.parquet", name, version)
			writeRows(tb, filepath.Join(dir, file), flatRows(120), options...)
			expect[file] = about{Flat: true}
			file = fmt.Sprintf("go-nested-%s-v%d.parquet", name, version)
			writeRows(tb, filepath.Join(dir, file), nestedRows(120), options...)
			expect[file] = about{}
		}
	}
	odd(tb, filepath.Join(dir, "go-odd.parquet"))
	expect["go-odd.parquet"] = about{Flat: true}
	bson(tb, filepath.Join(dir, "go-bson.parquet"))
	expect["go-bson.parquet"] = about{Flat: true, NotDuckDB: "it has no BSON"}
	int96(tb, filepath.Join(dir, "go-int96.parquet"))
	expect["go-int96.parquet"] = about{Flat: true, Int96: "us"}
}

func writeRows[T any](tb testing.TB, path string, rows []T, options ...parquet.WriterOption) {
	tb.Helper()
	f, err := os.Create(path)
	must(tb, err)
	w := parquet.NewGenericWriter[T](f, options...)
	_, err = w.Write(rows)
	must(tb, err)
	must(tb, w.Close())
	must(tb, f.Close())
}

// odd are logical types over physical ones that no Go type stands for.
func odd(tb testing.TB, path string) {
	tb.Helper()
	schema := parquet.NewSchema("odd", parquet.Group{
		"dec_bytes": parquet.Encoded(parquet.Optional(parquet.Decimal(4, 30, parquet.ByteArrayType)), &parquet.Plain),
		"enum":      parquet.Encoded(parquet.Optional(parquet.Enum()), &parquet.RLEDictionary),
		"interval":  parquet.Optional(parquet.IntervalNode()),
		"json":      parquet.Optional(parquet.JSON()),
	})
	f, err := os.Create(path)
	must(tb, err)
	w := parquet.NewWriter(f, schema)
	decimals := []string{"\x00", "\x7f", "\x80", "\xff\xff", "\x00\x80", "\x7f" + "abcdefghijk", "\x80" + "abcdefghijk"}
	for i, d := range decimals {
		interval := []byte{byte(i), 0, 0, 0, byte(2 * i), 0, 0, 0, byte(250 * i), byte(i), 0, 0}
		row := parquet.Row{
			parquet.ByteArrayValue([]byte(d)).Level(0, 1, 0),
			parquet.ByteArrayValue([]byte(fmt.Sprint("e", i%2))).Level(0, 1, 1),
			parquet.FixedLenByteArrayValue(interval).Level(0, 1, 2),
			parquet.ByteArrayValue(fmt.Appendf(nil, `{"n": %d}`, i)).Level(0, 1, 3),
		}
		if i == 3 {
			for c := range row {
				row[c] = parquet.NullValue().Level(0, 0, c)
			}
		}
		_, err := w.WriteRows([]parquet.Row{row})
		must(tb, err)
	}
	must(tb, w.Close())
	must(tb, f.Close())
}

func bson(tb testing.TB, path string) {
	tb.Helper()
	f, err := os.Create(path)
	must(tb, err)
	w := parquet.NewWriter(f, parquet.NewSchema("bson", parquet.Group{"bson": parquet.BSON()}))
	for i := range 9 {
		_, err := w.WriteRows([]parquet.Row{{parquet.ByteArrayValue([]byte{byte(i), 0, 0xfe}).Level(0, 0, 0)}})
		must(tb, err)
	}
	must(tb, w.Close())
	must(tb, f.Close())
}

// int96 are instants that no count of nanoseconds since 1970 has room for.
func int96(tb testing.TB, path string) {
	tb.Helper()
	type row struct {
		T deprecated.Int96 `parquet:"t"`
		D deprecated.Int96 `parquet:"d,dict"`
	}
	var rows []row
	const epoch = 2440588 // the Julian day of 1970-01-01
	for _, day := range []uint32{epoch, epoch + 2932896, epoch - 719162, epoch - 1, epoch + 20484} {
		for _, ns := range []uint64{0, 71999999999000, 1000} {
			v := deprecated.Int96{uint32(ns), uint32(ns >> 32), day} //nolint:gosec // its halves
			rows = append(rows, row{T: v, D: v})
		}
	}
	writeRows(tb, path, rows)
}
