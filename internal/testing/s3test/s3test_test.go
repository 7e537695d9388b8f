package s3test_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// each runs a test on every kind of server.
func each(t *testing.T, test func(t *testing.T, s *s3test.Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *s3test.Server{"versitygw": s3test.Versity, "ministack": s3test.Mini} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// outcome is the status and code of an error of the SDK; 200 for none.
func outcome(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "200"
	}
	var resp *smithyhttp.ResponseError
	var api smithy.APIError
	if !errors.As(err, &resp) || !errors.As(err, &api) {
		t.Fatalf("got %v, want an answer of S3", err)
	}
	return strings.TrimSpace(resp.Response.Status[:3] + " " + api.ErrorCode())
}

func TestObjects(t *testing.T) {
	each(t, func(t *testing.T, s *s3test.Server) {
		t.Helper()
		bucket, other := s.Bucket(t), s.Bucket(t)
		s.Put(t, bucket, "dt=1/a.csv", []byte("one"))
		s.Put(t, bucket, "dt=1/b.csv", nil)
		s.Put(t, bucket, "dt=2/a.csv", []byte("two"))
		s.Put(t, bucket, "dt=1/a.csv", []byte("three"))
		s.Delete(t, bucket, "dt=2/a.csv")

		if got := s.Get(t, bucket, "dt=1/a.csv"); string(got) != "three" {
			t.Errorf("got %q, want three", got)
		}
		if got, want := s.Keys(t, bucket, "dt=1/"), []string{"dt=1/a.csv", "dt=1/b.csv"}; !slices.Equal(got, want) {
			t.Errorf("got keys %q, want %q", got, want)
		}
		if got := s.Keys(t, other, ""); len(got) != 0 {
			t.Errorf("got keys %q of an empty bucket", got)
		}
		if s.Exists(t, bucket, "dt=2/a.csv") || !s.Exists(t, bucket, "dt=1/b.csv") {
			t.Error("Exists is wrong of a deleted or an empty object")
		}
	})
}

func TestUploads(t *testing.T) {
	each(t, func(t *testing.T, s *s3test.Server) {
		t.Helper()
		bucket := s.Bucket(t)
		out, err := s.Client().CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: aws.String("big")})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Uploads(t, bucket); !slices.Equal(got, []string{"big"}) {
			t.Errorf("got uploads %q, want big", got)
		}
		_, err = s.Client().AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: aws.String("big"), UploadId: out.UploadId})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Uploads(t, bucket); len(got) != 0 {
			t.Errorf("got uploads %q after the abort", got)
		}
	})
}

