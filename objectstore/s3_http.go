package objectstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a connection.
const (
	dialTimeout     = 10 * time.Second
	idleTimeout     = 20 * time.Second // S3 closes its end some seconds later
	idleConnections = 256
	connectionBytes = 32 << 10 // of each direction's buffer
)

// newTransport makes a transport that hands bytes on as they are stored (never
// decompressed), over HTTP/1.1: one connection of S3 is slower than many.
func newTransport(o S3Options, keepAlive bool) *http.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           2 * idleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
		DisableKeepAlives:      !keepAlive,
		ReadBufferSize:         connectionBytes,
		WriteBufferSize:        connectionBytes,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// Why an attempt was given up.
var (
	errSlow     = errors.New("no answer within the first-byte limit")
	errDeadline = errors.New("no answer in time")
	errStalled  = errors.New("the answer stalled")
	errDone     = errors.New("done")
)

// attempt is one request of a call, from its signature to its headers, and for
// a streamed body to its end. The sender finds it in the request's context.
type attempt struct {
	cancel    context.CancelCauseFunc
	watch     *time.Timer   // gives it up
	patience  time.Duration // bytes on the way extend watch by it; 0: nothing does
	firstByte time.Duration // 0: no limit
	fresh     bool          // on a new connection
	streams   bool          // closing the answer's body ends it
	stall     time.Duration // each read of the answer's body takes so long at most; 0: no limit
	until     time.Time     // for the first byte of that body too; zero: no limit
	cause     func() error  // why it ended; nil: it did not

	start   time.Time // of the request; zero: none was made
	elapsed time.Duration
	status  int
	id      string // the store's request id
	region  string // of the bucket, where the answer tells it
	html    bool   // the answer's body is a page for people: some program on the way spoke
	head    bool   // it is one to HEAD, which has no body
	skew    time.Duration
	// retryAfter is when the store asks to be asked again; 0: it does not say.
	retryAfter time.Duration
	bytes      atomic.Int64 // sent
}

type attemptKey struct{}

// progress notes that bytes came or went.
func (a *attempt) progress() {
	if a.patience > 0 {
		a.watch.Reset(a.patience)
	}
}

// end frees what the attempt holds. Bytes that did not come yet are not waited for.
func (a *attempt) end() {
	a.watch.Stop()
	a.cancel(errDone)
}

// sender is the HTTP client of the SDK's clients. It follows no redirects: the
// request would need another signature.
type sender struct{ s3 *S3 }

// Do sends a request as its attempt says.
func (c *sender) Do(req *http.Request) (*http.Response, error) {
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok { // the SDK's own: a session of a directory bucket
		return c.s3.shared.RoundTrip(req)
	}
	rt := c.s3.shared
	if a.fresh {
		rt = c.s3.fresh
	}
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &sentBody{ReadCloser: req.Body, attempt: a, sent: c.s3.o.Sent}
	}
	req.Header.Set("Accept-Encoding", "identity") // the bytes as they are stored
	a.start = time.Now()
	limit := &time.Timer{}
	if a.firstByte > 0 {
		limit = time.AfterFunc(a.firstByte, func() { a.cancel(errSlow) })
	}
	resp, err := rt.RoundTrip(req)
	inTime := a.firstByte == 0 || limit.Stop()
	a.elapsed = time.Since(a.start)
	if err != nil {
		return nil, err
	}
	if !inTime {
		a.cancel(errSlow)
		return nil, errors.Join(errSlow, resp.Body.Close())
	}
	a.note(resp)
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusMovedPermanently {
		a.noteRegion(resp)
	}
	resp.Body = &receivedBody{ReadCloser: resp.Body, attempt: a}
	return resp, nil
}

// note keeps what the headers tell of the request itself.
func (a *attempt) note(resp *http.Response) {
	a.progress()
	a.status = resp.StatusCode
	a.id = resp.Header.Get("x-amz-request-id")
	a.region = resp.Header.Get("x-amz-bucket-region")
	// The answer to a HEAD has no body, whatever its type; that to a missing object
	// is text/html of many stores.
	a.head = resp.Request.Method == http.MethodHead
	a.html = resp.Request.Method != http.MethodHead && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.skew = time.Until(t)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), a.skew)
	}
}

