package fs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What renames to backup names cost a bucket, counted by the proxy in front of it, and
// what it has in between.

// backupLake mounts db.t of files behind a proxy, knows it and what the store makes of
// conditions, and counts from there.
func backupLake(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", files)}, Timeout: 2 * time.Minute,
		Flags: append([]string{"--io-timeout=3s", "--metadata-ttl=5m", "--negative-ttl=5m", "--temporary-linger=5m"}, flags...),
	})
	write(t, l, "db/t/warm", "new")
	write(t, l, "db/t/warm", "other")
	l.MustSh(`ls -l db/t`)
	l.Proxy.Reset()
	return l
}

// overwritten are the requests of a file that was renamed to a backup name and written
// anew: the old version is asked for once to be judged, and once for its bytes.
func overwritten() map[string]int {
	return map[string]int{"HeadObject": 1, "GetObject": 1, "PutObject": 1}
}

func TestS3BackupOfFileinputIsOnePUT(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"overwrite", "delete"} {
		for _, keeps := range []bool{false, true} {
			t.Run(fmt.Sprint(level, keeps), func(t *testing.T) {
				t.Parallel()
				l := backupLake(t, map[string]string{"f": "a\nb\n"}, "--write="+level)
				backup := map[bool]string{true: `, backup=".bak"`}[keeps] // fileinput removes another
				l.MustSh(`/usr/bin/python3 -c '
import fileinput
for line in fileinput.input("db/t/f", inplace=True` + backup + `):
    print(line.upper(), end="")'`)
				got := l.Proxy.Counts()
				delete(got, "GetObject") // fileinput reads the old file, too
				wantCounts(t, l, "fileinput", got, map[string]int{"HeadObject": 1, "PutObject": 1})
				wantContent(t, l, "db/t/f", "A\nB\n")
				wantInStore(t, l, "f", "warm")
				if keeps {
					wantContent(t, l, "db/t/f.bak", "a\nb\n")
					l.Unmount()
					wantInStore(t, l, "f", "f.bak", "warm")
				} else if r := l.Sh(`test -e db/t/f.bak`); r.Code == 0 {
					t.Error("the backup is still there, which fileinput removes")
				}
			})
		}
	}
}

func wantCounts(t *testing.T, l *mounttest.Lake, what string, got, want map[string]int) {
	t.Helper()
	for op := range want {
		if got[op] != want[op] {
			t.Errorf("%s: %v, want %v\n%s", what, got, want, asked(l))
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v\n%s", what, got, want, asked(l))
	}
}

// wantInStore asserts what the store has in db.t.
func wantInStore(t *testing.T, l *mounttest.Lake, want ...string) {
	t.Helper()
	if got := l.StoredNames("db/t"); !slices.Equal(got, want) {
		t.Errorf("the store has %q, want %q", got, want)
	}
}

func TestS3BackupOfVimIsOnePUT(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"default": "set backupskip= | ", "renames": "set backupskip= backupcopy=no | ", "backup": "set backupskip= backup backupcopy=no backupext=~ | ", "nobackup": "set nobackup backupskip= backupcopy=no | ",
		"nowritebackup": "set nowritebackup | ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := backupLake(t, map[string]string{"f": "a\n"}, "--write=overwrite")
			if l.Sh(`command -v vim`).Code != 0 {
				t.Skip("no vim here (make deps installs it)")
			}
			l.MustSh(`vim -N -es -u NONE -c '` + set + `%s/a/b/' -c wq db/t/f`)
			got := l.Proxy.Counts()
			if got["PutObject"] != 1 || got["CopyObject"]+got["DeleteObject"]+got["DeleteObjects"]+got["ListObjectsV2"] > 0 || got["HeadObject"] > 1 {
				t.Errorf("vim: %v\n%s", got, asked(l))
			}
			wantContent(t, l, "db/t/f", "b\n")
			wantInStore(t, l, "f", "warm")
			if name == "backup" {
				wantContent(t, l, "db/t/f~", "a\n")
				l.Unmount()
				wantInStore(t, l, "f", "f~", "warm")
			}
		})
	}
}

