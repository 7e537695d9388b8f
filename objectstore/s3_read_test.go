package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// numbered returns n bytes that tell their place.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)
	}
	return b
}

// readBody reads a range to its end.
func readBody(ctx context.Context, s *S3, o Object, off, n int64) (got Object, b []byte, err error) {
	got, body, err := s.Read(ctx, o, off, n)
	if err != nil {
		return got, nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	b, err = io.ReadAll(body)
	return got, b, err
}

func TestReadRequests(t *testing.T) {
	for _, c := range []struct {
		size          int
		etag          string
		off, n        int64
		method, asked string // of the last request
		requests      int
	}{
		{10, "v1", 0, 10, "GET", "", 1},
		{10, "v1", 0, 1 << 40, "GET", "", 1},
		{10, "v1", 2, 3, "GET", "bytes=2-4", 1},
		{10, "v1", 2, 1 << 62, "GET", "bytes=2-9", 1},
		{10, "v1", 9, 1, "GET", "bytes=9-9", 1},
		{10, "v1", 10, 1, "HEAD", "", 1},
		{10, "v1", 11, 1, "HEAD", "", 1},
		{10, "v1", 1 << 62, 1 << 62, "HEAD", "", 1},
		{10, "v1", 3, 0, "HEAD", "", 1},
		{0, "v1", 0, 0, "GET", "", 1},
		{0, "v1", 0, 5, "GET", "", 1},
		{0, "v1", 5, 5, "GET", "", 1},
		{10, "", 0, 4, "GET", "bytes=0-3", 1},
		{10, "", 0, 100, "GET", "bytes=0-99", 1},
		{10, "", 8, 5, "GET", "bytes=8-12", 1},
		{10, "", 0, 0, "HEAD", "", 1},
		{10, "", 10, 5, "HEAD", "", 2}, // it is not known that it ends there
		{0, "", 0, 5, "HEAD", "", 2},
	} {
		t.Run(fmt.Sprintf("%d+%d of %d %s", c.off, c.n, c.size, c.etag), func(t *testing.T) {
			data := numbered(c.size)
			f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
				return serveObject(req, "v1", data)
			})
			o := Object{Location: testLoc, ETag: c.etag, Size: int64(c.size)}
			if c.etag == "" {
				o.Size = 12345 // counts for nothing
			}
			got, b, err := readBody(t.Context(), f.S3, o, c.off, c.n)
			lo := min(c.off, int64(c.size))
			hi := lo + min(c.n, int64(c.size)-lo)
			if err != nil || !bytes.Equal(b, data[lo:hi]) {
				t.Errorf("%d bytes, %v; want [%d, %d)", len(b), err, lo, hi)
			}
			if got.Location != testLoc || got.ETag != "v1" || got.Match != "v1" || got.Size != int64(c.size) ||
				got.ModTime.Year() != 2000 || got.Meta[MetaMode] != "644" {
				t.Errorf("Object = %+v", got)
			}
			last := f.requests[len(f.requests)-1]
			if len(f.requests) != c.requests || last.Method != c.method || last.Header.Get("Range") != c.asked {
				t.Errorf("%d requests, the last %s %q", len(f.requests), last.Method, last.Header.Get("Range"))
			}
			if want := quoteETag(c.etag); c.etag != "" && last.Header.Get("If-Match") != *want {
				t.Errorf("If-Match = %s, want %s", last.Header.Get("If-Match"), *want)
			}
		})
	}
}

func TestReadChanged(t *testing.T) {
	data := numbered(10)
	for name, o := range map[string]Object{
		"another version":             {Location: testLoc, ETag: "v0", Size: 10},
		"a size that was listed late": {Location: testLoc, ETag: "v1", Size: 20},
		"a smaller size":              {Location: testLoc, ETag: "v1", Size: 8},
	} {
		for _, ignores := range []bool{false, true} { // If-Match
			for _, r := range []struct{ off, n int64 }{{0, 20}, {2, 3}, {7, 9}, {19, 1}, {30, 1}, {0, 0}} {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
					if ignores {
						req.Header.Del("If-Match")
					}
					return serveObject(req, "v1", data)
				})
				_, _, err := readBody(t.Context(), f.S3, o, r.off, r.n)
				wantIs(t, fmt.Sprintf("%s: Read(%d, %d)", name, r.off, r.n), err, ErrChanged)
			}
		}
	}
}

