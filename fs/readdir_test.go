package fs_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// mountMany mounts db.t with n empty files f00000, f00001 and so on.
func mountMany(t *testing.T, n int, flags ...string) *mounttest.Lake {
	t.Helper()
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("f%05d", i)] = ""
	}
	return mounttest.Mount(t, mounttest.Options{
		Tables: []mounttest.Table{text("t", files)}, Flags: flags, Timeout: 4 * time.Minute, // thousands of system calls
	})
}

// openDir is an open directory that is read by getdents(2), a small buffer at a time.
type openDir struct {
	fd  int
	buf []byte
}

// dirent is a name, and the offset behind it, as telldir(3) has it.
type dirent struct {
	name string
	off  int64
}

func (d openDir) next() ([]dirent, error) {
	n, err := unix.Getdents(d.fd, d.buf)
	if err != nil || n == 0 {
		return nil, err
	}
	var all []dirent
	for b := d.buf[:n]; len(b) > 0; b = b[binary.NativeEndian.Uint16(b[16:]):] {
		base, _, _ := strings.Cut(string(b[19:binary.NativeEndian.Uint16(b[16:])]), "\x00")
		all = append(all, dirent{base, int64(binary.NativeEndian.Uint64(b[8:]))})
	}
	return all, nil
}

func (d openDir) rest() (names []string, err error) {
	for {
		more, err := d.next()
		if err != nil || more == nil {
			return names, err
		}
		for _, e := range more {
			if e.name != "." && e.name != ".." {
				names = append(names, e.name)
			}
		}
	}
}

func (d openDir) seek(off int64) error {
	_, err := unix.Seek(d.fd, off, unix.SEEK_SET)
	return err
}

