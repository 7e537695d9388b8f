// Package faulty is a proxy in front of an S3 server that counts requests and
// makes them fail.
//
//	p := faulty.New(t, server)
//	slow := p.Add(faulty.Rule{Op: "GetObject", Key: "dt=1/", Times: 2, Fault: faulty.Status{Code: 503, S3Code: "SlowDown"}})
//	...            // requests to p.URL, or by p.Server()
//	p.Count("GetObject")
//
// Guarantees: requests pass unchanged, Host header and escapes of the path
// included, so that signatures hold; bodies are streamed both ways, and what the
// store answers reaches the client byte for byte, unless a rule says otherwise.
// A store that breaks off breaks off here too. Requests are path-style, HTTP/1.1.
//
// Rules apply in the order they were added, each within the ones before it: a
// Delay and a CutBody that match one request both apply. Mind that Go's HTTP
// client itself repeats a GET whose reused connection was closed before an answer:
// the proxy counts both.
//
// All methods may be called from several goroutines.
package faulty

import (
	"context"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test/port"
)

// Proxy stands in front of one store.
type Proxy struct {
	URL string // "http://127.0.0.1:41234", the same over Down and Up

	fail      func(format string, args ...any)
	target    *url.URL
	server    *s3test.Server
	port      *port.Port
	transport *http.Transport
	life      context.Context //nolint:containedctx // ends with the proxy, and hung requests with it
	end       context.CancelFunc
	work      sync.WaitGroup // handlers and the serving goroutine

	mu struct {
		sync.Mutex
		http    *http.Server // nil: down
		conns   map[net.Conn]struct{}
		rules   []*Active
		log     []*Request
		counts  map[string]int
		latency Latency
		release chan struct{} // closed by Release
	}
}

// New starts a proxy in front of a server. It ends with the test.
func New(tb testing.TB, server *s3test.Server) *Proxy {
	tb.Helper()
	p, err := Start(server, tb.Errorf)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Errorf("close the proxy: %v", err)
		}
	})
	return p
}

// Start is New for programs that are no tests. What goes wrong in the proxy itself
// is told to fail, until Close.
func Start(server *s3test.Server, fail func(format string, args ...any)) (*Proxy, error) {
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		return nil, err
	}
	reserved, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "http://" + reserved.Addr, fail: fail, target: target, server: server, port: reserved}
	p.transport = &http.Transport{
		DisableCompression:    true, // bodies are to pass as they are
		MaxIdleConnsPerHost:   256,
		ExpectContinueTimeout: time.Second,
		DialContext:           dialWide,
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.mu.conns = make(map[net.Conn]struct{})
	p.mu.counts = make(map[string]int)
	p.mu.release = make(chan struct{})
	p.Up()
	return p, nil
}

// Close ends the proxy and all requests that are under way, and waits for them.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.end() // no request enters from here on
	p.mu.Unlock()
	p.Down()
	p.work.Wait()
	p.transport.CloseIdleConnections()
	return p.port.Close()
}

// Server is the server as seen through the proxy: its clients, environment and
// helpers use the proxy's URL.
func (p *Proxy) Server() *s3test.Server { return p.server.Via(p.URL) }

// Down refuses connections and resets those that are open, until Up. It does
// nothing when the proxy is down.
func (p *Proxy) Down() {
	if server := p.takeDown(); server != nil {
		_ = server.Close() // of sockets that are to go in any case. Not under mu: it waits for track
	}
}

func (p *Proxy) takeDown() *http.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	server := p.mu.http
	p.mu.http = nil
	if server != nil {
		for conn := range p.mu.conns {
			reset(conn)
		}
	}
	return server
}

// Up takes connections again, on the same port.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.http != nil {
		return
	}
	// A child between fork and exec has a copy of the last listener, which listens.
	syscall.ForkLock.RLock()
	listener, err := (&net.ListenConfig{}).Listen(p.life, "tcp", p.port.Addr)
	syscall.ForkLock.RUnlock()
	if err != nil {
		p.fail("the proxy does not come up: %v", err)
		return
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(p.handle),
		ConnState:         p.track,
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return p.life },
	}
	p.mu.http = server
	p.work.Go(func() { _ = server.Serve(listener) }) // ends by Close
}

// track knows the open connections, for Down.
func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		if p.mu.http == nil { // accepted just before Down
			reset(conn)
			return
		}
		p.mu.conns[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.mu.conns, conn)
	}
}

// reset closes a connection so that its peer gets ECONNRESET.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed politely, which is near enough
	}
	_ = conn.Close() // there is nothing to do about one that is closed
}

// Add adds a rule, after those that are there.
func (p *Proxy) Add(r Rule) *Active {
	a := &Active{rule: r, proxy: p, hit: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.rules = append(p.mu.rules, a)
	return a
}

// Clear removes all rules. Requests that are under way keep theirs.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.rules = nil
}

// Release lets the requests that have arrived by now pass every Hang and
// StallBody, those that are still on their way to one too.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.mu.release)
	p.mu.release = make(chan struct{})
}

// Count is the number of requests of an operation ("GetObject") since the start,
// or Reset. They count when they arrive, failed ones too.
func (p *Proxy) Count(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.counts[op]
}

// Counts are the requests by operation.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.mu.counts)
}

// Log are the requests since the start, or Reset, in the order they arrived.
func (p *Proxy) Log() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries := make([]Request, len(p.mu.log))
	for i, r := range p.mu.log {
		entries[i] = *r
	}
	return entries
}

// Reset forgets the counts and the log; rules stay.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.mu.counts)
	p.mu.log = nil
}
