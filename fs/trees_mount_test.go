package fs_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const inTree = "db/t/_temporary/0"

// TestTreeIsAnOrdinaryDirectory: names, errors and descriptors as on a disk.
func TestTreeIsAnOrdinaryDirectory(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`cd db/t; mkdir -p _temporary/0/a/b _temporary/0/odd:=name _temporary/0/full; echo 1 >_temporary/0/a/f; echo 2 >_temporary/0/full/f`)
	wantErrno(t, "mkdir of what is there", mkdir(l, inTree+"/a"), syscall.EEXIST)
	wantErrno(t, "mkdir of a file", mkdir(l, inTree+"/a/f"), syscall.EEXIST)
	wantErrno(t, "rmdir with a file", rmdir(l, inTree+"/full"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir with a directory", rmdir(l, "db/t/_temporary"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir of a file", rmdir(l, inTree+"/a/f"), syscall.ENOTDIR)
	wantErrno(t, "unlink of a directory", unlink(l, inTree+"/a"), syscall.EISDIR)
	wantErrno(t, "rename onto a directory that is not empty", rename(l, inTree+"/a", inTree+"/full"), syscall.ENOTEMPTY)
	wantErrno(t, "rename onto a file", rename(l, inTree+"/a", inTree+"/full/f"), syscall.ENOTDIR)
	wantErrno(t, "rename below itself", rename(l, inTree+"/a", inTree+"/a/b/c"), syscall.EINVAL)
	wantErrno(t, "NOREPLACE", noReplace(l, inTree+"/a", inTree+"/odd:=name"), syscall.EEXIST)
	wantErrno(t, "rename onto an empty directory", rename(l, inTree+"/a", inTree+"/odd:=name"), 0)
	wantErrno(t, "of a tree to another", rename(l, "db/t/_temporary", "db/t/.spark-staging-1"), 0)
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, "db/t/.spark-staging-1/0", "full", "odd:=name")
	wantNames(t, l, "db/t/.spark-staging-1/0/odd:=name", "b", "f")
	wantContent(t, l, "db/t/.spark-staging-1/0/odd:=name/f", "1\n")
	wantErrno(t, "stat of the old name", statErr(l, "db/t/_temporary"), syscall.ENOENT)
	l.MustSh(`rm -r db/t/.spark-staging-1; test ! -e db/t/.spark-staging-1`)
	wantStored(t, l, "k=1/old")
	wantNoTree(t, l)
}

// TestDescriptorsMoveWithTheirTree: what is open is written on at its new place.
func TestDescriptorsMoveWithTheirTree(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	got := mustPython(t, l, `
import os
t = "db/t/_temporary/0"
os.makedirs(t + "/a/k=2")
d = os.open(t + "/a/k=2", os.O_RDONLY)
f = open(t + "/a/k=2/p", "w"); f.write("one\n"); f.flush()
os.rename(t + "/a", t + "/b")
f.write("two\n"); f.flush()
print(open(t + "/b/k=2/p").read().split(), os.listdir(d), os.stat(t + "/b/k=2/p").st_ino == os.fstat(f.fileno()).st_ino)
try: os.rename(t + "/b/k=2", "db/t/k=2")
except OSError as e: print(e.errno)
print(os.path.exists("db/t/k=2"), os.listdir(t + "/b/k=2"))
f.close()
r = open(t + "/b/k=2/p")
os.rename(t + "/b/k=2", "db/t/k=2")
print(r.read().split(), open("db/t/k=2/p").read().split(), os.listdir(d))
`)
	want := fmt.Sprintf("['one', 'two'] ['p'] True\n%d\nFalse ['p']\n['one', 'two'] ['one', 'two'] ['p']\n", syscall.EBUSY)
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantStored(t, l, "k=1/old", "k=2/p")
}

