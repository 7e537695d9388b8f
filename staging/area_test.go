package staging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestOpenRefusesWhatIsNotPrivate(t *testing.T) {
	top := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, link := filepath.Join(top, "dir"), filepath.Join(top, "link")
	must(os.Mkdir(dir, 0o700))
	must(os.Symlink(dir, link))
	shared := filepath.Join(top, "shared")
	must(os.Mkdir(shared, 0o700))
	must(os.Chmod(shared, 0o777|os.ModeSticky))
	open := filepath.Join(top, "open")
	must(os.Mkdir(open, 0o700))
	must(os.Chmod(open, 0o770))
	file := filepath.Join(top, "file")
	must(os.WriteFile(file, nil, 0o600))
	must(os.MkdirAll(filepath.Join(shared, "own"), 0o700))
	locked := filepath.Join(top, "locked")
	must(os.Mkdir(locked, 0o700))
	must(os.Symlink(file, filepath.Join(locked, lockName)))
	for _, tt := range []struct{ name, dir, says string }{
		{"a symbolic link", link, "symbolic link"},
		{"a file", file, "not a directory"},
		{"group may write", open, "chmod 700"},
		{"directly in a shared directory", filepath.Join(shared, "own"), "--state-dir"},
		{"in a shared directory, missing", filepath.Join(shared, "new"), "--state-dir"},
		{"the lock is a link", locked, "symbolic link"},
	} {
		a, err := Open(tt.dir, Options{})
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(fmt.Sprint(err), tt.says) || !strings.Contains(fmt.Sprint(err), tt.dir) {
			t.Errorf("%s: %v; want ErrUnsafe that names %s and %q", tt.name, err, tt.dir, tt.says)
		}
		if a != nil {
			_ = a.Close()
		}
	}
	if os.Geteuid() == 0 {
		must(os.Chown(dir, 12345, 0))
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "12345") {
			t.Errorf("another's directory: %v", err)
		}
	}
	private := filepath.Join(shared, "own", "deeper", "staging")
	a, err := Open(private, Options{})
	if err != nil {
		t.Fatalf("a directory below a private one in a shared one: %v", err)
	}
	defer func() { _ = a.Close() }()
	if st, err := os.Stat(private); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode of a new staging directory: %v, %v", st.Mode(), err)
	}
}

func TestOpenTightensAReadableDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if st, _ := os.Stat(dir); st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", st.Mode())
	}
}

func TestOpenInUseNamesTheOwner(t *testing.T) {
	e := newEnv(t)
	_, err := Open(e.dir, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("second Open: %v; want ErrInUse with the pid", err)
	}
	e.reopen(t) // free again after Close
}

// tmpfs mounts a small one, or skips.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestOpenOnMemoryWarnsAndReadOnlyAndFullAreClear(t *testing.T) {
	dir := tmpfs(t, "size=1m,mode=700")
	var log bytes.Buffer
	staging := filepath.Join(dir, "s")
	a, err := Open(staging, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "in memory") {
		t.Errorf("no warning of a tmpfs: %q", log.String())
	}
	_ = a.Close()
	_ = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 2<<20), 0o600) // fails: full
	if _, err = Open(staging, Options{}); !errors.Is(err, objectstore.ErrNoSpace) || !strings.Contains(err.Error(), "recover") {
		t.Errorf("Open of a full directory: %v", err)
	}
	if a, err = Open(staging, Options{AllowFull: true}); err != nil {
		t.Errorf("Open of a full directory that may be full: %v", err)
	} else {
		_ = a.Close()
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{staging, filepath.Join(dir, "new")} {
		if _, err := Open(d, Options{}); err == nil || !strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), d) {
			t.Errorf("Open of %s, read-only: %v", d, err)
		}
	}
}

