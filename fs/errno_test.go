package fs_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The errno table of tree.md, "Errors a user sees", as far as a folder reaches;
// each error is logged once, with the path. What belongs to levels, kinds of
// table and names is in levels_test.go, kinds_test.go and names_mount_test.go.

// writeErr writes content to a file of the mount and returns the first error,
// that of close(2) included.
func writeErr(l *mounttest.Lake, path string, flags int, content string, meanwhile func()) error {
	return l.Do("write "+path, func() error {
		return mounttest.NoFork(func() error { // from the open on; meanwhile must start no program
			fd, err := syscall.Open(l.Path(path), flags|syscall.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			_, err = syscall.Write(fd, []byte(content))
			if meanwhile != nil {
				meanwhile()
			}
			return errors.Join(err, syscall.Close(fd))
		})
	})
}

// wantKeptBytes asserts that one file is kept unpublished in dir, with these bytes.
func wantKeptBytes(t *testing.T, l *mounttest.Lake, dir, base, content string) {
	t.Helper()
	wantContent(t, l, wantStaged(t, l, dir, base), content)
}

// wantLogged asserts that one failure of a path is in the log.
func wantLogged(t *testing.T, l *mounttest.Lake, path string) {
	t.Helper()
	count := func() (n int) {
		for line := range strings.Lines(l.Log()) {
			if strings.Contains(line, "level=ERROR") && strings.Contains(line, path) {
				n++
			}
		}
		return n
	}
	l.Eventually("logged: "+path, seenWithin, func() bool { return count() > 0 }) // the log comes through a pipe
	if n := count(); n != 1 {
		t.Errorf("%s is logged %d times, want once:\n%s", path, n, l.Log())
	}
}

func TestErrnoOfABadPartitionName(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(map[string]string{"n=1/f": "x"}, "n:int")}})
	wantErrno(t, "mkdir of a value of the wrong type", mkdir(l, "db/t/n=x"), syscall.EINVAL)
	if r := l.Sh(`mkdir db/t/n=x`); r.Code == 0 || !strings.Contains(r.Err, "Invalid argument") {
		t.Errorf("mkdir: code %d, %s", r.Code, r.Err)
	}
}

func TestErrnoOfANameThatAnotherMadeFirst(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"there": ""})
	err := writeErr(l, "db/t/f", creat, "mine", func() { l.PutStored("db/t/f", "another's") })
	wantErrno(t, "close", err, syscall.EEXIST)
	wantKeptBytes(t, l, "db/t", "f", "mine")
	l.Eventually("the other's is seen", seenWithin, func() bool { got, _ := l.ReadFile("db/t/f"); return got == "another's" })
	wantLogged(t, l, "db/t/f")
}

func TestErrnoOfAnObjectThatChangedUnderAnOverwrite(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"f": "old", "g": "old"})
	err := writeErr(l, "db/t/f", trunc, "mine", func() { l.PutStored("db/t/f", "another's") })
	wantErrno(t, "close of an overwrite", err, syscall.ESTALE)
	wantKeptBytes(t, l, "db/t", "f", "mine")
	if got := stored(t, l, "db/t/f"); got != "another's" {
		t.Errorf("in the folder: %q", got)
	}
	l.MustSh(`rm db/t/.lakefs/staged/*`)
	err = writeErr(l, "db/t/g", app, " and mine", func() { l.PutStored("db/t/g", "another's") })
	wantErrno(t, "close of an append, which is put behind the new version", err, 0)
	wantContent(t, l, "db/t/g", "another's and mine")
}

func TestErrnoOfAFileThatIsNotOfItsFormat(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	err := writeErr(l, parquetDir+"/f.parquet", creat, "no Parquet at all", nil)
	wantErrno(t, "close", err, syscall.EBADMSG)
	wantKeptBytes(t, l, parquetDir, "f.parquet", "no Parquet at all")
	wantNames(t, l, parquetDir)
	wantErrno(t, "stat", statErr(l, parquetDir+"/f.parquet"), syscall.ENOENT)
	for _, s := range status(t, l, parquetDir).Staged {
		if s.State != "failed" || s.Error == "" {
			t.Errorf("status.json: %+v", s)
		}
	}
	wantLogged(t, l, parquetDir+"/f.parquet")
	wantErrno(t, "a hidden name", writeErr(l, parquetDir+"/_f", creat, "anything", nil), 0)
	write(t, l, parquetDir+"/g.parquet", mounttest.Parquet(t, 10))
	l.Remount("--check-format=warn")
	wantErrno(t, "with --check-format=warn", writeErr(l, parquetDir+"/w.parquet", creat, "anything", nil), 0)
	l.Remount("--check-format=off")
	wantErrno(t, "with --check-format=off", writeErr(l, parquetDir+"/o.parquet", creat, "anything", nil), 0)
	wantNames(t, l, parquetDir, "_f", "g.parquet", "o.parquet", "w.parquet")
}