// withDir opens a directory of the mount for op.
func withDir(t *testing.T, l *mounttest.Lake, dir string, size int, op func(d openDir) error) {
	t.Helper()
	err := l.Do("read "+dir, func() error {
		fd, err := unix.Open(l.Path(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }() // read only
		return op(openDir{fd, make([]byte, size)})
	})
	if err != nil {
		t.Error(err)
	}
}

// wantOnce asserts that each name is there once, and returns them as a set.
func wantOnce(t *testing.T, names []string) map[string]bool {
	t.Helper()
	set := make(map[string]bool, len(names))
	for _, n := range names {
		if set[n] {
			t.Errorf("%s twice", n)
		}
		set[n] = true
	}
	return set
}

func TestReaddirOfTenThousandEntries(t *testing.T) {
	t.Parallel()
	const n = 10_000
	l := mountMany(t, n)
	for _, size := range []int{600, 32 << 10, 1 << 20} {
		withDir(t, l, "db/t", size, func(d openDir) error {
			names, err := d.rest()
			if len(wantOnce(t, names)) != n {
				t.Errorf("buffer of %d: %d names, want %d", size, len(names), n)
			}
			return err
		})
	}
	if out := l.MustSh(`ls -l db/t | wc -l; ls db/t | sort -c && find db/t -type f | wc -l; perl -MFile::Find -e 'find(sub { $n++ if -f }, "db/t"); print "$n\n"'`); out != "10001\n10000\n10000\n" {
		t.Errorf("ls -l, find and File::Find count %q", out)
	}
}

func TestReaddirSeeksAndRewinds(t *testing.T) {
	t.Parallel()
	const n = 1000
	l := mountMany(t, n)
	withDir(t, l, "db/t", 900, func(d openDir) error {
		var all []dirent
		for range 10 {
			more, err := d.next()
			if err != nil {
				return err
			}
			all = append(all, more...)
		}
		for _, i := range []int{len(all) - 1, 2, 50, 7} { // back, and forth
			if err := d.seek(all[i].off); err != nil {
				return err
			}
			more, err := d.next()
			if err != nil || i+1 < len(all) && more[0].name != all[i+1].name {
				t.Errorf("behind %d (%s): got %v, %v", i, all[i].name, more, err)
			}
		}
		if err := d.seek(0); err != nil {
			return err
		}
		names, err := d.rest()
		if len(wantOnce(t, names)) != n {
			t.Errorf("after rewinddir: %d names, want %d", len(names), n)
		}
		return err
	})
}

// What is removed while a directory is read takes no other name from the reader.
func TestReaddirWhileNamesGo(t *testing.T) {
	t.Parallel()
	const n = 1200 // many buffers of getdents; each removal is a request
	l := mountMany(t, n, "--write=delete")
	withDir(t, l, "db/t", 4096, func(d openDir) error {
		seen := make(map[string]bool)
		for {
			more, err := d.next()
			if err != nil || more == nil {
				if len(seen) != n {
					t.Errorf("%d names seen while each was removed after it was read, want %d", len(seen), n)
				}
				return err
			}
			for _, e := range more {
				if e.name != "." && e.name != ".." {
					seen[e.name] = true
					if err := os.Remove(l.Path("db/t/" + e.name)); err != nil {
						return err
					}
				}
			}
		}
	})
	wantNames(t, l, "db/t")
}

// telldir, remove what was read before, seekdir: the names that stay are all read.
func TestReaddirSeekAfterRemovals(t *testing.T) {
	t.Parallel()
	const n = 1000
	l := mountMany(t, n, "--write=delete")
	withDir(t, l, "db/t", 900, func(d openDir) error {
		first, err := d.next()
		if err != nil {
			return err
		}
		here := first[len(first)-1].off
		after, err := d.rest()
		if err != nil {
			return err
		}
		for _, e := range first {
			if e.name != "." && e.name != ".." {
				if gone := os.Remove(l.Path("db/t/" + e.name)); gone != nil {
					return gone
				}
			}
		}
		if err = d.seek(here); err != nil {
			return err
		}
		again, err := d.rest()
		if got := wantOnce(t, again); len(got) != len(after) {
			t.Errorf("%d names behind the same place, want %d", len(got), len(after))
		}
		return err
	})
}

func TestReaddirRemovesThousandsOfFiles(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"rm -r":                `rm -r db/t/d`,
		"find -delete":         `find db/t/d -delete`,
		"perl, name by name":   `perl -e 'opendir D, "db/t/d"; while ($_ = readdir D) { unlink "db/t/d/$_" unless /^\./ } closedir D; rmdir "db/t/d" or die $!'`,
		"python shutil.rmtree": `python3 -c 'import shutil; shutil.rmtree("db/t/d")'`,
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"d/sub/": ""}
			n := 3000
			if strings.HasPrefix(name, "p") {
				n = 1200 // more than one buffer of getdents; each removal is synced
			}
			for i := range n {
				dir := "d"
				if i%3 == 0 && !strings.HasPrefix(name, "perl") {
					dir = "d/sub"
				}
				files[fmt.Sprintf("%s/some-longer-name-%d.csv", dir, i)] = ""
			}
			l := mountText(t, files, "--write=delete")
			if strings.HasPrefix(name, "perl") {
				l.MustSh(`rmdir db/t/d/sub`)
			}
			l.MustSh(script)
			wantNames(t, l, "db/t")
		})
	}
}

// While other names come and go, those that stay are read once each.
func TestReaddirWhileFilesComeAndGo(t *testing.T) {
	t.Parallel()
	const n = 1500
	l := mountMany(t, n, "--write=delete")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			l.PutStored(fmt.Sprintf("db/t/g%d", i%97), "x")
			if i >= 97 {
				l.RemoveStored(fmt.Sprintf("db/t/g%d", (i+50)%97))
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for range 20 {
		withDir(t, l, "db/t", 8192, func(d openDir) error {
			names, err := d.rest()
			stay := 0
			for name := range wantOnce(t, names) {
				if strings.HasPrefix(name, "f") {
					stay++
				}
			}
			if stay != n {
				t.Errorf("%d of the names that stay, want %d", stay, n)
			}
			return err
		})
	}
}

func TestReaddirOfARemovedDirectoryEnds(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"d/f": ""}, "--write=delete")
	withDir(t, l, "db/t/d", 4096, func(d openDir) error {
		if err := os.RemoveAll(l.Path("db/t/d")); err != nil {
			return err
		}
		names, err := d.rest()
		if len(names) > 0 || err != nil && !errors.Is(err, syscall.ENOENT) {
			t.Errorf("a removed directory lists %q, %v", names, err)
		}
		_, err = os.Stat(l.Path("db/t/d"))
		if !os.IsNotExist(err) {
			t.Errorf("stat of the removed directory: %v", err)
		}
		return nil
	})
}
