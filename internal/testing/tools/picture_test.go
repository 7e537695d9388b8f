package tools_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// pictured reads a tree as tree(1) draws it: the names in each directory, by its path
// below the first line's. What stands behind two spaces is said of a name, and "…" are
// further names.
func pictured(t *testing.T, picture string) map[string][]string {
	t.Helper()
	in := map[string][]string{}
	var above []string // the directories down to the line
	for line := range strings.Lines(picture) {
		indent, name, branch := strings.Cut(strings.TrimRight(line, "\n"), "── ")
		if !branch {
			t.Fatalf("a line without a branch: %q", line)
		}
		depth := len([]rune(indent)) / 4
		name, _, _ = strings.Cut(name, "  ")
		if depth > len(above) {
			t.Fatalf("a branch of no directory: %q", line)
		}
		above = above[:depth]
		dir := strings.Join(above, "")
		in[dir] = append(in[dir], name)
		if strings.HasSuffix(name, "/") {
			above = append(above, name)
			in[strings.Join(above, "")] = nil
		}
	}
	return in
}

// TestThePictureOfTheTree in README.md is what `make demo` shows.
func TestThePictureOfTheTree(t *testing.T) {
	if os.Getenv("MOUNTTEST_STORE") != "" {
		t.Skip("the demo's lake is a folder")
	}
	raw, err := os.ReadFile(filepath.Join(mounttest.ModuleRoot(t), "README.md"))
	must(t, err)
	_, picture, found := strings.Cut(string(raw), "\n```\ndemo/lake\n")
	picture, _, closed := strings.Cut(picture, "```\n")
	if !found || !closed {
		t.Fatal("README.md has no picture of demo/lake")
	}
	lake := mounttest.Mount(t, mounttest.Options{Source: demo(t)})
	for dir, want := range pictured(t, picture) {
		got := strings.Fields(lake.MustSh("cd ./" + dir + "; ls -p"))
		if slices.Contains(want, "…") {
			want = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name == "…" })
			got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(want, name) })
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("README.md shows %q in %q, the lake has %q", want, dir, got)
		}
	}
}

// TestControlFilesOfTheDocuments are there, in a directory of some level.
func TestControlFilesOfTheDocuments(t *testing.T) {
	lake := mounttest.Mount(t, mounttest.Options{Source: demo(t)})
	there := append([]string{"partitions.jsonl"}, strings.Fields(lake.MustSh("for d in . sales sales/orders sales/orders/*/*; do ls $d/.lakefs; done"))...) // of a Glue catalog's tables
	for _, document := range []string{"README.md", "docs/operations.md", "docs/security.md", "docs/semantics.md", "docs/looking-inside.md"} {
		raw, err := os.ReadFile(filepath.Join(mounttest.ModuleRoot(t), document))
		must(t, err)
		for _, m := range regexp.MustCompile(`\.lakefs/([a-z]+(?:\.[a-z]+)?)`).FindAllStringSubmatch(string(raw), -1) {
			if !slices.Contains(there, m[1]) {
				t.Errorf("%s names .lakefs/%s, which is nowhere; there are %q", document, m[1], there)
			}
		}
	}
}
