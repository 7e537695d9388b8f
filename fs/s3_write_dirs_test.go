package fs_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Directories of a bucket: nothing stands for them, and what others have below
// them is never taken for nothing.

// putKey puts an object under a key that may be one that no path reaches.
func putKey(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	server, bucket := l.Bucket()
	server.Put(t, bucket, l.Key(csvDir)+"/"+name, []byte("theirs\n"))
}

// TestS3RemovalOfDirectoriesSparesOthers: what the mount does not show is in the
// directory all the same; of a staging tree rmdir answers 0, and the directory stays.
func TestS3RemovalOfDirectoriesSparesOthers(t *testing.T) {
	t.Parallel()
	for what, key := range map[string]string{
		"another's file": "d/theirs.csv", "a hidden file": "d/.hidden", "a file of a job": "d/_temporary/0/x",
		"a deep one": "d/e/f/g.csv", "a key with an empty part": "d//x", "a long name": "d/" + strings.Repeat("n", 255),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			// MiniStack keeps the keys that versitygw would make paths of.
			l := flatLake(t, what == "a key with an empty part", map[string]string{"d/mine.csv": "mine\n"})
			l.MustSh(`ls -lR ` + csvDir)
			putKey(t, l, key) // after the mount has listed d
			wantErrno(t, "rmdir", rmdir(l, csvDir+"/d"), syscall.ENOTEMPTY)
			l.MustSh(`rm ` + csvDir + `/d/mine.csv`)
			want := syscall.ENOTEMPTY
			if what == "a file of a job" {
				want = 0
			}
			wantErrno(t, "rmdir of what looks empty", rmdir(l, csvDir+"/d"), want)
			wantBucket(t, l, key)
			if st := stat(t, l, csvDir+"/d"); st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
				t.Errorf("d has mode %o, want a directory", st.Mode)
			}
		})
	}
}

// flatLake is faultyTwo with TTLs that a test does not outlive, on MiniStack if
// keys are to be kept as they are.
func flatLake(t *testing.T, odd bool, files map[string]string) *mounttest.Lake {
	t.Helper()
	o := mounttest.Options{S3: true, Tables: twoTables(files), Flags: []string{"--write=delete", "--metadata-ttl=5m", "--negative-ttl=5m"}}
	if odd {
		o.Server = s3test.Mini(t)
	}
	return mounttest.Mount(t, o)
}

// TestS3RecursiveRemovalSparesWhatItIsNotShown: rm -r takes what is listed, and
// fails where something is left.
func TestS3RecursiveRemovalSparesWhatItIsNotShown(t *testing.T) {
	t.Parallel()
	l := flatLake(t, true, map[string]string{"d/a": "a", "d/e/b": "b", "d/e/f/c": "c", "keep": "k"})
	putKey(t, l, "d/e//unreachable")
	putKey(t, l, "d/e/.hidden")
	putKey(t, l, "d/_temporary/0/task/part")
	r := l.Sh(`rm -r ` + csvDir + `/d`)
	if r.Code == 0 || !strings.Contains(r.Err, "Directory not empty") {
		t.Errorf("rm -r: exit code %d, %q; want ENOTEMPTY", r.Code, r.Err)
	}
	server, bucket := l.Bucket()
	keys := server.Keys(t, bucket, l.Key(csvDir)+"/d/")
	if !slices.Contains(keys, l.Key(csvDir)+"/d/e//unreachable") {
		t.Errorf("what no path reaches is gone: %q", keys)
	}
	for _, name := range []string{"d/a", "d/e/b", "d/e/f/c"} {
		if _, there := inStore(t, l, csvDir+"/"+name); there {
			t.Errorf("%s is left", name)
		}
	}
	wantStore(t, l, csvDir+"/keep", "k")
}

// TestS3RecursiveRemoval of a directory that has nothing else: all of it goes.
func TestS3RecursiveRemoval(t *testing.T) {
	t.Parallel()
	l := flatLake(t, false, map[string]string{"d/a": "a", "d/e/b": "b", "d/e/f/c": "c", "keep": "k"})
	l.MustSh(`cd ` + csvDir + `; mkdir -p d/empty/empty; echo new >d/e/new; rm -r d; test ! -e d; ls`)
	wantBucket(t, l, "keep")
	wantNames(t, l, csvDir, "keep")
	l.Remount()
	wantNames(t, l, csvDir, "keep")
}

