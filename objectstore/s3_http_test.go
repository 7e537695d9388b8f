package objectstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// testLoc is the object that tests ask a faked store for.
var testLoc = Location{Bucket: "bucket", Key: "dir/key"}

// answers is a faked store: it is asked request after request, from 1 on.
type answers func(n int, req *http.Request) (*http.Response, error)

// faked is an S3 over answers instead of a network.
type faked struct {
	*S3
	answer answers

	mu       sync.Mutex
	requests []*http.Request
	fresh    []bool // the request asked for a connection of its own
	observed []S3Request
}

func newFaked(t *testing.T, o S3Options, answer answers) *faked {
	t.Helper()
	f := &faked{answer: answer}
	if o.Config.Credentials == nil {
		o.Config.Credentials = credentials.NewStaticCredentialsProvider("access", "secret", "")
	}
	o.Observe = func(r S3Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.observed = append(f.observed, r)
	}
	s, err := NewS3(o)
	if err != nil {
		t.Fatal(err)
	}
	f.S3 = s
	s.shared, s.fresh = fakedTransport{f, false}, fakedTransport{f, true}
	return f
}

type fakedTransport struct {
	*faked
	fresh bool
}

func (f fakedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.faked.fresh = append(f.faked.fresh, f.fresh)
	n := len(f.requests)
	f.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp, err := f.answer(n, req)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// reply is an answer; header has "Name: value" lines.
func reply(status int, body string, header ...string) (*http.Response, error) {
	resp := &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"X-Amz-Request-Id": {"REQ1"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		resp.Header.Set(name, value)
	}
	return resp, nil
}

func replyError(status int, code string) (*http.Response, error) {
	return reply(status, "<Error><Code>"+code+"</Code><Message>said so</Message><RequestId>REQ1</RequestId></Error>")
}

// hang is a store that accepts and never answers.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// serveObject answers a GET or HEAD as S3 does.
func serveObject(req *http.Request, etag string, data []byte) (*http.Response, error) {
	header := []string{`ETag: "` + etag + `"`, "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT", "X-Amz-Meta-Mode: 644"}
	if m := req.Header.Get("If-Match"); m != "" && m != `"`+etag+`"` {
		return replyError(http.StatusPreconditionFailed, "PreconditionFailed")
	}
	status, body := http.StatusOK, data
	if r := req.Header.Get("Range"); r != "" {
		first, last, _ := strings.Cut(strings.TrimPrefix(r, "bytes="), "-")
		lo, _ := strconv.Atoi(first)
		hi, _ := strconv.Atoi(last)
		if lo >= len(data) {
			return replyError(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		}
		hi = min(hi, len(data)-1)
		status, body = http.StatusPartialContent, data[lo:hi+1]
		header = append(header, "Content-Range: bytes "+strconv.Itoa(lo)+"-"+strconv.Itoa(hi)+"/"+strconv.Itoa(len(data)))
	}
	resp, err := reply(status, string(body), header...)
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp, err
}

// cutAt ends a body early, with an error or as if it were whole.
func cutAt(resp *http.Response, n int, err error) *http.Response {
	whole, rerr := io.ReadAll(resp.Body)
	if rerr != nil {
		panic(rerr)
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:n]), failing{err}))
	return resp
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// stuck is a body that sends some bytes and then none, until its request ends.
type stuck struct {
	io.Reader
	ctx context.Context //nolint:containedctx // of the request
}

func (s stuck) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func wantIs(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func TestLatencyLimit(t *testing.T) {
	var l latencies
	if got := l.limit("read"); got != longestLimit {
		t.Errorf("limit without samples = %s, want %s", got, longestLimit)
	}
	for range 2 * latencySamples {
		l.add("read", 10*time.Millisecond)
	}
	if got := l.limit("read"); got != shortestLimit {
		t.Errorf("limit of a fast store = %s, want %s", got, shortestLimit)
	}
	l.add("read", 4*time.Second)
	if got := l.limit("read"); got != shortestLimit {
		t.Errorf("limit after one slow answer = %s, want %s", got, shortestLimit)
	}
	l.add("read", 200*time.Millisecond)
	if got := l.limit("read"); got != 800*time.Millisecond {
		t.Errorf("limit after two slow answers = %s, want 800ms", got)
	}
	if got := l.limit("list"); got != longestLimit {
		t.Errorf("limit of another operation = %s, want %s", got, longestLimit)
	}
	l.add("read", time.Minute)
	l.add("read", time.Minute)
	if got := l.limit("read"); got != longestLimit {
		t.Errorf("limit of a slow store = %s, want %s", got, longestLimit)
	}
}

// The first request is given up, and the second one gets a new connection and
// as long as it takes.
func TestFirstByteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				return hang(req)
			}
			if err := pause.For(req.Context(), 20*time.Second); err != nil {
				return nil, err
			}
			return serveObject(req, "v1", []byte("data"))
		})
		start := time.Now()
		o, err := f.Stat(t.Context(), testLoc)
		if err != nil || o.Size != 4 {
			t.Fatalf("Stat = %+v, %v", o, err)
		}
		if got := time.Since(start); got != longestLimit+20*time.Second {
			t.Errorf("answered after %s, want after the limit of 5 s and the answer's 20 s", got)
		}
		if len(f.fresh) != 2 || f.fresh[0] || !f.fresh[1] {
			t.Errorf("requests on connections of their own: %v, want [false true]", f.fresh)
		}
		if len(f.observed) != 2 || f.observed[0].Err == nil || f.observed[0].Retry || !f.observed[1].Retry || f.observed[1].Err != nil {
			t.Errorf("observed %+v", f.observed)
		}
	})
}

