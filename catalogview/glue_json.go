package catalogview

import (
	"bytes"
	"encoding/json"
	"iter"
)

// maxGlueDepth is how deep an answer may nest.
const maxGlueDepth = 64

// checkGlueJSON says why a body is no JSON object that may be used; nil if it is
// one. What follows in this file takes such bodies, and parts of them, alone.
func checkGlueJSON(body []byte) error {
	if tooDeep(body) {
		return errGlueDepth
	}
	i := skipSpace(body, 0)
	if !json.Valid(body) || body[i] != '{' {
		return oddAnswer("not an answer of the catalog: the body is no JSON object: " + printable(string(body[i:min(len(body), i+60)])))
	}
	return nil
}

// tooDeep says that a body, JSON or not, nests deeper than it may.
func tooDeep(body []byte) bool {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = skipString(body, i) - 1
		case '{', '[':
			if depth++; depth > maxGlueDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns where a string that begins at i ends; the end of b if it does not.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns where a value that begins at i ends.
func skipValue(b []byte, i int) int {
	if b[i] == '"' {
		return skipString(b, i)
	}
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']', ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i // the end of a number or a word
			}
			if b[i] == '}' || b[i] == ']' {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	return len(b)
}

// member returns the value of an object's member, as it came; nil for one that is
// not there or null. Names compare exactly.
func member(object []byte, name string) []byte {
	var found []byte
	for key, value := range members(object) {
		if jsonText(key) == name {
			found = value // the last of several, as everybody takes it
		}
	}
	if string(found) == jsonNull {
		return nil
	}
	return found
}

const jsonNull = "null"

// members yields the members of an object, names with their quotes, as they came;
// none of anything else.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(object) == 0 || object[0] != '{' && object[skipSpace(object, 0)] != '{' {
			return
		}
		for i := skipSpace(object, skipSpace(object, 0)+1); object[i] == '"'; {
			end := skipString(object, i)
			value := skipSpace(object, skipSpace(object, end)+1) // behind the colon
			after := skipValue(object, value)
			if !yield(object[i:end], object[value:after]) {
				return
			}
			if i = skipSpace(object, after); object[i] == ',' {
				i = skipSpace(object, i+1)
			}
		}
	}
}

// elements yields the elements of an array, as they came.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) == 0 {
			return
		}
		for i := skipSpace(array, 1); array[i] != ']'; {
			after := skipValue(array, i)
			if !yield(array[i:after]) {
				return
			}
			if i = skipSpace(array, after); array[i] == ',' {
				i = skipSpace(array, i+1)
			}
		}
	}
}

// jsonText is the text of a JSON string; "" for anything else.
func jsonText(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// jsonTexts is the text of each string of an array; false where there is anything else.
func jsonTexts(array []byte) ([]string, bool) {
	if len(array) == 0 || array[0] != '[' {
		return nil, false
	}
	texts := []string{}
	for e := range elements(array) {
		if e[0] != '"' {
			return nil, false
		}
		texts = append(texts, jsonText(e))
	}
	return texts, true
}

// withoutNulls returns a value without those members of its objects, however deep,
// that are null: emulators write them for what the service leaves out. Elements of
// arrays stay, for their places count.
func withoutNulls(value []byte) []byte {
	if !bytes.Contains(value, []byte(jsonNull)) {
		return value
	}
	var b bytes.Buffer
	b.Grow(len(value))
	copyWithoutNulls(&b, value)
	return b.Bytes()
}

func copyWithoutNulls(b *bytes.Buffer, value []byte) {
	next := ""
	switch value[0] {
	case '{':
		b.WriteByte('{')
		for name, v := range members(value) {
			if string(v) == jsonNull {
				continue
			}
			b.WriteString(next)
			b.Write(name)
			b.WriteByte(':')
			copyWithoutNulls(b, v)
			next = ","
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for v := range elements(value) {
			b.WriteString(next)
			copyWithoutNulls(b, v)
			next = ","
		}
		b.WriteByte(']')
	default:
		b.Write(value)
	}
}

// entryJSON is an entry as people see it: an object of one member, whose value is
// as it came but for the times and what is null, indented.
func entryJSON(name string, value []byte) []byte {
	var b bytes.Buffer
	b.Grow(2 * len(value))
	flat := append([]byte(`{"`+name+`":`), readableTimes(withoutNulls(value))...)
	if err := json.Indent(&b, append(flat, '}'), "", "  "); err != nil {
		panic(err) // checkGlueJSON took it
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// lineJSON is an entry as one line, appended to b, without a newline.
func lineJSON(b *bytes.Buffer, value []byte) {
	if err := json.Compact(b, readableTimes(withoutNulls(value))); err != nil {
		panic(err) // checkGlueJSON took it
	}
}
