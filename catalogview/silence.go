package catalogview

import (
	"sync"
	"time"
)

// silenceFactor times the patience is how long nobody waits again once somebody
// has waited in vain.
const silenceFactor = 5

// silence remembers that the source did not answer in time: a path has many
// parts, and what is known of each serves at once then. Loads go on beside, and
// the first answer ends it. The nil silence is never there.
type silence struct {
	mu    sync.Mutex
	until time.Time
}

func (s *silence) begin(until time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
}

func (s *silence) end() { s.begin(time.Time{}) }

func (s *silence) lasts(now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until)
}

// patience is how long to wait for a load that began at a time, while something
// stale could serve.
func (o *Options) patience(begun time.Time) time.Duration {
	now := o.Now()
	if o.silence.lasts(now) {
		return 0
	}
	return o.Patience - now.Sub(begun)
}

// waited notes that somebody waited in vain.
func (o *Options) waited() {
	now := o.Now()
	if !o.silence.lasts(now) { // it ends some time, for one who waits again
		o.silence.begin(now.Add(silenceFactor * o.Patience))
	}
}

// answered notes how a load ended.
func (o *Options) answered(err error) {
	if err == nil || certain(err) {
		o.silence.end()
	}
}
