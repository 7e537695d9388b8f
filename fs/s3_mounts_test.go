package fs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Two mounts of one bucket: what one of them loses is told, and kept.

// twoMounts are two mounts of one bucket with db.text and db.parquet.
func twoMounts(t *testing.T, files map[string]string) (l, m *mounttest.Lake) {
	t.Helper()
	l = mounttest.Mount(t, mounttest.Options{S3: true, Tables: twoTables(files), Timeout: 2 * time.Minute})
	return l, l.Second()
}

// race opens a name on both mounts, writes to both, and closes first the one and
// then the other.
func race(t *testing.T, l, m *mounttest.Lake, name string, flags int) (first, second error) {
	t.Helper()
	err := l.Do("race for "+name, func() error {
		return mounttest.NoFork(func() error {
			a, err := syscall.Open(l.Path(name), flags|syscall.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			b, err := syscall.Open(m.Path(name), flags|syscall.O_CLOEXEC, 0o644)
			if err != nil {
				return errors.Join(err, syscall.Close(a))
			}
			_, errA := syscall.Write(a, []byte("winner\n"))
			_, errB := syscall.Write(b, []byte("the loser's\n"))
			first, second = syscall.Close(a), syscall.Close(b)
			return errors.Join(errA, errB)
		})
	})
	if err != nil {
		t.Fatalf("race for %s: %v", name, err)
	}
	return first, second
}

func TestS3TwoMountsForOneName(t *testing.T) {
	t.Parallel()
	l, m := twoMounts(t, map[string]string{"old": "old content\n"})
	for name, c := range map[string]struct {
		flags int
		want  syscall.Errno
	}{
		"new": {creat, syscall.EEXIST},
		"old": {trunc, syscall.ESTALE},
	} {
		path := csvDir + "/" + name
		first, second := race(t, l, m, path, c.flags)
		wantErrno(t, name+": close of the first", first, 0)
		wantErrno(t, name+": close of the second", second, c.want)
		wantStore(t, l, path, "winner\n")
		m.Eventually("the other mount shows the winner's "+name, seenWithin, func() bool {
			got, err := m.ReadFile(path)
			return err == nil && got == "winner\n"
		})
		kept := slices.DeleteFunc(staged(t, m, csvDir), func(n string) bool { return !strings.HasPrefix(n, name+"~") })
		if len(kept) != 1 {
			t.Errorf("of %s the loser keeps %q, want one file", name, kept)
			continue
		}
		wantContent(t, m, csvDir+"/.lakefs/staged/"+kept[0], "the loser's\n")
	}
	if names := staged(t, l, csvDir); len(names) > 0 {
		t.Errorf("the winner keeps %q staged", names)
	}
	m.Remount()
	if names := staged(t, m, csvDir); len(names) != 2 {
		t.Errorf("after a remount the loser keeps %q, want both", names)
	}
}

func TestS3TwoMountsAppend(t *testing.T) {
	t.Parallel()
	for what, old := range map[string]map[string]string{"a new file": nil, "a file that is there": {"log": ""}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l, m := twoMounts(t, old)
			l.MustSh(`(cd ` + l.Path(csvDir) + `; w=a; ` + appendLines + `) & (cd ` + m.Path(csvDir) + `; w=b; ` + appendLines + `) & wait`)
			for _, side := range []*mounttest.Lake{l, m} {
				wantSettled(t, side)
			}
			log, _ := inStore(t, l, csvDir+"/log")
			appended(t, log, 200, "a", "b")
		})
	}
}

// A descriptor has the version that it opened, or ESTALE: never some of each.
func TestS3ReplacedWhileRead(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	one := numbered('a', 50*mib)
	for what, two := range map[string]string{
		"the same length": numbered('b', 50*mib), "shorter": numbered('b', 20*mib), "longer": numbered('b', 60*mib), "empty": "",
	} {
		t.Run(what, func(t *testing.T) {
			l := mounttest.Mount(t, mounttest.Options{
				S3: true, Tables: []mounttest.Table{text("t", map[string]string{"f": one})}, Flags: shortTTL, Timeout: 2 * time.Minute,
			})
			fd := openAndReplace(t, l, one[:mib], two)
			// From the end, where no read-ahead has been, and then in order.
			readsOrStale(t, l, fd, one, 49*mib)
			for off := int64(0); off < int64(len(one)); off += mib {
				readsOrStale(t, l, fd, one, off)
			}
			if err := l.Do("close", func() error { return syscall.Close(fd) }); err != nil {
				t.Error(err)
			}
			l.Eventually("a new open has the new version", seenWithin, func() bool {
				got, err := l.ReadFile("db/t/f")
				if err == nil && got != one && got != two {
					t.Errorf("a new open reads %d bytes, which are neither version", len(got))
				}
				return err == nil && got == two
			})
		})
	}
}

// numbered is content in which each line is another one.
func numbered(c byte, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%c %d\n", c, i)
	}
	return b.String()[:size]
}

// openAndReplace opens db/t/f, reads its head, which must be as given, and has it
// replaced by another program.
func openAndReplace(t *testing.T, l *mounttest.Lake, head, two string) (fd int) {
	t.Helper()
	got := make([]byte, len(head))
	err := l.Do("open and read", func() (err error) {
		if fd, err = syscall.Open(l.Path("db/t/f"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
			_, err = syscall.Pread(fd, got[:4096], 0)
		}
		return err
	})
	if err != nil || string(got[:4096]) != head[:4096] {
		t.Fatalf("the first version: %s, %v", brief(string(got[:4096])), err)
	}
	l.PutStored("db/t/f", two)
	return fd
}

// readsOrStale reads a MiB of the first version, in part or as a whole, or gets
// ESTALE.
func readsOrStale(t *testing.T, l *mounttest.Lake, fd int, one string, off int64) {
	t.Helper()
	buf, n := make([]byte, 1<<20), 0
	err := l.Do("read on", func() (err error) {
		n, err = syscall.Pread(fd, buf, off)
		return err
	})
	if err != nil {
		wantErrno(t, fmt.Sprintf("read at %d", off), err, syscall.ESTALE)
		return
	}
	if n == 0 || string(buf[:n]) != one[off:off+int64(n)] {
		t.Errorf("at %d the descriptor reads %d bytes that are not its version's: %s", off, n, brief(string(buf[:n])))
	}
}
