package faulty_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The store of all tests ends with the process.
		goleak.IgnoreAnyFunction("github.com/lakefs-mount/lakefs-mount/internal/testing/s3test.(*process).launch.func1"),
		// Its helpers' connections go with it.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// rig is a bucket with one object, behind a proxy.
type rig struct {
	*testing.T
	p      *faulty.Proxy
	store  *s3test.Server // not by the proxy
	client *s3.Client     // by the proxy, without retries
	bucket string
}

const (
	key     = "dt=1/a b+c/é.csv" // escapes must survive
	content = "0123456789"
)

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, s3test.Versity(t))
}

func newRigOn(t *testing.T, store *s3test.Server) *rig {
	t.Helper()
	r := &rig{T: t, p: faulty.New(t, store), store: store, bucket: store.Bucket(t)}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r.client = s3.NewFromConfig(r.p.Server().Config(), func(o *s3.Options) {
		o.UsePathStyle = true
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	})
	store.Put(t, r.bucket, key, []byte(content))
	return r
}

// get reads the object, or a range of it ("bytes=2-4").
func (r *rig) get(ranged string) (string, *s3.GetObjectOutput, error) {
	in := &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(key)}
	if ranged != "" {
		in.Range = &ranged
	}
	out, err := r.client.GetObject(r.Context(), in)
	if err != nil {
		return "", nil, err
	}
	raw, err := io.ReadAll(out.Body)
	return string(raw), out, errors.Join(err, out.Body.Close())
}

func (r *rig) put(key, content string, options ...func(*s3.PutObjectInput)) error {
	in := &s3.PutObjectInput{Bucket: &r.bucket, Key: &key, Body: strings.NewReader(content)}
	for _, o := range options {
		o(in)
	}
	_, err := r.client.PutObject(r.Context(), in)
	return err
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// answered asserts the status and code of an answer.
func (r *rig) answered(err error, status int, code string) {
	r.Helper()
	var resp *smithyhttp.ResponseError
	if !errors.As(err, &resp) || resp.HTTPStatusCode() != status {
		r.Fatalf("got %v, want status %d", err, status)
	}
	var api smithy.APIError
	if code != "" && (!errors.As(err, &api) || api.ErrorCode() != code) {
		r.Errorf("got %v, want code %s", err, code)
	}
}

// closed asserts that a connection was closed without an answer.
func (r *rig) closed(err error) {
	r.Helper()
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		r.Errorf("got %v, want a closed connection", err)
	}
}

// Signatures hold through the proxy, of each kind of request; operations have
// their names, and counts are right.
func TestOperations(t *testing.T) {
	r := newRig(t)
	ctx, c, b, k := t.Context(), r.client, &r.bucket, aws.String(key)
	other, source := aws.String("other//x"), aws.String(r.bucket+"/dt=1/a%20b%2Bc/%C3%A9.csv")
	var upload *string
	var part types.CompletedPart
	for _, call := range []struct {
		op string
		do func() error
	}{
		{"ListBuckets", func() error { _, err := c.ListBuckets(ctx, &s3.ListBucketsInput{}); return err }},
		{"HeadBucket", func() error { _, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: b}); return err }},
		{"GetBucketLocation", func() error {
			_, err := c.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: b})
			return err
		}},
		{"ListObjectsV2", func() error {
			_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b, Prefix: aws.String("dt=1/a b"), Delimiter: aws.String("/"), EncodingType: "url"})
			return err
		}},
		{"ListObjects", func() error { _, err := c.ListObjects(ctx, &s3.ListObjectsInput{Bucket: b}); return err }},
		{"HeadObject", func() error { _, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: b, Key: k}); return err }},
		{"GetObject", func() error { _, _, err := r.get("bytes=1-2"); return err }},
		{"PutObject", func() error { return r.put("other//x", "1") }},
		{"CopyObject", func() error {
			_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: b, Key: other, CopySource: source})
			return err
		}},
		{"CreateMultipartUpload", func() error {
			out, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: other})
			if err == nil {
				upload = out.UploadId
			}
			return err
		}},
		{"UploadPart", func() error {
			_, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: b, Key: other, UploadId: upload, PartNumber: aws.Int32(1), Body: strings.NewReader("1")})
			return err
		}},
		{"UploadPartCopy", func() error {
			out, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: b, Key: other, UploadId: upload, PartNumber: aws.Int32(1), CopySource: source})
			if err == nil {
				part = types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: aws.Int32(1)}
			}
			return err
		}},
		{"ListParts", func() error {
			_, err := c.ListParts(ctx, &s3.ListPartsInput{Bucket: b, Key: other, UploadId: upload})
			return err
		}},
		{"ListMultipartUploads", func() error {
			_, err := c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: b})
			return err
		}},
		{"CompleteMultipartUpload", func() error {
			_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
				Bucket: b, Key: other, UploadId: upload,
				MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{part}},
			})
			return err
		}},
		{"DeleteObject", func() error { _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: other}); return err }},
		{"DeleteObjects", func() error {
			_, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: b, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: k}}}})
			return err
		}},
	} {
		r.p.Reset()
		if err := call.do(); err != nil {
			t.Errorf("%s: %v", call.op, err)
		}
		if got, want := r.p.Counts(), map[string]int{call.op: 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("got counts %v, want %v", got, want)
		}
	}
	out, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: other})
	r.must(err)
	_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: b, Key: other, UploadId: out.UploadId})
	r.must(err)
	if got := r.p.Count("AbortMultipartUpload"); got != 1 {
		t.Errorf("got %d aborts, want 1", got)
	}
}

