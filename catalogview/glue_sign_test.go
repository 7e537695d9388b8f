package catalogview

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// keys hands out another key each time.
type keys struct {
	n    int
	fail error
}

func (k *keys) Retrieve(context.Context) (aws.Credentials, error) {
	k.n++
	return aws.Credentials{AccessKeyID: fmt.Sprintf("key%d", k.n), SecretAccessKey: "secret"}, k.fail
}

// Expired credentials are replaced within the call; without any there is no request.
func TestGlueCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []string{"ExpiredTokenException", "UnrecognizedClientException"} {
			s := &said{say: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return reply(400, `{"__type":"`+code+`"}`), nil
				}
				return reply(200, goodDatabase), nil
			}}
			g := glueThatSays(s, func(o *GlueOptions) { o.Config.Credentials = &keys{} })
			d, err := g.Database(t.Context(), "sales")
			if got := strings.Join(s.keys, " "); err != nil || d.Guessed || got != "key1 key2" {
				t.Errorf("%s: %v, signed by %s", code, err, got)
			}
		}
		s := &said{say: always(200, goodDatabase)} //nolint:bodyclose // who asks closes it
		g := glueThatSays(s, func(o *GlueOptions) { o.Config.Credentials = &keys{} })
		for range 2 {
			if _, err := g.Database(t.Context(), "sales"); err != nil {
				t.Error(err)
			}
		}
		g.RefreshCredentials()
		if _, err := g.Database(t.Context(), "sales"); err != nil {
			t.Error(err)
		}
		if got := strings.Join(s.keys, " "); got != "key1 key1 key2" {
			t.Errorf("signed by %s", got)
		}
		s = &said{say: always(200, goodDatabase)} //nolint:bodyclose // who asks closes it
		g = glueThatSays(s, func(o *GlueOptions) { o.Config.Credentials = &keys{fail: errors.New("no key in the chain")} })
		d, err := g.Database(t.Context(), "sales")
		wantSentinel(t, err, objectstore.ErrPermission)
		if s.requests != 0 || d.Guessed || !strings.Contains(fmt.Sprint(err), "no key in the chain") {
			t.Errorf("%d requests, %+v, %v", s.requests, d, err)
		}
	})
}

// A clock that is off by more than signatures allow for is corrected by the
// service's, once for all calls.
func TestGlueClockSkew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &said{say: func(_ int, req *http.Request) (*http.Response, error) {
			now := time.Now().Add(-time.Hour)
			resp := reply(200, goodDatabase)
			signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
			if err != nil || signed.Sub(now).Abs() > 5*time.Minute {
				resp = reply(400, `{"__type":"InvalidSignatureException","message":"Signature not yet current"}`)
			}
			resp.Header.Set("Date", now.UTC().Format(http.TimeFormat))
			return resp, nil
		}}
		g := glueThatSays(s)
		for range 2 {
			if _, err := g.Database(t.Context(), "sales"); err != nil {
				t.Error(err)
			}
		}
		if s.requests != 3 {
			t.Errorf("%d requests, want 3", s.requests)
		}
	})
}

// The body that registers a partition is the one that is signed, and its length told.
func TestGlueRegisterIsSigned(t *testing.T) {
	t.Parallel()
	const entry = `{"Table":{"Name":"t","DatabaseName":"d","PartitionKeys":[{"Name":"k","Type":"string"}],"StorageDescriptor":{"Location":"s3://lake/t"}}}`
	s := &said{say: func(n int, req *http.Request) (*http.Response, error) {
		if n == 1 {
			return reply(200, entry), nil
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(body, []byte(`"NumberOfBuckets":-1`)) || req.ContentLength != int64(len(body)) {
			t.Errorf("%d bytes told of, sent %s", req.ContentLength, body)
		}
		at, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
		if err != nil {
			return nil, err
		}
		again, sum := req.Clone(req.Context()), sha256.Sum256(body)
		key := aws.Credentials{AccessKeyID: "access", SecretAccessKey: "secret"}
		if err := v4.NewSigner().SignHTTP(req.Context(), key, again, hex.EncodeToString(sum[:]), "glue", "us-east-1", at); err != nil {
			return nil, err
		}
		if got, want := req.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want {
			t.Errorf("signed %s\nwant   %s", got, want)
		}
		return reply(200, "{}"), nil
	}}
	tab := table.ParseGlue("d", "t", member([]byte(entry), "Table"))
	got := glueThatSays(s).Register(t.Context(), tab, []NewPartition{{Values: []string{"x"}, Location: "s3://lake/t/x"}})
	if got[0].Err != nil || s.requests != 2 {
		t.Errorf("%v after %d requests", got[0].Err, s.requests)
	}
}
