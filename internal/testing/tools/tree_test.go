package tools_test

import (
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// regular is the kind of a node that is a file.
const regular = "file"

// node is what a walk sees of one name.
type node struct {
	kind, mode, bytes, mtime string
}

// tree walks root: what readdir lists, and nothing else.
func (c tool) tree(t *testing.T, root string, mtime, mode bool) map[string]node {
	t.Helper()
	varies := c.variable()
	all := make(map[string]node)
	err := filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		below, _ := filepath.Rel(root, path) // path lies below root
		info, err := d.Info()
		if err != nil {
			return err
		}
		n := node{kind: regular}
		if mode {
			n.mode = info.Mode().Perm().String()
		}
		if mtime {
			n.mtime = info.ModTime().UTC().Format(time.RFC3339Nano)
		}
		switch {
		case d.IsDir():
			n.kind = "directory"
		case !d.Type().IsRegular():
			n.kind = d.Type().String()
		case !varies(below):
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if int64(len(raw)) != info.Size() {
				return fmt.Errorf("%s has %d bytes, and stat says %d", below, len(raw), info.Size())
			}
			n.bytes = content(raw)
		}
		all[below] = n
		return nil
	})
	if err != nil {
		t.Errorf("walk %s: %v", root, err)
	}
	return all
}

// variable tells the files whose bytes vary from run to run.
func (c tool) variable() func(path string) bool {
	varies := regexp.MustCompile(c.varies)
	return func(path string) bool { return c.varies != "" && varies.MatchString(path) }
}

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// withoutEmpty leaves the directories out in which there is no file: no object is
// made for them.
func withoutEmpty(all map[string]node) {
	for name, n := range all {
		full := func(other string) bool { return strings.HasPrefix(other, name+"/") && all[other].kind != "directory" }
		if n.kind == "directory" && !slices.ContainsFunc(slices.Collect(maps.Keys(all)), full) {
			delete(all, name)
		}
	}
}

// ofObjects leaves in a tree what objects keep over a remount: directories have no
// time of their own, and empty ones may be gone.
func ofObjects(all map[string]node) {
	withoutEmpty(all)
	for name, n := range all {
		if n.kind == "directory" {
			n.mtime = ""
			all[name] = n
		}
	}
}

func compareTrees(differ func(string, ...any), where string, got, want map[string]node) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			differ("%s has no %s", where, name)
		} else if g != want[name] {
			differ("%s in %s is %v, want %v as in a plain directory", name, where, g, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			differ("%s has %s, which a plain directory has not", where, name)
		}
	}
}