// TestRenamedTreesSurviveAKill with their files where they are.
func TestRenamedTreesSurviveAKill(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`cd db/t; mkdir -p _temporary/0/a/b; echo 1 >_temporary/0/a/b/f; echo 2 >_temporary/0/a/g; chmod 640 _temporary/0/a/g; sync -d _temporary/0/a/g; mv _temporary/0/a _temporary/0/c; rm _temporary/0/c/b/f; rmdir _temporary/0/c/b; mkdir _temporary/0/d`)
	l.Kill()
	l.Start()
	wantNames(t, l, inTree, "c", "d")
	wantNames(t, l, inTree+"/c", "g")
	wantContent(t, l, inTree+"/c/g", "2\n")
	wantErrno(t, "rename out", rename(l, inTree+"/c", "db/t/k=2"), 0)
	wantStored(t, l, "k=1/old", "k=2/g")
}

// TestTreeIsMergedWithTheStores: what others have there is read, and left alone.
func TestTreeIsMergedWithTheStores(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n", "_temporary/0/task_9/k=1/theirs": "theirs\n", "_temporary/0/both": "theirs\n"}, "--write=delete")
	l.MustSh(`cd db/t/_temporary/0; mkdir -p task_1/k=1; echo mine >task_1/k=1/mine; echo mine >task_9/k=1/mine`)
	wantNames(t, l, inTree, "both", "task_1", "task_9")
	wantNames(t, l, inTree+"/task_9/k=1", "mine", "theirs")
	wantContent(t, l, inTree+"/task_9/k=1/theirs", "theirs\n")
	wantErrno(t, "unlink of another's", unlink(l, inTree+"/both"), syscall.EPERM)
	wantErrno(t, "rmdir with another's", rmdir(l, inTree+"/task_9"), syscall.ENOTEMPTY)
	wantErrno(t, "rename of another's file", rename(l, inTree+"/both", "db/t/k=1/new"), syscall.EXDEV)
	wantErrno(t, "rename of a directory with another's", rename(l, inTree+"/task_9", inTree+"/task_3"), syscall.EXDEV)
	wantErrno(t, "rename out of one", rename(l, inTree+"/task_9/k=1", "db/t/k=7"), syscall.EXDEV)
	wantErrno(t, "overwrite of another's", openErr(l, inTree+"/both", syscall.O_WRONLY|syscall.O_TRUNC), syscall.EPERM)
	wantErrno(t, "of what is published into a tree", rename(l, "db/t/k=1/old", inTree+"/old"), syscall.EXDEV)
	wantErrno(t, "of a published directory into a tree", rename(l, "db/t/k=1", inTree+"/k=1"), syscall.EXDEV)
	l.MustSh(`cd db/t/_temporary/0; rm task_9/k=1/mine; rm -r task_1; ! rm -r task_9 2>/dev/null`)
	wantNames(t, l, inTree+"/task_9/k=1", "theirs")
	wantStored(t, l, "k=1/old", "_temporary/0/task_9/k=1/theirs", "_temporary/0/both")
}

// TestPartitionsOfTwoKeysLeaveATree, with what is empty and what is hidden.
func TestPartitionsOfTwoKeysLeaveATree(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{byKeys([]string{"k:int", "j:int"}, map[string]string{"k=1/j=1/old": "old\n"})}})
	runCommitter(t, l, `
t = "db/t"
a = attempt(t, 1)
for j in 1, 2: create(a + "/k=2/j=%d/p" % j, b"x\n")
create(a + "/k=2/j=2/_hidden", b"h\n")
mkdirs(a + "/k=2/j=3")
create(a + "/k=3/j=x/p", b"x\n")
create(a + "/k=4/j=1/p", b"x\n"); create(a + "/k=4/j=01/p", b"x\n")
def refused(a, b):
    try: os.rename(a, b)
    except OSError as e: return errno.errorcode[e.errno]
assert refused(a + "/k=3", t + "/k=3") == "EINVAL"
assert refused(a + "/k=4", t + "/k=4") == "EEXIST"
assert sorted(os.listdir(a)) == ["k=2", "k=3", "k=4"] and os.listdir(t) == ["k=1"], os.listdir(t)
assert os.path.exists(a + "/k=4/j=01/.p.crc") and os.path.exists(a + "/k=3/j=x/p")
rename(a + "/k=2", t + "/k=2")
assert sorted(os.listdir(t + "/k=2")) == ["j=1", "j=2", "j=3"]
assert open(t + "/k=2/j=2/.p.crc").read() == "crc\0\2"
assert not os.path.exists(a + "/k=2")
delete(t + "/_temporary")
`)
	wantStored(t, l, "k=1/j=1/old", "k=2/j=1/p", "k=2/j=2/_hidden", "k=2/j=2/p")
	l.Remount()
	wantNames(t, l, "db/t/k=2", "j=1", "j=2", "j=3")
	wantNames(t, l, "db/t", "k=1", "k=2")
}

