package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const testPart = 1000 // bytes; no multiple of anything

// pattern is n bytes, other ones for each seed.
func pattern(seed, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(seed*31 + i*7 + i/251)
	}
	return p
}

func (e *env) final(tb testing.TB) *File {
	tb.Helper()
	return e.create(tb, NewWrite{Target: e.loc("f"), Final: true, Cond: objectstore.Cond{IfNoneMatch: true}})
}

func put(tb testing.TB, f *File, off int, data []byte) {
	tb.Helper()
	if n, err := f.WriteAt(tb.Context(), data, int64(off)); n != len(data) || err != nil {
		tb.Fatalf("WriteAt(%d): %d, %v", off, n, err)
	}
}

// wantLog compares the requests since the last look, in any order.
func (c *cloud) wantLog(tb testing.TB, when string, want ...string) {
	tb.Helper()
	slices.Sort(want)
	if got := c.take(); !slices.Equal(got, want) {
		tb.Errorf("%s: requests %q, want %q", when, got, want)
	}
}

func (c *cloud) wantObject(tb testing.TB, e *env, want []byte) {
	tb.Helper()
	if got := c.content(e.loc("f")); !bytes.Equal(got, want) {
		tb.Errorf("the object has %d bytes, want %d, or others", len(got), len(want))
	}
	if left := c.left(); len(left) > 0 {
		tb.Errorf("uploads %q are left", left)
	}
	if got := names(tb, e.dir); !slices.Equal(got, []string{"lock"}) {
		tb.Errorf("the staging directory has %q", got)
	}
}

func TestPartsGoUpWhileTheFileIsWritten(t *testing.T) {
	c, e := newCloud(t, testPart)
	f := e.final(t)
	want := pattern(1, 10*testPart+17)
	put(t, f, 0, want[:2*testPart-1])
	e.quiet(t)
	c.wantLog(t, "under two parts")
	for off := 2*testPart - 1; off < len(want); off += 333 {
		put(t, f, off, want[off:min(off+333, len(want))])
	}
	e.quiet(t)
	c.wantLog(t, "ten parts", "create", "part 1", "part 10", "part 2", "part 3", "part 4", "part 5", "part 6", "part 7", "part 8", "part 9")
	if got := f.Uploaded(); got != 10*testPart {
		t.Errorf("Uploaded: %d", got)
	}
	c.publishFile(t, f)
	c.wantLog(t, "publish", "part 11", "complete")
	c.wantObject(t, e, want)
	if got := readAll(t, f); !bytes.Equal(got, want) || f.Dirty() || f.Uploaded() != 0 {
		t.Error("the file reads otherwise after its publish")
	}
}

func TestSmallFilesAreOnePut(t *testing.T) {
	c, e := newCloud(t, testPart)
	for _, size := range []int{0, 1, testPart, 2*testPart - 1} {
		f := e.final(t)
		put(t, f, 0, pattern(2, size))
		c.publishFile(t, f)
		e.quiet(t)
		c.wantLog(t, fmt.Sprint(size))
		c.wantObject(t, e, pattern(2, size))
	}
}

func TestNothingGoesUpBehindWhoIsNotFinal(t *testing.T) {
	c, e := newCloud(t, testPart)
	f := e.create(t, NewWrite{Target: e.loc("f")})
	put(t, f, 0, pattern(1, 5*testPart))
	e.quiet(t)
	c.wantLog(t, "a temporary name")
	base := e.object(t, pattern(2, 3*testPart))
	g := e.create(t, NewWrite{Target: e.loc("f"), Base: &base, Final: true})
	put(t, g, 0, pattern(1, 5*testPart))
	put(t, g, 7*testPart, pattern(1, 5*testPart))
	e.quiet(t)
	c.wantLog(t, "over an older object, with a gap", "create", "part 1", "part 2", "part 3", "part 4", "part 5")
}

// TestChangedPartsAreSentAgain: by the publish, once, and no others.
func TestChangedPartsAreSentAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f *File, want []byte) ([]byte, error)
		parts  []string
	}{
		{"nothing", func(_ *File, want []byte) ([]byte, error) { return want, nil }, nil},
		{"a patch at the front", func(f *File, want []byte) ([]byte, error) {
			copy(want, "head")
			_, err := f.WriteAt(t.Context(), []byte("head"), 0)
			return want, err
		}, []string{"part 1"}},
		{"a patch over a border", func(f *File, want []byte) ([]byte, error) {
			copy(want[2*testPart-1:], "xy")
			_, err := f.WriteAt(t.Context(), []byte("xy"), 2*testPart-1)
			return want, err
		}, []string{"part 2", "part 3"}},
		{"cut and grown", func(f *File, want []byte) ([]byte, error) {
			err := errors.Join(f.Truncate(t.Context(), 3*testPart+5), f.Truncate(t.Context(), 5*testPart))
			return append(want[:3*testPart+5:3*testPart+5], make([]byte, 2*testPart-5)...), err
		}, []string{"part 4", "part 5"}},
		{"cut at a border", func(f *File, want []byte) ([]byte, error) {
			return want[:3*testPart], f.Truncate(t.Context(), 3*testPart)
		}, nil},
		{"allocated over", func(f *File, want []byte) ([]byte, error) {
			return want, f.Allocate(t.Context(), 1, 1, true)
		}, []string{"part 1"}},
		{"cut and written on", func(f *File, want []byte) ([]byte, error) {
			err := f.Truncate(t.Context(), 4*testPart+1)
			if err == nil {
				_, err = f.WriteAt(t.Context(), pattern(9, 3*testPart), 4*testPart+1)
			}
			return append(want[:4*testPart+1:4*testPart+1], pattern(9, 3*testPart)...), err
		}, []string{"part 5", "part 6", "part 7", "part 8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, e := newCloud(t, testPart)
			f := e.final(t)
			want := pattern(1, 6*testPart)
			put(t, f, 0, want)
			e.quiet(t)
			c.wantLog(t, "written", "create", "part 1", "part 2", "part 3", "part 4", "part 5", "part 6")
			want, err := tt.change(f, want)
			if err != nil {
				t.Fatal(err)
			}
			e.quiet(t)
			behind := c.take()
			c.publishFile(t, f)
			got := slices.Sorted(slices.Values(append(behind, c.take()...)))
			if want := append([]string{"complete"}, tt.parts...); !slices.Equal(got, want) {
				t.Errorf("requests %q, want %q", got, want)
			}
			c.wantObject(t, e, want)
		})
	}
}

