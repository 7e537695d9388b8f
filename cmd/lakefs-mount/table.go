package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// paint colours text for a terminal; false leaves it as it is.
type paint bool

// Colours, as a terminal is told of them (SGR).
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (on paint) in(colour, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// terminal tells whether what is printed goes to a terminal that can move its cursor.
func (p *program) terminal() bool {
	f, ok := p.stdoutFile()
	kind := p.getenv("TERM")
	return ok && kind != "" && kind != "dumb" && term.IsTerminal(int(f.Fd()))
}

// paint is for what is printed: NO_COLOR (no-color.org) is the user's word against it.
func (p *program) paint() paint { return paint(p.terminal() && p.getenv("NO_COLOR") == "") }

// textTable aligns cells by what they take on a terminal, colours left out and wide
// characters counted twice. The last cell of a row is not aligned with anything.
type textTable struct{ rows [][]string }

func (t *textTable) row(cells ...string) { t.rows = append(t.rows, cells) }

// heading is a row of the names of columns.
func (t *textTable) heading(on paint, names ...string) {
	for i, name := range names {
		names[i] = on.in(bold, name)
	}
	t.row(names...)
}

func (t *textTable) write(w io.Writer) error {
	var widths []int
	for _, cells := range t.rows {
		for i, cell := range cells[:len(cells)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for _, cells := range t.rows {
		var line strings.Builder
		for i, cell := range cells {
			line.WriteString(cell)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return fmt.Errorf("write a table: %w", err)
		}
	}
	return nil
}
