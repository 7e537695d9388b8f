package fs_test

import (
	"encoding/json"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// tree is a directory's files, by path below it. Empty directories are none of
// it.
type tree map[string]string

// write makes the files below dir.
func (r tree) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range r {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (r tree) equal(other tree) bool { return maps.Equal(r, other) }

// visible is what of a partition a mount lists.
func (r tree) visible() tree {
	seen := tree{}
	for name, content := range r {
		if !strings.HasPrefix(name, "_temporary/") {
			seen[name] = content
		}
	}
	return seen
}

// brief names each file's content by the version that it is.
func (r tree) brief(versions tree) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		what := fmt.Sprintf("%d bytes of no version", len(r[name]))
		for v, content := range versions {
			if content == r[name] {
				what = v
			}
		}
		all = append(all, name+"="+what)
	}
	return "{" + strings.Join(all, " ") + "}"
}

// readTree is the tree below dir; what is no file or directory fails the test.
func readTree(t *testing.T, dir string) tree {
	t.Helper()
	r, err := walkTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// storedTree is the tree below dir in the store.
func storedTree(t *testing.T, l *mounttest.Lake, dir string) tree {
	t.Helper()
	files, err := l.StoredTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func walkTree(dir string) (tree, error) {
	r := tree{}
	err := filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		r[name] = string(raw)
		return err
	})
	return r, err
}

func deviceOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// stagedWrite is an unpublished file in status.json.
type stagedWrite struct {
	ID       string `json:"write_id"`
	Path     string `json:"path"`
	State    string `json:"state"`
	Hold     string `json:"hold"`
	Open     bool   `json:"open"`
	Size     int64  `json:"size"`
	Uploaded int64  `json:"uploaded"`
	Source   string `json:"source"`
	Target   string `json:"target"`
	Error    string `json:"error"`
}

// shown is where the mount shows its bytes.
func (w stagedWrite) shown() string {
	return path.Join(path.Dir(w.Path), ".lakefs", "staged", strings.TrimPrefix(path.Base("/"+w.Path), "/")+"~"+w.ID[:8])
}

// stagedStatus are the unpublished files of the whole lake that wait to be published.
func stagedStatus(t *testing.T, l *mounttest.Lake) []stagedWrite {
	t.Helper()
	return mountStatusOf(t, l).Staged
}

// mountStatus is what status.json of the lake has of unpublished files.
type mountStatus struct {
	Staged []stagedWrite `json:"staged"`
	Local  []stagedWrite `json:"local"` // of the mount alone
}

func mountStatusOf(t *testing.T, l *mounttest.Lake) (status mountStatus) {
	t.Helper()
	raw, err := l.ReadFile(".lakefs/status.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(raw), &status); err != nil {
		t.Fatalf("status.json: %v", err)
	}
	return status
}
