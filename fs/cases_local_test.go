package fs_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Local names: locks, swap files and checksums live in the mount that made them.

func localNames() []string {
	return []string{".part-0.parquet.crc", ".f.swp", ".f.swx", ".f.swpx", "4913", ".#f", "index.lock"}
}

// wantLocal asserts that exactly these names of csvDir live in the mount alone.
func wantLocal(t *testing.T, l *mounttest.Lake, want ...string) {
	t.Helper()
	var got []string
	for _, w := range mountStatusOf(t, l).Local {
		got = append(got, strings.TrimPrefix(w.Path, csvDir+"/"))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("local are %q, want %q", got, want)
	}
}

func TestLocalNamesAreTheMountsAlone(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "data\n"}, lingersBriefly, "--write=delete")
	other := l.Second(noWait...)
	for _, name := range localNames() {
		write(t, l, csvDir+"/"+name, name)
		l.MustSh(`cd ` + csvDir + `; chmod 0640 ` + name + `; touch -d @11 ` + name + `; sync ` + name)
		wantUnpublished(t, l, csvDir+"/"+name, name)
		wantErrno(t, name+" in another mount", statErr(other, csvDir+"/"+name), syscall.ENOENT)
		wantErrno(t, name+" with O_EXCL", openErr(l, csvDir+"/"+name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL), syscall.EEXIST)
	}
	wantNames(t, l, csvDir, "f")
	wantLocal(t, l, localNames()...)
	if waiting := stagedStatus(t, l); len(waiting) > 0 {
		t.Errorf("local files are said to wait: %+v", waiting)
	}
	// A temporary file that is made later, and published for its age, shows that no
	// local one will be.
	write(t, l, csvDir+"/late.tmp", "late")
	l.Eventually("late.tmp is published", 20*time.Second, func() bool { _, there := inStore(t, l, csvDir+"/late.tmp"); return there })
	if got := l.StoredNames(csvDir); !slices.Equal(got, []string{"f", "late.tmp"}) {
		t.Errorf("the store has %q", got)
	}
	l.MustSh(`cd ` + csvDir + `; echo more >> index.lock; : > 4913; rm .f.swp .f.swx .f.swpx '.#f' 4913; test ! -e .f.swp; test ! -e 4913; cat index.lock`)
	wantLocal(t, l, ".part-0.parquet.crc", "index.lock")
}

func TestLocalNamesOutliveTheMount(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + csvDir + `; for n in .f.swp index.lock 4913; do echo $n > $n; done; : > empty.lock; chmod 0640 index.lock; touch -d @11 index.lock`)
	for _, end := range []string{"unmount", "kill"} {
		if end == "kill" {
			l.Kill()
			l.Start()
		} else {
			l.Remount()
		}
		if got := l.MustSh(`cd ` + csvDir + `; ls -A; cat .f.swp index.lock 4913; stat -c '%a %Y %s' index.lock; stat -c %s empty.lock`); got != ".f.swp\nindex.lock\n4913\n640 11 11\n0\n" {
			t.Errorf("after %s: %q", end, got)
		}
		wantLocal(t, l, ".f.swp", "4913", "empty.lock", "index.lock")
		if log := l.Log(); strings.Contains(log, "earlier mount is staged") || strings.Contains(log, "not published") {
			t.Errorf("after %s somebody is warned:\n%s", end, log)
		}
		if got := l.StoredNames(csvDir); len(got) > 0 {
			t.Errorf("after %s the store has %q", end, got)
		}
	}
	// They are the files of this mount: they change, and go.
	l.MustSh(`cd ` + csvDir + `; echo more >> .f.swp; cat .f.swp; rm 4913 empty.lock .f.swp; test ! -e 4913; mv index.lock index`)
	wantStore(t, l, csvDir+"/index", "index.lock\n")
	wantClean(t, l, csvDir, "index")
}

// git and many others write a lock, and rename it.
func TestLocalNamesPublishWithinTheirRename(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"HEAD": "old\n"})
	mustPython(t, l, script(l, csvDir, `
for to in "HEAD", "new":
    fd = os.open(to + ".lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    eq(err(os.open, to + ".lock", os.O_RDWR | os.O_CREAT | os.O_EXCL), "EEXIST")
    os.write(fd, b"ref\n"); os.fsync(fd); os.close(fd)
    eq(published(to), b"old\n" if to == "HEAD" else None)
    os.chmod(to + ".lock", 0o600)
    os.rename(to + ".lock", to)
    eq((published(to), published(to + ".lock"), oct(os.stat(to).st_mode)), (b"ref\n", None, "0o100600"))
    eq(err(os.stat, to + ".lock"), "ENOENT")
`))
	wantClean(t, l, csvDir, "HEAD", "new")
}

