package objectstore

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// passing are failures that go away by themselves.
func passing() map[string]func() (*http.Response, error) {
	return map[string]func() (*http.Response, error){
		"503":            func() (*http.Response, error) { return replyError(503, "SlowDown") },
		"500":            func() (*http.Response, error) { return replyError(500, "InternalError") },
		"500 of HTML":    func() (*http.Response, error) { return reply(500, "<html><body><p>Oops<br></body></html>") },
		"502 of nothing": func() (*http.Response, error) { return reply(502, "") },
		"504 of text":    func() (*http.Response, error) { return reply(504, "upstream timed out") },
		"429":            func() (*http.Response, error) { return replyError(429, "TooManyRequests") },
		"RequestTimeout": func() (*http.Response, error) { return replyError(400, "RequestTimeout") },
		"200 of HTML":    func() (*http.Response, error) { return reply(200, "<html><body>log in</body></html>") },
		"200 of nothing": func() (*http.Response, error) { return reply(200, "") },
		"refused": func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}
		},
		"reset": func() (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Err: &os.SyscallError{Syscall: "read", Err: syscall.ECONNRESET}}
		},
		"EOF": func() (*http.Response, error) { return nil, io.EOF },
		"no permission to connect": func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.EPERM}}
		},
	}
}

const emptyListing = `<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>`

// each runs every reading operation and returns its error.
func (f *faked) each(ctx context.Context) map[string]error {
	_, statErr := f.Stat(ctx, testLoc)
	_, body, readErr := f.Read(ctx, Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4)
	if readErr == nil {
		_, rerr := io.ReadAll(body)
		readErr = errors.Join(rerr, body.Close())
	}
	var listErr error
	for _, err := range f.List(ctx, Location{Bucket: "bucket"}, ListOptions{}) {
		listErr = err
	}
	return map[string]error{"stat": statErr, "read": readErr, "list": listErr}
}

func serve(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("list-type") == "2" {
		return reply(200, emptyListing)
	}
	return serveObject(req, "v1", []byte("data"))
}

func TestPassingFailureIsRetried(t *testing.T) {
	for name, fail := range passing() { //nolint:bodyclose // S3 closes what it is answered
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
					if n%4 != 0 {
						return fail()
					}
					return serve(req)
				})
				for op, err := range f.each(t.Context()) {
					if err != nil {
						t.Errorf("%s: %v", op, err)
					}
				}
				if len(f.requests) != 12 {
					t.Errorf("%d requests, want 12", len(f.requests))
				}
				for i, r := range f.observed {
					if want := i%4 != 0; r.Retry != want {
						t.Errorf("request %d: Retry %v, want %v", i, r.Retry, want)
					}
					if ok := i%4 == 3; ok != (r.Err == nil) {
						t.Errorf("request %d was observed with error %v", i, r.Err)
					}
				}
			})
		})
	}
}

// What does not pass is ErrUnavailable within Timeout: never "no such object",
// and no sentinel of an errno.
func TestLastingFailureIsUnavailable(t *testing.T) {
	for name, fail := range passing() { //nolint:bodyclose // S3 closes what it is answered
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) { return fail() })
				start := time.Now()
				for op, err := range f.each(t.Context()) {
					wantIs(t, op, err, ErrUnavailable)
					for _, other := range []error{ErrNotExist, ErrPermission, ErrExist, ErrChanged} {
						if errors.Is(err, other) {
							t.Errorf("%s: %v is %v", op, err, other)
						}
					}
				}
				if got := time.Since(start); got > 3*time.Minute {
					t.Errorf("three calls took %s, want a minute each at most", got)
				}
				if n := len(f.requests); n < 15 || n > 90 {
					t.Errorf("%d requests for three calls of a minute, want a few each", n)
				}
			})
		})
	}
}

// A refusal is told at once.
func TestRefusalIsNotRetried(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{403, "AccessDenied", ErrPermission},
		{403, "SignatureDoesNotMatch", ErrPermission},
		{403, "InvalidObjectState", ErrPermission},
		{401, "Unauthorized", ErrPermission},
		{404, "NoSuchBucket", ErrNoBucket},
		{404, "NoSuchKey", ErrNotExist},
		{501, "NotImplemented", errors.ErrUnsupported},
	} {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) {
			return replyError(c.status, c.code)
		})
		for op, err := range f.each(t.Context()) {
			if c.want == ErrNotExist && op == "list" { //nolint:errorlint // the table's own: a listing names no key
				continue
			}
			wantIs(t, c.code+": "+op, err, c.want)
		}
		if len(f.requests) != 3 && c.want != ErrNotExist { //nolint:errorlint // as above
			t.Errorf("%s: %d requests for three calls", c.code, len(f.requests))
		}
	}
}

// rotating hands out a new session at each retrieval.
type rotating struct{ n int }

func (r *rotating) Retrieve(context.Context) (aws.Credentials, error) {
	r.n++
	return aws.Credentials{
		AccessKeyID: "access", SecretAccessKey: "secret", SessionToken: "session" + string(rune('0'+r.n)),
		CanExpire: true, Expires: time.Now().Add(time.Hour),
	}, nil
}

func TestExpiredCredentialsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		valid := "session2"
		f := newFaked(t, S3Options{Endpoint: "http://store.test", Config: aws.Config{Credentials: &rotating{}}},
			func(_ int, req *http.Request) (*http.Response, error) {
				switch {
				case req.Header.Get("X-Amz-Security-Token") == valid:
					return serve(req)
				case req.Method == http.MethodHead:
					return reply(400, "")
				}
				return replyError(400, "ExpiredToken")
			})
		for op, err := range f.each(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", op, err)
			}
		}
		if len(f.requests) != 4 {
			t.Errorf("%d requests, want 4: one was signed anew", len(f.requests))
		}
		valid = "session5" // the provider is late by two
		if _, _, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4); err != nil {
			t.Errorf("Read: %v", err)
		}
		valid = "none"
		_, _, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4)
		wantIs(t, "Read with credentials that stay expired", err, ErrPermission)
	})
}

// A clock that is off is put right by the answer's date, or named.
func TestClockSkew(t *testing.T) {
	const off = 20 * time.Minute
	date := func() string { return "Date: " + time.Now().Add(off).UTC().Format(http.TimeFormat) }
	t.Run("corrected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
				signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
				if err != nil {
					return nil, err
				}
				if time.Since(signed).Abs() < off/2 {
					return reply(403, "", date())
				}
				resp, err := serve(req)
				resp.Header.Set("Date", strings.TrimPrefix(date(), "Date: "))
				return resp, err
			})
			for op, err := range f.each(t.Context()) {
				if err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
			if len(f.requests) != 4 {
				t.Errorf("%d requests, want 4", len(f.requests))
			}
		})
	})
	t.Run("named", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) {
				return reply(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", date())
			})
			for op, err := range f.each(t.Context()) {
				wantIs(t, op, err, ErrPermission)
				if !strings.Contains(err.Error(), "the clock here is 20m0s off the store's") {
					t.Errorf("%s: %v does not name the skew", op, err)
				}
			}
		})
	})
}

func TestRetriesAreSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
			if n < 8 {
				return replyError(503, "SlowDown")
			}
			return serve(req)
		})
		if _, err := f.Stat(t.Context(), testLoc); err != nil {
			t.Fatal(err)
		}
		first, last := f.requests[0].Header, f.requests[7].Header
		if first.Get("X-Amz-Date") == last.Get("X-Amz-Date") || first.Get("Authorization") == last.Get("Authorization") {
			t.Errorf("a retry was sent with the signature of the first request, %s", last.Get("X-Amz-Date"))
		}
	})
}

// A store that says when to ask again is not asked before, as far as there is time.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		says        func() string
		status      int
		refusals    int
		least, most time.Duration
		fails       bool
	}{
		{says: func() string { return "7" }, status: 503, refusals: 1, least: 7 * time.Second, most: 8 * time.Second},
		{says: func() string { return "7" }, status: 429, refusals: 1, least: 7 * time.Second, most: 8 * time.Second},
		{says: func() string { return "7" }, status: 503, refusals: 2, least: 14 * time.Second, most: 15 * time.Second},
		{says: func() string { return time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat) }, status: 503, refusals: 1, least: 8 * time.Second, most: 10 * time.Second},
		{says: func() string { return "3600" }, status: 503, refusals: 1, least: 29 * time.Second, most: 31 * time.Second},
		{says: func() string { return "3600" }, status: 503, refusals: 1000, most: time.Minute, fails: true},
		{says: func() string { return "-7" }, status: 503, refusals: 1, most: time.Second},
		{says: func() string { return "soon" }, status: 503, refusals: 1, most: time.Second},
		{says: func() string { return "99999999999999999999" }, status: 503, refusals: 1, most: time.Second},
		{says: func() string { return time.Unix(0, 0).UTC().Format(http.TimeFormat) }, status: 503, refusals: 1, most: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
				if n > c.refusals {
					return serveObject(req, "v1", []byte("data"))
				}
				return reply(c.status, "", "Retry-After: "+c.says())
			})
			start := time.Now()
			_, err := f.Stat(t.Context(), testLoc)
			took := time.Since(start)
			if (err != nil) != c.fails || took < c.least || took > c.most {
				t.Errorf("%d times %d, to be asked again %q: %v after %v, want %v to %v", c.refusals, c.status, c.says(), err, took, c.least, c.most)
			}
			if n := len(f.requests); n > 20 {
				t.Errorf("%d requests in a minute", n)
			}
		})
	}
}

func TestBudgetHoldsRetriesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget()
		for i := range budgetSize {
			if got := b.take(); got != 0 {
				t.Fatalf("retry %d waits %s", i, got)
			}
		}
		if got, want := b.take(), time.Second/budgetRate; got != want {
			t.Errorf("the first retry over the budget waits %s, want %s", got, want)
		}
		if got, want := b.take(), 2*time.Second/budgetRate; got != want {
			t.Errorf("the second retry over the budget waits %s, want %s", got, want)
		}
		for range 10 * budgetDebt { // of a store that is down
			b.take()
		}
		if got, want := b.take(), budgetDebt*time.Second/budgetRate; got != want {
			t.Errorf("after very many retries the next waits %s, want %s", got, want)
		}
		if err := pause.For(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		for range budgetSize {
			if got := b.take(); got != 0 {
				t.Errorf("after an hour a retry waits %s", got)
			}
		}
		if b.take() == 0 {
			t.Error("an hour without retries saves up more than the budget")
		}
	})
}

