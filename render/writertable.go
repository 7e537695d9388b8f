package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	alignRows  = 1000 // whose widths are those of the columns; later rows may overflow
	alignWidth = 64   // columns of a terminal that one value takes
	nullText   = "NULL"
)

// aligned writes a table for people: numbers to the right, all else to the left, values
// longer than a column's width may be cut.
type aligned struct {
	buffer
	names  []string
	right  []bool
	widths []int
	waits  [][]byte // texts of the rows that wait for the widths
	begun  bool
}

func newAligned(w io.Writer, columns []*column) *aligned {
	a := &aligned{buffer: buffer{w: w}}
	for _, c := range columns {
		a.names = append(a.names, string(appendPlain(nil, []byte(c.name))))
		right := false
		if c.typ != nil {
			switch c.typ.kind {
			case integer, float, decimal:
				right = true
			}
		}
		a.right = append(a.right, right)
	}
	return a
}

func (a *aligned) rows(columns []*column, n int) error {
	for i := range n {
		row := make([][]byte, len(columns))
		for k, c := range columns {
			row[k] = shortText(c.text(i))
		}
		if a.begun {
			a.line(row)
			if err := a.full(); err != nil {
				return err
			}
			continue
		}
		for _, text := range row {
			a.waits = append(a.waits, bytes.Clone(text))
		}
		if len(a.waits) >= alignRows*len(columns) {
			a.begin()
		}
	}
	return nil
}

// flush writes rows that wait for widths only at the end: there are more to come, or
// none.
func (a *aligned) flush(end bool) error {
	if end && !a.begun {
		a.begin()
	}
	if !a.begun {
		return nil
	}
	return a.buffer.flush(end)
}

// begin writes the names and the rows that waited.
func (a *aligned) begin() {
	a.begun = true
	a.widths = make([]int, len(a.names))
	head, rule := make([][]byte, len(a.names)), make([][]byte, len(a.names))
	for k, name := range a.names {
		head[k] = shortText([]byte(name))
		a.widths[k] = widthOnScreen(head[k])
	}
	for i, text := range a.waits {
		k := i % len(a.names)
		a.widths[k] = max(a.widths[k], widthOnScreen(orNull(text)))
	}
	for k := range rule {
		rule[k] = bytes.Repeat([]byte{'-'}, a.widths[k])
	}
	a.line(head)
	a.line(rule)
	for ; len(a.waits) > 0; a.waits = a.waits[len(a.names):] {
		a.line(a.waits[:len(a.names)])
	}
}

// line writes a row.
func (a *aligned) line(row [][]byte) {
	out := a.held
	for k, text := range row {
		if k > 0 {
			out = append(out, ' ', ' ')
		}
		text = orNull(text)
		padding := max(a.widths[k]-widthOnScreen(text), 0)
		if a.right[k] {
			out = append(append(out, bytes.Repeat([]byte{' '}, padding)...), text...)
			continue
		}
		out = append(out, text...)
		if k < len(row)-1 {
			out = append(out, bytes.Repeat([]byte{' '}, padding)...)
		}
	}
	a.held = append(out, '\n')
}

func orNull(text []byte) []byte {
	if len(text) == 0 {
		return []byte(nullText)
	}
	return text
}

// shortText is a text that cannot drive a terminal, cut where it is wider than a column may
// be.
func shortText(text []byte) []byte {
	if len(text) <= alignWidth && plainLength(text) == len(text) {
		return text
	}
	const most = 32 * alignWidth // bytes that are looked at
	whole := len(text) <= most
	if !whole {
		text = text[:most]
		for !utf8.FullRune(text[lastRune(text):]) {
			text = text[:lastRune(text)]
		}
	}
	safe := forTerminal(text)
	if whole && ansi.StringWidth(safe) <= alignWidth {
		return []byte(safe)
	}
	return []byte(ansi.Truncate(safe, alignWidth-1, "") + "…")
}

// lastRune is where the last character of text begins, which may not be whole.
func lastRune(text []byte) int {
	at := len(text) - 1
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// forTerminal escapes what is not seen, or changes how what is beside it is seen: controls
// of both kinds, marks and overrides of a direction, and characters that take no room.
func forTerminal(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// widthOnScreen is how many columns of a terminal a text takes.
func widthOnScreen(text []byte) int {
	if plainLength(text) == len(text) {
		return len(text)
	}
	return ansi.StringWidth(string(text))
}
