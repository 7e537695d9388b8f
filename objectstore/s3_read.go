package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

const (
	stallLimit = 10 * time.Second // without a byte of a body, before it is asked for again; at most half of Timeout
	maxResumes = 10               // in a row without progress
	progress   = 64 << 10         // bytes of a body that make another attempt worth it
)

// Read is [Store]'s. A body that is cut short or stalls is asked for again from
// where it ended, of the same version; io.ErrUnexpectedEOF, with
// [ErrUnavailable], is what remains after S3Options.Timeout without a byte.
func (s *S3) Read(ctx context.Context, o Object, off, n int64) (Object, io.ReadCloser, error) {
	if off < 0 || n < 0 {
		return Object{}, nil, failS3("read", o.Location, fmt.Errorf("negative range %d+%d", off, n))
	}
	if err := checkS3Key(o.Key); err != nil {
		return Object{}, nil, failS3("read", o.Location, err)
	}
	got, body, err := s.read(ctx, o, off, n)
	if err != nil {
		return Object{}, nil, err
	}
	return got, body, nil
}

func (s *S3) read(ctx context.Context, o Object, off, n int64) (Object, io.ReadCloser, error) {
	n = min(n, math.MaxInt64-off)
	if o.ETag != "" {
		off = min(off, o.Size)
		n = min(n, o.Size-off)
	}
	if n == 0 && (o.ETag == "" || o.Size > 0) { // there is no empty range
		return s.readNothing(ctx, o)
	}
	p := part{object: o, off: off, n: n}
	got, body, err := s.get(ctx, p)
	if status, _ := answerOf(err); status == http.StatusRequestedRangeNotSatisfiable && o.ETag == "" {
		return s.readNothing(ctx, o) // it ends before off
	}
	if err != nil {
		return Object{}, nil, err
	}
	p.object, p.n = got.Object, got.length
	return got.Object, &objectBody{ctx: ctx, s3: s, part: p, body: body}, nil
}

// readNothing is a Read of no byte: the headers prove the version.
func (s *S3) readNothing(ctx context.Context, o Object) (Object, io.ReadCloser, error) {
	got, err := s.head(ctx, call{op: "read", loc: o.Location, quick: true}, o.ETag)
	if err == nil && o.ETag != "" {
		err = failS3("read", o.Location, sameObject(o, got.ETag, got.Size))
	}
	if err != nil {
		return Object{}, nil, err
	}
	return got, http.NoBody, nil
}

// sameObject is nil if an answer is of the version that was asked for. A store
// may ignore If-Match.
func sameObject(want Object, etag string, size int64) error {
	switch {
	case etag != want.ETag:
		return &storeError{sentinel: ErrChanged, text: "the store answered with version " + printable(etag)}
	case size != want.Size:
		return &storeError{sentinel: ErrChanged, text: fmt.Sprintf("%d bytes, not %d", size, want.Size)}
	}
	return nil
}

// part is n bytes, at least one unless the object is empty, of an object's
// version; of any, with an empty ETag.
type part struct {
	object Object
	off, n int64
	until  time.Time // zero: Timeout from now
	resume bool      // an earlier request for it was cut
}

// whole: no range is asked for. An empty object has none.
func (p part) whole() bool { return p.object.ETag != "" && p.off == 0 && p.n == p.object.Size }

// gotPart is the answer's headers: the object, and the bytes of it that follow.
type gotPart struct {
	Object
	length int64
}

// get makes one ranged request. A 416 keeps its status.
func (s *S3) get(ctx context.Context, p part) (gotPart, io.ReadCloser, error) {
	in := &s3.GetObjectInput{
		Key: aws.String(p.object.Key), RequestPayer: s.payer(), ExpectedBucketOwner: s.owner(),
	}
	if p.object.ETag != "" {
		in.IfMatch = quoteETag(p.object.ETag)
	}
	if !p.whole() {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", p.off, p.off+p.n-1))
	}
	c := call{op: "read", loc: p.object.Location, quick: true, streams: true, until: p.until, again: p.resume}
	var got gotPart
	body, err := do(ctx, s, c, func(ctx context.Context, acc access) (io.ReadCloser, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.GetObject(ctx, in)
		if err != nil {
			return nil, err
		}
		if got, err = p.check(statusOf(ctx), out); err != nil {
			return nil, errors.Join(err, out.Body.Close())
		}
		return out.Body, nil
	})
	return got, body, err
}

