package fs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func TestOverwriteIsSeenAtTheCloseAndByNewOpensAlone(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old content\n", "g": "0123456789", "h": "0123456789"})
	mustPython(t, l, script(l, csvDir, `
ino = os.stat("f").st_ino
r = os.open("f", os.O_RDONLY)
fd = os.open("f", os.O_RDWR | os.O_TRUNC)
eq(os.fstat(fd).st_size, 0)
eq(os.stat("f").st_size, 12)
os.write(fd, b"new\n")
eq(os.fstat(fd).st_size, 4)
eq(os.fstat(fd).st_ino, ino)
eq(os.pread(fd, 99, 0), b"new\n")
eq(os.stat("f").st_size, 12)
eq(other("print(open('f').read(), end='')"), "old content")
eq(published("f"), b"old content\n")
os.close(fd)
eq(published("f"), b"new\n")
eq(os.read(r, 99), b"old content\n")
eq(os.fstat(r).st_size, 12)
eq(open("f", "rb").read(), b"new\n")
eq(os.stat("f").st_size, 4)
eq(os.stat("f").st_ino, ino)
os.close(r)

fd = os.open("g", os.O_RDWR)
eq(os.fstat(fd).st_size, 10)
os.pwrite(fd, b"abc", 4)
eq(os.read(fd, 99), b"0123abc789")
eq(open("g", "rb").read(), b"0123456789")
os.close(fd)
eq(open("g", "rb").read(), b"0123abc789")
eq(published("g"), b"0123abc789")

fd = os.open("h", os.O_WRONLY | os.O_CREAT, 0o644)
os.pwrite(fd, b"end", 12); os.ftruncate(fd, 14); os.pwrite(fd, b"AB", 0)
eq(os.fstat(fd).st_size, 14)
os.close(fd)
eq(published("h"), b"AB23456789\0\0en")
eq(err(os.open, "h", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "EEXIST")
`))
	wantClean(t, l, csvDir, "f", "g", "h")
}

func TestOpenForWritingThatChangesNothingPublishesNothing(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "content\n"})
	before := fileID(t, l, csvDir+"/f")
	mustPython(t, l, script(l, csvDir, `
for flags in os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT:
    fd = os.open("f", flags); os.close(fd)
    fd = os.open("f", flags); os.fsync(fd); os.fdatasync(fd); os.lseek(fd, 3, 0); os.close(fd)
fd = os.open("f", os.O_RDWR); os.read(fd, 3); d = os.dup(fd); os.close(fd); os.close(d)
fd = os.open("f", os.O_RDONLY); os.utime(fd, (5, 5)); os.close(fd)
eq(os.stat("f").st_mtime, 5)
os.utime("f", (6, 6)); os.chmod("f", 0o600)
eq(os.stat("f").st_mtime, 6)
eq(other("fd = os.open('f', os.O_WRONLY); os.fork() or os._exit(0); os.wait()"), "")
`))
	l.MustSh(`cd ` + csvDir + `; : >>f; exec 3<>f; exec 3>&-; touch -c f; touch f; cat f`)
	if after := fileID(t, l, csvDir+"/f"); after != before {
		t.Errorf("the published file is %s now, was %s: another version", after, before)
	}
	wantClean(t, l, csvDir, "f")
}

