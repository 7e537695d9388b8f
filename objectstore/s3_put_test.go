package objectstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// onServer is an S3 over a real server.
func onServer(t *testing.T, server *s3test.Server, change ...func(*S3Options)) *S3 {
	t.Helper()
	o := S3Options{Config: server.Config(), Endpoint: server.Endpoint, Timeout: 20 * time.Second}
	for _, f := range change {
		f(&o)
	}
	s, err := NewS3(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, s) })
	return s
}

// bothServers runs a test on versitygw and on MiniStack.
func bothServers(t *testing.T, test func(*testing.T, *s3test.Server)) {
	t.Helper()
	t.Run("Versity", func(t *testing.T) { test(t, s3test.Versity(t)) })
	t.Run("Mini", func(t *testing.T) { test(t, s3test.Mini(t)) })
}

func putText(ctx context.Context, s *S3, loc Location, text string, opts PutOptions) (Object, error) {
	return s.Put(ctx, loc, strings.NewReader(text), int64(len(text)), opts)
}

// idOf is the metadata of a write.
func idOf(id string) map[string]string { return map[string]string{MetaWriteID: id} }

// takesPut answers a PutObject.
func takesPut(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	return reply(http.StatusOK, "", `ETag: "made"`)
}

func TestPutHeaders(t *testing.T) {
	t.Parallel()
	const text = "123456789"
	sum := sha256.Sum256([]byte(text))
	for _, test := range []struct {
		name    string
		options S3Options
		cond    Cond
		want    http.Header
	}{
		{"over TLS", S3Options{}, Cond{}, http.Header{
			"X-Amz-Checksum-Crc32c": {"4waSgw=="}, "X-Amz-Content-Sha256": {"UNSIGNED-PAYLOAD"},
			"Content-Type": {"application/octet-stream"}, "X-Amz-Meta-Mode": {"644"},
			"If-Match": nil, "If-None-Match": nil, "Content-Encoding": nil, "X-Amz-Trailer": nil,
		}},
		{"in the clear", S3Options{Endpoint: "http://s3.example.org", Checksum: "crc64nvme"}, Cond{}, http.Header{
			"X-Amz-Checksum-Crc64nvme": {"rosUhgp5mIg="}, "X-Amz-Content-Sha256": {hex.EncodeToString(sum[:])},
			"X-Amz-Checksum-Crc32c": nil, "X-Amz-Checksum-Crc32": nil,
		}},
		{"sha256", S3Options{Checksum: "sha256"}, Cond{IfNoneMatch: true}, http.Header{
			"X-Amz-Checksum-Sha256": {"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="}, "If-None-Match": {"*"}, "If-Match": nil,
		}},
		{"no checksum", S3Options{Checksum: "none"}, Cond{IfMatch: "v1"}, http.Header{
			"X-Amz-Checksum-Crc32c": nil, "X-Amz-Checksum-Crc32": nil, "X-Amz-Sdk-Checksum-Algorithm": nil,
			"If-Match": {`"v1"`}, "If-None-Match": nil,
		}},
		{"settings", S3Options{SSE: "aws:kms", SSEKMSKeyID: "key", StorageClass: "STANDARD_IA", RequesterPays: true, ExpectedBucketOwner: "123456789012"}, Cond{}, http.Header{
			"X-Amz-Server-Side-Encryption": {"aws:kms"}, "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": {"key"},
			"X-Amz-Storage-Class": {"STANDARD_IA"}, "X-Amz-Request-Payer": {"requester"}, "X-Amz-Expected-Bucket-Owner": {"123456789012"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFaked(t, test.options, func(_ int, req *http.Request) (*http.Response, error) { return takesPut(req) })
			meta := map[string]string{MetaMode: "644"}
			o, err := putText(t.Context(), f.S3, testLoc, text, PutOptions{Cond: test.cond, Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			if o.ETag != "made" || o.Match != "made" || o.Size != 9 || o.Location != testLoc || !maps.Equal(o.Meta, meta) || o.ModTime.IsZero() {
				t.Errorf("Put tells %+v", o)
			}
			req := f.requests[0]
			for name, want := range test.want {
				if got := req.Header.Values(name); !equalStrings(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if req.ContentLength != 9 {
				t.Errorf("Content-Length %d, want 9", req.ContentLength)
			}
		})
	}
}

func equalStrings(a, b []string) bool { return strings.Join(a, "\x00") == strings.Join(b, "\x00") }

func TestPutMetaSurvives(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		s, loc := onServer(t, server), Location{Bucket: server.Bucket(t), Key: "f"}
		meta := map[string]string{
			"plain": "a b", "utf8": "São Tomé 🦆", "latin": "\xff\x00", "edges": " x ", "empty": "", "newline": "a\r\nX-Evil: 1",
			"word": "=?utf-8?b?eA==?=", "long": strings.Repeat("é", 300),
		}
		if _, err := putText(t.Context(), s, loc, "x", PutOptions{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		o, err := s.Stat(t.Context(), loc)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range meta {
			if got := o.Meta[k]; got != want {
				t.Errorf("%s = %q, want %q", k, got, want)
			}
		}
		if _, ok := o.Meta["x-evil"]; ok || len(o.Meta) > len(meta) {
			t.Errorf("metadata that was not given: %q", o.Meta)
		}
	})
}

func TestDecodeMeta(t *testing.T) {
	t.Parallel()
	// As S3 answers what was sent as raw UTF-8, and what can not be decoded.
	got := decodeMeta(map[string]string{"A": "=?UTF-8?Q?Gr=C3=BC=C3=9Fe?=", "b": "=?x-unknown?b?AA==?=", "c": "plain"})
	want := map[string]string{"a": "Grüße", "b": "=?x-unknown?b?AA==?=", "c": "plain"}
	if !maps.Equal(got, want) {
		t.Errorf("decoded %q, want %q", got, want)
	}
}

func TestPutTooLarge(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) { return takesPut(req) })
	_, err := f.Put(t.Context(), testLoc, strings.NewReader(""), 5<<30+1, PutOptions{})
	wantIs(t, "Put of 5 GiB and a byte", err, ErrTooLarge)
	if len(f.requests) != 0 {
		t.Errorf("%d requests, want none", len(f.requests))
	}
}

// TestPutProgress: what is on the way has all the time it needs, what stands
// still has not.
func TestPutProgress(t *testing.T) {
	t.Parallel()
	const timeout, size = 10 * time.Second, 100
	slow := func(req *http.Request, pieces int) error {
		for range pieces {
			if _, err := io.ReadFull(req.Body, make([]byte, size/10)); err != nil {
				return err
			}
			<-time.After(timeout * 9 / 10)
		}
		return nil
	}
	for _, test := range []struct {
		name   string
		answer answers
		want   error
		most   time.Duration
	}{
		{"slow", func(_ int, req *http.Request) (*http.Response, error) {
			if err := slow(req, 10); err != nil {
				return nil, err
			}
			return takesPut(req)
		}, nil, 10 * timeout},
		{"stuck", func(_ int, req *http.Request) (*http.Response, error) {
			if err := slow(req, 5); err != nil {
				return nil, err
			}
			return hang(req)
		}, ErrUnavailable, 6 * timeout},
		{"no answer", func(_ int, req *http.Request) (*http.Response, error) {
			if err := slow(req, 10); err != nil {
				return nil, err
			}
			return hang(req)
		}, ErrUnavailable, 10 * timeout},
		{"nothing taken", func(_ int, req *http.Request) (*http.Response, error) { return hang(req) }, ErrUnavailable, timeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				t.Helper()
				f := newFaked(t, S3Options{Timeout: timeout}, test.answer)
				start := time.Now()
				_, err := f.Put(t.Context(), testLoc, bytes.NewReader(make([]byte, size)), size, PutOptions{})
				wantIs(t, "Put", err, test.want)
				if took := time.Since(start); took > test.most { // of the bubble's time
					t.Errorf("it took %v, want at most %v", took, test.most)
				}
				if len(f.requests) != 1 {
					t.Errorf("%d requests, want 1", len(f.requests))
				}
			})
		})
	}
}

