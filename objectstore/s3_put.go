package objectstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// contentType is that of every object that is made here.
const contentType = "application/octet-stream"

// Put is [Store]'s: one PutObject, streamed from r, which is read once before
// for its checksum and again for each retry. ErrTooLarge above 5 GiB. The
// ModTime is the store's clock when it answered; LastModified may differ by
// seconds. What a store that is not AWS does with conditions: see [S3.Conditions].
func (s *S3) Put(ctx context.Context, loc Location, r io.ReaderAt, size int64, opts PutOptions) (Object, error) {
	if err := checkS3Key(loc.Key); err != nil {
		return Object{}, failS3("put", loc, err)
	}
	if size > MaxPutSize {
		return Object{}, failS3("put", loc, fmt.Errorf("%d bytes are more than one request takes, %d: %w", size, int64(MaxPutSize), ErrTooLarge))
	}
	d, err := digestOf(ctx, r, size, s.o.Checksum, !s.isTLS())
	if err != nil {
		return Object{}, failS3("put", loc, err)
	}
	p := upload{s: s, loc: loc, source: r, size: size, digest: d, meta: opts.Meta}
	o, err := p.put(ctx, write{s: s, op: "put", dst: loc, cond: opts.Cond, id: opts.Meta[MetaWriteID]})
	if err != nil || opts.Cond == (Cond{}) {
		return o, err
	}
	o, err = s.probe(ctx, o, func(ctx context.Context, cond Cond) (Object, error) {
		return p.put(ctx, write{s: s, op: "put", dst: loc, cond: cond, blind: true})
	})
	if err != nil {
		s.log.DebugContext(ctx, "what the store does with conditions was not found out", slog.Any("err", err))
	}
	return o, nil
}

// isTLS tells whether requests go encrypted.
func (s *S3) isTLS() bool {
	endpoint := s.o.Endpoint
	if endpoint == "" {
		endpoint = aws.ToString(s.main.config.BaseEndpoint)
	}
	return !strings.HasPrefix(strings.ToLower(endpoint), "http://")
}

// upload is one object on its way to the store, by any number of requests.
type upload struct {
	s      *S3
	loc    Location
	source io.ReaderAt
	size   int64
	digest digest
	meta   map[string]string
}

// put makes the object.
func (u *upload) put(ctx context.Context, w write) (Object, error) {
	return w.do(ctx, func(ctx context.Context, acc access) (Object, error) { return u.send(ctx, acc, w.sent()) })
}

// send makes one request.
func (u *upload) send(ctx context.Context, acc access, cond Cond) (Object, error) {
	in := u.input(acc, cond)
	var source sourceFailure
	in.Body = streamed(u.source, u.size, &source)
	out, err := acc.client.PutObject(ctx, in, u.digest.signed)
	if err = source.or(err); err != nil {
		return Object{}, err
	}
	o := Object{Location: u.loc, Size: u.size, ETag: unquoteETag(out.ETag), Meta: u.meta}
	if o.ETag == "" {
		return Object{}, badAnswer("an answer without ETag")
	}
	o.Match, o.ModTime = o.ETag, dateOf(out.ResultMetadata)
	return o, nil
}

func (u *upload) input(acc access, cond Cond) *s3.PutObjectInput {
	o := u.s.o
	in := &s3.PutObjectInput{
		Bucket: acc.bucket, Key: aws.String(u.loc.Key),
		ContentLength: aws.Int64(u.size), ContentType: aws.String(contentType), Metadata: encodeMeta(u.meta),
		ServerSideEncryption: types.ServerSideEncryption(o.SSE), SSEKMSKeyId: nonEmpty(o.SSEKMSKeyID),
		StorageClass: types.StorageClass(o.StorageClass), RequestPayer: u.s.payer(), ExpectedBucketOwner: u.s.owner(),
	}
	in.IfMatch, in.IfNoneMatch = conditionHeaders(cond)
	sums := sumsOf(o.Checksum, u.digest.checksum)
	in.ChecksumCRC32C, in.ChecksumCRC64NVME, in.ChecksumSHA256 = sums.crc32c, sums.crc64nvme, sums.sha256
	return in
}

func nonEmpty(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func conditionHeaders(cond Cond) (ifMatch, ifNoneMatch *string) {
	switch {
	case cond.IfNoneMatch:
		return nil, aws.String("*")
	case cond.IfMatch != "":
		return quoteETag(cond.IfMatch), nil
	}
	return nil, nil
}

// dateOf is the store's clock when it answered.
func dateOf(m middleware.Metadata) time.Time {
	if r, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		if t, err := http.ParseTime(r.Header.Get("Date")); err == nil {
			return t
		}
	}
	return time.Now().Truncate(time.Second)
}

// sourceFailure hands an error of the source from the transport's goroutine on.
type sourceFailure struct {
	mu  sync.Mutex
	err error
}

func (f *sourceFailure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// or is the failure, if there is one: err if not.
func (f *sourceFailure) or(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return &storeError{sentinel: f.err, text: "nothing was stored"}
	}
	return err
}