// fileID tells versions of a file in the store apart.
func fileID(t *testing.T, l *mounttest.Lake, name string) string {
	t.Helper()
	info, err := l.StoredInfo(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.ETag
}

// A writer that changes attributes of the version it writes sets those of what
// is published.
func TestAttributesOfAnOpenOverwriteArePublished(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old"})
	mustPython(t, l, script(l, csvDir, `
os.chmod("f", 0o640)
fd = os.open("f", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"new"); os.close(fd)
eq(oct(os.stat("f").st_mode), oct(stat.S_IFREG | 0o640))
fd = os.open("f", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"newer"); os.fchmod(fd, 0o600); os.utime(fd, (7, 7))
eq(os.fstat(fd).st_mtime, 7)
os.close(fd)
eq(oct(os.stat("f").st_mode), oct(stat.S_IFREG | 0o600))
eq(os.stat("f").st_mtime, 7)
`))
	l.Remount()
	l.MustSh(`test "$(stat -c '%a %Y' ` + csvDir + `/f)" = "600 7"`)
}

// hammer is one of several processes that write or read one name for a while.
// A version is a line "<writer> <number> <length>" and that many bytes.
const hammer = `
import time
def identity(): return version("f")
def whole(data):
    head, _, rest = data.partition(b"\n")
    who, number, length = head.split()
    assert rest == who * int(length), "mixed: %r" % data[:80]
deadline, done, stale = time.monotonic() + float(sys.argv[2]), 0, 0
who = sys.argv[1]
while time.monotonic() < deadline:
    if who.startswith("r"):
        fd = os.open("f", os.O_RDONLY)
        size, data = os.fstat(fd).st_size, b""
        while chunk := os.read(fd, 40000): data += chunk
        eq(len(data), size)
        whole(data)
        whole(published("f"))
        assert os.stat("f").st_size > 0
        os.close(fd)
    else:
        length = (done * 7919 + ord(who) * 31) % 150000
        before = identity()
        fd = os.open("f", os.O_WRONLY | os.O_TRUNC)
        eq(os.fstat(fd).st_size, 0)
        os.write(fd, b"%s %d %d\n" % (who.encode(), done, length))
        written = os.fstat(fd).st_size
        os.write(fd, who.encode() * length)
        eq(os.fstat(fd).st_size, written + length)
        refused = err(os.close, fd)
        if refused:
            eq(refused, "ESTALE")
            stale += 1
            assert identity() != before, "ESTALE, and nobody else published"
    done += 1
print(done, stale)
`

func TestThreeWritersAndThreeReadersOfOneName(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--metadata-ttl=0s", "--metadata-ttl=5s"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, map[string]string{"f": "x 0 3\nxxx"}, flag)
			out := l.MustSh(`cd ` + csvDir + `; for w in a b c r1 r2 r3; do
				/usr/bin/python3 -c "$(cat ` + keep(t, l, script(l, csvDir, hammer)) + `)" $w 4 >` + l.State + `/$w.out 2>` + l.State + `/$w.err || echo "$w failed: $(tail -3 ` + l.State + `/$w.err)" &
			done; wait; cat ` + l.State + `/*.err; for w in a b c r1 r2 r3; do read done stale <` + l.State + `/$w.out; test "$done" -gt 5 || echo "$w did $done only"; done`)
			if out != "" {
				t.Errorf("%s", out)
			}
			if n := strings.Count(l.Log(), "operation=publish"); n != len(staged(t, l, csvDir)) {
				t.Errorf("%d refused publishes logged, %d files kept", n, len(staged(t, l, csvDir)))
			}
			// The losers' bytes are kept, each whole.
			for _, n := range staged(t, l, csvDir) {
				if info, err := l.Lstat(csvDir + "/.lakefs/staged/" + n); err != nil || info.Size() == 0 {
					t.Errorf("kept %s: %v, %v", n, info, err)
				}
			}
		})
	}
}

// keep writes a script outside the mount and returns its path.
func keep(t *testing.T, l *mounttest.Lake, text string) string {
	t.Helper()
	path := filepath.Join(l.State, "script.py")
	writeFile(t, path, text)
	return path
}

func TestOneWriterAmongReadersIsNeverRefused(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "x 0 3\nxxx"})
	out := l.MustSh(`cd ` + csvDir + `; s="$(cat ` + keep(t, l, script(l, csvDir, hammer)) + `)"
		for w in a r1 r2; do /usr/bin/python3 -c "$s" $w 2 2>&1 | sed "s/^/$w /" & done; wait`)
	var done, stale int
	for _, line := range lines(out) {
		if n, _ := fmt.Sscanf(line, "a %d %d", &done, &stale); n == 2 && stale != 0 {
			t.Errorf("%d of %d closes were ESTALE, with one writer", stale, done)
		}
	}
	if done == 0 || len(lines(out)) != 3 {
		t.Errorf("output %q, want one line each", out)
	}
	wantClean(t, l, csvDir, "f")
}

func TestReaderKeepsItsVersionWhenTheFileIsReplacedOutside(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "a version that was not read outlasts its end")
	for _, flags := range [][]string{nil, {"--no-passthrough"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, nil, flags...)
			keepsItsVersion(t, l)
		})
	}
	t.Run("as an ordinary user", func(t *testing.T) {
		t.Parallel()
		keepsItsVersion(t, mounttest.Mount(t, mounttest.Options{Tables: twoTables(nil), User: 65534}))
	})
}

func keepsItsVersion(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	mustPython(t, l, script(l, csvDir, `
one, two = b"1" * 3000000, b"2" * 50000
put_stored("f", one)
fd = os.open("f", os.O_RDONLY)
eq(os.pread(fd, 1000, 0), one[:1000])
put_stored("f", two)
eq(os.fstat(fd).st_size, len(one))
eq(os.pread(fd, 1000, 2500000), one[:1000])
eq(open("f", "rb").read(), two)
eq(os.stat("f").st_size, len(two))
os.lseek(fd, 0, 0)
got = b""
while chunk := os.read(fd, 1 << 20): got += chunk
assert got == one, "the old reader read something else"
eq(os.fstat(fd).st_size, len(one))
g = os.open("f", os.O_RDONLY)
remove_stored("f")
eq(os.pread(g, 99999, 0), two)
eq(os.pread(fd, 10, 0), one[:10])
eq(err(os.open, "f", os.O_RDONLY), "ENOENT")
os.close(fd); os.close(g)
import time
deadline = time.monotonic() + 20
while "f" in os.listdir("."): assert time.monotonic() < deadline, "still listed"
`))
}