func TestLog(t *testing.T) {
	r := newRig(t)
	_, _, err := r.get("bytes=2-4")
	r.must(err)
	r.answered(r.put(key, "new", func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }), 412, "PreconditionFailed")
	_, err = r.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &r.bucket, Prefix: aws.String("dt=1/")})
	r.must(err)
	type entry struct {
		op, bucket, key, ranged, condition string
		status                             int
		sent                               bool
	}
	var got []entry
	for _, q := range r.p.Log() {
		got = append(got, entry{q.Op, q.Bucket, q.Key, q.Range, q.Header.Get("If-None-Match"), q.Status, q.Sent > 0})
	}
	want := []entry{
		{"GetObject", r.bucket, key, "bytes=2-4", "", 206, true},
		{"PutObject", r.bucket, key, "", "*", 412, true},
		{"ListObjectsV2", r.bucket, "dt=1/", "", "", 200, true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Bodies larger than any buffer pass as they are, with and without Expect.
func TestLargeBodies(t *testing.T) {
	r := newRig(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	r.must(r.put(key, string(want)))
	got, out, err := r.get("")
	r.must(err)
	if got != string(want) || *out.ContentLength != int64(len(want)) {
		t.Errorf("got %d bytes, announced as %d, that are not the ones put", len(got), *out.ContentLength)
	}
	if got := r.p.Log()[1].Sent; got != int64(len(want)) {
		t.Errorf("the log has %d bytes, want %d", got, len(want))
	}
}

func TestRules(t *testing.T) {
	r := newRig(t)
	r.store.Put(t, r.bucket, "other", nil)
	busy := r.p.Add(faulty.Rule{Op: "GetObject", Key: "dt=1/", Skip: 1, Times: 2, Fault: faulty.Status{Code: 503, S3Code: "SlowDown"}})
	var got []bool
	for range 5 {
		_, _, err := r.get("")
		if err != nil {
			r.answered(err, 503, "SlowDown")
		}
		got = append(got, err == nil)
		if _, err := r.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String("other")}); err != nil {
			t.Errorf("another key meets the fault: %v", err)
		}
	}
	if want := []bool{true, false, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("got answers %v, want %v", got, want)
	}
	if busy.Hits() != 2 || r.p.Count("GetObject") != 10 {
		t.Errorf("got %d hits of %d requests, want 2 of 10", busy.Hits(), r.p.Count("GetObject"))
	}
	r.p.Add(faulty.Rule{If: func(q *faulty.Request) bool { return q.Range != "" }, Fault: faulty.Status{Code: 500, S3Code: "InternalError"}})
	all := r.p.Add(faulty.Rule{Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	_, _, err := r.get("")
	r.answered(err, 403, "AccessDenied")
	all.Remove()
	_, _, err = r.get("")
	r.must(err)
	_, _, err = r.get("bytes=1-2")
	r.answered(err, 500, "InternalError")
	r.p.Clear()
	_, _, err = r.get("bytes=1-2")
	r.must(err)
}

// A rule applies within those before it.
func TestRulesNest(t *testing.T) {
	r := newRig(t)
	var order []string
	note := func(name string) faulty.Fault {
		return faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			order = append(order, name+" request")
			resp, err := next()
			order = append(order, name+" answer")
			return resp, err
		})
	}
	r.p.Add(faulty.Rule{Fault: note("outer")})
	r.p.Add(faulty.Rule{Fault: note("inner")})
	_, _, err := r.get("")
	r.must(err)
	if want := []string{"outer request", "inner request", "inner answer", "outer answer"}; !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
}

func TestDownAndUp(t *testing.T) {
	r := newRig(t)
	_, _, err := r.get("") // a connection that is open
	r.must(err)
	// Not HEAD: that Go's HTTP client repeats after a reset.
	hung := r.p.Add(faulty.Rule{Op: "DeleteObject", Fault: faulty.Hang{}})
	reset := make(chan error, 1)
	go func() {
		_, err := r.client.DeleteObject(context.WithoutCancel(t.Context()), &s3.DeleteObjectInput{Bucket: &r.bucket, Key: aws.String(key)})
		reset <- err
	}()
	hung.Wait(t, 1)
	for range 2 {
		r.p.Down()
		if _, _, err := r.get(""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want connection refused", err)
		}
		r.p.Up()
		_, _, err := r.get("")
		r.must(err)
	}
	if err := <-reset; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v of an open connection, want a reset", err)
	}
}

