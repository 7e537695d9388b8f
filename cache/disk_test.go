package cache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// openDisk opens a disk cache of 64 KiB blocks, with memory for eight on their way.
func openDisk(t *testing.T, dir string, size int64) *cache.Disk {
	t.Helper()
	d, err := cache.OpenDisk(dir, size, diskOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDisk(t, d) })
	return d
}

func diskOptions() cache.DiskOptions {
	return cache.DiskOptions{Budget: budget.New(8 * 8 * 65 * kib), BlockSize: 64 * kib, Owner: "/mnt/other"}
}

func closeDisk(t *testing.T, d *cache.Disk) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// readDisk reads a range through the disk and compares it.
func readDisk(t *testing.T, d *cache.Disk, s *source, off, n int64) (local bool) {
	t.Helper()
	body, err := d.Fetch(s.version, s.fetch)(cache.Thorough(t.Context()), off, n)
	if err != nil {
		t.Fatalf("fetch [%d,+%d): %v", off, n, err)
	}
	defer body.Close() //nolint:errcheck // it was read to its end
	_, local = body.(interface{ Local() bool })
	got, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("read [%d,+%d): %v", off, n, err)
	}
	if !bytes.Equal(got, s.data[off:off+n]) {
		t.Fatalf("read [%d,+%d): other bytes than the store's", off, n)
	}
	return local
}

// filledDisk is a directory that holds all of s.
func filledDisk(t *testing.T, s *source) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "cache")
	d := openDisk(t, dir, 1<<20)
	readDisk(t, d, s, 0, s.version.Size)
	closeDisk(t, d)
	return dir
}

// blocks are the block files of a directory.
func blocks(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blocks"), func(path string, e iofs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "lock" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestDiskServesWhatItKeptAndNothingElse(t *testing.T) {
	for _, size := range []int{1, 64*kib - 1, 64 * kib, 64*kib + 1, 300 * kib} {
		s := newSource("f", size)
		dir := filledDisk(t, s)
		asked := len(s.fetches())
		d := openDisk(t, dir, 1<<20)
		for _, off := range []int64{0, 1, 64*kib - 1, 64 * kib, 65 * kib, 200 * kib} {
			for _, n := range []int64{1, 100, 64 * kib, 64*kib + 1, 200 * kib, 300 * kib} {
				if off+n <= s.version.Size && !readDisk(t, d, s, off, n) {
					t.Errorf("%d bytes: [%d,+%d) is not local", size, off, n)
				}
			}
		}
		if got := len(s.fetches()); got != asked {
			t.Errorf("%d bytes: %d further fetches", size, got-asked)
		}
		closeDisk(t, d)
	}
}

func TestDiskKeepsVersionsApart(t *testing.T) {
	s := newSource("f", 100*kib)
	dir := filledDisk(t, s)
	d := openDisk(t, dir, 1<<20)
	for what, change := range map[string]func(*cache.Version){
		"ETag":     func(v *cache.Version) { v.ETag = "2" },
		"key":      func(v *cache.Version) { v.Key = "g" },
		"bucket":   func(v *cache.Version) { v.Bucket = "c" },
		"bounds":   func(v *cache.Version) { v.Bucket, v.Key = "bf", "" },
		"no ETag":  func(v *cache.Version) { v.ETag = "" },
		"the size": func(v *cache.Version) { v.Size-- },
	} {
		other := newSource("f", 100*kib)
		change(&other.version)
		other.data = bytes.Repeat([]byte{1}, int(other.version.Size))
		if readDisk(t, d, other, 0, other.version.Size) {
			t.Errorf("another %s is served from the disk", what)
		}
	}
	if !readDisk(t, d, s, 0, 100*kib) {
		t.Error("the version itself is not served from the disk")
	}
}

