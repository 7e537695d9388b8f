package cache_test

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

func TestReadAtAtEveryBoundary(t *testing.T) {
	for _, size := range []int{0, 1, 64*kib - 1, 64 * kib, 64*kib + 1, 300 * kib} {
		c, _ := newCache(t, 16)
		s := newSource("f", size)
		h := open(t, c, s)
		for _, off := range []int{0, 1, 64*kib - 1, 64 * kib, 64*kib + 1, 128 * kib, size - 1, size, size + 1, size + 1<<40} {
			for _, n := range []int{0, 1, 2, 64 * kib, 64*kib + 1, 200 * kib, 400 * kib} {
				if off < 0 || n == 0 {
					continue
				}
				checkRead(t, h, s, off, n)
			}
		}
	}
}

func TestReadAtOfNothingAndOfNegativeOffsets(t *testing.T) {
	c, _ := newCache(t, 4)
	s := newSource("f", 10)
	h := open(t, c, s)
	if n, err := h.ReadAt(t.Context(), nil, 100); n != 0 || err != nil {
		t.Errorf("empty read: got %d, %v, want 0, nil", n, err)
	}
	if _, err := h.ReadAt(t.Context(), make([]byte, 1), -1); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("negative offset: got %v, want ErrInvalid", err)
	}
	if got := s.fetches(); len(got) != 0 {
		t.Errorf("fetches: got %v, want none", got)
	}
}

func TestBlocksAreFetchedOnceAndSharedByHandles(t *testing.T) {
	c, _ := newCache(t, 16)
	s := newSource("f", 100*kib)
	a, b := open(t, c, s), open(t, c, s)
	checkRead(t, a, s, 10, 100)
	checkRead(t, b, s, 20, 100)
	checkRead(t, b, s, 70*kib, 100)
	a.Close()
	checkRead(t, b, s, 0, 100*kib)
	want := []fetched{{0, 64 * kib}, {64 * kib, 36 * kib}}
	if got := s.fetches(); !slices.Equal(got, want) {
		t.Errorf("fetches: got %v, want %v", got, want)
	}
	got := c.Stats()
	if got.Hits != 3 || got.Misses != 2 || got.Fetches != 2 || got.FetchedBytes != 100*kib || got.Blocks != 2 {
		t.Errorf("stats: got %+v", got)
	}
}

func TestBlocksOutliveTheirHandle(t *testing.T) {
	c, _ := newCache(t, 16)
	s := newSource("f", 10*kib)
	for range 3 {
		h := c.Open(s.version, s.fetch)
		checkRead(t, h, s, 0, 10*kib)
		h.Close()
	}
	if got := len(s.fetches()); got != 1 {
		t.Errorf("fetches: got %d, want 1", got)
	}
}

func TestVersionsDoNotShareBlocks(t *testing.T) {
	c, _ := newCache(t, 16)
	one, two := newSource("f", 10*kib), newSource("f", 10*kib+1)
	two.version.ETag = "2"
	checkRead(t, open(t, c, one), one, 0, 10*kib)
	checkRead(t, open(t, c, two), two, 0, 10*kib+1)
	checkRead(t, open(t, c, one), one, 0, 10*kib)
}

func TestSequentialReadsFetchSeveralBlocksAtOnce(t *testing.T) {
	c, _ := newCache(t, 64)
	s := newSource("f", 40*64*kib)
	h := open(t, c, s)
	for off := 0; off < len(s.data); off += 64 * kib {
		checkRead(t, h, s, off, 64*kib)
	}
	var total, largest int64
	for _, f := range s.fetches() {
		total += f.n
		largest = max(largest, f.n)
	}
	if total != int64(len(s.data)) {
		t.Errorf("bytes asked for: got %d, want %d", total, len(s.data))
	}
	if largest != 8*64*kib {
		t.Errorf("largest fetch: got %d, want %d", largest, 8*64*kib)
	}
	if got := len(s.fetches()); got > 12 {
		t.Errorf("fetches of 40 blocks: got %d, want at most 12", got)
	}
}