// What the product's promises rest on, and therefore its tests.
func TestConditions(t *testing.T) {
	each(t, func(t *testing.T, s *s3test.Server) {
		t.Helper()
		bucket := s.Bucket(t)
		s.Put(t, bucket, "a", []byte("first"))
		stale := *s.Head(t, bucket, "a").ETag
		s.Put(t, bucket, "a", []byte("second"))
		current := *s.Head(t, bucket, "a").ETag
		put := func(key string, in s3.PutObjectInput) error {
			in.Bucket, in.Key, in.Body = &bucket, &key, bytes.NewReader([]byte("third"))
			_, err := s.Client().PutObject(t.Context(), &in)
			return err
		}
		get := func(in s3.GetObjectInput) error {
			in.Bucket, in.Key, in.Range = &bucket, aws.String("a"), aws.String("bytes=1-2")
			out, err := s.Client().GetObject(t.Context(), &in)
			if err != nil {
				return err
			}
			defer out.Body.Close() //nolint:errcheck // the body is read
			if got, err := io.ReadAll(out.Body); err != nil || string(got) != "ec" {
				t.Errorf("got range %q and %v, want ec", got, err)
			}
			return nil
		}
		for _, c := range []struct {
			name string
			err  error
			want string
		}{
			{"range, If-Match stale", get(s3.GetObjectInput{IfMatch: &stale}), "412 PreconditionFailed"},
			{"range, If-Match", get(s3.GetObjectInput{IfMatch: &current}), "200"},
			{"PUT If-None-Match, taken", put("a", s3.PutObjectInput{IfNoneMatch: aws.String("*")}), "412 PreconditionFailed"},
			{"PUT If-None-Match, free", put("b", s3.PutObjectInput{IfNoneMatch: aws.String("*")}), "200"},
			{"PUT If-Match stale", put("a", s3.PutObjectInput{IfMatch: &stale}), "412 PreconditionFailed"},
			{"PUT If-Match, none there", put("c", s3.PutObjectInput{IfMatch: &stale}), "404 NoSuchKey"},
			{"PUT If-Match", put("a", s3.PutObjectInput{IfMatch: &current}), "200"},
		} {
			if got := outcome(t, c.err); got != c.want {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
		}
		if got := s.Get(t, bucket, "a"); string(got) != "third" {
			t.Errorf("got %q, want third", got)
		}
	})
}

func TestStopAndStart(t *testing.T) {
	s := s3test.Fresh(t)
	bucket := s.Bucket(t)
	s.Put(t, bucket, "a", []byte("kept"))
	addr := strings.TrimPrefix(s.Endpoint, "http://")
	for range 3 {
		s.Stop(t)
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr); err == nil {
			conn.Close() //nolint:errcheck // the test has failed
			t.Fatal("a stopped server takes connections")
		}
		s.Start(t)
		if got := s.Get(t, bucket, "a"); string(got) != "kept" {
			t.Fatalf("got %q, want kept", got)
		}
	}
}

func TestPause(t *testing.T) {
	s := s3test.Fresh(t)
	s.Pause(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent, answered := make(chan struct{}), make(chan error, 1)
	go func() {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.Endpoint, "http://"))
		if err == nil {
			defer conn.Close() //nolint:errcheck // only read from
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: s3\r\n\r\n")
		}
		close(sent)
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		answered <- err
	}()
	<-sent
	select {
	case err := <-answered:
		t.Fatalf("a paused server answered: %v", err)
	default:
	}
	s.Resume(t)
	if err := <-answered; err != nil {
		t.Fatalf("got %v after Resume, want an answer", err)
	}
}

// A wrong secret must not pass, or tests of signatures prove nothing.
func TestVersityVerifiesSignatures(t *testing.T) {
	s := s3test.Versity(t)
	bucket := s.Bucket(t)
	config := s.Config()
	config.Credentials = credentials.NewStaticCredentialsProvider(s.Access, "wrong", "")
	client := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	_, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if got, want := outcome(t, err), "403 SignatureDoesNotMatch"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	resp, err := (&http.Transport{}).RoundTrip(request(t, s.Endpoint+"/"+bucket))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // not read
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("got %s without a signature, want 403", resp.Status)
	}
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestCLI(t *testing.T) {
	s := s3test.Versity(t)
	bucket := s.Bucket(t)
	s.Put(t, bucket, "dt=1/a.csv", []byte("one"))
	if got := s3test.CLI(t, s, "s3", "ls", "--recursive", "s3://"+bucket); !strings.HasSuffix(got, " 3 dt=1/a.csv\n") {
		t.Errorf("got %q, want the one object", got)
	}
}

func TestMotoServesS3(t *testing.T) {
	for _, s := range []*s3test.Server{s3test.Moto(t), s3test.FreshMoto(t)} {
		bucket := s.Bucket(t)
		s.Put(t, bucket, "dt=1/a.csv", []byte("one"))
		if got := string(s.Get(t, bucket, "dt=1/a.csv")); got != "one" {
			t.Errorf("got %q, want what was stored", got)
		}
	}
}

func TestEndsWithItsTest(t *testing.T) {
	var addr string
	t.Run("own", func(t *testing.T) { addr = strings.TrimPrefix(s3test.Fresh(t).Endpoint, "http://") })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err == nil {
		conn.Close() //nolint:errcheck // the test has failed
		t.Error("the server of a test that is over takes connections")
	}
}
