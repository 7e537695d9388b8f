package faulty_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

func TestAnswersInPlaceOfTheStore(t *testing.T) {
	teapot := func(x *faulty.Exchange, _ faulty.Next) (*http.Response, error) {
		return faulty.Answer(x, 418, nil, ""), nil
	}
	for name, c := range map[string]struct {
		fault  faulty.Fault
		sent   int // status
		status int // as the SDK tells it
		code   string
	}{
		"status":     {faulty.Status{Code: 503, S3Code: "SlowDown", Message: "<slow>"}, 503, 503, "SlowDown"},
		"html":       {faulty.Status{Code: 502, HTML: true}, 502, 502, ""},
		"200":        {faulty.OK200Error{S3Code: "InternalError"}, 200, 500, "InternalError"},
		"redirect":   {faulty.Redirect{Region: "eu-west-1"}, 301, 301, "PermanentRedirect"},
		"own answer": {faulty.Func(teapot), 418, 418, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.p.Add(faulty.Rule{Op: "CopyObject", Fault: c.fault})
			_, err := r.client.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: &r.bucket, Key: aws.String("copy"), CopySource: aws.String(r.bucket + "/dt=1/a%20b%2Bc/%C3%A9.csv")})
			r.answered(err, c.status, c.code)
			if r.store.Exists(t, r.bucket, "copy") {
				t.Error("the store learned of the request")
			}
			if got := r.p.Log()[0].Status; got != c.sent {
				t.Errorf("got status %d in the log, want %d", got, c.sent)
			}
		})
	}
}

func TestRedirectPassesItsRegion(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Fault: faulty.Redirect{Region: r.store.Region}})
	_, _, err := r.get("")
	r.must(err)
}

func TestArchived(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Fault: faulty.Archived{}})
	_, _, err := r.get("")
	r.answered(err, 403, "InvalidObjectState")
	out, err := r.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &r.bucket, Key: aws.String(key)})
	r.must(err)
	if out.StorageClass != types.StorageClassGlacier {
		t.Errorf("got class %q, want GLACIER", out.StorageClass)
	}
}

func TestOlderStores(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Fault: faulty.RejectTrailer{}})
	r.p.Add(faulty.Rule{Fault: faulty.NeedMD5{}})
	r.must(r.put("plain", "1"))
	_, err := r.client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: &r.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("plain")}}}})
	r.answered(err, 400, "MissingContentMD5")
	for name, value := range map[string]string{"X-Amz-Trailer": "x-amz-checksum-crc32", "Content-Encoding": "aws-chunked", "X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.p.URL+"/"+r.bucket+"/chunked", strings.NewReader("1"))
		r.must(err)
		req.Header.Set(name, value)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		r.must(err)
		body, err := io.ReadAll(resp.Body)
		r.must(errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "<Code>InvalidArgument</Code>") {
			t.Errorf("%s: got %d %s, want 400 InvalidArgument", name, resp.StatusCode, body)
		}
	}
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faulty.Fault
		ranged string
		want   string
		err    error
		length int64
		header string // Content-Range
	}{
		"none":           {faulty.Delay{}, "bytes=2-5", "2345", nil, 4, "bytes 2-5/10"},
		"cut":            {faulty.CutBody{After: 4}, "", "0123", io.ErrUnexpectedEOF, 10, ""},
		"cut at once":    {faulty.CutBody{}, "", "", io.ErrUnexpectedEOF, 10, ""},
		"short":          {faulty.WrongLength{Short: 3}, "", "0123456", nil, 7, ""},
		"long":           {faulty.ExtraBytes{N: 2}, "", content + "\x00\x00", nil, 12, ""},
		"corrupt":        {faulty.Corrupt{}, "", "\xcf123456789", nil, 10, ""},
		"whole":          {faulty.FullForRange{}, "bytes=2-5", content, nil, 10, ""},
		"wrong range":    {faulty.WrongRange{}, "bytes=2-5", "2345", nil, 4, "bytes 3-6/10"},
		"range as given": {faulty.WrongRange{Value: "bytes 0-3/10"}, "bytes=2-5", "2345", nil, 4, "bytes 0-3/10"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.p.Add(faulty.Rule{Op: "GetObject", Fault: c.fault})
			in := &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(key)}
			if c.ranged != "" {
				in.Range = &c.ranged
			}
			out, err := r.client.GetObject(t.Context(), in)
			r.must(err)
			defer out.Body.Close() //nolint:errcheck // read to its end
			got, err := io.ReadAll(out.Body)
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q and %v, want %q and %v", got, err, c.want, c.err)
			}
			if *out.ContentLength != c.length || aws.ToString(out.ContentRange) != c.header {
				t.Errorf("got length %d and range %q, want %d and %q", *out.ContentLength, aws.ToString(out.ContentRange), c.length, c.header)
			}
		})
	}
}

