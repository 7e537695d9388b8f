package fs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Temporary names: what tools write beside a file and rename is published under its
// new name alone, within the rename.

// neverLingers and lingersBriefly are waits that a test never, and always, sees the
// end of.
const (
	neverLingers   = "--temporary-linger=1h"
	lingersBriefly = "--temporary-linger=300ms"
)

// wantUnpublished asserts that name is found, has this content, and is neither in the
// store nor listed.
func wantUnpublished(t *testing.T, l *mounttest.Lake, name, content string) {
	t.Helper()
	wantAbsent(t, l, name)
	wantContent(t, l, name, content)
}

func TestTemporaryNamesPublishWithinTheirRename(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"}, neverLingers)
	mustPython(t, l, script(l, csvDir, `
def put(name, data, flags=os.O_EXCL):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(fd, data); os.close(fd)
names = ["sedIqE4nW", "XXv2Kp9a", "zi0aB9_x", "tmp_k2j3h4d", ".in.txt.Ab3dE9", "f.oAbC123", "f.gawk.a1B2c3", "f.tmp", "tmp_obj_x1Y2z3", "f.6D1fA2b0", "tmp_old"]
for n, name in enumerate(names):
    for flags in os.O_EXCL, os.O_TRUNC:
        to = "f%d" % n
        put(name, b"new\n", flags)
        eq(published(name), None)
        assert name not in os.listdir("."), name
        eq(other("print(open(%r).read(), end='')" % name), "new")
        eq([s.rsplit("~", 1)[0] for s in os.listdir(".lakefs/staged")], [name])
        os.chmod(name, 0o640); os.utime(name, (11, 12))
        eq(published(name), None)
        os.rename(name, to)
        eq((published(name), published(to)), (None, b"new\n"))
        s = os.stat(to)
        eq((oct(s.st_mode), int(s.st_mtime), s.st_size), ("0o100640", 12, 4))
        eq(err(os.stat, name), "ENOENT")
        assert to in os.listdir(".")
        eq(os.listdir(".lakefs/staged"), [])
# over a file, which readers have whole until then
put("old.tmp", b"replaced\n")
eq(published("old"), b"old\n")
r = os.open("old", os.O_RDONLY)
os.replace("old.tmp", "old")
eq(published("old"), b"replaced\n")
eq(os.read(r, 99), b"old\n")
# empty ones too
put("e.tmp", b""); os.rename("e.tmp", "e")
eq(published("e"), b"")
`))
	want := []string{"e", "old"}
	for i := range 11 {
		want = append(want, fmt.Sprint("f", i))
	}
	wantClean(t, l, csvDir, want...)
}

func TestTemporaryNamesThatAreRemovedNeverWere(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	l.MustSh(`cd ` + csvDir + `; echo x > a.tmp; rm a.tmp; test ! -e a.tmp; echo y > a.tmp; cat a.tmp; rm a.tmp
exec 3> b.tmp; echo x >&3; rm b.tmp; echo y >&3; exec 3>&-; test ! -e b.tmp`)
	wantSettled(t, l)
	wantClean(t, l, csvDir)
}