func TestBackoffGrows(t *testing.T) {
	for n := range 100 {
		full := min(backoffFirst<<min(n, 10), backoffMax)
		if got := backoff(n); got < full/2 || got > full {
			t.Errorf("pause %d is %s, want %s to %s", n, got, full/2, full)
		}
	}
}

// The region of a bucket is learned from an answer, or asked for, once.
func TestRegionIsFound(t *testing.T) {
	for name, wrong := range map[string]func(*http.Request) (*http.Response, error){
		"301": func(*http.Request) (*http.Response, error) {
			return reply(301, "<Error><Code>PermanentRedirect</Code></Error>", "x-amz-bucket-region: eu-north-1")
		},
		"400": func(*http.Request) (*http.Response, error) {
			return reply(400, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>", "x-amz-bucket-region: eu-north-1")
		},
		"asked for": func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodHead && !strings.Contains(req.URL.Path, "key") {
				return reply(301, "", "x-amz-bucket-region: eu-north-1")
			}
			return reply(301, "<Error><Code>PermanentRedirect</Code></Error>")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaked(t, S3Options{Config: aws.Config{Region: "us-west-2"}}, func(_ int, req *http.Request) (*http.Response, error) {
				switch {
				case req.URL.Host == "bucket.s3.us-west-2.amazonaws.com":
					return wrong(req)
				case req.URL.Host != "bucket.s3.eu-north-1.amazonaws.com" || !strings.Contains(req.Header.Get("Authorization"), "/eu-north-1/"):
					t.Errorf("%s is asked with %s", req.URL.Host, req.Header.Get("Authorization"))
				case !strings.Contains(req.URL.Path, "key") && req.Method == http.MethodHead:
					return reply(403, "", "x-amz-bucket-region: eu-north-1") // a HeadBucket may be denied
				}
				return serve(req)
			})
			for range 2 {
				if _, err := f.Stat(t.Context(), testLoc); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(f.requests); name == "asked for" && n != 5 || name != "asked for" && n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestFixedRegionIsKept(t *testing.T) {
	f := newFaked(t, S3Options{Config: aws.Config{Region: "us-west-2"}, FixedRegion: true}, func(int, *http.Request) (*http.Response, error) {
		return reply(301, "", "x-amz-bucket-region: eu-north-1")
	})
	_, err := f.Stat(t.Context(), testLoc)
	if err == nil || !strings.Contains(err.Error(), "the bucket is in region eu-north-1, not us-west-2") || len(f.requests) != 1 {
		t.Errorf("error %v after %d requests", err, len(f.requests))
	}
}

// A page that says 404 is a program's on the way: only the store knows what it holds.
func TestNotFoundOfHTML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) {
			return reply(404, "<html><body>no such page</body></html>", "Content-Type: text/html; charset=utf-8")
		})
		for op, err := range f.each(t.Context()) {
			want := ErrUnavailable
			if op == "stat" { // a HEAD has no body to tell it by
				want = ErrNotExist
			}
			wantIs(t, op, err, want)
		}
	})
}

// So is a 404 of any form to a listing, and to a read one that does not name the key.
func TestNotFoundOfAnything(t *testing.T) {
	for name, answer := range map[string]func() (*http.Response, error){
		"nothing": func() (*http.Response, error) { return reply(404, "") },
		"text":    func() (*http.Response, error) { return reply(404, "404 page not found") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) { return answer() })
				for op, err := range f.each(t.Context()) {
					if op == "list" || op == "read" {
						wantIs(t, op, err, ErrUnavailable)
					}
				}
			})
		})
	}
}

// TestTheStoreCopiesInSilence: a store that makes 8 GiB of parts, or of another
// object, answers nothing meanwhile; it is not given up for that, and not waited for
// without an end.
func TestTheStoreCopiesInSilence(t *testing.T) {
	const result = `<CompleteMultipartUploadResult><ETag>"v2"</ETag></CompleteMultipartUploadResult>`
	for took, want := range map[time.Duration]error{100 * time.Second: nil, time.Hour: ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) {
				if req.Method != http.MethodPost {
					return reply(404, "")
				}
				if err := pause.For(req.Context(), took); err != nil {
					return nil, err
				}
				return reply(200, result)
			})
			parts := []Part{{Number: 1, Size: 4 << 30, ETag: `"a"`}, {Number: 2, Size: 4 << 30, ETag: `"b"`}}
			begin := time.Now()
			_, err := f.CompleteUpload(t.Context(), Upload{Location: testLoc, ID: "u"}, parts, PutOptions{Cond: Cond{IfNoneMatch: true}})
			wantIs(t, took.String(), err, want)
			if waited := time.Since(begin); waited > 10*time.Minute {
				t.Errorf("waited %s", waited)
			}
		})
	}
}
