package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep an entry may nest, maxSchemaDepth a Spark schema in one:
// a struct within a struct takes three levels.
const (
	maxDepth       = 64
	maxSchemaDepth = 256
)

// parseTree reads one JSON object strictly: UTF-8 without a byte order mark,
// no key twice in an object, nothing behind it. Numbers stay as written
// (json.Number). Errors say what is wrong and at which line and column.
//
// encoding/json's Unmarshal would take the last of two equal keys, match keys
// without case and mend bad UTF-8, each of which lets two readers of one entry
// see two tables.
func parseTree(raw []byte) (map[string]any, error) {
	switch {
	case len(raw) == 0:
		return nil, errors.New("it is empty (0 bytes)")
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return nil, errors.New("it begins with a byte order mark; JSON has none")
	case !utf8.Valid(raw):
		return nil, fmt.Errorf("it is not UTF-8 at %s", position(raw, badUTF8(raw)))
	}
	return parseObject(&treeParser{raw: raw, maxDepth: maxDepth, unique: true})
}

// parseLoose reads one JSON object as encoding/json does, for what a catalog or
// Spark wrote: of two equal keys the last counts, bad UTF-8 is mended.
func parseLoose(raw []byte, depth int) (map[string]any, error) {
	return parseObject(&treeParser{raw: raw, maxDepth: depth})
}

func parseObject(p *treeParser) (map[string]any, error) {
	p.dec = json.NewDecoder(bytes.NewReader(p.raw))
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	if rest := bytes.TrimLeft(p.raw[end:], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("something follows the object at %s", position(p.raw, len(p.raw)-len(rest)))
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s, not an object", typeName(v))
	}
	return obj, nil
}

type treeParser struct {
	raw      []byte
	dec      *json.Decoder
	maxDepth int
	unique   bool // no key twice in an object
}

func (p *treeParser) value(depth int) (any, error) {
	tok, err := p.token()
	if err != nil {
		return nil, err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth >= p.maxDepth {
		return nil, fmt.Errorf("it nests deeper than %d at %s", p.maxDepth, position(p.raw, int(p.dec.InputOffset())))
	}
	if delim == '{' {
		return p.object(depth)
	}
	return p.array(depth)
}

func (p *treeParser) object(depth int) (any, error) {
	obj := make(map[string]any)
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, fmt.Errorf("an object's key is no string at %s", position(p.raw, int(p.dec.InputOffset())))
		}
		if _, twice := obj[key]; twice && p.unique {
			return nil, fmt.Errorf("key %.100q is there twice, at %s", key, position(p.raw, int(p.dec.InputOffset())))
		}
		if obj[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := p.token() // }
	return obj, err
}

func (p *treeParser) array(depth int) (any, error) {
	arr := []any{}
	for p.dec.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		arr = append(arr, v)
	}
	_, err := p.token() // ]
	return arr, err
}

func (p *treeParser) token() (json.Token, error) {
	tok, err := p.dec.Token()
	if err == nil {
		return tok, nil
	}
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("it is cut: it ends within a value at %s", position(p.raw, len(p.raw)))
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("it is no JSON at %s: %w", position(p.raw, int(syntax.Offset)), err)
	}
	return nil, fmt.Errorf("it is no JSON at %s: %w", position(p.raw, int(p.dec.InputOffset())), err)
}

func badUTF8(raw []byte) int {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(raw)
}

// position names a byte offset for people.
func position(raw []byte, offset int) string {
	offset = min(max(offset, 0), len(raw))
	before := raw[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := offset - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("byte %d (line %d, column %d)", offset, line, column)
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}
