package fs_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestBadEntryIsRefused: by the close, with the reason where a user looks for it, and
// the old entry stays, for readers too.
func TestBadEntryIsRefused(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		good := l.read("text.json")
		for name, bad := range map[string]string{
			"no JSON":   `{"half": `,
			"nothing":   "",
			"an array":  "[1]",
			"cut":       good[:len(good)/2],
			"another's": strings.NewReplacer(`"name": "text"`, `"name": "other"`, `"Name": "text"`, `"Name": "other"`).Replace(good),
		} {
			wantErrno(t, name, l.write("text.json", bad), syscall.EINVAL)
			for _, dir := range []string{"db", "db/text"} {
				if reason := l.rejections(dir)["db/text.json"]; reason == "" {
					t.Errorf("%s: status.json of %s has no reason", name, dir)
				}
			}
			l.wantK("old")
			if l.read("text.json") != good {
				t.Errorf("after %s the mount has %s", name, l.read("text.json"))
			}
		}
		wantErrno(t, "a table's entry that is none", l.write("new.json", "{}"), syscall.EINVAL)
		l.WaitLog("path=db/new.json")
		if l.rejections("db")["db/new.json"] == "" {
			t.Error("status.json of the database has no reason of a new table's refusal")
		}
		l.wantTables("text")
		wantErrno(t, "the old entry again", l.write("text.json", strings.ReplaceAll(good, "old", "better")), 0)
		l.wantK("better")
		if reasons := l.rejections("db/text"); len(reasons) != 0 {
			t.Errorf("a success left %v", reasons)
		}
		l.MustSh("cd db/text/dt=2026-01-01 && cat a && echo 2 > b")
	})
}

// TestEntryOfTwoMiB: EFBIG while it is written, and nothing of it counts.
func TestEntryOfTwoMiB(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		big := strings.Repeat(" ", 2<<20) + l.read("text.json")
		wantErrno(t, "2 MiB", l.write("text.json", big), syscall.EFBIG)
		out := mustPython(t, l.Lake, `
import os, errno
fd = os.open("db/text.json", os.O_WRONLY)
for what in (lambda: os.write(fd, b"x" * (2 << 20)), lambda: os.pwrite(fd, b"x", 1 << 40), lambda: os.ftruncate(fd, 0), lambda: os.fsync(fd), lambda: os.close(fd)):
    try: print(what())
    except OSError as e: print(errno.errorcode[e.errno])
`)
		if out != strings.Repeat("EFBIG\n", 5) && !strings.HasSuffix(out, "EFBIG\nEFBIG\nEFBIG\nEFBIG\n") {
			t.Errorf("a spoilt draft answers %q", out)
		}
		l.wantK("old")
	})
}

// TestTooManyDrafts: what is being written at once is bounded.
func TestTooManyDrafts(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		out := mustPython(t, l.Lake, `
import os, errno
fds = []
try:
    for i in range(100): fds.append(os.open("db/n%d.json" % i, os.O_WRONLY | os.O_CREAT))
except OSError as e: print(len(fds), errno.errorcode[e.errno])
try: os.open("db/text.json", os.O_WRONLY)
except OSError as e: print(errno.errorcode[e.errno])
for i in range(len(fds)): os.unlink("db/n%d.json" % i)
for fd in fds: os.close(fd)
`)
		if out != "64 ENOSPC\nENOSPC\n" {
			t.Errorf("100 entries at once: %q", out)
		}
		l.Eventually("drafts are free again", 20*time.Second, func() bool {
			return l.Sh(`cd db; cp text.json $HOME/x; cp $HOME/x text.json`).Code == 0
		})
		l.wantTables("text")
	})
}