// An empty file in a Parquet partition stays staged, and is no failure.
func TestErrnoOfAnEmptyFileInAParquetPartition(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	wantErrno(t, "close", writeErr(l, parquetDir+"/f.parquet", creat, "", nil), 0)
	wantNames(t, l, parquetDir)
	if st := stat(t, l, parquetDir+"/f.parquet"); st.Size != 0 {
		t.Errorf("size by name: %d", st.Size)
	}
	whole := mounttest.Parquet(t, 10)
	write(t, l, parquetDir+"/f.parquet", whole)
	wantStore(t, l, parquetDir+"/f.parquet", whole)
	wantClean(t, l, parquetDir, "f.parquet")
}

// What the store refuses is EACCES: a directory that this user may not write.
func TestErrnoOfAccessRefusedByTheStore(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "modes of the folder")
	l := mounttest.New(t, mounttest.Options{
		Tables: []mounttest.Table{text("t", map[string]string{"shut/f": "x", "open/f": "y"}), text("u", map[string]string{"f": "u"})}, User: 1000,
	})
	l.Start("--write=delete")
	for path, mode := range map[string]uint32{"db/t/shut": 0o555, "db/u": 0} {
		if err := syscall.Chmod(l.Data(path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]string{
		`echo new > db/t/shut/g`: "Permission denied", `rm db/t/shut/f`: "Permission denied", `mv db/t/shut/f db/t/open/g`: "Permission denied",
		`mkdir db/t/shut/d`: "Permission denied", `cat db/u/f`: "Permission denied", `ls db/u`: "Permission denied",
	} {
		r := l.Sh(`set -e; ` + script)
		if strings.HasPrefix(script, "echo") {
			r = l.Sh(`printf new | dd of=db/t/shut/g status=none`)
		}
		if r.Code == 0 || !strings.Contains(r.Err, want) {
			t.Errorf("%s: code %d, %q; want %s", script, r.Code, r.Err, want)
		}
	}
	if out := l.MustSh(`cat db/t/shut/f db/t/open/f; ls db/t`); out != "xyopen\nshut\n" {
		t.Errorf("the rest of the lake: %q", out)
	}
	if err := syscall.Chmod(l.Data("db/u"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestErrnoOfWhatTheMountDoesNotDo(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"f": "x", "d/g": "y"}, "--write=delete")
	for what, want := range map[string]struct {
		errno syscall.Errno
		call  func() error
	}{
		"symlink":       {syscall.EPERM, func() error { return syscall.Symlink("f", l.Path("db/t/s")) }},
		"link":          {syscall.EPERM, func() error { return syscall.Link(l.Path("db/t/f"), l.Path("db/t/h")) }},
		"mkfifo":        {syscall.EPERM, func() error { return syscall.Mkfifo(l.Path("db/t/p"), 0o600) }},
		"mknod of file": {syscall.EPERM, func() error { return syscall.Mknod(l.Path("db/t/n"), syscall.S_IFREG|0o600, 0) }},
		"O_TMPFILE": {syscall.EOPNOTSUPP, func() error {
			_, err := unix.Open(l.Path("db/t"), unix.O_TMPFILE|unix.O_RDWR, 0o600)
			return err
		}},
		"FICLONE": {syscall.EOPNOTSUPP, func() error {
			return withFile(l.Path("db/t/new"), syscall.O_RDWR|syscall.O_CREAT, func(f *os.File) error {
				return withFile(l.Path("db/t/f"), syscall.O_RDONLY, func(g *os.File) error { return unix.IoctlFileClone(int(f.Fd()), int(g.Fd())) })
			})
		}},
		"readlink":               {syscall.EINVAL, func() error { _, err := unix.Readlink(l.Path("db/t/f"), make([]byte, 9)); return err }},
		"open of a directory":    {syscall.EISDIR, func() error { _, err := unix.Open(l.Path("db/t/d"), unix.O_RDWR, 0); return err }},
		"rmdir of a file":        {syscall.ENOTDIR, func() error { return syscall.Rmdir(l.Path("db/t/f")) }},
		"rmdir, not empty":       {syscall.ENOTEMPTY, func() error { return syscall.Rmdir(l.Path("db/t/d")) }},
		"a file for a directory": {syscall.ENOTDIR, func() error { _, err := unix.Open(l.Path("db/t/f/x"), unix.O_RDONLY, 0); return err }},
		"O_EXCL":                 {syscall.EEXIST, func() error { _, err := unix.Open(l.Path("db/t/f"), creat, 0o600); return err }},
		"punch a hole": {syscall.EOPNOTSUPP, func() error {
			return withFile(l.Path("db/t/f"), syscall.O_RDWR, func(f *os.File) error { return unix.Fallocate(int(f.Fd()), 3, 0, 1) })
		}},
	} {
		wantErrno(t, what, l.Do(what, want.call), want.errno)
	}
	wantContent(t, l, "db/t/f", "x")
}