// TestCase23FullDisk is cases.md 23 and 73 as far as staging goes: the error is
// ErrNoSpace, the file is poisoned, and its space is free again.
func TestCase23FullDisk(t *testing.T) {
	dir := filepath.Join(tmpfs(t, "size=2m,mode=700"), "s")
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	create := func() *File {
		t.Helper()
		f, createErr := a.Create(t.Context(), NewWrite{Target: objectstore.Location{Bucket: "b", Key: "f"}})
		if createErr != nil {
			t.Fatal(createErr)
		}
		return f
	}
	f := create()
	for off := int64(0); err == nil && off < 8<<20; off += 128 << 10 {
		_, err = f.WriteAt(t.Context(), bytes.Repeat([]byte("x"), 128<<10), off)
	}
	if !errors.Is(err, objectstore.ErrNoSpace) || !errors.Is(f.Poisoned(), objectstore.ErrNoSpace) {
		t.Fatalf("writing past a full disk: %v, poison %v", err, f.Poisoned())
	}
	if err := f.FreeSpool(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(f.Poisoned(), objectstore.ErrNoSpace) {
		t.Errorf("poison after FreeSpool: %v", f.Poisoned())
	}
	if _, err := f.WriteAt(t.Context(), []byte("x"), 0); !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("a write after FreeSpool: %v", err)
	}
	g := create()
	if _, err := g.WriteAt(t.Context(), make([]byte, 1<<20), 0); err != nil {
		t.Errorf("the space is not free again: %v", err)
	}
}

func TestExpireHonoursKeepMaxAndHandles(t *testing.T) {
	e := newEnv(t)
	now := day
	_ = e.area.Close()
	e.opts.Now = func() time.Time { return now }
	e.opts.Keep, e.opts.Max = 48*time.Hour, 1<<20
	e.open(t)
	var ids []string
	for i := range 5 {
		now = day.Add(time.Duration(i) * time.Hour)
		f := e.create(t, NewWrite{Path: fmt.Sprint(i)})
		if _, err := f.WriteAt(t.Context(), make([]byte, 400<<10), 0); err != nil {
			t.Fatal(err)
		}
		if err := f.SetState(Failed, "planted"); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, f.ID())
	}
	first, _ := e.area.Find(ids[0])
	first.Acquire() // a program still has it open
	if err := first.SetState(Staged, ""); err != nil {
		t.Fatal(err)
	}
	dropped := e.area.Expire(t.Context())
	var got []string
	for _, r := range dropped {
		got = append(got, r.Path)
	}
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("over Max: dropped %q, want the oldest two that nobody has open", got)
	}
	now = day.Add(100 * time.Hour)
	first.Release()
	if n := len(e.area.Expire(t.Context())); n != 3 {
		t.Errorf("past Keep: dropped %d, want 3", n)
	}
	if writes, bytes := e.area.Usage(); writes != 0 || bytes != 0 {
		t.Errorf("usage %d, %d after all are dropped", writes, bytes)
	}
}

