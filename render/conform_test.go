package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Types of files, as a source declares them.
var (
	int32Type = &fileType{kind: integer, bits: 32, declared: "INT32"}
	int64Type = &fileType{kind: integer, bits: 64, declared: "INT64"}
	textType  = &fileType{kind: text, declared: "BYTE_ARRAY (STRING)"}
	bytesType = &fileType{kind: octets, declared: "BYTE_ARRAY"}
	badType   = &fileType{kind: unknown, why: "values of the logical type VARIANT are not shown"}
)

func structOf(children ...any) *fileType {
	t := &fileType{kind: record}
	var parts []string
	for i := 0; i < len(children); i += 2 {
		t.fields = append(t.fields, field{name: children[i].(string), typ: children[i+1].(*fileType), from: 0})
		parts = append(parts, children[i].(string)+" "+children[i+1].(*fileType).declared)
	}
	t.declared = "group {" + strings.Join(parts, ", ") + "}"
	return t
}

func listOf(e *fileType) *fileType {
	return &fileType{kind: list, declared: "LIST of " + e.declared, fields: []field{{name: "element", typ: e}}}
}

func mapOf(k, v *fileType) *fileType {
	return &fileType{kind: mapping, declared: "MAP", fields: []field{{name: "key", typ: k}, {name: "value", typ: v}}}
}

func timeType(u unit, utc bool) *fileType {
	return &fileType{kind: timestamp, unit: u, utc: utc, declared: "INT64 (TIMESTAMP)"}
}

func decimalType(p, s int) *fileType {
	return &fileType{kind: decimal, precision: p, scale: s, declared: fmt.Sprintf("INT32 (DECIMAL(%d,%d))", p, s)}
}