// An answer that is not what was asked for is never served.
func TestReadWrongAnswer(t *testing.T) {
	data := numbered(100)
	for name, spoil := range map[string]func(*http.Response){
		"200 for a range": func(r *http.Response) {
			r.StatusCode = 200
			r.Header.Del("Content-Range")
		},
		"another range":   func(r *http.Response) { r.Header.Set("Content-Range", "bytes 0-19/100") },
		"a longer range":  func(r *http.Response) { r.Header.Set("Content-Range", "bytes 10-30/100") },
		"a shorter range": func(r *http.Response) { r.Header.Set("Content-Range", "bytes 10-20/100") },
		"a later range": func(r *http.Response) {
			r.Header.Set("Content-Range", "bytes 11-29/100")
			r.Header.Del("Content-Length")
		},
		"no range":          func(r *http.Response) { r.Header.Del("Content-Range") },
		"no total":          func(r *http.Response) { r.Header.Set("Content-Range", "bytes 10-29/*") },
		"another length":    func(r *http.Response) { r.Header.Set("Content-Length", "21") },
		"no ETag":           func(r *http.Response) { r.Header.Del("ETag") },
		"204":               func(r *http.Response) { r.StatusCode = 204 },
		"503 with a body":   func(r *http.Response) { r.StatusCode = 503 },
		"nothing of a body": func(r *http.Response) { *r = *cutAt(r, 0, io.EOF) }, //nolint:bodyclose // S3 closes it
	} {
		for _, etag := range []string{"v1", ""} {
			t.Run(name+" "+etag, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					always := false
					f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
						resp, err := serveObject(req, "v1", data)
						if n < 3 || always {
							spoil(resp)
						}
						return resp, err
					})
					o := Object{Location: testLoc, ETag: etag, Size: 100}
					_, b, err := readBody(t.Context(), f.S3, o, 10, 20)
					if err != nil || !bytes.Equal(b, data[10:30]) || len(f.requests) != 3 {
						t.Errorf("%d bytes, %v after %d requests", len(b), err, len(f.requests))
					}
					always = true
					start := time.Now()
					_, b, err = readBody(t.Context(), f.S3, o, 10, 20)
					wantIs(t, "Read of what stays wrong", err, ErrUnavailable)
					if len(b) != 0 || time.Since(start) > time.Minute {
						t.Errorf("%d bytes were served, after %s", len(b), time.Since(start))
					}
				})
			})
		}
	}
}

// A body that ends early goes on where it ended, with the version it began with.
func TestReadResumes(t *testing.T) {
	data := numbered(1000)
	for name, o := range map[string]Object{
		"pinned": {Location: testLoc, ETag: "v1", Size: 1000}, "any version": {Location: testLoc},
	} {
		for how, cut := range map[string]func(*http.Request, *http.Response) *http.Response{
			"cut":   func(_ *http.Request, r *http.Response) *http.Response { return cutAt(r, 300, io.ErrUnexpectedEOF) },
			"short": func(_ *http.Request, r *http.Response) *http.Response { return cutAt(r, 300, io.EOF) },
			"stall": func(req *http.Request, r *http.Response) *http.Response {
				r = cutAt(r, 300, io.EOF)
				r.Body = io.NopCloser(stuck{r.Body, req.Context()})
				return r
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
						if n == 2 {
							return replyError(503, "SlowDown")
						}
						resp, err := serveObject(req, "v1", data)
						if n == 1 {
							resp = cut(req, resp)
						}
						return resp, err
					})
					_, b, err := readBody(t.Context(), f.S3, o, 100, 800)
					if err != nil || !bytes.Equal(b, data[100:900]) {
						t.Errorf("%d bytes, %v; want 800", len(b), err)
					}
					last := f.requests[len(f.requests)-1].Header
					if len(f.requests) != 3 || last.Get("Range") != "bytes=400-899" || last.Get("If-Match") != `"v1"` {
						t.Errorf("%d requests, the last for %s of %s", len(f.requests), last.Get("Range"), last.Get("If-Match"))
					}
					if r := f.observed; r[0].Retry || !r[1].Retry || !r[2].Retry {
						t.Errorf("observed %+v", r)
					}
				})
			})
		}
	}
}

