package fs_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func hasText(s, part string) bool { return strings.Contains(s, part) }

func TestStagedNameIsWorkedOnByOtherProcesses(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"})
	mustPython(t, l, script(l, csvDir, `
fd = os.open("n", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.write(fd, b"one\n")
eq(err(os.open, "n", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "EEXIST")
eq(err(os.mkdir, "n"), "EEXIST")
eq(other("""
s = os.stat("n"); print(s.st_size)
os.chmod("n", 0o640); os.utime("n", (11, 12)); os.chown("n", 3, 4)
s = os.stat("n"); print(oct(s.st_mode), int(s.st_mtime), s.st_uid, s.st_gid)
""").split("\n"), ["4", "0o100640 12 3 4"])
eq(published("n"), None)
s = os.fstat(fd)
eq((oct(s.st_mode), int(s.st_mtime), s.st_uid, s.st_gid), ("0o100640", 12, 3, 4))
os.close(fd)
eq(published("n"), b"one\n")
s = os.stat("n")
eq((oct(s.st_mode), int(s.st_mtime), s.st_uid, s.st_gid), ("0o100640", 12, 3, 4))

fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"one\n")
eq(other("os.rename('a', 'b'); print(os.path.exists('a'), os.stat('b').st_size)"), "False 4")
os.write(fd, b"two\n")
eq(os.fstat(fd).st_size, 8)
eq((published("a"), published("b")), (None, None))
os.close(fd)
eq((published("a"), published("b")), (None, b"one\ntwo\n"))

fd = os.open("c", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"new\n")
eq(other("os.rename('c', 'old'); print(open('old').read(), end='')"), "new")
eq(published("old"), b"old\n")
os.close(fd)
eq((published("c"), published("old")), (None, b"new\n"))

fd = os.open("d", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"gone\n")
eq(other("os.unlink('d'); print(os.path.exists('d'))"), "False")
g = os.open("d", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.write(g, b"another\n"); os.close(g)
os.write(fd, b"more\n"); os.close(fd)
eq(published("d"), b"another\n")
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "b", "d", "n", "old")
}

// What is published takes the name's writers along when it is renamed, and
// loses them when it is removed.
func TestRenameAndUnlinkReachWritersOfPublishedNames(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"a": "old\n", "b": "old\n", "c": "old\n", "d": "old\n"}, "--write=delete")
	mustPython(t, l, script(l, csvDir, `
fd = os.open("a", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"new\n")
os.rename("a", "moved")
eq(published("moved"), b"old\n")
os.close(fd)
eq((published("a"), published("moved")), (None, b"new\n"))

fd = os.open("b", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"new\n")
os.unlink("b")
os.close(fd)
eq(published("b"), None)
eq(err(os.stat, "b"), "ENOENT")

fd = os.open("c", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"new\n")
os.rename("d", "c")
os.close(fd)
eq((published("c"), published("d")), (b"old\n", None))
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "c", "moved")
}

func TestCase13UnlinkedWhileOpenPublishesNothing(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"}, "--write=delete")
	mustPython(t, l, script(l, csvDir, `
for name in "new", "old":
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"x" * 3000000)
    subprocess.run(["rm", name], check=True)
    eq(err(os.stat, name), "ENOENT")
    eq(os.listdir("."), ["old"] if name == "new" else [])
    os.write(fd, b"more")
    os.fsync(fd)
    eq(os.fstat(fd).st_size, 3000004)
    eq(os.pread(fd, 5, 2999999), b"xmore")
    eq([n for n in os.listdir(".") + stored_names() if n.startswith(".fuse_hidden")], [])
    os.close(fd)
    eq(published(name), None)
eq(stored_names(), [])
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir)
	l.MustSh(`cd ` + csvDir + `; exec 3>n; echo a >&3; rm n; echo b >&3; exec 3>&-; ls; test ! -e n`)
	wantSettled(t, l)
	wantClean(t, l, csvDir)
}

func TestCase71OrdinaryNamesAreInTheStoreWhenCpReturns(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	names := []string{"sedan.csv", "zinc.csv", "tmpdata.csv", "tmp_orders.parquet", ".env"}
	for _, name := range names {
		got := l.MustSh(`echo ` + name + ` >` + l.State + `/in; cp ` + l.State + `/in ` + csvDir + `/` + name + ` && cat ` + l.Window(csvDir+"/"+name))
		if got != name+"\n" {
			t.Errorf("%s in the store when cp returns: %q", name, got)
		}
		l.MustSh(`ls -A ` + csvDir + ` | grep -qxF ` + name)
	}
	wantClean(t, l, csvDir, names...)
}

func TestLinksAndSpecialFilesAreRefused(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n"})
	mustPython(t, l, script(l, csvDir, `
eq(err(os.link, "f", "l"), "EPERM")
eq(err(os.symlink, "f", "l"), "EPERM")
eq(err(os.mkfifo, "l"), "EPERM")
eq(err(os.mknod, "l", stat.S_IFREG | 0o644), "EPERM")
eq(err(os.open, ".", os.O_RDWR | os.O_TMPFILE, 0o600), "ENOTSUP")
fd = os.open("n", os.O_WRONLY | os.O_CREAT, 0o644)
eq(err(os.link, "n", "l"), "EPERM")
os.close(fd)
`))
	if r := l.Sh(`cd ` + csvDir + `; ln f l`); r.Code == 0 || !hasText(r.Err, "Operation not permitted") {
		t.Errorf("ln: code %d, %q; want EPERM", r.Code, r.Err)
	}
	wantClean(t, l, csvDir, "f", "n")
}

func TestCase15RenameWithoutReplacingKeepsTheTarget(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"a": "a\n", "b": "b\n"})
	rename := func(from, to string, flags uint) error {
		return l.Do("rename "+from, func() error {
			return unix.Renameat2(unix.AT_FDCWD, l.Path(csvDir+"/"+from), unix.AT_FDCWD, l.Path(csvDir+"/"+to), flags)
		})
	}
	if err := rename("a", "b", unix.RENAME_NOREPLACE); err != unix.EEXIST { //nolint:errorlint // a bare errno
		t.Errorf("rename onto a published name: %v, want EEXIST", err)
	}
	wantStore(t, l, csvDir+"/a", "a\n")
	wantStore(t, l, csvDir+"/b", "b\n")
	if err := rename("a", "b", unix.RENAME_EXCHANGE); err != unix.EINVAL { //nolint:errorlint // a bare errno
		t.Errorf("exchange: %v, want EINVAL", err)
	}
	if err := rename("a", "c", unix.RENAME_NOREPLACE); err != nil {
		t.Errorf("rename to a new name: %v", err)
	}
	wantStore(t, l, csvDir+"/c", "a\n")
	stagedTarget(t, l, rename)
	l.MustSh(`cd ` + csvDir + `; mv -n b c; cat c; test -e b`)
	wantClean(t, l, csvDir, "b", "c", "s", "t")
}

// stagedTarget renames onto, and from, names that are not published yet.
func stagedTarget(t *testing.T, l *mounttest.Lake, rename func(from, to string, flags uint) error) {
	t.Helper()
	held := openFile(t, l, csvDir+"/s")
	if err := rename("b", "s", unix.RENAME_NOREPLACE); err != unix.EEXIST { //nolint:errorlint // a bare errno
		t.Errorf("rename onto a staged name: %v, want EEXIST", err)
	}
	if err := rename("s", "b", unix.RENAME_NOREPLACE); err != unix.EEXIST { //nolint:errorlint // a bare errno
		t.Errorf("rename of a staged name onto a published one: %v, want EEXIST", err)
	}
	if err := rename("s", "t", unix.RENAME_NOREPLACE); err != nil {
		t.Errorf("rename of a staged name: %v", err)
	}
	other := openFile(t, l, csvDir+"/s")
	if err := rename("s", "t", unix.RENAME_NOREPLACE); err != unix.EEXIST { //nolint:errorlint // a bare errno
		t.Errorf("rename of a staged name onto another: %v, want EEXIST", err)
	}
	held()
	other()
	wantStore(t, l, csvDir+"/t", csvDir+"/s")
	wantStore(t, l, csvDir+"/s", csvDir+"/s")
}

// openFile makes a file with its name as content, and returns its close.
func openFile(t *testing.T, l *mounttest.Lake, name string) func() {
	t.Helper()
	var fd int
	err := l.Do("create "+name, func() (err error) {
		fd, err = unix.Open(l.Path(name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
		if err == nil {
			_, err = unix.Write(fd, []byte(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := l.Do("close "+name, func() error { return unix.Close(fd) }); err != nil {
			t.Error(err)
		}
	}
}
