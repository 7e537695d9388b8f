package fs_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// direntInodes reads a directory by getdents(2): names, but for . and .., and
// their d_ino.
func direntInodes(t *testing.T, l *mounttest.Lake, dir string) map[string]uint64 {
	t.Helper()
	found := make(map[string]uint64)
	err := l.Do("getdents "+dir, func() error {
		fd, err := unix.Open(l.Path(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }() // read only
		buf := make([]byte, 32<<10)
		for {
			n, err := unix.Getdents(fd, buf)
			if err != nil || n == 0 {
				return err
			}
			for b := buf[:n]; len(b) > 0; b = b[binary.NativeEndian.Uint16(b[16:]):] {
				size := binary.NativeEndian.Uint16(b[16:])
				base, _, _ := strings.Cut(string(b[19:size]), "\x00")
				if base == "." || base == ".." {
					continue
				}
				if _, twice := found[base]; twice {
					return fmt.Errorf("%q is listed twice", base)
				}
				found[base] = binary.NativeEndian.Uint64(b)
			}
		}
	})
	if err != nil {
		t.Fatalf("getdents of %q: %v", dir, err)
	}
	return found
}

func TestInodeOfEntryIsThatOfStat(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	all := make(map[uint64]string)
	var walk func(dir string)
	walk = func(dir string) {
		for base, ino := range direntInodes(t, l, dir) {
			path := strings.TrimPrefix(dir+"/"+base, "/")
			st := stat(t, l, path)
			if st.Ino != ino {
				t.Errorf("%s: d_ino %d, st_ino %d", path, ino, st.Ino)
			}
			if other, taken := all[ino]; taken {
				t.Errorf("%s and %s share inode %d", path, other, ino)
			}
			all[ino] = path
			if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
				walk(path)
			}
		}
	}
	walk("")
	if len(all) < 15 {
		t.Errorf("only %d names found", len(all))
	}
}

func TestInodesAreStableOverRemountAndVersions(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	const list = `find . -printf '%i %p\n' | sort -k2`
	before := l.MustSh(list)
	write(t, l, "web/logs/top.log", "another version\n")
	if after := l.MustSh(list); after != before {
		t.Errorf("after a new version:\n%s\nbefore:\n%s", after, before)
	}
	l.Remount()
	if after := l.MustSh(list); after != before {
		t.Errorf("after a remount:\n%s\nbefore:\n%s", after, before)
	}
}

func TestInodeGoesAlongWithARename(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"a": "x", "d/f": "y", "d/e/g": "z"})
	file, inner, dir := stat(t, l, "db/t/a").Ino, stat(t, l, "db/t/d/e/g").Ino, stat(t, l, "db/t/d").Ino
	l.MustSh(`cd db/t; mv a b; mv d moved`)
	for path, want := range map[string]uint64{"db/t/b": file, "db/t/moved/e/g": inner, "db/t/moved": dir} {
		if got := stat(t, l, path).Ino; got != want {
			t.Errorf("inode of %s: %d, before the rename %d", path, got, want)
		}
	}
	write(t, l, "db/t/a", "a new file of the old name")
	if got := stat(t, l, "db/t/a").Ino; got == file {
		t.Errorf("the new file has the inode of the one that was renamed")
	}
	for base, ino := range direntInodes(t, l, "db/t") {
		if st := stat(t, l, "db/t/"+base); st.Ino != ino {
			t.Errorf("%s: d_ino %d, st_ino %d", base, ino, st.Ino)
		}
	}
	l.MustSh(`echo 3 > /proc/sys/vm/drop_caches 2>/dev/null || true`)
	if got := stat(t, l, "db/t/b").Ino; got != file {
		t.Errorf("inode of b once the kernel has forgotten it: %d, want %d", got, file)
	}
}

func TestOpenDescriptorKeepsItsVersion(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", nil)}})
	one, two := strings.Repeat("1", 3<<20), strings.Repeat("2", 2<<20)
	l.PutStored("db/t/f", one)
	l.Start(shortTTL...)
	for name, replace := range map[string]func(){
		"replaced outside":  func() { l.PutStored("db/t/f", two) },
		"written here":      func() { write(t, l, "db/t/f", two) },
		"removed outside":   func() { l.RemoveStored("db/t/f") },
		"renamed onto here": func() { l.MustSh(`cd db/t; head -c 2097152 /dev/zero | tr '\0' 2 > g; mv g f`) },
	} {
		l.PutStored("db/t/f", one)
		l.Eventually("version 1 is seen", 0, func() bool { got, _ := l.ReadFile("db/t/f"); return got == one })
		var f *os.File
		half := make([]byte, len(one))
		err := l.Do("open", func() (err error) {
			if f, err = os.Open(l.Path("db/t/f")); err == nil {
				_, err = f.ReadAt(half[:len(half)/2], 0)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		replace()
		l.Eventually(name+": version 2 is seen", 0, func() bool {
			got, gone := l.ReadFile("db/t/f")
			return got == two || os.IsNotExist(gone)
		})
		err = l.Do("read on", func() error {
			defer func() { _ = f.Close() }() // read only
			info, statErr := f.Stat()
			if statErr != nil || info.Size() != int64(len(one)) {
				t.Errorf("%s: fstat of version 1: %v, %v", name, info, statErr)
			}
			_, readErr := f.ReadAt(half[len(half)/2:], int64(len(half)/2))
			return readErr
		})
		if err != nil || !slices.Equal(half, []byte(one)) {
			t.Errorf("%s: version 1 reads wrong: %v", name, err)
		}
	}
}
