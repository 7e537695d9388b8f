package fs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrainWaitsAsLongAsBytesMove: for a publish that ends, for one that stalls, for
// one that would go on for ever, and for nobody's.
func TestDrainWaitsAsLongAsBytesMove(t *testing.T) {
	for name, c := range map[string]struct {
		moves time.Duration // for so long, from the start
		ends  time.Duration // the publish; 0: never
		want  time.Duration
	}{
		"ends at once":            {0, time.Second, time.Second},
		"moves, and ends":         {3 * time.Minute, 3 * time.Minute, 3 * time.Minute},
		"never moves":             {0, 0, DrainIdle},
		"ends before it is still": {time.Minute, time.Minute + DrainIdle/2, time.Minute + DrainIdle/2},
		"stalls":                  {time.Minute, 0, time.Minute + DrainIdle},
		"moves for ever":          {time.Hour, 0, DrainLimit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var i inFlight
				i.begin()
				if c.ends > 0 {
					time.AfterFunc(c.ends, i.end)
				}
				i.wait(t.Context(), func() uint64 { return uint64(min(time.Since(began), c.moves)) })
				if took := time.Since(began); took < c.want || took > c.want+DrainIdle/10 {
					t.Errorf("it waited for %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestDrainOfNothingDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var i inFlight
		i.wait(t.Context(), func() uint64 { return 0 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		i.begin()
		i.wait(ctx, func() uint64 { return uint64(time.Since(began)) })
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waited for %v, want the second of its context", took)
		}
	})
}
