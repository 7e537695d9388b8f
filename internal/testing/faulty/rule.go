package faulty

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Rule says which requests meet a fault. The zero values match all.
type Rule struct {
	Op    string              // operation ("GetObject")
	Key   string              // what the key begins with; of a listing, its prefix
	If    func(*Request) bool // a further condition
	Skip  int                 // so many matching requests pass first
	Times int                 // so many meet the fault then; 0: all
	Fault Fault
}

// Next passes a request on, to the rules that follow and then to the store. It
// may be called once, as the request's body can be read but once.
type Next func() (*http.Response, error)

// Fault does something to a request: before it calls next, to what next answers,
// or in its place. An error closes the connection without a further byte.
// Faults are called from several goroutines.
type Fault interface {
	Apply(x *Exchange, next Next) (*http.Response, error)
}

// Func is a Fault made of a function, for anything that has no type here.
type Func func(x *Exchange, next Next) (*http.Response, error)

// Apply calls the function.
func (f Func) Apply(x *Exchange, next Next) (*http.Response, error) { return f(x, next) }

// Active is a rule at work.
type Active struct {
	rule  Rule
	proxy *Proxy
	seen  int           // matching requests, the skipped ones too
	hits  int           // those that met the fault
	hit   chan struct{} // closed and renewed at each hit
}

// Hits is the number of requests that met the fault. They count before the fault
// does its work.
func (a *Active) Hits() int {
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	return a.hits
}

// Wait waits until n requests have met the fault, and fails the test when they
// do not within a minute.
func (a *Active) Wait(tb testing.TB, n int) {
	tb.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		a.proxy.mu.Lock()
		hits, hit := a.hits, a.hit
		a.proxy.mu.Unlock()
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
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	for i, other := range a.proxy.mu.rules {
		if other == a {
			a.proxy.mu.rules = append(a.proxy.mu.rules[:i:i], a.proxy.mu.rules[i+1:]...)
			return
		}
	}
}

// takes tells whether the rule takes this request, and counts it. The proxy's
// mutex is held.
func (a *Active) takes(q *Request) bool {
	r := &a.rule
	if r.Op != "" && r.Op != q.Op || !strings.HasPrefix(q.Key, r.Key) || r.If != nil && !r.If(q) {
		return false
	}
	a.seen++
	if a.seen <= r.Skip || r.Times > 0 && a.hits >= r.Times {
		return false
	}
	a.hits++
	close(a.hit)
	a.hit = make(chan struct{})
	return true
}
