package objectstore_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func at(dir, key string) objectstore.Location { return objectstore.Location{Bucket: dir, Key: key} }

func onlyIf(match string) objectstore.PutOptions {
	return objectstore.PutOptions{Cond: objectstore.Cond{IfMatch: match}}
}

// closing closes what a test has open, at its end.
func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func put(t *testing.T, s objectstore.Store, loc objectstore.Location, data string) objectstore.Object {
	t.Helper()
	o, err := s.Put(t.Context(), loc, strings.NewReader(data), int64(len(data)), objectstore.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func readAll(t *testing.T, s objectstore.Store, o objectstore.Object) string {
	t.Helper()
	_, body, err := s.Read(t.Context(), o, 0, o.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, body)
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantNames compares a real directory's names, sorted.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(entries))
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// wantListed compares what List tells below a key of one level, sorted, without
// the directory itself.
func wantListed(t *testing.T, f *objectstore.Folder, dir, key string, want ...string) {
	t.Helper()
	var got []string
	for e, err := range f.List(t.Context(), at(dir, key), objectstore.ListOptions{Delimiter: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Key != key {
			got = append(got, e.Key)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("List(%q) = %q, want %q", key, got, want)
	}
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	return statOf(t, path).Dev
}

func statOf(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// tick repeats a change until the kernel's clock has moved since the last one,
// so that the change shows in the file's times.
func tick(t *testing.T, path string, change func() error) {
	t.Helper()
	before := statOf(t, path).Ctim
	for deadline := time.Now().Add(5 * time.Second); ; {
		err := change()
		if err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		if statOf(t, path).Ctim != before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the change time does not move")
		}
	}
}