func TestDiskKeepsStoresApart(t *testing.T) {
	s := newSource("f", 100*kib)
	dir := filledDisk(t, s)
	o := diskOptions()
	o.Store = "http://elsewhere"
	d, err := cache.OpenDisk(dir, 1<<20, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeDisk(t, d)
	if readDisk(t, d, s, 0, 100*kib) {
		t.Error("another store's block is served")
	}
}

func TestDiskServesTheLeadAndAsksForTheRest(t *testing.T) {
	s := newSource("f", 400*kib)
	dir := filepath.Join(t.TempDir(), "cache")
	d := openDisk(t, dir, 1<<20)
	readDisk(t, d, s, 0, 128*kib)
	closeDisk(t, d)
	d = openDisk(t, dir, 1<<20)
	if !readDisk(t, d, s, 10, 300*kib) {
		t.Error("the lead is not local")
	}
	want := []fetched{{0, 128 * kib}, {128 * kib, 172*kib + 10}}
	if got := s.fetches(); !slices.Equal(got, want) {
		t.Errorf("fetches: got %v, want %v", got, want)
	}
	if got := d.Stats(); got.Hits != 2 || got.Misses != 3 {
		t.Errorf("stats: %+v, want 2 hits and 3 misses", got)
	}
}

func TestDiskRefetchesWhatIsDamaged(t *testing.T) {
	for what, damage := range map[string]func(t *testing.T, path string, others []string){
		"a flipped bit": func(t *testing.T, path string, _ []string) {
			t.Helper()
			change(t, path, func(raw []byte) []byte { raw[len(raw)/2] ^= 4; return raw })
		},
		"a flipped bit of the header": func(t *testing.T, path string, _ []string) {
			t.Helper()
			change(t, path, func(raw []byte) []byte { raw[20] ^= 1; return raw })
		},
		"a torn end":    func(t *testing.T, path string, _ []string) { t.Helper(); truncate(t, path, 30*kib) },
		"an empty file": func(t *testing.T, path string, _ []string) { t.Helper(); truncate(t, path, 0) },
		"a header alone": func(t *testing.T, path string, _ []string) {
			t.Helper()
			truncate(t, path, 64)
		},
		"zeroes": func(t *testing.T, path string, _ []string) {
			t.Helper()
			change(t, path, func(raw []byte) []byte { return make([]byte, len(raw)) })
		},
		"another block": func(t *testing.T, path string, others []string) {
			t.Helper()
			swap := path + "~"
			must(t, os.Rename(path, swap))
			must(t, os.Rename(others[len(others)-1], path))
			must(t, os.Rename(swap, others[len(others)-1]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSource("f", 256*kib)
			dir := filledDisk(t, s)
			files := blocks(t, dir)
			if len(files) != 4 {
				t.Fatalf("%d files, want 4", len(files))
			}
			damage(t, files[0], files)
			for round, n := range []int64{64 * kib, 100, 64 * kib} { // by whole blocks, and by a part
				d := openDisk(t, dir, 1<<20)
				for off := int64(0); off < 256*kib; off += 64 * kib {
					readDisk(t, d, s, off, n)
				}
				if got := d.Stats().Corrupt; (got > 0) != (round == 0) {
					t.Errorf("round %d: %d blocks were damaged", round, got)
				}
				closeDisk(t, d)
			}
			damage(t, files[0], files)
			d := openDisk(t, dir, 1<<20)
			for off := int64(0); off < 256*kib; off += 64 * kib {
				readDisk(t, d, s, off+10, 100)
			}
			if d.Stats().Corrupt == 0 {
				t.Error("parts of blocks: nothing was damaged")
			}
		})
	}
}

func change(t *testing.T, path string, edit func([]byte) []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, edit(raw), 0o600))
}

