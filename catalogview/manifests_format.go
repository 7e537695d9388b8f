package catalogview

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// manifestWithFormat is a manifest with other formats, and byte for byte what it was
// besides: people wrote it.
func manifestWithFormat(raw []byte, f table.FormatChange) ([]byte, error) {
	if _, err := table.ParseObject(raw); err != nil { // what follows takes good JSON alone
		return nil, err
	}
	storage, serde := []string{"storage_descriptor"}, []string{"storage_descriptor", "serde_info"}
	for _, s := range []struct {
		in          []string
		name, value string
	}{
		{storage, "input_format", f.InputFormat},
		{storage, "output_format", f.OutputFormat},
		{serde, "serialization_library", f.Serde},
	} {
		if s.value != "" {
			raw = withMember(raw, append(s.in[:len(s.in):len(s.in)], s.name), s.value)
		}
	}
	for _, name := range sortedNames(f.Properties) {
		raw = withMember(raw, append(serde[:len(serde):len(serde)], "parameters", name), f.Properties[name])
	}
	return raw, nil
}

// withMember is an object with text as the value of the member at a path: in place of
// what it has, or behind its last. Objects on the way that are not there, or are null,
// are made.
func withMember(object []byte, path []string, text string) []byte {
	start, end := valueOf(object, path[0])
	var value []byte
	switch {
	case len(path) == 1:
		value = quoted(text)
	case start < 0 || string(object[start:end]) == jsonNull:
		value = withMember([]byte("{}"), path[1:], text)
	case object[start] != '{':
		return object // loading says what is wrong with it
	default:
		value = withMember(object[start:end:end], path[1:], text)
	}
	if start >= 0 {
		return bytes.Join([][]byte{object[:start], value, object[end:]}, nil)
	}
	return appendMember(object, quoted(path[0]), value)
}

// valueOf is where the value of an object's member lies; -1 where it has none.
func valueOf(object []byte, name string) (start, end int) {
	start = -1
	for key, value := range members(object) {
		if jsonText(key) == name {
			start = cap(object) - cap(value) // both end where object's array does
			end = start + len(value)
		}
	}
	return start, end
}

// appendMember puts a member behind the last one of an object, with the space before it
// that the first one has.
func appendMember(object, name, value []byte) []byte {
	open := skipSpace(object, 0)
	first := skipSpace(object, open+1)
	space, comma := object[open+1:first], ","
	end := bytes.LastIndexByte(object, '}')
	if object[first] == '}' {
		space, comma, end = nil, "", first
	}
	at := len(bytes.TrimRight(object[:end], " \t\r\n"))
	colon := ":"
	if bytes.ContainsRune(space, '\n') {
		colon = ": "
	}
	return bytes.Join([][]byte{object[:at], []byte(comma), space, name, []byte(colon), value, object[at:]}, nil)
}

// quoted is a text as JSON, without escapes for HTML.
func quoted(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