func TestS3BackupOfToolsIsOnePUT(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"sed":  `sed -i.bak s/a/b/ db/t/f`,
		"sed~": `sed -i~ s/a/b/ db/t/f`,
		"perl": `perl -pi.bak -e s/a/b/ db/t/f`,
		"mv":   `mv db/t/f db/t/f~; echo b >db/t/g.tmp; mv db/t/g.tmp db/t/f`,
		">>":   `mv db/t/f db/t/f~; echo b >>db/t/f`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := backupLake(t, map[string]string{"f": "a\n"}, "--write=overwrite")
			l.MustSh(`command -v perl >/dev/null; ` + script)
			got := l.Proxy.Counts()
			delete(got, "GetObject")
			wantCounts(t, l, name, got, map[string]int{"HeadObject": 1, "PutObject": 1})
			wantContent(t, l, "db/t/f", "b\n")
			wantInStore(t, l, "f", "warm")
			l.Unmount()
			got = l.Proxy.Counts()
			delete(got, "GetObject")
			wantCounts(t, l, name+" and the unmount", got, map[string]int{"HeadObject": 1, "PutObject": 2})
		})
	}
}

// The steps of a script, each with its requests.
func TestS3BackupStepByStep(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old", "g": "other"}, "--write=delete")
	l.MustSh(`touch -d 2001-02-03 db/t/f; chmod 640 db/t/f`)
	was := l.MustSh(`stat -c '%i %Y %a %s' db/t/f`)
	l.Proxy.Reset()

	l.MustSh(`mv db/t/f db/t/f~`)
	wantRequests(t, l, "the rename", map[string]int{"HeadObject": 1, "GetObject": 1})
	if now := l.MustSh(`stat -c '%i %Y %a %s' db/t/f~`); now != was {
		t.Errorf("the backup is %q, the file was %q", now, was)
	}
	if got := l.MustSh(`ls db/t; stat db/t/f 2>&1 | grep -o 'No such file'; cat db/t/f 2>&1 | grep -o 'No such file'; mv db/t/f db/t/x 2>&1 | grep -o 'No such file'; rm db/t/f 2>&1 | grep -o 'No such file'`); got != "f~\ng\nwarm\n"+strings.Repeat("No such file\n", 4) {
		t.Errorf("after the rename:\n%s", got)
	}
	wantRequests(t, l, "looks at it", map[string]int{})
	wantInStore(t, l, "f", "g", "warm")
	wantContent(t, l, "db/t/f~", "old")
	l.Proxy.Reset()

	l.MustSh(`mv db/t/f~ db/t/f`)
	wantRequests(t, l, "the rename back", map[string]int{})
	if now := l.MustSh(`stat -c '%i %Y %a %s' db/t/f; test ! -e db/t/f~; ls db/t`); now != was+"f\ng\nwarm\n" {
		t.Errorf("renamed back the file is %q, it was %q", now, was)
	}
	wantContent(t, l, "db/t/f", "old")
	l.Proxy.Reset()

	l.MustSh(`mv db/t/f db/t/f~; chmod 600 db/t/f~; mv db/t/f~ db/t/f`)
	wantRequests(t, l, "there and back", map[string]int{"HeadObject": 1, "GetObject": 1})
	if mode := l.MustSh(`stat -c %a db/t/f`); mode != "600\n" {
		t.Errorf("mode %s, want 600", mode)
	}

	l.MustSh(`mv db/t/f db/t/f.bak; (set -C; echo new >db/t/f)`)
	wantRequests(t, l, "written anew", overwritten())
	wantContent(t, l, "db/t/f.bak", "old")
	wantContent(t, l, "db/t/f", "new\n")
	wantInStore(t, l, "f", "g", "warm")
	l.Proxy.Reset()
	l.MustSh(`rm db/t/f.bak`)
	wantRequests(t, l, "the backup removed", map[string]int{})

	l.MustSh(`mv db/t/f db/t/f~; mv db/t/g db/t/f; mv db/t/f~ db/t/g`)
	wantContent(t, l, "db/t/f", "other")
	wantContent(t, l, "db/t/g", "new\n")
	wantInStore(t, l, "f", "g", "warm")

	l.MustSh(`mv db/t/f db/t/f~; rm db/t/f~`)
	wantInStore(t, l, "g", "warm")
	if got := l.MustSh(`ls db/t`); got != "g\nwarm\n" {
		t.Errorf("listed are %q", got)
	}
}

