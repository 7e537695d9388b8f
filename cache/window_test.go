package cache_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// slow is a source whose answers come when the test lets them: those that were
// asked for by then, all at once.
type slow struct {
	mu      sync.Mutex
	pending []chan struct{}
}

func (p *slow) answer(ctx context.Context, _ int, want []byte) (io.ReadCloser, error) {
	gate := make(chan struct{})
	p.mu.Lock()
	p.pending = append(p.pending, gate)
	p.mu.Unlock()
	select {
	case <-gate:
		return &whole{want}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release answers all, and says how many there were.
func (p *slow) release() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.pending)
	for _, gate := range p.pending {
		close(gate)
	}
	p.pending = nil
	return n
}

// readThrough reads all of s in pieces, and returns how many requests were
// under way at one moment at most.
func readThrough(t *testing.T, h *cache.Handle, s *source, piece int) int {
	t.Helper()
	var p slow
	s.answer = p.answer
	done := make(chan struct{})
	go func() {
		defer close(done)
		for off := 0; off < len(s.data); off += piece {
			checkRead(t, h, s, off, piece)
		}
	}()
	most := 0
	for {
		synctest.Wait()
		select {
		case <-done:
			p.release()
			return most
		default:
			most = max(most, p.release())
		}
	}
}

// checkOnce checks that each byte was asked for once, in ranges of part at most.
func checkOnce(t *testing.T, s *source, part int64) {
	t.Helper()
	got := s.fetches()
	slices.SortFunc(got, func(a, b fetched) int { return int(a.off - b.off) })
	at := int64(0)
	for _, f := range got {
		if f.off != at || f.n > part {
			t.Fatalf("fetch [%d,+%d): want it at %d, of at most %d", f.off, f.n, at, part)
		}
		at += f.n
	}
	if at != int64(len(s.data)) {
		t.Errorf("bytes asked for: got %d, want %d", at, len(s.data))
	}
}

func TestSequentialReadsAreParallelFetchesOfParts(t *testing.T) {
	for _, procs := range []int{runtime.GOMAXPROCS(0), 1} {
		t.Run(fmt.Sprint("GOMAXPROCS=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			synctest.Test(t, func(t *testing.T) {
				c := cache.New(cache.Options{Budget: budget.New(128 << 20)})
				defer c.Close()
				s := newSource("f", 100<<20)
				most := readThrough(t, open(t, c, s), s, 128*kib)
				checkOnce(t, s, 2<<20)
				if most < 16 {
					t.Errorf("requests at one moment: got %d, want at least 16", most)
				}
				aligned, all := 0, s.fetches()
				for _, f := range all {
					if f.off%(2<<20) == 0 {
						aligned++
					}
				}
				if aligned < 48 || len(all) > 56 {
					t.Errorf("got %d fetches, %d at multiples of a part, want 48 of at most 56", len(all), aligned)
				}
			})
		})
	}
}

func TestSequentialReadsInLittleMemoryFetchOnce(t *testing.T) {
	for _, blocks := range []int64{3, 5, 8, 40} {
		t.Run(fmt.Sprint(blocks, " blocks"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, b := newCache(t, blocks)
				s := newSource("f", 100*64*kib+5)
				readThrough(t, open(t, c, s), s, 32*kib)
				checkOnce(t, s, 512*kib)
				if got := c.Stats().Uncached; got != 0 || b.Used() > b.Max() {
					t.Errorf("uncached reads: got %d, want none; memory: %d of %d", got, b.Used(), b.Max())
				}
			})
		})
	}
}

// TestReadersShareLittleMemoryFairly: read-ahead never takes the blocks away
// that other readers come to next.
func TestReadersShareLittleMemoryFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 24)
		var sources []*source
		var handles []*cache.Handle
		for _, key := range []string{"a", "bb", "ccc"} {
			s := newSource(key, 60*64*kib)
			sources, handles = append(sources, s), append(handles, open(t, c, s))
		}
		for off := 0; off < 60*64*kib; off += 64 * kib {
			for i, h := range handles {
				checkRead(t, h, sources[i], off, 64*kib)
				synctest.Wait() // what was read ahead has come
			}
		}
		for _, s := range sources {
			checkOnce(t, s, 512*kib)
		}
	})
}