// maxErrorBody is how much of an error's body is read for the region that it names.
const maxErrorBody = 16 << 10

// regionElement has the region that a request should have been signed for.
var regionElement = regexp.MustCompile(`<Region>([a-zA-Z0-9-]{1,64})</Region>`)

// noteRegion keeps the bucket's region where the body of an error tells it alone, as
// that of stores other than AWS's does.
func (a *attempt) noteRegion(resp *http.Response) {
	if a.region != "" || a.head {
		return
	}
	begin, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	rest := io.MultiReader(bytes.NewReader(begin), resp.Body)
	if err != nil { // who reads on meets it
		rest = io.MultiReader(bytes.NewReader(begin), failedReader{err})
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{rest, resp.Body}
	if found := regionElement.FindSubmatch(begin); found != nil {
		a.region = string(found[1])
	}
}

// failedReader is a body that has failed.
type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }

// retryAfter reads a Retry-After, which has seconds or a time of the store's clock;
// skew is how far that is ahead of the one here. 0 where it says nothing.
func retryAfter(value string, skew time.Duration) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(time.Until(t)-skew, 0)
	}
	return 0
}

// sentBody counts what a request sends.
type sentBody struct {
	io.ReadCloser
	attempt *attempt
	sent    func(n int) // nil: nobody else counts
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.attempt.bytes.Add(int64(n))
	if b.sent != nil {
		b.sent(n)
	}
	b.attempt.progress()
	return n, err
}

// receivedBody is an answer's body.
type receivedBody struct {
	io.ReadCloser
	attempt *attempt
	timer   *time.Timer // of the stall limit; nil before the first read
}

func (b *receivedBody) Read(p []byte) (int, error) {
	a := b.attempt
	if a.stall > 0 {
		stop := b.limit()
		defer stop()
	}
	n, err := b.ReadCloser.Read(p)
	a.progress()
	if n > 0 {
		a.until = time.Time{}
	}
	if err != nil && !errors.Is(err, io.EOF) && a.cause() != nil {
		err = a.cause()
	}
	return n, err
}

// limit gives the attempt up unless the read that follows ends in time.
func (b *receivedBody) limit() (stop func() bool) {
	a, d := b.attempt, b.attempt.stall
	if !a.until.IsZero() {
		d = min(d, time.Until(a.until))
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(d, func() { a.cancel(errStalled) })
	} else {
		b.timer.Reset(d)
	}
	return b.timer.Stop
}

// Close ends a streaming attempt first: net/http then drops the connection of a
// half-read body, and drains nothing.
func (b *receivedBody) Close() error {
	if b.attempt.streams {
		b.attempt.end()
	}
	return b.ReadCloser.Close()
}

// Bounds of the first-byte limit.
const (
	shortestLimit  = 300 * time.Millisecond
	longestLimit   = 5 * time.Second
	limitFactor    = 4
	latencySamples = 32
)

// latencies are how long the answers of late took, by operation; the zero value
// is ready. An answer that takes several times the slow ones of late is rather
// lost than late.
type latencies struct {
	mu    sync.Mutex
	rings map[string]*latencyRing
}

type latencyRing struct {
	samples [latencySamples]time.Duration
	n       int
}

// add notes an answer.
func (l *latencies) add(op string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rings == nil {
		l.rings = map[string]*latencyRing{}
	}
	r := l.rings[op]
	if r == nil {
		r = &latencyRing{}
		l.rings[op] = r
	}
	r.samples[r.n%latencySamples] = d
	r.n++
}

// limit is how long the first byte of an operation is waited for. The slowest
// answer in 32 does not count: it may have been a lost one.
func (l *latencies) limit(op string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rings[op]
	if r == nil || r.n < 4 {
		return longestLimit
	}
	sorted := r.samples
	known := sorted[:min(r.n, latencySamples)]
	slices.Sort(known)
	return min(max(limitFactor*known[len(known)-2], shortestLimit), longestLimit)
}
