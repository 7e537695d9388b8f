package format

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestFormatJSON(t *testing.T) {
	row := `{"id": 1, "name": "a\"b\\", "x": [1.5e3, -0.1, true, false, null, {}], "y": {"z": []}}` + "\n"
	long := `{"a": "` + strings.Repeat("x", 2*window) + `"}` + "\n"
	flaws(t, "json", []struct{ name, data, want string }{
		{"rows", row + row, ""},
		{"no end of line", row + strings.TrimSpace(row), ""},
		{"byte order mark, blank lines, spaces", bom + "\n \t\n  " + row + "\n", ""},
		{"nothing but white space", " \n\n", ""},
		{"nothing but a byte order mark", bom, ""},
		{"lines of DOS and of old Macs", strings.ReplaceAll(row+row, "\n", "\r\n") + "{}\r{}\r", ""},
		{"arrays of rows", "[" + strings.TrimSpace(row) + "]\n", ""},
		{"as Spark reads it", `{'a': NaN, "b": [Infinity, -Infinity]}`, ""},
		{"large and long numbers", `{"a": 1e999, "b": ` + strings.Repeat("1", 100) + `}`, ""},
		{"any signs in strings", "{\"a\": \"\xff\x00\u2028\\u12\"}", ""},
		{"a long line", long + row, ""},
		{"a long line that is none", `{"a" "` + strings.Repeat("x", 2*window), "line 1: '\"' where a colon is expected"},
		{"later lines", strings.Repeat(row, jsonLines) + "noise", ""},
		{"csv", "id,name\n1,a\n", "byte 0, line 1: it begins with \"id,name\", not with '{'"},
		{"a csv of numbers", "1,2\n", "it begins with \"1,2\""},
		{"gzip", "\x1f\x8b\x08\x00", "byte 0, line 1"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "byte 0, line 1"},
		{"over several lines", "{\n  \"a\": 1\n}\n", "byte 1, line 1: it ends in the middle of a value: cut, or not one object a line (jq -c ."},
		{"cut", row + row[:20], "line 2: it ends in the middle of a value"},
		{"cut in a string", `{"a": "x`, "in the middle"},
		{"cut in a number", `{"a": 1`, "in the middle"},
		{"two on a line", `{"a":1} {"a":2}`, "byte 8, line 1: '{' where the end of the line is expected"},
		{"a comma too many", `{"a":1,}`, "'}' where a key in quotes is expected"},
		{"a comma too many in an array", `{"a":[1,]}`, "']' where a value is expected"},
		{"a comma too few", `{"a":1 "b":2}`, "where a comma, or the end of what began with { is expected"},
		{"brackets crossed", `{"a":[1}`, "'}' where a comma"},
		{"no value", `{"a":}`, "where a value is expected"},
		{"a key without quotes", `{a:1}`, "a key in quotes"},
		{"a word", `{"a":nul}`, `"nul" before it is no value`},
		{"a word like a number", `{"a":Inf}`, `"Inf" before it is no value`},
		{"half a number", `{"a":-}`, `"-" before it is no value`},
		{"a long word", `{"a":1` + strings.Repeat("0", 100) + `x}`, "'x' where a number is expected"},
		{"deep", strings.Repeat("[", 1001), "nested deeper than 1000"},
	})
}

func TestFormatByNameOfCompression(t *testing.T) {
	rows := "id,name\n1,a\n2,b\n"
	hadoop := "\x00\x00\x00\x64\x00\x00\x00\x05" + "\x64abcd"
	for _, format := range []string{"csv", "text", "json"} {
		flaws(t, format, []struct{ name, data, want string }{
			{"f.csv.gz", "\x1f\x8b\x08\x00", ""},
			{"f.csv.GZ", "\x1f\x8b\x08\x00", ""},
			{"f.gz", rows, `byte 0: it begins with "id,name\n", which is not how gzip begins (1f 8b 08), but its name says that it does: compress it, or`},
			{"f.gz", "\x1f", "is not how gzip begins"},
			{"f.gz", "", ""},
			{"f.bz2", "BZh91AY", ""},
			{"f.bz2", rows, "is not how bzip2 begins"},
			{"f.zst", "\x28\xb5\x2f\xfd\x00", ""},
			{"f.zst", "\x5a\x2a\x4d\x18\x00", ""},
			{"f.zst", rows, "is not how zstd begins"},
			{"f.xz", "\xfd7zXZ\x00\x00", ""},
			{"f.xz", rows, "is not how xz begins"},
			{"f.snappy", "\xff\x06\x00\x00sNaPpY", ""},
			{"f.snappy", "\x82SNAPPY\x00", ""},
			{"f.snappy", hadoop, ""},
			{"f.snappy", "\x00\x00\x00\x00", ""},
			{"f.snappy", rows, "is not how snappy begins"},
			{"f.snappy", hadoop[:12], "is not how snappy begins"},
			{"f.snappy", "\x00\x00\x00\x00\x00", "is not how snappy begins"},
			{"f.lz4", "\x04\x22\x4d\x18", ""},
			{"f.lz4", hadoop, ""},
			{"f.lz4", rows, "is not how lz4 begins"},
			{"f.deflate", "\x78\x9c\x00", ""},
			{"f.deflate", "\x78\x9d\x00", "is not how zlib begins"},
		})
	}
	flaws(t, "csv", []struct{ name, data, want string }{{"f.csv", rows, ""}, {"gz", rows, ""}, {"f.gz.csv", rows, ""}, {"f", "\x1f\x8b\x08", ""}})
	if err := checkBytes("json", "a.json.gz", []byte("{}")); err == nil || !strings.Contains(err.Error(), "not a complete gzip file") {
		t.Errorf("%v, want an error that names gzip", err)
	}
	for _, format := range []string{"parquet", "orc", "avro"} {
		if err := checkBytes(format, "f.gz", []byte("\x1f\x8b\x08 and more of it, and more of it")); err == nil {
			t.Errorf("a gzip file is no file of %s, whatever its name", format)
		}
	}
}

// FuzzCheckJSON holds that what is JSON, and one object a line, is accepted.
func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"a": [1.5e3, null], "b": {"c": "\u00e4"}}`))
	fuzz(f, "json", func(t *testing.T, data []byte, err error) {
		t.Helper()
		row := bytes.TrimLeft(data, " \t")
		if len(data) > window || bytes.ContainsAny(data, "\r\n") || len(row) == 0 || row[0] != '{' || !json.Valid(data) {
			return
		}
		if err != nil && !strings.Contains(err.Error(), "nested deeper") {
			t.Errorf("%q: %v", data, err)
		}
	})
}

// FuzzCheckCompressed holds that no file makes a check of a compressed one fail in
// another way than by an [*Error].
func FuzzCheckCompressed(f *testing.F) {
	for name, data := range realFiles(f) {
		if strings.Contains(name, ".json.") {
			f.Add(name, data)
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		for _, format := range []string{"csv", "text", "json"} {
			err := checkBytes(format, name, data)
			if err != nil && (len(data) == 0 || strings.Contains(err.Error(), "panic")) {
				t.Error(err)
			}
		}
	})
}
