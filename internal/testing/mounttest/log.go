package mounttest

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// log keeps what a daemon prints. Its ready is closed at the line that says
// that the mount is there.
type log struct {
	ready chan struct{}
	once  sync.Once

	mu struct {
		sync.Mutex
		text    bytes.Buffer
		changed chan struct{} // closed and replaced at each write
	}
}

func newLog() *log {
	g := &log{ready: make(chan struct{})}
	g.mu.changed = make(chan struct{})
	return g
}

// Write is io.Writer's.
func (g *log) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, _ := g.mu.text.Write(p)
	close(g.mu.changed)
	g.mu.changed = make(chan struct{})
	text := g.mu.text.Bytes()
	if bytes.HasPrefix(text, []byte("mounted ")) || bytes.Contains(text, []byte("\nmounted ")) {
		g.once.Do(func() { close(g.ready) })
	}
	return n, nil
}

func (g *log) String() string {
	text, _ := g.snapshot()
	return text
}

func (g *log) snapshot() (string, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.text.String(), g.mu.changed
}

// Log is all that the daemon has printed, over all starts.
func (l *Lake) Log() string {
	l.mu.Lock()
	logs := append([]*log(nil), l.mu.logs...)
	l.mu.Unlock()
	var b strings.Builder
	for _, g := range logs {
		b.WriteString(g.String())
	}
	return b.String()
}

// WaitLog waits until the daemon of the latest start has printed text, within
// the lake's deadline.
func (l *Lake) WaitLog(text string) {
	l.t.Helper()
	l.mu.Lock()
	g := l.mu.logs[len(l.mu.logs)-1]
	l.mu.Unlock()
	expired := time.After(time.Until(l.deadline))
	for {
		have, changed := g.snapshot()
		if strings.Contains(have, text) {
			return
		}
		select {
		case <-changed:
		case <-expired:
			l.t.Fatalf("the log never had %q", text)
		}
	}
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
