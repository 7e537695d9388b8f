package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A schema of one column, c, as elements of a list, of which its first is the root.
const (
	root = "\x48\x01r\x15\x02\x00"
	leaf = "\x15\x04\x38\x01c\x00"
)

// compact is a footer, field by field, in Thrift's compact protocol: a version, a
// schema of one column, no rows, and row groups.
func compact(groups string) string {
	return "\x15\x02\x19\x2c" + root + leaf + "\x16\x00\x19" + groups + "\x00"
}

// column is a row group of one column: n bytes at an offset, each below 64.
func column(n, at byte) string {
	return group("\x26\x00\x1c\x15\x04\x19\x15\x00\x19\x18\x01c\x15\x00\x16\x00\x16\x00\x16" + string(n<<1) + "\x26" + string(at<<1) + "\x00")
}

// group is a row group, without rows, of one column.
func group(column string) string { return "\x1c\x19\x1c" + column + "\x00\x16\x00\x16\x00\x00" }

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
		{"more follows the footer", file("PAR1", "", none+"x"), "ends 1 bytes early"},
		{"Arrow's schema without a value", file("PAR1", "", strings.TrimSuffix(none, "\x00")+"\x19\x1c\x18\x0cARROW:schema\x00\x00"), "no schema of Arrow's"},
		{"a column of no bytes anywhere", file("PAR1", "", compact(column(0, 0))), ""},
		{"data too long", file("PAR1", "0123456789", compact(column(11, 4))), "column 0 of row group 0 has 11 bytes at byte 4, but data is in bytes 4 to 14"},
		{"data in the magic", file("PAR1", "0123456789", compact(column(10, 3))), "10 bytes at byte 3"},
		{"data missing", file("PAR1", "", compact(column(10, 4))), "parts of which one is missing"},
		{"no schema", file("PAR1", "", "\x15\x02\x19\x0c\x16\x00\x19\x0c\x00"), "no schema"},
		{"no rows told", file("PAR1", "", "\x15\x02\x19\x1c\x48\x01r\x00\x29\x0c\x00"), "no number of rows"},
		{"no columns", file("PAR1", "", "\x15\x02\x19\x1c\x48\x01r\x00\x16\x00\x19\x0c\x00"), ""},
		{"a schema without names", file("PAR1", "", "\x15\x02\x19\x1c\x00\x16\x00\x19\x0c\x00"), "element of the schema at byte 8 has no name"},
		{"a name that is no text", file("PAR1", "", "\x15\x02\x19\x1c\x48\x01\xff\x00\x16\x00\x19\x0c\x00"), "not UTF-8"},
		{"a column that is missing", file("PAR1", "", "\x15\x02\x19\x1c"+root+"\x16\x00\x19\x0c\x00"), "lacks 1 columns"},
		{"a column of nothing", file("PAR1", "", "\x15\x02\x19\x3c"+root+leaf+leaf+"\x16\x00\x19\x0c\x00"), "no tree of columns"},
		{"rows of no group", file("PAR1", "", "\x15\x02\x19\x2c"+root+leaf+"\x16\x04\x19\x0c\x00"), "tells of 2 rows, its row groups of 0"},
		{"a number that stands for text", file("PAR1", "", strings.Replace(none, leaf, "\x15\x04\x38\x01c\x25\x00\x00", 1)), "type 2, which stands for no type 0"},
		{"a column of columns", file("PAR1", "", strings.Replace(none, leaf, "\x15\x04\x38\x01c\x15\x02\x00", 1)), "neither a column nor one of columns"},
		{"a row group without columns", file("PAR1", "", compact("\x1c\x19\x0c\x16\x00\x16\x00\x00")), "row group 0 has 0 columns, the schema 1"},
		{"a column without metadata", file("PAR1", "", compact(group("\x26\x00"))), "has no metadata"},
		{"a column encrypted by a key of its own", file("PAR1", "", compact(group("\x26\x00\x6c\x00"))), ""},
		{"a column that tells nothing", file("PAR1", "", compact(group("\x26\x00\x1c\x00"))), "the column's metadata at byte 29 has no type"},
		{"Arrow's schema that is not base64", file("PAR1", "", strings.TrimSuffix(none, "\x00")+"\x19\x1c\x18\x0cARROW:schema\x18\x02x!\x00\x00"), "Arrow's schema, of 2 bytes at byte 42, is damaged"},
		{"Arrow's schema cut", file("PAR1", "", strings.TrimSuffix(none, "\x00")+"\x19\x1c\x18\x0cARROW:schema\x18\x10/////wgAAAAQAAAA\x00\x00"), "Arrow's schema, of 16 bytes"},
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