// TestStaleEntry: what a program writes is a change of what it has read, and not of
// what another made of it since.
func TestStaleEntry(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		for _, how := range []string{
			`
with open("db/text.json", "w") as f: f.write(text)`,
			`
with open("db/.text.json.abcdef", "w") as f: f.write(text)
os.replace("db/.text.json.abcdef", "db/text.json")`,
			`
with open("db/text.json", "w") as f:
    f.write(text)
    f.flush()
    os.fsync(f.fileno())`,
		} {
			l.foreign(`"k":`, `"k":`) // a new version of the same
			was, _ := l.parameters("text")["k"].(string)
			out := mustPython(t, l.Lake, `
import os, errno, subprocess
def write(text):
    try:`+strings.ReplaceAll(how, "\n", "\n        ")+`
    except OSError as e: return errno.errorcode[e.errno]
text = open("db/text.json").read()
subprocess.run(["sed", "-i", "s/`+was+`/theirs/", "db/text.json"], check=True)
print(write(text.replace("`+was+`", "mine")))
assert "theirs" in subprocess.run(["cat", "db/text.json"], capture_output=True, text=True).stdout
print(write(text.replace("`+was+`", "mine")))
if os.path.exists("db/.text.json.abcdef"): os.unlink("db/.text.json.abcdef")
text = open("db/text.json").read()
print(write(text.replace("theirs", "merged")))
`)
			if out != "ESTALE\nESTALE\nNone\n" {
				t.Errorf("%s\nanswers %q", how, out)
			}
			l.wantK("merged")
		}
	})
}

// TestEntryChangedWhileItIsWritten: by another program, past the mount. Who opened it
// first is the later one to close.
func TestEntryChangedWhileItIsWritten(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		text := l.read("text.json")
		wantErrno(t, "close", l.Do("write", func() error {
			return mounttest.NoFork(func() error {
				f, err := os.OpenFile(l.Path("db/text.json"), os.O_WRONLY|os.O_TRUNC, 0)
				if err != nil {
					return err
				}
				if _, err = f.WriteString(strings.ReplaceAll(text, "old", "mine")); err != nil {
					return err
				}
				l.foreign("old", "theirs")
				return f.Close()
			})
		}), syscall.ESTALE)
		l.wantK("theirs")
		if text = l.read("text.json"); !strings.Contains(text, "theirs") {
			t.Errorf("the mount has %s", text)
		}
	})
}

// TestTwoWritersOfOneProgram: each close answers for its own bytes.
func TestTwoWritersOfOneProgram(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		out := mustPython(t, l.Lake, `
import errno
f, g = open("db/text.json", "r+"), open("db/text.json", "r+")
for one, value in (f, "first"), (g, "second"):
    text = one.read()
    one.seek(0)
    one.write(text.replace("old", value))
    one.truncate()
for one in f, g:
    try: print(one.close())
    except OSError as e: print(errno.errorcode[e.errno])
`)
		if out != "None\nESTALE\n" {
			t.Errorf("the closes answer %q", out)
		}
		l.wantK("first")
	})
}

// TestEntriesAtEachLevel: --write holds for entries as for files.
func TestEntriesAtEachLevel(t *testing.T) {
	for level, want := range map[string][4]syscall.Errno{ // change, remove; then of a new table
		"create":    {syscall.EPERM, syscall.EPERM, 0, 0},
		"overwrite": {0, syscall.EPERM, 0, 0},
		"delete":    {0, 0, 0, 0},
	} {
		t.Run(level, func(t *testing.T) {
			onCatalogs(t, []string{"--write=" + level}, func(l editable) {
				t := l.t
				text, entry := l.read("text.json"), l.newEntry()
				remove := func(name string) error {
					return l.Do("rm", func() error { return os.Remove(l.Path("db/" + name)) })
				}
				wantErrno(t, "a new table", l.write("fresh.json", entry), 0)
				entry = l.read("fresh.json")
				wantErrno(t, "a change of the new one", l.write("fresh.json", strings.ReplaceAll(entry, "old", "own")), want[2])
				wantErrno(t, "removal of the new one", remove("fresh.json"), want[3])
				wantErrno(t, "a change of another's", l.write("text.json", strings.ReplaceAll(text, "old", "new")), want[0])
				wantErrno(t, "removal of another's", remove("text.json"), want[1])
				if _, there := l.catalogEntry("text"); there != (want[1] != 0) {
					t.Errorf("the catalog has the table: %v", there)
				}
			})
		})
	}
}