// Nothing that a program does to a temporary name but a rename publishes it.
func TestNothingPublishesATemporaryNameBeforeItsRename(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("a.tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_SYNC, 0o600)
def unpublished():
    eq(published("a.tmp"), None)
    eq(os.listdir("."), [])
os.write(fd, b"one\n"); unpublished()
os.fsync(fd); unpublished()
os.fdatasync(fd); unpublished()
os.ftruncate(fd, 8); unpublished()
dup = os.dup(fd); os.close(fd); unpublished()
os.pwrite(dup, b"two\n", 4); os.close(dup); unpublished()
os.truncate("a.tmp", 7); unpublished()
with open("a.tmp", "ab") as f: f.write(b"\nthree\n")
unpublished()
fd = os.open("a.tmp", os.O_WRONLY | os.O_TRUNC | os.O_CREAT); os.write(fd, b"four\n"); os.close(fd)
unpublished()
subprocess.run(["sh", "-c", "echo five >> a.tmp; (echo six; echo seven) >> a.tmp; sync a.tmp"], check=True)
unpublished()
os.rename("a.tmp", "a")
eq(published("a"), b"four\nfive\nsix\nseven\n")
`))
	wantClean(t, l, csvDir, "a")
}

// A rename of a file that is still written names what its close will publish.
func TestOpenTemporaryNamesArePublishedByTheirClose(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"}, neverLingers)
	mustPython(t, l, script(l, csvDir, `
for to in "new", "old":
    fd = os.open("a.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, b"one\n")
    os.rename("a.tmp", to)
    eq(published("a.tmp"), None)
    eq(published(to), None if to == "new" else b"old\n")
    eq(open(to).read(), "one\n")
    os.write(fd, b"two\n"); os.close(fd)
    eq(published(to), b"one\ntwo\n")
# to another temporary name, while it is open, and on
fd = os.open("a.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.write(fd, b"one\n")
os.rename("a.tmp", "b.tmp")
os.close(fd)
eq((published("a.tmp"), published("b.tmp"), os.path.exists("a.tmp")), (None, None, False))
os.rename("b.tmp", "c.tmp"); os.rename("c.tmp", "d.lock")
eq(published("d.lock"), None)
eq(sorted(os.listdir(".")), ["new", "old"])
os.rename("d.lock", "e.tmp"); os.rename("e.tmp", "f")
eq(published("f"), b"one\n")
# a name that is held only from its rename on
fd = os.open("plain", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.write(fd, b"plain\n"); os.rename("plain", "plain.tmp"); os.close(fd)
eq((published("plain"), published("plain.tmp")), (None, None))
os.unlink("plain.tmp")
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "f", "new", "old")
}

// What nobody renames is published under the name that it has. An open puts that
// off until its close.
func TestLingeringNamesArePublished(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, lingersBriefly)
	write(t, l, csvDir+"/a.tmp", "a")
	l.Eventually("a.tmp is published", 20*time.Second, func() bool { _, there := inStore(t, l, csvDir+"/a.tmp"); return there })
	wantStore(t, l, csvDir+"/a.tmp", "a")
	closeHeld := openFile(t, l, csvDir+"/open.tmp")
	for i := range 3 { // the wait of each is longer than that of open.tmp would be
		name := fmt.Sprintf("%s/b%d.tmp", csvDir, i)
		write(t, l, name, "b")
		l.Eventually(name+" is published", 20*time.Second, func() bool { _, there := inStore(t, l, name); return there })
	}
	wantUnpublished(t, l, csvDir+"/open.tmp", csvDir+"/open.tmp")
	closeHeld()
	l.Eventually("open.tmp is published", 20*time.Second, func() bool { _, there := inStore(t, l, csvDir+"/open.tmp"); return there })
	wantStore(t, l, csvDir+"/open.tmp", csvDir+"/open.tmp")
	wantSettled(t, l)
	// From there on it is a file like any other.
	l.MustSh(`cd ` + csvDir + `; echo more >> a.tmp; mv b0.tmp c; cat a.tmp`)
	wantStore(t, l, csvDir+"/a.tmp", "amore\n")
	wantClean(t, l, csvDir, "a.tmp", "b1.tmp", "b2.tmp", "c", "open.tmp")
}

func TestUnmountPublishesTemporaryNames(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	for i := range 40 {
		write(t, l, fmt.Sprintf("%s/f%d.tmp", csvDir, i), fmt.Sprint(i))
	}
	write(t, l, csvDir+"/a.lock", "lock")
	l.Unmount()
	if got := l.StoredNames(csvDir); len(got) != 40 || stored(t, l, csvDir+"/f39.tmp") != "39" {
		t.Errorf("the store has %d files after the unmount: %q", len(got), got)
	}
	if log := l.Log(); strings.Contains(log, "not published") {
		t.Errorf("the unmount says %s", log)
	}
}

// A mount that ends may never hear of the RELEASE of what was closed.
func TestUnmountPublishesTemporaryNamesThatAreNotReleasedYet(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	var mapped []byte // keeps the RELEASE from being sent
	err := mounttest.NoFork(func() error {
		fd, err := unix.Open(l.Path(csvDir+"/a.tmp"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		if _, err = unix.Write(fd, []byte("all\n")); err == nil {
			mapped, err = unix.Mmap(fd, 0, 4, unix.PROT_READ, unix.MAP_PRIVATE)
		}
		return errors.Join(err, unix.Close(fd))
	})
	if err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, l, csvDir+"/a.tmp")
	l.Signal(syscall.SIGTERM)
	l.Eventually("it is published", 0, func() bool {
		got, there := inStore(t, l, csvDir+"/a.tmp")
		return there && got == "all\n"
	})
	if err := unix.Munmap(mapped); err != nil {
		t.Error(err)
	}
	if code := l.Wait(); code != 0 || strings.Contains(l.Log(), "not published") {
		t.Errorf("the mount ended with code %d: %s", code, l.Log())
	}
}

// Where a temporary name cannot be published at last, nobody waits for the answer.
func TestLingeringNamesThatCannotBePublishedAreKept(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, append([]string{lingersBriefly}, noWait...)...)
	closeHeld := openFile(t, l, csvDir+"/a.tmp")
	l.PutStored(csvDir+"/a.tmp", "theirs")
	closeHeld() // answers 0: what was written is durable
	l.WaitLog("a.tmp")
	l.Eventually("a.tmp is kept", 20*time.Second, func() bool {
		all := stagedStatus(t, l)
		return len(all) == 1 && all[0].State == "failed" && all[0].Error != "" && !all[0].Open
	})
	wantContent(t, l, wantStaged(t, l, csvDir, "a.tmp"), csvDir+"/a.tmp")
	wantStore(t, l, csvDir+"/a.tmp", "theirs")
	l.Signal(syscall.SIGTERM) // the unmount is the first that can tell somebody
	if code := l.Wait(); code == 0 || !strings.Contains(l.Log(), `not published: "`+csvDir+`/a.tmp"`) {
		t.Errorf("the unmount ends with %d, and the log\n%s", code, l.Log())
	}
	l.Start()
	wantContent(t, l, wantStaged(t, l, csvDir, "a.tmp"), csvDir+"/a.tmp")
	wantStore(t, l, csvDir+"/a.tmp", "theirs")
}

// A cut Parquet file is refused where it would become data, and stays where it was.
func TestRenamesThatAreRefusedLeaveTheTemporaryName(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	write(t, l, parquetDir+"/a.tmp", "PAR1 and no more")
	wantErrno(t, "rename of a cut file", rename(l, parquetDir+"/a.tmp", parquetDir+"/a.parquet"), syscall.EBADMSG)
	wantAbsent(t, l, parquetDir+"/a.parquet")
	wantUnpublished(t, l, parquetDir+"/a.tmp", "PAR1 and no more")
	wantErrno(t, "look-up of the new name", statErr(l, parquetDir+"/a.parquet"), syscall.ENOENT)
	write(t, l, parquetDir+"/a.tmp", mounttest.Parquet(t, 3))
	wantErrno(t, "rename of a whole file", rename(l, parquetDir+"/a.tmp", parquetDir+"/a.parquet"), 0)
	wantStore(t, l, parquetDir+"/a.parquet", mounttest.Parquet(t, 3))
	if names := staged(t, l, parquetDir); len(names) > 0 {
		t.Errorf("staged are %q", names)
	}
}

// Case 15, of a name that is not published yet.
func TestCase15NoReplaceOfATemporaryName(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"taken": "taken\n"}, neverLingers)
	noReplace := func(from, to string) error {
		return l.Do("rename "+from, func() error {
			return unix.Renameat2(unix.AT_FDCWD, l.Path(csvDir+"/"+from), unix.AT_FDCWD, l.Path(csvDir+"/"+to), unix.RENAME_NOREPLACE)
		})
	}
	write(t, l, csvDir+"/a.tmp", "a")
	write(t, l, csvDir+"/b.tmp", "b")
	wantErrno(t, "onto a published name", noReplace("a.tmp", "taken"), syscall.EEXIST)
	wantErrno(t, "onto another temporary name", noReplace("a.tmp", "b.tmp"), syscall.EEXIST)
	wantUnpublished(t, l, csvDir+"/a.tmp", "a")
	wantUnpublished(t, l, csvDir+"/b.tmp", "b")
	wantStore(t, l, csvDir+"/taken", "taken\n")
	wantErrno(t, "of a published name onto a temporary one", noReplace("taken", "a.tmp"), syscall.EEXIST)
	wantStore(t, l, csvDir+"/taken", "taken\n")
	wantErrno(t, "onto a new name", noReplace("a.tmp", "new"), 0)
	wantStore(t, l, csvDir+"/new", "a")
	wantErrno(t, "with O_EXCL", openErr(l, csvDir+"/b.tmp", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL), syscall.EEXIST)
	wantErrno(t, "rename over a temporary name", rename(l, csvDir+"/new", csvDir+"/b.tmp"), 0)
	wantContent(t, l, csvDir+"/b.tmp", "a")
	l.Unmount()
	if got, want := l.StoredNames(csvDir), []string{"b.tmp", "taken"}; !slices.Equal(got, want) || stored(t, l, csvDir+"/b.tmp") != "a" {
		t.Errorf("the store has %q, want %q", got, want)
	}
}

