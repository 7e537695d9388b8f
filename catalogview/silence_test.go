package catalogview

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Once somebody has waited for a silent source in vain nobody waits again, as long
// as something stale can serve, until it answers.
func TestSilenceIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{TTL: time.Second, Patience: 2 * time.Second}.orDefault()
		tables, lists := newCells[int](o), newCells[string](o)
		defer tables.close()
		defer lists.close()
		answer := make(chan struct{})
		close(answer)
		number := func(ctx context.Context) (int, error) {
			select {
			case <-answer:
				return 1, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		text := func(ctx context.Context) (string, error) {
			if _, err := number(ctx); err != nil {
				return "", err
			}
			return "new", nil
		}
		took := func(what string, want time.Duration, get func() error) {
			t.Helper()
			began := time.Now()
			if err := get(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("%s took %v, want %v", what, got, want)
			}
		}
		getTable := func() error { _, err := tables.get(t.Context(), "t", number); return err }
		getList := func() error { _, err := lists.get(t.Context(), "l", text); return err }
		took("the first load", 0, getTable)
		took("the first load of another", 0, getList)

		answer = make(chan struct{})
		<-time.After(2 * time.Second)
		took("the first to wait", o.Patience, getTable)
		took("the next", 0, getTable)
		took("one who asks for another", 0, getList)

		close(answer)
		synctest.Wait()
		took("when it has answered", 0, getList)
		answer = make(chan struct{})
		<-time.After(2 * time.Second)
		took("the first to wait of another silence", o.Patience, getList)
		close(answer)
	})
}
