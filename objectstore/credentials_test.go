package objectstore

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// away is a provider that has no credentials for the first times it is asked.
type away struct {
	err   CredentialsError
	times int
	asked int
}

func (a *away) Retrieve(context.Context) (aws.Credentials, error) {
	if a.asked++; a.asked <= a.times {
		return aws.Credentials{}, &a.err
	}
	return aws.Credentials{AccessKeyID: "access", SecretAccessKey: "secret"}, nil
}

// TestCredentialsThatAreAway: requests wait for them as for the store, and tell of
// it in the provider's words alone.
func TestCredentialsThatAreAway(t *testing.T) {
	const text = "AWS credentials: the role is denied; look at its policy"
	for _, tt := range []struct {
		name     string
		passing  bool
		times    int
		asked    int // 0: more than once
		want     error
		wantText string
	}{
		{name: "for a while", passing: true, times: 5, asked: 6},
		{name: "for good", passing: true, times: 1 << 30, want: ErrUnavailable, wantText: text + ": object store unavailable"},
		{name: "refused", times: 1 << 30, asked: 1, want: ErrPermission, wantText: text + ": permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &away{err: CredentialsError{Text: text, Passing: tt.passing, Err: errors.New("403")}, times: tt.times}
				f := newFaked(t, S3Options{Endpoint: "http://store.test", Config: aws.Config{Credentials: a}},
					func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
				_, err := f.Stat(t.Context(), testLoc)
				if !errors.Is(err, tt.want) {
					t.Fatalf("Stat: %v, want %v", err, tt.want)
				}
				if tt.asked != a.asked && (tt.asked != 0 || a.asked < 2) {
					t.Errorf("asked for %d times, want %d", a.asked, tt.asked)
				}
				var said *storeError
				if errors.As(err, &said) && said.Error() != tt.wantText {
					t.Errorf("it says %q, want %q", said, tt.wantText)
				}
			})
		})
	}
}
