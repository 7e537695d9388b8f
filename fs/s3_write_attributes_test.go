package fs_test

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestS3DescriptorsKeepTheirVersionsAttributes: mode and time that were set, after
// the name went or passed to another version.
func TestS3DescriptorsKeepTheirVersionsAttributes(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: twoTables(map[string]string{"unlinked": "1\n", "replaced": "2\n", "over": "3\n", "other": "4\n"}), Flags: []string{"--write=delete"},
	})
	out := mustPython(t, l, `
import os
os.chdir("`+csvDir+`")
fds = {}
for name in ["unlinked", "replaced", "over"]:
    os.chmod(name, 0o640)
    os.utime(name, (1000, 1000))
    fds[name] = os.open(name, os.O_RDONLY)
os.unlink("unlinked")
with open("replaced", "w") as f: f.write("new\n")
os.rename("other", "over")
for name, fd in fds.items():
    s = os.fstat(fd)
    print(name, oct(s.st_mode), int(s.st_mtime), s.st_size)
`)
	want := strings.Join([]string{"unlinked", "replaced", "over"}, " 0o100640 1000 2\n") + " 0o100640 1000 2\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}
