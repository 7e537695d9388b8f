package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// fault is what happens to a request.
type fault string

const (
	failBefore fault = "fail before" // the store never learns of it, the answer is a 500
	failAfter  fault = "fail after"  // it takes effect, the answer is a 500
	loseAnswer fault = "lose answer" // it takes effect, the connection is cut
	killBefore fault = "kill before" // the daemon is killed, the store never learns of it
	killAfter  fault = "kill after"  // it takes effect, and the daemon is killed before the answer
)

// request is one that passed the gate, and what it did.
type request struct {
	op, key         string
	writeID, upload string // of its metadata; of its query, or the answer
	source          string // of a copy
	fault           fault
	status          int       // of the store's own answer; 0: none
	when            time.Time // it arrived
	answered        bool      // the daemon was sent the store's answer
}

func (r *request) String() string {
	text := fmt.Sprintf("%s %s -> %d", r.op, r.key[strings.LastIndex(r.key, "/")+1:], r.status)
	if r.fault != "" {
		text += " (" + string(r.fault) + ")"
	}
	return text
}

// writes tells whether the request changes the store.
func (r *request) writes() bool {
	switch r.op {
	case "PutObject", "CopyObject", "DeleteObject", "DeleteObjects", "CreateMultipartUpload", "UploadPart",
		"UploadPartCopy", "CompleteMultipartUpload", "AbortMultipartUpload":
		return true
	}
	return false
}

// publishes tells whether the request made an object.
func (r *request) published() bool {
	switch r.op {
	case "PutObject", "CopyObject", "CompleteMultipartUpload":
		return r.status/100 == 2
	}
	return false
}

// plan is what the gate does.
type plan struct {
	below   string // keys, or prefixes of listings, that begin so count; others pass
	kind    fault
	at      int  // the first request that meets it; 0: none
	forever bool // and all that follow
	writing bool // only requests that write are counted
}

// gate is a rule of the proxy that all requests pass: it counts them, knows what
// took effect, and makes those fail that the plan says.
type gate struct {
	kill func() // the daemon, at once

	mu      sync.Mutex
	plan    plan
	seen    int // counted by the plan
	hit     *request
	log     []*request
	passing int
}

func newGate(p *faulty.Proxy) *gate {
	g := &gate{}
	p.Add(faulty.Rule{Fault: g})
	return g
}

// begin forgets what was, and follows a plan from now on.
func (g *gate) begin(p plan) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plan, g.seen, g.hit = p, 0, nil
}

// end lets everything pass, and returns the first request that met the fault.
func (g *gate) end() *request {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plan = plan{}
	return g.hit
}

// forget empties the log.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = nil
}

// requests are copies of those that began below a prefix.
func (g *gate) requests(below string) []request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []request
	for _, r := range g.log {
		if strings.HasPrefix(r.key, below) {
			found = append(found, *r)
		}
	}
	return found
}

// settled waits until no request is under way.
func (g *gate) settled(t *testing.T) {
	t.Helper()
	if !within(30*time.Second, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.passing == 0
	}) {
		t.Fatal("requests are under way for half a minute")
	}
}

// enter counts a request, and tells what is to happen to it.
func (g *gate) enter(q *faulty.Request) *request {
	r := &request{
		op: q.Op, key: q.Key, writeID: q.Header.Get("X-Amz-Meta-Lakefs-Write-Id"), upload: q.Query.Get("uploadId"),
		source: q.Header.Get("X-Amz-Copy-Source"), when: q.When,
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, r)
	g.passing++
	p := &g.plan
	if p.at == 0 || !strings.HasPrefix(r.key, p.below) || p.writing && !r.writes() {
		return r
	}
	g.seen++
	if g.seen == p.at || g.seen > p.at && p.forever {
		r.fault = p.kind
		if g.hit == nil {
			g.hit = r
		}
	}
	return r
}

// Apply is faulty.Fault's.
func (g *gate) Apply(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	r := g.enter(x.Request)
	defer func() {
		g.mu.Lock()
		g.passing--
		g.mu.Unlock()
	}()
	switch r.fault {
	case failBefore:
		return refused(x, next)
	case killBefore:
		g.kill()
		return nil, faulty.ErrClosed
	}
	resp, err := g.forward(r, x, next)
	if err != nil || r.fault == "" {
		g.mu.Lock()
		r.answered = err == nil
		g.mu.Unlock()
		return resp, err
	}
	_ = resp.Body.Close() // nobody is to see it
	switch r.fault {
	case failAfter:
		return refused(x, next)
	case killAfter:
		g.kill()
	}
	return nil, faulty.ErrClosed
}

func refused(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	return faulty.Status{Code: http.StatusInternalServerError, S3Code: "InternalError", Message: "a fault"}.Apply(x, next)
}

// forward passes a request on. What writes goes on when the daemon is killed, as in a
// store; what it did is noted.
func (g *gate) forward(r *request, x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	if !r.writes() {
		resp, err := next()
		if err == nil {
			g.note(r, resp.StatusCode, "")
		}
		return resp, err
	}
	var kept *http.Response
	_, err := faulty.LoseAnswer{}.Apply(x, func() (*http.Response, error) { // which the client's end does not end
		resp, err := next()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(resp.Body)
		if closed := resp.Body.Close(); err != nil || closed != nil {
			return nil, errors.Join(err, closed)
		}
		g.note(r, outcomeOf(resp.StatusCode, raw), uploadIn(raw))
		copied := *resp
		copied.Body = io.NopCloser(bytes.NewReader(raw))
		kept = &copied
		resp.Body = http.NoBody
		return resp, nil
	})
	if kept == nil {
		return nil, err
	}
	return kept, nil
}

// outcomeOf is the status, but for an error that came with a 200.
func outcomeOf(status int, body []byte) int {
	if status == http.StatusOK && bytes.Contains(body, []byte("<Error>")) {
		return http.StatusInternalServerError
	}
	return status
}

var uploadTag = regexp.MustCompile(`<UploadId>([^<]*)</UploadId>`)

func uploadIn(body []byte) string {
	if m := uploadTag.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

func (g *gate) note(r *request, status int, upload string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.status = status; upload != "" {
		r.upload = upload
	}
}

// within polls until the condition holds, and tells whether it does by then.
func within(limit time.Duration, condition func() bool) bool {
	expired := time.After(limit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-expired:
			return condition()
		}
	}
	return true
}
