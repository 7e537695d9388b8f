package fs_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// script is a Python script that works in the partition dir; it fails by assert.
// What the store has there it sees by published, version and stored_names, and
// it changes that, past the mount, by put_stored and remove_stored.
func script(l *mounttest.Lake, dir, body string) string {
	return `import errno, os, stat, subprocess, sys
os.chdir("` + l.Path(dir) + `")
store = "` + l.Window(dir) + `/"
def err(call, *a, **k):
    try: call(*a, **k)
    except OSError as e: return errno.errorcode[e.errno]
    return None
def other(code):
    "runs code in another process, and returns what it prints"
    return subprocess.run([sys.executable, "-c", "import os\n" + code], check=True, capture_output=True, text=True).stdout.strip()
def published(name):
    try:
        with open(store + name, "rb") as f: return f.read()
    except FileNotFoundError: return None
def version(name):
    s = os.stat(store + name); return (s.st_ino, s.st_mtime_ns, s.st_size)
def stored_names(): return os.listdir(store)
` + foreignWrites(l, dir) + `
def eq(got, want):
    assert got == want, "got %.300r, want %.300r" % (got, want)
` + body
}

// foreignWrites are the functions of a script that change the store.
func foreignWrites(l *mounttest.Lake, dir string) string {
	if !l.OnS3() {
		return `
def put_stored(name, data):
    with open(store + "../new", "wb") as f: f.write(data)
    os.rename(store + "../new", store + name)
def remove_stored(name): os.unlink(store + name)
`
	}
	return `
def door(method, name, data=None):
    import urllib.request
    urllib.request.urlopen(urllib.request.Request("` + l.Door() + `/` + dir + `/" + name, data=data, method=method)).close()
def put_stored(name, data): door("PUT", name, data)
def remove_stored(name): door("DELETE", name)
`
}

func TestCase72LastOfTwoHandlesPublishes(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	stop := seen(l.Window(csvDir + "/f"))
	defer stop()
	l.MustSh(`cd ` + csvDir + `; exec 3>f; exec 4>>f; echo a >&3; exec 3>&-; ls; echo b >&4; exec 4>&-; ls`)
	if got := stop(); len(got) != 1 || got[0] != "a\nb\n" {
		t.Errorf("the store showed %q, want the whole file once", got)
	}
	wantClean(t, l, csvDir, "f")
}

func TestSeveralHandlesOfSeveralProcessesPublishAtTheLast(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
os.write(fd, b"one\n")
eq(other("fd = os.open('f', os.O_RDWR); print(os.fstat(fd).st_size); os.pwrite(fd, b'ONE', 0); os.close(fd)"), "4")
eq(published("f"), None)
eq(os.pread(fd, 9, 0), b"ONE\n")
eq(other("fd = os.open('f', os.O_WRONLY | os.O_APPEND); os.write(fd, b'two\\n'); os.fsync(fd) if 0 else 0; os.close(fd)"), "")
eq(published("f"), None)
eq(os.fstat(fd).st_size, 8)
eq(other("print(open('f').read().replace(chr(10), '|'))"), "ONE|two|")
assert "f" not in os.listdir(".")
os.close(fd)
eq(published("f"), b"ONE\ntwo\n")
eq(os.listdir("."), ["f"])
eq(oct(os.stat("f").st_mode), oct(stat.S_IFREG | 0o640))
`))
	wantClean(t, l, csvDir, "f")
}

// A reader that has the staged node open does not put off the publish.
func TestReaderOfAStagedFileDoesNotHoldThePublishBack(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("f", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(fd, b"one\n")
r = os.open("f", os.O_RDONLY)
os.close(fd)
eq(published("f"), b"one\n")
eq(os.read(r, 9), b"one\n")
eq(os.fstat(r).st_size, 4)
os.close(r)
`))
	wantClean(t, l, csvDir, "f")
}

func TestFsyncPublishesAWholeFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"one\n")
eq(published("f"), None)
os.fsync(fd)
eq(published("f"), b"one\n")
os.write(fd, b"two\n")
eq(published("f"), b"one\n")
eq(open("f", "rb").read(), b"one\n")
eq(os.fstat(fd).st_size, 8)
eq(os.stat("f").st_size, 4)
eq(os.pread(fd, 99, 0), b"one\ntwo\n")
os.fdatasync(fd)
eq(published("f"), b"one\ntwo\n")
eq(open("f", "rb").read(), b"one\ntwo\n")
os.ftruncate(fd, 2)
eq(open("f", "rb").read(), b"one\ntwo\n")
os.close(fd)
eq(published("f"), b"on")
eq(open("f", "rb").read(), b"on")
`))
	wantClean(t, l, csvDir, "f")
}

func TestSynchronousWritesAreDurableAndPublishedAtTheClose(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"})
	mustPython(t, l, script(l, csvDir, `
for name, flags in ("a", os.O_SYNC), ("b", os.O_DSYNC), ("old", os.O_SYNC | os.O_TRUNC):
    before = published(name)
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    os.write(fd, b"one\n")
    eq(published(name), before)
    spool, = [d for d in os.listdir("`+l.Staged()+`") if os.path.exists("`+l.Staged()+`/" + d + "/data")]
    eq(open("`+l.Staged()+`/" + spool + "/data", "rb").read(), b"one\n")
    os.write(fd, b"two\n")
    eq(published(name), before)
    os.close(fd)
    eq(published(name), b"one\ntwo\n")
`))
	wantClean(t, l, csvDir, "a", "b", "old")
}

func TestFsyncOfAnIncompleteParquetFileIsDurableNotPublished(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	whole := mounttest.Parquet(t, 50)
	writeFile(t, l.State+"/whole", whole)
	cut := len(whole) - 4
	mustPython(t, l, script(l, parquetDir, `
data = open("`+l.State+`/whole", "rb").read()
fd = os.open("f.parquet", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, data[:-4])
os.fsync(fd)
eq(published("f.parquet"), None)
eq(os.listdir("."), [])
eq(os.stat("f.parquet").st_size, len(data) - 4)
ids = [d for d in os.listdir("`+l.Staged()+`") if os.path.isdir("`+l.Staged()+`/" + d)]
eq(len(ids), 1)
eq(open("`+l.Staged()+`/%s/data" % ids[0], "rb").read(), data[:-4])
assert os.path.getsize("`+l.Staged()+`/%s/write.json" % ids[0]) > 0
g = os.open("g.parquet", os.O_WRONLY | os.O_CREAT, 0o644)
os.write(g, data[:-4]); os.fsync(g); os.write(g, data[-4:]); os.close(g)
eq(published("g.parquet"), data)
eq(err(os.close, fd), "EBADMSG")
eq(published("f.parquet"), None)
eq(os.listdir("."), ["g.parquet"])
`))
	kept := wantStaged(t, l, parquetDir, "f.parquet")
	for range 2 {
		if got, err := l.ReadFile(kept); err != nil || got != whole[:cut] {
			t.Errorf("%s: %s, %v; want the bytes that were not published", kept, brief(got), err)
		}
		l.Remount()
	}
	wantAbsent(t, l, parquetDir+"/f.parquet")
}

func TestKilledDaemonKeepsWhatFsyncPromised(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + parquetDir + `; exec 3>f.parquet; echo PAR1 not all of it >&3;
		/usr/bin/python3 -c 'import os; os.fsync(3)'; kill -KILL ` + strconv.Itoa(l.Pid()) + `; exec 3>&- 2>/dev/null; :`)
	l.Kill()
	l.Start()
	kept := wantStaged(t, l, parquetDir, "f.parquet")
	if got, err := l.ReadFile(kept); err != nil || got != "PAR1 not all of it\n" {
		t.Errorf("%s: %q, %v; want what fsync made durable", kept, got, err)
	}
	wantAbsent(t, l, parquetDir+"/f.parquet")
}

func TestEmptyParquetFileWaitsForItsBytes(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	writeFile(t, l.State+"/whole", mounttest.Parquet(t, 50))
	mustPython(t, l, script(l, parquetDir, `
