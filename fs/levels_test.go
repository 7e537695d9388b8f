package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// levelNames are the columns of the table of "What may be changed".
var levelNames = []string{"none", "create", "overwrite", "delete", "read-only"}

// levelCase is one operation and its errno at each level; 0 is success. %d in
// the path of its operation is the level's number, so that each has files of its own.
type levelCase struct {
	what string
	want [5]syscall.Errno
	do   func(l *mounttest.Lake, level int) error
}

// at fills in the level's number.
func at(path string, level int) string { return strings.ReplaceAll(path, "%d", fmt.Sprint(level)) }

func opening(path string, flags int) func(*mounttest.Lake, int) error {
	return func(l *mounttest.Lake, level int) error { return openErr(l, at(path, level), flags) }
}

func on(path string, call func(*mounttest.Lake, string) error) func(*mounttest.Lake, int) error {
	return func(l *mounttest.Lake, level int) error { return call(l, at(path, level)) }
}

func moving(from, to string) func(*mounttest.Lake, int) error {
	return func(l *mounttest.Lake, level int) error { return rename(l, at(from, level), at(to, level)) }
}

func truncate(l *mounttest.Lake, path string) error {
	return l.Do("truncate", func() error { return syscall.Truncate(l.Path(path), 1) })
}

func chmod(l *mounttest.Lake, path string) error {
	return l.Do("chmod", func() error { return syscall.Chmod(l.Path(path), 0o640) })
}

func utimens(l *mounttest.Lake, path string) error {
	return l.Do("utimens", func() error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, l.Path(path), []unix.Timespec{{Sec: 1}, {Sec: 2}}, 0)
	})
}

const (
	trunc = syscall.O_WRONLY | syscall.O_TRUNC
	app   = syscall.O_WRONLY | syscall.O_APPEND
	creat = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL
)

// What each column allows.
var (
	creating    = [5]syscall.Errno{syscall.EPERM, 0, 0, 0, syscall.EROFS}
	overwriting = [5]syscall.Errno{syscall.EPERM, syscall.EPERM, 0, 0, syscall.EROFS}
	deleting    = [5]syscall.Errno{syscall.EPERM, syscall.EPERM, syscall.EPERM, 0, syscall.EROFS}
	never       = [5]syscall.Errno{syscall.EPERM, syscall.EPERM, syscall.EPERM, syscall.EPERM, syscall.EROFS}
	entries     = [5]syscall.Errno{syscall.EACCES, syscall.EACCES, syscall.EACCES, syscall.EACCES, syscall.EROFS}
	notEmpty    = [5]syscall.Errno{syscall.EPERM, syscall.ENOTEMPTY, syscall.ENOTEMPTY, syscall.ENOTEMPTY, syscall.EROFS}
	exists      = [5]syscall.Errno{syscall.EEXIST, syscall.EEXIST, syscall.EEXIST, syscall.EEXIST, syscall.EEXIST}
	isDirectory = [5]syscall.Errno{syscall.EISDIR, syscall.EISDIR, syscall.EISDIR, syscall.EISDIR, syscall.EROFS}
)

