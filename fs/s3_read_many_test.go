package fs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Many open files at once.

// manyOpen opens files until there are so many descriptors, and reads a piece of
// each; what it prints is counted while they are open. Another process than the
// test's: whatever that starts would hold them all for a moment.
const manyOpen = `
import os, resource, sys
n, files, pid = map(int, sys.argv[1:4])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
def piece(i):
    return b"".join(b"%d of %d\n" % (k, i) for k in range(2500))[:16000]
pieces = [piece(i) for i in range(files)]
def stat(name):
    return next(line for line in open(".lakefs/stats") if line.startswith(name + " ")).split()[1]
def all_right(at):
    for i, fd in enumerate(fds):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        off = at * 997 % 12000
        if os.pread(fd, 4000, off) != pieces[i % files][off:off + 4000]:
            sys.exit("descriptor %d reads other bytes" % i)
fds = [os.open("db/t/f%03d" % (i % files), os.O_RDONLY) for i in range(n)]
all_right(0)
print(stat("lakefs_mount_open_handles"), len(os.listdir("/proc/%d/fd" % pid)))
all_right(1)
for fd in fds:
    os.close(fd)
`

func TestS3TenThousandDescriptors(t *testing.T) {
	t.Parallel()
	const descriptors, objects = 10_000, 250
	files := make(map[string]string)
	for i := range objects {
		var b strings.Builder
		for k := range 2500 {
			fmt.Fprintf(&b, "%d of %d\n", k, i)
		}
		files[fmt.Sprintf("f%03d", i)] = b.String()[:16000]
	}
	l := behindFaults(t, files, "--memory-limit=32MiB", "--metadata-ttl=5m")
	out := strings.Fields(mustExec(t, l, python(t), "-c", manyOpen, strconv.Itoa(descriptors), strconv.Itoa(objects), strconv.Itoa(l.Pid())))
	open, _ := strconv.Atoi(out[0])
	own, _ := strconv.Atoi(out[1])
	if open < descriptors {
		t.Errorf("%d handles were open, want %d", open, descriptors)
	}
	if own > 400 { // connections that are kept, and what the daemon needs itself
		t.Errorf("the daemon had %d descriptors of its own, want few", own)
	}
	if n := l.Proxy.Count("GetObject"); n > 2*objects {
		t.Errorf("%d GETs of %d objects", n, objects)
	}
	wantClosed(t, l)
	wantPeak(t, l, 32+160)
}

// largeOpen opens files of a size, and reads some pieces of each, one after another
// and in turns, which must be those of the store.
const largeOpen = `
import os, sys
files, size, pieces, rounds, window = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
fds = [os.open("db/t/f%03d" % i, os.O_RDONLY) for i in range(files)]
want = [os.open("%s/f%03d" % (window, i), os.O_RDONLY) for i in range(files)]
for r in range(rounds):
    for i in range(files):
        at = size // 2 + r * pieces
        got = os.pread(fds[i], pieces, at)
        if got != os.pread(want[i], pieces, at) or len(got) != pieces:
            sys.exit("file %d has other bytes at %d" % (i, at))
`

// The memory of 200 open files of 1 GiB is bounded by the limit, and what a process
// takes beside.
func TestS3TwoHundredOpenFilesOfOneGiB(t *testing.T) {
	t.Parallel()
	const files, limit, beside = 200, 64, 128 // MiB
	l := mounttest.New(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", nil)}, Timeout: 2 * time.Minute})
	for i := range files {
		name := fmt.Sprintf("db/t/f%03d", i)
		putSparse(t, l, name, gib, map[int64]string{0: name, gib / 2: numbered('a'+byte(i%26), 400_000) + name, gib - 100: name})
	}
	l.Start("--memory-limit="+strconv.Itoa(limit)+"MiB", "--metadata-ttl=5m")
	window := strings.TrimSuffix(l.Window("db/t/f000"), "/f000")
	mustExec(t, l, python(t), "-c", largeOpen, strconv.Itoa(files), strconv.Itoa(gib), strconv.Itoa(256<<10), "2", window)
	if got, most := statistic(t, l, cacheMemory), int64(limit<<20); got > most {
		t.Errorf("%d bytes of memory are in use, want %d at most", got, most)
	}
	wantPeak(t, l, limit+beside)
	wantClosed(t, l)
}
