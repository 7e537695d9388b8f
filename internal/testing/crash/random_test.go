package crash_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	kills       = 500 // in all, without a soak
	lakesAStore = 3
	longestLife = 150 * time.Millisecond // of a daemon under load
)

// quota hands out kills until there were enough.
type quota struct {
	mu    sync.Mutex
	left  int       // negative: as many as there is time for
	until time.Time // zero: no limit
}

// take tells whether there is to be another.
func (q *quota) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !q.until.IsZero():
		return time.Now().Before(q.until)
	case q.left == 0:
		return false
	}
	q.left--
	return true
}

// quotas are those of a run: `LAKEFS_SOAK` is a time, or a number of kills.
func quotas(t *testing.T) (bucket, folder *quota, life time.Duration) {
	t.Helper()
	soak := os.Getenv("LAKEFS_SOAK")
	if soak == "" {
		return &quota{left: kills / 2}, &quota{left: kills / 2}, 15 * time.Minute
	}
	if n, err := strconv.Atoi(soak); err == nil {
		return &quota{left: n / 2}, &quota{left: n - n/2}, time.Duration(n)*10*time.Second + 15*time.Minute
	}
	d, err := time.ParseDuration(soak)
	if err != nil {
		t.Fatalf("LAKEFS_SOAK=%s: want a duration or a number of kills", soak)
	}
	end := time.Now().Add(d)
	return &quota{until: end}, &quota{until: end}, d + 15*time.Minute
}

// TestKillAtRandom has several programs write at once, and kills the daemon at a
// random moment, again and again: after a random time, or at a random request,
// before or after its effect.
func TestKillAtRandom(t *testing.T) {
	bucket, folder, life := quotas(t)
	t.Logf("LAKEFS_CRASH_SEED=%d", seed())
	total := &outcomes{}
	t.Run("lakes", func(t *testing.T) {
		for i := range 2 * lakesAStore {
			name, q := "bucket", bucket
			if i%2 == 1 {
				name, q = "folder", folder
			}
			t.Run(name+" "+strconv.Itoa(i/2), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, name == "bucket", life, rand.New(rand.NewPCG(seed(), uint64(i))))
				for q.take() && !t.Failed() {
					w.moment()
				}
				w.end()
				total.add(&w.sum)
			})
		}
	})
	summary.add(t, "%v", total)
}
