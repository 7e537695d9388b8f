package fs_test

import (
	"errors"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// csvDir and parquetDir are partitions of the lake that mountTwo makes.
const (
	csvDir     = "db/text/dt=2026-01-01"
	parquetDir = "db/parquet/dt=2026-01-01"
)

// twoTables are db.text, of CSV files, and db.parquet, with a partition each;
// files are put into the partition of db.text.
func twoTables(files map[string]string) []mounttest.Table {
	text := mounttest.Table{Database: "db", Name: "text", Format: "csv", Keys: []string{"dt:date"}, Files: map[string]string{"dt=2026-01-01/": ""}}
	for name, content := range files {
		text.Files["dt=2026-01-01/"+name] = content
	}
	return []mounttest.Table{text, {
		Database: "db", Name: "parquet", Keys: []string{"dt:date"}, Files: map[string]string{"dt=2026-01-01/": ""},
	}}
}

// mountTwo mounts a lake of twoTables.
func mountTwo(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{Tables: twoTables(files), Flags: flags})
}

// makePartition makes a directory that a partition is in, as other programs do:
// in the folder, or by the key that stands for it.
func makePartition(t *testing.T, l *mounttest.Lake, dir string) {
	t.Helper()
	if l.OnS3() {
		l.PutStored(dir+"/", "")
		return
	}
	if err := os.MkdirAll(l.Data(dir), 0o755); err != nil {
		t.Fatal(err)
	}
}

// resolution is that of the times that the store tells of files.
func resolution(l *mounttest.Lake) time.Duration {
	if l.OnS3() {
		return time.Second
	}
	return time.Nanosecond
}

// inStore is what the warehouse has at name, and whether there is anything.
func inStore(t *testing.T, l *mounttest.Lake, name string) (content string, there bool) {
	t.Helper()
	content, err := l.Stored(name)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		t.Fatal(err)
	}
	return content, err == nil
}

// wantStore asserts that name is published with exactly this content, and
// listed through the mount.
func wantStore(t *testing.T, l *mounttest.Lake, name, want string) {
	t.Helper()
	if got, there := inStore(t, l, name); !there || got != want {
		t.Errorf("%s in the store: %s, there %v; want %s", name, brief(got), there, brief(want))
	}
	if !listed(t, l, name) {
		t.Errorf("%s is not listed", name)
	}
}

// wantAbsent asserts that name is not in the store, and not listed.
func wantAbsent(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	if got, there := inStore(t, l, name); there {
		t.Errorf("%s is in the store: %s", name, brief(got))
	}
	if listed(t, l, name) {
		t.Errorf("%s is listed", name)
	}
}

func listed(t *testing.T, l *mounttest.Lake, name string) bool {
	t.Helper()
	names, err := l.Names(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(names, filepath.Base(name))
}

// staged are the names in .lakefs/staged of dir.
func staged(t *testing.T, l *mounttest.Lake, dir string) []string {
	t.Helper()
	names, err := l.Names(dir + "/.lakefs/staged")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// wantStaged asserts that exactly one file is staged in dir, of name base, and
// returns its path in .lakefs/staged.
func wantStaged(t *testing.T, l *mounttest.Lake, dir, base string) string {
	t.Helper()
	names := staged(t, l, dir)
	if len(names) != 1 || !strings.HasPrefix(names[0], base+"~") {
		t.Fatalf("staged in %s: %q, want one of %s", dir, names, base)
	}
	return dir + "/.lakefs/staged/" + names[0]
}

// wantClean asserts that the directory has exactly these names in the store,
// and that nothing is staged.
func wantClean(t *testing.T, l *mounttest.Lake, dir string, want ...string) {
	t.Helper()
	got := l.StoredNames(dir)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the store has %q in %s, want %q", got, dir, want)
	}
	if names := staged(t, l, dir); len(names) != 0 {
		t.Errorf("staged in %s: %q, want nothing", dir, names)
	}
	if ids := spools(t, l); len(ids) != 0 {
		t.Errorf("the staging directory has %q, want nothing", ids)
	}
}

// wantSettled asserts that soon nothing is staged, csvDir included: what RELEASE
// ends, it ends after the close has returned.
func wantSettled(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	l.Eventually("nothing staged", 20*time.Second, func() bool {
		return len(staged(t, l, csvDir)) == 0 && len(spools(t, l)) == 0
	})
}

// spools are the writes in the staging directory, without the empty directories
// that it keeps for the next ones.
func spools(t *testing.T, l *mounttest.Lake) []string {
	t.Helper()
	entries, err := os.ReadDir(l.Staged())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "spare.") {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// brief shortens content for a message.
func brief(s string) string {
	if len(s) > 80 {
		return s[:40] + "…" + s[len(s)-30:]
	}
	return `"` + s + `"`
}

// compileC builds a C program outside the mount and returns its path.
func compileC(t *testing.T, source string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here (make deps installs it)")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), "gcc", "-O1", "-Wall", "-pthread", "-D_GNU_SOURCE", "-x", "c", "-o", program, "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// mustExec is Exec for programs that must succeed.
func mustExec(t *testing.T, l *mounttest.Lake, name string, args ...string) string {
	t.Helper()
	r := l.Exec(name, args...)
	if r.Code != 0 {
		t.Fatalf("%s %s\nexit code %d\nstdout: %s\nstderr: %s", name, strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}

// python is an interpreter for scripts of the standard library.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		if path, err = exec.LookPath("python3"); err != nil {
			t.Skip("no python3 here (make deps installs it)")
		}
	}
	return path
}

// mustPython runs a script of the standard library in the mount point.
func mustPython(t *testing.T, l *mounttest.Lake, script string) string {
	t.Helper()
	return mustExec(t, l, python(t), "-c", script)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
