package fs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Names that tools give to files which are no data yet, or never will be. In a
// pattern "*" stands for one or more bytes, "?" for a letter, a digit or "_", "#" for
// a hexadecimal digit, one of which at least is a letter (a date is none), and what
// follows "\" for itself. PATTERN=NAME holds only beside a file of that NAME, where
// "*" is what the first of them was in PATTERN.
//
// As traced: sed -i; perl -i; zip; Python's tempfile; emacs; rsync; patch, and its
// rejects; gawk -i inplace; many a program's own; git; the AWS CLI; DuckDB over an old
// file; vim, which may copy a file beside it before it writes; mktemp; downloads; go
// build; git's packs, its probe for symbolic links, and its stash.
var (
	DefaultTemporaryNames = []string{ //nolint:gochecknoglobals // a constant table
		"sed??????", "XX??????", "zi??????", "tmp????????", "tmp??????", ".*.??????", "*.o??????", "*.r??????=*", "*.gawk.??????",
		"*.tmp", "tmp_obj_??????", "*.########", "tmp_*=*",
		"*~=*", "tmp.??????????", "*.part", "*.partial", "*-go-tmp-umask",
		"tmp_idx_??????", "tmp_pack_??????", "pack-*.keep", "packed-refs.new", "t??????=HEAD",
		"index.stash.*", ".tmp-*-pack-*",
	}
	// DefaultLocalNames: Hadoop's checksums; vim's swap files and its probe; emacs'
	// locks; git's and others' locks.
	DefaultLocalNames = []string{".*.crc", ".*.sw?", ".*.sw?x", "4913", `.\#*`, "*.lock"} //nolint:gochecknoglobals // a constant table
	// DefaultBackupNames: vim, emacs; Python's fileinput; patch.
	DefaultBackupNames = []string{"*~", "*.bak", "*.orig"} //nolint:gochecknoglobals // a constant table
)

var errPattern = errors.New("no pattern of a name")

// Patterns tell names by patterns such as [DefaultTemporaryNames]. The zero value
// matches none.
type Patterns struct{ list []pattern }

type pattern struct {
	// name matches bytes that are written as runes ([bytewise]); hex has those of its
	// submatches that "#" stands for, and star is the one of the first "*", 0: none.
	name   *regexp.Regexp
	hex    []int
	star   int
	beside string // "": alone; else what must be there, "*" standing for what star matched
}

// nameMax is the most bytes of a name.
const nameMax = 255

// ParsePatterns compiles a list. An empty pattern or NAME, one with a "/" or longer
// than a name can be, a "\" at the end of PATTERN, and a NAME that needs a "*" which
// PATTERN has not are errors.
func ParsePatterns(list []string) (Patterns, error) {
	var p Patterns
	for _, text := range list {
		one, ok := compile(text)
		if !ok {
			return Patterns{}, fmt.Errorf("%q: %w", text, errPattern)
		}
		p.list = append(p.list, one)
	}
	return p, nil
}

func compile(text string) (p pattern, ok bool) {
	one, beside, depends := cut(text)
	if one == "" || depends && beside == "" || strings.Contains(text, "/") || max(len(one), len(beside)) > nameMax {
		return pattern{}, false
	}
	p.beside = beside
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	groups, literal := 0, false
	for _, c := range bytewise(one) {
		switch {
		case literal:
			literal = false
			b.WriteString(regexp.QuoteMeta(string(c)))
		case c == '\\':
			literal = true
		case c == '*':
			groups++
			if p.star == 0 {
				p.star = groups
			}
			b.WriteString(`(.+)`)
		case c == '?':
			b.WriteString(`[0-9A-Za-z_]`)
		case c == '#':
			groups++
			p.hex = append(p.hex, groups)
			b.WriteString(`([0-9A-Fa-f])`)
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteString(`\z`)
	if literal || strings.Contains(beside, "*") && p.star == 0 {
		return pattern{}, false
	}
	p.name = regexp.MustCompile(b.String())
	return p, true
}

// cut parts text at the first "=" that does not stand for itself.
func cut(text string) (one, beside string, depends bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '=':
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// bytewise is s with a rune for each byte, so that any name can be matched: not all
// are UTF-8, and a pattern's bytes stand for themselves.
func bytewise(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// bytesOf is the inverse of bytewise.
func bytesOf(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}

// hasLetter reports whether one of the digits that "#" stands for is a letter.
func (p pattern) hasLetter(submatches []string) bool {
	return len(p.hex) == 0 || slices.ContainsFunc(p.hex, func(i int) bool { return submatches[i] > "9" })
}

// Match reports whether base is such a name; there tells whether a file of a name is
// in the same directory, and is asked only where that matters.
func (p Patterns) Match(base string, there func(base string) bool) bool {
	if len(p.list) == 0 {
		return false
	}
	base = bytewise(base)
	for _, one := range p.list {
		m := one.name.FindStringSubmatch(base)
		if m == nil || !one.hasLetter(m) {
			continue
		}
		if one.beside == "" {
			return true
		}
		beside := one.beside
		if one.star > 0 {
			beside = strings.ReplaceAll(beside, "*", bytesOf(m[one.star]))
		}
		if beside != "." && beside != ".." && there(beside) {
			return true
		}
	}
	return false
}

// inStagingTree returns the path of the staging tree that path is, or lies in: a
// transaction is one; ok is false if it is in none. Databases and tables may be called
// as they like.
func inStagingTree(path string) (root string, ok bool) {
	at := 0
	for i := 0; ; i++ {
		end := strings.IndexByte(path[at:], '/')
		last := end < 0
		if last {
			end = len(path) - at
		}
		if i == 2 && path[at:at+end] == controlName {
			return transactionOf(path)
		}
		if i >= 2 && table.StagingTree(path[at:at+end]) {
			return path[:at+end], true
		}
		if last {
			return "", false
		}
		at += end + 1
	}
}

// belowStagingTree reports whether path lies in a staging tree, and is not its top.
func belowStagingTree(path string) bool {
	root, ok := inStagingTree(path)
	return ok && root != path
}

// holdOf says why a new file at path is not to be published when it is closed.
func (f *FS) holdOf(path string) staging.Hold {
	dir, base := parent(path)
	switch {
	case belowStagingTree(path), f.LocalNames.Match(base, func(string) bool { return true }):
		return staging.Local
	case f.TemporaryNames.Match(base, func(beside string) bool { return f.isThere(child(dir, beside)) }):
		return staging.Temporary
	}
	return staging.Unheld
}

// isThere reports whether a file is at path, published or not.
func (f *FS) isThere(path string) bool {
	if s, _, _ := f.names.stagedAt(path, 0); s != nil {
		return true
	}
	ctx, cancel := f.background()
	defer cancel()
	_, err := f.lookup(ctx, path)
	return err == nil
}
