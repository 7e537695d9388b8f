package gluetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// object is a JSON object in the order of its fields, whose values are the bytes
// that came. The zero value is the empty object.
type object []field

type field struct {
	name  string
	value json.RawMessage
}

// parse reads one JSON object.
func parse(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errors.New("no JSON object"), err)
	}
	var o object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		f := field{name: fmt.Sprint(name)}
		if err := dec.Decode(&f.value); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.name, err)
		}
		o = append(o, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one JSON value")
	}
	return o, nil
}

// get is a field's value; nil: absent, or null.
func (o object) get(name string) json.RawMessage {
	for _, f := range o {
		if f.name == name && string(f.value) != "null" {
			return f.value
		}
	}
	return nil
}

// text is a field that is a string; "" for any other.
func (o object) text(name string) string {
	var s string
	if json.Unmarshal(o.get(name), &s) != nil {
		return ""
	}
	return s
}

// set replaces a field where it is, or appends it.
func (o *object) set(name string, value json.RawMessage) {
	for i, f := range *o {
		if f.name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, field{name, value})
}

// add appends fields in the order in which they came; null is as good as absent.
func (o *object) add(fields object, except ...string) {
	for _, f := range fields {
		if string(f.value) != "null" && !slices.Contains(except, f.name) {
			o.set(f.name, f.value)
		}
	}
}

// raw is the object as JSON, on one line unless a value has several.
func (o object) raw() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(f.name))
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quote is a string as JSON, without escapes for HTML.
func quote(s string) json.RawMessage { return encode(s) }

// encode is a value as JSON; a value that has none is a mistake of this package.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// list is a JSON array of values.
func list(values []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(v)
	}
	b.WriteByte(']')
	return b.Bytes()
}