// TestRule38_Types: which types of a file are the table's. want is "" for one that
// passes, else what the error holds.
func TestRule38_Types(t *testing.T) {
	int96 := &fileType{kind: timestamp, unit: nanos, int96: true, declared: "INT96"}
	unsigned := func(bits int) *fileType {
		return &fileType{kind: integer, bits: bits, unsigned: true, declared: fmt.Sprintf("INT32 (UINT_%d)", bits)}
	}
	int8Type := &fileType{kind: integer, bits: 8, declared: "INT32 (INT_8)"}
	for _, c := range []struct {
		table string
		file  *fileType
		want  string
	}{
		{"boolean", &fileType{kind: boolean}, ""},
		{"tinyint", int8Type, ""},
		{"tinyint", int32Type, ""},
		{"smallint", &fileType{kind: integer, bits: 16}, ""},
		{"smallint", int32Type, ""},
		{"smallint", unsigned(8), ""},
		{"smallint", int8Type, "INT32 (INT_8) in the file and smallint in the table"},
		{"int", int32Type, ""},
		{"int", unsigned(16), ""},
		{"int", unsigned(32), "INT32 (UINT_32) in the file and int in the table"},
		{"int", int64Type, "INT64 in the file and int in the table"},
		{"int", textType, "BYTE_ARRAY (STRING) in the file and int in the table"},
		{"bigint", int64Type, ""},
		{"bigint", unsigned(32), ""},
		{"bigint", int32Type, "INT32 in the file and bigint in the table"},
		{"bigint", unsigned(64), "UINT_64"},
		{"decimal(20,0)", unsigned(64), ""},
		{"float", &fileType{kind: float, bits: 32}, ""},
		{"float", &fileType{kind: float, bits: 16}, ""},
		{"float", &fileType{kind: float, bits: 64, declared: "DOUBLE"}, "DOUBLE in the file and float"},
		{"double", &fileType{kind: float, bits: 64}, ""},
		{"double", &fileType{kind: float, bits: 32, declared: "FLOAT"}, "FLOAT in the file and double"},
		{"decimal(9,2)", decimalType(9, 2), ""},
		{"decimal(9,2)", decimalType(9, 3), "DECIMAL(9,3)) in the file and decimal(9,2) in the table"},
		{"decimal(10,2)", decimalType(9, 2), "DECIMAL(9,2)"},
		{"decimal(9,0)", int32Type, "INT32 in the file and decimal(9,0)"},
		{"string", textType, ""},
		{"string", bytesType, ""},
		{"string", &fileType{kind: text, enum: true}, ""},
		{"string", &fileType{kind: text, json: true}, ""},
		{"string", &fileType{kind: uuid}, ""},
		{"string", &fileType{kind: timeOfDay}, ""},
		{"string", &fileType{kind: octets, size: 4, declared: "FIXED(4)"}, "FIXED(4) in the file and string"},
		{"string", int32Type, "INT32 in the file and string"},
		{"varchar(3)", textType, ""},
		{"char(3)", bytesType, ""},
		{"varchar(3)", &fileType{kind: uuid, declared: "UUID"}, "UUID in the file and varchar(3)"},
		{"binary", bytesType, ""},
		{"binary", &fileType{kind: octets, size: 4}, ""},
		{"binary", textType, "BYTE_ARRAY (STRING) in the file and binary"},
		{"date", &fileType{kind: date}, ""},
		{"date", timeType(micros, false), "(TIMESTAMP) in the file and date"},
		{"time", &fileType{kind: timeOfDay}, ""},
		{"timestamp", int96, ""},
		{"timestamp", timeType(millis, true), ""},
		{"timestamp", timeType(nanos, false), ""},
		{"timestamp", int64Type, "INT64 in the file and timestamp in the table"},
		{"timestamp", &fileType{kind: date, declared: "INT32 (DATE)"}, "INT32 (DATE) in the file and timestamp"},
		{"timestamp_ntz", timeType(micros, false), ""},
		{"timestamp_ntz", timeType(micros, true), "in the file and timestamp_ntz"},
		{"timestamp with local time zone", timeType(micros, true), ""},
		{"timestamp with local time zone", timeType(micros, false), "timestamp with local time zone in the table"},
		{"timestamp(0)", timeType(millis, false), ""},
		{"timestamp(3)", timeType(millis, false), ""},
		{"timestamp(6)", timeType(micros, false), ""},
		{"timestamp(9)", int96, ""},
		{"timestamp(0)", timeType(micros, false), "timestamp(0) in the table"},
		{"timestamp(6)", timeType(millis, false), "timestamp(6) in the table"},
		{"timestamp(3)", timeType(micros, false), "timestamp(3) in the table"},
		{"interval", &fileType{kind: interval}, ""},
		{"int", &fileType{kind: nothing}, ""},
		{"struct<a:int>", &fileType{kind: nothing}, ""},
		{"variant", textType, "in the file and variant"},
		{"int", badType, "VARIANT are not shown"},
		{"blob", int32Type, "in the table it has a type \"blob\": a type that is not known"},

		{"array<int>", listOf(int32Type), ""},
		{"array<int>", int32Type, "INT32 in the file and array<int>"},
		{"array<bigint>", listOf(int32Type), `column "c.element": it is INT32 in the file and bigint`},
		{"map<string,int>", mapOf(textType, int32Type), ""},
		{"map<string,int>", listOf(int32Type), "LIST of INT32 in the file and map<string,int>"},
		{"map<string,bigint>", mapOf(textType, int32Type), `column "c.value": it is INT32`},
		{"map<int,string>", mapOf(textType, textType), `column "c.key": it is BYTE_ARRAY`},
		{"uniontype<int,string>", &fileType{kind: union, fields: []field{{typ: int32Type}, {typ: textType}}}, ""},
		{"uniontype<int,string>", &fileType{kind: union, declared: "[int]", fields: []field{{typ: int32Type}}}, "[int] in the file"},
		{"struct<a:int,b:string>", structOf("a", int32Type, "b", textType), ""},
		{"struct<a:int,b:string>", structOf("A", int32Type, "B", textType), ""},
		{"struct<a:int>", structOf("a", int32Type, "b", textType), ""},
		{"struct<a:int,b:string>", structOf("a", int32Type), ""},
		{"struct<a:int,b:string NOT NULL>", structOf("a", int32Type), `column "c.b": the file has no such child`},
		{"struct<a:int,b:string>", structOf("b", textType, "a", int32Type), `column "c.b": the file has this child before "a"`},
		{"struct<a:bigint>", structOf("a", int32Type), `column "c.a": it is INT32 in the file and bigint`},
		{"struct<a:int>", structOf("a", int32Type, "b", badType), ""},
		{"array<struct<a:map<string,date>>>", listOf(structOf("a", mapOf(textType, int32Type))), `column "c.element.a.value": it is INT32`},
	} {
		s := Spec{Name: "f", Columns: []Column{{Name: "c", Type: c.table}}}
		_, err := conform(s, []field{{name: "c", typ: c.file}})
		checkError(t, fmt.Sprintf("%s over %+v", c.table, *c.file), err, c.want)
	}
}

func checkError(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch e := (*Error)(nil); {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want == "":
	case !errors.As(err, &e) || e.Column == "" || !strings.Contains(err.Error(), want):
		t.Errorf("%s: got error %v, want one with %s", what, err, want)
	}
}

