package faulty

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Latency makes a store on this machine one that is far away. The zero value
// does nothing.
type Latency struct {
	FirstByte time.Duration // from a request's last byte to its answer's first, at least
	List      time.Duration // the same for listings; 0: FirstByte
	// BytesPerSecond is what a connection carries of bodies, each way; 0: all it can.
	BytesPerSecond int64
}

// SetLatency sets the latency of the requests that arrive from now on.
func (p *Proxy) SetLatency(l Latency) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.latency = l
}

// request paces and counts the request's body, and notes its end.
func (l Latency) request(x *Exchange, body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body
	}
	return &reader{ReadCloser: l.pace(x, body), read: func(n int, err error) (int, error) {
		x.received.Add(int64(n))
		if err == io.EOF { //nolint:errorlint // a Reader's contract
			x.bodyEnd.Store(time.Now().UnixNano())
		}
		return n, err
	}}
}

// answer delays what next answers, and paces its body.
func (l Latency) answer(x *Exchange, next Next) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	delay := l.FirstByte
	if l.List != 0 && strings.HasPrefix(x.Request.Op, "List") {
		delay = l.List
	}
	if err := pause(x.gone, x.sinceRequest(delay)); err != nil {
		_ = resp.Body.Close() // nobody is there to read it
		return nil, err
	}
	resp.Body = l.pace(x, resp.Body)
	return resp, nil
}

// sinceRequest is how long it is until d after the request's end.
func (x *Exchange) sinceRequest(d time.Duration) time.Duration {
	return time.Until(time.Unix(0, x.bodyEnd.Load()).Add(d))
}

// granularity is how far a body may be ahead of its rate before its end: to wait
// for each piece of a fast one costs more than to copy it.
const granularity = 2 * time.Millisecond

// pace is body at no more than the rate, from its first byte on.
func (l Latency) pace(x *Exchange, body io.ReadCloser) io.ReadCloser {
	if l.BytesPerSecond == 0 {
		return body
	}
	var begin time.Time
	var total int64
	return &reader{ReadCloser: body, read: func(n int, err error) (int, error) {
		if begin.IsZero() {
			begin = time.Now()
		}
		total += int64(n)
		due := time.Duration(float64(total) / float64(l.BytesPerSecond) * float64(time.Second))
		ahead := time.Until(begin.Add(due))
		if err == nil && ahead < granularity {
			return n, nil
		}
		if gone := pause(x.gone, ahead); gone != nil {
			return n, gone
		}
		return n, err
	}}
}

// pause waits for a time, or for the end of ctx, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ErrClosed
	}
}

// reader passes the outcome of each Read through a function.
type reader struct {
	io.ReadCloser
	read func(n int, err error) (int, error)
}

// Read reads, and hands on what the function makes of it.
func (r *reader) Read(p []byte) (int, error) { return r.read(r.ReadCloser.Read(p)) }
