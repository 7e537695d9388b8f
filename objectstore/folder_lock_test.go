package objectstore

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// Another program holds the lock: a write waits for it, as long as its context
// lets it and lockPatience at most; creating needs no lock.
func TestLockHeldByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f, err := NewFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		loc := Location{Bucket: dir, Key: "f"}
		put := func(ctx context.Context, cond Cond) error {
			_, perr := f.Put(ctx, loc, strings.NewReader("x"), 1, PutOptions{Cond: cond})
			return perr
		}
		other, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		if err = unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), Cond{IfNoneMatch: true}); err != nil {
			t.Errorf("create under the lock: %v", err)
		}
		start := time.Now()
		if err := put(t.Context(), Cond{}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("replace under the lock: %v, want %v", err, ErrUnavailable)
		}
		if d := time.Since(start); d < lockPatience || d > lockPatience+time.Second {
			t.Errorf("waited %v, want %v", d, lockPatience)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := put(ctx, Cond{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("replace with a deadline: %v after %v", err, time.Since(start))
		}
		time.AfterFunc(3*time.Second, func() { _ = unix.Flock(int(other.Fd()), unix.LOCK_UN) })
		if err := put(t.Context(), Cond{}); err != nil {
			t.Errorf("replace after the lock: %v", err)
		}
		synctest.Wait()
		if n := len(f.locks.held); n != 0 {
			t.Errorf("%d locks are remembered", n)
		}
		if n := len(f.temps.used); n != 0 {
			t.Errorf("%d _temporary are remembered", n)
		}
	})
}

func TestFormatTime(t *testing.T) {
	for want, at := range map[string]time.Time{
		"0":                    time.Unix(0, 0),
		"1234567890":           time.Unix(1234567890, 0),
		"1234567890.000000001": time.Unix(1234567890, 1),
		"1.5":                  time.Unix(1, 5e8),
		"-0.25":                time.Unix(0, -25e7),
		"-1.25":                time.Unix(-1, -25e7),
		"-2":                   time.Unix(-2, 0),
	} {
		if got := formatTime(at); got != want {
			t.Errorf("formatTime(%v) = %s, want %s", at, got, want)
		}
		if got, err := parseTime(want); err != nil || !got.Equal(at) {
			t.Errorf("parseTime(%s) = %v, %v, want %v", want, got, err, at)
		}
	}
	for _, bad := range []string{"", "x", ".5", "1.x", "1.0000000001", "1.-5", "1.+5"} {
		if got, err := parseTime(bad); err == nil {
			t.Errorf("parseTime(%q) = %v", bad, got)
		}
	}
}

func TestSentinels(t *testing.T) {
	all := []error{
		ErrNotExist, ErrExist, ErrPermission, ErrChanged, ErrUnavailable, ErrName, ErrNotEmpty,
		ErrCrossDevice, ErrNoSpace, ErrTooLarge, ErrDirectory,
	}
	for errno, want := range map[syscall.Errno]error{
		unix.ENOENT: ErrNotExist, unix.ENOTDIR: ErrNotExist, unix.EEXIST: ErrExist, unix.ENOTEMPTY: ErrNotEmpty,
		unix.EACCES: ErrPermission, unix.EPERM: ErrPermission, unix.EROFS: ErrPermission, unix.ENOSPC: ErrNoSpace,
		unix.EDQUOT: ErrNoSpace, unix.EISDIR: ErrDirectory, unix.EXDEV: ErrCrossDevice, unix.ENAMETOOLONG: ErrName,
		unix.EFBIG: ErrTooLarge, unix.EIO: ErrUnavailable, unix.EINVAL: nil,
	} {
		err := fail("put", Location{"/lake", "a"}, &os.PathError{Op: "write", Path: "tmp", Err: errno})
		for _, s := range all {
			if got := errors.Is(err, s); got != (want != nil && s.Error() == want.Error()) {
				t.Errorf("%v: errors.Is(%v) = %v", errno, s, got)
			}
		}
	}
	err := fail("put", Location{"/lake", "a"}, unix.EINVAL)
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("an errno without a sentinel is lost: %v", err)
	}
}
