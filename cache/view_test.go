package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// joined are the bytes of a view.
func joined(v *cache.View) []byte { return bytes.Join(v.Slices(), nil) }

func TestViewAtEveryBoundary(t *testing.T) {
	for _, room := range []int64{0, 1, 3, 32} {
		for _, size := range []int{0, 1, 64*kib - 1, 64 * kib, 64*kib + 1, 300 * kib} {
			c, _ := newCache(t, room)
			s := newSource("f", size)
			h := open(t, c, s)
			for _, off := range []int{0, 1, 64*kib - 1, 64 * kib, 128 * kib, size - 1, size, size + 1} {
				for _, n := range []int{0, 1, 64 * kib, 64*kib + 1, 400 * kib} {
					if off < 0 {
						continue
					}
					v, err := h.View(t.Context(), make([]byte, n), int64(off))
					if err != nil {
						t.Fatalf("room for %d, size %d: View(%d, %d): %v", room, size, off, n, err)
					}
					want := s.data[min(off, size):min(off+n, size)]
					if got := joined(v); !bytes.Equal(got, want) || v.Size() != len(want) {
						t.Errorf("room for %d, size %d: View(%d, %d): %d bytes of %d, or others", room, size, off, n, len(got), len(want))
					}
					v.Close()
				}
			}
		}
	}
}

func TestViewOfNegativeOffsetsAndClosedHandles(t *testing.T) {
	c, _ := newCache(t, 4)
	s := newSource("f", 10)
	h := open(t, c, s)
	if _, err := h.View(t.Context(), make([]byte, 1), -1); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("negative offset: got %v, want ErrInvalid", err)
	}
	h.Close()
	if _, err := h.View(t.Context(), make([]byte, 1), 0); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("closed: got %v, want ErrClosed", err)
	}
}

// TestViewKeepsItsBytes: what a view shows is not given to others before it is closed,
// whatever they need, and the version is dropped meanwhile.
func TestViewKeepsItsBytes(t *testing.T) {
	c, b := newCache(t, 2)
	s, other := newSource("f", 128*kib), newSource("other", 640*kib)
	v, err := open(t, c, s).View(t.Context(), make([]byte, 128*kib), 0)
	if err != nil {
		t.Fatal(err)
	}
	checkRead(t, open(t, c, other), other, 0, 640*kib)
	c.Drop("b", "f")
	if got := b.Used(); got != 128*kib {
		t.Errorf("memory: got %d, want what the view has, %d", got, 128*kib)
	}
	if !bytes.Equal(joined(v), s.data) {
		t.Error("the view's bytes have changed")
	}
	v.Close()
	if got := b.Used(); got != 0 {
		t.Errorf("memory after the view: got %d, want none", got)
	}
}

// TestViewThatFails gives all that it held back.
func TestViewThatFails(t *testing.T) {
	c, _ := newCache(t, 16) // checks that its memory is free in the end
	s := newSource("f", 8*64*kib)
	s.answer = func(_ context.Context, _ int, want []byte) (io.ReadCloser, error) {
		return &body{rest: want[:min(len(want), 100*kib)], err: errStore}, nil
	}
	_, err := open(t, c, s).View(t.Context(), make([]byte, 8*64*kib), 0)
	if !errors.Is(err, errStore) {
		t.Errorf("got %v, want %v", err, errStore)
	}
}

// TestBlocksReadToTheirEndAreHardlyKept, for the kernel keeps them.
func TestBlocksReadToTheirEndAreHardlyKept(t *testing.T) {
	b := budget.New(64 << 20)
	o := smallOptions(b)
	o.Done = 128 * kib
	c := cache.New(o)
	defer c.Close()
	s := newSource("f", 10*64*kib)
	h := open(t, c, s)
	for _, i := range []int{9, 7, 5, 3, 1} {
		checkRead(t, h, s, i*64*kib, 64*kib)
	}
	checkRead(t, h, s, 8*64*kib, 10) // in part: it stays
	if got, want := b.Used(), int64(3*64*kib); got != want {
		t.Errorf("memory: got %d, want %d: two that were read to their end, and one in part", got, want)
	}
}

