package fs_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// noWait are TTLs of zero: what others change is seen at once.
var noWait = []string{"--metadata-ttl=0", "--negative-ttl=0"}

// shortTTL are TTLs that a test can wait for.
var shortTTL = []string{"--metadata-ttl=200ms", "--negative-ttl=100ms"}

// text is a CSV table of no partitions, whose files may be anything.
func text(name string, files map[string]string) mounttest.Table {
	return mounttest.Table{Database: "db", Name: name, Format: "csv", Files: files}
}

// mountText mounts a lake with the unpartitioned table db.t of files.
func mountText(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", files)}, Flags: flags})
}

// wantErrno asserts the errno of a system call; 0 is success.
func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	var got syscall.Errno
	if err != nil && !errors.As(err, &got) {
		t.Errorf("%s: got %v, which is no errno; want %v", what, err, name(want))
		return
	}
	if got != want {
		t.Errorf("%s: got %s, want %s", what, name(got), name(want))
	}
}

// name is an errno's constant.
func name(e syscall.Errno) string {
	if e == 0 {
		return "success"
	}
	return unix.ErrnoName(e)
}

// stat is what lstat(2) says of a name in the mount.
func stat(t *testing.T, l *mounttest.Lake, path string) syscall.Stat_t {
	t.Helper()
	var st syscall.Stat_t
	if err := l.Do("stat "+path, func() error { return syscall.Lstat(l.Path(path), &st) }); err != nil {
		t.Fatalf("stat %s: %v", path, err)
	}
	return st
}

// statErr is the outcome of lstat(2).
func statErr(l *mounttest.Lake, path string) error {
	return l.Do("stat "+path, func() error {
		var st syscall.Stat_t
		return syscall.Lstat(l.Path(path), &st)
	})
}

// mkdir, rmdir, unlink and rename are the system calls, on names in the mount.
func mkdir(l *mounttest.Lake, path string) error {
	return l.Do("mkdir "+path, func() error { return syscall.Mkdir(l.Path(path), 0o755) })
}

func rmdir(l *mounttest.Lake, path string) error {
	return l.Do("rmdir "+path, func() error { return syscall.Rmdir(l.Path(path)) })
}

func unlink(l *mounttest.Lake, path string) error {
	return l.Do("unlink "+path, func() error { return syscall.Unlink(l.Path(path)) })
}

func rename(l *mounttest.Lake, from, to string) error {
	return l.Do("rename "+from, func() error { return syscall.Rename(l.Path(from), l.Path(to)) })
}

// openErr is the outcome of open(2), and of the close after it.
func openErr(l *mounttest.Lake, path string, flags int) error {
	return l.Do("open "+path, func() error {
		return mounttest.NoFork(func() error {
			fd, err := syscall.Open(l.Path(path), flags|syscall.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			return syscall.Close(fd)
		})
	})
}

// wantNames asserts the names of a directory of the mount.
func wantNames(t *testing.T, l *mounttest.Lake, dir string, want ...string) {
	t.Helper()
	got, err := l.Names(dir)
	if err != nil {
		t.Errorf("list %q: %v", dir, err)
		return
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("list %q: got %q, want %q", dir, got, want)
	}
}

// wantContent asserts what reading a name of the mount gives.
func wantContent(t *testing.T, l *mounttest.Lake, path, want string) {
	t.Helper()
	got, err := l.ReadFile(path)
	if err != nil || got != want {
		t.Errorf("%s: got %s, %v; want %s", path, brief(got), err, brief(want))
	}
}

// write writes a file of the mount, which must succeed.
func write(t *testing.T, l *mounttest.Lake, path, content string) {
	t.Helper()
	if err := l.WriteFile(path, content); err != nil {
		t.Fatalf("write %s: %v", path, err)
	}
}

// putOutside writes a file outside the lake by rename, as another program would.
func putOutside(t *testing.T, path, content string) {
	t.Helper()
	temp := fmt.Sprintf("%s.%d", path, time.Now().UnixNano())
	if err := errors.Join(os.WriteFile(temp, []byte(content), 0o644), os.Rename(temp, path)); err != nil {
		t.Fatal(err)
	}
}

// stored is a file of the store, which must be there.
func stored(t *testing.T, l *mounttest.Lake, name string) string {
	t.Helper()
	content, err := l.Stored(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// outside is a file outside the lake, which must be there.
func outside(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// xattr reads an extended attribute of a name in the mount.
func xattr(l *mounttest.Lake, path, name string) (string, error) {
	buf := make([]byte, 4096)
	n := 0
	err := l.Do("getxattr "+path, func() (err error) {
		n, err = unix.Lgetxattr(l.Path(path), name, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// lines are the non-empty lines of s, sorted.
func lines(s string) []string {
	out := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
	slices.Sort(out)
	return out
}
