package fs_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// notHere are the tests of go-fuse's posixtest that ask for what the mount does
// not do, each with the reason.
var notHere = map[string]string{
	"FcntlFlockLocksFile": "takes flock and fcntl locks for one lock, which they are not on Linux; go-fuse leaves it out, too",
	"Link":                "EPERM: an object has one name",
	"LinkUnlinkRename":    "EPERM: an object has one name",
	"OpenSymlinkRace":     "EPERM: no symbolic links",
	"SetattrSymlink":      "EPERM: no symbolic links",
	"SymlinkReadlink":     "EPERM: no symbolic links",
	"Tmpfile":             "EOPNOTSUPP: a file without a name is never published",
	"XAttr":               "ENOTSUP: extended attributes are read only",
	"XAttrLarge":          "ENOTSUP: extended attributes are read only",
}

// posixDir is the variable that names the directory to test: the tests run in a
// process of their own, which ends with the lake's deadline.
const posixDir = "FS_TEST_POSIX_DIR"

// TestPOSIX runs go-fuse's posixtest on a mount.
func TestPOSIX(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", nil)}, Flags: []string{"--write=delete"}})
	r := l.Exec("env", posixDir+"="+l.Path("db/t"), os.Args[0], "-test.run=^TestPOSIXHere$", "-test.v")
	passed := strings.Count(r.Out, "--- PASS: TestPOSIXHere/")
	if r.Code != 0 || passed < len(posixtest.All)-len(notHere)-1 { // RenameOpenDir may skip itself
		t.Errorf("code %d, %d of %d passed\n%s%s", r.Code, passed, len(posixtest.All), r.Out, r.Err)
	}
	wantNames(t, l, "db/t")
	l.Eventually("every descriptor is released", 0, func() bool {
		return !slices.ContainsFunc(status(t, l, "").Staged, func(w stagedFile) bool { return w.Open })
	})
	for _, w := range status(t, l, "").Staged { // writers that lost a race for one name: their bytes are kept
		if w.State != "failed" || !strings.HasSuffix(w.Path, "/ParallelFileOpen/file") {
			t.Errorf("left staged: %+v", w)
		}
	}
}

func TestPOSIXHere(t *testing.T) {
	dir := os.Getenv(posixDir)
	if dir == "" {
		t.Skip("the part of TestPOSIX that runs in a process of its own")
	}
	for _, name := range slices.Sorted(maps.Keys(posixtest.All)) {
		t.Run(name, func(t *testing.T) {
			if reason, left := notHere[name]; left {
				t.Skip(reason)
			}
			sub := filepath.Join(dir, name)
			defer func() { _ = os.RemoveAll(sub) }() // what is left shows in the directory
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			posixtest.All[name](t, sub)
		})
	}
}
