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
// a hexadecimal digit, one of which at least is a letter (a date is none). "*" comes
// first where there are several. PATTERN=NAME holds only beside a file of that NAME,
// where "*" is what it was in PATTERN.
//
// As traced: sed -i; perl -i; zip; Python's tempfile; rsync; patch; gawk -i inplace;
// many a program's own; git; the AWS CLI; DuckDB over an old file.
var (
	DefaultTemporaryNames = []string{
		"sed??????", "XX??????", "zi??????", "tmp????????", ".*.??????", "*.o??????", "*.gawk.??????",
		"*.tmp", "tmp_obj_??????", "*.########", "tmp_*=*",
	}
	// DefaultLocalNames: Hadoop's checksums; vim's swap files and its probe; emacs'
	// locks; git's and others' locks.
	DefaultLocalNames = []string{".*.crc", ".*.sw?", ".*.sw?x", "4913", ".#*", "*.lock"}
	// DefaultBackupNames: vim, emacs; Python's fileinput.
	DefaultBackupNames = []string{"*~", "*.bak"}
)

var errPattern = errors.New("no pattern of a name")

// Patterns tell names by patterns such as [DefaultTemporaryNames]. The zero value
// matches none.
type Patterns struct{ list []pattern }

type pattern struct {
	name   *regexp.Regexp
	// lettered has the places of "#", counted from the end of the name.
	lettered []int
	beside string // "": alone; else what must be there, "*" standing for the first submatch
}

// ParsePatterns compiles a list. An empty pattern, one with a "/" and a NAME that
// needs a "*" which PATTERN has not are errors.
func ParsePatterns(list []string) (Patterns, error) {
	var p Patterns
	for _, text := range list {
		one, beside, _ := strings.Cut(text, "=")
		if one == "" || strings.Contains(text, "/") || strings.Contains(beside, "*") && !strings.Contains(one, "*") {
			return Patterns{}, fmt.Errorf("%q: %w", text, errPattern)
		}
		p.list = append(p.list, pattern{name: compileName(one), lettered: lettered(one), beside: beside})
	}
	return p, nil
}

func compileName(text string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, c := range []byte(text) {
		switch c {
		case '*':
			b.WriteString(`(.+)`)
		case '?':
			b.WriteString(`[0-9A-Za-z_]`)
		case '#':
			b.WriteString(`[0-9A-Fa-f]`)
		default:
			b.WriteString(regexp.QuoteMeta(string(rune(c))))
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// lettered returns the places of "#" in a pattern, counted from its end.
func lettered(text string) (places []int) {
	for i, c := range []byte(text) {
		if c == '#' {
			places = append(places, len(text)-i)
		}
	}
	return places
}

// hasLetter reports whether one of the places of "#" in base is a letter.
func (p pattern) hasLetter(base string) bool {
	return len(p.lettered) == 0 || slices.ContainsFunc(p.lettered, func(fromEnd int) bool { return base[len(base)-fromEnd] > '9' })
}

// Match reports whether base is such a name; there tells whether a file of a name is
// in the same directory, and is asked only where that matters.
func (p Patterns) Match(base string, there func(base string) bool) bool {
	for _, one := range p.list {
		m := one.name.FindStringSubmatch(base)
		if m == nil || !one.hasLetter(base) {
			continue
		}
		if one.beside == "" {
			return true
		}
		beside := one.beside
		if len(m) > 1 {
			beside = strings.ReplaceAll(beside, "*", m[1])
		}
		if there(beside) {
			return true
		}
	}
	return false
}

// inStagingTree returns the path of the staging tree that path is, or lies in; ok is
// false if it is in none. Databases and tables may be called as they like.
func inStagingTree(path string) (root string, ok bool) {
	at := 0
	for i := 0; ; i++ {
		end := strings.IndexByte(path[at:], '/')
		last := end < 0
		if last {
			end = len(path) - at
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
