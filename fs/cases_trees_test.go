package fs_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases 75 and 76 without Spark: the system calls of Hadoop's local file system and
// its committers, made by a script.

// hadoop is a script's file system: directories are made one by one, and their modes
// set by another program; a file has its checksums beside it; what is renamed or
// deleted takes them along; a directory is deleted file by file. out is the table.
func hadoop(l *mounttest.Lake, dir string) string {
	return script(l, dir, `
part = open("`+filepath.ToSlash(filepath.Join(l.State, "part"))+`", "rb").read()
def chmod(mode, path): subprocess.run(["chmod", mode, path], check=True)
def mkdirs(path):
    if os.path.isdir(path): return
    if os.path.dirname(path): mkdirs(os.path.dirname(path))
    os.mkdir(path); chmod("0755", path)
def crc_of(path): return os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".crc")
def create(path, data=part):
    mkdirs(os.path.dirname(path))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666); chmod("0644", path)
    crc = os.open(crc_of(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666); chmod("0644", crc_of(path))
    os.write(fd, data); os.write(crc, b"crc of " + data)
    os.close(fd); os.close(crc)
def read(path):
    data = open(path, "rb").read()
    try: crc = open(crc_of(path), "rb").read()
    except FileNotFoundError: return data
    assert crc == b"crc of " + data, "ChecksumException: " + path
    return data
def delete(path):
    if os.path.isdir(path):
        for name in os.listdir(path): delete_one(os.path.join(path, name))
        os.rmdir(path)
    elif os.path.exists(path):
        delete_one(path)
        if os.path.exists(crc_of(path)): os.unlink(crc_of(path))
def delete_one(path): delete(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
def rename(a, b):
    os.rename(a, b)
    if not os.path.isdir(b):
        if os.path.exists(crc_of(a)): os.rename(crc_of(a), crc_of(b))
        elif os.path.exists(crc_of(b)): os.unlink(crc_of(b))
def files(path):
    return sorted(os.path.join(d, f)[len(path) + 1:] for d, _, names in os.walk(path) for f in names if not f.endswith(".crc"))
def merge(a, b):
    "FileOutputCommitter.mergePaths"
    if os.path.isdir(a):
        if not os.path.exists(b): return rename(a, b)
        for name in os.listdir(a):
            if not name.startswith("."): merge(os.path.join(a, name), os.path.join(b, name))
    else:
        delete(b); rename(a, b)
job = "_temporary/0"
def attempt(n): return job + "/_temporary/attempt_%d" % n
def commit_task(n):
    task = job + "/task_%d" % n
    delete(task); rename(attempt(n), task)
def merge_into_table(a):
    for name in sorted(os.listdir(a)):
        if not name.startswith("."): merge(a + "/" + name, name)
def commit_job():
    for name in sorted(os.listdir(job)):
        if name.startswith("task_"): merge_into_table(job + "/" + name)
    delete("_temporary"); create("./_SUCCESS", b"")
`)
}

// mountForJobs mounts db.plain, of no partitions, and db.parts, of dt, both Parquet.
func mountForJobs(t *testing.T, files map[string]string) *mounttest.Lake {
	t.Helper()
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{
		{Database: "db", Name: "plain"}, {Database: "db", Name: "parts", Keys: []string{"dt:date"}, Files: files},
	}})
	writeFile(t, filepath.Join(l.State, "part"), mounttest.Parquet(t, 5))
	return l
}

// runJob runs a script of hadoop's in a table, which must succeed.
func runJob(t *testing.T, l *mounttest.Lake, table, body string) {
	t.Helper()
	r := l.Exec(python(t), "-c", hadoop(l, table)+body)
	if r.Code != 0 {
		t.Fatalf("a job in %s:\n%s\nexit code %d\n%s", table, body, r.Code, r.Err)
	}
}

