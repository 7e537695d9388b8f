package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/objectstore/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The S3 servers of all tests end with the process.
		goleak.IgnoreAnyFunction("github.com/lakefs-mount/lakefs-mount/internal/testing/s3test.(*process).launch.func1"),
		// Their helpers' connections go with them.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// newFolder returns a Folder over dirs, closed after the test.
func newFolder(tb testing.TB, dirs ...string) *objectstore.Folder {
	tb.Helper()
	f, err := objectstore.NewFolder(dirs...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

func TestFolderConformance(t *testing.T) {
	for _, key := range []string{"", "db/table/"} {
		t.Run("at="+key, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (objectstore.Store, objectstore.Location) {
				t.Helper()
				dir := t.TempDir()
				return newFolder(t, dir), objectstore.Location{Bucket: dir, Key: key}
			})
		})
	}
}

// Two mounts of one host have a Folder each.
func TestFolderTwoMountsLoseNoUpdate(t *testing.T) {
	dir := t.TempDir()
	storetest.Increment(t, objectstore.Location{Bucket: dir}, newFolder(t, dir), newFolder(t, dir))
	wantNames(t, dir, "counter")
}

func TestNewFolderRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, dir := range []string{"relative", filepath.Join(t.TempDir(), "missing"), file} {
		f, err := objectstore.NewFolder(t.TempDir(), dir)
		if err == nil {
			t.Errorf("NewFolder(%q) succeeds", dir)
			closing(t, f)
		}
	}
}

func TestFolderUnknownBucketAndClosed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "x")
	f, err := objectstore.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Stat(t.Context(), objectstore.Location{Bucket: "/", Key: "etc/passwd"})
	wantErr(t, "Stat in no bucket", err, objectstore.ErrNotExist)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat(t.Context(), at(dir, "f")); err == nil {
		t.Error("Stat after Close succeeds")
	}
}

func TestFolderStatfs(t *testing.T) {
	dir := t.TempDir()
	st, err := newFolder(t, dir).Statfs(dir)
	if err != nil || st.Blocks == 0 || st.Bsize == 0 {
		t.Errorf("Statfs = %+v, %v", st, err)
	}
}

// The rule of keys that no path may come of.
func TestFolderRefusesKeys(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", "secret")
	f := newFolder(t, dir)
	for _, key := range []string{
		"/", "/a", "//", "a//b", "a//", "..", "../a", "a/..", "a/../a", ".", "./a", "a/.", "a/./b", "a/../",
		"nul\x00", strings.Repeat("n", 256), "a/" + strings.Repeat("n", 256) + "/b", strings.Repeat("abc/", 1024),
	} {
		loc := at(dir, key)
		_, err := f.Stat(t.Context(), loc)
		wantErr(t, "Stat "+key, err, objectstore.ErrName)
		_, err = f.Put(t.Context(), loc, strings.NewReader(""), 0, objectstore.PutOptions{})
		wantErr(t, "Put "+key, err, objectstore.ErrName)
		_, _, err = f.Read(t.Context(), objectstore.Object{Location: loc}, 0, 1)
		wantErr(t, "Read "+key, err, objectstore.ErrName)
		for _, err := range f.List(t.Context(), loc, objectstore.ListOptions{}) {
			wantErr(t, "List "+key, err, objectstore.ErrName)
		}
		for _, err := range f.Delete(t.Context(), []objectstore.Location{loc}) {
			wantErr(t, "Delete "+key, err, objectstore.ErrName)
		}
		wantErr(t, "MakeDirectory "+key, f.MakeDirectory(t.Context(), loc), objectstore.ErrName)
		wantErr(t, "RenameDirectory "+key, f.RenameDirectory(t.Context(), loc, at(dir, "a/")), objectstore.ErrName)
	}
	_, err := f.Stat(t.Context(), at(dir, strings.Repeat("n", 255)))
	wantErr(t, "Stat of 255 bytes", err, objectstore.ErrNotExist)
}

// A component of the key is a file.
func TestFolderBelowFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "x")
	f := newFolder(t, dir)
	_, err := f.Put(t.Context(), at(dir, "f/g"), strings.NewReader(""), 0, objectstore.PutOptions{})
	wantErr(t, "Put", err, objectstore.ErrNotExist)
	wantErr(t, "MakeDirectory", f.MakeDirectory(t.Context(), at(dir, "f/g/")), objectstore.ErrNotExist)
	wantNames(t, dir, "f")
}

func TestFolderHidesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	mkfifo(t, dir+"/pipe")
	f := newFolder(t, dir)
	wantListed(t, f, dir, "")
	wantHidden(t, f, at(dir, "pipe"), true)
	_, err := f.Stat(t.Context(), at(dir, "pipe"))
	wantErr(t, "Stat", err, objectstore.ErrNotExist)
	_, err = f.OpenObject(t.Context(), objectstore.Object{Location: at(dir, "pipe")})
	wantErr(t, "OpenObject", err, objectstore.ErrNotExist)
	for _, err := range f.Delete(t.Context(), []objectstore.Location{at(dir, "pipe")}) {
		if err != nil {
			t.Error(err)
		}
	}
	wantNames(t, dir, "pipe")
}

// chmod by others: the ETag stays, or readers got ESTALE; Match does not.
func TestFolderChmodChangesMatchAlone(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	o := put(t, f, at(dir, "f"), "1")
	tick(t, dir+"/f", func() error { return os.Chmod(dir+"/f", 0o600) })
	got, err := f.Stat(t.Context(), o.Location)
	if err != nil {
		t.Fatal(err)
	}
	if got.ETag != o.ETag || got.Match == o.Match || got.Meta[objectstore.MetaMode] != "600" {
		t.Errorf("after chmod: %+v, before: %+v", got, o)
	}
	if b := readAll(t, f, o); b != "1" {
		t.Errorf("read %q", b)
	}
	_, err = f.Put(t.Context(), o.Location, strings.NewReader("2"), 1, onlyIf(o.Match))
	wantErr(t, "Put on the old Match", err, objectstore.ErrChanged)
	if _, err = f.Put(t.Context(), o.Location, strings.NewReader("2"), 1, onlyIf(o.ETag)); err != nil {
		t.Error(err)
	}
}

