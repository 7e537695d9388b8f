package fs_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// noReplace is renameat2(2) with RENAME_NOREPLACE, exchange with RENAME_EXCHANGE.
func noReplace(l *mounttest.Lake, from, to string) error {
	return rename2(l, from, to, unix.RENAME_NOREPLACE)
}

func exchange(l *mounttest.Lake, from, to string) error {
	return rename2(l, from, to, unix.RENAME_EXCHANGE)
}

func rename2(l *mounttest.Lake, from, to string, flags uint) error {
	return l.Do("renameat2 "+from, func() error {
		return unix.Renameat2(unix.AT_FDCWD, l.Path(from), unix.AT_FDCWD, l.Path(to), flags)
	})
}

func TestRenameOfFiles(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		partitioned(map[string]string{"dt=1/a": "a", "dt=1/b": "b", "dt=1/c": "c", "dt=2/x": "x", "dt=2/sub/y": "y"}, "dt:int"),
	}})
	wantErrno(t, "within a partition", rename(l, "db/t/dt=1/a", "db/t/dt=1/a2"), 0)
	wantErrno(t, "across partitions", rename(l, "db/t/dt=1/b", "db/t/dt=2/b"), 0)
	wantErrno(t, "onto one that is there", rename(l, "db/t/dt=1/c", "db/t/dt=2/x"), 0)
	wantErrno(t, "to itself", rename(l, "db/t/dt=2/x", "db/t/dt=2/x"), 0)
	wantErrno(t, "of what is not there", rename(l, "db/t/dt=1/none", "db/t/dt=1/n"), syscall.ENOENT)
	wantErrno(t, "into a directory that is not there", rename(l, "db/t/dt=2/x", "db/t/dt=9/x"), syscall.ENOENT)
	wantErrno(t, "onto a directory", rename(l, "db/t/dt=2/x", "db/t/dt=2/sub"), syscall.EISDIR)
	wantErrno(t, "NOREPLACE onto one that is there", noReplace(l, "db/t/dt=2/b", "db/t/dt=2/x"), syscall.EEXIST)
	wantErrno(t, "NOREPLACE to a new name", noReplace(l, "db/t/dt=2/b", "db/t/dt=2/b2"), 0)
	wantErrno(t, "EXCHANGE", exchange(l, "db/t/dt=2/b2", "db/t/dt=2/x"), syscall.EINVAL)
	for path, want := range map[string]string{"dt=1/a2": "a", "dt=2/b2": "b", "dt=2/x": "c"} {
		wantContent(t, l, "db/t/"+path, want)
		if got := stored(t, l, "db/t/"+path); got != want {
			t.Errorf("%s in the folder: %q, want %q", path, got, want)
		}
	}
	wantNames(t, l, "db/t/dt=1", "a2")
	wantNames(t, l, "db/t/dt=2", "b2", "sub", "x")
}

func TestRenameChecksTheFormatOfTheTarget(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"text": "1,2\n", "good": mounttest.Parquet(t, 3)}, "--write=delete")
	wantErrno(t, "text into a Parquet partition", rename(l, csvDir+"/text", parquetDir+"/text.parquet"), syscall.EBADMSG)
	wantErrno(t, "text under a hidden name", rename(l, csvDir+"/text", parquetDir+"/_text"), 0)
	wantErrno(t, "from the hidden name to a counted one", rename(l, parquetDir+"/_text", parquetDir+"/text"), syscall.EBADMSG)
	wantErrno(t, "Parquet into a Parquet partition", rename(l, csvDir+"/good", parquetDir+"/good"), 0)
	wantNames(t, l, csvDir)
	wantNames(t, l, parquetDir, "_text", "good")
	if r := l.Sh(`printf 'x' > ` + csvDir + `/f && mv ` + csvDir + `/f ` + parquetDir + `/f.parquet`); r.Code == 0 || !strings.Contains(r.Err, "Bad message") {
		t.Errorf("mv of text into a Parquet partition: code %d, %s", r.Code, r.Err)
	}
	wantContent(t, l, csvDir+"/f", "x")
}