// check holds an answer's headers against what was asked for.
func (p part) check(status int, out *s3.GetObjectOutput) (gotPart, error) {
	got := gotPart{Object: Object{Location: p.object.Location, ETag: unquoteETag(out.ETag), Meta: decodeMeta(out.Metadata)}}
	got.Match, got.ModTime = got.ETag, aws.ToTime(out.LastModified)
	if got.ETag == "" {
		return gotPart{}, noETag
	}
	var err error
	switch {
	case status == http.StatusPartialContent && !p.whole():
		got.Size, got.length, err = p.checkRange(aws.ToString(out.ContentRange))
	case status == http.StatusOK && out.ContentLength != nil:
		got.Size, got.length = *out.ContentLength, *out.ContentLength
		if !p.whole() && (p.object.ETag != "" || p.off != 0 || got.Size > p.n) {
			err = badAnswer("the whole object where a range was asked for")
		}
	default:
		err = badAnswer(fmt.Sprintf("status %d for a range", status))
	}
	if err == nil && p.object.ETag != "" {
		err = sameObject(p.object, got.ETag, got.Size)
	}
	if err == nil && out.ContentLength != nil && *out.ContentLength != got.length {
		err = badAnswer(fmt.Sprintf("%d bytes where %d were asked for", *out.ContentLength, got.length))
	}
	return got, err
}

// checkRange reads "bytes first-last/total".
func (p part) checkRange(header string) (total, length int64, err error) {
	var first, last int64
	bad := badAnswer("Content-Range " + printable(header) + fmt.Sprintf(" for %d+%d", p.off, p.n))
	if n, _ := fmt.Sscanf(strings.ToLower(header), "bytes %d-%d/%d", &first, &last, &total); n != 3 {
		return 0, 0, bad
	}
	if p.object.ETag != "" && total != p.object.Size { // check says what that means
		return total, last - first + 1, nil
	}
	if first != p.off || last != min(p.off+p.n, total)-1 || last < first {
		return 0, 0, bad
	}
	return total, last - first + 1, nil
}

// statusOf is the status of the answer that an attempt got.
func statusOf(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.status
	}
	return 0
}

// pageOf tells whether the answer that an attempt got was a page for people.
func pageOf(ctx context.Context) bool {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	return ok && a.html
}

// objectBody is what is left of a part. The context is the call's own: a body
// lives no longer than the call that asked for it.
type objectBody struct {
	ctx      context.Context //nolint:containedctx // an io.Reader has no other place for it
	s3       *S3
	part     part
	body     io.ReadCloser // nil: it was cut
	failures int           // since there was progress
	came     int64         // since the last failure
	err      error         // for good
}

// Read is io.Reader's. It returns no byte beyond the part.
func (b *objectBody) Read(p []byte) (int, error) {
	start := time.Now()
	for {
		switch {
		case b.err != nil:
			return 0, b.err
		case b.part.n == 0:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		n, err := b.body.Read(p[:min(int64(len(p)), b.part.n)])
		b.part.off += int64(n)
		b.part.n -= int64(n)
		if n > 0 {
			if b.came += int64(n); b.came >= progress || b.part.n == 0 {
				b.failures = 0
			}
			if b.s3.o.Received != nil {
				b.s3.o.Received(n)
			}
			return n, nil // an error comes again
		}
		if err != nil {
			b.err = b.resume(start.Add(b.s3.o.Timeout), err)
		}
	}
}

// resume goes on with another body after the last was cut.
func (b *objectBody) resume(until time.Time, cause error) error {
	_ = b.body.Close() // cut
	loc := b.part.object.Location
	if err := b.ctx.Err(); err != nil {
		return failFor(b.ctx, "read", loc, err)
	}
	var wait time.Duration
	if b.failures > 0 {
		wait = backoff(b.failures - 1)
	}
	wait += b.s3.budget.take()
	b.failures++
	b.came = 0
	if b.failures > maxResumes || !time.Now().Add(wait).Before(until) {
		return b.cut(cause)
	}
	if err := pause.For(b.ctx, wait); err != nil {
		return failFor(b.ctx, "read", loc, err)
	}
	b.part.until, b.part.resume = until, true
	_, body, err := b.s3.get(b.ctx, b.part)
	if errors.Is(err, ErrUnavailable) {
		return b.cut(err)
	}
	if err == nil {
		b.body = body
	}
	return err
}

// cut is the end of a body that did not come whole.
func (b *objectBody) cut(cause error) error {
	return failFor(b.ctx, "read", b.part.object.Location, fmt.Errorf("%w: %w, %d bytes before its end: %s",
		ErrUnavailable, io.ErrUnexpectedEOF, b.part.n, printable(cause.Error())))
}

// Close drops what did not come yet.
func (b *objectBody) Close() error {
	_ = b.body.Close() // of a cut one: says nothing of the bytes that were read
	if b.err == nil {
		b.err = failS3("read", b.part.object.Location, errClosedBody)
	}
	return nil
}

var errClosedBody = errors.New("the body is closed")
