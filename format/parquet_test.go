package format

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// compact is a footer, field by field, in Thrift's compact protocol: a version, a
// schema of one element that says nothing, no rows, and row groups.
func compact(groups string) string { return "\x15\x02\x19\x1c\x00\x16\x00\x19" + groups + "\x00" }

// column is a row group of one column: n bytes at an offset, each below 64.
func column(n, at byte) string {
	return "\x1c\x19\x1c\x3c\x76" + string(n<<1) + "\x26" + string(at<<1) + "\x00\x00\x00"
}

func TestFormatParquet(t *testing.T) {
	file := func(magic, body, footer string) string {
		return magic + body + footer + le32(len(footer)) + magic
	}
	none := compact("\x0c")
	crypto := "\x1c\x1c\x00\x00\x00" // AES-GCM, and nothing else
	module := func(n int) string { return le32(n) + string(make([]byte, 28)) }
	flaws(t, "parquet", []struct{ name, data, want string }{
		{"no rows", file("PAR1", "", none), ""},
		{"one column", file("PAR1", "0123456789", compact(column(10, 4))), ""},
		{"more follows the footer, as a signature does", file("PAR1", "", none+string(make([]byte, 28))), ""},
		{"a column of no bytes anywhere", file("PAR1", "", compact(column(0, 0))), ""},
		{"data too long", file("PAR1", "0123456789", compact(column(11, 4))), "column 0 of row group 0 has 11 bytes at byte 4, but data is in bytes 4 to 14"},
		{"data in the magic", file("PAR1", "0123456789", compact(column(10, 3))), "10 bytes at byte 3"},
		{"data missing", file("PAR1", "", compact(column(10, 4))), "parts of which one is missing"},
		{"no schema", file("PAR1", "", "\x15\x02\x19\x0c\x16\x00\x19\x0c\x00"), "no schema"},
		{"no rows told", file("PAR1", "", "\x15\x02\x19\x1c\x00\x29\x0c\x00"), "no number of rows"},
		{"row groups of numbers", file("PAR1", "", compact("\x15\x02")), "a list of type 5"},
		{"no such type", file("PAR1", "", "\x1e\x00"), "type 14"},
		{"footer too short", file("PAR1", "", "x"), "the footer is not whole"},
		{"a number without an end", file("PAR1", "", "\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "more than 64 bits"},
		{"deep", file("PAR1", "", string(bytes.Repeat([]byte("\x1c"), 60))), "nested deeper than"},
		{"encrypted footer", file("PARE", "", crypto+module(28)), ""},
		{"encrypted footer, cut", file("PARE", "", crypto+module(29)), "an encrypted footer of 29 bytes where 28 are"},
		{"encrypted, nobody knows how", file("PARE", "", "\x00"+module(28)), "how it is encrypted"},
		{"ends differ", "PAR1" + none + le32(len(none)) + "PARE", "it ends in \"PARE\", not PAR1"},
		{"no room for the footer", "PAR1" + none + le32(len(none)+1) + "PAR1", "where at most"},
		{"length of 4 GiB", "PAR1" + none + "\xff\xff\xff\xffPAR1", "a footer of 4294967295 bytes"},
		{"no footer", "PAR1" + le32(0) + "PAR1", "a footer of 0 bytes"},
		{"magics overlap", "PAR1PAR1", "8 bytes, the shortest has 12"},
		{"text", "id,name\n1,a\n2,b\n", "byte 0: it begins with \"id,n\""},
		{"orc", "ORC of some length", "it begins as a file of format orc"},
		{"hole at the start", "\x00\x00\x00\x00" + none + le32(len(none)) + "PAR1", "written in part"},
	})
}

// TestFormatParquetOfParquetGo: also a footer of many windows.
func TestFormatParquetOfParquetGo(t *testing.T) {
	for _, columns := range []int{1, 3000} {
		group, row := parquet.Group{}, map[string]any{}
		for i := range columns {
			name := fmt.Sprintf("column_%04d", i)
			group[name], row[name] = parquet.Leaf(parquet.Int64Type), int64(i)
		}
		var buf bytes.Buffer
		w := parquet.NewGenericWriter[map[string]any](&buf, parquet.NewSchema("rows", group))
		_, err := w.Write([]map[string]any{row, row})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		data := buf.Bytes()
		if columns > 1 && len(data) < 4*window {
			t.Fatalf("%d bytes, want many windows", len(data))
		}
		if err := checkBytes("parquet", "f", data); err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
		missing := append([]byte("PAR1"), data[20:]...)
		if err := checkBytes("parquet", "f", missing); err == nil {
			t.Errorf("%d columns: accepted without 16 bytes of its data", columns)
		}
	}
}