// A directory is not empty while a file waits in it.
func TestDirectoriesOfTemporaryNamesAreNotEmpty(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"keep": ""}, neverLingers)
	wantErrno(t, "mkdir", mkdir(l, "db/t/d"), 0)
	write(t, l, "db/t/d/a.tmp", "a")
	wantErrno(t, "rmdir", rmdir(l, "db/t/d"), syscall.ENOTEMPTY)
	wantContent(t, l, "db/t/d/a.tmp", "a")
	l.MustSh(`rm db/t/d/a.tmp; rmdir db/t/d`)
	wantErrno(t, "look-up", statErr(l, "db/t/d"), syscall.ENOENT)
	wantErrno(t, "mkdir", mkdir(l, "db/t/d"), 0)
	write(t, l, "db/t/d/a.tmp", "a")
	wantErrno(t, "rename of the directory", rename(l, "db/t/d", "db/t/e"), 0)
	wantErrno(t, "rename of the file", rename(l, "db/t/e/a.tmp", "db/t/e/a"), 0)
	wantStore(t, l, "db/t/e/a", "a")
}

// What the daemon had not published when it was killed is kept and shown, and never
// published by itself.
func TestKilledWithTemporaryNames(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers)
	write(t, l, csvDir+"/closed.tmp", "closed")
	write(t, l, csvDir+"/first.tmp", "renamed")
	wantErrno(t, "rename", rename(l, csvDir+"/first.tmp", csvDir+"/second.tmp"), 0)
	write(t, l, csvDir+"/done.tmp", "done")
	wantErrno(t, "rename", rename(l, csvDir+"/done.tmp", csvDir+"/done"), 0)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("open.tmp", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"synced"); os.fsync(fd)
