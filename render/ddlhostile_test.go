package render

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// hostile are texts that would end what they stand in, were they not quoted.
func hostile() []string {
	return []string{
		"'", "`", `\`, `\'`, `'; DROP TABLE x; --`, "`; DROP TABLE x; --", "--", "/* */", "*/", `\\'`, `"`, "a`b``c", "it's\\", "; --",
		"' COMMENT 'x", "`) LOCATION 's3://evil/", `\047`, "\u2028", "%s%d", "é'ü", "(", ")", ",", ":", "<", ">", "int>,`x`:", ".",
	}
}

// hostileTable has the text wherever an entry may have one.
func hostileTable(text string) *table.Table {
	return &table.Table{
		Database: "d" + text, Name: "t" + text, Kind: table.Hive, Format: "csv", Serde: lazySerde, Location: "s3://b/" + text,
		Description: text,
		Columns: []table.Column{
			{Name: "c" + text, Type: "string", Comment: text},
			{Name: "s", Type: "struct<`f`:int>"},
			{Name: "lost" + text, Type: "interval day to second", Comment: text},
			{Name: "last", Type: "map<string,struct<`a`:decimal(4,2)>>"},
		},
		Keys:       []table.Column{{Name: "k" + text, Type: "date", Comment: text}},
		Parameters: map[string]string{"p" + text: text},
		Storage: table.Storage{
			SerdeProperties: map[string]string{"s" + text: text}, Buckets: 3, BucketColumns: []string{"c" + text}, SkewedColumns: []string{text},
		},
		Readable: true,
	}
}

// hiveTokens reads a statement by the rules of Hive's lexer: comments go to the end of the
// line, a string has backslash escapes, in a name two backquotes stand for one. The words
// and signs are returned as they are, with a ` and a ' in the place of names and strings.
func hiveTokens(t *testing.T, sql string) (skeleton, names, texts []string) {
	t.Helper()
	for rest := sql; rest != ""; {
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "--"):
			_, rest, _ = strings.Cut(rest, "\n")
		case c == ' ' || c == '\n':
			rest = rest[1:]
		case c == '\'':
			text, n := hiveString(t, rest)
			texts, skeleton, rest = append(texts, text), append(skeleton, "'"), rest[n:]
		case c == '`':
			name, n := hiveName(t, rest)
			names, skeleton, rest = append(names, name), append(skeleton, "`"), rest[n:]
		default:
			n := strings.IndexFunc(rest, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') })
			if n < 0 {
				n = len(rest)
			}
			n = max(n, 1)
			skeleton, rest = append(skeleton, rest[:n]), rest[n:]
		}
	}
	return skeleton, names, texts
}

func hiveString(t *testing.T, s string) (text string, n int) {
	t.Helper()
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\'':
			return b.String(), i + 1
		case s[i] == '\n':
			t.Fatalf("a string goes on in the next line: %.80q", s)
		case s[i] != '\\':
			b.WriteByte(s[i])
		case i+3 < len(s) && (s[i+1] == '0' || s[i+1] == '1'):
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
		default:
			i++
			b.WriteString(strings.NewReplacer("n", "\n", "r", "\r", "t", "\t").Replace(s[i : i+1]))
		}
	}
	t.Fatalf("a string does not end: %.80q", s)
	return "", 0
}

func hiveName(t *testing.T, s string) (name string, n int) {
	t.Helper()
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '`':
		case i+1 < len(s) && s[i+1] == '`':
			i++
		default:
			return strings.ReplaceAll(s[1:i], "``", "`"), i + 1
		}
	}
	t.Fatalf("a name does not end: %.80q", s)
	return "", 0
}

// checkHostile makes sure that a text changes the names and strings of a statement, and
// nothing else of it.
func checkHostile(t *testing.T, text string) {
	t.Helper()
	sql, err := SchemaSQL(hostileTable(text))
	if err != nil {
		if unspellable(text) == "" {
			t.Errorf("%q: %v", text, err)
		}
		return
	}
	if unspellable(text) != "" {
		t.Fatalf("%q is a name in\n%s", text, sql)
	}
	plain, err := SchemaSQL(hostileTable("plain"))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := hiveTokens(t, plain)
	got, names, texts := hiveTokens(t, sql)
	if !slices.Equal(got, want) {
		t.Errorf("%q changes the statement\n%q to\n%q", text, want, got)
	}
	if want := []string{"d" + text, "t" + text, "c" + text, "s", "f", "lost" + text, "last", "a", "k" + text, "c" + text}; !slices.Equal(names, want) {
		t.Errorf("names of %q are %q, want %q", text, names, want)
	}
	comment := columnComment(text)
	if want := []string{comment, comment, cutText(text, maxTableComment), comment, lazySerde, "s" + text, text, "s3://b/" + text, "p" + text, text}; !slices.Equal(texts, want) {
		t.Errorf("texts of %q are %q, want %q", text, texts, want)
	}
	for line := range strings.Lines(sql) {
		if _, note, ok := strings.Cut(line, "-- "); ok && strings.HasPrefix(strings.TrimSpace(line), "--") && strings.Contains(note, ";") {
			t.Errorf("a comment has a semicolon: %q", line)
		}
	}
}

func TestHostileTextsStayInTheirQuotes(t *testing.T) {
	for _, text := range append(hostile(), "a\nb", "\r", "\x00", "\t", "\x1b[31m") {
		checkHostile(t, text)
	}
}

func FuzzSchemaSQL(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || !utf8.ValidString(text) || len(text) > 10_000 {
			t.Skip()
		}
		checkHostile(t, text)
	})
}

// Comments of columns are what a catalog takes (rule 13).
func TestRule13CommentsOfSchemas(t *testing.T) {
	long := strings.Repeat("é", 200)
	if got := columnComment("a\r\nb\u0085c " + long); got != "a  b c "+strings.Repeat("é", 124) {
		t.Errorf("a comment of %d bytes: %q", len(got), got)
	}
}
