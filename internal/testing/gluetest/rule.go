package gluetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// ErrClosed is returned by a fault that closes the connection.
var ErrClosed = errors.New("connection closed by a fault")

// Rule says which requests meet a fault. The zero values match all.
type Rule struct {
	Op       string           // "GetPartitions"
	Database string           // name
	Table    string           // name
	If       func(*Call) bool // a further condition, of which calls are to be read only
	Skip     int              // so many matching requests pass first
	Times    int              // so many meet the fault then; 0: all
	Fault    Fault            // nil: none, the rule counts
}

// Next passes a request on, to the rules that follow and then to the catalog.
type Next func() (Answer, error)

// Fault does something to a request: before it calls next, to what next answers,
// or in its place. An error closes the connection without a further byte. Faults
// are called from several goroutines, and hold no lock.
type Fault func(x *Exchange, next Next) (Answer, error)

// Exchange is a request on its way. It belongs to the goroutine of the fault.
type Exchange struct {
	Call *Call // as it arrived; to be read only

	server  *Server
	rules   []*Active
	release <-chan struct{} // closed by the first Release since the request arrived
	gone    context.Context //nolint:containedctx // the client's: done when it left
}

// pass applies the rules that take the request, one within the other, and does it.
func (x *Exchange) pass(rules []*Active) (Answer, error) {
	for i, a := range rules {
		if a.takes(x.Call) && a.rule.Fault != nil {
			return a.rule.Fault(x, func() (Answer, error) { return x.pass(rules[i+1:]) })
		}
	}
	return answer(x.server.do(x.Call)), nil
}

// hold waits for Release; the client's leaving, or the server's end, is an error.
func (x *Exchange) hold() error {
	select {
	case <-x.release:
		return nil
	case <-x.gone.Done():
	case <-x.server.life.Done():
	}
	return ErrClosed
}

// pause waits so long, or as hold does for the end.
func (x *Exchange) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.gone.Done():
	case <-x.server.life.Done():
	}
	return ErrClosed
}

// Active is a rule at work.
type Active struct {
	rule   Rule
	server *Server
	seen   int           // matching requests, the skipped ones too
	hits   int           // those that met the fault
	hit    chan struct{} // closed and renewed at each hit
}

// Fault adds a rule, after those that are there. Rules apply in this order, each
// within the ones before it.
func (s *Server) Fault(r Rule) *Active {
	a := &Active{rule: r, server: s, hit: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.rules = append(s.mu.rules, a)
	return a
}

// Clear removes all rules. Requests that are under way keep theirs.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.rules = nil
}

// Release lets the requests that have arrived by now pass every Hang.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.release)
	s.mu.release = make(chan struct{})
}

// Hits is the number of requests that met the fault. They count before the fault
// does its work.
func (a *Active) Hits() int {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return a.hits
}

// Wait waits until n requests have met the fault, and fails the test when they do
// not within a minute.
func (a *Active) Wait(tb testing.TB, n int) {
	tb.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		a.server.mu.Lock()
		hits, hit := a.hits, a.hit
		a.server.mu.Unlock()
		if hits >= n {
			return
		}
		select {
		case <-hit:
		case <-timeout.C:
			tb.Fatalf("%d requests met the fault, want %d", hits, n)
		}
	}
}

// Remove takes the rule away. Requests that met it are not let go.
func (a *Active) Remove() {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.server.mu.rules = slices.DeleteFunc(slices.Clone(a.server.mu.rules), func(other *Active) bool { return other == a })
}

// takes tells whether the rule takes this call, and counts it.
func (a *Active) takes(c *Call) bool {
	r := &a.rule
	if r.Op != "" && r.Op != c.Op || r.Database != "" && r.Database != c.Database || r.Table != "" && r.Table != c.Table {
		return false
	}
	if r.If != nil && !r.If(c) {
		return false
	}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.seen++
	if a.seen <= r.Skip || r.Times > 0 && a.hits >= r.Times {
		return false
	}
	a.hits++
	close(a.hit)
	a.hit = make(chan struct{})
	return true
}
