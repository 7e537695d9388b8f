package fs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// committer is what Hadoop's local file system and its FileOutputCommitter call, in
// that order: each file and directory gets its mode from a child process, by path,
// while the file is open; each part has its checksums beside it.
const committer = `
import os, subprocess, errno, sys
def chmod(mode, path): subprocess.run(["chmod", mode, path], check=True)
def mkdirs(path):
    if os.path.isdir(path): return
    mkdirs(os.path.dirname(path) or ".")
    try: os.mkdir(path, 0o777)
    except FileExistsError: return
    chmod("0755", path)
def create(path, data):
    mkdirs(os.path.dirname(path))
    f = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    chmod("0644", path)
    d, b = os.path.split(path)
    c = os.open(os.path.join(d, "." + b + ".crc"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    chmod("0644", os.path.join(d, "." + b + ".crc"))
    os.write(f, data); os.write(c, b"crc\0" + bytes([len(data) % 256]))
    os.close(f); os.close(c)
def rename(a, b):
    os.rename(a, b)
def rename_file(a, b):
    os.rename(a, b)
    d, n = os.path.split(a); crc = os.path.join(d, "." + n + ".crc")
    if os.path.exists(crc):
        d, n = os.path.split(b); os.rename(crc, os.path.join(d, "." + n + ".crc"))
def delete(path): # java.io.File.delete is unlink, and then rmdir; a directory's contents go first
    try: os.unlink(path); return
    except IsADirectoryError: pass
    except FileNotFoundError: return
    try: os.rmdir(path); return
    except OSError as e:
        if e.errno != errno.ENOTEMPTY: raise
    for base in os.listdir(path): delete(os.path.join(path, base))
    os.rmdir(path)
def merge(a, b): # FileOutputCommitter.mergePaths, algorithm 1
    for base in os.listdir(a):
        if base.startswith(".") and base.endswith(".crc"): continue
        x, y = os.path.join(a, base), os.path.join(b, base)
        if os.path.isfile(x):
            if os.path.exists(y): delete(y)
            rename_file(x, y)
        elif os.path.isdir(y): merge(x, y)
        else: rename(x, y)
def setup(t): mkdirs(t + "/_temporary/0")
def attempt(t, n): return t + "/_temporary/0/_temporary/attempt_%d" % n
def commit_task(t, n):
    rename(attempt(t, n), t + "/_temporary/0/task_%d" % n)
def commit_job(t):
    for task in sorted(os.listdir(t + "/_temporary/0")):
        if task != "_temporary": merge(t + "/_temporary/0/" + task, t)
    delete(t + "/_temporary")
    create(t + "/_SUCCESS", b"")
`

// runCommitter runs lines of Python over the committer's functions in the mount point.
func runCommitter(t *testing.T, l *mounttest.Lake, script string) {
	t.Helper()
	mustPython(t, l, committer+script)
}