// TestEntriesThatAreNotWritten: databases', and all without --catalog-writes=entries or
// on a mount that is read only.
func TestEntriesThatAreNotWritten(t *testing.T) {
	open := func(l *mounttest.Lake, name string, flags int) error {
		return l.Do("open "+name, func() error {
			f, err := os.OpenFile(l.Path(name), flags, 0o600)
			if err == nil {
				err = f.Close()
			}
			return err
		})
	}
	const create = os.O_WRONLY | os.O_CREATE
	onCatalogs(t, []string{"--write=delete"}, func(l editable) {
		text := l.read("text.json")
		wantErrno(l.t, "a database's entry", open(l.Lake, "db.json", os.O_WRONLY), syscall.EACCES)
		wantErrno(l.t, "a new database", open(l.Lake, "new.json", create), syscall.EACCES)
		wantErrno(l.t, "removal of a database's entry", l.Do("rm", func() error { return os.Remove(l.Path("db.json")) }), syscall.EACCES)
		for _, name := range []string{"foo.txt", "4913", ".text.json.swp"} {
			wantErrno(l.t, name, open(l.Lake, "db/"+name, create), syscall.EPERM)
		}
		for _, to := range []string{"db/new.json", "db/text.json~", "db/text.txt", "text.json", "db/text/text.json"} {
			wantErrno(l.t, "rename to "+to, l.Do("rename", func() error { return os.Rename(l.Path("db/text.json"), l.Path(to)) }), syscall.EPERM)
		}
		if l.read("text.json") != text {
			l.t.Error("the entry changed")
		}
		l.WaitLog("a database's entry is not changed")
		l.wantTables("text")
		l.Remount("--read-only")
		wantErrno(l.t, "read only: open", open(l.Lake, "db/text.json", os.O_WRONLY), syscall.EROFS)
		wantErrno(l.t, "read only: new", open(l.Lake, "db/new.json", create), syscall.EROFS)
		wantErrno(l.t, "read only: rm", l.Do("rm", func() error { return os.Remove(l.Path("db/text.json")) }), syscall.EROFS)
	})
	t.Run("without the flag", func(t *testing.T) {
		l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{editText()}, Flags: []string{"--write=delete"}})
		wantErrno(t, "open", open(l, "db/text.json", os.O_WRONLY), syscall.EACCES)
		wantErrno(t, "new", open(l, "db/new.json", create), syscall.EACCES)
		wantErrno(t, "temporary", open(l, "db/sedabcdef", create), syscall.EPERM)
		wantErrno(t, "rm", l.Do("rm", func() error { return os.Remove(l.Path("db/text.json")) }), syscall.EACCES)
		if info, err := l.Lstat("db/text.json"); err != nil || info.Mode() != 0o400 {
			t.Errorf("the entry is shown as %v, %v", info.Mode(), err)
		}
	})
}