os.kill(`+fmt.Sprint(l.Pid())+`, 9)
`))
	l.Kill()
	l.Start()
	for range 2 {
		wantStore(t, l, csvDir+"/done", "done")
		if got := l.StoredNames(csvDir); !slices.Equal(got, []string{"done"}) {
			t.Errorf("the store has %q, want done alone", got)
		}
		want := map[string]string{"closed.tmp": "closed", "second.tmp": "renamed", "open.tmp": "synced"}
		all := stagedStatus(t, l)
		for _, w := range all {
			name := strings.TrimPrefix(w.Path, csvDir+"/")
			content, err := l.ReadFile(w.shown())
			if err != nil || want[name] != content || w.Hold != "temporary" {
				t.Errorf("kept is %+v with %q (%v)", w, content, err)
			}
		}
		if len(all) != len(want) {
			t.Errorf("kept are %+v, want %d", all, len(want))
		}
		l.Remount()
	}
	for _, w := range stagedStatus(t, l) {
		if r := l.Run("recover", "--publish", w.ID, l.Root); r.Code != 0 {
			t.Errorf("recover --publish of %s: %s", w.Path, r.Err)
		}
	}
	wantStore(t, l, csvDir+"/second.tmp", "renamed")
	wantClean(t, l, csvDir, "closed.tmp", "done", "open.tmp", "second.tmp")
}

// An edit by way of a temporary name costs what a new file costs, and nothing of it
// is ever in the bucket under another name.
func TestS3ARenameOfATemporaryNameIsOnePUT(t *testing.T) {
	t.Parallel()
	l := counted(t, map[string]string{"f": "old"})
	write(t, l, "db/t/first", "small") // shows what the store makes of conditions
	write(t, l, "db/t/first", "other")
	l.Proxy.Reset()
	edit := func(from, to string) {
		mustPython(t, l, `