// storeNames are the keys below db/t in the store, sorted.
func storeNames(t *testing.T, l *mounttest.Lake) []string {
	t.Helper()
	var names []string
	for name := range storedTree(t, l, "db/t") {
		if !strings.HasPrefix(name, "_sqe/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wantStored asserts the keys below db/t in the store.
func wantStored(t *testing.T, l *mounttest.Lake, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := storeNames(t, l); !slices.Equal(got, want) {
		t.Errorf("the store has %q, want %q", got, want)
	}
}

// byKeys is db.t, of CSV files, by an integer k and perhaps a j.
func byKeys(keys []string, files map[string]string) mounttest.Table {
	return mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: keys, Files: files}
}

func mountPartitioned(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{
		Tables: []mounttest.Table{byKeys([]string{"k:int"}, files)}, Flags: flags,
	})
}

// TestFileOutputCommitter1: a new partition comes as one rename of a directory, into
// one that is there each file by itself; until then the store has nothing.
func TestFileOutputCommitter1(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	runCommitter(t, l, `
t = "db/t"
setup(t)
create(attempt(t, 1) + "/k=1/part-1", b"1,a\n")
create(attempt(t, 1) + "/k=2/part-1", b"2,a\n")
create(attempt(t, 2) + "/k=2/part-2", b"2,b\n")
create(attempt(t, 2) + "/k=3/part-2", b"3,b\n")
assert sorted(os.listdir(attempt(t, 2))) == ["k=2", "k=3"], os.listdir(attempt(t, 2))
assert "part-2" in os.listdir(attempt(t, 2) + "/k=3")
assert open(attempt(t, 2) + "/k=3/part-2").read() == "3,b\n"
st = os.stat(attempt(t, 2) + "/k=3/part-2")
assert st.st_mode & 0o777 == 0o644 and st.st_size == 4, st
commit_task(t, 1); commit_task(t, 2)
assert sorted(os.listdir(t + "/_temporary/0")) == ["_temporary", "task_1", "task_2"]
assert os.listdir(t + "/_temporary/0/_temporary") == []
assert os.listdir(t) == ["k=1"], os.listdir(t)
`)
	wantStored(t, l, "k=1/old")
	runCommitter(t, l, `commit_job("db/t")`)
	wantStored(t, l, "_SUCCESS", "k=1/old", "k=1/part-1", "k=2/part-1", "k=2/part-2", "k=3/part-2")
	wantContent(t, l, "db/t/k=2/part-2", "2,b\n")
	wantNames(t, l, "db/t", "_SUCCESS", "k=1", "k=2", "k=3")
	wantNames(t, l, "db/t/k=2", "part-1", "part-2")
	if got := l.MustSh(`cat db/t/k=3/.part-2.crc | wc -c; test ! -e db/t/_temporary && stat -c %a db/t/k=3/part-2`); got != "5\n644\n" {
		t.Errorf("checksums and mode: %q", got)
	}
	wantNoTree(t, l)
	l.Remount()
	wantNames(t, l, "db/t/k=3", "part-2")
	wantContent(t, l, "db/t/k=3/part-2", "3,b\n")
}

// wantNoTree asserts that nothing of a staging tree is left in the state directory.
func wantNoTree(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	for _, w := range stagedStatus(t, l) {
		if strings.Contains(w.Path, "_temporary") || strings.Contains(w.Path, ".spark-staging") {
			t.Errorf("%s is left staged", w.Path)
		}
	}
}

// TestFileOutputCommitter2: each task's commit moves its files out by itself.
func TestFileOutputCommitter2(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	runCommitter(t, l, `
t = "db/t"
setup(t)
create(attempt(t, 1) + "/k=1/part-1", b"1,a\n")
create(attempt(t, 1) + "/k=2/part-1", b"2,a\n")
create(attempt(t, 2) + "/k=2/part-2", b"2,b\n")
merge(attempt(t, 1), t)
assert sorted(os.listdir(t)) == ["k=1", "k=2"]
merge(attempt(t, 2), t)
delete(t + "/_temporary")
create(t + "/_SUCCESS", b"")
assert not os.path.exists(t + "/_temporary")
`)
	wantStored(t, l, "_SUCCESS", "k=1/old", "k=1/part-1", "k=2/part-1", "k=2/part-2")
	wantNoTree(t, l)
}

// TestDynamicPartitionOverwrite: Spark removes the partition and renames the staged
// directory to its place.
func TestDynamicPartitionOverwrite(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n", "k=2/old": "old\n"}, "--write=delete")
	runCommitter(t, l, `
t = "db/t"
stage = t + "/.spark-staging-0c4b"
setup(t)
mkdirs(stage)
create(stage + "/k=1/part-1", b"1,a\n")
create(stage + "/k=3/part-1", b"3,a\n")
for k in "k=1", "k=3":
    delete(t + "/" + k)
    rename(stage + "/" + k, t + "/" + k)
delete(stage)
delete(t + "/_temporary")
`)
	wantStored(t, l, "k=1/part-1", "k=2/old", "k=3/part-1")
	wantNames(t, l, "db/t", "k=1", "k=2", "k=3")
	wantNoTree(t, l)
}

// TestTreeSurvivesTheEndOfItsMount, a clean one and a kill: what a task has committed is
// committed later.
func TestTreeSurvivesTheEndOfItsMount(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	runCommitter(t, l, `
t = "db/t"
setup(t)
create(attempt(t, 1) + "/k=2/part-1", b"2,a\n")
mkdirs(attempt(t, 1) + "/k=3/empty")
commit_task(t, 1)
`)
	for _, end := range []func(){l.Unmount, l.Kill} {
		end()
		l.Start()
		wantNames(t, l, "db/t/_temporary/0", "_temporary", "task_1")
		wantNames(t, l, "db/t/_temporary/0/task_1", "k=2", "k=3")
		wantContent(t, l, "db/t/_temporary/0/task_1/k=2/part-1", "2,a\n")
		wantNames(t, l, "db/t/_temporary/0/task_1/k=3", "empty")
		wantStored(t, l, "k=1/old")
	}
	runCommitter(t, l, `commit_job("db/t")`)
	wantStored(t, l, "_SUCCESS", "k=1/old", "k=2/part-1")
	wantNames(t, l, "db/t", "_SUCCESS", "k=1", "k=2", "k=3")
	wantNames(t, l, "db/t/k=3", "empty")
}

// TestStoreHasNothingOfATree: not for a moment.
func TestStoreHasNothingOfATree(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "it watches the folder")
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	dir := l.Data("db/t")
	watch := watchTree(t, dir)
	runCommitter(t, l, `
t = "db/t"
setup(t)
create(attempt(t, 1) + "/k=2/part-1", b"2,a\n")
commit_task(t, 1)
`)
	if seen := watch(); len(seen) > 0 {
		t.Errorf("before the job's commit the store had %q", seen)
	}
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("the table's folder has %v, %v, want k=1", entries, err)
	}
}
