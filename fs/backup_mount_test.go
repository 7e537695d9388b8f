package fs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What programs do between the rename to a backup name and its end, on a folder and on
// a bucket.

// waitUntil are functions of a script that wait for the store.
const waitUntil = `
import time
def wait_until(what, seconds=30):
    end = time.time() + seconds
    while not what():
        assert time.time() < end, "not within %d s: the store has %r" % (seconds, stored_names())
        time.sleep(.02)
`

func TestBackupThatIsWrittenTo(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"a": "old\n", "b": "old\n", "c": "old\n", "d": "old\n"}, "--write=delete", lingersBriefly)
	mustPython(t, l, script(l, csvDir, waitUntil+`
for name in "abcd": os.rename(name, name + "~")
for name in "ab":
    with open(name + "~", "a") as f: f.write("more\n")
    eq(open(name + "~").read(), "old\nmore\n")
with open("b", "x") as f: f.write("new\n")
open("c~", "r+").close()
os.truncate("d~", 2)
os.chmod("a~", 0o604); os.chmod("c~", 0o604)
wait_until(lambda: sorted(stored_names()) == ["a~", "b", "b~", "c~", "d~"])
eq([published(n) for n in ("a~", "b", "b~", "c~", "d~")], [b"old\nmore\n", b"new\n", b"old\nmore\n", b"old\n", b"ol"])
eq([oct(os.stat(n).st_mode & 0o777) for n in ("a~", "c~")], ["0o604"] * 2)
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "a~", "b", "b~", "c~", "d~")
}

// The new file is open for longer than a backup waits: nothing happens before its end.
func TestBackupWaitsForTheNewFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "g": "old\n", "h": "old\n", "late": ""}, "--write=delete", "--temporary-linger=500ms")
	mustPython(t, l, script(l, csvDir, waitUntil+`
fds = []
for name in "fgh": os.rename(name, name + "~"); fds.append(open(name, "x"))
for n in range(2): # as many waits have ended by then
    os.rename("late", "late~"); wait_until(lambda: published("late~") is not None)
    os.rename("late~", "late"); wait_until(lambda: published("late") is not None)
eq([published(n) for n in ("f", "g", "h", "f~", "g~", "h~")], [b"old\n"] * 3 + [None] * 3)
eq([open(n + "~").read() for n in "fgh"], ["old\n"] * 3)
os.unlink("g")      # it is given up: what was renamed is renamed
os.unlink("h~")     # the backup of a file that is being written
for f in fds: f.write("new\n"); f.close()
wait_until(lambda: sorted(stored_names()) == ["f", "f~", "g~", "h", "late"])
eq([published(n) for n in ("f", "f~", "g~", "h")], [b"new\n", b"old\n", b"old\n", b"new\n"])
eq(err(os.stat, "h~"), "ENOENT")
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "f", "f~", "g~", "h", "late")
}

// A backup is removed while the new file is written, which is given up then.
func TestBackupAndNewFileAreBothRemoved(t *testing.T) {
	t.Parallel()
	for level, want := range map[string][]string{"overwrite": {"f"}, "delete": {}} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, map[string]string{"f": "old\n"}, "--write="+level, lingersBriefly)
			l.MustSh(`cd ` + csvDir + `; mv f f~; exec 3>f; rm f~ f; exec 3>&-; test ! -e f~`)
			l.Eventually("it is settled", 0, func() bool {
				names, err := l.Names(csvDir)
				return err == nil && slices.Equal(names, want) && slices.Equal(l.StoredNames(csvDir), want)
			})
			wantSettled(t, l)
		})
	}
}