// TestNameThatAnotherTookKeepsAllInTheTree: on a bucket, where it shows at the publish.
func TestNameThatAnotherTookKeepsAllInTheTree(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: []mounttest.Table{byKeys([]string{"k:int"}, map[string]string{"k=1/old": "old\n"})},
		Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m"},
	})
	l.MustSh(`cd db/t; ls -R >/dev/null; test ! -e k=2; mkdir -p _temporary/0/k=2/sub; for i in 1 2 3 4 5; do echo $i >_temporary/0/k=2/p$i; done; echo s >_temporary/0/k=2/sub/s; ls k=1 >/dev/null`)
	l.PutStored("db/t/k=2/p3", "theirs\n")
	err := rename(l, inTree+"/k=2", "db/t/k=2")
	wantErrno(t, "rename", err, syscall.EEXIST)
	wantStored(t, l, "k=1/old", "k=2/p3")
	wantNames(t, l, inTree+"/k=2", "p1", "p2", "p3", "p4", "p5", "sub")
	wantContent(t, l, inTree+"/k=2/p3", "3\n")
	if got := stored(t, l, "db/t/k=2/p3"); got != "theirs\n" {
		t.Errorf("another's file has %q", got)
	}
	wantErrno(t, "to another place", rename(l, inTree+"/k=2", "db/t/k=3"), 0)
	wantStored(t, l, "k=1/old", "k=2/p3", "k=3/p1", "k=3/p2", "k=3/p3", "k=3/p4", "k=3/p5", "k=3/sub/s")
}

// TestTreesGoWithTheirDirectory, as rm -r takes them on a disk; not while a file of one
// is open, and never what is staged beside them.
func TestTreesGoWithTheirDirectory(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"}, "--write=delete")
	l.MustSh(`cd db/t; mkdir -p _temporary/0/task_1 k=1/_temporary/0 k=2/.spark-staging-1; echo 1 >_temporary/0/task_1/f; echo 2 >k=1/_temporary/0/f
		exec 3>k=2/.spark-staging-1/open; rm -r k=1; test ! -e k=1; ! rmdir k=2 2>/dev/null; test -e k=2/.spark-staging-1/open; exec 3>&-; rmdir k=2
		exec 3>_temporary/0/open; rmdir ../t; test -e _temporary/0/task_1/f; exec 3>&-`)
	l.MustSh(`rmdir db/t; test -d db/t; test ! -e db/t/_temporary; test ! -e db/t/k=2`)
	wantStored(t, l)
	wantNoTree(t, l)
	l.MustSh(`cd db/t; mkdir k=3; exec 3>k=3/f; echo 3 >&3; test -d k=3/_temporary; rmdir k=3/_temporary; rm -r k=3/_temporary; test -d k=3/_temporary; ! rmdir k=3 2>/dev/null; exec 3>&-; cat k=3/f`)
	wantStored(t, l, "k=3/f")
}

