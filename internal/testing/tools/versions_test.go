package tools_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// versions are the trees that a script leaves for others to read in a plain
// directory, one after the other: that before it, each where it called keep, and
// that behind it.
type versions struct {
	result result
	trees  []map[string]node
	// between are what the tool leaves on its way from one of them to the next.
	between map[string]node
	any     func(path string) bool // its bytes vary from run to run
}

// versions runs the tool in a plain directory.
func (c tool) versions(t *testing.T, plain place, run func() result) versions {
	t.Helper()
	v := versions{trees: []map[string]node{c.tree(t, plain.dir, false, false)}, any: c.variable()}
	v.result = run()
	kept, err := os.ReadDir(plain.versions)
	must(t, err)
	for _, e := range kept {
		v.trees = append(v.trees, c.tree(t, filepath.Join(plain.versions, e.Name()), false, false))
	}
	v.trees = append(v.trees, c.tree(t, plain.dir, false, false))
	on := plain
	on.dir, on.versions = t.TempDir(), ""
	if r := script(t, on, prelude+c.between); r.code != 0 {
		t.Fatalf("what lies between: exit code %d, stderr: %s", r.code, r.stderr)
	}
	v.between = c.tree(t, on.dir, false, false)
	return v
}

// final reports whether a file of this path was ever to be there.
func (v versions) final(path string) bool {
	return slices.ContainsFunc(v.trees, func(tree map[string]node) bool { _, ok := tree[path]; return ok })
}

// has reports whether the file ever was to have these bytes.
func (v versions) has(path, bytes string) bool {
	return v.any(path) || v.between[path].bytes == bytes || slices.ContainsFunc(v.trees, func(tree map[string]node) bool {
		n, ok := tree[path]
		return ok && n.kind == regular && n.bytes == bytes
	})
}

// puts is how often a version of each file came, and heads how often one was there
// already.
func (v versions) puts() (puts, heads map[string]int) {
	puts, heads = map[string]int{}, map[string]int{}
	for i, tree := range v.trees[1:] {
		before := v.trees[i]
		for path, n := range tree {
			old, was := before[path]
			switch {
			case n.kind != regular || was && old == n && !v.any(path):
			case was:
				heads[path]++
				fallthrough
			default:
				puts[path]++
			}
		}
	}
	return puts, heads
}