// Bytes are counted as they are read, each once, whatever was asked for again.
func TestReadIsCounted(t *testing.T) {
	data := numbered(1000)
	var received atomic.Int64
	o := S3Options{Endpoint: "http://store.test", Received: func(n int) { received.Add(int64(n)) }}
	f := newFaked(t, o, func(n int, req *http.Request) (*http.Response, error) {
		resp, err := serveObject(req, "v1", data)
		if n == 1 {
			resp = cutAt(resp, 300, io.ErrUnexpectedEOF)
		}
		return resp, err
	})
	_, b, err := readBody(t.Context(), f.S3, Object{Location: testLoc, ETag: "v1", Size: 1000}, 100, 800)
	if err != nil || len(b) != 800 || received.Load() != 800 {
		t.Errorf("read %d bytes, %v; counted %d, want 800", len(b), err, received.Load())
	}
}

func TestReadCutForGood(t *testing.T) {
	data := numbered(1000)
	for name, broken := range map[string]func(*http.Request) (*http.Response, error){
		"cut": func(req *http.Request) (*http.Response, error) {
			resp, err := serveObject(req, "v1", data)
			return cutAt(resp, 0, io.ErrUnexpectedEOF), err
		},
		"stall": func(req *http.Request) (*http.Response, error) {
			resp, err := serveObject(req, "v1", data)
			resp.Body = io.NopCloser(stuck{strings.NewReader(""), req.Context()})
			return resp, err
		},
		"503":    func(*http.Request) (*http.Response, error) { return replyError(503, "SlowDown") },
		"no one": hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
					if n > 1 {
						return broken(req)
					}
					resp, err := serveObject(req, "v1", data)
					return cutAt(resp, 300, io.ErrUnexpectedEOF), err
				})
				start := time.Now()
				_, b, err := readBody(t.Context(), f.S3, Object{Location: testLoc, ETag: "v1", Size: 1000}, 0, 1000)
				wantIs(t, "Read", err, io.ErrUnexpectedEOF)
				wantIs(t, "Read", err, ErrUnavailable)
				if !bytes.Equal(b, data[:300]) {
					t.Errorf("%d bytes, want the 300 that came", len(b))
				}
				if got := time.Since(start); got > time.Minute {
					t.Errorf("gave up after %s", got)
				}
				if n := len(f.requests); n < 3 || name == "cut" && n > 1+maxResumes || n > 20 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// Once another version is there, the rest of the old one is gone.
func TestReadReplacedHalfWay(t *testing.T) {
	data := numbered(1000)
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
		if n > 1 {
			return serveObject(req, "v2", data)
		}
		resp, err := serveObject(req, "v1", data)
		return cutAt(resp, 300, io.ErrUnexpectedEOF), err
	})
	_, b, err := readBody(t.Context(), f.S3, Object{Location: testLoc}, 0, 1000)
	wantIs(t, "Read", err, ErrChanged)
	if len(b) != 300 || len(f.requests) != 2 {
		t.Errorf("%d bytes of %d requests", len(b), len(f.requests))
	}
}

// A body that comes slowly, but comes, is read to its end, however long it takes.
func TestReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := numbered(100)
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
			resp, err := serveObject(req, "v1", data)
			if n == 1 {
				return cutAt(resp, 10, io.ErrUnexpectedEOF), err
			}
			resp.Body = io.NopCloser(slow{resp.Body, req.Context()})
			return resp, err
		})
		start := time.Now()
		_, b, err := readBody(t.Context(), f.S3, Object{Location: testLoc, ETag: "v1", Size: 100}, 0, 100)
		if err != nil || !bytes.Equal(b, data) || len(f.requests) != 2 {
			t.Errorf("%d bytes, %v of %d requests", len(b), err, len(f.requests))
		}
		if got := time.Since(start); got < 90*(stallLimit-time.Second) {
			t.Errorf("read after %s", got)
		}
	})
}

// slow is a body of which each byte takes nearly too long.
type slow struct {
	io.Reader
	ctx context.Context //nolint:containedctx // of the request
}

