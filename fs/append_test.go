package fs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// second mounts the warehouse of l once more, with a state directory of its own.
func second(t *testing.T, l *mounttest.Lake, flags ...string) *mounttest.Lake {
	t.Helper()
	return l.Second(flags...)
}

// appended asserts that the log has exactly lines 1 to n of each writer, each
// writer's in order.
func appended(t *testing.T, log string, n int, writers ...string) {
	t.Helper()
	next := make(map[string]int)
	for _, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		var who string
		var i int
		if _, err := fmt.Sscanf(line, "%s %d", &who, &i); err != nil || !slices.Contains(writers, who) {
			t.Errorf("line %q", line)
			continue
		}
		if next[who]++; i != next[who] {
			t.Errorf("line %q, want number %d", line, next[who])
		}
	}
	for _, w := range writers {
		if next[w] != n {
			t.Errorf("%s has %d lines, want %d", w, next[w], n)
		}
	}
}

const appendLines = `for i in $(seq 200); do echo "$w $i" >>log; done`

func TestCase69TwoAppendersInOneMount(t *testing.T) {
	t.Parallel()
	for _, old := range []map[string]string{nil, {"log": ""}} {
		l := mountTwo(t, old)
		l.MustSh(`cd ` + csvDir + `; for w in a b; do (` + appendLines + `) & done; wait`)
		wantSettled(t, l)
		log, _ := inStore(t, l, csvDir+"/log")
		appended(t, log, 200, "a", "b")
		wantClean(t, l, csvDir, "log")
	}
}

func TestCase69AppendersInTwoMounts(t *testing.T) {
	t.Parallel()
	for _, old := range []map[string]string{nil, {"log": ""}} {
		l := mountTwo(t, old)
		m := second(t, l)
		l.MustSh(`(cd ` + l.Path(csvDir) + `; w=a; ` + appendLines + `) & (cd ` + m.Path(csvDir) + `; w=b; ` + appendLines + `) & wait`)
		for _, side := range []*mounttest.Lake{l, m} {
			wantSettled(t, side)
		}
		log, _ := inStore(t, l, csvDir+"/log")
		appended(t, log, 200, "a", "b")
	}
}

// Appenders that keep their descriptor open: each write is whole, and the other
// mount's lines are not lost.
func TestLongLivedAppendersInTwoMounts(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"log": ""})
	m := second(t, l)
	body := `
import time
fd = os.open("log", os.O_WRONLY | os.O_APPEND)
for i in range(1, 41):
    os.write(fd, b"%s %d\n" % (sys.argv[1].encode(), i))
    if i % 5 == 0: os.fsync(fd)
os.close(fd)
`
	out := l.MustSh(`/usr/bin/python3 -c "$(cat ` + keep(t, l, script(l, csvDir, body)) + `)" a & /usr/bin/python3 -c "$(cat ` + keep(t, l, script(l, csvDir, body)) + `)" c &
		/usr/bin/python3 -c "$(cat ` + keep(t, m, script(m, csvDir, body)) + `)" b & wait`)
	if out != "" {
		t.Error(out)
	}
	log, _ := inStore(t, l, csvDir+"/log")
	appended(t, log, 40, "a", "b", "c")
}

// An appender whose position the kernel thinks to know: after a rebase the file
// is longer than it was told.
func TestAppenderReadsBackWhatItHasAfterTheOtherMountsLines(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"log": "0\n"})
	m := second(t, l)
	mustPython(t, l, script(l, csvDir, `
fd = os.open("log", os.O_RDWR | os.O_APPEND)
os.write(fd, b"a\n")
with open("`+m.Path(csvDir)+`/log", "ab") as f: f.write(b"b\n")
eq(published("log"), b"0\nb\n")
os.fsync(fd)
eq(published("log"), b"0\nb\na\n")
eq(os.fstat(fd).st_size, 6)
eq(os.pread(fd, 99, 0), b"0\nb\na\n")
os.write(fd, b"c\n")
os.close(fd)
eq(published("log"), b"0\nb\na\nc\n")
eq(open("log", "rb").read(), b"0\nb\na\nc\n")
`))
}

