package fs_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestS3WhatAnOpenKeeps of a version that this very mount takes from its name: all of a
// file of up to 8 MiB, of a larger one the first MiB; the rest is ESTALE.
func TestS3WhatAnOpenKeeps(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	small, large := numbered('s', 6*mib), numbered('l', 24*mib)
	for what, script := range map[string]string{
		"removed":  `rm small large`,
		"renamed":  `mv small s; mv large l`,
		"replaced": `echo new >small; echo new >large`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mounttest.Mount(t, mounttest.Options{
				S3: true, Tables: twoTables(map[string]string{"small": small, "large": large}), Flags: []string{"--write=delete"},
			})
			a, b := openRead(t, l, csvDir+"/small"), openRead(t, l, csvDir+"/large")
			l.MustSh(`set -e; cd ` + csvDir + `; ` + script)
			wantAt(t, l, a, small, 0, 0)
			wantAt(t, l, a, small, 5*mib, 0)
			wantAt(t, l, b, large, mib/2, 0)
			wantAt(t, l, b, large, 16*mib, syscall.ESTALE)
			err := l.Do("close", func() error { return errors.Join(syscall.Close(a), syscall.Close(b)) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func openRead(t *testing.T, l *mounttest.Lake, name string) (fd int) {
	t.Helper()
	err := l.Do("open "+name, func() (err error) {
		fd, err = syscall.Open(l.Path(name), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// wantAt asserts what a page of a descriptor is: that of content, or an error.
func wantAt(t *testing.T, l *mounttest.Lake, fd int, content string, off int64, want syscall.Errno) {
	t.Helper()
	page, n := make([]byte, 4096), 0
	err := l.Do("read", func() (err error) {
		n, err = syscall.Pread(fd, page, off)
		return err
	})
	wantErrno(t, fmt.Sprintf("read at %d", off), err, want)
	if err == nil && string(page[:n]) != content[off:off+4096] {
		t.Errorf("at %d are %d other bytes: %s", off, n, brief(string(page[:n])))
	}
}
