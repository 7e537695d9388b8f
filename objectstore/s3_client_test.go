package objectstore

import (
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

func static(access string) aws.Config {
	return aws.Config{Credentials: credentials.NewStaticCredentialsProvider(access, "secret", "")}
}

func TestSecretsOfBuckets(t *testing.T) {
	o := S3Options{Endpoint: "http://store.test", Config: static("MAIN"), Secrets: map[string]aws.Config{"two": static("SECOND")}}
	o.Secrets["two"] = aws.Config{Credentials: o.Secrets["two"].Credentials, Region: "eu-west-3"}
	f := newFaked(t, o, func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	for i, c := range []struct{ bucket, credential string }{
		{"bucket", "Credential=MAIN/"}, {"two@bucket", "Credential=SECOND/"}, {"bucket", "Credential=MAIN/"},
	} {
		o, err := f.Stat(t.Context(), Location{Bucket: c.bucket, Key: "key"})
		if err != nil || o.Bucket != c.bucket {
			t.Fatalf("Stat = %+v, %v", o, err)
		}
		req := f.requests[i]
		if auth := req.Header.Get("Authorization"); !strings.Contains(auth, c.credential) ||
			strings.Contains(auth, "/eu-west-3/") != (i == 1) {
			t.Errorf("%s is asked for with %s", c.bucket, auth)
		}
		if req.URL.Host+req.URL.Path != "bucket.store.test/key" {
			t.Errorf("%s is asked for at %s", c.bucket, req.URL)
		}
	}
	if n := len(f.S3.mu.clients); n != 2 {
		t.Errorf("%d clients for two sets of credentials", n)
	}
	for bucket, want := range map[string]error{"three@bucket": ErrPermission, "": ErrName, "two@": ErrName} {
		_, err := f.Stat(t.Context(), Location{Bucket: bucket, Key: "key"})
		wantIs(t, "Stat in "+bucket, err, want)
		if bucket == "three@bucket" && !strings.Contains(err.Error(), `no secret "three"`) {
			t.Errorf("%v does not name the secret", err)
		}
	}
}

func TestAnonymous(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test", Config: aws.Config{Credentials: aws.AnonymousCredentials{}}},
		func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	if _, err := f.Stat(t.Context(), testLoc); err != nil {
		t.Fatal(err)
	}
	if auth := f.requests[0].Header.Get("Authorization"); auth != "" {
		t.Errorf("an anonymous request has Authorization %q", auth)
	}
}

func TestURLs(t *testing.T) {
	for _, c := range []struct {
		o           S3Options
		bucket, key string
		want        string
	}{
		{S3Options{}, "bucket", "a/b", "https://bucket.s3.us-east-1.amazonaws.com/a/b"},
		{S3Options{}, "with.dots", "a", "https://s3.us-east-1.amazonaws.com/with.dots/a"},
		{S3Options{PathStyle: true}, "bucket", "a", "https://s3.us-east-1.amazonaws.com/bucket/a"},
		{S3Options{Endpoint: "https://store.test"}, "bucket", "a", "https://bucket.store.test/a"},
		{S3Options{Endpoint: "https://store.test"}, "with.dots", "a", "https://store.test/with.dots/a"},
		{S3Options{Endpoint: "http://store.test"}, "with.dots", "a", "http://store.test/with.dots/a"},
		{S3Options{Endpoint: "https://store.test/base/"}, "with.dots", "a", "https://store.test/base/with.dots/a"},
		{S3Options{Endpoint: "http://localhost:9000"}, "bucket", "a", "http://localhost:9000/bucket/a"},
		{S3Options{Endpoint: "http://10.0.0.1"}, "bucket", "a", "http://10.0.0.1/bucket/a"},
		{S3Options{Endpoint: "http://[::1]:9000"}, "bucket", "a", "http://[::1]:9000/bucket/a"},
		{S3Options{}, "bucket", "/lead", "https://bucket.s3.us-east-1.amazonaws.com//lead"},
		{S3Options{}, "bucket", "a//b/", "https://bucket.s3.us-east-1.amazonaws.com/a//b/"},
		{S3Options{}, "bucket", "a/../b/./c", "https://bucket.s3.us-east-1.amazonaws.com/a/../b/./c"},
		{S3Options{PathStyle: true}, "bucket", "bucket/x", "https://s3.us-east-1.amazonaws.com/bucket/bucket/x"},
		{
			S3Options{},
			"bucket", "a b+c%20?#é\n\"'&;\\",
			"https://bucket.s3.us-east-1.amazonaws.com/a%20b%2Bc%2520%3F%23%C3%A9%0A%22%27%26%3B%5C",
		},
	} {
		f := newFaked(t, c.o, func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
		if _, err := f.Stat(t.Context(), Location{Bucket: c.bucket, Key: c.key}); err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if got := f.requests[0].URL.String(); got != c.want {
			t.Errorf("URL = %s, want %s", got, c.want)
		}
	}
}

func TestNewS3Refuses(t *testing.T) {
	for _, o := range []S3Options{
		{Endpoint: "store.test"},
		{Endpoint: "ftp://store.test"},
		{Endpoint: "https://"},
		{Endpoint: "https://user:hunter2@store.test"},
		{Endpoint: "https://user:hunter2@store.test/%zz"},
		{Checksum: "md5"},
		{Timeout: -time.Second},
	} {
		s, err := NewS3(o)
		if err == nil || s != nil || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("NewS3(%+v): error %v", o, err)
		}
	}
}

func TestClosed(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for op, err := range f.each(t.Context()) {
		wantIs(t, op, err, ErrUnavailable)
	}
	if len(f.requests) != 0 {
		t.Errorf("%d requests after Close", len(f.requests))
	}
}

func TestUnquoteETag(t *testing.T) {
	for in, want := range map[string]string{`"a-1"`: "a-1", `a-1`: "a-1", `W/"a-1"`: "a-1", "": ""} {
		if got := unquoteETag(&in); got != want {
			t.Errorf("unquoteETag(%s) = %s, want %s", in, got, want)
		}
	}
}

// A store that is away, and one that takes connections and does not answer, is
// unavailable in bounded time; nothing is missing because of it.
func TestStoreAway(t *testing.T) {
	server := s3test.Fresh(t)
	bucket := server.Bucket(t)
	server.Put(t, bucket, "key", []byte("data"))
	s, err := NewS3(S3Options{Config: server.Config(), Endpoint: server.Endpoint, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, s)
	loc := Location{Bucket: bucket, Key: "key"}
	o, err := s.Stat(t.Context(), loc)
	if err != nil {
		t.Fatal(err)
	}
	for _, away := range []struct{ leave, back func(testing.TB) }{{server.Pause, server.Resume}, {server.Stop, server.Start}} {
		away.leave(t)
		_, err = s.Stat(t.Context(), loc)
		wantIs(t, "Stat", err, ErrUnavailable)
		_, _, err = s.Read(t.Context(), o, 0, o.Size)
		wantIs(t, "Read", err, ErrUnavailable)
		for _, err := range s.List(t.Context(), Location{Bucket: bucket}, ListOptions{}) {
			wantIs(t, "List", err, ErrUnavailable)
		}
		away.back(t)
		if again, err := s.Stat(t.Context(), loc); err != nil || again.ETag != o.ETag {
			t.Errorf("Stat of the store that is back = %+v, %v", again, err)
		}
	}
}

func TestMissingBucket(t *testing.T) {
	server := s3test.Versity(t)
	s, err := NewS3(S3Options{Config: server.Config(), Endpoint: server.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, s)
	loc := Location{Bucket: "no-such-bucket", Key: "key"}
	_, err = s.Stat(t.Context(), loc)
	wantIs(t, "Stat", err, ErrNotExist)
	_, _, err = s.Read(t.Context(), Object{Location: loc, ETag: "v1", Size: 1}, 0, 1)
	wantIs(t, "Read", err, ErrNoBucket)
	n := 0
	for _, err := range s.List(t.Context(), Location{Bucket: loc.Bucket}, ListOptions{}) {
		n++
		wantIs(t, "List", err, ErrNoBucket)
		if err == nil || !strings.Contains(err.Error(), "no-such-bucket") {
			t.Errorf("%v does not tell what is missing", err)
		}
	}
	if n != 1 {
		t.Errorf("List of a missing bucket yields %d times, want an error", n)
	}
}

func TestWrongKey(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config()
	config.Credentials = credentials.NewStaticCredentialsProvider(server.Access, "another", "")
	s, err := NewS3(S3Options{Config: config, Endpoint: server.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, s)
	for _, err := range s.List(t.Context(), Location{Bucket: server.Bucket(t)}, ListOptions{}) {
		wantIs(t, "List", err, ErrPermission)
		if !strings.Contains(fmt.Sprint(err), "SignatureDoesNotMatch") {
			t.Errorf("%v does not tell why", err)
		}
	}
}

// Certificates are checked against RootCAs, and a wrong one is told at once.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != 1 {
			t.Errorf("request over %s", req.Proto)
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", "4")
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for _, c := range []struct {
		roots *x509.CertPool
		want  error
	}{{roots, nil}, {x509.NewCertPool(), ErrUnavailable}} {
		asked := 0
		s, err := NewS3(S3Options{
			Config: static("access"), Endpoint: server.URL, RootCAs: c.roots, Observe: func(S3Request) { asked++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Stat(t.Context(), testLoc)
		wantIs(t, "Stat", err, c.want)
		if asked != 1 {
			t.Errorf("%d requests", asked)
		}
		closing(t, s)
	}
}