func TestFolderChangedInPlace(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	o := put(t, f, at(dir, "f"), strings.Repeat("1", 100))
	_, body, err := f.Read(t.Context(), o, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, body)
	pinned, err := objectstore.Pin(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, pinned)
	if _, err = io.ReadFull(body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	tick(t, dir+"/f", func() error { return os.WriteFile(dir+"/f", bytes.Repeat([]byte("2"), 100), 0o600) })
	n, err := body.Read(make([]byte, 10))
	wantErr(t, "body", err, objectstore.ErrChanged)
	if n != 0 {
		t.Errorf("%d bytes of another version", n)
	}
	_, err = pinned.ReadAt(t.Context(), make([]byte, 10), 0)
	wantErr(t, "Pinned", err, objectstore.ErrChanged)
	_, _, err = f.Read(t.Context(), o, 0, 1)
	wantErr(t, "Read", err, objectstore.ErrChanged)
	_, err = f.Copy(t.Context(), at(dir, "g"), o, objectstore.PutOptions{})
	wantErr(t, "Copy", err, objectstore.ErrChanged)
	wantNames(t, dir, "f")
}

// Rule 24: a "_temporary" and what others have in it stay.
func TestFolder24TemporaryOfOthersStays(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	for _, sub := range []string{"empty/_temporary", "full/_temporary/0/task"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir+"/full/_temporary/.tmp.other", "theirs")
	for _, key := range []string{"empty/f", "full/f", "none/f"} {
		put(t, f, at(dir, key), "1")
	}
	wantNames(t, dir+"/empty", "_temporary", "f")
	wantNames(t, dir+"/full/_temporary", ".tmp.other", "0")
	wantNames(t, dir+"/none", "f")
}

// An attempt of the same write that died leaves its file; the next one takes
// it away. Another write's is left alone.
func TestFolderPutAfterCrash(t *testing.T) {
	const id = "0193b0f0-5f9e-7c3a-9d1e-1f0b5a6c7d8e"
	dir := t.TempDir()
	f := newFolder(t, dir)
	if err := os.Mkdir(dir+"/_temporary", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/_temporary/.tmp."+id, "half")
	opts := objectstore.PutOptions{Meta: map[string]string{objectstore.MetaWriteID: id}}
	if _, err := f.Put(t.Context(), at(dir, "f"), strings.NewReader("whole"), 5, opts); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir+"/_temporary")
	wantNames(t, dir, "_temporary", "f")
}

// A write id goes into a file name: one that is no UUID must not.
func TestFolderPutWriteIDIsNoPath(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	opts := objectstore.PutOptions{Meta: map[string]string{objectstore.MetaWriteID: "/../../escaped"}}
	if _, err := f.Put(t.Context(), at(dir, "a/b/f"), strings.NewReader("x"), 1, opts); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "a")
	wantNames(t, dir+"/a/b", "f")
}

// The source ends the write half-way: nothing stays.
func TestFolderPutCancelledHalfWay(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	src := readerAt(func(p []byte, _ int64) (int, error) { cancel(); return len(p), nil })
	_, err := f.Put(ctx, at(dir, "d/f"), src, 8<<20, objectstore.PutOptions{})
	wantErr(t, "Put", err, context.Canceled)
	broken := errors.New("source is broken")
	src = func([]byte, int64) (int, error) { return 0, broken }
	_, err = f.Put(t.Context(), at(dir, "d/f"), src, 1, objectstore.PutOptions{})
	wantErr(t, "Put", err, broken)
	wantNames(t, dir+"/d")
}

func TestFolderAdoptCrossDevice(t *testing.T) {
	const shm = "/dev/shm"
	dir := t.TempDir()
	if device(t, dir) == device(t, shm) {
		t.Skipf("%s and %s are one file system", dir, shm)
	}
	spool, err := os.MkdirTemp(shm, "storetest") //nolint:usetesting // t.TempDir is the one file system, this is the other
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if rerr := os.RemoveAll(spool); rerr != nil {
			t.Error(rerr)
		}
	})
	write(t, spool+"/f", "1")
	f := newFolder(t, dir, spool)
	_, err = f.Adopt(t.Context(), at(dir, "f"), spool+"/f", objectstore.PutOptions{})
	wantErr(t, "Adopt", err, objectstore.ErrCrossDevice)
	o, err := f.Stat(t.Context(), at(spool, "f"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Rename(t.Context(), at(dir, "f"), o, objectstore.Cond{})
	wantErr(t, "Rename", err, objectstore.ErrCrossDevice)
	wantNames(t, spool, "f")
	wantNames(t, dir)
	if _, err := f.Copy(t.Context(), at(dir, "f"), o, objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/f"); err != nil || string(b) != "1" {
		t.Errorf("copy to another file system: %q, %v", b, err)
	}
}

// Hard links: rename(2) of one name to the other does nothing.
func TestFolderRenameOverItsOwnLink(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(t, dir)
	o := put(t, f, at(dir, "a"), "1")
	tick(t, dir+"/a", func() error { return os.Link(dir+"/a", dir+"/b") })
	if _, err := f.Rename(t.Context(), at(dir, "b"), o, objectstore.Cond{}); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "b")
}