// describe writes outputs as name=from, and what they are shown as.
func describe(outputs []output) string {
	var parts []string
	for _, o := range outputs {
		part := fmt.Sprintf("%s=%d", o.name, o.from)
		if o.key != nil {
			part = o.name + "=key"
		}
		if o.typ != nil {
			part += "!"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// TestRule38_Columns: which columns are shown, and from where. want is the outputs, or
// what the error holds.
func TestRule38_Columns(t *testing.T) {
	file := []field{{name: "a", typ: int32Type}, {name: "B", typ: textType}, {name: "dt", typ: textType}, {name: "n", typ: listOf(int32Type)}, {name: "v", typ: badType}, {name: "x", typ: bytesType}, {name: "X", typ: bytesType}}
	keys := []Key{{Name: "dt", Type: "date", Value: "2026-01-31"}}
	col := func(nameType ...string) (cs []Column) {
		for i := 0; i < len(nameType); i += 2 {
			cs = append(cs, Column{Name: nameType[i], Type: strings.TrimSuffix(nameType[i+1], "!"), NotNull: strings.HasSuffix(nameType[i+1], "!")})
		}
		return cs
	}
	for _, c := range []struct {
		what string
		spec Spec
		want string
	}{
		{"the table's order, and its case", Spec{Columns: col("b", "string", "A", "int")}, "b=1 A=0"},
		{"one that the file lacks", Spec{Columns: col("z", "array<int>", "a", "int!")}, "z=-1 a=0"},
		{"one that the file lacks, NOT NULL", Spec{Columns: col("a", "int", "z", "int!")}, `!"z": the file has no such column`},
		{"NOT NULL, and not asked for", Spec{Columns: col("a", "int", "z", "int!"), Project: []string{"a"}}, "a=0"},
		{"another type, and not asked for", Spec{Columns: col("a", "int", "B", "int"), Project: []string{"a"}}, "a=0"},
		{"another type", Spec{Columns: col("a", "int", "B", "int")}, `!"B": it is BYTE_ARRAY (STRING) in the file and int`},
		{"keys last, over the file's and the table's", Spec{Columns: col("dt", "string", "a", "int"), Keys: keys}, "a=0 dt=key"},
		{"keys, without case", Spec{Columns: col("DT", "string", "a", "int"), Keys: keys}, "a=0 dt=key"},
		{"a key asked for first", Spec{Columns: col("a", "int"), Keys: keys, Project: []string{"DT", "a"}}, "dt=key a=0"},
		{"one asked for twice", Spec{Columns: col("a", "int"), Project: []string{"a", "A"}}, `!"a": it is asked for twice`},
		{"an unknown one asked for", Spec{Columns: col("a", "int"), Keys: keys, Project: []string{"B"}}, `!"B": there is no such column; there are "a", "dt"`},
		{"two that are equal without case", Spec{Columns: col("x", "binary")}, "x=5"},
		{"bytes under string", Spec{Columns: col("X", "string")}, "X=6!"},
		{"one twice in the table", Spec{Columns: col("a", "int", "a", "int")}, `!"a": two columns have this name`},
		{"no table: the file's", Spec{Keys: keys, Project: []string{"X", "b", "dt", "n"}}, "X=6 B=1 dt=key n=3"},
		{"no table: what is not shown", Spec{}, `!"v": values of the logical type VARIANT are not shown; leave the column out with --columns`},
		{"nested in CSV", Spec{Output: OutputCSV, Columns: col("n", "array<int>")}, `!"n": it is nested, which CSV has no form for`},
		{"nested in CSV, and not in the file", Spec{Output: OutputCSV, Columns: col("q", "array<int>")}, `!"q": it is nested`},
		{"nested in CSV, and not asked for", Spec{Output: OutputCSV, Columns: col("n", "array<int>", "a", "int"), Project: []string{"a"}}, "a=0"},
		{"nested in CSV, no table", Spec{Output: OutputCSV, Project: []string{"n"}}, `!"n": it is nested`},
		{"rule 47: nested in a manifest's table", Spec{Output: OutputJSONL, Flat: true, Columns: col("n", "array<int>")}, `!"n": it is nested, and nested columns of a manifest's table`},
	} {
		got, err := conform(c.spec, file)
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			checkError(t, c.what, err, want)
		} else if checkError(t, c.what, err, ""); describe(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.what, describe(got), c.want)
		}
	}
	_, err := conform(Spec{Columns: col("xx", "binary")}, []field{{name: "Xx", typ: bytesType}, {name: "xX", typ: bytesType}})
	checkError(t, "two of it without case", err, `there are two of it: number `)
	_, err = conform(Spec{}, []field{{name: "a", typ: listOf(structOf("b", badType))}})
	checkError(t, "deep in a column", err, `"a.element.b": values of`)
}

// TestRule38_Shown: what a nested type is shown as.
func TestRule38_Shown(t *testing.T) {
	got, err := conform(Spec{Columns: []Column{{Name: "c", Type: "array<struct<z:int,s:string,b:int>>"}}},
		[]field{{name: "c", typ: listOf(structOf("a", badType, "S", bytesType, "b", int32Type))}})
	if err != nil {
		t.Fatal(err)
	}
	element := got[0].typ.fields[0].typ
	var parts []string
	for _, f := range element.fields {
		parts = append(parts, fmt.Sprintf("%s=%d", f.name, f.from))
	}
	if text := strings.Join(parts, " "); text != "z=-1 s=1 b=2" || !element.fields[1].typ.asText || element.fields[0].typ.kind != nothing {
		t.Errorf("got %s, %+v", text, element.fields[1].typ)
	}
	if bytesType.asText {
		t.Error("the file's own type was changed")
	}
	got, err = conform(Spec{Columns: []Column{{Name: "c", Type: "timestamp(0)"}}}, []field{{name: "c", typ: timeType(millis, true)}})
	if err != nil || got[0].typ.unit != seconds || !got[0].typ.utc {
		t.Errorf("milliseconds under seconds: got %+v, %v", got[0].typ, err)
	}
}
