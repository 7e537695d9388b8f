package tools_test

import (
	"crypto/sha256"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// node is what a walk sees of one name.
type node struct {
	kind, mode, bytes, mtime string
}

// tree walks root: what readdir lists, and nothing else.
func (c tool) tree(t *testing.T, root string, mtime, mode bool) map[string]node {
	t.Helper()
	varies := regexp.MustCompile(c.varies)
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
		n := node{kind: "file"}
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
		case c.varies == "" || !varies.MatchString(below):
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if int64(len(raw)) != info.Size() {
				return fmt.Errorf("%s has %d bytes, and stat says %d", below, len(raw), info.Size())
			}
			n.bytes = fmt.Sprintf("%d bytes %x", len(raw), sha256.Sum256(raw))
		}
		all[below] = n
		return nil
	})
	if err != nil {
		t.Errorf("walk %s: %v", root, err)
	}
	return all
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