// blocker makes requests of op wait until they are let go.
type blocker struct {
	op      string
	arrived chan int
	letGo   chan struct{}
	once    sync.Once
}

func (c *cloud) block(tb testing.TB, op string) *blocker {
	tb.Helper()
	b := &blocker{op: op, arrived: make(chan int, 1000), letGo: make(chan struct{})}
	c.hook(b.before)
	tb.Cleanup(b.release)
	return b
}

func (b *blocker) before(ctx context.Context, op string, number int) error {
	if op != b.op {
		return nil
	}
	b.arrived <- number
	select {
	case <-b.letGo:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *blocker) release() { b.once.Do(func() { close(b.letGo) }) }

func (b *blocker) wait(tb testing.TB, n int) {
	tb.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range n {
			<-b.arrived
		}
	}()
	within(tb, done, b.op)
}

// TestAWriterWaitsForNoStore, and what it changes of a part that is under way is
// sent again: half of it was read before.
func TestAWriterWaitsForNoStore(t *testing.T) {
	c, e := newCloud(t, testPart)
	b := c.block(t, "part")
	f := e.final(t)
	want := pattern(1, 12*testPart)
	put(t, f, 0, want[:8*testPart])
	b.wait(t, 4)                             // Options.Parallel
	put(t, f, 8*testPart, want[8*testPart:]) // while nothing moves
	copy(want[testPart:], "others")
	put(t, f, testPart, []byte("others")) // part 2, under way
	copy(want[6*testPart:], "others")
	put(t, f, 6*testPart, []byte("others")) // part 7, which waits
	b.release()
	e.quiet(t)
	c.wantLog(t, "written", "create", "part 1", "part 2", "part 3", "part 4", "part 5", "part 6", "part 8", "part 9", "part 10", "part 11", "part 12")
	c.publishFile(t, f)
	c.wantLog(t, "publish", "part 2", "part 7", "complete")
	c.wantObject(t, e, want)
}

// TestAStoreThatIsDownIsLeftAlone after a few failures, with one line in the log.
func TestAStoreThatIsDownIsLeftAlone(t *testing.T) {
	for _, op := range []string{"create", "part"} {
		t.Run(op, func(t *testing.T) {
			c, e := newCloud(t, testPart)
			var log bytes.Buffer
			e.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
			e.reopen(t)
			var asked atomic.Int64
			c.hook(func(_ context.Context, o string, _ int) error {
				if o != op {
					return nil
				}
				asked.Add(1)
				return objectstore.ErrUnavailable
			})
			f := e.final(t)
			want := pattern(1, 50*testPart)
			for off := 0; off < len(want); off += testPart {
				put(t, f, off, want[off:off+testPart])
			}
			e.quiet(t)
			if n := asked.Load(); n == 0 || n > maxFailures+int64(e.opts.Parallel) {
				t.Errorf("%d requests of a store that is down", n)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d lines in the log, want 1: %s", n, log.String())
			}
			z := freeze(t, f)
			if _, _, err := z.Upload(t.Context()); !errors.Is(err, objectstore.ErrUnavailable) {
				t.Errorf("Upload: %v", err)
			}
			c.hook(nil)
			if err := c.publish(t.Context(), z); err != nil {
				t.Fatal(err)
			}
			z.Release()
			c.wantObject(t, e, want)
		})
	}
}

func TestCloseEndsParts(t *testing.T) {
	c, e := newCloud(t, testPart)
	b := c.block(t, "part")
	f := e.final(t)
	put(t, f, 0, pattern(1, 20*testPart))
	b.wait(t, 4)
	done := make(chan struct{})
	go func() { defer close(done); _ = e.area.Close() }()
	within(t, done, "Close")
	e.open(t)
	if rec := only(t, e.area).Record(); len(rec.Aborts) != 1 || rec.Upload != nil {
		t.Errorf("record of the next mount: %+v", rec)
	}
	if err := e.area.AbortUploads(t.Context()); err != nil || len(c.left()) > 0 {
		t.Errorf("AbortUploads: %v, left %q", err, c.left())
	}
	if _, err := os.Stat(e.area.path(f.ID())); err != nil {
		t.Errorf("the bytes went with the upload: %v", err)
	}
}