// TestReadersShareTheWindow: with many readers what is ahead of all together stays
// about what it is with one.
func TestReadersShareTheWindow(t *testing.T) {
	for _, readers := range []int{1, 2, 8, 40} {
		t.Run(fmt.Sprint(readers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(1 << 30)
				c := cache.New(cache.Options{Budget: b, Window: 16 << 20, Done: 1})
				defer c.Close()
				var sources []*source
				var handles []*cache.Handle
				for i := range readers {
					s := newSource(fmt.Sprint(i), 40<<20)
					sources, handles = append(sources, s), append(handles, open(t, c, s))
				}
				for off := 0; off < 18<<20; off += 512 * kib {
					for i, h := range handles {
						checkRead(t, h, sources[i], off, 512*kib)
						synctest.Wait()
					}
				}
				// Half as much again is the limit, and a block for each that was read in part.
				if got, most := b.Used(), int64(24<<20+readers<<20); got > most {
					t.Errorf("memory: got %d MiB, want at most %d", got>>20, most>>20)
				}
				if got, least := b.Used(), int64(8<<20); got < least {
					t.Errorf("memory: got %d MiB, want at least %d", got>>20, least>>20)
				}
			})
		})
	}
}

// TestWindowsOfRestingReadersAreGivenBack, to other readers and in the end to nobody.
func TestWindowsOfRestingReadersAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1 << 30)
		c := cache.New(cache.Options{Budget: b, Window: 16 << 20, Done: 1})
		defer c.Close()
		read := func(s *source, h *cache.Handle) (ahead int64) {
			for off := 0; off < 20<<20; off += 1 << 20 {
				checkRead(t, h, s, off, 1<<20)
				synctest.Wait()
			}
			for _, f := range s.fetches() {
				ahead = max(ahead, f.off+f.n)
			}
			return ahead - 20<<20
		}
		one, two := newSource("one", 64<<20), newSource("two2", 64<<20)
		h, g := open(t, c, one), open(t, c, two)
		if got := read(one, h); got < 14<<20 {
			t.Errorf("a reader alone: got %d MiB ahead, want some 16", got>>20)
		}
		resting(t, 2)
		if got := read(two, g); got < 14<<20 {
			t.Errorf("a reader beside one that rests: got %d MiB ahead, want some 16", got>>20)
		}
		resting(t, 100)
		if got := b.Used(); got > 1<<20 {
			t.Errorf("after a while without a reader: got %d MiB, want none", got>>20)
		}
		checkRead(t, h, one, 20<<20, 1<<20)
	})
}

// resting lets so many seconds pass in the bubble.
func resting(t *testing.T, seconds int) {
	t.Helper()
	<-time.After(time.Duration(seconds) * time.Second) // the bubble's time
	synctest.Wait()
}

// TestASmallVersionThatIsOpenIsKept: what an open fetched is the descriptor's, read or
// not, however long it rests; once it is closed it is nobody's.
func TestASmallVersionThatIsOpenIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1 << 30)
		c := cache.New(cache.Options{Budget: b, Window: 16 << 20})
		defer c.Close()
		s, other := newSource("small", 3<<20), newSource("other", 40<<20)
		h := c.Open(s.version, s.fetch)
		if _, err := h.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		g := open(t, c, other)
		for off := 0; off < 40<<20; off += 1 << 20 {
			checkRead(t, g, other, off, 1<<20)
		}
		resting(t, 200)
		checkRead(t, h, s, 0, 1<<20)
		if got := len(s.fetches()); got != 1 {
			t.Errorf("fetches: got %d, want 1", got)
		}
		h.Close()
		checkRead(t, g, other, 1, 1) // somebody reads: what is not wanted is looked for again
		checkRead(t, g, other, 1<<20, 1<<20)
		resting(t, 200)
		if got := b.Used(); got > 2<<20 {
			t.Errorf("memory: got %d, want little", got)
		}
	})
}