func TestS3BackupAloneIsRenamedAfterAWhile(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old"}, "--write=overwrite", "--temporary-linger=300ms")
	l.MustSh(`chmod 640 db/t/f; mv db/t/f db/t/f~; chmod 604 db/t/f~`)
	l.Eventually("renamed in the store", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), []string{"f~", "warm"}) })
	l.Eventually("nothing is staged", 0, func() bool { return len(spools(t, l)) == 0 })
	wantContent(t, l, "db/t/f~", "old")
	if mode := l.MustSh(`stat -c %a db/t/f~`); mode != "604\n" {
		t.Errorf("mode %s, want 604", mode)
	}
	if got := l.Proxy.Counts(); got["CopyObject"] != 1 || got["DeleteObject"] != 1 || got["PutObject"] != 0 {
		t.Errorf("a rename: %v\n%s", got, asked(l))
	}
	if names := l.MustSh(`ls db/t`); names != "f~\nwarm\n" {
		t.Errorf("listed are %q", names)
	}
}

func TestS3BackupOfALargeObjectIsRenamedAtOnce(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": strings.Repeat("x", 64<<20+1)}, "--write=overwrite")
	l.MustSh(`mv db/t/f db/t/f~`)
	wantInStore(t, l, "f~", "warm")
}

// Another replaced the object: its version stays, and the backup is published as it was.
func TestS3BackupOfWhatAnotherReplaced(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old"}, "--write=delete", "--temporary-linger=300ms")
	l.MustSh(`exec 3<db/t/f; mv db/t/f db/t/f~`)
	l.PutStored("db/t/f", "another's")
	l.WaitLog("a rename to a backup name could not be made")
	l.Eventually("the other's version is shown", 0, func() bool { got, err := l.ReadFile("db/t/f"); return err == nil && got == "another's" })
	l.Eventually("the backup is published", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), []string{"f", "f~", "warm"}) })
	wantContent(t, l, "db/t/f~", "old")
}

// The store refuses the copy: the file is where it was, and the backup kept.
func TestS3BackupThatIsRefused(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old"}, "--write=delete", "--temporary-linger=300ms")
	l.Proxy.Add(faulty.Rule{Op: "CopyObject", Fault: answers(403, "AccessDenied")})
	l.MustSh(`mv db/t/f db/t/f~`)
	l.WaitLog("a rename to a backup name could not be made")
	l.Eventually("the file is shown", 0, func() bool { got, err := l.ReadFile("db/t/f"); return err == nil && got == "old" })
	wantKeptBytes(t, l, "db/t", "f~", "old")
	wantInStore(t, l, "f", "warm")
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
}

// The bytes of the backup can not be had: the rename is made at once.
func TestS3BackupWhoseBytesCanNotBeHad(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old"}, "--write=delete")
	l.Proxy.Add(faulty.Rule{Op: "GetObject", Fault: answers(403, "AccessDenied")})
	l.MustSh(`mv db/t/f db/t/f~`)
	l.Proxy.Clear()
	wantInStore(t, l, "f~", "warm")
	wantContent(t, l, "db/t/f~", "old")
	l.MustSh(`echo new >db/t/f`)
	wantInStore(t, l, "f", "f~", "warm")
}
