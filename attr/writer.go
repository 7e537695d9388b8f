package attr

import (
	"errors"
	"log/slog"
	"maps"
	"time"
)

// run writes batches until Close: it alone writes to the backing.
func (s *Store) run() {
	defer close(s.done)
	retry := time.Duration(0) // the pause before the next try, after a failure
	for {
		select {
		case <-s.wake:
			if !s.gather(max(flushEvery, retry), retry == 0) {
				s.finish()
				return
			}
		case answer := <-s.asks:
			answer <- s.flush()
			continue
		case <-s.quit:
			s.finish()
			return
		}
		retry = s.pause(s.flush(), retry)
	}
}

// gather waits until a batch is worth writing, answering Flush meanwhile; false
// when the store closes.
func (s *Store) gather(wait time.Duration, count bool) bool {
	full := s.full
	if !count {
		full = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-full:
			return true
		case answer := <-s.asks:
			answer <- s.flush()
		case <-s.quit:
			return false
		}
	}
}

// pause returns how long to wait after a batch that ended with err: nothing
// after a success, else twice as long as before.
func (s *Store) pause(err error, before time.Duration) time.Duration {
	if err == nil {
		return 0
	}
	if before == 0 {
		s.log.Warn("attributes are not saved", slog.Any("error", err))
	}
	signal(s.wake) // the batch is pending again
	return min(max(2*before, 2*flushEvery), maxRetry)
}

// flush writes what is pending, and replaces a damaged backing; on an error it
// stays pending.
func (s *Store) flush() error {
	s.mu.Lock()
	batch, b := s.mu.pending, s.mu.backing
	if len(batch) == 0 && !b.damaged() {
		s.mu.Unlock()
		return nil
	}
	s.mu.flushing, s.mu.pending = batch, make(map[string]change)
	s.mu.Unlock()

	err := b.apply(batch)
	if errors.Is(err, errDamaged) {
		b = s.replace(b, err)
		err = b.apply(batch)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.flushing = nil
	if err != nil {
		maps.Copy(batch, s.mu.pending) // newer changes win
		s.mu.pending = batch
		return err
	}
	s.mu.dropping = false
	return nil
}

// replace puts a new file in the place of one that turned out to be damaged,
// or memory if that happens again.
func (s *Store) replace(old backing, cause error) backing {
	_ = old.close() // it is given up
	next := backing(newMemory(s.opts.MaxEntries))
	if !s.replaced {
		next = beginAnew(s.path, s.opts, cause)
	} else {
		s.log.Warn("attributes are damaged again, and kept in memory only",
			slog.String("path", s.path), slog.Any("error", cause))
	}
	s.replaced = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.backing = next
	return next
}

// finish is the last flush.
func (s *Store) finish() {
	s.mu.Lock()
	s.mu.stopped = true
	s.mu.Unlock()
	err := s.flush()
	s.mu.Lock()
	b := s.mu.backing
	s.mu.backing = nil
	s.mu.pending = nil
	s.mu.Unlock()
	s.closed = errors.Join(err, b.close())
}
