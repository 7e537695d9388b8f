package catalogview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// loader counts its loads and answers what it is told to.
type loader struct {
	loads atomic.Int64
	err   error
	wait  chan struct{} // nil: answers at once
}

func (l *loader) load(ctx context.Context) (int, error) {
	n := int(l.loads.Add(1))
	if l.wait != nil {
		select {
		case <-l.wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return n, l.err
}

func wantCell(t *testing.T, c *cells[int], l *loader, want int, wantErr error) {
	t.Helper()
	got, err := c.get(t.Context(), "k", l.load)
	if got != want && wantErr == nil || !errors.Is(err, wantErr) {
		t.Errorf("got %d, %v, want %d, %v", got, err, want, wantErr)
	}
}

// pass lets a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

func TestACellIsFreshForItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := new(loader)
		wantCell(t, c, l, 1, nil)
		pass(4999 * time.Millisecond)
		wantCell(t, c, l, 1, nil)
		pass(2 * time.Millisecond)
		wantCell(t, c, l, 2, nil)
	})
}

func TestAbsenceIsFreshForTheNegativeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := &loader{err: objectstore.ErrNotExist}
		wantCell(t, c, l, 0, objectstore.ErrNotExist)
		l.err = nil
		pass(999 * time.Millisecond)
		wantCell(t, c, l, 0, objectstore.ErrNotExist)
		pass(2 * time.Millisecond)
		wantCell(t, c, l, 2, nil)
	})
}

func TestErrorsAreNeverCachedAndNeverAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := &loader{err: objectstore.ErrUnavailable}
		for range 3 {
			wantCell(t, c, l, 0, objectstore.ErrUnavailable)
		}
		if got := l.loads.Load(); got != 3 {
			t.Errorf("%d loads, want 3", got)
		}
		l.err = nil
		wantCell(t, c, l, 4, nil)
	})
}

func TestAStaleValueServesWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := new(loader)
		wantCell(t, c, l, 1, nil)
		l.err = objectstore.ErrUnavailable
		pass(6 * time.Second)
		for range 10 {
			wantCell(t, c, l, 1, nil)
		}
		if got := l.loads.Load(); got != 2 {
			t.Errorf("%d loads, want 2: a failed one is not repeated at once", got)
		}
		pass(93 * time.Second) // 99 s
		wantCell(t, c, l, 1, nil)
		pass(2 * time.Second) // over twenty TTLs
		wantCell(t, c, l, 0, objectstore.ErrUnavailable)
		l.err = nil
		wantCell(t, c, l, int(l.loads.Load())+1, nil)
	})
}

func TestACertainAnswerReplacesAStaleValue(t *testing.T) {
	for _, certain := range []error{objectstore.ErrNotExist, objectstore.ErrPermission} {
		synctest.Test(t, func(t *testing.T) {
			c := newCells[int](Options{}.orDefault())
			defer c.close()
			l := new(loader)
			wantCell(t, c, l, 1, nil)
			l.err = certain
			pass(6 * time.Second)
			wantCell(t, c, l, 0, certain)
		})
	}
}

func TestAStaleValueServesWhileTheStoreIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := new(loader)
		wantCell(t, c, l, 1, nil)
		pass(6 * time.Second)
		l.wait = make(chan struct{})
		start := time.Now()
		wantCell(t, c, l, 1, nil)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("waited %v, want 2s", d)
		}
		close(l.wait)
		synctest.Wait()
		wantCell(t, c, l, 2, nil)
	})
}

func TestEqualLoadsAreOneAndSurviveTheirCallersInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		l := &loader{wait: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.get(ctx, "k", l.load); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted: %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() { wantCell(t, c, l, 1, nil) })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(l.wait)
		wg.Wait()
		if got := l.loads.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

func TestADropOutdatesTheLoadThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		defer c.close()
		first := &loader{wait: make(chan struct{})}
		var wg sync.WaitGroup
		wg.Go(func() { wantCell(t, c, first, 1, nil) })
		synctest.Wait()
		c.drop(func(string) bool { return true })
		second := new(loader)
		second.loads.Store(100)
		wantCell(t, c, second, 101, nil)
		close(first.wait)
		wg.Wait()
		wantCell(t, c, second, 101, nil) // the old load was not kept
	})
}

func TestCloseEndsLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells[int](Options{}.orDefault())
		l := &loader{wait: make(chan struct{})}
		var wg sync.WaitGroup
		wg.Go(func() { wantCell(t, c, l, 0, context.Canceled) })
		synctest.Wait()
		c.close()
		wg.Wait()
		wantCell(t, c, l, 0, ErrClosed)
		c.close()
	})
}

func TestCellsAreBounded(t *testing.T) {
	c := newCells[int](Options{MaxCached: 10}.orDefault())
	defer c.close()
	for i := range 100 {
		if _, err := c.get(t.Context(), fmt.Sprint(i), new(loader).load); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.mu.m); n > 10 {
		t.Errorf("%d cells, want at most 10", n)
	}
}