func TestNeverAnswers(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaked(t, S3Options{Endpoint: "http://store.test", Timeout: timeout}, func(_ int, req *http.Request) (*http.Response, error) {
				return hang(req)
			})
			start := time.Now()
			_, err := f.Stat(t.Context(), testLoc)
			wantIs(t, "Stat", err, ErrUnavailable)
			if got := time.Since(start); got != timeout {
				t.Errorf("gave up after %s, want %s", got, timeout)
			}
			if len(f.requests) != 2 {
				t.Errorf("%d requests, want 2", len(f.requests))
			}
			_, _, err = f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 10}, 0, 5)
			wantIs(t, "Read", err, ErrUnavailable)
			for _, err = range f.List(t.Context(), Location{Bucket: "bucket"}, ListOptions{}) {
				wantIs(t, "List", err, ErrUnavailable)
			}
		})
	}
}

func TestCancelledCallReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
			return hang(req)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := f.Stat(ctx, testLoc)
		wantIs(t, "Stat", err, context.DeadlineExceeded)
		if errors.Is(err, ErrUnavailable) || time.Since(start) != 10*time.Millisecond {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// A request carries what the options say, and nothing of what stores refuse.
func TestRequestHeaders(t *testing.T) {
	f := newFaked(t, S3Options{
		Config: aws.Config{Region: "eu-west-1"}, Endpoint: "http://127.0.0.1:1", RequesterPays: true, ExpectedBucketOwner: "123456789012",
	}, func(_ int, req *http.Request) (*http.Response, error) { return serveObject(req, "v1", []byte("data")) })
	_, body, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if string(got) != "at" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	req := f.requests[0]
	if want := "http://127.0.0.1:1/bucket/dir/key"; strings.TrimSuffix(req.URL.String(), "?x-id=GetObject") != want {
		t.Errorf("URL = %s, want %s", req.URL, want)
	}
	for name, want := range map[string]string{
		"Range": "bytes=1-2", "If-Match": `"v1"`, "X-Amz-Request-Payer": "requester",
		"X-Amz-Expected-Bucket-Owner": "123456789012", "X-Amz-Checksum-Mode": "", "Accept-Encoding": "identity",
	} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	auth := req.Header.Get("Authorization")
	if !strings.Contains(auth, "/eu-west-1/s3/") || strings.Contains(auth, "accept-encoding") {
		t.Errorf("Authorization = %q, want the region eu-west-1, and Accept-Encoding not signed", auth)
	}
}

// Many readers over real connections of a store that fails at every turn: each
// gets all bytes, and no wrong one.
func TestReadersOfAFaultyStore(t *testing.T) {
	data := numbered(1 << 20)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		turn := n.Add(1)
		if turn%7 == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		resp, err := serveObject(req, "v1", data)
		if err != nil {
			t.Error(err)
			return
		}
		defer closing(t, resp.Body)
		whole := resp.ContentLength
		switch turn % 7 {
		case 1: // cut
			whole /= 2
		case 5: // the whole object for a range
			resp.StatusCode = http.StatusOK
			resp.Header.Del("Content-Range")
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		if _, err = io.CopyN(w, resp.Body, whole); err != nil || whole < resp.ContentLength {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	s := newReal(t, server.URL)
	o := Object{Location: testLoc, ETag: "v1", Size: int64(len(data))}
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for k := range 4 {
				off, size := int64(1000*i+k+1), int64(200_000+i)
				_, b, err := readBody(t.Context(), s, o, off, size)
				if err != nil || !bytes.Equal(b, data[off:off+size]) {
					t.Errorf("%d bytes, %v; want [%d, +%d)", len(b), err, off, size)
				}
			}
		})
	}
	readers.Wait()
}