func TestRandomReadsFetchTheirOwnBlocksAlone(t *testing.T) {
	c := cache.New(cache.Options{Budget: budget.New(64 << 20)})
	defer c.Close()
	s := newSource("f", 20<<20)
	h := open(t, c, s)
	var want []fetched
	for _, block := range rand.New(rand.NewPCG(1, 1)).Perm(9) {
		at := int64(1+2*block) << 20
		checkRead(t, h, s, int(at)+100, 100)
		want = append(want, fetched{at, 64 * kib})
	}
	if len(want) == 0 {
		t.Fatal("no reads")
	}
	got := s.fetches()
	for _, f := range got {
		if !slices.Contains(want, f) {
			t.Errorf("fetch %v was not read", f)
		}
	}
}

func TestASmallVersionReadFromItsStartIsOneFetch(t *testing.T) {
	c := cache.New(cache.Options{Budget: budget.New(64 << 20)})
	defer c.Close()
	s := newSource("f", 8<<20)
	h := open(t, c, s)
	for off := 0; off < len(s.data); off += 128 * kib {
		checkRead(t, h, s, off, 128*kib)
	}
	if got, want := s.fetches(), []fetched{{0, 8 << 20}}; !slices.Equal(got, want) {
		t.Errorf("fetches: got %v, want %v", got, want)
	}
}

func TestTwoReadersOfAVersionFetchItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 128)
		s := newSource("f", 100*64*kib)
		a, b := open(t, c, s), open(t, c, s)
		for off := 0; off < len(s.data); off += 64 * kib {
			checkRead(t, a, s, off, 64*kib)
			checkRead(t, b, s, off, 64*kib)
		}
		synctest.Wait()
		checkOnce(t, s, 512*kib)
	})
}

// TestWindowsOfClosedHandlesGoFirst: under pressure what was read ahead for
// nobody goes before older blocks that were read.
func TestWindowsOfClosedHandlesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := newCache(t, 64)
		old, s := newSource("old", 4*64*kib), newSource("f", 40*64*kib)
		checkRead(t, open(t, c, old), old, 0, len(old.data))
		h := c.Open(s.version, s.fetch)
		for off := range 4 {
			checkRead(t, h, s, off*64*kib, 64*kib)
		}
		h.Close()
		synctest.Wait()
		unread := b.Used()/(64*kib) - 4 - 4
		if unread < 2 {
			t.Fatalf("unread blocks: got %d, want some", unread)
		}
		n := b.Max() - b.Used() + unread*64*kib
		if err := b.Acquire(t.Context(), n, budget.Write); err != nil {
			t.Fatal(err)
		}
		defer b.Release(n)
		before := len(s.fetches()) + len(old.fetches())
		checkRead(t, open(t, c, old), old, 0, len(old.data))
		for off := range 4 {
			checkRead(t, open(t, c, s), s, off*64*kib, 64*kib)
		}
		if got := len(s.fetches()) + len(old.fetches()) - before; got != 0 {
			t.Errorf("blocks that were read had to be fetched again: %d fetches", got)
		}
	})
}

// TestWindowsOfIdleHandlesGoFirst: nobody comes for a window while as many
// blocks are read as the cache holds; then it goes before what was read.
func TestWindowsOfIdleHandlesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := newCache(t, 32)
		idle, s := newSource("idle", 40*64*kib), newSource("f", 120*64*kib)
		h := open(t, c, idle)
		for off := range 5 {
			checkRead(t, h, idle, off*64*kib, 64*kib)
		}
		synctest.Wait()
		g := open(t, c, s)
		for i := range 60 { // backwards: nothing is read ahead
			checkRead(t, g, s, (119-2*i)*64*kib, 10)
			synctest.Wait()
		}
		if b.Used() != b.Max() {
			t.Fatalf("memory: got %d, want all of %d", b.Used(), b.Max())
		}
		before := len(s.fetches())
		for i := 29; i < 60; i++ { // all that the cache holds but one
			checkRead(t, open(t, c, s), s, (119-2*i)*64*kib, 10)
		}
		if got := len(s.fetches()) - before; got != 0 {
			t.Errorf("fetches of what was read last: got %d, want 0", got)
		}
	})
}