func TestCase25TwoMountsRewriteOneFileAndCreateOneName(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old content\n"})
	m := second(t, l)
	mustPython(t, l, script(l, csvDir, `
here, there = os.getcwd() + "/", "`+m.Path(csvDir)+`/"
a = os.open(here + "old", os.O_WRONLY | os.O_TRUNC)
b = os.open(there + "old", os.O_RDWR)
os.write(a, b"winner\n"); os.pwrite(b, b"LOSER", 0)
os.close(a)
eq(err(os.close, b), "ESTALE")
eq(published("old"), b"winner\n")
eq(open(here + "old", "rb").read(), b"winner\n")

a = os.open(here + "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
b = os.open(there + "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
os.write(a, b"winner\n"); os.write(b, b"loser\n")
os.close(a)
eq(err(os.close, b), "EEXIST")
eq(published("new"), b"winner\n")
eq(err(os.open, there + "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "EEXIST")
`))
	for name, want := range map[string]string{"old": "LOSERontent\n", "new": "loser\n"} {
		l.Eventually("the other mount sees the winner", 20*time.Second, func() bool {
			got, err := m.ReadFile(csvDir + "/" + name)
			return err == nil && got == "winner\n"
		})
		i := slices.IndexFunc(staged(t, m, csvDir), func(n string) bool { return strings.HasPrefix(n, name+"~") })
		if i < 0 {
			t.Errorf("the loser's %s is not kept: %q", name, staged(t, m, csvDir))
			continue
		}
		if got, err := m.ReadFile(csvDir + "/.lakefs/staged/" + staged(t, m, csvDir)[i]); err != nil || got != want {
			t.Errorf("the loser's %s: %q, %v; want %q", name, got, err, want)
		}
	}
	if names := staged(t, l, csvDir); len(names) > 0 {
		t.Errorf("the winner keeps %q staged", names)
	}
}

// Case 24: what this mount, another one and the store see of a file that is
// being written.
func TestCase24WhoSeesAnUnpublishedFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	flags := []string{"--negative-ttl=0s"}
	if l.OnS3() { // a bucket does not tell that a listing is out of date
		flags = noWait
	}
	m := second(t, l, flags...)
	mustPython(t, l, script(l, csvDir, `
import glob
there = "`+m.Path(csvDir)+`/"
fd = os.open("n", os.O_WRONLY | os.O_CREAT, 0o640); os.write(fd, b"a\n")
eq(stored_names(), [])
eq(os.listdir("."), [])
eq(glob.glob("*"), [])
eq(os.listdir(there), [])
eq(err(os.stat, there + "n"), "ENOENT")
eq(os.listdir(there + ".lakefs/staged"), [])
eq(other("s = os.stat('n'); print(s.st_size, oct(s.st_mode & 0o777), s.st_uid == os.getuid())"), "2 0o640 True")
eq(other("print(open('n').read().strip())"), "a")
eq(err(os.open, "n", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "EEXIST")
shown = os.listdir(".lakefs/staged")
eq(len(shown), 1)
assert shown[0].startswith("n~"), shown
eq(os.stat(".lakefs/staged/" + shown[0]).st_size, 2)
os.write(fd, b"b\n")
eq(os.stat(".lakefs/staged/" + shown[0]).st_size, 4)
eq(open(".lakefs/staged/" + shown[0], "rb").read(), b"a\nb\n")
eq(err(os.open, ".lakefs/staged/" + shown[0], os.O_WRONLY), "EPERM")
eq(err(os.unlink, ".lakefs/staged/" + shown[0]), "EBUSY")
os.close(fd)
eq(stored_names(), ["n"])
eq(os.listdir(there), ["n"])
eq(open(there + "n", "rb").read(), b"a\nb\n")
eq(os.listdir(".lakefs/staged"), [])
`))
}