// levelCases: own and other are files, or with a "d" directories, that this
// mount made in an earlier life, and that another program did.
func levelCases() []levelCase {
	return []levelCase{
		{"create", creating, opening("db/t/new%d", creat)},
		{"create of a name that is there", exists, opening("db/t/other-a%d", creat)},
		{"overwrite own", creating, opening("db/t/own-a%d", trunc)},
		{"overwrite another's", overwriting, opening("db/t/other-a%d", trunc)},
		{"append to own", creating, opening("db/t/own-a%d", app)},
		{"append to another's", overwriting, opening("db/t/other-a%d", app)},
		{"truncate own", creating, on("db/t/own-a%d", truncate)},
		{"truncate another's", overwriting, on("db/t/other-a%d", truncate)},
		{"chmod own", creating, on("db/t/own-a%d", chmod)},
		{"chmod another's", overwriting, on("db/t/other-b%d", chmod)},
		{"utimens own", creating, on("db/t/own-a%d", utimens)},
		{"utimens another's", overwriting, on("db/t/other-b%d", utimens)},
		{"rename own", creating, moving("db/t/own-c%d", "db/t/own-c%d.moved")},
		{"rename another's", overwriting, moving("db/t/other-c%d", "db/t/other-c%d.moved")},
		{"rename own onto own", creating, moving("db/t/own-d%d", "db/t/own-e%d")},
		{"rename own onto another's", overwriting, moving("db/t/own-f%d", "db/t/other-f%d")},
		{"rename another's onto own", overwriting, moving("db/t/other-g%d", "db/t/own-g%d")},
		{"unlink own", creating, on("db/t/own-h%d", unlink)},
		{"unlink another's", deleting, on("db/t/other-h%d", unlink)},
		{"mkdir", creating, on("db/t/newd%d", mkdir)},
		{"rename own directory", creating, moving("db/t/ownd-a%d", "db/t/ownd-a%d.moved")},
		{"rename another's directory", overwriting, moving("db/t/otherd-a%d", "db/t/otherd-a%d.moved")},
		{"rmdir own", creating, on("db/t/ownd-b%d", rmdir)},
		{"rmdir another's", deleting, on("db/t/otherd-b%d", rmdir)},
		{"unlink of a directory", isDirectory, on("db/t/ownd-c%d", unlink)},
		{"mkdir in the root", never, on("newdb%d", mkdir)},
		{"mkdir in a database", never, on("db/newtable%d", mkdir)},
		{"create in the root", never, opening("new%d", creat)},
		{"create in a database", never, opening("db/new%d", creat)},
		{"rename of a database", never, moving("db", "db%d")},
		{"rename of a table", never, moving("db/t", "db/t%d")},
		{"rename of a table into a table", never, moving("db/t", "db/empty%d/t")},
		{"rename of a directory to a table", never, moving("db/t/ownd-c%d", "db/x%d")},
		{"rename of a file into a database", never, moving("db/t/own-i%d", "db/x%d")},
		{"rmdir of a database", never, on("db", rmdir)},
		{"rmdir of a table with objects", notEmpty, on("db/t", rmdir)},
		{"rmdir of a table without", creating, on("db/empty%d", rmdir)},
		{"rmdir of a table whose directory is not there", creating, on("db/absent%d", rmdir)},
		{"write of NAME.json", entries, opening("db/t.json", syscall.O_WRONLY)},
		{"write of a NAME.json that is not there", entries, opening("db/fresh%d.json", creat)},
		{"unlink of NAME.json", entries, on("db/t.json", unlink)},
		{"rename of NAME.json", entries, moving("db/t.json", "db/t/t%d.json")},
		{"rename onto NAME.json", entries, moving("db/t/own-i%d", "db/t.json")},
		{"chmod of NAME.json", entries, on("db/t.json", chmod)},
		{"symlink", never, func(l *mounttest.Lake, n int) error {
			return l.Do("symlink", func() error { return syscall.Symlink("x", l.Path(at("db/t/link%d", n))) })
		}},
		{"link", never, func(l *mounttest.Lake, n int) error {
			return l.Do("link", func() error { return syscall.Link(l.Path(at("db/t/own-i%d", n)), l.Path(at("db/t/link%d", n))) })
		}},
		{"mknod of a pipe", never, func(l *mounttest.Lake, n int) error {
			return l.Do("mknod", func() error { return syscall.Mkfifo(l.Path(at("db/t/pipe%d", n)), 0o600) })
		}},
	}
}