func truncate(t *testing.T, path string, n int64) {
	t.Helper()
	must(t, os.Truncate(path, n))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDiskIsBoundedAndDropsTheLeastRecentlyUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	const limit = 8 * 68 * kib // eight blocks, with their headers in units of 4 KiB
	s := newSource("f", 64*kib*16)
	d := openDisk(t, dir, limit)
	for i := range int64(8) {
		readDisk(t, d, s, i*64*kib, 64*kib)
	}
	await(t, "eight blocks", func() bool { return d.Stats().Written == 8 })
	readDisk(t, d, s, 0, 64*kib)        // used again
	readDisk(t, d, s, 8*64*kib, 64*kib) // one too many
	await(t, "nine blocks", func() bool { return d.Stats().Written == 9 })
	if !readDisk(t, d, s, 0, 64*kib) || readDisk(t, d, s, 64*kib, 64*kib) {
		t.Error("not the least recently used block went")
	}
	closeDisk(t, d)
	if got := usage(t, dir); got > limit {
		t.Errorf("the directory takes %d bytes, want at most %d", got, limit)
	}

	d = openDisk(t, dir, limit/4)
	await(t, "a smaller limit", func() bool { return d.Stats().Evicted == 6 })
	readDisk(t, d, s, 9*64*kib, 64*kib)
	closeDisk(t, d)
	if got := usage(t, dir); got > limit/4 {
		t.Errorf("under a smaller limit the directory takes %d bytes, want at most %d", got, limit/4)
	}
}

func usage(t *testing.T, dir string) (total int64) {
	t.Helper()
	for _, path := range blocks(t, dir) {
		info, err := os.Stat(path)
		must(t, err)
		total += (info.Size() + 4095) / 4096 * 4096
	}
	return total
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not in time", what)
		}
	}
}

func TestDiskIsOneCachesAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first := openDisk(t, dir, 1<<20)
	_, err := cache.OpenDisk(dir, 1<<20, diskOptions())
	if !errors.Is(err, cache.ErrDiskInUse) || !strings.Contains(err.Error(), "/mnt/other") || !strings.Contains(err.Error(), "unmount") {
		t.Errorf("a second one: %v, want ErrDiskInUse, the owner and the remedy", err)
	}
	closeDisk(t, first)
	openDisk(t, dir, 1<<20)
}

func TestDiskWhereNoDirectoryCanBe(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "link")))
	for _, path := range []string{
		filepath.Join(dir, "file"), filepath.Join(dir, "file", "x"), filepath.Join(dir, "link"),
		filepath.Join(dir, strings.Repeat("x", 256)), "/dev/null/x", "/proc", "/proc/x/y",
	} {
		if d, err := cache.OpenDisk(path, 1<<20, diskOptions()); !errors.Is(err, cache.ErrDiskUnsafe) {
			t.Errorf("%.300s: %v, want ErrDiskUnsafe", path, err)
			if err == nil {
				closeDisk(t, d)
			}
		}
	}
}

func TestDiskIsPrivate(t *testing.T) {
	s := newSource("secret-name", 100*kib)
	dir := filledDisk(t, s)
	err := filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		if strings.Contains(strings.TrimPrefix(path, dir), "secret") {
			t.Errorf("%s tells the key", path)
		}
		return err
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if _, err := cache.OpenDisk(filepath.Join(dir, "file"), 1<<20, diskOptions()); !errors.Is(err, cache.ErrDiskUnsafe) {
		t.Errorf("a file as the directory: %v, want ErrDiskUnsafe", err)
	}
	must(t, os.Chmod(filepath.Join(dir, "blocks"), 0o755))
	openDisk(t, dir, 1<<20)
	if info, err := os.Stat(filepath.Join(dir, "blocks")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the blocks' directory: %v, %v", info.Mode(), err)
	}
}

func TestDiskWithoutMemoryKeepsNothing(t *testing.T) {
	o := diskOptions()
	o.Budget = budget.New(64 * kib)
	d, err := cache.OpenDisk(filepath.Join(t.TempDir(), "cache"), 1<<20, o)
	must(t, err)
	s := newSource("f", 300*kib)
	readDisk(t, d, s, 0, 300*kib)
	closeDisk(t, d)
	if got := d.Stats(); got.Written != 0 || got.Dropped != 5 {
		t.Errorf("stats: %+v, want 5 dropped and none written", got)
	}
}