func TestBackupIsRenamedOn(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n", "w": "w\n", "e": "e\n"}, "--write=delete", neverLingers)
	mustPython(t, l, script(l, csvDir, `
os.mkdir("sub")
os.rename("a", "a~"); os.rename("a~", "sub/a")          # elsewhere
os.rename("b", "b~"); os.rename("w", "b~")              # over it
os.rename("c", "c~"); os.rename("c~", "c~~")            # a backup of the backup
os.rename("d", "d~"); fd = open("d", "x")
os.rename("d~", "kept"); fd.write("new\n"); fd.close()  # while the new file is written
os.rename("e", "e~")
with open("e~", "a") as f: f.write("more\n")
os.rename("e~", "e")                                    # back, and changed
eq((published("sub/a"), published("b~"), open("c~~").read(), published("kept"), published("d"), published("e")),
   (b"a\n", b"w\n", "c\n", b"d\n", b"new\n", b"e\nmore\n"))
eq([n for n in "abcdew" if os.path.exists(n)], ["d", "e"])
eq(sorted(os.listdir(".")), ["b~", "c~~", "d", "e", "kept", "sub"])
`))
	l.Remount("--write=delete")
	wantContent(t, l, csvDir+"/c~~", "c\n")
	wantClean(t, l, csvDir, "b~", "c~~", "d", "e", "kept", "sub")
}

func TestBackupInADirectory(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, "--write=delete", neverLingers)
	mustPython(t, l, script(l, csvDir, `
os.mkdir("d")
for name in "fg":
    with open("d/" + name, "w") as f: f.write("old\n")
os.rename("d/f", "d/f~"); os.rename("d/g", "d/g~")
eq(err(os.rmdir, "d"), "ENOTEMPTY")
os.rename("d", "e")
eq((sorted(os.listdir("e")), open("e/f~").read()), (["f~", "g~"], "old\n"))
os.unlink("e/f~"); os.unlink("e/g~"); os.rmdir("e")
with open("h", "w") as f: f.write("old\n")
os.rename("h", "h~"); os.mkdir("h")                # in its place
eq((published("h~"), os.listdir("h")), (b"old\n", []))
os.rmdir("h"); os.unlink("h~")
with open("i", "w") as f: f.write("old\n")
os.mkdir("j"); os.rename("i", "i~"); os.rename("j", "i")
eq((published("i~"), os.listdir("i")), (b"old\n", []))
os.rmdir("i"); os.unlink("i~")
eq(os.listdir("."), [])
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir)
}

// Programs that have the old file open go on, whatever becomes of it.
func TestBackupAndOpenReaders(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "g": "old\n"}, "--write=delete", lingersBriefly)
	mustPython(t, l, script(l, csvDir, waitUntil+`
before = os.open("f", os.O_RDONLY), os.open("g", os.O_RDONLY)
inos = os.stat("f").st_ino, os.stat("g").st_ino
os.rename("f", "f~"); os.rename("g", "g~")
after = os.open("f~", os.O_RDONLY), os.open("g~", os.O_RDONLY)
eq((os.stat("f~").st_ino, os.stat("g~").st_ino), inos)
with open("f", "x") as f: f.write("new\n")
assert os.stat("f").st_ino != inos[0]
wait_until(lambda: published("f~") and published("g~") and not published("g"))
eq([os.pread(fd, 9, 0) for fd in after], [b"old\n"] * 2)
eq([os.pread(fd, 9, 0) for fd in before], [b"old\n"] * 2)
eq((os.stat("f~").st_ino, os.stat("g~").st_ino), inos)
eq((open("f~").read(), open("g~").read()), ("old\n", "old\n"))
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "f", "f~", "g~")
}