// wantTable asserts that the store has exactly these files of a table, and that
// nothing else is listed.
func wantTable(t *testing.T, l *mounttest.Lake, table string, want ...string) {
	t.Helper()
	files, err := l.StoredTree(table)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) { // a folder has no directory of an empty table
		t.Fatal(err)
	}
	var got []string
	for name := range files {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the store has %q of %s, want %q", got, table, want)
	}
	shown := lines(l.MustSh(`cd ` + table + `; find . -type f -printf '%P\n'`))
	if !slices.Equal(shown, want) {
		t.Errorf("%s shows %q, want %q", table, shown, want)
	}
	if left := mountStatusOf(t, l).Staged; len(left) > 0 {
		t.Errorf("unpublished are %+v", left)
	}
}

// treesOf are the staging trees that the store has in a table: a mount makes none.
func treesOf(t *testing.T, l *mounttest.Lake, table string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(l.Window(table))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "_temporary") || strings.HasPrefix(name, "__magic") || strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

func TestCase75JobsOfCommitterV1(t *testing.T) {
	t.Parallel()
	for table, dir := range map[string]string{"db/plain": "", "db/parts": "dt=2026-01-0%d/"} {
		t.Run(filepath.Base(table), func(t *testing.T) {
			t.Parallel()
			l := mountForJobs(t, nil)
			at := func(n int) string {
				if dir == "" {
					return ""
				}
				return fmt.Sprintf(dir, n)
			}
			runJob(t, l, table, `
mkdirs(job)
for n in 1, 2:
    create(attempt(n) + "/`+at(1)+`part-%d.parquet" % n); create(attempt(n) + "/`+at(2)+`more-%d.parquet" % n)
    eq(files(attempt(n)), sorted(["`+at(1)+`part-%d.parquet" % n, "`+at(2)+`more-%d.parquet" % n]))
    commit_task(n)
create(attempt(3) + "/`+at(1)+`lost.parquet"); delete(attempt(3))
eq(sorted(os.listdir(job)), ["_temporary", "task_1", "task_2"])
eq(os.listdir("."), [])
`)
			wantTable(t, l, table)
			if trees := treesOf(t, l, table); len(trees) > 0 {
				t.Errorf("the store has %q", trees)
			}
			runJob(t, l, table, `
commit_job()
for name in files("."): read(name)
eq(err(os.stat, "_temporary"), "ENOENT")
`)
			wantTable(t, l, table, "_SUCCESS", at(1)+"part-1.parquet", at(1)+"part-2.parquet", at(2)+"more-1.parquet", at(2)+"more-2.parquet")
			if got := stored(t, l, table+"/"+at(2)+"more-1.parquet"); got != mounttest.Parquet(t, 5) {
				t.Errorf("more-1.parquet has %d bytes", len(got))
			}
			for _, w := range mountStatusOf(t, l).Local {
				if !strings.HasSuffix(w.Path, ".crc") || strings.Contains(w.Path, "_temporary") {
					t.Errorf("%s is left of the job", w.Path)
				}
			}
			// Case 76: another tool replaces a part, and it is read again.
			l.MustSh(`cd ` + table + `; cp ` + l.State + `/part other; mv other ` + at(1) + `part-1.parquet`)
			runJob(t, l, table, `
eq(read("`+at(1)+`part-1.parquet"), part)
create("./`+at(1)+`part-1.parquet"); eq(read("./`+at(1)+`part-1.parquet"), part)
`)
			if slices.ContainsFunc(l.StoredNames(table), func(n string) bool { return strings.HasSuffix(n, ".crc") }) {
				t.Errorf("the store has checksums: %q", l.StoredNames(table))
			}
		})
	}
}

