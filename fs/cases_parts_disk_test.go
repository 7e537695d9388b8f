package fs_test

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Full disks, names and broken pipes, where files go to the bucket in parts.

// maxTries bounds how often a file is written until a part of it was up.
const maxTries = 30

// smallStagingOfParts is partsTwo with a state directory of so many MiB.
func smallStagingOfParts(t *testing.T, size string, files map[string]string) *mounttest.Lake {
	t.Helper()
	l := smallStagingOf(t, size, mounttest.Options{Faulty: true, Tables: twoTables(files), Flags: []string{ofParts, "--write=delete"}})
	warm(t, l)
	return l
}

// TestCase23FullStagingWhilePartsAreUpOnS3: ENOSPC and absent, the space free
// again, here and in the store; the next file is fine.
func TestCase23FullStagingWhilePartsAreUpOnS3(t *testing.T) {
	t.Parallel()
	l := smallStagingOfParts(t, "20m", nil)
	dir := t.TempDir()
	l.MustSh(`head -c 50000000 /dev/zero >` + dir + `/large; head -c 11000000 /dev/urandom >` + dir + `/small`)
	// On a busy machine the disk may be full before the first part is on its way.
	for i := 0; i < 2 || i < maxTries && l.Proxy.Count("UploadPart") == 0; i++ {
		r := l.Sh(`cp ` + dir + `/large ` + csvDir + `/n`)
		if r.Code == 0 || !hasText(r.Err, "No space left on device") {
			t.Errorf("cp of 50 MB: code %d, %q; want ENOSPC", r.Code, r.Err)
		}
		wantAbsent(t, l, csvDir+"/n")
		l.Eventually("the space is free", seenWithin, func() bool { return spaceUsed(t, l) < 2 })
		wantNoUpload(t, l)
		wantSettled(t, l)
	}
	if l.Proxy.Count("UploadPart") == 0 {
		t.Errorf("no part was up: this test shows nothing\n%s", asked(l))
	}
	l.MustSh(`cp ` + dir + `/small ` + csvDir + `/n && cmp ` + dir + `/small ` + csvDir + `/n && cmp ` + dir + `/small ` + l.Window(csvDir+"/n"))
	wantByParts(t, l, "n")
	wantClean(t, l, csvDir, "n")
	wantNoUpload(t, l, "n")
}

// TestCase73NothingIsPublishedOfPartsThatFittedOnS3: once there is room again too.
func TestCase73NothingIsPublishedOfPartsThatFittedOnS3(t *testing.T) {
	t.Parallel()
	l := smallStagingOfParts(t, "28m", map[string]string{"old": "old\n"})
	for i := 0; i < maxTries && l.Proxy.Count("UploadPart") == 0; i++ {
		r := l.Sh(`L=` + largeIn(t, "") + `; cd ` + csvDir + `; head -c 13M /dev/zero >` + l.State + `/filler
			cp $L new; a=$?; cp $L old; b=$?; rm ` + l.State + `/filler; test $a != 0 && test $b != 0 && cat old`)
		if r.Code != 0 || r.Out != "old\n" {
			t.Errorf("code %d, old has %q\n%s", r.Code, r.Out, r.Err)
		}
	}
	if l.Proxy.Count("UploadPart") == 0 {
		t.Errorf("no part was up: this test shows nothing\n%s", asked(l))
	}
	wantAbsent(t, l, csvDir+"/new")
	wantStore(t, l, csvDir+"/old", "old\n")
	wantSettled(t, l)
	wantClean(t, l, csvDir, "old")
	wantNoUpload(t, l, "old")
	l.Remount()
	wantNames(t, l, csvDir, "old")
	l.MustSh(`L=` + largeIn(t, "") + `; cd ` + csvDir + `; cp $L new; cp $L old`)
	for _, name := range []string{"new", "old"} {
		wantStore(t, l, csvDir+"/"+name, fourParts())
		wantByParts(t, l, name)
	}
	wantClean(t, l, csvDir, "new", "old")
	wantNoUpload(t, l, "new", "old")
}

// TestCase70BrokenPipeOfALargeFileOnS3: what a program had written when its pipe
// broke is published, whole.
func TestCase70BrokenPipeOfALargeFileOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	l.MustSh(`cd ` + csvDir + `; (cat ` + largeIn(t, "") + ` >&2; seq 1000000) 2>err.log | head -1; seq 1000000 2>empty.log | head -1`)
	l.Eventually("the last close is seen", seenWithin, func() bool { return listed(t, l, csvDir+"/err.log") })
	wantStore(t, l, csvDir+"/err.log", fourParts())
	wantStore(t, l, csvDir+"/empty.log", "")
	wantByParts(t, l, "err.log")
	wantClean(t, l, csvDir, "empty.log", "err.log")
	wantNoUpload(t, l, "empty.log", "err.log")
}

// TestCase71LargeFilesAreInTheStoreWhenCpReturnsOnS3: of ordinary names.
func TestCase71LargeFilesAreInTheStoreWhenCpReturnsOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	file := largeIn(t, fourParts()[:2*partSize+1])
	names := []string{"sedan.csv", "zinc.csv", "tmpdata.csv", "tmp_orders.parquet", ".env"}
	for _, name := range names {
		l.MustSh(`cp ` + file + ` ` + csvDir + `/` + name + ` && cmp ` + file + ` ` + l.Window(csvDir+"/"+name))
		wantByParts(t, l, name)
	}
	if out := l.MustSh(`ls -A ` + csvDir); out != strings.Join([]string{".env", "sedan.csv", "tmp_orders.parquet", "tmpdata.csv", "zinc.csv"}, "\n")+"\n" {
		t.Errorf("listed are %q", out)
	}
	wantClean(t, l, csvDir, names...)
	wantNoUpload(t, l, names...)
}
