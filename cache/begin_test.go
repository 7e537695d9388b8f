package cache_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// beginning starts a Begin and returns where its outcome will be.
func beginning(ctx context.Context, h *cache.Handle) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := h.Begin(ctx, false)
		done <- err
	}()
	return done
}

func TestBeginAsksOnceForTheFirstBytes(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want fetched
	}{
		"one byte":                 {1, fetched{0, 1}},
		"a version of one fetch":   {8 << 20, fetched{0, 8 << 20}},
		"a version of more":        {8<<20 + 1, fetched{0, 1 << 20}},
		"no byte proves itself so": {0, fetched{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			cch := cache.New(cache.Options{Budget: budget.New(64 << 20)})
			defer cch.Close()
			s := newSource("f", c.size)
			h := open(t, cch, s)
			if _, err := h.Begin(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			checkRead(t, h, s, 0, int(c.want.n))
			if got, want := s.fetches(), []fetched{c.want}; !slices.Equal(got, want) {
				t.Errorf("fetches: got %v, want %v", got, want)
			}
			if c.size == 0 {
				return
			}
			if asked, err := open(t, cch, s).Begin(t.Context(), false); err != nil || asked || len(s.fetches()) != 1 {
				t.Errorf("Begin of what is there: %v, %d fetches in all, want 1", err, len(s.fetches()))
			}
		})
	}
}

// TestBeginOfTheTailHasAFooter: 64 KiB at least, however few bytes the last unit has.
func TestBeginOfTheTailHasAFooter(t *testing.T) {
	const mib = 1 << 20
	for size, want := range map[int]fetched{
		8 * mib:          {0, 8 * mib},
		9 * mib:          {9*mib - 64*kib, 64 * kib},
		9*mib + 1:        {9*mib - 64*kib, 64*kib + 1},
		9*mib - 1:        {9*mib - 128*kib, 128*kib - 1},
		64*mib + 100*kib: {64*mib - 64*kib, 164 * kib},
	} {
		cch := cache.New(cache.Options{Budget: budget.New(64 << 20)})
		s := newSource("f", size)
		h := open(t, cch, s)
		if _, err := h.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		checkRead(t, h, s, size-64*kib, 64*kib)
		if got := s.fetches(); !slices.Equal(got, []fetched{want}) {
			t.Errorf("of %d bytes: fetches %v, want %v", size, got, want)
		}
		cch.Close()
	}
}

func TestBeginDoesNotWaitForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		gate := s.gated()
		h := open(t, c, s)
		if _, err := h.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		close(gate)
		checkRead(t, h, s, 0, 64*kib)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
	})
}

func TestBeginTellsTheStoresError(t *testing.T) {
	for _, blocks := range []int64{4, 0} {
		c, _ := newCache(t, blocks)
		s := newSource("f", 100*kib)
		s.answer = func(_ context.Context, call int, want []byte) (io.ReadCloser, error) {
			if call == 0 {
				return nil, errStore
			}
			return &body{rest: want}, nil
		}
		h := open(t, c, s)
		if _, err := h.Begin(t.Context(), false); !errors.Is(err, errStore) {
			t.Errorf("%d blocks: got %v, want %v", blocks, err, errStore)
		}
		checkRead(t, h, s, 0, 100*kib)
	}
}

// heads makes each fetch wait for a value before it opens its body.
func (s *source) heads() chan<- error {
	heads := make(chan error)
	s.answer = func(ctx context.Context, _ int, want []byte) (io.ReadCloser, error) {
		select {
		case err := <-heads:
			return &body{rest: want}, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return heads
}

func TestBeginWaitsForTheHeadThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		heads := s.heads()
		p := make([]byte, 10)
		r := reading(t.Context(), open(t, c, s), p, 0)
		synctest.Wait()
		one, two := beginning(t.Context(), open(t, c, s)), beginning(t.Context(), open(t, c, s))
		synctest.Wait()
		select {
		case err := <-one:
			t.Errorf("Begin before the head: %v", err)
		default:
		}
		heads <- nil
		if err := errors.Join(<-one, <-two); err != nil {
			t.Error(err)
		}
		got := <-r
		checkBytes(t, s, 0, p, got.n, got.err)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
	})
}

func TestBeginAsksOnceMoreWhereAnothersFetchFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		heads := s.heads()
		one := beginning(t.Context(), open(t, c, s))
		synctest.Wait()
		two := beginning(t.Context(), open(t, c, s))
		synctest.Wait()
		heads <- errStore
		if err := <-one; !errors.Is(err, errStore) {
			t.Errorf("who asked: got %v, want %v", err, errStore)
		}
		heads <- nil
		if err := <-two; err != nil {
			t.Errorf("who had waited: %v", err)
		}
	})
}

func TestInterruptedBeginReturnsAndItsFetchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 64*kib)
		heads := s.heads()
		h := open(t, c, s)
		ctx, interrupt := context.WithCancel(t.Context())
		done := beginning(ctx, h)
		synctest.Wait()
		interrupt()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
		heads <- nil
		synctest.Wait()
		checkRead(t, h, s, 0, 64*kib)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
	})
}

func TestBeginWithoutMemoryAsksForALittle(t *testing.T) {
	for size, want := range map[int]fetched{100: {0, 100}, 300 * kib: {0, 64 * kib}} {
		c, _ := newCache(t, 0)
		s := newSource("f", size)
		closed := false
		s.answer = func(_ context.Context, _ int, want []byte) (io.ReadCloser, error) {
			return closing{&body{rest: want}, &closed}, nil
		}
		if _, err := open(t, c, s).Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got, want := s.fetches(), []fetched{want}; !slices.Equal(got, want) || !closed {
			t.Errorf("fetches of %d bytes: got %v, want %v; closed: %v", size, got, want, closed)
		}
	}
}

type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestBeginIsNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 64)
		s := newSource("f", 40*64*kib)
		h := open(t, c, s)
		if _, err := h.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for _, off := range []int{0, 64 * kib, 128 * kib} {
			checkRead(t, h, s, off, 64*kib)
			synctest.Wait()
		}
		want := []fetched{{0, 64 * kib}, {64 * kib, 192 * kib}, {256 * kib, 128 * kib}}
		got := s.fetches()
		slices.SortFunc(got, func(a, b fetched) int { return int(a.off - b.off) })
		if !slices.Equal(got, want) {
			t.Errorf("fetches: got %v, want %v", got, want)
		}
		if got := c.Stats(); got.Hits != 2 || got.Misses != 1 {
			t.Errorf("stats: got %+v, want 2 hits and 1 miss", got)
		}
	})
}

func TestBeginAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCache(t, 4)
		s := newSource("f", 10)
		h, g := c.Open(s.version, s.fetch), open(t, c, s)
		h.Close()
		if _, err := h.Begin(t.Context(), false); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("closed handle: got %v, want ErrClosed", err)
		}
		s.heads()
		waiting := beginning(t.Context(), g)
		synctest.Wait()
		c.Close()
		if err := <-waiting; !errors.Is(err, cache.ErrClosed) {
			t.Errorf("a cache that closes: got %v, want ErrClosed", err)
		}
		if _, err := g.Begin(t.Context(), false); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("closed cache: got %v, want ErrClosed", err)
		}
	})
}
