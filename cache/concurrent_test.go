package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// gated makes each piece of each body wait for a value of the returned channel.
func (s *source) gated() chan<- struct{} {
	gate := make(chan struct{})
	s.answer = func(ctx context.Context, _ int, want []byte) (io.ReadCloser, error) {
		return &body{rest: want, gate: gate, done: ctx.Done()}, nil
	}
	return gate
}

type result struct {
	n   int
	err error
}

// reading starts a read and returns where its result will be.
func reading(ctx context.Context, h *cache.Handle, p []byte, off int64) <-chan result {
	done := make(chan result, 1)
	go func() {
		n, err := h.ReadAt(ctx, p, off)
		done <- result{n, err}
	}()
	return done
}

func TestAHundredReadersOfABlockCauseOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		handles := []*cache.Handle{open(t, c, s), open(t, c, s)}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { checkRead(t, handles[i%2], s, i*600, 500) })
		}
		synctest.Wait() // all wait
		close(gate)
		wg.Wait()
		if got, want := s.fetches(), []fetched{{0, 64 * kib}}; !slices.Equal(got, want) {
			t.Errorf("fetches: got %v, want %v", got, want)
		}
		if got := c.Stats(); got.Hits != 99 || got.Misses != 1 {
			t.Errorf("hits, misses: got %d, %d, want 99, 1", got.Hits, got.Misses)
		}
	})
}

func TestBytesAreServedAsTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		h := open(t, c, s)
		first, second := make([]byte, 10_000), make([]byte, 10_001)
		a := reading(t.Context(), h, first, 0)
		b := reading(t.Context(), h, second, 0)
		gate <- struct{}{}
		r := <-a
		checkBytes(t, s, 0, first, r.n, r.err)
		synctest.Wait()
		select {
		case early := <-b:
			t.Errorf("a read of 10001 bytes ended when 10000 had come: %v", early)
		default:
		}
		close(gate)
		r = <-b
		checkBytes(t, s, 0, second, r.n, r.err)
	})
}

func TestInterruptedReaderReturnsAtOnceAndHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		h := open(t, c, s)
		ctx, interrupt := context.WithCancel(t.Context())
		a := reading(ctx, h, make([]byte, 100), 0) // it starts the fetch
		synctest.Wait()
		p := make([]byte, 64*kib)
		b := reading(t.Context(), h, p, 0)
		synctest.Wait()
		interrupt()
		if r := <-a; r.n != 0 || !errors.Is(r.err, context.Canceled) {
			t.Errorf("the interrupted: got %v, want 0, Canceled", r)
		}
		close(gate)
		r := <-b
		checkBytes(t, s, 0, p, r.n, r.err)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
	})
}

func TestFetchGoesOnWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		h := open(t, c, s)
		ctx, interrupt := context.WithCancel(t.Context())
		a := reading(ctx, h, make([]byte, 100), 0)
		synctest.Wait()
		interrupt()
		<-a
		close(gate)
		synctest.Wait()
		checkRead(t, h, s, 0, 64*kib)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
	})
}

func TestCloseEndsFetchesAndWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		s.gated()
		h := open(t, c, s)
		a := reading(t.Context(), h, make([]byte, 100), 0)
		synctest.Wait()
		c.Close()
		if r := <-a; !errors.Is(r.err, cache.ErrClosed) {
			t.Errorf("the waiter: got %v, want ErrClosed", r.err)
		}
		c.Close()
	})
}

