package faulty

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// copySize is the most that is held of a body.
const copySize int64 = 256 << 10

// ErrClosed is returned by a fault that closes the connection without an answer.
var ErrClosed = errors.New("connection closed by a fault")

// ErrReset is returned by a fault that resets the connection.
var ErrReset = errors.New("connection reset by a fault")

// Exchange is a request on its way. It belongs to the goroutine of the fault.
type Exchange struct {
	Request *Request      // as it arrived; to be read only
	HTTP    *http.Request // what will be sent to the store

	proxy    *Proxy
	rules    []*Active
	latency  Latency
	release  <-chan struct{} // closed by the first Release since the request arrived
	gone     context.Context //nolint:containedctx // the client's: done when it left
	flush    func() error    // sends what was written of the answer
	detached bool            // the store's work goes on when the client leaves
	received atomic.Int64    // bytes of the request's body
	bodyEnd  atomic.Int64    // when the request was read to its end, in Unix nanoseconds
}

// handle serves one request.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	q := newRequest(r)
	x := &Exchange{Request: q, HTTP: p.outgoing(r), proxy: p, gone: r.Context(), flush: http.NewResponseController(w).Flush}
	if !p.enter(x) {
		panic(http.ErrAbortHandler)
	}
	defer p.work.Done()
	defer p.recover()
	x.bodyEnd.Store(q.When.UnixNano())
	x.HTTP.Body = x.latency.request(x, x.HTTP.Body)
	resp, err := x.latency.answer(x, func() (*http.Response, error) { return x.pass(x.rules) }) //nolint:contextcheck // the exchange knows it
	p.note(x)
	if err != nil {
		abandon(w, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	p.reply(w, resp, q)
}

// note tells the log how much of the request's body was read.
func (p *Proxy) note(x *Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.Request.Received = x.received.Load()
}

// enter counts a request, and finds what applies to it; not so when the proxy ends.
func (p *Proxy) enter(x *Exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return false
	}
	p.work.Add(1)
	p.mu.counts[x.Request.Op]++
	p.mu.log = append(p.mu.log, x.Request)
	x.rules, x.latency, x.release = slices.Clone(p.mu.rules), p.mu.latency, p.mu.release
	return true
}

// recover tells of a panic of a fault; net/http would log it.
func (p *Proxy) recover() {
	switch caught := recover(); caught {
	case nil:
	case http.ErrAbortHandler:
		panic(caught)
	default:
		p.fail("panic in the proxy: %v", caught)
		panic(http.ErrAbortHandler)
	}
}

// outgoing is the request to the store: what came, under the same Host header and
// with the same escapes in its path.
func (p *Proxy) outgoing(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL = &url.URL{
		Scheme: p.target.Scheme, Host: p.target.Host,
		Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery,
	}
	out.URL.Opaque, _, _ = strings.Cut(r.RequestURI, "?")
	if r.ContentLength == 0 {
		out.Body = http.NoBody // else it were sent as chunks
	}
	for _, hop := range []string{"Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade"} {
		out.Header.Del(hop)
	}
	if _, ok := r.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // else Go adds its own
	}
	return out
}

// pass applies the rules that take the request, one within the other, and sends it.
func (x *Exchange) pass(rules []*Active) (*http.Response, error) {
	for i, a := range rules {
		x.proxy.mu.Lock()
		takes := a.takes(x.Request)
		x.proxy.mu.Unlock()
		if takes {
			return a.rule.Fault.Apply(x, func() (*http.Response, error) { return x.pass(rules[i+1:]) })
		}
	}
	ctx := x.gone
	if x.detached {
		ctx = x.proxy.life
	}
	return x.proxy.transport.RoundTrip(x.HTTP.WithContext(ctx))
}

// Drop takes headers from the request to the store, and signs it anew.
func (x *Exchange) Drop(headers ...string) error {
	changed := false
	for _, name := range headers {
		changed = changed || x.HTTP.Header.Get(name) != ""
		x.HTTP.Header.Del(name)
	}
	if !changed || x.HTTP.Header.Get("Authorization") == "" {
		return nil
	}
	hash := x.HTTP.Header.Get("X-Amz-Content-Sha256")
	if hash == "" {
		empty := sha256.Sum256(nil)
		hash = hex.EncodeToString(empty[:])
	}
	s := x.proxy.server
	opaque := x.HTTP.URL.Opaque
	x.HTTP.URL.Opaque = "" // the signer takes it for more than a path
	x.HTTP.Header.Del("Authorization")
	err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(x.gone,
		aws.Credentials{AccessKeyID: s.Access, SecretAccessKey: s.Secret}, x.HTTP, hash, "s3", s.Region, time.Now())
	x.HTTP.URL.Opaque = opaque
	return err
}

// drain reads the request's body, so that the client has said all.
func (x *Exchange) drain() error {
	_, err := io.Copy(io.Discard, x.HTTP.Body)
	return err
}

// hold waits for Release; the client's leaving is an error.
func (x *Exchange) hold() error {
	select {
	case <-x.release:
		return nil
	case <-x.gone.Done():
		return ErrClosed
	}
}

// reply sends an answer. An error of its body closes the connection.
func (p *Proxy) reply(w http.ResponseWriter, resp *http.Response, q *Request) {
	header := w.Header()
	for name, values := range resp.Header {
		header[name] = values
	}
	if header.Get("Content-Type") == "" {
		header["Content-Type"] = nil // else Go guesses one
	}
	header.Del("Connection")
	header.Del("Transfer-Encoding")
	p.mu.Lock()
	q.Status = resp.StatusCode
	p.mu.Unlock()
	w.WriteHeader(resp.StatusCode)
	size := copySize
	if resp.ContentLength >= 0 {
		size = min(size, resp.ContentLength+1)
	}
	sent, err := copyWide(w, resp.Body, size)
	p.mu.Lock()
	q.Sent = sent
	p.mu.Unlock()
	if err != nil {
		_ = http.NewResponseController(w).Flush() // what came before the cut arrives
		abandon(w, err)
	}
}

// abandon ends the handler and closes the connection.
func abandon(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrReset) {
		if conn, _, hijacked := http.NewResponseController(w).Hijack(); hijacked == nil {
			reset(conn)
		}
	}
	panic(http.ErrAbortHandler)
}
