package mounttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tableEntry is a line of /proc/self/mountinfo.
type tableEntry struct {
	Device string // minor number: the FUSE connection's
	Path   string
	Type   string
	Source string
}

// mountAt is the topmost mount at path.
func mountAt(path string) (tableEntry, bool) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return tableEntry{}, false
	}
	var found tableEntry
	for line := range strings.Lines(string(raw)) {
		left, right, _ := strings.Cut(line, " - ")
		f, r := strings.Fields(left), strings.Fields(right)
		if len(f) < 5 || len(r) < 2 || unescape(f[4]) != path {
			continue
		}
		_, minor, _ := strings.Cut(f[2], ":")
		found = tableEntry{Device: minor, Path: path, Type: r[0], Source: unescape(r[1])}
	}
	return found, found.Path != ""
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Mounted tells whether something is mounted at the lake's mount point.
func (l *Lake) Mounted() bool {
	_, found := mountAt(l.Root)
	return found
}

// abort ends the FUSE connection, and with it every request that waits for it.
func (l *Lake) abort() {
	if m, found := mountAt(l.Root); found && strings.HasPrefix(m.Type, "fuse") {
		// Without /sys/fs/fuse the daemon's death does the same.
		_ = os.WriteFile(filepath.Join("/sys/fs/fuse/connections", m.Device, "abort"), []byte("1"), 0)
	}
}

// detach takes whatever is mounted at the mount point out of the tree.
func (l *Lake) detach() { Detach(l.Root) }

// Detach takes whatever is mounted at path out of the tree, whoever uses it.
func Detach(path string) {
	for range 8 {
		if _, found := mountAt(path); !found {
			return
		}
		if unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = exec.CommandContext(ctx, "fusermount3", "-u", "-z", path).Run() // the mount table tells
		cancel()
	}
}

// requireFUSE skips the test where uid (0: the test's own) can not mount, or
// fails it when MOUNTTEST_REQUIRED is set and the uid is the test's own.
func requireFUSE(tb testing.TB, uid uint32) {
	tb.Helper()
	err := fuseUsable(uid)
	switch {
	case err == nil:
	case os.Getenv("MOUNTTEST_REQUIRED") != "" && uid == 0:
		tb.Fatalf("no mount is possible here: %v", err)
	default:
		tb.Skipf("no mount is possible here: %v", err)
	}
}

func fuseUsable(uid uint32) error {
	if uid == 0 {
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil || os.Geteuid() == 0 {
			return err
		}
	} else if err := othersMayMount(); err != nil {
		return err
	}
	_, err := exec.LookPath("fusermount3")
	return err
}

func othersMayMount() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can run the daemon as another user")
	}
	info, err := os.Stat("/dev/fuse")
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o006 != 0o006 {
		return fmt.Errorf("/dev/fuse has mode %v: closed to ordinary users", info.Mode().Perm())
	}
	return nil
}

// countMount adds the test to the file that MOUNTTEST_COUNT names.
func countMount(tb testing.TB) {
	tb.Helper()
	appendLine(tb, os.Getenv("MOUNTTEST_COUNT"), filepath.Base(os.Args[0])+" "+tb.Name())
}

// appendLine adds a line to a file that several processes write; "" is none.
func appendLine(tb testing.TB, name, line string) {
	tb.Helper()
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(tb, err)
	_, err = f.WriteString(line + "\n")
	must(tb, errors.Join(err, f.Close()))
}
