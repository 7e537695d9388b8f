package catalogview

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxGlueBody bounds what one answer may hold, in bytes, after decompression.
const maxGlueBody = 32 << 20

// newGlueTransport makes a transport that hands bodies on as they came, over
// HTTP/1.1.
func newGlueTransport(roots *x509.CertPool) *http.Transport {
	const (
		dialTimeout     = 10 * time.Second
		idleConnections = 64
	)
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        20 * time.Second,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true, // readGlueBody decompresses, within the limit
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// exchange is one HTTP request and its answer. The sender finds it in the
// request's context.
type exchange struct {
	start   time.Time // zero: no request was made
	elapsed time.Duration
	status  int    // 0: no answer
	id      string // the service's request id
	code    string // of the error, where a header tells it
	body    []byte // whole, decompressed
}

type exchangeKey struct{}

// Why a body is none.
var (
	errGlueBody  = fmt.Errorf("the answer's body is over the limit of %d MiB", maxGlueBody>>20)
	errGlueDepth = fmt.Errorf("the answer nests deeper than %d", maxGlueDepth)
)

// oddAnswer is an answer that can not be right, whatever the catalog holds.
type oddAnswer string

func (e oddAnswer) Error() string { return string(e) }

// glueSender is the HTTP client of the SDK's client. It reads each body whole and
// keeps it in the exchange; of a success the SDK gets an empty object, so that
// nothing is decoded twice. It follows no redirects: the request would need
// another signature.
type glueSender struct{ rt http.RoundTripper }

// Do sends a request.
func (s *glueSender) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("a request outside a call")
	}
	x.start = time.Now()
	defer func() { x.elapsed = time.Since(x.start) }()
	resp, err := s.rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := readGlueBody(resp)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	x.status, x.body = resp.StatusCode, body
	x.id, x.code = resp.Header.Get("x-amzn-RequestId"), resp.Header.Get("x-amzn-errortype")
	if x.success() {
		body = []byte("{}")
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

func (x *exchange) success() bool { return x.status/100 == 2 }

// readGlueBody reads an answer's body.
func readGlueBody(resp *http.Response) ([]byte, error) {
	body := io.Reader(resp.Body)
	size := resp.ContentLength
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, oddAnswer("the answer's body is no gzip: " + printable(err.Error()))
		}
		body, size = z, -1
	default:
		return nil, oddAnswer("the answer's body is encoded as " + printable(encoding))
	}
	if size > maxGlueBody {
		return nil, errGlueBody
	}
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(size) + bytes.MinRead) // what ReadFrom wants to see the end
	}
	_, err := b.ReadFrom(io.LimitReader(body, maxGlueBody+1))
	switch {
	case b.Len() > maxGlueBody:
		return nil, errGlueBody
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return b.Bytes(), nil
}

// withExchange returns a context for one request, which ends after limit.
func withExchange(ctx context.Context, limit time.Duration) (context.Context, *exchange, context.CancelFunc) {
	x := &exchange{}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), limit)
	return ctx, x, cancel
}
