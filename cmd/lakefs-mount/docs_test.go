package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

var update = flag.Bool("update", false, "write what the program says into the documentation")

const operations = "../../docs/operations.md"

// settingsTable is every setting, as docs/operations.md has them.
func settingsTable() string {
	var b strings.Builder
	group := ""
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	for s := range settings.All() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n### %s\n\n| setting | default | |\n|---|---|---|\n", group)
		}
		name, def := "--"+s.Name, s.Default
		if s.Type != "" {
			name += "=" + s.Type
		}
		if s.Type == "" {
			def = "off"
		} else if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", cell(name), cell(def), cell(inMarkdown(settings.Sentence(s.Usage))))
	}
	return b.String()
}

// inMarkdown has each sign of a text that Markdown takes for its own as itself.
func inMarkdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "#", `\#`, "<", "&lt;").Replace(text)
}

// TestOperationsHaveTheTableOfSettings that the program has. Help, the manual pages and
// the settings file are held to the same schema by their own tests.
func TestOperationsHaveTheTableOfSettings(t *testing.T) {
	raw, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "\n## All settings\n")
	section, _, more := strings.Cut(rest, "\n## ")
	if !found || !more {
		t.Fatal("docs/operations.md has no section All settings, or none behind it")
	}
	prose, _, _ := strings.Cut(section, "\n### ")
	want := strings.TrimRight(prose, "\n") + "\n" + settingsTable()
	if section == want {
		return
	}
	if !*update {
		t.Fatal("the table of settings in docs/operations.md is not the program's; write it by: go test ./cmd/lakefs-mount -run Operations -update")
	}
	if err := os.WriteFile(operations, []byte(strings.Replace(string(raw), section, want, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadmeHasEachCommand in its table.
func TestReadmeHasEachCommand(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{}
	for _, name := range commandNames(p.rootCommand()) {
		if row := "\n| `lakefs-mount " + name; name != "help" && !strings.Contains(string(raw), row+" ") && !strings.Contains(string(raw), row+"`") {
			t.Errorf("README.md has no line of lakefs-mount %s", name)
		}
	}
}
