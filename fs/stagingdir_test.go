package fs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// tmpfs mounts a file system of that size for the length of the test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// mountOn mounts a lake whose state is on a file system of its own.
func mountOn(t *testing.T, disk string) *mounttest.Lake {
	t.Helper()
	l := mounttest.New(t, mounttest.Options{Tables: twoTables(nil)})
	l.State = filepath.Join(disk, "state")
	if err := os.Mkdir(l.State, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Start()
	return l
}

// TestStagingDirectoryThatCannotBeUsed: the message names it and the remedy,
// nothing is left mounted, and the lake is as it was.
func TestStagingDirectoryThatCannotBeUsed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, l *mounttest.Lake)
		want    []string
	}{
		{"full", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			disk := tmpfs(t, "1m")
			l.State = filepath.Join(disk, "state")
			if err := os.MkdirAll(l.Staged(), 0o700); err != nil {
				t.Fatal(err)
			}
			fill(t, filepath.Join(disk, "filler"))
		}, []string{"is full", "make room", "lakefs-mount recover", "--state-dir"}},
		{"read-only", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			disk := tmpfs(t, "1m")
			l.State = filepath.Join(disk, "state")
			if err := os.MkdirAll(l.Staged(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}, []string{"read-only", "--state-dir"}},
		{"open to others", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			if err := errors.Join(os.Mkdir(l.Staged(), 0o700), os.Chmod(l.Staged(), 0o777)); err != nil { //nolint:gosec // that is the test
				t.Fatal(err)
			}
		}, []string{"may be written by others", "chmod 700"}},
		{"in a directory where anybody may write", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			if err := os.Chmod(l.State, 0o777|os.ModeSticky); err != nil { //nolint:gosec // that is the test
				t.Fatal(err)
			}
		}, []string{"anybody may write", "--state-dir"}},
		{"another's", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			if err := errors.Join(os.Mkdir(l.Staged(), 0o700), os.Chown(l.Staged(), 12345, 12345)); err != nil {
				t.Fatal(err)
			}
		}, []string{"belongs to uid 12345", "--state-dir"}},
		{"a file", func(t *testing.T, l *mounttest.Lake) { t.Helper(); writeFile(t, l.Staged(), "") }, []string{"is not a directory", "--state-dir"}},
		{"a lock that is a symbolic link", func(t *testing.T, l *mounttest.Lake) {
			t.Helper()
			if err := errors.Join(os.Mkdir(l.Staged(), 0o700), os.Symlink("/etc/passwd", filepath.Join(l.Staged(), "lock"))); err != nil {
				t.Fatal(err)
			}
		}, []string{"symbolic link", "remove it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := mounttest.New(t, mounttest.Options{Tables: twoTables(nil)})
			tt.prepare(t, l)
			wantRefused(t, l, append(tt.want, l.Staged())...)
		})
	}
}

// fill takes all room of a file system.
func fill(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling gives %v", err)
	}
}

// wantRefused asserts that a mount fails with a message that has each of want,
// and leaves nothing mounted.
func wantRefused(t *testing.T, l *mounttest.Lake, want ...string) {
	t.Helper()
	err := l.TryStart()
	if err == nil {
		t.Fatal("the mount succeeds")
	}
	for _, part := range append(want, "exit status 1") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the mount fails with %q, which lacks %q", err, part)
		}
	}
	if l.Mounted() {
		t.Error("something is left mounted")
	}
}

// TestStagingDirectoryInUseNamesTheOwner and leaves its mount alone.
func TestStagingDirectoryInUseNamesTheOwner(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + csvDir + `; exec 3>a.csv; echo 1 >&3; ` + l.Binary() + ` mount --state-dir=` + l.State + ` ` + l.Source + ` ` + t.TempDir() + ` 2>` + l.State + `/err && exit 1
		grep -q "process ` + fmt.Sprint(l.Pid()) + `:" ` + l.State + `/err || { cat ` + l.State + `/err; exit 2; }
		grep -q "unmount that one or choose another --state-dir" ` + l.State + `/err || exit 3
		[ "$(cat a.csv)" = 1 ] || exit 4; exec 3>&-`)
	wantClean(t, l, csvDir, "a.csv")
}

// TestFullStagingDirectoryIsClearedByRecover: a disk that what was kept fills
// keeps the mount from starting, not recover from saving and dropping it.
func TestFullStagingDirectoryIsClearedByRecover(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "3m")
	l := mountOn(t, disk)
	tear(t, l, "f.csv", "2M")
	l.Unmount()
	fill(t, filepath.Join(disk, "filler"))
	wantRefused(t, l, "is full")
	dir := t.TempDir()
	for _, flags := range [][]string{{"--save", dir}, {"--abort=all"}} {
		args := append(append([]string{"recover", "--state-dir=" + l.State}, flags...), l.Source, l.Root)
		if r := l.Run(args...); r.Code != 0 {
			t.Errorf("recover %q: exit code %d: %s", flags, r.Code, r.Err)
		}
	}
	if got := readTree(t, dir)["f.csv"]; len(got) != 2<<20 {
		t.Errorf("saved are %d bytes", len(got))
	}
	l.Start()
	wantClean(t, l, csvDir)
}
