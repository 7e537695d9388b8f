package objectstore

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
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