// A store that is gone is gone by the proxy too.
func TestStoreGone(t *testing.T) {
	store := s3test.Fresh(t)
	p := faulty.New(t, store)
	store.Stop(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from
	if _, err := io.WriteString(conn, "GET /b/k HTTP/1.1\r\nHost: s3\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); len(got) != 0 || err != nil {
		t.Errorf("got %q and %v, want a closed connection", got, err)
	}
}

// Pacing and delays are lower bounds, which hold on a busy machine too.
func TestLatency(t *testing.T) {
	r := newRig(t)
	r.p.SetLatency(faulty.Latency{FirstByte: 20 * time.Millisecond, List: 40 * time.Millisecond, BytesPerSecond: 100})
	took := func(do func() error) time.Duration {
		begin := time.Now()
		r.must(do())
		return time.Since(begin)
	}
	list := func() error {
		_, err := r.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &r.bucket, Prefix: aws.String("none")})
		return err
	}
	if got, want := took(func() error { _, _, err := r.get(""); return err }), 120*time.Millisecond; got < want {
		t.Errorf("10 bytes at 100 a second took %v, want %v or more", got, want)
	}
	if got, want := took(func() error { return r.put("x", content) }), 120*time.Millisecond; got < want {
		t.Errorf("10 bytes at 100 a second took %v to put, want %v or more", got, want)
	}
	r.p.SetLatency(faulty.Latency{FirstByte: 20 * time.Millisecond, List: 40 * time.Millisecond})
	if got, want := took(list), 40*time.Millisecond; got < want {
		t.Errorf("a listing took %v, want %v or more", got, want)
	}
}

// Retries of the SDK meet the store again, and succeed: what the proxy is for.
func TestRetries(t *testing.T) {
	r := newRig(t)
	r.p.Add(faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.Status{Code: 500, HTML: true}})
	r.p.Add(faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.Refuse{}})
	_, err := r.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &r.bucket, Key: aws.String(key), Body: strings.NewReader("new")}, func(o *s3.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	})
	r.must(err)
	if got := r.store.Get(t, r.bucket, key); string(got) != "new" || r.p.Count("PutObject") != 3 {
		t.Errorf("got %q after %d requests, want new after 3", got, r.p.Count("PutObject"))
	}
}
