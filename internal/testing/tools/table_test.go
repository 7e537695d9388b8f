package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The table lies between these lines of docs/semantics.md.
const (
	tableBegin = "<!-- tools: begin; written by go test ./internal/testing/tools -update -->\n"
	tableEnd   = "<!-- tools: end -->\n"
	tableHead  = "| tool | exit code | same bytes | names that came and went in the folder |\n|---|---|---|---|\n"
)

func semanticsPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(mounttest.ModuleRoot(t), "docs", "semantics.md")
}

// checkTable holds the table of docs/semantics.md to what was seen, or with
// -update writes it. The row of a tool that this machine has not got stays.
// In a bucket the names of directories are none, so that there are fewer: the
// table, which is of the folder, has to know those that are seen.
func checkTable(t *testing.T, all []tool, rows map[string]seen, inBucket bool) {
	t.Helper()
	raw, err := os.ReadFile(semanticsPath(t))
	must(t, err)
	before, rest, found := strings.Cut(string(raw), tableBegin)
	old, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", semanticsPath(t), tableBegin, tableEnd)
	}
	table := oldRows(old)
	if len(table) > 0 && !*update {
		for name := range table {
			if !slices.ContainsFunc(all, func(c tool) bool { return c.name == name }) {
				t.Errorf("the table has %q, which is no tool", name)
			}
		}
	}
	var b strings.Builder
	b.WriteString(tableHead)
	for _, c := range all {
		row, ran := rows[c.name]
		switch {
		case !ran && table[c.name] != "":
			b.WriteString(table[c.name] + "\n")
		case !ran:
			continue // not here, or left out by -run
		case inBucket:
			c.checkBucket(t, row, table[c.name])
		case *update:
			b.WriteString(c.row(row) + "\n")
		default:
			c.checkRow(t, row, table[c.name])
		}
	}
	if *update && !inBucket && !t.Failed() {
		must(t, os.WriteFile(semanticsPath(t), []byte(before+tableBegin+b.String()+tableEnd+after), 0o644)) //nolint:gosec // documentation
	}
}

// oldRows are the lines of a table, by tool.
func oldRows(text string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, tableHead)) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			rows[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(line, "\n")
		}
	}
	return rows
}

// row is the tool's line.
func (c tool) row(s seen) string {
	same := "yes"
	switch {
	case !s.same:
		same = "no: " + c.differs
	case c.note != "":
		same = "yes; " + c.note
	}
	names := "–"
	if len(s.transient) > 0 {
		names = "`" + strings.Join(s.transient, "` `") + "`"
	}
	return fmt.Sprintf("| %s | %d | %s | %s |", c.name, s.code, same, names)
}

// checkRow compares a row with the one in the text. Names in directories that
// were made during the run may be missed by the watcher.
func (c tool) checkRow(t *testing.T, s seen, old string) {
	t.Helper()
	got := c.row(s)
	if got == old {
		return
	}
	if s.deep && cut(got) == cut(old) && s.knownTo(old) {
		return
	}
	t.Errorf("docs/semantics.md differs from what was seen; if that is right, run with -update\nseen: %s\ntext: %s", got, old)
}

// checkBucket compares what was seen in a bucket with the row of the folder. What
// differs there alone the text tells in other words than the table.
func (c tool) checkBucket(t *testing.T, s seen, old string) {
	t.Helper()
	if !s.knownTo(old) || c.bucket == "" && cut(c.row(s)) != cut(old) {
		t.Errorf("what was seen in a bucket is not what docs/semantics.md has\nseen: %s\ntext: %s", c.row(s), old)
	}
}

// knownTo tells that a row has every name that came and went.
func (s seen) knownTo(row string) bool {
	known := quoted(row)
	return !slices.ContainsFunc(s.transient, func(n string) bool { return !slices.Contains(known, n) })
}

// cut is a row without its names.
func cut(row string) string {
	cells := strings.Split(row, " | ")
	return strings.Join(cells[:len(cells)-1], " | ")
}

// quoted are the names of a row.
func quoted(row string) []string {
	cells := strings.Split(row, " | ")
	var names []string
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cells[len(cells)-1], -1) {
		names = append(names, m[1])
	}
	return names
}

// onceEach remembers what f returns.
func onceEach(f func(string) string) func(string) string {
	var known sync.Map
	return func(s string) string {
		if v, ok := known.Load(s); ok {
			return v.(string) //nolint:forcetypeassert // stored below
		}
		v := f(s)
		known.Store(s, v)
		return v
	}
}