// TestTemporaryNamesBesideEntries: they are found, not listed, and no table by themselves.
func TestTemporaryNamesBesideEntries(t *testing.T) {
	onCatalogs(t, []string{"--temporary-linger=1s"}, func(l editable) {
		t := l.t
		text := l.read("text.json")
		for _, name := range []string{"sedabcdef", ".text.json.abcdef", "tmp_text.json", "text.json.tmp"} {
			wantErrno(t, name, l.write(name, "any bytes\n"), 0)
			if got := l.read(name); got != "any bytes\n" {
				t.Errorf("%s has %q", name, got)
			}
			l.wantTables("text")
			wantErrno(t, name+" over the entry", rename2(l.Lake, "db/"+name, "db/text.json", 0), syscall.EINVAL)
			if got := l.read(name); got != "any bytes\n" || l.read("text.json") != text {
				t.Errorf("a failed rename left %q, and %s", got, l.read("text.json"))
			}
			wantErrno(t, name+" as a file", rename2(l.Lake, "db/"+name, "db/foo.txt", 0), syscall.EPERM)
			wantErrno(t, name+" into a table", rename2(l.Lake, "db/"+name, "db/text/dt=2026-01-01/f", 0), syscall.EXDEV)
			wantErrno(t, name+" as a database's", rename2(l.Lake, "db/"+name, "new.json", 0), syscall.EACCES)
			wantErrno(t, "removal of "+name, l.Do("rm", func() error { return os.Remove(l.Path("db/" + name)) }), 0)
			if _, err := l.Lstat("db/" + name); !os.IsNotExist(err) {
				t.Errorf("%s is there: %v", name, err)
			}
		}
		wantErrno(t, "write", l.write("sedabcdef", strings.ReplaceAll(text, "old", "new")), 0)
		wantErrno(t, "another temporary name", rename2(l.Lake, "db/sedabcdef", "db/sedghijkl", 0), 0)
		wantErrno(t, "no replacement", noReplace(l.Lake, "db/sedghijkl", "db/text.json"), syscall.EEXIST)
		wantErrno(t, "replacement", rename2(l.Lake, "db/sedghijkl", "db/text.json", 0), 0)
		l.wantK("new")
		wantErrno(t, "write", l.write("sedabcdef", l.newEntry()), 0)
		wantErrno(t, "a new name", noReplace(l.Lake, "db/sedabcdef", "db/fresh.json"), 0)
		l.wantTables("fresh", "text")

		wantErrno(t, "write", l.write("sedabcdef", "left\n"), 0)
		l.WaitLog("dropped a temporary file")
		if _, err := l.Lstat("db/sedabcdef"); !os.IsNotExist(err) {
			t.Errorf("what nobody renamed is there: %v", err)
		}
		l.wantTables("fresh", "text")
	})
}

// TestUnlinkedDraftIsNotWritten: nor what its writer writes after that.
func TestUnlinkedDraftIsNotWritten(t *testing.T) {
	onCatalogs(t, []string{"--write=delete"}, func(l editable) {
		t := l.t
		l.MustSh("cat > $HOME/fresh.json <<'END'\n" + l.newEntry() + "\nEND")
		mustPython(t, l.Lake, `
import os
text = open(os.environ["HOME"] + "/fresh.json").read()
f = open("db/fresh.json", "w")
f.write(text[:50])
f.flush()
os.unlink("db/fresh.json")
assert not os.path.exists("db/fresh.json")
assert os.fstat(f.fileno()).st_nlink == 0
f.write(text[50:])
f.close()
f = open("db/text.json", "r+")
f.write("  ")
f.flush()
os.unlink("db/text.json")
f.close()
`)
		l.wantTables()
		if strings.Contains(l.Log(), "operation=publish") {
			t.Error("an unlinked draft was given to the catalog")
		}
	})
}

// TestTruncateOfAnEntryByPath: it is a write of its own, answered by the call.
func TestTruncateOfAnEntryByPath(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		text := l.read("text.json")
		wantErrno(t, "to a part", l.Do("truncate", func() error { return os.Truncate(l.Path("db/text.json"), 10) }), syscall.EINVAL)
		l.wantK("old")
		padded := text + strings.Repeat("\n", 100)
		wantErrno(t, "write", l.write("text.json", strings.ReplaceAll(padded, "old", "new")), 0)
		wantErrno(t, "of a name that is not there", l.Do("truncate", func() error { return os.Truncate(l.Path("db/no.json"), 10) }), syscall.ENOENT)
		l.wantK("new")
		if l.Catalog == nil {
			wantErrno(t, "to the entry's end", l.Do("truncate", func() error { return os.Truncate(l.Path("db/text.json"), int64(len(text))) }), 0)
			if got := l.StoredManifest("db/text"); got != strings.ReplaceAll(text, "old", "new") {
				t.Errorf("the catalog has %s", got)
			}
		}
	})
}