func TestOneLargeReadFetchesItsBlocksInRanges(t *testing.T) {
	c, _ := newCache(t, 64)
	s := newSource("f", 20*64*kib)
	checkRead(t, open(t, c, s), s, 0, len(s.data))
	want := []fetched{{0, 512 * kib}, {512 * kib, 512 * kib}, {1024 * kib, 256 * kib}}
	got := s.fetches()
	slices.SortFunc(got, func(a, b fetched) int { return int(a.off - b.off) })
	if !slices.Equal(got, want) {
		t.Errorf("fetches: got %v, want %v", got, want)
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c, b := newCache(t, 3)
	var sources []*source
	var handles []*cache.Handle
	for _, key := range []string{"a", "bb", "ccc", "dddd"} {
		s := newSource(key, 64*kib)
		sources, handles = append(sources, s), append(handles, open(t, c, s))
	}
	for _, i := range []int{0, 1, 2, 0, 3, 0, 2, 3, 1} { // 3 evicts 1; 1 evicts 0
		checkRead(t, handles[i], sources[i], 0, 64*kib)
		if b.Used() > b.Max() {
			t.Fatalf("memory: got %d of %d", b.Used(), b.Max())
		}
	}
	for i, want := range []int{1, 2, 1, 1} {
		if got := len(sources[i].fetches()); got != want {
			t.Errorf("fetches of %s: got %d, want %d", sources[i].version.Key, got, want)
		}
	}
	if got := c.Stats().Evictions; got != 2 {
		t.Errorf("evictions: got %d, want 2", got)
	}
}

func TestSmallFilesTakeLittleMemory(t *testing.T) {
	c, b := newCache(t, 1)
	for _, key := range []string{"a", "bb", "ccc", "dddd"} {
		s := newSource(key, 5*kib)
		checkRead(t, open(t, c, s), s, 0, 5*kib)
	}
	if got, want := b.Used(), int64(4*8*kib); got != want {
		t.Errorf("memory of 4 files of 5 KiB: got %d, want %d", got, want)
	}
}

func TestDropForgetsAllVersionsOfAKey(t *testing.T) {
	c, b := newCache(t, 16)
	s, two, other := newSource("f", 100*kib), newSource("f", 64*kib), newSource("other", 64*kib)
	two.version.ETag = "2"
	h := open(t, c, s)
	for _, src := range []*source{s, two, other} {
		checkRead(t, open(t, c, src), src, 0, 64*kib)
	}
	c.Drop("b", "f")
	c.Drop("b", "nothing")
	if got, want := b.Used(), int64(64*kib); got != want {
		t.Errorf("memory after Drop: got %d, want %d", got, want)
	}
	checkRead(t, h, s, 0, 64*kib)
	if got := len(s.fetches()); got != 2 {
		t.Errorf("fetches of a dropped key by a living handle: got %d, want 2", got)
	}
}

func TestMemoryGoesToWhoWaitsForIt(t *testing.T) {
	c, b := newCache(t, 4)
	s := newSource("f", 4*64*kib)
	checkRead(t, open(t, c, s), s, 0, len(s.data))
	if got := b.Used(); got != b.Max() {
		t.Fatalf("memory: got %d, want all of %d", got, b.Max())
	}
	if err := b.Acquire(t.Context(), 100*kib, budget.Write); err != nil {
		t.Fatal(err)
	}
	b.Release(100 * kib)
	if got := c.Stats().Blocks; got != 2 {
		t.Errorf("blocks left: got %d, want 2", got)
	}
}

func TestWithoutMemoryReadsGoPastTheCache(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"zero options":     {},
		"less than needed": {Budget: budget.New(64*kib - 1), BlockSize: 64 * kib},
	} {
		t.Run(name, func(t *testing.T) {
			c := cache.New(o)
			defer c.Close()
			s := newSource("f", 300*kib)
			h := open(t, c, s)
			for range 2 {
				checkRead(t, h, s, 0, 200*kib)
				checkRead(t, h, s, 250*kib, 200*kib)
			}
			want := []fetched{{0, 200 * kib}, {250 * kib, 50 * kib}, {0, 200 * kib}, {250 * kib, 50 * kib}}
			if got := s.fetches(); !slices.Equal(got, want) {
				t.Errorf("fetches: got %v, want %v", got, want)
			}
			if got := c.Stats(); got.Uncached != 4 || got.Bytes != 0 {
				t.Errorf("stats: got %+v", got)
			}
		})
	}
}

func TestHandleAndCacheAfterClose(t *testing.T) {
	c, _ := newCache(t, 4)
	s := newSource("f", 10)
	h, g := c.Open(s.version, s.fetch), open(t, c, s)
	h.Close()
	h.Close()
	if _, err := h.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("closed handle: got %v, want ErrClosed", err)
	}
	checkRead(t, g, s, 0, 10)
	c.Close()
	if _, err := g.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("closed cache: got %v, want ErrClosed", err)
	}
}

func BenchmarkReadAtCached(b *testing.B) {
	c := cache.New(cache.Options{Budget: budget.New(64 << 20)})
	defer c.Close()
	s := newSource("f", 16<<20)
	h := open(b, c, s)
	ctx, p := context.Background(), make([]byte, 128*kib)
	for off := 0; off < len(s.data); off += len(p) {
		if _, err := h.ReadAt(ctx, p, int64(off)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	off := int64(0)
	for b.Loop() {
		if _, err := h.ReadAt(ctx, p, off); err != nil {
			b.Fatal(err)
		}
		off = (off + int64(len(p))) % int64(len(s.data))
	}
}

// BenchmarkReadAtEvicting reads through a file that is larger than the cache.
func BenchmarkReadAtEvicting(b *testing.B) {
	c := cache.New(cache.Options{Budget: budget.New(32 << 20)})
	defer c.Close()
	s := newSource("f", 64<<20)
	s.answer = func(_ context.Context, _ int, want []byte) (io.ReadCloser, error) {
		return &whole{want}, nil
	}
	h := open(b, c, s)
	ctx, p := context.Background(), make([]byte, 128*kib)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	off := int64(0)
	for b.Loop() {
		if _, err := h.ReadAt(ctx, p, off); err != nil {
			b.Fatal(err)
		}
		off = (off + int64(len(p))) % int64(len(s.data))
	}
}

// whole gives as much as fits, as a file does.
type whole struct{ rest []byte }

func (w *whole) Read(p []byte) (int, error) {
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (w *whole) Close() error { return nil }
