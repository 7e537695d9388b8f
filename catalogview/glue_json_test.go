package catalogview

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestIsoTime(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"1767225600":            "2026-01-01T00:00:00+00:00",
		"1767225600.0":          "2026-01-01T00:00:00+00:00",
		"1.795981949E9":         "2026-11-29T19:52:29+00:00",
		"1.795981949713e+9":     "2026-11-29T19:52:29.713000+00:00",
		"1795981949.713":        "2026-11-29T19:52:29.713000+00:00",
		"1795981949.000001":     "2026-11-29T19:52:29.000001+00:00",
		"1795981949.0000004":    "2026-11-29T19:52:29+00:00",
		"1795981949.9999996":    "2026-11-29T19:52:30+00:00",
		"1795981949.0000005":    "2026-11-29T19:52:29+00:00", // half to even
		"1795981949.0000015":    "2026-11-29T19:52:29.000002+00:00",
		"179598194900E-2":       "2026-11-29T19:52:29+00:00",
		"0":                     "1970-01-01T00:00:00+00:00",
		"-0":                    "1970-01-01T00:00:00+00:00",
		"-0.5":                  "1969-12-31T23:59:59.500000+00:00",
		"-1.0000015":            "1969-12-31T23:59:58.999998+00:00",
		"-62135596800":          "0001-01-01T00:00:00+00:00",
		"253402300799.999999":   "9999-12-31T23:59:59.999999+00:00",
		"-62135596801":          "",
		"253402300800":          "",
		"1e30":                  "",
		"1e999999999":           "",
		"1e-999999999":          "",
		"1e99999999999999999":   "",
		`"2026-01-01"`:          "",
		"true":                  "",
		"{}":                    "",
		strings.Repeat("9", 99): "",
	} {
		got, ok := isoTime([]byte(number))
		if got != want || ok != (want != "") {
			t.Errorf("isoTime(%s) = %q, %v, want %q", number, got, ok, want)
		}
	}
}

// Only numbers under the names of times change, wherever they are.
func TestReadableTimes(t *testing.T) {
	t.Parallel()
	in := `{"a":1.0,"CreateTime" : 1767225600 ,"b":["CreateTime",17,{"LastAccessTime":1e9,"x":"\"UpdateTime\":1"}],
"Parameters":{"CreateTime":"1767225600","\"":"LastAnalyzedTime","n":12345678901234567},"UpdateTime":null,"CreationTime":[1],"createtime":1}`
	want := `{"a":1.0,"CreateTime" : "2026-01-01T00:00:00+00:00" ,"b":["CreateTime",17,{"LastAccessTime":"2001-09-09T01:46:40+00:00","x":"\"UpdateTime\":1"}],
"Parameters":{"CreateTime":"1767225600","\"":"LastAnalyzedTime","n":12345678901234567},"UpdateTime":null,"CreationTime":[1],"createtime":1}`
	if got := string(readableTimes([]byte(in))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is null is no member; all else stays, and an element of an array does.
func TestWithoutNulls(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":null}`:   `{}`,
		`[null, null]`: `[null, null]`,
		`"null"`:       `"null"`,
		`null`:         `null`,
		`{"a" : null , "b":"null", "null":1.50,"c":[null,{"d":null,"e":{"f":null}}], "g":{}, "h":"" ,"i":[],"j":null}`: `{"b":"null","null":1.50,"c":[null,{"e":{}}],"g":{},"h":"","i":[]}`,
		`{"a":"no n, and [1.0] as it came" }`:   `{"a":"no n, and [1.0] as it came" }`,
		`{"q\"null\\":{"\u00e9":null,"x":"}"}}`: `{"q\"null\\":{"x":"}"}}`,
	} {
		got := string(withoutNulls([]byte(in)))
		if strings.HasPrefix(in, "[") {
			got, want = strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(want, " ", "")
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	object := []byte(" { \"a\" : 1 ,\n\"b\":\"x\\\"}\" , \"c\":{\"a\":[{}, \"]\"]}, \"\\u0064\":[1, [2],{}] ,\"n\":null,\"a\":-2.5e3}\n")
	if err := checkGlueJSON(object); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": "-2.5e3", "b": `"x\"}"`, "c": `{"a":[{}, "]"]}`, "d": "[1, [2],{}]", "n": "", "A": "", "": "",
	} {
		if got := string(member(object, name)); got != want {
			t.Errorf("member %q: got %s, want %s", name, got, want)
		}
	}
	var got []string
	for e := range elements(member(object, "d")) {
		got = append(got, string(e))
	}
	if want := []string{"1", "[2]", "{}"}; !slices.Equal(got, want) {
		t.Errorf("elements: got %q, want %q", got, want)
	}
	for _, empty := range []string{"[]", "[ ]", ""} {
		for e := range elements([]byte(empty)) {
			t.Errorf("element %s of %q", e, empty)
		}
	}
	for _, empty := range []string{"{}", "{ }", "", "[]", "1"} {
		if got := member([]byte(empty), "a"); got != nil {
			t.Errorf("member of %s: %s", empty, got)
		}
	}
}

func TestCheckGlueJSON(t *testing.T) {
	t.Parallel()
	nest := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }
	for body, want := range map[string]error{
		"{}": nil, " {\"a\":1}\n": nil, nest(64): nil, nest(65): errGlueDepth, strings.Repeat("[", 1<<20): errGlueDepth,
		`{"a":"` + strings.Repeat("[", 99) + `\""}`: nil,
		"": oddAnswer(""), " ": oddAnswer(""), "[]": oddAnswer(""), "null": oddAnswer(""), "{": oddAnswer(""), `{"a":`: oddAnswer(""),
		"<html>": oddAnswer(""), `{"a":1}x`: oddAnswer(""), `{"a":"`: oddAnswer(""), `{"a":"\`: oddAnswer(""), "\xef\xbb\xbf{}": oddAnswer(""),
	} {
		err := checkGlueJSON([]byte(body))
		var odd oddAnswer
		if _, wantOdd := want.(oddAnswer); wantOdd != errors.As(err, &odd) || !wantOdd && !errors.Is(err, want) { //nolint:errorlint // a table's own values
			t.Errorf("%.40q: got %v, want %v", body, err, want)
		}
	}
}

// FuzzGlueJSON: what is taken is read without a panic, and as encoding/json reads it.
func FuzzGlueJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"]"}],"CreateTime":1.5e9,"c":"x"}`))
	f.Add([]byte(` {"a" : "\\" , "a":{} } `))
	f.Fuzz(func(t *testing.T, body []byte) {
		if checkGlueJSON(body) != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if got := member(body, name); string(got) != string(value) && string(value) != "null" {
				t.Errorf("member %q: got %s, want %s", name, got, value)
			}
			if value[0] == '[' {
				checkElements(t, value)
			}
		}
		if entry := entryJSON("Table", bytes.TrimSpace(body)); !json.Valid(entry) || entry[len(entry)-1] != '\n' {
			t.Errorf("entry %s", entry)
		}
	})
}

func checkElements(t *testing.T, array []byte) {
	t.Helper()
	var want []json.RawMessage
	if err := json.Unmarshal(array, &want); err != nil {
		t.Fatal(err)
	}
	var got []json.RawMessage
	for e := range elements(array) {
		got = append(got, e)
	}
	if !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("elements of %s: got %s", array, got)
	}
}
