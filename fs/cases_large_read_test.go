package fs_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Case 67: pieces of a large object cost what they are, not what it is.

const tenGiB = 10 * gib

// tenGiBs mounts db.t of objects of 10 GiB: the head is gzip's, the rest zeros but
// for the end and a piece each 64 MiB.
func tenGiBs(t *testing.T, names ...string) *mounttest.Lake {
	t.Helper()
	l := mounttest.New(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", nil)}, Flags: longTTL, Timeout: 2 * time.Minute,
	})
	random := rand.New(rand.NewPCG(67, 67)) //nolint:gosec // the same bytes each time
	lines := make([]byte, 0, 6<<20)
	for len(lines) < 6<<20 {
		lines = fmt.Appendf(lines, "%x %x\n", random.Uint64(), random.Uint64())
	}
	pieces := map[int64]string{0: string(gzipped(t, string(lines)))}
	for at := int64(64 << 20); at < tenGiB; at += 64 << 20 {
		pieces[at] = numbered('p', 4096)
	}
	for _, name := range names {
		pieces[tenGiB-100_000] = numbered('e', 100_000-8) + "the end\n"
		putSparse(t, l, "db/t/"+name, tenGiB, pieces)
	}
	l.Start()
	return l
}

func TestCase67PiecesOfALargeObjectOnS3(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	scripts := map[string]struct {
		script string
		most   int64 // bytes of the object that are fetched
	}{
		"head": {`head -c 100 %s | md5sum`, 8 * mib},
		"file": {`file -b %s`, 46 * mib}, // it reads 7 MiB at each end, and is read ahead of for 32
		"tail": {`tail -c 8 %s`, 8 * mib},
		"zcat": {`zcat <%s 2>/dev/null | head -1`, 8 * mib},
		"dd":   {`dd if=%s bs=4k skip=1638400 count=2 status=none | md5sum`, 8 * mib},
		"size": {`stat -c %%s %s`, 0},
	}
	var names []string
	for name := range scripts {
		names = append(names, name)
	}
	l := tenGiBs(t, names...)
	l.MustSh(`ls -l db/t`)
	w := watch(l)
	for name, c := range scripts {
		got := l.MustSh(fmt.Sprintf(c.script, "db/t/"+name))
		if want := l.MustSh(fmt.Sprintf(c.script, l.Window("db/t/"+name))); got != want {
			t.Errorf("%s of 10 GiB: %s, want %s", name, brief(got), brief(want))
		}
		w.quiet(l)
		n := w.fetched(l, "db/t/"+name)
		t.Logf("%s: %d bytes by %d GETs", name, n, len(w.gets(l, "db/t/"+name)))
		if n > c.most {
			t.Errorf("%s: %d bytes were fetched, want %d at most\n%s", name, n, c.most, w)
		}
	}
}

// readPieces reads pieces of a file by their offset, and holds them against the
// store's.
func readPieces(t *testing.T, l *mounttest.Lake, name string, pieces [][2]int64) {
	t.Helper()
	window, err := os.Open(l.Window(name))
	if err != nil {
		t.Fatal(err)
	}
	err = l.Do("read pieces of "+name, func() (err error) {
		var f *os.File
		if f, err = os.Open(l.Path(name)); err != nil {
			return err
		}
		for _, p := range pieces {
			got, want := make([]byte, p[1]), make([]byte, p[1])
			_, gerr := f.ReadAt(got, p[0])
			_, werr := window.ReadAt(want, p[0])
			if gerr != nil || werr != nil || string(got) != string(want) {
				err = errors.Join(err, gerr, werr, fmt.Errorf("%d bytes at %d", p[1], p[0]))
			}
		}
		return errors.Join(err, f.Close())
	})
	if err = errors.Join(err, window.Close()); err != nil {
		t.Error(err)
	}
}

// A reader of Parquet: the last bytes, the footer before them, then columns anywhere.
func TestCase67ParquetPatternOnS3(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	l := tenGiBs(t, "f")
	l.MustSh(`ls -l db/t`)
	w := watch(l)
	pieces := [][2]int64{{tenGiB - 8, 8}, {tenGiB - 60_000, 60_000 - 8}}
	random := rand.New(rand.NewPCG(6, 7)) //nolint:gosec // the same places each time
	var used int64
	for range 20 {
		pieces = append(pieces, [2]int64{random.Int64N(tenGiB - 2*mib), mib})
	}
	for _, p := range pieces {
		used += p[1]
	}
	readPieces(t, l, "db/t/f", pieces)
	w.quiet(l)
	n := w.fetched(l, "db/t/f")
	t.Logf("%d bytes of %d by %d GETs", n, used, len(w.gets(l, "db/t/f")))
	if n > 2*used {
		t.Errorf("%d bytes were fetched for %d that were read\n%s", n, used, w)
	}
}

// tripTime is what a request takes at least in a test that counts round trips: those
// that are sent at once are then so on a busy machine too.
const tripTime = 400 * time.Millisecond

func TestCase67RoundTripsToTheFirstByteOnS3(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		known bool
		most  int
	}{"a directory that is known": {true, 2}, "a cold mount": {false, 4}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := tenGiBs(t, "f", "g")
			if c.known {
				l.MustSh(`ls -l db/t`)
			}
			for _, at := range []int64{0, tenGiB - 100} {
				w := watch(l)
				l.Proxy.Add(faulty.Rule{Fault: faulty.Delay{FirstByte: tripTime}})
				name := map[int64]string{0: "db/t/f"}[at]
				if name == "" {
					name = "db/t/g"
				}
				var first time.Time
				err := l.Do("first bytes of "+name, func() error {
					f, err := os.Open(l.Path(name))
					if err != nil {
						return err
					}
					var b [1]byte
					_, err = f.ReadAt(b[:], at)
					first = time.Now()
					return errors.Join(ignoreEOF(err), f.Close())
				})
				if err != nil {
					t.Fatal(err)
				}
				n := w.trips(first)
				t.Logf("%s at %d: %d round trips", what, at, n)
				if n > c.most || n == 0 {
					t.Errorf("%s at %d: %d round trips to the first byte, want 1 to %d\n%s", what, at, n, c.most, w)
				}
				w.quiet(l)
				l.Proxy.Clear()
			}
		})
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