// levelLake is a lake with what each level's operations need: other's files from
// the start, own ones made in a first life of the mount.
func levelLake(t *testing.T) *mounttest.Lake {
	t.Helper()
	other := text("t", map[string]string{})
	tables := []mounttest.Table{other}
	var own strings.Builder
	own.WriteString("cd db/t\n")
	for n := range levelNames {
		for _, c := range "abcdefghi" {
			other.Files[fmt.Sprintf("other-%c%d", c, n)] = "other"
			fmt.Fprintf(&own, "echo own > own-%c%d\n", c, n)
		}
		for _, c := range "abc" {
			other.Files[fmt.Sprintf("otherd-%c%d/", c, n)] = ""
			fmt.Fprintf(&own, "mkdir ownd-%c%d\n", c, n)
		}
		tables = append(tables, text(fmt.Sprint("absent", n), nil), text(fmt.Sprint("empty", n), map[string]string{"_temporary/": ""}))
	}
	l := mounttest.Mount(t, mounttest.Options{Tables: tables})
	l.MustSh(own.String())
	return l
}

func TestWhatMayBeChangedAtEachLevel(t *testing.T) {
	t.Parallel()
	l := levelLake(t)
	for n, level := range levelNames {
		flag := "--write=" + level
		if level == "read-only" {
			flag = "--read-only"
		}
		l.Remount(flag)
		for _, c := range levelCases() {
			wantErrno(t, level+": "+c.what, c.do(l, n), c.want[n])
		}
		wantContent(t, l, "db/t.json", l.StoredManifest("db/t"))
		if _, err := l.Names(at("db/empty%d", n)); err != nil {
			t.Errorf("%s: a table whose directory was removed is gone: %v", level, err)
		}
	}
}

func TestRemovedTableDirectoryIsFoundAndWrittenAgain(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", nil), text("u", map[string]string{"gone": "x"})}, Flags: []string{"--write=delete"}})
	for _, table := range []string{"db/t", "db/u"} {
		l.MustSh(`rm -rf ` + table + `/* && rmdir ` + table + ` && stat ` + table + ` >/dev/null && mkdir -p ` + table + `/d && echo one > ` + table + `/d/f && echo two > ` + table + `/g`)
		wantContent(t, l, table+"/d/f", "one\n")
		wantContent(t, l, table+"/g", "two\n")
		wantNames(t, l, table, "d", "g")
		if got := stored(t, l, table+"/d/f"); got != "one\n" {
			t.Errorf("%s/d/f in the folder: %q", table, got)
		}
	}
	wantNames(t, l, "db", "t", "t.json", "u", "u.json")
	// A shell that stands in the directory, and one that holds it open.
	l.MustSh(`cd db/t; rm -r d g; exec 3< .; rmdir "$PWD"; cd "$PWD" && echo back > h && cat h`)
	wantContent(t, l, "db/t/h", "back\n")
}

func TestOwnAfterAnothersChangeIsNoLongerOwn(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil, "--write=create", "--metadata-ttl=0")
	write(t, l, "db/t/mine", "one")
	write(t, l, "db/t/mine", "two")
	l.PutStored("db/t/mine", "of another")
	wantErrno(t, "overwrite", openErr(l, "db/t/mine", trunc), syscall.EPERM)
	wantErrno(t, "unlink", unlink(l, "db/t/mine"), syscall.EPERM)
	wantErrno(t, "rename", rename(l, "db/t/mine", "db/t/x"), syscall.EPERM)
	wantContent(t, l, "db/t/mine", "of another")
}

// A tool that cleans up after itself works at --write=create.
func TestCase14OwnFilesAndDirectoriesGoAtCreate(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"again": "x"}, append(noWait, "--write=create")...)
	l.MustSh(`cd db/t; mkdir -p d/e; touch d/f d/e/g; echo x > d/h; mv d/h d/i; mv d moved; cp -r moved copy; sed -i s/x/y/ moved/i; rm -r moved copy; ls | grep -v again && exit 1; exit 0`)
	l.MustSh(`cat db/t/again`)
	l.RemoveStored("db/t/again")
	l.MustSh(`! cat db/t/again 2>/dev/null`)
	l.PutStored("db/t/again", "new\n")
	wantContent(t, l, "db/t/again", "new\n")
}
