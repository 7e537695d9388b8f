package main

import (
	"bytes"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// textOf are the documents that users read, by path below the module.
func textOf(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"README.md", "docs/operations.md", "docs/security.md", "docs/semantics.md", "docs/looking-inside.md"} {
		raw, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(raw)
	}
	return all
}

// othersFlags are those of other programs that the documents name, and --job of a line
// to a control file.
const othersFlags = "--now --device --cap-add --only-values --batch --rm --inplace --vfs-cache-mode --links --unix-socket --job"

// eachFlag visits the flags of a command and of those below it.
func eachFlag(cmd *cobra.Command, visit func(name string)) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().VisitAll(func(f *pflag.Flag) { visit(f.Name) })
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { visit(f.Name) })
	for _, c := range cmd.Commands() {
		eachFlag(c, visit)
	}
}

var (
	flagInText     = regexp.MustCompile("(?m)(?:^|[\\s`'(|])(--[a-z][a-z-]*[a-z])")
	variableInText = regexp.MustCompile(`LAKEFS_MOUNT_[A-Z_]*[A-Z]`)
	metricInText   = regexp.MustCompile(`lakefs_mount_[a-z_]*[a-z]`)
	commandInText  = regexp.MustCompile("`lakefs-mount ([a-z][a-z-]*)")
	testInText     = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9_]*`)
	linkInText     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestWhatTheDocumentsNameIsThere: flags, variables, metrics, commands, tests.
func TestWhatTheDocumentsNameIsThere(t *testing.T) {
	known := map[string]bool{}
	for f := range strings.FieldsSeq(othersFlags) {
		known[f] = true
	}
	for s := range settings.All() {
		known["--"+s.Name] = true
		known["LAKEFS_MOUNT_"+strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))] = true
	}
	root := (&program{}).rootCommand()
	eachFlag(root, func(name string) { known["--"+name] = true })
	for _, c := range root.Commands() {
		known[c.Name()] = true
	}
	texts := textOf(t)
	// The table of metrics is the program's, by a test of internal/metrics.
	for _, row := range regexp.MustCompile("(?m)^\\| `(lakefs_mount_[a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(texts["docs/operations.md"], -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			known[row[1]+"_count"] = true
		}
	}
	for name := range testsOfTheModule(t) {
		known[name] = true
	}
	inText := []*regexp.Regexp{flagInText, variableInText, metricInText, commandInText, testInText}
	for document, text := range texts {
		for _, pattern := range inText {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				name := m[len(m)-1]
				family := strings.Contains(text, name+"_…") || strings.Contains(text, name+"_*")
				if !known[name] && !family {
					t.Errorf("%s names %q, which is not there", document, name)
				}
			}
		}
	}
}

// testsOfTheModule are the names of all tests and fuzz targets.
func testsOfTheModule(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)\(`)
	err := filepath.WalkDir("../..", func(path string, e iofs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && e.Name() != ".." && path != "../..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(raw, -1) {
			all[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d tests are found: %v", len(all), err)
	}
	return all
}

// anchorsOf are what a link may name in a text: GitHub's, of its headings.
func anchorsOf(text string) []string {
	var all []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		hashes, title, heading := strings.Cut(line, " ")
		if fenced || !heading || hashes == "" || strings.Trim(hashes, "#") != "" {
			continue
		}
		var b bytes.Buffer
		for _, r := range strings.ToLower(strings.TrimSpace(title)) {
			switch {
			case r == ' ', r == '-':
				b.WriteByte('-')
			case r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				b.WriteRune(r)
			}
		}
		all = append(all, b.String())
	}
	return all
}

// TestLinksOfTheDocuments lead to files and headings that are there.
func TestLinksOfTheDocuments(t *testing.T) {
	for document, text := range textOf(t) {
		for _, m := range linkInText.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := text
			if file != "" {
				raw, err := os.ReadFile(filepath.Join("../..", filepath.Dir(document), file))
				if err != nil {
					t.Errorf("%s links to %q: %v", document, m[1], err)
					continue
				}
				to = string(raw)
			}
			if anchor != "" && !slices.Contains(anchorsOf(to), anchor) {
				t.Errorf("%s links to %q, and there is no such heading", document, m[1])
			}
		}
	}
}
