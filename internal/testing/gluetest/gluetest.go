package gluetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a catalog behind HTTP. The methods of its Catalog are those of the
// server's own account.
type Server struct {
	Catalog

	URL string // "http://127.0.0.1:41234"

	http *http.Server
	life context.Context //nolint:containedctx // ends with the server, and hung requests with it
	end  context.CancelFunc
	work sync.WaitGroup // handlers and the serving goroutine
	fail func(format string, args ...any)

	mu struct {
		sync.Mutex
		store
		calls   []Call
		counts  map[string]int
		rules   []*Active
		release chan struct{} // closed by Release
	}
}

// New starts a server with an empty catalog. It ends with the test, and fails it
// where the test loads what is no entry.
func New(tb testing.TB) *Server {
	tb.Helper()
	s, err := Start(tb.Errorf)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the catalog: %v", err)
		}
	})
	return s
}

// Start is New for programs that are no tests, which Close the server. What cannot
// be loaded is told to fail, which may be log.Fatalf.
func Start(fail func(format string, args ...any)) (*Server, error) {
	s := &Server{fail: fail}
	s.Catalog = Catalog{s, Account}
	s.life, s.end = context.WithCancel(context.Background())
	s.mu.catalogs = map[string]map[string]*database{Account: {}}
	s.mu.counts = make(map[string]int)
	s.mu.release = make(chan struct{})
	listener, err := (&net.ListenConfig{}).Listen(s.life, "tcp", "127.0.0.1:0")
	if err != nil {
		s.end()
		return nil, err
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	s.work.Go(func() { _ = s.http.Serve(listener) }) // ends by Close
	return s, nil
}

// Close ends the server and all requests that are under way, and waits for them.
func (s *Server) Close() error {
	s.mu.Lock()
	s.end() // no request enters from here on
	s.mu.Unlock()
	err := s.http.Close()
	s.work.Wait()
	return err
}

// In is a catalog of another account, which is there from now on.
func (s *Server) In(account string) Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.catalogs[account] == nil {
		s.mu.catalogs[account] = make(map[string]*database)
	}
	return Catalog{s, account}
}

// Requests are the numbers of requests by operation ("GetTable") since the start,
// or Reset. They count when they arrive, failed ones too.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.counts)
}

// Calls are the requests since the start, or Reset, in the order they arrived; of
// these operations alone, if any are named.
func (s *Server) Calls(ops ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []Call
	for _, c := range s.mu.calls {
		if len(ops) == 0 || slices.Contains(ops, c.Op) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Reset forgets the counts and the calls; entries and rules stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.mu.counts)
	s.mu.calls = nil
}

// handle serves one request.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	op, known := strings.CutPrefix(r.Header.Get("X-Amz-Target"), prefix)
	if r.Method != http.MethodPost || r.URL.Path != "/" || !known {
		send(w, answer(nil, fail("UnknownOperationException", "")))
		return
	}
	call := newCall(op, body)
	x := &Exchange{Call: call, server: s, gone: r.Context()}
	x.rules, x.release = s.enter(call)
	a, err := x.pass(x.rules)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send(w, a)
}

// begin lets a request in, unless the server ends.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.work.Add(1)
	return true
}

// enter counts a call, and finds what applies to it.
func (s *Server) enter(c *Call) (rules []*Active, release <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.counts[c.Op]++
	s.mu.calls = append(s.mu.calls, *c)
	return slices.Clone(s.mu.rules), s.mu.release
}

// do does what a call says.
func (s *Server) do(c *Call) (json.RawMessage, error) {
	op := operationOf(c.Op)
	switch {
	case op == nil:
		return nil, fail("UnknownOperationException", "")
	case c.malformed != nil:
		return nil, serialization(c.malformed)
	}
	if c.Op != "GetDatabases" && c.Database == "" {
		return nil, refused("databaseName", "Member must not be null")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return op(&s.mu.store, c)
}

// send sends an answer, or as much of it as there is to be before the connection
// closes.
func send(w http.ResponseWriter, a Answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	_, err := w.Write(a.Body)
	if short := w.Header().Get("Content-Length") != strconv.Itoa(len(a.Body)); short {
		err = errors.Join(err, http.NewResponseController(w).Flush(), ErrClosed)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}