func TestBadAnswersAreErrorsAndNeverCached(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(want []byte) (io.ReadCloser, error)
		want   error
	}{
		"the request fails":    {func([]byte) (io.ReadCloser, error) { return nil, errStore }, errStore},
		"cut half-way":         {func(w []byte) (io.ReadCloser, error) { return &body{rest: w[:len(w)/2], err: errStore}, nil }, errStore},
		"cut, as a store says": {func(w []byte) (io.ReadCloser, error) { return &body{rest: w[:10], err: io.ErrUnexpectedEOF}, nil }, io.ErrUnexpectedEOF},
		"short":                {func(w []byte) (io.ReadCloser, error) { return &body{rest: w[:len(w)-1]}, nil }, io.ErrUnexpectedEOF},
		"empty":                {func([]byte) (io.ReadCloser, error) { return &body{}, nil }, io.ErrUnexpectedEOF},
		"one byte too many":    {func(w []byte) (io.ReadCloser, error) { return &body{rest: append(slices.Clone(w), 0)}, nil }, cache.ErrLength},
		"a failing end":        {func(w []byte) (io.ReadCloser, error) { return &body{rest: w, err: errStore}, nil }, errStore},
		"never a byte":         {func([]byte) (io.ReadCloser, error) { return lazy{}, nil }, io.ErrNoProgress},
	} {
		for _, blocks := range []int64{16, 0} { // cached, and past the cache
			t.Run(fmt.Sprintf("%s, %d blocks", name, blocks), func(t *testing.T) {
				cch, b := newCache(t, blocks)
				s := newSource("f", 100*kib)
				var well atomic.Bool
				s.answer = func(_ context.Context, _ int, want []byte) (io.ReadCloser, error) {
					if !well.Load() {
						return c.answer(want)
					}
					return &body{rest: want}, nil
				}
				h := open(t, cch, s)
				if _, err := h.ReadAt(t.Context(), make([]byte, 100*kib), 0); !errors.Is(err, c.want) {
					t.Errorf("first read: got %v, want %v", err, c.want)
				}
				if errors.Is(c.want, cache.ErrLength) && b.Used() != 0 {
					t.Errorf("kept %d bytes of an answer of the wrong length", b.Used())
				}
				well.Store(true)
				checkRead(t, h, s, 0, 100*kib)
			})
		}
	}
}

type lazy struct{}

func (lazy) Read([]byte) (int, error) { return 0, nil }
func (lazy) Close() error             { return nil }

func TestFetchFailingHalfwayServesWhatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 16)
		s := newSource("f", 3*64*kib)
		var well atomic.Bool
		s.answer = func(_ context.Context, call int, want []byte) (io.ReadCloser, error) {
			switch {
			case call == 0: // the first block and a half
				return &body{rest: want[:96*kib], err: errStore}, nil
			case well.Load():
				return &body{rest: want}, nil
			}
			return nil, errStore
		}
		h := open(t, c, s)
		n, err := h.ReadAt(t.Context(), make([]byte, 3*64*kib), 0)
		if n != 64*kib || !errors.Is(err, errStore) {
			t.Errorf("got %d, %v, want %d, %v", n, err, 64*kib, errStore)
		}
		synctest.Wait()
		well.Store(true)
		checkRead(t, h, s, 0, 3*64*kib)
		got := s.fetches()
		if got, want := got[len(got)-1], (fetched{64 * kib, 128 * kib}); got != want { // the whole block was kept
			t.Errorf("last fetch: got %v, want %v", got, want)
		}
	})
}

func TestAFailureOfReadAheadIsNobodysUntilAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 16)
		s := newSource("f", 8*64*kib)
		gate := make(chan struct{})
		s.answer = func(ctx context.Context, call int, want []byte) (io.ReadCloser, error) {
			if call == 1 { // the block that is read, and read-ahead: fails in the latter
				return &body{rest: want[:64*kib], err: errStore, gate: gate, done: ctx.Done()}, nil
			}
			return &body{rest: want}, nil
		}
		h := open(t, c, s)
		checkRead(t, h, s, 0, 64*kib)
		p, q := make([]byte, 64*kib), make([]byte, 64*kib)
		a := reading(t.Context(), h, p, 64*kib)
		synctest.Wait()
		b := reading(t.Context(), h, q, 2*64*kib) // waits for the read-ahead
		synctest.Wait()
		if got := s.fetches()[1]; got.n != 3*64*kib {
			t.Errorf("second fetch: got %v, want three blocks", got)
		}
		close(gate)
		r := <-a
		checkBytes(t, s, 64*kib, p, r.n, r.err)
		r = <-b
		checkBytes(t, s, 2*64*kib, q, r.n, r.err)
	})
}

func TestBlocksInUseAreNotGivenToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := newCache(t, 1)
		s, other := newSource("f", 64*kib), newSource("other", 64*kib)
		gate := s.gated()
		p := make([]byte, 64*kib)
		a := reading(t.Context(), open(t, c, s), p, 0) // holds the only block
		synctest.Wait()
		checkRead(t, open(t, c, other), other, 0, 64*kib)
		if got := c.Stats().Uncached; got != 1 {
			t.Errorf("uncached reads: got %d, want 1", got)
		}
		waiter := make(chan error, 1)
		go func() { waiter <- b.Acquire(t.Context(), 10, budget.Write) }()
		synctest.Wait()
		close(gate)
		r := <-a
		checkBytes(t, s, 0, p, r.n, r.err)
		if err := <-waiter; err != nil { // the block went as soon as it was idle
			t.Error(err)
		}
		b.Release(10)
	})
}

func TestDropWhileABlockArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		h := open(t, c, s)
		p := make([]byte, 64*kib)
		a := reading(t.Context(), h, p, 0)
		synctest.Wait()
		c.Drop("b", "f")
		close(gate)
		r := <-a
		checkBytes(t, s, 0, p, r.n, r.err)
		synctest.Wait()
		if got := c.Stats(); got.Bytes != 0 || got.Blocks != 0 {
			t.Errorf("kept after Drop: %d bytes in %d blocks", got.Bytes, got.Blocks)
		}
	})
}

// TestRandomOperations compares concurrent reads of several versions with the
// bytes they have, while memory is short, keys are dropped, readers are
// interrupted, fetches fail and others want memory.
func TestRandomOperations(t *testing.T) {
	for _, blocks := range []int64{0, 1, 3, 40} {
		t.Run(fmt.Sprint(blocks, " blocks"), func(t *testing.T) {
			t.Parallel()
			c, b := newCache(t, blocks)
			var sources []*source
			for i, size := range []int{1, 5 * kib, 64 * kib, 200 * kib, 20*64*kib + 7} {
				s := newSource(fmt.Sprint(i), size)
				s.answer = flaky
				sources = append(sources, s)
			}
			var wg sync.WaitGroup
			for seed := range uint64(6) {
				wg.Go(func() { randomReader(t, c, b, sources, rand.New(rand.NewPCG(seed, 7))) })
			}
			wg.Wait()
			if used := b.Used(); used != c.Stats().Bytes {
				t.Errorf("budget: got %d bytes in use, the cache holds %d", used, c.Stats().Bytes)
			}
		})
	}
}

func flaky(_ context.Context, call int, want []byte) (io.ReadCloser, error) {
	switch call % 17 {
	case 3:
		return nil, errStore
	case 5:
		return &body{rest: want[:len(want)/2], err: errStore}, nil
	case 7:
		return &body{rest: want[:len(want)-1]}, nil
	case 11:
		return &body{rest: append(slices.Clone(want), 1)}, nil
	}
	return &body{rest: want}, nil
}

func randomReader(t *testing.T, c *cache.Cache, b *budget.Budget, sources []*source, r *rand.Rand) {
	t.Helper()
	for range 60 {
		s := sources[r.IntN(len(sources))]
		h := c.Open(s.version, s.fetch)
		off := r.IntN(len(s.data))
		for range 20 {
			ctx, cancel := context.WithCancel(context.Background())
			if r.IntN(10) == 0 {
				cancel()
			}
			p := make([]byte, 1+r.IntN(100*kib))
			n, err := h.ReadAt(ctx, p, int64(off))
			cancel()
			if allowed(ctx, err) {
				if string(p[:n]) != string(s.data[off:off+n]) {
					t.Errorf("failed read of %d at %d: other bytes than the source's", len(p), off)
				}
			} else {
				checkBytes(t, s, off, p, n, err)
			}
			off += n
			if r.IntN(4) == 0 || off >= len(s.data) {
				off = r.IntN(len(s.data))
			}
		}
		h.Close()
		switch r.IntN(6) {
		case 0:
			c.Drop("b", s.version.Key)
		case 1:
			if n := r.Int64N(b.Max()/2 + 1); b.Acquire(context.Background(), n, budget.Write) == nil {
				b.Release(n)
			}
		}
	}
}

// allowed says whether a read may end with err, as the source is flaky.
func allowed(ctx context.Context, err error) bool {
	return errors.Is(err, errStore) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, cache.ErrLength) ||
		ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// TestAReaderWaitsOnceForASilentStore: who waited for read-ahead until the store was
// given up is told so, and does not wait as long again.
func TestAReaderWaitsOnceForASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 16)
		s := newSource("f", 8*64*kib)
		s.answer = func(_ context.Context, call int, want []byte) (io.ReadCloser, error) {
			if call == 0 {
				return &body{rest: want}, nil
			}
			<-time.After(time.Minute)
			return nil, errStore
		}
		h := open(t, c, s)
		checkRead(t, h, s, 0, 64*kib)
		first := reading(t.Context(), h, make([]byte, 64*kib), 64*kib) // and two blocks ahead
		synctest.Wait()
		began := time.Now()
		r := <-reading(t.Context(), h, make([]byte, 64*kib), 2*64*kib)
		if waited := time.Since(began); !errors.Is(r.err, errStore) || waited > time.Minute {
			t.Errorf("got %v after %s, want %v after a minute", r.err, waited, errStore)
		}
		<-first
	})
}