func TestCase75JobsOfCommitterV2(t *testing.T) {
	t.Parallel()
	l := mountForJobs(t, map[string]string{"dt=2026-01-01/old.parquet": mounttest.Parquet(t, 1)})
	runJob(t, l, "db/parts", `
mkdirs(job)
create(attempt(1) + "/dt=2026-01-01/a.parquet"); create(attempt(1) + "/dt=2026-01-02/b.parquet")
merge_into_table(attempt(1)); delete(attempt(1))
eq(published("dt=2026-01-01/a.parquet"), part); eq(published("dt=2026-01-02/b.parquet"), part)
create(attempt(2) + "/dt=2026-01-02/c.parquet"); create(attempt(3) + "/dt=2026-01-03/d.parquet")
merge_into_table(attempt(2)); merge_into_table(attempt(3))
commit_job()
`)
	wantTable(t, l, "db/parts", "_SUCCESS", "dt=2026-01-01/a.parquet", "dt=2026-01-01/old.parquet", "dt=2026-01-02/b.parquet",
		"dt=2026-01-02/c.parquet", "dt=2026-01-03/d.parquet")
}

// Case 75: the whole table is overwritten, then a part of its partitions.
func TestCase75Overwrites(t *testing.T) {
	t.Parallel()
	old := mounttest.Parquet(t, 1)
	l := mountForJobs(t, map[string]string{"dt=2026-01-01/old.parquet": old, "dt=2026-01-02/old.parquet": old})
	runJob(t, l, "db", `
os.chdir("parts")
create(attempt(7) + "/dt=2026-01-09/dead.parquet"); commit_task(7) # a job that was killed here
os.chdir("..")
delete("parts")                                # a table's directory stays
os.chdir("parts"); eq(os.listdir("."), [])
eq(err(os.stat, job + "/task_7"), "ENOENT")
mkdirs(job)
create(attempt(1) + "/dt=2026-01-01/new.parquet"); create(attempt(1) + "/dt=2026-01-03/new.parquet")
commit_task(1); commit_job()
`)
	wantTable(t, l, "db/parts", "_SUCCESS", "dt=2026-01-01/new.parquet", "dt=2026-01-03/new.parquet")
	runJob(t, l, "db/parts", `
s = ".spark-staging-0a1b2c3d"
mkdirs(s)
create(s + "/dt=2026-01-03/dynamic.parquet"); create(s + "/dt=2026-01-04/dynamic.parquet")
eq(sorted(n for n in os.listdir(".") if n[0] != "_"), ["dt=2026-01-01", "dt=2026-01-03"])
for p in "dt=2026-01-03", "dt=2026-01-04":
    delete(p); rename(s + "/" + p, p)
    eq(read(p + "/dynamic.parquet"), part)
delete(s); create("./_SUCCESS", b"")
eq(err(os.stat, s), "ENOENT")
`)
	wantTable(t, l, "db/parts", "_SUCCESS", "dt=2026-01-01/new.parquet", "dt=2026-01-03/dynamic.parquet", "dt=2026-01-04/dynamic.parquet")
	if trees := treesOf(t, l, "db/parts"); len(trees) > 0 {
		t.Errorf("the store has %q", trees)
	}
}

// A job whose mount is killed, or ends, finds its tree and commits it.
func TestCase75JobsOutliveTheirMount(t *testing.T) {
	t.Parallel()
	l := mountForJobs(t, nil)
	runJob(t, l, "db/parts", `
mkdirs(job)
create(attempt(1) + "/dt=2026-01-01/a.parquet"); create(attempt(1) + "/dt=2026-01-02/b.parquet"); commit_task(1)
create(attempt(2) + "/dt=2026-01-01/c.parquet"); mkdirs(attempt(2) + "/empty")
`)
	for _, end := range []string{"kill", "unmount"} {
		if end == "kill" {
			l.Kill()
			l.Start()
		} else {
			l.Remount()
		}
		wantTable(t, l, "db/parts")
		runJob(t, l, "db/parts", `
eq(files(job), ["_temporary/attempt_2/dt=2026-01-01/c.parquet", "task_1/dt=2026-01-01/a.parquet", "task_1/dt=2026-01-02/b.parquet"])
eq(sorted(os.listdir(attempt(2))), ["dt=2026-01-01", "empty"])
eq(read(job + "/task_1/dt=2026-01-01/a.parquet"), part)
`)
	}
	runJob(t, l, "db/parts", `commit_task(2); os.rmdir(job + "/task_2/empty"); commit_job()`)
	wantTable(t, l, "db/parts", "_SUCCESS", "dt=2026-01-01/a.parquet", "dt=2026-01-01/c.parquet", "dt=2026-01-02/b.parquet")
}

