package table

import (
	"reflect"
	"strings"
	"testing"
)

// TestRule59_Formats: the keywords, in any case, and classes.
func TestRule59_Formats(t *testing.T) {
	t.Parallel()
	for keyword, format := range map[string]string{
		"TEXTFILE": "text", "SequenceFile": "sequence", "orc": "orc", "PARQUET": "parquet", " avro\n": "avro", "RcFile": "rc", "jsonfile": "json",
	} {
		f, err := ParseFormatChange(keyword)
		if err != nil || f.InputFormat == "" || f.OutputFormat == "" || f.Properties != nil {
			t.Errorf("%q: %+v, %v", keyword, f, err)
		}
		if (f.Serde == "") != (format == "sequence") {
			t.Errorf("%q: the SerDe is %q", keyword, f.Serde)
		}
		if got, _ := glueDialect.classFormat(f.Serde, f.InputFormat, false); got != format {
			t.Errorf("%q: files of it are %q, want %q", keyword, got, format)
		}
	}
	for text, want := range map[string]FormatChange{
		`INPUTFORMAT 'a.I' OUTPUTFORMAT "a.O"`:        {InputFormat: "a.I", OutputFormat: "a.O"},
		`inputformat'a.I'outputformat'a.O'serde'a.S'`: {InputFormat: "a.I", OutputFormat: "a.O", Serde: "a.S"},
		`SERDE 'a.S'`: {Serde: "a.S"},
		`SERDE 'a.S' WITH SERDEPROPERTIES ('field.delim'='\001','q'="it's \"x\"")`: {Serde: "a.S", Properties: map[string]string{"field.delim": "\x01", "q": `it's "x"`}},
		`SERDE 'a.S' with serdeproperties ( 'a' = '\t\\' , 'b' = '' ) INPUTFORMAT 'a.I'`: {
			Serde: "a.S", InputFormat: "a.I", Properties: map[string]string{"a": "\t\\", "b": ""},
		},
	} {
		if got, err := ParseFormatChange(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "CSV", "JSON", "PARQUET ORC", "'PARQUET'", "INPUTFORMAT", "INPUTFORMAT a.I", "INPUTFORMAT ''", "INPUTFORMAT 'a b'", "INPUTFORMAT 'a",
		"INPUTFORMAT 'a' INPUTFORMAT 'b'", "INPUTFORMAT 'a\x00'", "WITH", "SERDE 'a' WITH", "SERDE 'a' WITH x", "WITH SERDEPROPERTIES ('a'='b')",
		"SERDE 'a' WITH SERDEPROPERTIES", "SERDE 'a' WITH SERDEPROPERTIES (", "SERDE 'a' WITH SERDEPROPERTIES ()", "SERDE 'a' WITH SERDEPROPERTIES ('a')",
		"SERDE 'a' WITH SERDEPROPERTIES ('a'='b'", "SERDE 'a' WITH SERDEPROPERTIES ('a'='b',)", "SERDE 'a' WITH SERDEPROPERTIES ('a'='b','a'='c')",
		"SERDE 'a' WITH SERDEPROPERTIES ('path'='s3://x')", "SERDE 'a' WITH SERDEPROPERTIES ('a'='b') WITH SERDEPROPERTIES ('c'='d')",
		"SERDE 'a' WITH SERDEPROPERTIES ('a'='b\\", "INPUTFORMAT '" + strings.Repeat("x", 256) + "'",
	} {
		if got, err := ParseFormatChange(text); err == nil {
			t.Errorf("%.100q: got %+v, want an error", text, got)
		} else if len(err.Error()) > 2000 {
			t.Errorf("%.100q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func FuzzFormatChange(f *testing.F) {
	f.Add(`INPUTFORMAT 'a' OUTPUTFORMAT "b" SERDE 'c' WITH SERDEPROPERTIES ('a'='\001',"b"='')`)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseFormatChange(text); err == nil && c.InputFormat == "" && c.OutputFormat == "" && c.Serde == "" {
			t.Errorf("%q changes nothing", text)
		}
	})
}