// TestExpireSparesWhatItIsToldTo, and counts it against nothing.
func TestExpireSparesWhatItIsToldTo(t *testing.T) {
	e := newEnv(t)
	now := day
	var log bytes.Buffer
	_ = e.area.Close()
	e.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	e.opts.Now = func() time.Time { return now }
	e.opts.Keep, e.opts.Max = 48*time.Hour, 1<<20
	e.opts.Spare = func(r Record) bool { return strings.HasPrefix(r.Path, "spared") }
	e.open(t)
	for _, path := range []string{"spared/1", "spared/2", "spared/3", "other"} {
		f := e.create(t, NewWrite{Path: path})
		if _, err := f.WriteAt(t.Context(), make([]byte, 400<<10), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if dropped := e.area.Expire(t.Context()); len(dropped) > 0 || strings.Count(log.String(), "open transactions alone") != 1 {
			t.Errorf("within Max: dropped %v, logged %s", dropped, &log)
		}
	}
	now = day.Add(100 * time.Hour)
	if dropped := e.area.Expire(t.Context()); len(dropped) != 1 || dropped[0].Path != "other" {
		t.Errorf("past Keep: dropped %v, want the other", dropped)
	}
	if writes, _ := e.area.Usage(); writes != 3 {
		t.Errorf("%d writes are left, want 3", writes)
	}
}

func TestSparesAreEmptyBoundedAndGoAtClose(t *testing.T) {
	e := newEnv(t)
	var files []*File
	for range maxSpares + 5 {
		files = append(files, e.create(t, NewWrite{}))
	}
	for _, f := range files {
		if err := f.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(e.dir)
	if err != nil || len(entries) != maxSpares+1 {
		t.Errorf("%d entries after %d writes, %v; want %d spares and the lock", len(entries), len(files), err, maxSpares)
	}
	f := e.create(t, NewWrite{})
	mustWrite(t, f, 0, "in a used directory")
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(e.dir, sparePrefix+"99"), 0o700); err != nil { // of a killed process
		t.Fatal(err)
	}
	e.reopen(t)
	if got := string(readAll(t, only(t, e.area))); got != "in a used directory" {
		t.Errorf("bytes %q", got)
	}
	if entries, _ := os.ReadDir(e.dir); len(entries) != 2 {
		t.Errorf("%d entries after Close and Open, want the write and the lock", len(entries))
	}
}

// TestSparesMakeRoom: what has no room left for it gets that of the spare directories.
func TestSparesMakeRoom(t *testing.T) {
	e := newEnv(t)
	var files []*File
	for range 5 {
		files = append(files, e.create(t, NewWrite{}))
	}
	for _, f := range files {
		if err := f.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		spares, calls int
		full          bool // in the end
	}{{5, 2, false}, {0, 1, true}} {
		entries, err := os.ReadDir(e.dir)
		if err != nil || len(entries) != c.spares+1 {
			t.Fatalf("%d entries, %v; want %d spares and the lock", len(entries), err, c.spares)
		}
		calls := 0
		err = e.area.withRoom(func() error {
			if calls++; calls == 1 {
				return fmt.Errorf("write: %w", objectstore.ErrNoSpace)
			}
			return nil
		})
		if calls != c.calls || errors.Is(err, objectstore.ErrNoSpace) != c.full {
			t.Errorf("with %d spares: %d calls, %v; want %d", c.spares, calls, err, c.calls)
		}
	}
}

func TestCloseEndsTheArea(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	for range 2 {
		if err := e.area.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := f.WriteAt(t.Context(), []byte("x"), 0); !errors.Is(err, ErrDropped) {
		t.Errorf("WriteAt after Close: %v", err)
	}
	if _, err := e.area.Create(t.Context(), NewWrite{Target: e.loc("f")}); !errors.Is(err, ErrDropped) {
		t.Errorf("Create after Close: %v", err)
	}
}

// TestSpareDirectoryThatWasJustTaken: a process that ended right after it took a used
// directory leaves the record of the write before it there.
func TestSpareDirectoryThatWasJustTaken(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	if _, err := f.WriteAt(t.Context(), []byte("bytes of the first"), 0); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(e.area.path(f.ID()), recordName))
	if err != nil {
		t.Fatal(err)
	}
	dir := e.area.path(uuid.NewString())
	for name, content := range map[string]string{recordName: string(old), recordTemp: string(old), dataName: ""} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.reopen(t)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if g := only(t, e.area); g.ID() != f.ID() || string(readAll(t, g)) != "bytes of the first" {
		t.Errorf("the first is %+v", g.Record())
	}
}

// TestRecordsFilesAreUsedAgain: a write takes the files of the record of one that
// ended; each state of it takes them in turns.
func TestRecordsFilesAreUsedAgain(t *testing.T) {
	e := newEnv(t)
	var first map[uint64]bool
	for range 3 {
		f := e.create(t, NewWrite{})
		for _, s := range []State{Publishing, Staged, Publishing} {
			z := freeze(t, f)
			if err := z.SetState(s, "", false); err != nil {
				t.Fatal(err)
			}
			z.Release()
		}
		now := make(map[uint64]bool)
		for _, name := range []string{recordName, recordTemp} {
			var st unix.Stat_t
			if err := unix.Stat(filepath.Join(e.area.path(f.ID()), name), &st); err != nil {
				t.Fatal(err)
			}
			now[st.Ino] = true
		}
		if first == nil {
			first = now
		}
		if !maps.Equal(now, first) {
			t.Errorf("the record is in the files %v, the first write's in %v", now, first)
		}
		if err := f.Drop(); err != nil {
			t.Fatal(err)
		}
	}
}
