package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What the staging directory's own disk can do to writers.

// mountOnDisk mounts a lake whose state directory is a tmpfs with these options.
func mountOnDisk(t *testing.T, disk string, o mounttest.Options) *mounttest.Lake {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a tmpfs")
	}
	l := mounttest.New(t, o)
	if err := unix.Mount("tmpfs", l.State, "tmpfs", 0, "mode=0700,"+disk); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(l.State, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l.Start()
	t.Cleanup(func() {
		if !t.Failed() {
			l.Unmount()
		}
	})
	return l
}

// readOnly makes the staging directory read-only for all that opens a file there by
// name, which EBUSY keeps a disk from being while files on it are open for writing.
// The function that it returns takes it back.
func readOnly(t *testing.T, l *mounttest.Lake) (back func()) {
	t.Helper()
	dir := l.Staged()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no bind mount: %v", err)
	}
	mounted := true
	back = func() {
		if mounted {
			mounted = false
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		}
	}
	t.Cleanup(back)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestStagingBecomesReadOnly: EIO, once in the log for each call that fails; what was
// published is as it was, what was being written is kept, and all is well again when
// the disk is.
func TestStagingBecomesReadOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	l := mountTwo(t, map[string]string{"old": "old\n"})
	back := func() {}
	err := writeErr(l, csvDir+"/open", creat, "written before\n", func() { back = readOnly(t, l) })
	wantErrno(t, "close of a file that was open", err, syscall.EIO)
	wantLogged(t, l, csvDir+"/open")
	wantErrno(t, "open of a new file", openErr(l, csvDir+"/new", creat), syscall.EIO)
	wantLogged(t, l, csvDir+"/new")
	wantErrno(t, "overwrite", writeErr(l, csvDir+"/old", trunc, "changed", nil), syscall.EIO)
	wantContent(t, l, csvDir+"/old", "old\n")
	wantNames(t, l, csvDir, "old")
	wantStore(t, l, csvDir+"/old", "old\n")
	wantKeptBytes(t, l, csvDir, "open", "written before\n")
	back()
	for _, name := range []string{"new", "old", "open"} {
		write(t, l, csvDir+"/"+name, "again\n")
		wantStore(t, l, csvDir+"/"+name, "again\n")
	}
	wantKeptBytes(t, l, csvDir, "open", "written before\n")
	l.Remount()
	wantKeptBytes(t, l, csvDir, "open", "written before\n")
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d: %s", r.Code, r.Err)
	}
	wantClean(t, l, csvDir, "new", "old", "open")
}

// noInodes writes files until their disk has no inodes: names[i] is closed with
// outcomes[i], "" is success.
const noInodes = `
import errno, os
fds = []
while True:
    name = "f%d" % len(fds)
    try:
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except OSError as e:
        print(name, "open", errno.errorcode[e.errno]); break
    fds.append(fd)
    os.write(fd, b"bytes of %s\n" % name.encode())
for i, fd in enumerate(fds):
    try:
        os.close(fd); print("f%d" % i, "close", "ok")
    except OSError as e:
        print("f%d" % i, "close", errno.errorcode[e.errno])
`

// TestNoInodesLeft: ENOSPC for whom there is none, and each file that was told to be
// written is; the others are kept, or the room is free again.
func TestNoInodesLeft(t *testing.T) {
	t.Parallel()
	l := mountOnDisk(t, "size=64m,nr_inodes=60", mounttest.Options{Tables: twoTables(map[string]string{"old": "old\n"})})
	out := mustPython(t, l, "import os\nos.chdir("+fmt.Sprintf("%q", l.Path(csvDir))+")\n"+noInodes)
	var published, opened []string
	failed := map[string]bool{}
	for _, line := range lines(strings.TrimSpace(out)) {
		var name, call, outcome string
		if _, err := fmt.Sscan(line, &name, &call, &outcome); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if outcome == "ok" {
			published = append(published, name)
			continue
		}
		if outcome != "ENOSPC" {
			t.Errorf("%s of %s gives %s, want ENOSPC", call, name, outcome)
		}
		if failed[name] = true; call == "close" {
			opened = append(opened, name)
		}
		wantLogged(t, l, csvDir+"/"+name+`"`)
	}
	if len(failed) == 0 || len(published)+len(opened) == 0 {
		t.Fatalf("it ran out of nothing: %s", out)
	}
	for _, name := range published {
		wantStore(t, l, csvDir+"/"+name, "bytes of "+name+"\n")
	}
	for _, name := range opened {
		wantAbsent(t, l, csvDir+"/"+name)
	}
	wantContent(t, l, csvDir+"/old", "old\n")
	kept := keptNames(t, l)
	slices.Sort(opened)
	if !slices.Equal(kept, opened) {
		t.Errorf("kept are %q, want those whose close failed: %q", kept, opened)
	}
	if r := l.Run("recover", "--publish=all", l.Root); r.Code != 0 {
		t.Errorf("recover --publish, with inodes for it: exit code %d: %s", r.Code, r.Err)
	}
	for _, name := range opened {
		wantStore(t, l, csvDir+"/"+name, "bytes of "+name+"\n")
	}
	write(t, l, csvDir+"/after", "after\n")
	wantStore(t, l, csvDir+"/after", "after\n")
	wantSettled(t, l)
}

// TestSpoolIsRemovedBySomebody: a cleaner that empties the staging directory under a
// mount. What was lost is an error, not a short file.
func TestSpoolIsRemovedBySomebody(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"})
	for name, flags := range map[string]int{"new": creat, "old": trunc} {
		err := writeErr(l, csvDir+"/"+name, flags, "bytes\n", func() {
			for _, id := range spools(t, l) {
				if err := os.RemoveAll(filepath.Join(l.Staged(), id)); err != nil {
					t.Error(err)
				}
			}
		})
		wantErrno(t, "close of "+name, err, syscall.EIO)
		wantLogged(t, l, csvDir+"/"+name)
	}
	wantAbsent(t, l, csvDir+"/new")
	wantContent(t, l, csvDir+"/old", "old\n")
	wantStore(t, l, csvDir+"/old", "old\n")
	l.Remount()
	wantClean(t, l, csvDir, "old")
	write(t, l, csvDir+"/new", "again\n")
	wantStore(t, l, csvDir+"/new", "again\n")
}
