package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTryAcquireTakesOnlyWhatIsFree(t *testing.T) {
	b := budget.New(100)
	for _, step := range []struct {
		n    int64
		want bool
		used int64
	}{{60, true, 60}, {41, false, 60}, {40, true, 100}, {1, false, 100}, {0, true, 100}, {-1, false, 100}} {
		if got := b.TryAcquire(step.n, budget.Read); got != step.want {
			t.Errorf("TryAcquire(%d): got %v, want %v", step.n, got, step.want)
		}
		if got := b.Used(); got != step.used {
			t.Errorf("Used after %d: got %d, want %d", step.n, got, step.used)
		}
	}
}

func TestAcquireOfMoreThanAllFailsAtOnce(t *testing.T) {
	for _, limit := range []int64{100, 0, -5} {
		b := budget.New(limit)
		err := b.Acquire(t.Context(), 101, budget.Read)
		if !errors.Is(err, budget.ErrTooLarge) {
			t.Errorf("New(%d): Acquire(101): got %v, want ErrTooLarge", limit, err)
		}
	}
}

func TestReleaseOfMoreThanAcquiredPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Release of what was never acquired did not panic")
		}
	}()
	budget.New(10).Release(1)
}

func TestWaitersAreServedByPriorityThenArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		mustTry(t, b, 10)
		var mu sync.Mutex
		var got []string
		for _, w := range []struct {
			name string
			prio budget.Priority
		}{{"spec", budget.Speculation}, {"write1", budget.Write}, {"read1", budget.Read}, {"write2", budget.Write}, {"read2", budget.Read}} {
			go func() {
				if err := b.Acquire(t.Context(), 10, w.prio); err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
				mu.Lock()
				got = append(got, w.name)
				mu.Unlock()
				b.Release(10)
			}()
			synctest.Wait() // it is in line before the next comes
		}
		b.Release(10)
		synctest.Wait()
		if want := []string{"read1", "read2", "write1", "write2", "spec"}; !slices.Equal(got, want) {
			t.Errorf("order: got %v, want %v", got, want)
		}
	})
}

func TestNobodyOvertakesAWaiterOfTheSamePriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		mustTry(t, b, 5)
		done := make(chan error, 1)
		go func() { done <- b.Acquire(t.Context(), 10, budget.Write) }()
		synctest.Wait()
		for prio, want := range map[budget.Priority]bool{budget.Speculation: false, budget.Write: false, budget.Read: true} {
			got := b.TryAcquire(5, prio)
			if got != want {
				t.Errorf("TryAcquire(5, %d) beside a waiting writer: got %v, want %v", prio, got, want)
			}
			if got {
				b.Release(5)
			}
		}
		if got, want := b.Wanted(), int64(5); got != want {
			t.Errorf("Wanted: got %d, want %d", got, want)
		}
		b.Release(5)
		if err := <-done; err != nil {
			t.Errorf("the waiter: %v", err)
		}
		if got := b.Wanted(); got != 0 {
			t.Errorf("Wanted when nobody waits: got %d, want 0", got)
		}
	})
}

func TestWaiterThatGivesUpLetsTheNextIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		mustTry(t, b, 5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- b.Acquire(ctx, 10, budget.Read) }()
		synctest.Wait()
		go func() { second <- b.Acquire(t.Context(), 5, budget.Read) }()
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: got %v, want DeadlineExceeded", err)
		}
		if err := <-second; err != nil {
			t.Errorf("the second: %v", err)
		}
		if got, want := b.Used(), int64(10); got != want {
			t.Errorf("Used: got %d, want %d", got, want)
		}
	})
}

func TestWaiterAsksHoldersToShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		mustTry(t, b, 10)
		var asked []int64
		stop := b.OnPressure(func(n int64) {
			asked = append(asked, n)
			b.Release(n)
		})
		if err := b.Acquire(t.Context(), 4, budget.Read); err != nil {
			t.Fatal(err)
		}
		if want := []int64{4}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
		stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Acquire(ctx, 4, budget.Read); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after unregistering: got %v, want DeadlineExceeded", err)
		}
		if len(asked) != 1 {
			t.Errorf("an unregistered holder was asked: %v", asked)
		}
	})
}

func TestUsedStaysWithinMaxUnderRandomUse(t *testing.T) {
	const limit = 1000
	b := budget.New(limit)
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				n, prio := r.Int64N(limit/2), budget.Priority(r.IntN(3))
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(200))*time.Microsecond)
				if r.IntN(3) == 0 && b.TryAcquire(n, prio) || b.Acquire(ctx, n, prio) == nil {
					if used := b.Used(); used < n || used > limit {
						t.Errorf("Used while holding %d: got %d", n, used)
					}
					b.Release(n)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if got := b.Used(); got != 0 {
		t.Errorf("Used at the end: got %d, want 0", got)
	}
}

func mustTry(t *testing.T, b *budget.Budget, n int64) {
	t.Helper()
	if !b.TryAcquire(n, budget.Read) {
		t.Fatalf("TryAcquire(%d) of an empty budget of %d", n, b.Max())
	}
}