func TestStallBody(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Op: "GetObject", Fault: faulty.StallBody{After: 4}})
	out, err := r.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(key)})
	r.must(err)
	defer out.Body.Close() //nolint:errcheck // read to its end
	head := make([]byte, 4)
	_, err = io.ReadFull(out.Body, head)
	r.must(err)
	rest := make(chan string, 1)
	go func() {
		raw, _ := io.ReadAll(out.Body) // what is missing is the test's failure
		rest <- string(raw)
	}()
	select {
	case got := <-rest:
		t.Fatalf("the rest %q came before the release", got)
	default:
	}
	r.p.Release()
	if got := string(head) + <-rest; got != content {
		t.Errorf("got %q, want %q", got, content)
	}
}

func TestHang(t *testing.T) {
	for name, c := range map[string]struct {
		fault    faulty.Fault
		existing bool // while it hangs
	}{
		"before": {faulty.Hang{}, false},
		"after":  {faulty.Hang{Answer: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			hung := r.p.Add(faulty.Rule{Op: "PutObject", Fault: c.fault})
			answer := make(chan error, 1)
			go func() { answer <- r.put("new", "1") }()
			hung.Wait(t, 1)
			if c.existing {
				for deadline := time.Now().Add(time.Minute); !r.store.Exists(t, r.bucket, "new"); {
					if time.Now().After(deadline) {
						t.Fatal("the request did not take effect")
					}
				}
			} else if r.store.Exists(t, r.bucket, "new") {
				t.Error("the request took effect")
			}
			select {
			case err := <-answer:
				t.Fatalf("got an answer before the release: %v", err)
			default:
			}
			r.p.Release()
			r.must(<-answer)
			if !r.store.Exists(t, r.bucket, "new") {
				t.Error("the request did not take effect")
			}
		})
	}
}

// A client that leaves is not waited for, and what it had asked for is not done.
func TestHangUntilTheClientLeaves(t *testing.T) {
	r := newRig(t)
	hung := r.p.Add(faulty.Rule{Op: "DeleteObject", Fault: faulty.Hang{}})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &r.bucket, Key: aws.String(key)})
		left <- err
	}()
	hung.Wait(t, 1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled call", err)
	}
	if !r.store.Exists(t, r.bucket, key) {
		t.Error("the request took effect")
	}
}

func TestLostAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faulty.Fault
		effect bool
	}{
		"after":  {faulty.LoseAnswer{}, true},
		"before": {faulty.LoseAnswerBefore{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.p.Add(faulty.Rule{Op: "PutObject", Fault: c.fault})
			r.closed(r.put("new", "1"))
			if got := r.store.Exists(t, r.bucket, "new"); got != c.effect {
				t.Errorf("got effect %v, want %v", got, c.effect)
			}
			if got := r.p.Log()[0].Status; got != 0 {
				t.Errorf("got status %d in the log, want none", got)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Op: "DeleteObject", Fault: faulty.Refuse{}})
	_, err := r.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &r.bucket, Key: aws.String(key)})
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset connection", err)
	}
	if !r.store.Exists(t, r.bucket, key) {
		t.Error("the request took effect")
	}
}

func TestDelay(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Op: "GetObject", Fault: faulty.Delay{FirstByte: 30 * time.Millisecond}})
	begin := time.Now()
	_, _, err := r.get("")
	r.must(err)
	if got := time.Since(begin); got < 30*time.Millisecond {
		t.Errorf("the answer took %v, want 30ms or more", got)
	}
}

// The store verifies signatures, so this proves too that requests are signed anew.
func TestStripConditions(t *testing.T) {
	r := newRig(t)
	fresh := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
	r.answered(r.put(key, "new", fresh), 412, "PreconditionFailed")
	r.p.Add(faulty.Rule{Fault: faulty.StripConditions{}})
	r.must(r.put(key, "new", fresh))
	r.must(r.put(key, "newer", func(in *s3.PutObjectInput) { in.IfMatch = aws.String(`"stale"`) }))
	if got := r.store.Get(t, r.bucket, key); string(got) != "newer" {
		t.Errorf("got %q, want newer", got)
	}
	if got := r.p.Log()[2].Header.Get("If-Match"); got != `"stale"` {
		t.Errorf("the log has If-Match %q, want it as it came", got)
	}
}
