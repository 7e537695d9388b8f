package fs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What is open for writing when its name, or that of what it is a copy of, changes or
// goes. On a bucket the older bytes are then elsewhere, or nowhere.

// movedSizes are of one request, and of parts.
var movedSizes = []int{1 << 20, 12 << 20}

// eachMovedSize runs a test with a file a of each size.
func eachMovedSize(t *testing.T, test func(t *testing.T, l *mounttest.Lake, old string)) {
	t.Helper()
	for _, size := range movedSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			old := numbered('m', size)
			test(t, partsTwo(t, map[string]string{"a": old, "d/a": old, "over": "what is replaced"}), old)
		})
	}
}

// inCSV runs a Python script in csvDir; a's size is in size.
func inCSV(t *testing.T, l *mounttest.Lake, script string) {
	t.Helper()
	mustPython(t, l, "import os\nos.chdir('"+csvDir+`')
size = os.stat('a').st_size
`+script)
}

// TestS3RenameUnderAWriter: the writer of the old name writes to the new one.
func TestS3RenameUnderAWriter(t *testing.T) {
	t.Parallel()
	patched := func(old string) string { return old[:len(old)-200] + "PATCH" + old[len(old)-195:] }
	const patch = "os.pwrite(fd, b'PATCH', size - 200)\n"
	for name, c := range map[string]struct {
		script string
		want   func(old string) string
	}{
		"renamed, patched": {"fd = os.open('a', os.O_RDWR)\nos.rename('a', 'b')\n" + patch, patched},
		"patched, renamed": {"fd = os.open('a', os.O_RDWR)\n" + patch + "os.rename('a', 'b')\n", patched},
		"patched, renamed, read": {"fd = os.open('a', os.O_RDWR)\n" + patch + `os.rename('a', 'b')
got = os.pread(fd, size, 0)
assert len(got) == size and got[size-200:size-195] == b'PATCH', len(got)
`, patched},
		"renamed twice": {"fd = os.open('a', os.O_RDWR)\nos.rename('a', 'c')\nos.rename('c', 'b')\n" + patch, patched},
		"renamed over":  {"fd = os.open('a', os.O_RDWR)\nos.rename('a', 'over')\nos.rename('over', 'b')\n" + patch, patched},
		"appended, renamed": {
			"fd = os.open('a', os.O_RDWR | os.O_APPEND)\nos.write(fd, b'more')\nos.rename('a', 'b')\nos.write(fd, b'+')\n" +
				"assert len(os.pread(fd, size, 0)) == size\n",
			func(old string) string { return old + "more+" },
		},
		"renamed, appended": {
			"fd = os.open('a', os.O_WRONLY | os.O_APPEND)\nos.rename('a', 'b')\nos.write(fd, b'more')\n",
			func(old string) string { return old + "more" },
		},
		"cut, renamed, synced": {
			"fd = os.open('a', os.O_RDWR)\nos.ftruncate(fd, size//2)\nos.rename('a', 'b')\nos.fsync(fd)\n",
			func(old string) string { return old[:len(old)/2] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMovedSize(t, func(t *testing.T, l *mounttest.Lake, old string) {
				t.Helper()
				inCSV(t, l, c.script+"os.close(fd)\n")
				wantStore(t, l, csvDir+"/b", c.want(old))
				wantAbsent(t, l, csvDir+"/a")
				wantSettled(t, l)
				left := []string{"b", "d/a"}
				if !strings.Contains(c.script, "'over'") {
					left = append(left, "over")
				}
				wantNoUpload(t, l, left...)
			})
		})
	}
}

// TestS3DirectoryRenameUnderAWriter: as of a file.
func TestS3DirectoryRenameUnderAWriter(t *testing.T) {
	t.Parallel()
	eachMovedSize(t, func(t *testing.T, l *mounttest.Lake, old string) {
		t.Helper()
		inCSV(t, l, `fd = os.open('d/a', os.O_RDWR)
os.pwrite(fd, b'PATCH', 0)
os.rename('d', 'e')
os.pwrite(fd, b'SECOND', size - 200)
assert len(os.pread(fd, size, 0)) == size
os.close(fd)
`)
		wantStore(t, l, csvDir+"/e/a", "PATCH"+old[5:len(old)-200]+"SECOND"+old[len(old)-194:])
		wantSettled(t, l)
		wantNoUpload(t, l, "a", "e/a", "over")
	})
}

// TestS3SourceOfACopyRenamed midway: by copy_file_range, and what follows it.
func TestS3SourceOfACopyRenamed(t *testing.T) {
	t.Parallel()
	eachMovedSize(t, func(t *testing.T, l *mounttest.Lake, old string) {
		t.Helper()
		inCSV(t, l, `s = os.open('a', os.O_RDONLY)
d = os.open('copy', os.O_RDWR | os.O_CREAT)
n = os.copy_file_range(s, d, size // 2)
assert n == size // 2, n
os.rename('a', 'b')
got = os.pread(d, n, 0)
assert len(got) == n, len(got)
s = os.open('b', os.O_RDONLY)
os.lseek(s, n, os.SEEK_SET)
while os.copy_file_range(s, d, size): pass
os.pwrite(d, b'PATCH', 0)
os.close(d)
`)
		wantStore(t, l, csvDir+"/copy", "PATCH"+old[5:])
		wantStore(t, l, csvDir+"/b", old)
		wantSettled(t, l)
		wantNoUpload(t, l, "b", "copy", "d/a", "over")
	})
}

// TestS3SourceOfACopyRemoved: what was copied of it is published.
func TestS3SourceOfACopyRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]string{"unlink": "os.unlink('a')\n", "rename over": "os.rename('over', 'a')\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMovedSize(t, func(t *testing.T, l *mounttest.Lake, old string) {
				t.Helper()
				inCSV(t, l, `s = os.open('a', os.O_RDONLY)
d = os.open('copy', os.O_RDWR | os.O_CREAT)
while os.copy_file_range(s, d, size): pass
`+remove+"os.close(d)\n")
				wantStore(t, l, csvDir+"/copy", old)
				wantSettled(t, l)
			})
		})
	}
}

// TestS3UnlinkUnderAWriter: descriptors go on, and nothing is published.
func TestS3UnlinkUnderAWriter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, remove string }{
		"unlink":          {"", "os.unlink('a')\n"},
		"patched, unlink": {"os.pwrite(fd, b'HEAD', 0)\n", "os.unlink('a')\n"},
		"rename over":     {"", "os.rename('over', 'a')\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMovedSize(t, func(t *testing.T, l *mounttest.Lake, _ string) {
				t.Helper()
				inCSV(t, l, `fd = os.open('a', os.O_RDWR)
old = open('d/a', 'rb').read()
`+c.before+c.remove+`got = os.pread(fd, size, 0)
assert got[4:] == old[4:], len(got)
os.pwrite(fd, b'PATCH', size - 200)
got = os.pread(fd, size, 0)
assert got[4:] == old[4:size-200] + b'PATCH' + old[size-195:], len(got)
os.close(fd)
`)
				wantSettled(t, l)
				left := []string{"d/a", "over"}
				if strings.Contains(c.remove, "over") {
					left[1] = "a"
					wantStore(t, l, csvDir+"/a", "what is replaced")
				}
				wantNoUpload(t, l, left...)
			})
		})
	}
}
