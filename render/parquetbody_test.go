package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	pq "github.com/parquet-go/parquet-go/format"
)

// bitByBit are the rows of a file whose pages are decoded as they are shown.
func bitByBit(t *testing.T, file []byte) (string, error) {
	t.Helper()
	in, err := openParquet(t.Context(), bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	in.(*parquetFile).page = 1
	s := Spec{Name: "f", Output: OutputJSONL}
	outputs, err := conform(s, in.fields())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = show(t.Context(), &out, in, outputs, s)
	return out.String(), err
}

func TestPagesBitByBit(t *testing.T) {
	type row struct {
		N     int64   `parquet:"n"`
		Maybe *string `parquet:"maybe,optional"`
		Flag  bool    `parquet:"flag"`
		Long  string  `parquet:"long"`
		List  []int32 `parquet:"list,list"`
		Far   string  `parquet:"far"`
	}
	far := make([]string, 40) // that come again only after more than what is held
	for i := range far {
		far[i] = strings.Repeat(fmt.Sprintf("%x ", i*7919), 2000)
	}
	rows := make([]row, 1200)
	for i := range rows {
		text := fmt.Sprint("text ", i%100)
		rows[i] = row{N: int64(i) * 1e9, Flag: i%3 == 0, List: make([]int32, i%3), Far: far[i%len(far)]}
		if i%5 > 0 {
			rows[i].Maybe = &text
		}
		if i%100 == 0 {
			rows[i].Long = strings.Repeat(text, 40_000) // more than a window
		}
	}
	whole, err := rendered(written(t, rows), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []pq.CompressionCodec{pq.Uncompressed, pq.Snappy, pq.Gzip, pq.Zstd, pq.Lz4Raw, pq.Brotli} {
		for version := 1; version <= 2; version++ {
			file := written(t, rows, parquet.Compression(parquet.LookupCompressionCodec(codec)), parquet.DataPageVersion(version), parquet.PageBufferSize(64<<20))
			if got, err := bitByBit(t, file); err != nil || got != whole {
				t.Errorf("%s, v%d: %v, %d bytes, want %d", codec, version, err, len(got), len(whole))
			}
			for _, at := range []int{len(file) / 3, len(file) / 2} { // damaged: rows or an Error
				broken := bytes.Clone(file)
				for i := range 40 {
					broken[at+i] ^= 0x55
				}
				_, err := bitByBit(t, broken)
				if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
					t.Errorf("%s, v%d, damaged at %d: %T %v", codec, version, at, err, err)
				}
			}
		}
	}
}