func TestTreesAreOrdinaryDirectoriesOfTheMount(t *testing.T) {
	t.Parallel()
	l := mountForJobs(t, nil)
	disk := t.TempDir()
	for _, tree := range []string{"_temporary", "_temporary-1", "__magic_1", ".hive-staging_1", ".spark-staging-1"} {
		// The same in the mount and on a disk.
		work := `set -e; t=` + tree + `; mkdir $t; mkdir -p $t/a/b; echo 1 >$t/a/f; echo 2 >$t/a/b/g; : >$t/empty; chmod 0640 $t/a/f; touch -d @11 $t/a/f
			ls -A $t $t/a; mv $t/a $t/c; cat $t/c/f $t/c/b/g; stat -c '%a %Y %s' $t/c/f; mv $t/c/f $t/g; cat $t/g; echo 3 >>$t/g; cp $t/g $t/h; mv $t/h $t/g; cat $t/g
			sed -i s/3/4/ $t/g; cat $t/g; ls -A $t; find $t | sort; rmdir $t/c 2>/dev/null || echo not empty; rm $t/c/b/g; rmdir $t/c/b $t/c; du -s --apparent-size -b $t/g | cut -f1; ls -A $t`
		got, want := l.MustSh(`cd db/plain; `+work), ""
		if r := l.Exec("bash", "-c", "cd "+disk+"; "+work); r.Code == 0 {
			want = r.Out
		}
		if got != want {
			t.Errorf("in %s:\n%s\non a disk:\n%s", tree, got, want)
		}
		wantTable(t, l, "db/plain")
		l.MustSh(`cd db/plain; ls -A | wc -l | grep -qx 0; rm -r ` + tree + `; test ! -e ` + tree)
	}
	if trees := treesOf(t, l, "db/plain"); len(trees) > 0 || len(mountStatusOf(t, l).Local) > 0 {
		t.Errorf("left are %q, %+v", trees, mountStatusOf(t, l).Local)
	}
}

// What another writer has in a tree is merged for reading, and stays as it is.
func TestTreesOfOthersAreLeft(t *testing.T) {
	t.Parallel()
	theirs := mounttest.Parquet(t, 2)
	l := mountForJobs(t, map[string]string{"_temporary/0/task_9/dt=2026-01-01/x.parquet": theirs, "dt=2026-01-01/f.parquet": theirs})
	runJob(t, l, "db/parts", `
theirs = job + "/task_9/dt=2026-01-01"
eq(os.listdir(job), ["task_9"])
create(attempt(1) + "/dt=2026-01-01/a.parquet")
eq(sorted(os.listdir(job)), ["_temporary", "task_9"])
eq(err(os.unlink, theirs + "/x.parquet"), "EPERM")
eq(err(os.rename, theirs + "/x.parquet", "dt=2026-01-01/x.parquet"), "EXDEV")
eq(err(os.rename, theirs + "/x.parquet", job + "/x.parquet"), "EXDEV")
eq(err(os.rename, "dt=2026-01-01/f.parquet", job + "/f.parquet"), "EXDEV")
eq(err(os.rename, "dt=2026-01-01", job + "/dt=2026-01-01"), "EXDEV")
assert err(os.rmdir, theirs) in ("EPERM", "ENOTEMPTY")
os.rename(attempt(1) + "/dt=2026-01-01/a.parquet", "dt=2026-01-01/a.parquet")
`)
	wantStore(t, l, "db/parts/dt=2026-01-01/a.parquet", mounttest.Parquet(t, 5))
	if got := stored(t, l, "db/parts/_temporary/0/task_9/dt=2026-01-01/x.parquet"); got != theirs {
		t.Error("another's file in a tree is another")
	}
}

