package format

import (
	"encoding/binary"
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
		{"a stripe too long", file("0123456789", stripe(10)+types, "\x08\x0c"+magic), "a stripe that ends 1 bytes behind its data's end, at byte 13"},
		{"a stripe missing", file("", stripe(9)+types, "\x08\x0c"+magic), "parts of which one is missing"},
		{"no schema", file("", "\x30\x00", "\x08\x02"+magic), "no schema"},
		{"of 2013", file("", types, "\x08\x04\x10\x00"), ""},
		{"version and no magic", file("", types, "\x08\x04\x10\x00\x22\x02\x00\x0c"), "no postscript of ORC"},
		{"another magic", file("", types, "\x08\x04\x82\xf4\x03\x03ORD"), "no postscript of ORC"},
		{"no such compression", file("", types, "\x08\x04\x10\x07"+magic), "no postscript of ORC"},
		{"no footer", file("", types, "\x08\x00"+magic), "no postscript of ORC"},
		{"footer too long", file("", types, "\x08\x05"+magic), "5 bytes of footer and 0 of metadata where 4 are"},
		{"metadata too long", file("", types, "\x08\x04\x28\x01"+magic), "4 bytes of footer and 1 of metadata"},
		{"compressed in no way that is known here", file("", "\x02\x00\x00x\x04\x00\x00xy", "\x08\x09\x10\x06"+magic), ""},
		{"a chunk too long", file("", "\x02\x00\x00x\x06\x00\x00xy", "\x08\x09\x10\x06"+magic), "a value of 3 bytes"},
		{"chunks as they are", file("", "\x05\x00\x00\x22\x02\x05\x00\x00\x08\x0c", "\x08\x0a\x10\x01"+magic), ""},
		{"a chunk of noise", file("", "\x04\x00\x00xy", "\x08\x05\x10\x01"+magic), "can not be decompressed"},
		{"a chunk beyond the block size", file("", "\x22\x00\x00\x80\x80\x80\x80\x04"+strings.Repeat("x", 12), "\x08\x14\x10\x02"+magic), "longer than the block size"},
		{"a type of itself", file("", "\x22\x07\x08\x0c\x12\x01\x00\x1a\x00", "\x08\x09"+magic), "type 0 is part of type 0"},
		{"a name without a type", file("", "\x22\x04\x08\x0c\x1a\x00", "\x08\x06"+magic), "0 columns and 1 names"},
		{"a type that is not there", file("", "\x22\x07\x08\x0c\x12\x01\x01\x1a\x00", "\x08\x09"+magic), "no tree of columns"},
		{"an empty chunk", file("", "\x00\x00\x00", "\x08\x03\x10\x01"+magic), "nothing in it"},
		{"half a chunk", file("", "\x02\x00\x00x\x04", "\x08\x05\x10\x06"+magic), "the footer is not whole"},
		{"postscript longer than the file", "ORCabc\xff", "a postscript of 255 bytes where at most 3 are"},
		{"no length", "ORCabc\x00", "a postscript of 0 bytes"},
		{"short", "ORC", "3 bytes, the shortest has 6"},
		{"parquet", "PAR1abcdefPAR1", "it begins as a file of format parquet"},
		{"text", "id,name\n1,a\n", "byte 0: it begins with \"id,n\""},
	})
}

func TestFormatAvro(t *testing.T) {
	sync := "0123456789abcdef"
	schema := func(text string) string {
		return "\x16avro.schema" + string(binary.AppendVarint(nil, int64(len(text)))) + text
	}
	flaws(t, "avro", []struct{ name, data, want string }{
		{"no rows", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync, ""},
		{"rows", "Obj\x01\x02" + schema(`"int"`) + "\x00" + sync + "\x02\x02\x02" + sync, ""},
		{"two blocks of metadata", "Obj\x01\x02\x02k\x02v\x02" + schema(`["null","int"]`) + "\x00" + sync, ""},
		{"a block with its length", "Obj\x01\x01\x24" + schema(`"int"`) + "\x00" + sync, ""},
		{"long key", "Obj\x01\x04\x28abcdefghijklmnopqrst\x02v" + schema(`{"type":"int"}`) + "\x00" + sync, ""},
		{"a codec", "Obj\x01\x04\x14avro.codec\x08null" + schema(`"int"`) + "\x00" + sync, ""},
		{"no codec", "Obj\x01\x04\x14avro.codec\x08n\xf5ll" + schema(`"int"`) + "\x00" + sync, "the codec at byte 16 is no name"},
		{"a record", "Obj\x01\x02" + schema(`{"type":"record","name":"a.r","fields":[{"name":"n","type":["null","r"]},{"name":"e","type":{"type":"enum","name":"e","symbols":["x"]}},{"name":"x","type":{"type":"array","items":"a.e"}},{"name":"m","type":{"type":"map","values":{"type":"fixed","name":"f","size":2}}},{"name":"d","type":{"type":"long","logicalType":"x"}}]}`) + "\x00" + sync, ""},
		{"a field without a name", "Obj\x01\x02" + schema(`{"type":"record","name":"r","fields":[{"nome":"n","type":"int"}]}`) + "\x00" + sync, "a field of the schema has no name"},
		{"a type that there is not", "Obj\x01\x02" + schema(`{"type":"lung"}`) + "\x00" + sync, "names a type that there is not"},
		{"a part without a type", "Obj\x01\x02" + schema(`{"typo":"long"}`) + "\x00" + sync, "has no type"},
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
