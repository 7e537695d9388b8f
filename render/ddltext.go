package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What the catalog of Athena holds at most, in bytes.
const (
	maxColumnComment = 255
	maxTableComment  = 2048
)

// sqlName quotes a name. No catalog has names with control characters, and none of
// Hive's statements can spell them.
func sqlName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// sqlText quotes a text as Hive reads it back: backslash escapes, octal ones for what has
// no letter. A semicolon is escaped too: programs that run files of statements look for
// it without knowing quotes.
func sqlText(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f || c == ';':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// shown is a text of the catalog inside a comment of the statement.
func shown(text string) string {
	const most = 200
	return strings.ReplaceAll(strconv.Quote(cutText(text, most)), ";", `\x3b`)
}

// controls says that a text holds characters that no name has.
func controls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// columnComment is a comment as the catalog takes it: a line, and not too long (rule 13).
func columnComment(text string) string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	return cutText(line, maxColumnComment)
}

// cutText is as many whole characters of a text as fit into so many bytes.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// writeProperties writes ('key'='value', …) in the order of the keys, one a line.
func writeProperties(b *strings.Builder, properties map[string]string) {
	b.WriteString("(")
	for i, k := range slices.Sorted(maps.Keys(properties)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "\n  %s=%s", sqlText(k), sqlText(properties[k]))
	}
	b.WriteString("\n)")
}