func TestRenameOfADirectoryTakesAllAlong(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"d/f": "f", "d/e/g": "g", "there/": "", "full/x": "x", "file": "y"}, "--write=delete")
	l.MustSh(`cd db/t; chmod 0751 d/e; chmod 0640 d/e/g; touch -d '2001-02-03 04:05:06' d/f d/e`)
	const look = `cd db/t/%; stat -c '%a %Y %n' . f e/g e | sed 1d; cat f e/g`
	before := l.MustSh(strings.ReplaceAll(look, "db/t/%", "db/t/d"))
	wantErrno(t, "rename", rename(l, "db/t/d", "db/t/moved"), 0)
	if after := l.MustSh(strings.ReplaceAll(look, "db/t/%", "db/t/moved")); after != before {
		t.Errorf("after the rename:\n%s\nbefore:\n%s", after, before)
	}
	wantErrno(t, "stat of the old name", statErr(l, "db/t/d"), syscall.ENOENT)
	wantErrno(t, "stat below the old name", statErr(l, "db/t/d/e/g"), syscall.ENOENT)
	write(t, l, "db/t/moved/h", "written after the move")
	if got := stored(t, l, "db/t/moved/h"); got != "written after the move" {
		t.Errorf("moved/h in the folder: %q", got)
	}
	wantErrno(t, "onto an empty directory", rename(l, "db/t/moved", "db/t/there"), 0)
	wantErrno(t, "onto a directory that is not empty", rename(l, "db/t/there", "db/t/full"), syscall.ENOTEMPTY)
	wantErrno(t, "onto a file", rename(l, "db/t/there", "db/t/file"), syscall.ENOTDIR)
	wantErrno(t, "into itself", rename(l, "db/t/there", "db/t/there/e/x"), syscall.EINVAL)
	wantErrno(t, "NOREPLACE onto an empty directory", noReplace(l, "db/t/full", "db/t/there/e"), syscall.EEXIST)
	wantErrno(t, "into another directory", rename(l, "db/t/there", "db/t/full/inner"), 0)
	wantContent(t, l, "db/t/full/inner/f", "f")
	wantNames(t, l, "db/t", "file", "full")
	l.Remount("--write=delete")
	if out := l.MustSh(`stat -c '%a %Y' db/t/full/inner/e db/t/full/inner/f`); !strings.HasPrefix(out, "751 9811") || strings.Count(out, " 9811") != 2 {
		t.Errorf("attributes after the remount: %q", out)
	}
}

func TestRenameOfAPartitionDirectoryIsLeftToMv(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{
		partitioned(map[string]string{"dt=1/k=a/f": "f", "dt=1/k=a/sub/g": "g", "_hidden/f": "h", "dt=3/k=b/": ""}, "dt:int", "k"), text("u", map[string]string{"d/f": "u"}),
	}})
	wantErrno(t, "of a partition", rename(l, "db/t/dt=1", "db/t/dt=2"), syscall.EXDEV)
	wantErrno(t, "of a partition of the second level", rename(l, "db/t/dt=1/k=a", "db/t/dt=1/k=b"), syscall.EXDEV)
	wantErrno(t, "of a directory to a partition", rename(l, "db/u/d", "db/t/dt=4"), syscall.EXDEV)
	wantErrno(t, "onto a partition", rename(l, "db/u/d", "db/t/dt=3/k=b"), syscall.EXDEV)
	wantErrno(t, "of a partition to another table", rename(l, "db/t/dt=1/k=a", "db/u/k"), syscall.EXDEV)
	wantErrno(t, "of a hidden directory", rename(l, "db/t/_hidden", "db/t/_h2"), 0)
	wantErrno(t, "of a directory below the partitions", rename(l, "db/t/dt=1/k=a/sub", "db/t/dt=1/k=a/sub2"), 0)
	wantErrno(t, "of a directory to another table", rename(l, "db/u/d", "db/t/dt=1/k=a/from-u"), 0)
	l.MustSh(`mv db/t/dt=1 db/t/dt=2`)
	wantNames(t, l, "db/t", "_h2", "dt=2", "dt=3")
	wantContent(t, l, "db/t/dt=2/k=a/sub2/g", "g")
	wantContent(t, l, "db/t/dt=2/k=a/from-u/f", "u")
	if r := l.Sh(`mv db/t/dt=2 db/t/dt=x`); r.Code == 0 {
		t.Error("mv of a partition to a value of the wrong type: code 0")
	}
	wantContent(t, l, "db/t/dt=2/k=a/f", "f")
}