import os
os.chdir("db/t")
fd = os.open("`+from+`", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
os.write(fd, b"new"); os.fsync(fd); os.close(fd)
os.chmod("`+from+`", 0o640); os.utime("`+from+`", (11, 12))
os.rename("`+from+`", "`+to+`")
s = os.stat("`+to+`")
assert (oct(s.st_mode), int(s.st_mtime)) == ("0o100640", 12), s
`)
	}
	edit("sedAb12cD", "new")
	wantRequests(t, l, "a new file", map[string]int{"PutObject": 1})
	edit(".f.Ab12cD", "f")
	wantRequests(t, l, "over a file", map[string]int{"HeadObject": 1, "PutObject": 1})
	l.MustSh(`cd db/t; echo x > a.tmp; rm a.tmp`)
	wantRequests(t, l, "a temporary file that is removed", map[string]int{})
	server, bucket := l.Bucket()
	for _, name := range []string{"new", "f"} {
		head := server.Head(t, bucket, l.Key("db/t/"+name))
		if head.Metadata["mode"] != "640" || head.Metadata["mtime"] != "12" {
			t.Errorf("%s has the metadata %v, want mode 640 and mtime 12", name, head.Metadata)
		}
	}
}

func TestNamesAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "f"}, "--temporary-names=", "--local-names=*.mine,é*", "--backup-names=", "--write=delete")
	for _, name := range []string{"a.tmp", ".f.swp", "4913", ".a.crc"} {
		write(t, l, csvDir+"/"+name, name)
		wantStore(t, l, csvDir+"/"+name, name)
	}
	for _, name := range []string{"a.mine", "état"} {
		write(t, l, csvDir+"/"+name, name)
		wantUnpublished(t, l, csvDir+"/"+name, name)
	}
	wantErrno(t, "rename", rename(l, csvDir+"/f", csvDir+"/f~"), 0)
	wantStore(t, l, csvDir+"/f~", "f")
	wantAbsent(t, l, csvDir+"/f")
	l.MustSh(`cd ` + csvDir + `; rm a.mine; mv état fin`)
	wantClean(t, l, csvDir, "a.tmp", ".f.swp", "4913", ".a.crc", "f~", "fin")
}

// A name's hold is that of where it is: into a staging tree and out of it again, to
// another partition, over another unpublished file.
func TestHeldFilesMoveBetweenDirectories(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, neverLingers, "--write=delete")
	l.MustSh(`cd db/text; mkdir -p _temporary/0 dt=2026-01-02; echo one > dt=2026-01-01/a.tmp; mv dt=2026-01-01/a.tmp _temporary/0/part
ls _temporary/0 | grep -qx part; test -z "$(ls dt=2026-01-01)"; mv _temporary/0/part dt=2026-01-02/b.tmp; test -z "$(ls dt=2026-01-02)"`)
	wantAbsent(t, l, "db/text/dt=2026-01-02/b.tmp")
	wantContent(t, l, "db/text/dt=2026-01-02/b.tmp", "one\n")
	l.MustSh(`cd db/text; echo two > dt=2026-01-01/c.tmp; mv dt=2026-01-01/c.tmp dt=2026-01-02/b.tmp; cat dt=2026-01-02/b.tmp; mv dt=2026-01-02/b.tmp dt=2026-01-01/final; rm -r _temporary`)
	wantStore(t, l, csvDir+"/final", "two\n")
	wantClean(t, l, csvDir, "final")
	// The format is that of where it goes.
	l.MustSh(`echo text > ` + csvDir + `/a.tmp`)
	wantErrno(t, "rename of text into a Parquet partition", rename(l, csvDir+"/a.tmp", parquetDir+"/a.parquet"), syscall.EBADMSG)
	wantUnpublished(t, l, csvDir+"/a.tmp", "text\n")
	wantAbsent(t, l, parquetDir+"/a.parquet")
}