func TestDiskGivesMemoryBack(t *testing.T) {
	o := diskOptions()
	d, err := cache.OpenDisk(filepath.Join(t.TempDir(), "cache"), 1<<20, o)
	must(t, err)
	s := newSource("f", 300*kib)
	s.answer = func(_ context.Context, call int, want []byte) (io.ReadCloser, error) {
		if call == 0 {
			return &body{rest: want[:70*kib], err: errStore}, nil
		}
		return &body{rest: want}, nil
	}
	fetch := d.Fetch(s.version, s.fetch)
	cut, err := fetch(t.Context(), 0, 300*kib)
	must(t, err)
	if _, err := io.ReadAll(cut); !errors.Is(err, errStore) {
		t.Errorf("a body that fails: %v", err)
	}
	must(t, cut.Close())
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() { readDisk(t, d, s, 0, 300*kib) })
	}
	readers.Wait()
	closeDisk(t, d)
	if got := o.Budget.Used(); got != 0 {
		t.Errorf("%d bytes of the budget are held after all", got)
	}
}

// TestDiskThatFails: a directory below a file is as good as a disk that fails.
func TestDiskThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var log bytes.Buffer
	o := diskOptions()
	o.Log, o.Retry = slog.New(slog.NewTextHandler(&log, nil)), 10*time.Millisecond
	d, err := cache.OpenDisk(dir, 1<<20, o)
	must(t, err)
	s := newSource("f", 300*kib)
	must(t, os.RemoveAll(filepath.Join(dir, "blocks")))
	must(t, os.WriteFile(filepath.Join(dir, "blocks"), nil, 0o600))
	for range 3 {
		readDisk(t, d, s, 0, 300*kib)
	}
	await(t, "the failure", func() bool { return d.Stats().Failed != "" })
	must(t, os.Remove(filepath.Join(dir, "blocks")))
	await(t, "the recovery", func() bool { return d.Stats().Failed == "" })
	readDisk(t, d, s, 0, 300*kib)
	await(t, "blocks", func() bool { return d.Stats().Blocks == 5 })
	if !readDisk(t, d, s, 0, 300*kib) {
		t.Error("not served from a disk that works again")
	}
	closeDisk(t, d)
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log.String())
	}
}

// TestBeginTellsADiskFromTheStore: Begin tells that the store was not asked.
func TestBeginTellsADiskFromTheStore(t *testing.T) {
	for name, memory := range map[string]int64{"with memory": 1 << 20, "without": 0} {
		t.Run(name, func(t *testing.T) {
			s := newSource("f", 100*kib)
			d := openDisk(t, filledDisk(t, s), 1<<20)
			c := cache.New(cache.Options{Budget: budget.New(memory), BlockSize: 64 * kib})
			defer c.Close()
			h := c.Open(s.version, d.Fetch(s.version, s.fetch))
			defer h.Close()
			if asked, err := h.Begin(t.Context(), false); asked || err != nil {
				t.Errorf("on the disk: asked %v, %v, want false", asked, err)
			}
			other := newSource("g", 100*kib)
			g := c.Open(other.version, d.Fetch(other.version, other.fetch))
			defer g.Close()
			if asked, err := g.Begin(t.Context(), false); !asked || err != nil {
				t.Errorf("not on the disk: asked %v, %v, want true", asked, err)
			}
			checkRead(t, h, s, 0, 100*kib)
		})
	}
}

// TestDiskPutsBlocksTogether: fetches end within blocks.
func TestDiskPutsBlocksTogether(t *testing.T) {
	s := newSource("f", 300*kib)
	d := openDisk(t, filepath.Join(t.TempDir(), "cache"), 1<<20)
	for _, part := range [][2]int64{{70, 130}, {200, 100}, {0, 40}, {30, 50}} { // overlapping, and in no order
		readDisk(t, d, s, part[0]*kib, part[1]*kib)
	}
	await(t, "all blocks", func() bool { return d.Stats().Written == 5 })
	asked := len(s.fetches())
	if !readDisk(t, d, s, 0, 300*kib) || len(s.fetches()) != asked {
		t.Error("not all is served from the disk")
	}
	readDisk(t, d, newSource("g", 300*kib), 10*kib, 20*kib) // from the middle of a block: nobody brings the rest
	if got := d.Stats(); got.Dropped != 0 || got.Pending != 0 {
		t.Errorf("stats: %+v", got)
	}
}
