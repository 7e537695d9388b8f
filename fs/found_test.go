package fs_test

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Pages of a mapping go to their own place, also when the descriptor appends.
func TestMappedPagesOfAnAppendingDescriptor(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for _, flush := range []string{"", "m.flush()"} {
		mustPython(t, l, `
import os, mmap
p = "`+csvDir+`/mapped"
open(p, "wb").write(b"a" * 8192)
fd = os.open(p, os.O_RDWR | os.O_APPEND)
m = mmap.mmap(fd, 8192)
m[0:4] = b"XXXX"
`+flush+`
m.close()
os.write(fd, b"appended")
os.close(fd)
`)
		wantStore(t, l, csvDir+"/mapped", "XXXX"+strings.Repeat("a", 8188)+"appended")
	}
}

// A new file that was renamed over a published one, and goes on to another
// name, does not leave the old one behind.
func TestRenameAwayDoesNotBringTheReplacedFileBack(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	out := mustPython(t, l, `
import os
os.chdir("`+csvDir+`")
open("b", "w").write("published")
fd = os.open("a", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"new")
os.rename("a", "b")
print(open("b").read())
os.rename("b", "a")
print(os.path.exists("b"))
os.close(fd)
print(sorted(os.listdir(".")), open("a").read())
`)
	if want := "new\nFalse\n['a'] new\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	wantClean(t, l, csvDir, "a")
}

// A name that the folder holds, and that is no file to serve, is taken: that is
// said by open, for a shell does not tell what close answers.
func TestOpenOfAHiddenName(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "links and pipes")
	l := mountTwo(t, nil)
	l.MustSh(`ln -s /etc/passwd "` + l.Data(csvDir) + `/link"; mkfifo "` + l.Data(csvDir) + `/fifo"`)
	for _, name := range []string{"link", "fifo"} {
		r := l.Sh(`cd ` + csvDir + ` && echo x >` + name)
		if r.Code == 0 || !strings.Contains(r.Err, "File exists") {
			t.Errorf("echo >%s: code %d, %q; want EEXIST from open", name, r.Code, r.Err)
		}
	}
	wantSettled(t, l)
}

func TestTooLargeIsEFBIG(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	out := mustPython(t, l, `
import os, errno
fd = os.open("`+csvDir+`/f", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"small")
try:
    os.truncate("`+csvDir+`/f", 1 << 60)
except OSError as e:
    print(errno.errorcode[e.errno])
os.close(fd)
`)
	if out != "EFBIG\n" {
		t.Errorf("truncate to 1 EiB: %q, want EFBIG", out)
	}
	wantStore(t, l, csvDir+"/f", "small")
}

// Opening a name for writing never fails because it is replaced by rename just
// then: the open came before the rename, or after.
func TestOpenForWritingWhileTheNameIsReplaced(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "0"})
	out := mustPython(t, l, `
import os, threading, time
os.chdir("`+csvDir+`")
stop = time.monotonic() + 2
def replace():
    while time.monotonic() < stop:
        with open("new", "w") as f: f.write("replaced")
        os.rename("new", "f")
t = threading.Thread(target=replace); t.start()
opens, failed = 0, []
while time.monotonic() < stop:
    try:
        fd = os.open("f", os.O_WRONLY | os.O_TRUNC)
    except OSError as e:
        failed.append(e.errno)
        continue
    opens += 1
    os.write(fd, b"written")
    try: os.close(fd)
    except OSError as e: assert e.errno == 116, e
t.join()
print(opens > 0, failed)
`)
	if out != "True []\n" {
		t.Errorf("opens for writing: %q, want some, and none that failed", out)
	}
}

func TestSeekForDataPastTheEndIsENXIO(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	out := mustPython(t, l, `
import os, errno
fd = os.open("`+csvDir+`/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"some bytes")
print(os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE))
try: os.lseek(fd, 100, os.SEEK_DATA)
except OSError as e: print(errno.errorcode[e.errno])
os.close(fd)
`)
	if out != "0 10\nENXIO\n" {
		t.Errorf("seeks for data and holes: %q, want 0, 10 and ENXIO", out)
	}
}