// TestPutBeginsAgain: each retry sends the whole body.
func TestPutBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ConditionalRequestConflict", "SlowDown", "BadDigest"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				t.Helper()
				var got []byte
				f := newFaked(t, S3Options{}, func(n int, req *http.Request) (*http.Response, error) {
					b, err := io.ReadAll(req.Body)
					if err != nil {
						return nil, err
					}
					if got = b; n == 1 {
						return replyError(map[string]int{"ConditionalRequestConflict": 409, "SlowDown": 503, "BadDigest": 400}[code], code)
					}
					return reply(http.StatusOK, "", `ETag: "made"`)
				})
				if _, err := putText(t.Context(), f.S3, testLoc, "the bytes", PutOptions{Cond: Cond{IfNoneMatch: true}}); err != nil {
					t.Error(err)
				}
				if len(f.requests) != 2 || string(got) != "the bytes" {
					t.Errorf("%d requests, the last with %q", len(f.requests), got)
				}
			})
		})
	}
}

func TestPutConflictForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f := newFaked(t, S3Options{}, func(int, *http.Request) (*http.Response, error) {
			return replyError(http.StatusConflict, "ConditionalRequestConflict")
		})
		_, err := putText(t.Context(), f.S3, testLoc, "x", PutOptions{Cond: Cond{IfMatch: "v1"}})
		wantIs(t, "Put", err, ErrUnavailable)
	})
}

