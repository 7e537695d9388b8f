package fs_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// smallStaging mounts a lake whose state directory is a tmpfs of this many MiB.
func smallStaging(t *testing.T, size string) *mounttest.Lake {
	t.Helper()
	return smallStagingOf(t, size, mounttest.Options{Tables: twoTables(nil)})
}

func smallStagingOf(t *testing.T, size string, o mounttest.Options) *mounttest.Lake {
	t.Helper()
	return mountOnDisk(t, "size="+size, o)
}

// spaceUsed is what lies in the staging directory's file system, in MiB.
func spaceUsed(t *testing.T, l *mounttest.Lake) int64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(l.State, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize >> 20
}

func TestCase23FullStagingPublishesNothingAndIsFreeAgain(t *testing.T) {
	t.Parallel()
	l := smallStaging(t, "20m")
	dir := t.TempDir()
	l.MustSh(`head -c 50000000 /dev/zero >` + dir + `/large; head -c 5000000 /dev/urandom >` + dir + `/small`)
	for range 2 {
		r := l.Sh(`cp ` + dir + `/large ` + csvDir + `/n`)
		if r.Code == 0 || !hasText(r.Err, "No space left on device") {
			t.Errorf("cp of 50 MB: code %d, %q; want ENOSPC", r.Code, r.Err)
		}
		wantAbsent(t, l, csvDir+"/n")
		if used := spaceUsed(t, l); used > 1 {
			t.Errorf("%d MiB are used when cp has failed, want none", used)
		}
		wantSettled(t, l) // the notes of an upload go when it is aborted
		wantClean(t, l, csvDir)
	}
	l.MustSh(`cp ` + dir + `/small ` + csvDir + `/n && cmp ` + dir + `/small ` + csvDir + `/n && cmp ` + dir + `/small ` + l.Window(csvDir+"/n"))
	wantClean(t, l, csvDir, "n")
}

func TestCase73NothingIsPublishedOfAFileThatFittedInPart(t *testing.T) {
	t.Parallel()
	l := smallStaging(t, "8m")
	dir := t.TempDir()
	l.MustSh(`head -c 4000000 /dev/urandom >` + dir + `/four`)
	l.PutStored(csvDir+"/old", "old\n")
	r := l.Sh(`cd ` + csvDir + `; dd if=/dev/zero of=` + l.State + `/filler bs=1M count=6 status=none
		cp ` + dir + `/four new; a=$?; cp ` + dir + `/four old; b=$?
		rm ` + l.State + `/filler; test $a != 0 && test $b != 0 && cat old`)
	if r.Code != 0 || r.Out != "old\n" {
		t.Errorf("code %d, old has %q\n%s", r.Code, r.Out, r.Err)
	}
	wantAbsent(t, l, csvDir+"/new")
	wantClean(t, l, csvDir, "old")
	l.MustSh(`cd ` + csvDir + `; cp ` + dir + `/four new; cp ` + dir + `/four old; cmp new ` + dir + `/four; cmp old new`)
	wantClean(t, l, csvDir, "new", "old")
}

// A program that does not look at what write says gets the error from close,
// from fsync before, and nothing that it wrote later counts.
func TestFailedWritePoisonsTheFile(t *testing.T) {
	t.Parallel()
	l := smallStaging(t, "6m")
	l.PutStored(csvDir+"/old", "0123456789")
	mustPython(t, l, script(l, csvDir, `
block = b"x" * 1000000
def fill(fd):
    for i in range(20):
        e = err(os.write, fd, block)
        if e: return e
for name, flags in ("new", os.O_CREAT | os.O_EXCL), ("old", 0), ("old", os.O_TRUNC), ("old", os.O_APPEND):
    fd = os.open(name, os.O_RDWR | flags, 0o644)
    eq(fill(fd), "ENOSPC")
    eq(err(os.pwrite, fd, b"small", 0), "ENOSPC")
    eq(err(os.ftruncate, fd, 0), "ENOSPC")
    eq(err(os.fsync, fd), "ENOSPC")
    eq(err(os.close, fd), "ENOSPC")
    eq(published("new"), None)
    eq(published("old"), b"0123456789")
    eq(open("old", "rb").read(), b"0123456789")
    eq(err(os.stat, "new"), "ENOENT")
fd = os.open("alloc", os.O_WRONLY | os.O_CREAT, 0o644)
eq(err(os.posix_fallocate, fd, 0, 60000000), "ENOSPC")
eq(err(os.close, fd), "ENOSPC")
eq(published("alloc"), None)
d = os.open("dup", os.O_WRONLY | os.O_CREAT, 0o644); e = os.dup(d)
eq(fill(d), "ENOSPC")
eq(err(os.close, d), None)
eq(err(os.close, e), "ENOSPC")
`))
	wantSettled(t, l)
	l.Eventually("the space is free again", 20*time.Second, func() bool { return spaceUsed(t, l) < 2 })
	wantClean(t, l, csvDir, "old")
}