// One file that may not be published keeps the whole directory where it is.
func TestDirectoriesLeaveATreeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	l := mountForJobs(t, map[string]string{"dt=2026-01-05/f.parquet": mounttest.Parquet(t, 2)})
	runJob(t, l, "db/parts", `
def put(name, files): # a directory of these
    for f, data in files.items(): create("_temporary/" + name + "/" + f, data)
put("cut", {"a.parquet": part, "b.parquet": part[:100], "c.parquet": part})
eq(err(os.rename, "_temporary/cut", "dt=2026-01-01"), "EBADMSG")
eq(files("_temporary/cut"), ["a.parquet", "b.parquet", "c.parquet"])
put("good", {"a.parquet": part})
for to, want in {"dt=today": "EINVAL", "x=1": "EINVAL", "dt=2026-01-05": "ENOTEMPTY", "dt=2026-1-5": "EEXIST"}.items():
    eq((to, err(os.rename, "_temporary/good", to)), (to, want))
eq(files("_temporary/good"), ["a.parquet"])
eq(os.listdir("."), ["dt=2026-01-05"])
os.mkdir("dt=2026-01-06")
os.rename("_temporary/good", "dt=2026-01-06")  # an empty directory may be replaced
eq(read("dt=2026-01-06/a.parquet"), part)
delete("_temporary")
`)
	wantTable(t, l, "db/parts", "dt=2026-01-05/f.parquet", "dt=2026-01-06/a.parquet")
}

// A job costs a PUT a file, and one for _SUCCESS.
func TestS3JobsAreOnePUTAFile(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Flags: []string{"--write=delete"},
		Tables: []mounttest.Table{{Database: "db", Name: "plain"}, {Database: "db", Name: "parts", Keys: []string{"dt:date"}}},
	})
	if err := os.WriteFile(filepath.Join(l.State, "part"), []byte(mounttest.Parquet(t, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	l.MustSh(`echo x > db/plain/_first; echo y > db/plain/_first`) // shows what the store makes of conditions
	l.Proxy.Reset()
	runJob(t, l, "db/parts", `
mkdirs(job)
for n in 1, 2, 3:
    for d in 1, 2: create(attempt(n) + "/dt=2026-01-0%d/p%d.parquet" % (d, n))
    commit_task(n)
`)
	for op, n := range l.Proxy.Counts() {
		if op != "ListObjectsV2" && op != "HeadObject" {
			t.Errorf("%d %s before the job commits\n%s", n, op, asked(l))
		}
	}
	l.Proxy.Reset()
	runJob(t, l, "db/parts", `commit_job()`)
	got := l.Proxy.Counts()
	if got["PutObject"] != 7 || got["CopyObject"]+got["DeleteObject"]+got["DeleteObjects"] > 0 {
		t.Errorf("the job's commit: %v, want 7 PUTs, no copy and no removal\n%s", got, asked(l))
	}
}

func TestTreesAreMadeAtTheLevelThatTheyNeed(t *testing.T) {
	t.Parallel()
	l := mountForJobs(t, map[string]string{"dt=2026-01-01/f.parquet": mounttest.Parquet(t, 2)})
	l.Remount("--write=none")
	wantErrno(t, "mkdir at --write=none", mkdir(l, "db/parts/_temporary"), syscall.EPERM)
	l.Remount("--read-only")
	wantErrno(t, "mkdir with --read-only", mkdir(l, "db/parts/_temporary"), syscall.EROFS)
	l.Remount("--write=create")
	runJob(t, l, "db/parts", `create(attempt(1) + "/dt=2026-01-02/a.parquet"); commit_task(1); commit_job()`)
	wantTable(t, l, "db/parts", "_SUCCESS", "dt=2026-01-01/f.parquet", "dt=2026-01-02/a.parquet")
}
