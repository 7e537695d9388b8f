package table

import (
	"strings"
	"testing"
)

func TestParseType(t *testing.T) {
	for text, want := range map[string]string{
		"tinyint": "tinyint", "SMALLINT": "smallint", " int ": "int", "integer": "int", "long": "bigint",
		"real": "float", "double precision": "double", "bool": "boolean", "string": "string",
		"varchar(65535)": "varchar(65535)", "character varying ( 7 )": "varchar(7)", "char(3)": "char(3)",
		"varchar": "string", "char": "char(1)", "binary": "binary", "date": "date", "time(6)": "time(6)",
		"decimal": "decimal(10,0)", "decimal(5)": "decimal(5,0)", "DECIMAL( 38 , 38 )": "decimal(38,38)", "numeric(4,2)": "decimal(4,2)",
		"timestamp": "timestamp", "timestamp(3)": "timestamp(3)", "timestamp_ntz": "timestamp_ntz",
		"timestamp(6) without time zone": "timestamp_ntz(6)", "timestamp with time zone": "timestamp with local time zone",
		"timestamp(3) with local time zone": "timestamp with local time zone", "timestamp_ltz(9)": "timestamp with local time zone",
		"interval": "interval", "interval day to second": "interval", "interval_year": "", "void": "void", "variant": "variant",
		"array<int>": "array<int>", "ARRAY < STRING >": "array<string>", "map<string,array<decimal(10,2)>>": "map<string,array<decimal(10,2)>>",
		"struct<>": "struct<>", "struct<a:int,B:string>": "struct<a:int,B:string>", "uniontype<int,string>": "uniontype<int,string>",
		"struct<a: int NOT NULL COMMENT 'it\\'s, a <b>', c:int>": "struct<a:int,c:int>",
		"struct<a int, b struct<c:int>>":                         "struct<a:int,b:struct<c:int>>",
		"struct<a int COMMENT 'x:y'>":                            "struct<a:int>",
		"struct<a b:int>":                                        "struct<`a b`:int>",
		"struct<`a``b,:>`:int,`` :int>":                          "struct<`a``b,:>`:int,``:int>",
		"struct<ü.x$-1:timestamp with time zone>":                "struct<ü.x$-1:timestamp with local time zone>",

		"": "", "blob": "", "int int": "", "int)": "", "array": "", "array<>": "", "array<int": "", "array<int,int>": "", "map<int>": "",
		"map<int,int,int>": "", "struct": "", "struct<int>": "", "struct<a:>": "", "struct<:int>": "", "struct<a:int,>": "", "struct<a,b:int>": "",
		"struct<`a:int>": "", "struct<a:int comment x>": "", "struct<a:int comment 'x>": "", "uniontype<>": "",
		"decimal(39,1)": "", "decimal(0)": "", "decimal(3,4)": "", "decimal(3,-1)": "", "decimal(3": "", "decimal(1,1,1)": "", "decimal()": "",
		"varchar(0)": "", "varchar(1,2)": "", "varchar(99999999999)": "", "timestamp(13)": "", "timestamp with": "", "timestamp(3,3)": "",
	} {
		got, err := ParseType(text)
		if err != nil {
			if want != "" {
				t.Errorf("ParseType(%q): %v", text, err)
			}
			continue
		}
		if got.String() != want {
			t.Errorf("ParseType(%q) = %s, want %q", text, got, want)
		}
		if again, err := ParseType(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("ParseType(%q) of %q = %s, %v", got, text, again, err)
		}
	}
}

func TestParseTypeComments(t *testing.T) {
	got, err := ParseType("struct<a: int NOT NULL COMMENT 'it\\'s ''one'', <b>',`c`:int COMMENT \"d\">")
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Fields[0]; f.Comment != "it's 'one', <b>" || !f.NotNull {
		t.Errorf("first field is %+v", f)
	}
	if f := got.Fields[1]; f.Comment != "d" || f.NotNull || f.Name != "c" {
		t.Errorf("second field is %+v", f)
	}
}

func TestParseTypeBounds(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("array<", n) + "int" + strings.Repeat(">", n) }
	if _, err := ParseType(deep(maxTypeDepth - 1)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{deep(maxTypeDepth), strings.Repeat("array<", 100_000), strings.Repeat(" ", maxTypeLength+1)} {
		if _, err := ParseType(text); err == nil || len(err.Error()) > 400 {
			t.Errorf("of %d bytes: %.500v", len(text), err)
		}
	}
	if _, err := ParseType("struct<" + strings.Repeat("a:int,", 20_000) + "b:int>"); err != nil {
		t.Error(err)
	}
}

func FuzzParseType(f *testing.F) {
	f.Add("struct<a:map<string,array<decimal(10,2)>>,`b``c` timestamp(3) with local time zone COMMENT 'x'>")
	f.Add("uniontype<int,interval year to month>")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseType(text)
		if err != nil {
			return
		}
		again, err := ParseType(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%q is %s, which is %s (%v)", text, got, again, err)
		}
	})
}