func (s slow) Read(p []byte) (int, error) {
	if err := pause.For(s.ctx, stallLimit-time.Second); err != nil {
		return 0, err
	}
	return s.Reader.Read(p[:min(1, len(p))])
}

func TestReadCloseEndsTheRequest(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
		return serveObject(req, "v1", numbered(100))
	})
	_, body, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 100}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err = f.requests[0].Context().Err(); err != nil {
		t.Errorf("the request ended before its body: %v", err)
	}
	closing(t, body)
	wantIs(t, "the request of a closed body", f.requests[0].Context().Err(), context.Canceled)
}

func TestReadNeverServesMore(t *testing.T) {
	data := numbered(100)
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
		resp, err := serveObject(req, "v1", data)
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, strings.NewReader("and more")))
		return resp, err
	})
	_, b, err := readBody(t.Context(), f.S3, Object{Location: testLoc, ETag: "v1", Size: 100}, 10, 20)
	if err != nil || !bytes.Equal(b, data[10:30]) {
		t.Errorf("%d bytes, %v; want 20", len(b), err)
	}
}

func TestReadCancelledHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
			resp, err := serveObject(req, "v1", numbered(100))
			resp.Body = io.NopCloser(stuck{strings.NewReader("abc"), req.Context()})
			return resp, err
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, b, err := readBody(ctx, f.S3, Object{Location: testLoc, ETag: "v1", Size: 100}, 0, 100)
		wantIs(t, "Read", err, context.DeadlineExceeded)
		if string(b) != "abc" || time.Since(start) != time.Second || len(f.requests) != 1 {
			t.Errorf("%q after %s and %d requests", b, time.Since(start), len(f.requests))
		}
	})
}

func TestReadRefusesOddCalls(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	o := Object{Location: testLoc, ETag: "v1", Size: 4}
	for _, r := range []struct{ off, n int64 }{{-1, 1}, {0, -1}} {
		if _, _, err := f.Read(t.Context(), o, r.off, r.n); err == nil {
			t.Errorf("Read(%d, %d) succeeds", r.off, r.n)
		}
	}
	for _, key := range []string{"", "a\x00b", strings.Repeat("x", 1025)} {
		o.Key = key
		_, _, err := f.Read(t.Context(), o, 0, 1)
		wantIs(t, fmt.Sprintf("Read of %.10q", key), err, ErrName)
	}
	if len(f.requests) != 0 {
		t.Errorf("%d requests", len(f.requests))
	}
}

func TestReadOfArchived(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) {
		return replyError(403, "InvalidObjectState")
	})
	_, _, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4)
	wantIs(t, "Read", err, ErrPermission)
	if !strings.Contains(err.Error(), "archived: restore it first") {
		t.Errorf("%v does not tell what to do", err)
	}
}

// Over real connections: stored bytes are not decompressed, a body that was read
// to its end leaves its connection to the next, and one that is closed half-way
// is not drained.
func TestReadOverHTTP(t *testing.T) {
	data := numbered(64 << 20)
	var sent, connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		resp, err := serveObject(req, "v1", data)
		if err != nil {
			t.Error(err)
		}
		defer closing(t, resp.Body)
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(resp.StatusCode)
		n, _ := io.Copy(w, resp.Body)
		sent.Add(n)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := newReal(t, server.URL)
	o := Object{Location: testLoc, ETag: "v1", Size: int64(len(data))}
	for range 5 {
		_, b, err := readBody(t.Context(), s, o, 1000, 5000)
		if err != nil || !bytes.Equal(b, data[1000:6000]) {
			t.Fatalf("%d bytes, %v; want 5000 as they are stored", len(b), err)
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections for one read after another", got)
	}
	sent.Store(0)
	_, body, err := s.Read(t.Context(), o, 0, o.Size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.ReadFull(body, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
	if err = body.Close(); err != nil {
		t.Error(err)
	}
	if _, err = body.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body reads")
	}
	server.Close() // waits for the handler
	if got := sent.Load(); got > 16<<20 {
		t.Errorf("%d bytes were sent of a body that was closed after 1000", got)
	}
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func newReal(t *testing.T, endpoint string) *S3 {
	t.Helper()
	s, err := NewS3(S3Options{Endpoint: endpoint, Config: aws.Config{Credentials: &rotating{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
