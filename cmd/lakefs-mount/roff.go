package main

import (
	"fmt"
	"strings"
)

// roff writes a page of the man macros. Text is escaped: what it says is what is shown.
type roff struct{ b strings.Builder }

// title begins a page. date may be "".
func (r *roff) title(name, section, date, title string) {
	fmt.Fprintf(&r.b, ".TH %s %s %s %s %s\n", quotedRoff(strings.ToUpper(name)), quotedRoff(section),
		quotedRoff(date), quotedRoff("lakefs-mount"), quotedRoff(title))
	r.b.WriteString(".nr HY 0\n.nh\n.ad l\n") // words and flags are copied from pages: not broken, not spaced out
}

func (r *roff) section(name string) { fmt.Fprintf(&r.b, ".SH %s\n", quotedRoff(name)) }

// item begins a described thing: bold text, and what stands for a value.
func (r *roff) item(bold, value string) {
	fmt.Fprintf(&r.b, ".TP\n\\fB%s\\fR", escapedRoff(bold))
	if value != "" {
		fmt.Fprintf(&r.b, "\\fI%s\\fR", escapedRoff(value))
	}
	r.b.WriteString("\n")
}

// line writes one line of text into the paragraph.
func (r *roff) line(text string) {
	r.b.WriteString(startOfLine(escapedRoff(text)) + "\n")
}

func (r *roff) paragraph() { r.b.WriteString(".PP\n") }

func (r *roff) lineBreak() { r.b.WriteString(".br\n") }

// text writes what a command's help says: paragraphs, each as one line, and lines that
// begin with spaces as they are.
func (r *roff) text(text string) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		verbatim, end := indented(lines[i]), i+1
		for end < len(lines) && (indented(lines[end]) == verbatim && lines[end] != "" ||
			verbatim && lines[end] == "" && end+1 < len(lines) && indented(lines[end+1])) {
			end++
		}
		if i > 0 {
			r.paragraph()
		}
		if verbatim {
			r.verbatim(lines[i:end])
		} else {
			r.line(strings.Join(lines[i:end], " "))
		}
		for i = end; i < len(lines) && lines[i] == ""; {
			i++
		}
	}
}

func (r *roff) verbatim(lines []string) {
	r.b.WriteString(".RS 4\n.EX\n")
	for _, line := range lines {
		r.line(strings.TrimPrefix(line, "    "))
	}
	r.b.WriteString(".EE\n.RE\n")
}

func indented(line string) bool { return strings.HasPrefix(line, "  ") }

func (r *roff) String() string { return r.b.String() }

// quotedRoff is an argument of a macro.
func quotedRoff(text string) string { return `"` + escapedRoff(text) + `"` }

// escapedRoff is text of which nothing is a request, an escape or a sign that is shown as
// another: flags and commands are to be copied from the page.
func escapedRoff(text string) string {
	var b strings.Builder
	for i, c := range text {
		switch {
		case c == ',' && i+1 < len(text) && text[i+1] != ' ':
			b.WriteString(`,\:`) // a long list may be broken there
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '"':
			b.WriteString(`\(dq`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c > 126:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// startOfLine keeps a line from being a request.
func startOfLine(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
