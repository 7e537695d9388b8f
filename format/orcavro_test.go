package format

import (
	"strings"
	"testing"
)

func TestFormatORC(t *testing.T) {
	file := func(body, footer, postscript string) string {
		return "ORC" + body + footer + postscript + string(rune(len(postscript)))
	}
	const magic = "\x82\xf4\x03\x03ORC"
	types := "\x22\x02\x08\x0c"
	stripe := func(n byte) string { return "\x1a\x06\x08\x03\x10\x01\x18" + string(rune(n)) }
	flaws(t, "orc", []struct{ name, data, want string }{
		{"no rows", file("", types, "\x08\x04"+magic), ""},
		{"a stripe", file("0123456789", stripe(9)+types, "\x08\x0c"+magic), ""},
		{"a stripe too long", file("0123456789", stripe(10)+types, "\x08\x0c"+magic), "a stripe of 1 + 10 + 0 bytes at byte 3, but data ends at byte 13"},
		{"a stripe missing", file("", stripe(9)+types, "\x08\x0c"+magic), "parts of which one is missing"},
		{"no schema", file("", "\x30\x00", "\x08\x02"+magic), "no schema"},
		{"of 2013", file("", types, "\x08\x04\x10\x00"), ""},
		{"version and no magic", file("", types, "\x08\x04\x10\x00\x22\x02\x00\x0c"), "no postscript of ORC"},
		{"another magic", file("", types, "\x08\x04\x82\xf4\x03\x03ORD"), "no postscript of ORC"},
		{"no such compression", file("", types, "\x08\x04\x10\x07"+magic), "no postscript of ORC"},
		{"no footer", file("", types, "\x08\x00"+magic), "no postscript of ORC"},
		{"footer too long", file("", types, "\x08\x05"+magic), "5 bytes of footer and 0 of metadata where 4 are"},
		{"metadata too long", file("", types, "\x08\x04\x28\x01"+magic), "4 bytes of footer and 1 of metadata"},
		{"compressed", file("", "\x02\x00\x00x\x04\x00\x00xy", "\x08\x09\x10\x01"+magic), ""},
		{"a chunk too long", file("", "\x02\x00\x00x\x06\x00\x00xy", "\x08\x09\x10\x01"+magic), "a value of 3 bytes"},
		{"an empty chunk", file("", "\x00\x00\x00", "\x08\x03\x10\x01"+magic), "nothing in it"},
		{"half a chunk", file("", "\x02\x00\x00x\x04", "\x08\x05\x10\x01"+magic), "the footer is not whole"},
		{"postscript longer than the file", "ORCabc\xff", "a postscript of 255 bytes where at most 3 are"},
		{"no length", "ORCabc\x00", "a postscript of 0 bytes"},
		{"short", "ORC", "3 bytes, the shortest has 6"},
		{"parquet", "PAR1abcdefPAR1", "it begins as a file of format parquet"},
		{"text", "id,name\n1,a\n", "byte 0: it begins with \"id,n\""},
	})
}

func TestFormatAvro(t *testing.T) {
	sync := "0123456789abcdef"
	schema := func(text string) string { return "\x16avro.schema" + string(rune(2*len(text))) + text }
	flaws(t, "avro", []struct{ name, data, want string }{
		{"no rows", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync, ""},
		{"rows", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync + "\x02\x02\x02" + sync, ""},
		{"two blocks of metadata", "Obj\x01\x02\x02k\x02v\x02" + schema(`["null","int"]`) + "\x00" + sync, ""},
		{"a block with its length", "Obj\x01\x01\x24" + schema(`"int"`) + "\x00" + sync, ""},
		{"long key", "Obj\x01\x04\x28abcdefghijklmnopqrst\x02v" + schema(`{"type":"int"}`) + "\x00" + sync, ""},
		{"no schema", "Obj\x01\x02\x02k\x02v\x00" + sync, "no schema"},
		{"no metadata", "Obj\x01\x00" + sync, "no schema"},
		{"schema is no JSON", "Obj\x01\x02" + schema(`int`) + "\x00" + sync, "not JSON: it ends in"},
		{"schema ends early", "Obj\x01\x02" + schema(`{"a":`) + "\x00" + sync, "in the middle of a value"},
		{"another sync marker", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync + "\x02\x02\x02" + strings.ToUpper(sync), "does not end in the sync marker that its header has at byte 24"},
		{"more after it", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync + "\n", "cut, or its writer has not finished"},
		{"sync marker cut", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync[:15], "the header is not whole"},
		{"negative length", "Obj\x01\x02\x01" + strings.Repeat("x", 30), "a value of 18446744073709551615 bytes"},
		{"short", "Obj\x01", "4 bytes, the shortest has 21"},
		{"another version", "Obj\x02" + strings.Repeat("x", 30), "byte 0: it begins with \"Obj\\x02\""},
		{"json", `{"a": 1, "b": "abcdefghijkl"}`, "byte 0"},
	})
}