// TestTwoJobsInOneTable do not touch one another's trees.
func TestTwoJobsInOneTable(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	job := func(n int) string {
		return fmt.Sprintf(`
t, s = "db/t", "db/t/.spark-staging-%[1]d"
for k in 1, 2%[1]d, 3%[1]d: create(s + "/k=%%d/part-%[1]d" %% k, b"%[1]d\n") # a new one is one's alone, as on a disk
for base in sorted(os.listdir(s)): merge(s, t)
delete(s)
`, n)
	}
	failed := make(chan string, 2)
	for n := 1; n <= 2; n++ {
		go func() {
			r := l.Exec(python(t), "-c", committer+job(n))
			failed <- r.Err
		}()
	}
	for range 2 {
		if err := <-failed; strings.Contains(err, "Error") {
			t.Error(err)
		}
	}
	wantStored(t, l, "k=1/old", "k=1/part-1", "k=1/part-2", "k=21/part-1", "k=22/part-2", "k=31/part-1", "k=32/part-2")
	wantNoTree(t, l)
}

// TestTreeListingsGoOn: every name once, from any offset, while names go.
func TestTreeListingsGoOn(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"_temporary/0/theirs-1": "x", "_temporary/0/theirs-2": "x"})
	got := mustPython(t, l, `
import os
t = "db/t/_temporary/0"
for i in range(1500): open(t + "/f%04d" % i, "w").close()
for i in range(300): os.mkdir(t + "/d%04d" % i)
names = []
with os.scandir(t) as it:
    for e in it:
        names.append((e.name, e.is_dir(follow_symlinks=False), e.inode() == os.stat(e.path).st_ino))
        if e.name[0] == "f": os.unlink(e.path)
print(len(names), len(set(names)), all(n[2] for n in names), all(n[1] == (n[0][0] == "d") for n in names), len(os.listdir(t)))
`)
	if want := "1802 1802 True True 302\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTreesOfAGlueTable: a partition of the catalog has its own location; a new one is
// registered, and one that is leaving stays.
func TestTreesOfAGlueTable(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, inCatalog(), twoKeys())
	runCommitter(t, l, `
t = "db/t"
s = t + "/.spark-staging-1"
for k in 2, 3, 7: create(s + "/dt=%d/part" % k, b"%d\n" % k)
create(s + "/dt=8/_hidden", b"h\n")
for k in 2, 3, 7, 8:
    if k != 3: delete(t + "/dt=%d" % k) # 3 is there, and empty
    rename(s + "/dt=%d" % k, t + "/dt=%d" % k)
delete(s)
assert sorted(os.listdir(t)) == ["dt=1", "dt=2", "dt=3", "dt=7", "dt=8"], os.listdir(t)
t = "db/two"
s = t + "/_temporary/0"
for k in "x", "y", "z": create(s + "/dt=5/k=%s/p" % k, b"5\n")
rename(s + "/dt=5", t + "/dt=5")
assert sorted(os.listdir(t + "/dt=5")) == ["k=x", "k=y", "k=z"]
delete(t + "/_temporary")
`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantRegistered(t, l, "two", "1/x", "1/y", "5/x", "5/y", "5/z")
	if got := inBucket(t, l, 1, "else/where/part"); got != "2\n" {
		t.Errorf("the partition's own location has %q", got)
	}
	for _, name := range []string{"db/t/dt=2/part", "db/t/dt=3/part", "db/t/dt=7/part"} {
		wantContent(t, l, name, name[8:9]+"\n")
	}
	wantNames(t, l, "db/t/dt=2", "part")
	l.Remount()
	wantNames(t, l, "db/t/dt=7", "part")
	wantNames(t, l, "db/two/dt=5", "k=x", "k=y", "k=z")
}

// TestTreesNeedNoRight but that to make new names.
func TestTreesNeedNoRight(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"}, "--write=create")
	runCommitter(t, l, `
t = "db/t"
setup(t)
create(attempt(t, 1) + "/k=2/p", b"2\n")
commit_task(t, 1); commit_job(t)
`)
	got := storeNames(t, l)
	if want := []string{"_SUCCESS", "k=1/old", "k=2/p"}; !slices.Equal(got, want) {
		t.Errorf("the store has %q, want %q", got, want)
	}
	l.MustSh(`cd db/t; rm k=2/p; rmdir k=2`)
}