func TestToolsLeaveNothingLocalAndNothingStrangeInTheStore(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "a\n"}, "--write=delete")
	watch := watchNames(l.Window(csvDir), "f")
	l.MustSh(`cd ` + csvDir + `
flock x.lock true; flock x.lock sh -c '! flock -n x.lock true'; rm x.lock
if command -v vim >/dev/null; then vim -es -u NONE -c '%s/a/b/' -c wq f; vim -es -u NONE -c 'set swapfile nobackup nowritebackup' -c '%s/b/a/' -c wq f; fi
sed -i s/a/b/ f; perl -pi -e s/b/a/ f; cat f
python3 -c 'import os, tempfile
d = tempfile.NamedTemporaryFile(dir=".", delete=False); d.write(b"a\n"); d.close(); os.replace(d.name, "f")'`)
	names, missing := watch()
	var strange []string
	for name := range names {
		if name != "f" && name != "f~" {
			strange = append(strange, name)
		}
	}
	if missing > 0 || len(strange) > 0 {
		t.Errorf("the store showed %q, and f was missing %d times", strange, missing)
	}
	wantLocal(t, l)
	wantClean(t, l, csvDir, "f")
}

// A directory is removed with the locks in it, which rm does not list.
func TestDirectoriesGoWithTheirLocalNames(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"keep": ""}, "--write=delete")
	l.MustSh(`cd db/t; mkdir -p d/e; echo x > d/x.lock; echo x > d/e/.f.swp; echo x > d/f; rm -r d; test ! -e d`)
	l.MustSh(`cd db/t; mkdir d; test ! -e d/x.lock; rmdir d`)
	if ids := spools(t, l); len(ids) > 0 {
		t.Errorf("the staging directory has %q", ids)
	}
	// One that a program has open is in use.
	l.MustSh(`cd db/t; mkdir d; exec 3> d/x.lock; ! rmdir d 2>/dev/null; echo x >&3; exec 3>&-; cat d/x.lock`)
}

// hadoopSums makes the checksums of a name as Hadoop's local file system does: beside the
// file, both open at once, the file closed first.
const hadoopSums = `
def hadoop(name, data, mode=os.O_EXCL):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | mode, 0o644)
    crc = os.open("." + name + ".crc", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, data); os.write(crc, b"crc of " + data)
    os.close(fd); os.close(crc)
def crc(name):
    "what Hadoop would read"
    try: return open("." + name + ".crc", "rb").read()
    except FileNotFoundError: return None
def hadoop_rename(a, b):
    os.rename(a, b)
    if os.path.exists("." + a + ".crc"): os.rename("." + a + ".crc", "." + b + ".crc")
    elif os.path.exists("." + b + ".crc"): os.unlink("." + b + ".crc")
`

