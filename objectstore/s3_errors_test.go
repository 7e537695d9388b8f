package objectstore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		answer func() (*http.Response, error)
		want   string
	}{
		{
			func() (*http.Response, error) { return replyError(403, "AccessDenied") },
			`read "s3://bucket/dir/key": AccessDenied (HTTP status 403, request ID REQ1): said so: permission denied`,
		},
		{
			func() (*http.Response, error) { return replyError(404, "NoSuchBucket") },
			`read "s3://bucket/dir/key": NoSuchBucket (HTTP status 404, request ID REQ1): no such bucket`,
		},
		{
			func() (*http.Response, error) { return reply(403, "<html>\x1b[2J") },
			`read "s3://bucket/dir/key": (HTTP status 403, request ID REQ1): not an answer of S3: permission denied`,
		},
		{
			func() (*http.Response, error) {
				return replyError(403, "\u202eAccess\nDenied"+strings.Repeat("x", 1000))
			},
			`read "s3://bucket/dir/key":  Access Denied` + strings.Repeat("x", maxErrorText-len("\u202eAccess\nDenied")) +
				`… (HTTP status 403, request ID REQ1): said so: permission denied`,
		},
	} {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) { return c.answer() })
		_, _, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4)
		if err == nil || err.Error() != c.want {
			t.Errorf("error %q\nwant  %q", err, c.want)
		}
	}
}

func TestAnswerOf(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) {
		return replyError(403, "AccessDenied")
	})
	_, _, err := f.Read(t.Context(), Object{Location: testLoc, ETag: "v1", Size: 4}, 0, 4)
	if status, code := answerOf(err); status != 403 || code != "AccessDenied" {
		t.Errorf("answerOf = %d, %q", status, code)
	}
	if status, code := answerOf(errors.New("AccessDenied")); status != 0 || code != "" {
		t.Errorf("answerOf another error = %d, %q", status, code)
	}
}

// broken is a provider of credentials that has none.
type broken struct{}

func (broken) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("no role found")
}

func TestNoCredentials(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test", Config: aws.Config{Credentials: broken{}}},
		func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	for op, err := range f.each(t.Context()) {
		wantIs(t, op, err, ErrPermission)
		if !strings.Contains(err.Error(), "no role found") {
			t.Errorf("%s: %v does not tell why", op, err)
		}
	}
	if len(f.requests) != 0 || len(f.observed) != 0 {
		t.Errorf("%d requests, %d observed", len(f.requests), len(f.observed))
	}
}

// Nothing of the credentials is in an error.
func TestErrorsTellNoSecret(t *testing.T) {
	const secret = "wJalrXUtnFEMI"
	for name, answer := range passing() { //nolint:bodyclose // S3 closes what it is answered
		synctest.Test(t, func(t *testing.T) {
			config := aws.Config{Credentials: credentials.NewStaticCredentialsProvider("AKIA", secret, secret+"-session")}
			f := newFaked(t, S3Options{Endpoint: "http://store.test", Config: config},
				func(int, *http.Request) (*http.Response, error) { return answer() })
			for op, err := range f.each(t.Context()) {
				if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "Signature") {
					t.Errorf("%s: %s: %v", name, op, err)
				}
			}
		})
	}
}