data = open("`+l.State+`/whole", "rb").read()
open("f.parquet", "wb").close()
eq(os.listdir("."), [])
eq(published("f.parquet"), None)
eq(os.stat("f.parquet").st_size, 0)
eq(other("print(os.stat('f.parquet').st_size)"), "0")
eq(err(os.open, "f.parquet", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "EEXIST")
ino = os.stat("f.parquet").st_ino
fd = os.open("f.parquet", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(fd, data); os.close(fd)
eq(published("f.parquet"), data)
eq(os.listdir("."), ["f.parquet"])
eq(os.stat("f.parquet").st_ino, ino)
open("g.parquet", "wb").close()
os.unlink("g.parquet")
eq(err(os.stat, "g.parquet"), "ENOENT")
fd = os.open("f.parquet", os.O_WRONLY | os.O_TRUNC); os.close(fd)
eq(published("f.parquet"), data)
fd = os.open("f.parquet", os.O_WRONLY | os.O_APPEND); os.write(fd, data); os.close(fd)
eq(published("f.parquet"), data)
open("h.parquet", "wb").close()
fd = os.open("h.parquet", os.O_WRONLY); os.write(fd, data); os.close(fd)
eq(published("h.parquet"), data)
`))
	wantClean(t, l, parquetDir, "f.parquet", "h.parquet")
}

func TestPolarsWritesByItsDoubleOpen(t *testing.T) {
	t.Parallel()
	interpreter := filepath.Join(mounttest.ModuleRoot(t), ".venv", "bin", "python")
	if _, err := os.Stat(interpreter); err != nil {
		t.Skip("no .venv here (make deps makes it)")
	}
	l := mounttest.Mount(t, mounttest.Options{Tables: twoTables(nil), Timeout: 3 * time.Minute})
	mustExec(t, l, interpreter, "-c", script(l, parquetDir, `
import polars
frame = polars.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"]})
for i in range(2):
    frame.write_parquet("f.parquet")
    frame.lazy().sink_parquet("g.parquet")
    for f in "f.parquet", "g.parquet":
        assert polars.read_parquet(store + f).equals(frame)
        assert polars.read_parquet(f).equals(frame)
`))
	wantClean(t, l, parquetDir, "f.parquet", "g.parquet")
}

func TestTouchedFileIsListedAtOnce(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for i := range 20 {
		name := "f" + strings.Repeat("x", i)
		if got := l.MustSh(`cd ` + csvDir + `; touch ` + name + `; ls`); !strings.Contains(got, name+"\n") {
			t.Errorf("ls after touch: %q, want %s", got, name)
		}
		wantStore(t, l, csvDir+"/"+name, "")
	}
	l.MustSh(`cd ` + csvDir + `; touch -d 2001-02-03T04:05:06Z old; test "$(stat -c %Y old)" = 981173106; : >g; test -e g; ls | grep -x g`)
}

// truncate, ftruncate and fallocate alone are something to publish.
func TestSizeChangesAlonePublish(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "0123456789"})
	mustPython(t, l, script(l, csvDir, `
os.truncate("old", 4)
eq(published("old"), b"0123")
eq(open("old", "rb").read(), b"0123")
os.truncate("old", 6)
eq(published("old"), b"0123\0\0")
os.truncate("old", 0)
eq(published("old"), b"")
eq(os.stat("old").st_size, 0)
eq(err(os.truncate, "none", 3), "ENOENT")
fd = os.open("cut", os.O_WRONLY | os.O_CREAT, 0o644); os.ftruncate(fd, 5); eq(os.fstat(fd).st_size, 5); os.close(fd)
eq(published("cut"), b"\0" * 5)
fd = os.open("alloc", os.O_WRONLY | os.O_CREAT, 0o644); os.posix_fallocate(fd, 0, 7); eq(os.fstat(fd).st_size, 7); os.close(fd)
eq(published("alloc"), b"\0" * 7)
fd = os.open("cut", os.O_WRONLY); os.ftruncate(fd, 2); os.close(fd)
eq(published("cut"), b"\0\0")
fd = os.open("alloc", os.O_WRONLY); os.posix_fallocate(fd, 0, 9); os.close(fd)
eq(published("alloc"), b"\0" * 9)
`))
	l.MustSh(`cd ` + csvDir + `; truncate -s 3 new; test "$(stat -c %s new)" = 3; ls | grep -x new; truncate -s 1 new; test "$(wc -c <new)" = 1`)
	wantClean(t, l, csvDir, "alloc", "cut", "new", "old")
}