// Case 76, without Spark: checksums are never in the store, and go with the version
// of the file that they are of.
func TestCase76ChecksumsGoWithTheirFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, append([]string{"--write=delete"}, noWait...)...)
	mustPython(t, l, script(l, csvDir, hadoopSums+`
bad = []
def eq(got, want): # all of them, to the end
    if got != want: bad.append("line %d: got %.300r, want %.300r" % (sys._getframe(1).f_lineno - start, got, want))
start = sys._getframe().f_lineno
def made(name, data):
    hadoop(name, data)
    eq((published(name), crc(name)), (data, b"crc of " + data))
    eq(published("." + name + ".crc"), None)
made("a", b"1\n")
eq(os.listdir("."), ["a"])
open("a", "w").write("other\n"); eq(crc("a"), None)                       # written anew
made("b", b"1\n"); subprocess.run(["sed", "-i", "s/1/2/", "b"], check=True); eq((published("b"), crc("b")), (b"2\n", None))
made("c", b"1\n"); open("c", "a").write("more\n"); eq(crc("c"), None)     # appended to
made("d", b"1\n"); os.unlink("d"); eq(crc("d"), None)
made("e", b"1\n"); os.rename("a", "e"); eq((published("e"), crc("e")), (b"other\n", None))
made("f", b"1\n"); os.truncate("f", 1); eq(crc("f"), None)
made("g", b"1\n"); put_stored("g", b"by others\n"); eq(open("g").read(), "by others\n"); eq(crc("g"), None)
made("h", b"1\n"); remove_stored("h"); eq(err(os.stat, "h"), "ENOENT"); eq(crc("h"), None)
# they stay with what they are of
made("i", b"1\n"); os.chmod("i", 0o600); os.utime("i", (11, 12)); open("i").read(); eq(crc("i"), b"crc of 1\n")
made("j", b"1\n"); hadoop_rename("j", "k"); eq((published("k"), crc("k"), crc("j")), (b"1\n", b"crc of 1\n", None))
open("k", "w").write("other\n"); eq(crc("k"), None)
# Hadoop's own overwrite
made("l", b"1\n"); hadoop("l", b"22\n", os.O_TRUNC); eq((published("l"), crc("l")), (b"22\n", b"crc of 22\n"))
made("m", b"1\n"); made("n", b"22\n"); hadoop_rename("m", "n"); eq((published("n"), crc("n")), (b"1\n", b"crc of 1\n"))
eq([n for n in stored_names() if n.startswith(".")], [])
assert not bad, "\n".join(bad)
`))
	if got := l.StoredNames(csvDir); slices.ContainsFunc(got, func(n string) bool { return strings.HasSuffix(n, ".crc") }) {
		t.Errorf("the store has %q", got)
	}
	l.MustSh(`cd ` + csvDir + `; rm *; test -z "$(ls -A)"`)
	wantSettled(t, l)
}

// A checksum that outlived its mount may be of an older version.
func TestCase76ChecksumsOverARemount(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, csvDir, hadoopSums+`
hadoop("a", b"1\n"); hadoop("b", b"1\n")
`))
	l.Unmount()
	l.PutStored(csvDir+"/b", "other\n")
	l.Start()
	mustPython(t, l, script(l, csvDir, hadoopSums+`
eq(open("b").read(), "other\n")
eq(crc("b"), None)
assert crc("a") in (None, b"crc of 1\n"), crc("a")
`))
}

// What is in use is kept for as long as its mount lives, however old it is; what an
// earlier mount left of others is not.
func TestFilesOfNamesThatAreHeldOutliveStagedKeep(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers, "--staged-keep=300ms")
	l.MustSh(`cd ` + csvDir + `; echo lock > a.lock; echo temporary > a.tmp; mkdir -p ../_temporary/0; echo tree > ../_temporary/0/f
sh -c 'exec 3>torn; echo half >&3; kill -9 $$' || true`)
	l.WaitLog("past --staged-keep") // the torn file's turn, which is as old
	wantContent(t, l, csvDir+"/a.lock", "lock\n")
	wantContent(t, l, csvDir+"/a.tmp", "temporary\n")
	wantContent(t, l, "db/text/_temporary/0/f", "tree\n")
	if log := l.Log(); strings.Contains(log, "a.lock") || strings.Contains(log, "a.tmp") || strings.Contains(log, "_temporary") {
		t.Errorf("dropped are files that are in use:\n%s", log)
	}
}

// Tools that look whether there is anything to do find that there is nothing: what
// was written by way of another name has the time that it was given there.
func TestToolsDoNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil, "--write=delete")
	l.MustSh(`cd "$HOME"; mkdir src; echo 1 > src/a; echo 2 > src/b; touch -d @1000000000 src/a src/b`)
	for name, script := range map[string]string{
		"rsync":  `rsync -a --itemize-changes "$HOME/src/" d/`,
		"cp -u":  `mkdir -p d; cp -uvp "$HOME/src/a" "$HOME/src/b" d/`,
		"tar -u": `mkdir -p d; cp -up "$HOME/src/a" d/b; tar uvf d/a -C d b`,
	} {
		if out := l.MustSh(`cd db/t; ` + script); !strings.Contains(out, "b") {
			t.Errorf("%s does %q", name, out)
		}
		before, err := l.StoredInfo("db/t/d/a")
		if err != nil {
			t.Fatal(err)
		}
		out := l.MustSh(`cd db/t; ` + script)
		after, err := l.StoredInfo("db/t/d/a")
		if name == "tar -u" { // it writes the end of the archive again, on a disk too
			after.ModTime, after.ETag = before.ModTime, before.ETag
		}
		if err != nil || out != "" || after != before {
			t.Errorf("%s again does %q; d/a is %+v (%v), before %+v", name, out, after, err, before)
		}
		l.MustSh(`rm -r db/t/d`)
	}
}