// TestS3DirectoriesOfTheMountAlone: made, renamed, removed and kept over a
// remount, without an object.
func TestS3DirectoriesOfTheMountAlone(t *testing.T) {
	t.Parallel()
	l := flatLake(t, false, nil)
	l.MustSh(`cd ` + csvDir + `; mkdir -p a/b/c d e; rmdir e; mv a/b a/moved; mv d g`)
	for range 2 {
		wantBucket(t, l)
		wantNames(t, l, csvDir, "a", "g")
		wantNames(t, l, csvDir+"/a", "moved")
		wantNames(t, l, csvDir+"/a/moved", "c")
		wantErrno(t, "rmdir, not empty", rmdir(l, csvDir+"/a/moved"), syscall.ENOTEMPTY)
		wantErrno(t, "mkdir of what is there", mkdir(l, csvDir+"/g"), syscall.EEXIST)
		wantErrno(t, "stat of an old name", statErr(l, csvDir+"/d"), syscall.ENOENT)
		l.Remount()
	}
	// One that something was published in is a directory of the bucket.
	write(t, l, csvDir+"/a/moved/c/f.csv", "f\n")
	wantBucket(t, l, "a/moved/c/f.csv")
	m := l.Second()
	wantNames(t, m, csvDir, "a")
	wantContent(t, m, csvDir+"/a/moved/c/f.csv", "f\n")
	// Emptied, it stays as on any disk, until it is removed.
	l.MustSh(`cd ` + csvDir + `; rm a/moved/c/f.csv; test -d a/moved/c; rmdir a/moved/c a/moved a g`)
	wantNames(t, l, csvDir)
	wantBucket(t, l)
	l.Remount()
	wantNames(t, l, csvDir)
}

// TestS3RenamedDirectories: of what is published, empty, open and hidden in it.
func TestS3RenamedDirectories(t *testing.T) {
	t.Parallel()
	l := flatLake(t, false, map[string]string{"d/a": "a", "d/e/b": "b", "full/x": "x"})
	l.MustSh(`cd ` + csvDir + `; mkdir d/empty; echo new >d/new; mkdir gone; mv -T d gone; test ! -e d; cat gone/a gone/e/b gone/new; test -d gone/empty`)
	wantBucket(t, l, "full/x", "gone/a", "gone/e/b", "gone/new")
	if err := rename(l, csvDir+"/gone", csvDir+"/full"); err == nil {
		t.Error("a directory replaced one that is not empty")
	} else {
		wantErrno(t, "rename onto a full directory", err, syscall.ENOTEMPTY)
	}
	wantBucket(t, l, "full/x", "gone/a", "gone/e/b", "gone/new")
	l.Remount()
	wantNames(t, l, csvDir, "full", "gone")
	wantNames(t, l, csvDir+"/gone", "a", "e", "empty", "new")
}

// TestS3RenamedDirectoryTakesAllAlong: what another put there unseen, what is
// hidden, and what no path reaches.
func TestS3RenamedDirectoryTakesAllAlong(t *testing.T) {
	t.Parallel()
	l := flatLake(t, true, map[string]string{"d/a": "a", "dd/beside": "b"})
	l.MustSh(`ls -lR ` + csvDir)
	keys := []string{"/late", "/.hidden", "/_temporary/0/x", "//unreachable", "/e/f"}
	for _, key := range keys {
		putKey(t, l, "d"+key)
	}
	putKey(t, l, "d-other/x")
	// A marker of a directory that has bytes is nothing that can be written here.
	putKey(t, l, "d/e/")
	server, bucket := l.Bucket()
	before := server.Keys(t, bucket, "")
	wantErrno(t, "rename of a marker with bytes", rename(l, csvDir+"/d", csvDir+"/new"), syscall.EINVAL)
	if after := server.Keys(t, bucket, ""); !slices.Equal(after, before) {
		t.Errorf("the bucket has %q, had %q", after, before)
	}
	server.Put(t, bucket, l.Key(csvDir)+"/d/e/", nil)
	server.Put(t, bucket, l.Key(csvDir)+"/d/empty/", nil)
	wantErrno(t, "rename", rename(l, csvDir+"/d", csvDir+"/new"), 0)
	want := []string{"dd/beside", "d-other/x", "new/a"}
	for _, key := range keys {
		want = append(want, "new"+key)
	}
	wantBucket(t, l, want...)
	wantErrno(t, "stat of the old name", statErr(l, csvDir+"/d"), syscall.ENOENT)
	wantContent(t, l, csvDir+"/new/late", "theirs\n")
	wantContent(t, l, csvDir+"/new/a", "a")
	wantNames(t, l, csvDir+"/new/empty")
}

// TestS3FileOfAnotherWhereTheMountHasADirectory: nothing hangs, and nothing of
// theirs is replaced.
func TestS3FileOfAnotherWhereTheMountHasADirectory(t *testing.T) {
	t.Parallel()
	for _, odd := range []bool{false, true} { // one server refuses a key below a file, one takes it
		l := flatLake(t, odd, nil)
		l.MustSh(`mkdir ` + csvDir + `/d`)
		putKey(t, l, "d")
		r := l.Sh(`printf mine | dd of=` + csvDir + `/d/f conv=fsync status=none`)
		if got, _ := inStore(t, l, csvDir+"/d"); got != "theirs\n" {
			t.Errorf("the other's file became %q", got)
		}
		got, there := inStore(t, l, csvDir+"/d/f")
		if there != (r.Code == 0) || there && got != "mine" {
			t.Errorf("exit code %d, and the store has %q, there %v: %s", r.Code, got, there, r.Err)
		}
		l.Remount("--write=delete")
	}
}
