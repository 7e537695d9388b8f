package tools_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// documents are the texts whose examples run.
func documents() []string { return []string{"semantics.md", "looking-inside.md"} }

// example is a fenced console block of one of the documents: commands, and what
// they print. In what they print <word> stands for text that varies, within a
// line, and a line of three dots for any lines.
type example struct {
	line     int // of the block's first line
	commands []command
}

type command struct {
	text string
	want string
}

// examplesOf reads the examples of a document, and how many commands it shows.
func examplesOf(t *testing.T, document string) (all []example, shown int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(semanticsPath(t)), document))
	must(t, err)
	return examples(string(raw)), strings.Count("\n"+string(raw), "\n$ ")
}

// TestExamplesOf runs every example of the documents, in order, in the demo's lake,
// one for each document, and each example in a shell of its own.
func TestExamplesOf(t *testing.T) {
	for _, document := range documents() {
		t.Run(document, func(t *testing.T) { runExamples(t, document) })
	}
}

func runExamples(t *testing.T, document string) {
	t.Helper()
	all, _ := examplesOf(t, document)
	if len(all) == 0 {
		t.Fatal("it has no examples")
	}
	lake := mounttest.Mount(t, mounttest.Options{Source: demo(t), Timeout: 3 * time.Minute})
	// As in the demo's directory: the folder is ../warehouse.
	must(t, os.Symlink(filepath.Dir(lake.Window(".")), filepath.Join(filepath.Dir(lake.Root), "warehouse")))
	for _, e := range all {
		t.Run(fmt.Sprintf("line %d", e.line), func(t *testing.T) {
			if e.ofFolder() {
				mounttest.FolderOnly(t, "examples that change the folder, or name it")
			}
			e.run(t, lake)
		})
	}
}

// ofFolder tells that the example writes into the folder itself, or shows its name.
func (e example) ofFolder() bool {
	return slices.ContainsFunc(e.commands, func(c command) bool {
		return strings.Contains(c.text, "$there/.part") || strings.Contains(c.want, "file://")
	})
}

// demo makes the warehouse of `lakefs-mount demo`, and returns its folder.
func demo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	for _, args := range [][]string{{"demo", dir}, {"unmount", filepath.Join(dir, "lake")}} {
		out, err := exec.CommandContext(t.Context(), mounttest.Binary(t), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	return filepath.Join(dir, "warehouse")
}

// examples reads the console blocks of a text.
func examples(text string) []example {
	var all []example
	open := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "```console":
			open = true
			all = append(all, example{line: i + 1})
		case strings.HasPrefix(line, "```"):
			open = false
		case !open:
		default:
			all[len(all)-1].add(line)
		}
	}
	return all
}

// add takes one line of a block. A command goes on after a line that ends in a
// backslash, and in lines that begin with "> ".
func (e *example) add(line string) {
	last := len(e.commands) - 1
	switch {
	case strings.HasPrefix(line, "$ "):
		e.commands = append(e.commands, command{text: line[2:]})
	case last >= 0 && e.commands[last].want == "" && strings.HasPrefix(line, "> "):
		e.commands[last].text += "\n" + line[2:]
	case last >= 0:
		e.commands[last].want += line + "\n"
	}
}

const nextCommand = "\x01next command\x01\n"

// output runs the block's commands in one shell.
func (e example) output(lake *mounttest.Lake) mounttest.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "exec 2>&1\nlakefs-mount() { %q \"$@\"; }\n", lake.Binary())
	for _, c := range e.commands {
		fmt.Fprintf(&b, "%s\n", c.text)
		if strings.HasPrefix(c.text, "timeout ") { // its file is given up by the kernel when it has ended
			b.WriteString("while grep -qs '\"open\": true' .lakefs/status.json; do sleep 0.05; done\n")
		}
		b.WriteString("printf '\\1next command\\1\\n'\n")
	}
	return lake.Sh(b.String())
}

// run compares what each command prints with the text.
func (e example) run(t *testing.T, lake *mounttest.Lake) {
	t.Helper()
	r := e.output(lake)
	got := strings.Split(r.Out, nextCommand)
	if len(got) != len(e.commands)+1 {
		t.Fatalf("the shell ended early, with code %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	for i, c := range e.commands {
		if !pattern(c.want).MatchString(got[i]) {
			t.Errorf("$ %s\nprinted:\n%swant:\n%s", c.text, got[i], c.want)
		}
	}
}

var placeholder = regexp.MustCompile(`<[a-z][a-z ]*>`)

// pattern is what an output must match.
func pattern(want string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.Lines(want) {
		if line == "...\n" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		at := 0
		for _, m := range placeholder.FindAllStringIndex(line, -1) {
			b.WriteString(regexp.QuoteMeta(line[at:m[0]]) + `.+?`)
			at = m[1]
		}
		b.WriteString(regexp.QuoteMeta(line[at:]))
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

func TestPatternsOfExamples(t *testing.T) {
	for _, c := range []struct {
		want, got string
		match     bool
	}{
		{"a <size> b\n", "a 12 b\n", true},
		{"a <size> b\n", "a  b\n", false},
		{"a <size> b\n", "a 1\n2 b\n", false},
		{"a.c\n", "abc\n", false},
		{"one\n...\nlast\n", "one\ntwo\nthree\nlast\n", true},
		{"one\n...\nlast\n", "one\nlast\n", true},
		{"one\n", "one\ntwo\n", false},
		{"", "one\n", false},
		{"", "", true},
	} {
		if got := pattern(c.want).MatchString(c.got); got != c.match {
			t.Errorf("pattern %q matches %q: %v, want %v", c.want, c.got, got, c.match)
		}
	}
}

// Every fenced block of the documents that shows commands is an example that runs.
func TestEveryCommandOfTheDocumentsIsRun(t *testing.T) {
	for _, document := range documents() {
		all, shown := examplesOf(t, document)
		run := 0
		for _, e := range all {
			run += len(e.commands)
		}
		if shown != run || run < 5 {
			t.Errorf("%s: %d commands are shown, %d run; want the same, and at least 5", document, shown, run)
		}
	}
}
