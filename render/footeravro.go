package render

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/format"
)

// A schema is indented up to so many bytes and levels: both bound what that costs.
const (
	avroIndentBytes = 256 << 10
	avroIndentDepth = 32
)

// avro shows the header of an Avro file: what of its metadata is text as text, the schema
// as it is, for it is JSON.
func (f *footer) avro(src io.ReaderAt) error {
	h, err := format.ReadAvroHeader(src, f.size)
	if err != nil {
		return err
	}
	f.out = append(f.out[:0], '{')
	f.top("format", `"avro"`)
	codec, schema := "null", []byte(nil)
	for _, m := range h.Metadata {
		switch m.Key {
		case "avro.codec":
			codec = string(m.Value)
		case "avro.schema":
			schema = m.Value
		}
	}
	f.top("codec", "")
	f.out = appendJSONString(f.out, []byte(codec))
	f.top("size", strconv.FormatInt(f.size, 10))
	f.top("header_length", strconv.FormatInt(h.Length, 10))
	f.top("sync_marker", `"`+hex.EncodeToString(h.Sync[:])+`"`)
	if h.FirstRows > 0 {
		f.top("first_block", `{"rows": `+strconv.FormatInt(h.FirstRows, 10)+`, "size": `+strconv.FormatInt(h.FirstBytes, 10)+`}`)
	}
	f.top("metadata", "[")
	f.avroMetadata(h.Metadata)
	f.top("schema", "")
	if err := f.avroSchema(schema); err != nil {
		return err
	}
	f.add("\n}\n")
	return nil
}

// avroMetadata shows what is not the format's own. A value that is no text is in base64,
// under another name.
func (f *footer) avroMetadata(pairs []format.AvroMetadata) {
	n := 0
	for _, m := range pairs {
		if m.Key == "avro.codec" || m.Key == "avro.schema" {
			continue
		}
		if n++; n > 1 {
			f.add(",")
		}
		f.line(2)
		f.add(`{"key": `)
		f.out = appendJSONString(f.out, []byte(m.Key))
		if utf8.Valid(m.Value) {
			f.add(`, "value": `)
			f.out = appendJSONString(f.out, m.Value)
		} else {
			f.add(`, "value_base64": "`)
			f.out = append(base64.StdEncoding.AppendEncode(f.out, m.Value), '"')
		}
		f.add("}")
	}
	if n > 0 {
		f.line(1)
	}
	f.add("]")
}

func (f *footer) avroSchema(schema []byte) error {
	if !json.Valid(schema) || !utf8.Valid(schema) {
		return &Error{Reason: "its header has no schema that is JSON", Remedy: remedyDamaged}
	}
	var b bytes.Buffer
	var err error
	if len(schema) <= avroIndentBytes && jsonDepth(schema) <= avroIndentDepth {
		err = json.Indent(&b, schema, "  ", "  ")
	} else {
		err = json.Compact(&b, schema)
	}
	f.out = append(f.out, b.Bytes()...)
	return err
}

// jsonDepth is how deep arrays and objects of valid JSON nest.
func jsonDepth(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
