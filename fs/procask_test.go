package fs

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A slow look is waited for; only one that waits for a lock is given up.
func TestAnswerWaitsForABusyMachineNotForALock(t *testing.T) {
	release := make(chan struct{})
	slow := ask(func(*atomic.Bool) int { <-release; return 1 })
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	if v, ok := slow.answer(time.Millisecond); v != 1 || !ok {
		t.Errorf("slow look: %d, %v; want its answer", v, ok)
	}
	if got := stopped(int32(syscall.Gettid())); got != "" {
		t.Errorf("a running thread counts as stopped, %q", got)
	}
	if stopped(1<<30) == "" {
		t.Error("a thread that is not there does not count as stopped")
	}
}

// A look that nobody waits for any more is told, and what it knows by then can
// still be had.
func TestAnswerTellsALookThatIsGivenUp(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	given := ask(func(over *atomic.Bool) bool {
		close(begun)
		<-release
		return over.Load()
	})
	<-begun
	given.thread.Store(1 << 30) // one that stands still, as far as can be seen
	if _, ok := given.answer(time.Millisecond); ok {
		t.Fatal("a look that stands still was answered")
	}
	close(release)
	if over, ok := given.answer(time.Minute); !over || !ok {
		t.Errorf("after it was given up: over %v, answered %v; want both", over, ok)
	}
}