// What could not be published in the old file's place is by hand: the backup stays.
func TestBackupOfWhatRecoverPublishes(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n"}, "--write=delete", neverLingers)
	l.Sh(`cd ` + csvDir + `; mv f f~; bash -c 'exec 3>f; echo new >&3; kill -TERM $$; sleep 60'`)
	var kept []stagedWrite
	l.Eventually("the new file is torn", 0, func() bool {
		kept = slices.DeleteFunc(stagedStatus(t, l), func(w stagedWrite) bool { return w.Hold != "" }) // not the backup
		return len(kept) == 1 && kept[0].State == "torn"
	})
	wantErrno(t, "stat", statErr(l, csvDir+"/f"), syscall.ENOENT)
	if r := l.Run("recover", "--publish="+kept[0].ID, l.Root); r.Code != 0 {
		t.Fatalf("recover --publish: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	wantContent(t, l, csvDir+"/f", "new\n")
	wantContent(t, l, csvDir+"/f~", "old\n")
	l.Remount()
	wantStore(t, l, csvDir+"/f", "new\n")
	wantStore(t, l, csvDir+"/f~", "old\n")
}

// Another mount, which sees what the store has, never misses the file.
func TestBackupAndAnotherMount(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "0\n"}, "--write=delete", neverLingers)
	other := l.Second("--metadata-ttl=0s", "--negative-ttl=0s")
	stop := make(chan struct{})
	var seen sync.WaitGroup
	var missing, rounds atomic.Int64
	seen.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			names, err := os.ReadDir(other.Path(csvDir))
			_, lost := os.ReadFile(other.Path(csvDir + "/f"))
			if rounds.Add(1); err != nil || lost != nil || len(names) != 1 {
				missing.Add(1)
			}
		}
	})
	l.MustSh(`cd ` + csvDir + `; for i in $(seq 30); do mv f f~ && echo $i > f && rm f~ || exit 1; done`)
	close(stop)
	seen.Wait()
	if missing.Load() > 0 || rounds.Load() == 0 {
		t.Errorf("the other mount missed the file %d times in %d", missing.Load(), rounds.Load())
	}
	other.Eventually("the other mount sees the last version", seenWithin, func() bool { got, err := other.ReadFile(csvDir + "/f"); return err == nil && got == "30\n" })
}

// TestBackupRacesItsWait: whenever the wait for a new file ends, programs see what they
// would on a disk.
func TestBackupRacesItsWait(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	l := mountTwo(t, map[string]string{"f0": "0\n", "f1": "0\n", "f2": "0\n", "f3": "0\n"}, "--write=delete", "--temporary-linger=4ms")
	var all sync.WaitGroup
	for _, f := range []string{"f0", "f1", "f2", "f3"} {
		all.Go(func() { raceBackup(t, l, csvDir+"/"+f, rounds) })
	}
	all.Wait()
	l.Eventually("the store has the files alone", 0, func() bool { return slices.Equal(l.StoredNames(csvDir), []string{"f0", "f1", "f2", "f3"}) })
	wantSettled(t, l)
}

// raceBackup saves f many times, each time another way and after another pause.
func raceBackup(t *testing.T, l *mounttest.Lake, f string, rounds int) {
	t.Helper()
	content := "0\n"
	for i := range rounds {
		pause := time.Duration(i%12) * 500 * time.Microsecond // around the wait
		next := strings.Repeat("x", i+1) + "\n"
		if err := rename(l, f, f+"~"); err != nil {
			t.Errorf("round %d: rename: %v", i, err)
			return
		}
		<-time.After(pause)
		err := statErr(l, f)
		if err == nil {
			t.Errorf("round %d: %s is there after its rename", i, filepath.Base(f))
		}
		way := i % 4
		switch way {
		case 0:
			err = l.WriteFile(f, next)
			wantContent(t, l, f+"~", content)
			content = next
		case 1:
			err = rename(l, f+"~", f)
		case 2:
			if err = l.WriteFile(f+".tmp", next); err == nil {
				err = rename(l, f+".tmp", f)
			}
			wantContent(t, l, f+"~", content)
			content = next
		case 3:
			if err = writeErr(l, f+"~", syscall.O_WRONLY|syscall.O_APPEND, "y", func() { <-time.After(pause) }); err == nil {
				err = rename(l, f+"~", f)
			}
			content += "y"
		}
		if err != nil {
			t.Errorf("round %d of %s: %v", i, filepath.Base(f), err)
			return
		}
		wantContent(t, l, f, content)
		if way == 0 || way == 2 {
			if err := unlink(l, f+"~"); err != nil {
				t.Errorf("round %d: unlink: %v", i, err)
			}
		}
	}
}