// changing is a source whose bytes are others at each reading.
type changing struct{ n atomic.Int64 }

func (c *changing) ReadAt(p []byte, _ int64) (int, error) {
	n := byte(c.n.Add(1))
	for i := range p {
		p[i] = n
	}
	return len(p), nil
}

func TestPutOfChangingSource(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		s, loc := onServer(t, server), Location{Bucket: server.Bucket(t), Key: "f"}
		_, err := s.Put(t.Context(), loc, &changing{}, 100, PutOptions{})
		wantIs(t, "Put of bytes that were not summed up", err, ErrUnavailable)
		if server.Exists(t, loc.Bucket, "f") {
			t.Error("bytes were stored that are of no version of the source")
		}
	})
}

// ending is a source that has n bytes for the first reading, and then fails.
type ending struct {
	n   int64
	err error
}

func (e ending) ReadAt(p []byte, off int64) (int, error) {
	if off >= e.n {
		return 0, e.err
	}
	return int(min(int64(len(p)), e.n-off)), nil
}

func TestPutOfBrokenSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		bucket := server.Bucket(t)
		for _, sum := range []string{"crc32c", "none"} {
			for _, test := range []struct{ got, want error }{{io.EOF, io.ErrUnexpectedEOF}, {broken, broken}} {
				s := onServer(t, server, func(o *S3Options) { o.Checksum = sum })
				_, err := s.Put(t.Context(), Location{Bucket: bucket, Key: "f"}, ending{100_000, test.got}, 200_000, PutOptions{})
				wantIs(t, "Put, checksum "+sum, err, test.want)
			}
		}
		if server.Exists(t, bucket, "f") {
			t.Error("half an object was stored")
		}
	})
}

// TestPutOfSourceThatEndsLater: the request is under way, with the whole length told.
func TestPutOfSourceThatEndsLater(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{Checksum: "none"}, func(_ int, req *http.Request) (*http.Response, error) { return takesPut(req) })
	_, err := f.Put(t.Context(), testLoc, ending{10, io.EOF}, 20, PutOptions{})
	wantIs(t, "Put", err, io.ErrUnexpectedEOF)
	if len(f.requests) != 1 {
		t.Errorf("%d requests, want 1: the source would be no longer", len(f.requests))
	}
}

// TestPutRefusals: what a store says no to is asked once.
func TestPutRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		code   string
		cond   Cond
		want   error
	}{
		{http.StatusForbidden, "AccessDenied", Cond{}, ErrPermission},
		{http.StatusNotFound, "NoSuchBucket", Cond{}, ErrNoBucket},
		{http.StatusNotFound, "NoSuchBucket", Cond{IfMatch: "v1"}, ErrNoBucket},
		{http.StatusNotFound, "NoSuchKey", Cond{IfMatch: "v1"}, ErrChanged},
		{http.StatusPreconditionFailed, "PreconditionFailed", Cond{IfMatch: "v1"}, ErrChanged},
		{http.StatusPreconditionFailed, "PreconditionFailed", Cond{IfNoneMatch: true}, ErrExist},
		{http.StatusBadRequest, "EntityTooLarge", Cond{}, ErrTooLarge},
	} {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			f := newFaked(t, S3Options{}, func(int, *http.Request) (*http.Response, error) { return replyError(test.status, test.code) })
			_, err := putText(t.Context(), f.S3, testLoc, "x", PutOptions{Cond: test.cond})
			wantIs(t, "Put", err, test.want)
			if errors.Is(test.want, ErrExist) && errors.Is(err, ErrChanged) {
				t.Errorf("%v is ErrChanged as well", err)
			}
			if len(f.requests) != 1 {
				t.Errorf("%d requests, want 1", len(f.requests))
			}
		})
	}
}

// putInput is a PUT of another program.
func putInput(loc Location, text string) *s3.PutObjectInput {
	return &s3.PutObjectInput{Bucket: &loc.Bucket, Key: &loc.Key, Body: strings.NewReader(text)}
}
