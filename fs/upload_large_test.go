package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Files that one request cannot take, and such as change while they go up.

// largeParts keeps large objects to some hundred parts: versitygw notes the sizes
// of all parts in an extended attribute, which on ext4 has 4 KiB, and completes no
// upload of 768 there.
const largeParts = "--part-size=128MiB"

const gib = 1 << 30

// large mounts a lake in a bucket for a test of gigabytes, which takes minutes.
// The store may put an object's parts together for minutes.
func large(t *testing.T, o mounttest.Options) *mounttest.Lake {
	t.Helper()
	if os.Getenv(largeVariable) == "" {
		t.Skipf("set %s (make test-large): it takes minutes, and tens of GB", largeVariable)
	}
	o.S3, o.Tables = true, []mounttest.Table{text("t", nil)}
	o.Flags = append(o.Flags, "--io-timeout=15m")
	return mounttest.Mount(t, o)
}

// TestLargeUploadTwentyGiB: an object of four times what one PUT takes, from a file
// of holes, whose spool is one of holes too.
func TestLargeUploadTwentyGiB(t *testing.T) {
	const size = 20 * gib
	l := large(t, mounttest.Options{Timeout: 50 * time.Minute, Flags: []string{largeParts}})
	source := filepath.Join(t.TempDir(), "holes")
	l.MustSh(fmt.Sprintf(`truncate -s %d %s`, int64(size), source))
	peak := watchSpool(t, l)
	l.MustSh(`dd if=` + source + ` of=db/t/f bs=4M conv=sparse,fsync status=none`)
	if got := peak(); got > gib {
		t.Errorf("the spool of %d zeros took %d bytes, want less than %d", int64(size), got, gib)
	}
	wantLarge(t, l, "db/t/f", size, sumOf(t, io.LimitReader(zeros{}, size)))
	if got, want := l.MustSh(`tail -c 5 db/t/f | xxd -p; stat -c %s db/t/f`), fmt.Sprintf("0000000000\n%d\n", int64(size)); got != want {
		t.Errorf("through the mount: %q, want %q", got, want)
	}
}

// TestLargeUploadSixGiB: written byte by byte, more than one PUT takes.
func TestLargeUploadSixGiB(t *testing.T) {
	l := large(t, mounttest.Options{Timeout: 30 * time.Minute, Flags: []string{largeParts}})
	source := filepath.Join(t.TempDir(), "six")
	// Zeros, with other bytes in every 64 MiB and at the very end.
	want := l.MustSh(`truncate -s 6G ` + source + `; for i in $(seq 0 64 6143) 6143; do
		dd if=/dev/urandom of=` + source + ` bs=1M count=1 seek=$i conv=notrunc status=none; done; sha256sum < ` + source)
	l.MustSh(`dd if=` + source + ` of=db/t/f bs=1M status=none`)
	wantLarge(t, l, "db/t/f", 6*gib, want[:2*sha256.Size])
	if got := l.MustSh(`sha256sum < db/t/f`); got != want {
		t.Errorf("through the mount: %s, want %s", got, want)
	}
}

// TestLargeUploadChangesUnderWay: a file that is patched, cut and made longer while
// its parts go up is the file that it is at the end.
func TestLargeUploadChangesUnderWay(t *testing.T) {
	const mib = 1 << 20
	l := large(t, mounttest.Options{Faulty: true, Timeout: 10 * time.Minute})
	mirror := create(t, filepath.Join(t.TempDir(), "mirror"))
	f := create(t, l.Path("db/t/f"))
	both := func(what string, op func(*os.File) error) {
		t.Helper()
		err := errors.Join(op(mirror), l.Do(what, func() error { return op(f) }))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	random := rand.NewChaCha8([32]byte{1})
	write := func(off, n int64) {
		t.Helper()
		for end := off + n; off < end; off += mib {
			p := make([]byte, min(mib, end-off))
			_, _ = random.Read(p) // never fails
			both("write", func(f *os.File) error { _, err := f.WriteAt(p, off); return err })
		}
	}
	parts := func(n int) {
		t.Helper()
		l.Eventually(fmt.Sprintf("%d parts", n), 2*time.Minute, func() bool { return l.Proxy.Count("UploadPart") >= n })
	}
	write(0, 64*mib)
	parts(4)
	write(100, 10) // the front, whose part is up
	write(64*mib, 64*mib)
	both("cut", func(f *os.File) error { return f.Truncate(40*mib + 7) })
	write(30*mib, 3*mib)
	both("make longer", func(f *os.File) error { return f.Truncate(90 * mib) })
	write(100*mib, 200*mib)
	write(5, 1)
	before := l.Proxy.Count("UploadPart")
	both("close", func(f *os.File) error { return mounttest.NoFork(f.Close) })
	want := l.MustSh(`sha256sum < ` + mirror.Name())
	wantLarge(t, l, "db/t/f", 300*mib, want[:2*sha256.Size])
	if got := l.MustSh(`sha256sum < db/t/f`); got != want {
		t.Errorf("through the mount: %s, want %s", got, want)
	}
	wantFirstPartAgain(t, l, before)
}

// wantFirstPartAgain asserts that the part at the front went up more than once, and
// that the close did not send everything.
func wantFirstPartAgain(t *testing.T, l *mounttest.Lake, before int) {
	t.Helper()
	first, all := 0, l.Proxy.Count("UploadPart")
	for _, r := range l.Proxy.Log() {
		if r.Op == "UploadPart" && r.Query.Get("partNumber") == "1" {
			first++
		}
	}
	if first < 2 {
		t.Errorf("part 1 was sent %d times, want once more after it was changed", first)
	}
	if before < all/4 {
		t.Errorf("%d of %d parts went up before the close", before, all)
	}
	if n := l.Proxy.Count("CompleteMultipartUpload"); n != 1 {
		t.Errorf("%d completions, want 1", n)
	}
}

// wantLarge asserts size and sum of a file, where the store keeps it.
func wantLarge(t *testing.T, l *mounttest.Lake, name string, size int64, sum string) {
	t.Helper()
	info, err := l.StoredInfo(name)
	if err != nil || info.Size != size {
		t.Errorf("in the store: %d bytes, %v, want %d", info.Size, err, size)
	}
	f, err := os.Open(l.Window(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if got := sumOf(t, f); got != sum {
		t.Errorf("in the store: %s, want %s", got, sum)
	}
}

// sumOf is the SHA-256 of all that r has.
func sumOf(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // where the test did not come so far
	return f
}

// watchSpool looks at what the staging directory takes up on disk, until the
// returned function is called, which tells the most.
func watchSpool(t *testing.T, l *mounttest.Lake) (peak func() int64) {
	t.Helper()
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), allocated(l.Staged())))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	end := func() { close(stop); <-done }
	ended := false
	t.Cleanup(func() {
		if !ended {
			end()
		}
	})
	return func() int64 {
		ended = true
		end()
		return most.Load()
	}
}

// allocated is what the files below dir take up on disk, as far as they stay.
func allocated(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error { // what goes meanwhile counts no more
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		if info, err := e.Info(); err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}