// mv would copy, and could not remove what it copied.
func TestRenameOfAnothersPartitionIsRefusedWhereRemovingIs(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(map[string]string{"dt=1/f": "f"}, "dt:int")}})
	if r := l.Sh(`mv db/t/dt=1 db/t/dt=2`); r.Code == 0 {
		t.Error("mv of another's partition: code 0")
	}
	wantErrno(t, "of another's partition", rename(l, "db/t/dt=1", "db/t/dt=2"), syscall.EPERM)
	wantNames(t, l, "db/t", "dt=1")
	l.MustSh(`mkdir db/t/dt=3 && echo own > db/t/dt=3/f && mv db/t/dt=3 db/t/dt=4`)
	wantNames(t, l, "db/t", "dt=1", "dt=4")
}

func TestRenameOfOpenFiles(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"read": "to be read", "over": "old", "old": "old"}, "--write=delete")
	l.MustSh(`cd db/t
exec 3<read; mv read read2; cat <&3 | grep -qx 'to be read'
exec 4>new; echo one >&4; mv new new2; echo two >&4; test ! -e new; exec 4>&-
exec 5>>old; echo more >&5; mv old old2; echo last >&5; exec 5>&-
exec 6>x; echo x >&6; mv x over; exec 6>&-
exec 7>lost; echo lost >&7; echo new > y; mv y lost; echo more >&7; exec 7>&-`)
	for name, want := range map[string]string{"read2": "to be read", "new2": "one\ntwo\n", "old2": "oldmore\nlast\n", "over": "x\n", "lost": "new\n"} {
		wantContent(t, l, "db/t/"+name, want)
		if got := stored(t, l, "db/t/"+name); got != want {
			t.Errorf("%s in the folder: %q, want %q", name, got, want)
		}
	}
	// What RELEASE ends, it ends after the close has returned.
	l.Eventually("nothing staged", 20*time.Second, func() bool { return len(staged(t, l, "db/t")) == 0 && len(spools(t, l)) == 0 })
	wantClean(t, l, "db/t", "read2", "new2", "old2", "over", "lost")
}

// A file that is written below a directory follows it.
func TestRenameOfADirectoryWithAnOpenFile(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"d/old": "old\n"}, "--write=delete")
	l.MustSh(`cd db/t; exec 3>d/new 4>>d/old; echo one >&3; echo two >&4; mv d e; cat e/new e/old; echo three >&3; exec 3>&- 4>&-; ! test -e d`)
	wantContent(t, l, "db/t/e/new", "one\nthree\n")
	wantContent(t, l, "db/t/e/old", "old\ntwo\n")
	wantClean(t, l, "db/t/e", "new", "old")
}

// Whoever polls the name sees one version or the other, never none.
func TestRenameOverIsAtomicForReaders(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"f": "version 0"}, "--write=delete")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, path := range []string{l.Path("db/t/f"), l.Window("db/t/f")} {
				got, err := os.ReadFile(path)
				if err != nil || !strings.HasPrefix(string(got), "version ") {
					t.Errorf("%s: %q, %v", path, got, err)
					return
				}
			}
		}
	}()
	deadline := time.Now().Add(3 * time.Second)
	for n := 1; n < 200 && time.Now().Before(deadline); n++ {
		write(t, l, "db/t/g", "version x")
		wantErrno(t, "rename", rename(l, "db/t/g", "db/t/f"), 0)
	}
	close(stop)
	<-done
}

// Case 15, of renames and links.
func TestCase15NoReplaceAndLink(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"a": "a", "b": "b"})
	wantErrno(t, "NOREPLACE", noReplace(l, "db/t/a", "db/t/b"), syscall.EEXIST)
	wantContent(t, l, "db/t/b", "b")
	if r := l.Sh(`ln db/t/a db/t/c`); r.Code == 0 || !strings.Contains(r.Err, "Operation not permitted") {
		t.Errorf("ln: code %d, %s", r.Code, r.Err)
	}
	// A new name that is being written is there for NOREPLACE, too.
	if r := l.Sh(`cd db/t; exec 3>new; echo x >&3; mv -n a new; cat a`); !strings.Contains(r.Out, "a") {
		t.Errorf("mv -n onto a staged name took the source: %q %s", r.Out, r.Err)
	}
}
