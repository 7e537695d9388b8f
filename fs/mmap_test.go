package fs_test

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const mapper = `
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define must(call) do { if ((call) < 0) { fprintf(stderr, "%s: %s\n", #call, strerror(errno)); exit(1); } } while (0)

/* ask prints a word and waits for a line: the test looks meanwhile. */
static void pause_at(const char *word) {
	printf("%s\n", word); fflush(stdout);
	char line[80];
	if (!fgets(line, sizeof line, stdin)) exit(1);
}

int main(int argc, char **argv) {
	size_t size = atol(argv[2]);
	int fd;
	must(fd = open(argv[1], O_RDWR | O_CREAT, 0644));
	must(ftruncate(fd, size));
	char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) { perror("mmap"); return 1; }
	for (size_t i = 0; i < size; i += 1000) map[i] = 'a';
	char c;
	must(pread(fd, &c, 1, 5000));
	if (c != 'a') { fprintf(stderr, "read %d back\n", c); return 1; }
	if (argc > 3) {
		must(pwrite(fd, "B", 1, 6000)); /* both ways of writing see one another */
		if (map[6000] != 'B') { fprintf(stderr, "map has %d\n", map[6000]); return 1; }
		map[6000] = 'a';
		must(msync(map, size, MS_SYNC));
		must(fsync(fd));
		pause_at("synced");
	}
	must(close(fd));
	pause_at("closed");
	for (size_t i = 500; i < size; i += 1000) map[i] = 'b';
	must(munmap(map, size));
	return 0;
}
`

// The pages that are dirty at the close are published by it; what is written to
// the mapping afterwards is the next version.
func TestSharedWritableMapping(t *testing.T) {
	t.Parallel()
	program := compileC(t, mapper)
	l := mountTwo(t, map[string]string{"old": "0123456789"})
	mustPython(t, l, script(l, csvDir, `
import time
size = 1000000
def content(second, start=b""):
    c = bytearray(size); c[:len(start)] = start
    c[0::1000] = b"a" * (size // 1000)
    if second: c[500::1000] = b"b" * (size // 1000)
    return bytes(c)
def step(p, word):
    eq(p.stdout.readline().strip(), word)
def go(p): print(file=p.stdin, flush=True)
for name, start, more in ("new", b"", []), ("synced", b"", ["sync"]), ("old", b"0123456789", []):
    before = published(name)
    p = subprocess.Popen(["`+program+`", name, str(size)] + more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if more:
        step(p, "synced")
        assert published(name) == content(False, start), "not what was synced"
        go(p)
    step(p, "closed")
    assert published(name) == content(False, start), "not what was mapped at the close"
    assert open(name, "rb").read() == published(name)
    go(p)
    eq(p.wait(), 0)
    deadline = time.monotonic() + 20
    while published(name) != content(True, start):
        assert time.monotonic() < deadline, "what was written to the mapping last is not there"
        time.sleep(.01)
    # The store had it before the mount has heard of that.
    while (seen := open(name, "rb").read()) != content(True, start):
        assert seen == content(False, start), "some of either version"
        assert time.monotonic() < deadline, "the mount does not show what was written last"
        time.sleep(.01)
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "new", "old", "synced")
}

// readOn is what a reader of the mapping m does before its file is replaced: of a
// version that a bucket no longer has, pages stay that were read.
func readOn(l *mounttest.Lake) string {
	if l.OnS3() {
		return "m[:]"
	}
	return ""
}

// Python's mmap holds a duplicate of the descriptor: whichever is closed last
// publishes.
func TestPythonMapping(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "0123456789"})
	mustPython(t, l, script(l, csvDir, `
import mmap
for name, order in ("a", 0), ("b", 1):
    f = open(name, "w+b"); f.truncate(10000)
    m = mmap.mmap(f.fileno(), 10000)
    m[0:5] = b"hello"; m[9995:] = b"world"
    first, last = (m, f) if order else (f, m)
    first.close()
    eq(published(name), None)
    last.close()
    eq(published(name), b"hello" + b"\0" * 9990 + b"world")
with open("old", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    eq(m[:], b"0123456789")
    m[3:5] = b"xx"
eq(published("old"), b"012xx56789")
# A private and a read-only mapping publish nothing, and keep their version.
before = version("old")
f = open("old", "rb"); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
g = open("old", "r+b"); p = mmap.mmap(g.fileno(), 0, flags=mmap.MAP_PRIVATE); p[0:1] = b"p"
p.close(); g.close()
eq(version("old"), before)
`+readOn(l)+`
open("old", "wb").write(b"new content")
eq(m[:], b"012xx56789")
m.close(); f.close()
eq(open("old", "rb").read(), b"new content")
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "a", "b", "old")
}
