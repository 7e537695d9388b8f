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
	tableHead  = "| tool | exit code | bytes equal | requests that a bucket got | names that the store saw |\n|---|---|---|---|---|\n"
	cells      = 5
)

func semanticsPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(mounttest.ModuleRoot(t), "docs", "semantics.md")
}

// checkTable holds the table of docs/semantics.md to what was seen, or with
// -update writes it. The row of a tool that failed, or that this machine has not got,
// stays. The table is of a bucket; in a folder the same holds but for the requests.
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
	if !*update {
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
		case !inBucket:
			c.checkFolder(t, row, table[c.name])
		case *update:
			b.WriteString(c.row(row) + "\n")
		default:
			c.checkRow(t, row, table[c.name])
		}
	}
	if *update && inBucket {
		must(t, os.WriteFile(semanticsPath(t), []byte(before+tableBegin+b.String()+tableEnd+after), 0o644)) //nolint:gosec // documentation
	}
}

// oldRows are the lines of a table, by tool.
func oldRows(text string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, tableHead)) {
		if list := strings.Split(line, " | "); len(list) == cells {
			rows[strings.TrimPrefix(list[0], "| ")] = strings.TrimSuffix(line, "\n")
		}
	}
	return rows
}

// row is the tool's line.
func (c tool) row(s seen) string {
	same, requests, names := "yes", s.requests, "final names alone"
	switch {
	case !s.same:
		same = "no: " + c.differs
	case c.note != "":
		same = "yes; " + c.note
	}
	if c.more != "" {
		requests += ": " + c.more
	}
	if len(s.names) > 0 {
		names = "also `" + strings.Join(s.names, "` `") + "`"
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %s |", c.name, s.code, same, requests, names)
}

// checkRow compares a row with the one in the text.
func (c tool) checkRow(t *testing.T, s seen, old string) {
	t.Helper()
	if got := c.row(s); got != old {
		t.Errorf("docs/semantics.md differs from what was seen; if that is right, run with -update\nseen: %s\ntext: %s", got, old)
	}
}

// checkFolder compares what was seen in a folder with the row of the bucket. Names in
// directories that were made during the run the watcher may have missed.
func (c tool) checkFolder(t *testing.T, s seen, old string) {
	t.Helper()
	known := quoted(old)
	unknown := slices.ContainsFunc(s.names, func(n string) bool { return !slices.Contains(known, n) })
	if got := c.row(s); unknown || upToRequests(got) != upToRequests(old) {
		t.Errorf("what was seen in a folder is not what docs/semantics.md has\nseen: %s\ntext: %s", got, old)
	}
}

// upToRequests is a row's beginning.
func upToRequests(row string) string {
	list := strings.Split(row, " | ")
	return strings.Join(list[:min(len(list), 3)], " | ")
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
func onceEach[V any](f func(string) V) func(string) V {
	var known sync.Map
	return func(s string) V {
		if v, ok := known.Load(s); ok {
			return v.(V) //nolint:forcetypeassert // stored below
		}
		v := f(s)
		known.Store(s, v)
		return v
	}
}
