package format

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

const (
	// jsonLines is how many lines of a JSON file are looked at, of those that are in
	// the first window.
	jsonLines = 16
	bom       = "\xef\xbb\xbf"
)

// checkJSON wants the first lines to be a JSON object each, as Hive and Spark read
// them: or an array of rows, as Spark does. Blank lines are let be. Of a line that is
// longer than the window, its beginning is looked at.
func checkJSON(r io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	c := head(r, min(size, window))
	if c.byte(); c.err != nil {
		return c.err
	}
	text := c.held
	var at int64
	if bytes.HasPrefix(text, []byte(bom)) {
		at, text = int64(len(bom)), text[len(bom):]
	}
	for line, seen := 1, 0; len(text) > 0 && seen < jsonLines; line++ {
		n, whole := lineEnd(text)
		rows, err := checkLine(text[:n], at, line, whole || at+int64(n) == size)
		if err != nil {
			return err
		}
		if rows {
			seen++
		}
		if !whole {
			break
		}
		n += lineBreak(text[n:])
		at, text = at+int64(n), text[n:]
	}
	return nil
}

// lineEnd is where the first line of text ends: \n, \r\n and \r end one, as in
// Hadoop. whole: it does.
func lineEnd(text []byte) (n int, whole bool) {
	for i, b := range text {
		if b == '\n' || b == '\r' {
			return i, true
		}
	}
	return len(text), false
}

// lineBreak is the length of the line's end that text begins with.
func lineBreak(text []byte) int {
	if len(text) > 1 && text[0] == '\r' && text[1] == '\n' {
		return 2
	}
	return 1
}

// checkLine looks at a line, the first byte of which is at offset at. whole: the line
// goes on no further. rows: it is not blank.
func checkLine(text []byte, at int64, line int, whole bool) (rows bool, err error) {
	const hint = "one object a line (jq -c . makes that of any JSON)"
	var scan jsonScan
	for i, b := range text {
		if !rows && !jsonSpace(b) {
			if rows = true; b != '{' && b != '[' {
				return true, flawf("byte %d, line %d: it begins with %q, not with '{': %s", at+int64(i), line, text[i:min(len(text), i+16)], hint)
			}
		}
		if scan.push(b); scan.reason != "" {
			return true, flawf("byte %d, line %d: %s: %s", at+int64(i), line, scan.reason, hint)
		}
	}
	if rows && whole && !scan.whole() {
		return true, flawf("byte %d, line %d: it ends in the middle of a value: cut, or not %s", at+int64(len(text)), line, hint)
	}
	return rows, nil
}

// wordByte: part of a number or a name.
func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '-' || b == '.'
}

func jsonSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// jsonDepth is how deep values may nest: as in Jackson, which Hive and Spark read with.
const jsonDepth = 1000

// What jsonScan waits for.
const (
	jsonValue    = iota
	jsonFirst    // a value, or the array's end
	jsonKey      // a key
	jsonFirstKey // a key, or the object's end
	jsonColon    // after a key
	jsonAfter    // a comma or an end
	jsonString   // the end of a string
	jsonEscape   // what is escaped in it
	jsonWord     // the end of a number or a name
)

// jsonWordBytes is how much is kept of a number or a name.
const jsonWordBytes = 48

// jsonScan reads one JSON value, a byte a time, in memory that is bounded by
// jsonDepth. It is as lenient as Spark is without being asked: quotes may be single,
// and NaN and Infinity are numbers. Its zero value waits for the value.
type jsonScan struct {
	state  int
	open   []byte // '{' and '[' that are
	quote  byte   // that ends the string
	key    bool   // the string is one
	word   []byte
	reason string // what is wrong with the last byte; "" if nothing is
}

// whole reports whether what was pushed is a value.
func (s *jsonScan) whole() bool {
	if s.reason == "" && s.state == jsonWord {
		s.endWord()
	}
	return s.reason == "" && s.state == jsonAfter && len(s.open) == 0
}

func (s *jsonScan) push(b byte) {
	if s.state == jsonWord {
		if wordByte(b) {
			s.addWord(b)
			return
		}
		if s.endWord(); s.reason != "" {
			return
		}
	}
	switch {
	case s.state == jsonEscape:
		s.state = jsonString
	case s.state == jsonString:
		s.pushString(b)
	case jsonSpace(b):
	case s.state == jsonColon:
		if s.state = jsonValue; b != ':' {
			s.unexpected(b, "a colon")
		}
	case s.state == jsonAfter:
		s.pushAfter(b)
	case (b == '}' && s.state == jsonFirstKey) || (b == ']' && s.state == jsonFirst):
		s.close()
	case b == '"' || b == '\'':
		s.key = s.state == jsonKey || s.state == jsonFirstKey
		s.state, s.quote = jsonString, b
	case s.state == jsonKey || s.state == jsonFirstKey:
		s.unexpected(b, "a key in quotes")
	default:
		s.pushValue(b)
	}
}

func (s *jsonScan) pushString(b byte) {
	switch {
	case b == '\\':
		s.state = jsonEscape
	case b == s.quote && s.key:
		s.state = jsonColon
	case b == s.quote:
		s.state = jsonAfter
	}
}

func (s *jsonScan) pushAfter(b byte) {
	inside := byte(0)
	if len(s.open) > 0 {
		inside = s.open[len(s.open)-1]
	}
	switch {
	case b == ',' && inside == '{':
		s.state = jsonKey
	case b == ',' && inside == '[':
		s.state = jsonValue
	case b == '}' && inside == '{', b == ']' && inside == '[':
		s.close()
	case inside == 0:
		s.unexpected(b, "the end of the line")
	default:
		s.unexpected(b, "a comma, or the end of what began with "+string(inside))
	}
}

func (s *jsonScan) pushValue(b byte) {
	switch {
	case (b == '{' || b == '[') && len(s.open) >= jsonDepth:
		s.reason = "nested deeper than " + strconv.Itoa(jsonDepth)
	case b == '{':
		s.open, s.state = append(s.open, b), jsonFirstKey
	case b == '[':
		s.open, s.state = append(s.open, b), jsonFirst
	case wordByte(b):
		s.state, s.word = jsonWord, s.word[:0]
		s.addWord(b)
	default:
		s.unexpected(b, "a value")
	}
}

func (s *jsonScan) close() { s.open, s.state = s.open[:len(s.open)-1], jsonAfter }

// addWord keeps what can be part of a name; of a longer number, its beginning.
func (s *jsonScan) addWord(b byte) {
	if len(s.word) < jsonWordBytes {
		s.word = append(s.word, b)
	} else if !strings.ContainsRune("0123456789.eE+-", rune(b)) {
		s.unexpected(b, "a number")
	}
}

func (s *jsonScan) endWord() {
	s.state = jsonAfter
	switch word := string(s.word); word {
	case "true", "false", "null", "NaN", "Infinity", "+Infinity", "-Infinity", "INF", "+INF", "-INF":
	default:
		if len(word) == jsonWordBytes && strings.Trim(word, "0123456789.eE+-") == "" {
			return
		}
		_, err := strconv.ParseFloat(word, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || !strings.ContainsAny(word[:1], "+-.0123456789") {
			s.reason = strconv.Quote(word) + " before it is no value"
		}
	}
}

func (s *jsonScan) unexpected(b byte, want string) {
	s.reason = strconv.QuoteRune(rune(b)) + " where " + want + " is expected"
}
