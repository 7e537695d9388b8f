package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

// Copy is [Store]'s: one CopyObject, above 5 GiB a multipart upload of copied
// parts. The destination's credentials must reach the source: ErrCrossDevice for
// the buckets of different secrets. Where the store is not AWS source and
// destination are looked at before, for many stores ignore conditions on copies.
func (s *S3) Copy(ctx context.Context, dst Location, src Object, opts PutOptions) (Object, error) {
	o, err := s.copy(ctx, dst, src, opts)
	if err != nil {
		return Object{}, err
	}
	if opts.Meta != nil {
		o.Meta = opts.Meta
	}
	return o, nil
}

func (s *S3) copy(ctx context.Context, dst Location, src Object, opts PutOptions) (Object, error) {
	for _, loc := range []Location{dst, src.Location} {
		if err := checkKeyOf("copy", loc); err != nil {
			return Object{}, err
		}
	}
	if secretOf(dst.Bucket) != secretOf(src.Bucket) {
		return Object{}, failS3("copy", dst, fmt.Errorf("its credentials are others than those of %s: %w", src.Bucket, ErrCrossDevice))
	}
	d := duplicate{s: s, dst: dst, src: src, opts: opts}
	if s.isAWS() && opts.Meta == nil && dst != src.Location && src.Size <= s.copyMax() {
		return d.whole(ctx) // the one request says it all
	}
	var err error
	if d.head, err = d.look(ctx); err != nil {
		return Object{}, err
	}
	switch {
	case dst == src.Location && opts.Meta == nil:
		return d.self(ctx)
	case src.Size > s.copyMax():
		return d.parts(ctx)
	}
	return d.whole(ctx)
}

// secretOf is the part of a Location's bucket that names credentials.
func secretOf(bucket string) string {
	secret, _, ok := strings.Cut(bucket, "@")
	if !ok {
		return ""
	}
	return secret
}

// copyMax is the size of the largest object that one request copies.
func (s *S3) copyMax() int64 {
	if s.copyLimit > 0 {
		return s.copyLimit
	}
	return MaxPutSize
}

// duplicate is one object on its way to another key of the store.
type duplicate struct {
	s    *S3
	dst  Location
	src  Object
	opts PutOptions
	head *s3.HeadObjectOutput // of the source; nil: it was not looked at
}

// look gets the source's headers. ErrChanged unless it is still that version.
func (d *duplicate) look(ctx context.Context) (*s3.HeadObjectOutput, error) {
	in := &s3.HeadObjectInput{Key: aws.String(d.src.Key), RequestPayer: d.s.payer(), ExpectedBucketOwner: d.s.owner()}
	c := call{op: "stat", loc: d.src.Location, quick: true}
	head, err := do(ctx, d.s, c, func(ctx context.Context, acc access) (*s3.HeadObjectOutput, error) {
		in.Bucket = acc.bucket
		return acc.client.HeadObject(ctx, in)
	})
	switch {
	case errors.Is(err, ErrNotExist):
		return nil, failS3("copy", d.src.Location, fmt.Errorf("nothing is there: %w", ErrChanged))
	case err != nil:
		return nil, err
	case unquoteETag(head.ETag) != d.src.ETag:
		return nil, failS3("copy", d.src.Location, fmt.Errorf("version %s is there: %w", printable(unquoteETag(head.ETag)), ErrChanged))
	}
	d.src.Size = aws.ToInt64(head.ContentLength)
	return head, nil
}

// self is a copy onto itself, which stores refuse.
func (d *duplicate) self(ctx context.Context) (Object, error) {
	if err := d.s.holds(ctx, d.dst, d.opts.Cond); err != nil {
		return Object{}, failS3("copy", d.dst, err)
	}
	return headObject(d.dst, d.head), nil
}

// copySource is the header that names the source: escaped once.
func copySource(src Location) *string {
	_, bucket, ok := strings.Cut(src.Bucket, "@")
	if !ok {
		bucket = src.Bucket
	}
	return aws.String(bucket + "/" + httpbinding.EscapePath(src.Key, false))
}

func (d *duplicate) write() write {
	return write{
		s: d.s, op: "copy", dst: d.dst, cond: d.opts.Cond, id: d.opts.Meta[MetaWriteID],
		looks: !d.s.isAWS(), copies: d.src.Size,
	}
}

// whole copies by one request.
func (d *duplicate) whole(ctx context.Context) (Object, error) {
	w := d.write()
	w.etag = d.src.ETag
	return w.do(ctx, func(ctx context.Context, acc access) (Object, error) {
		out, err := acc.client.CopyObject(ctx, d.input(acc, w.sent()))
		if err != nil {
			return Object{}, d.refusal(ctx, err)
		}
		if out.CopyObjectResult == nil || unquoteETag(out.CopyObjectResult.ETag) == "" {
			return Object{}, badAnswer("an answer without ETag")
		}
		return d.made(out.CopyObjectResult.ETag, out.CopyObjectResult.LastModified), nil
	})
}

// made is the new object.
func (d *duplicate) made(etag *string, at *time.Time) Object {
	o := Object{Location: d.dst, Size: d.src.Size, ETag: unquoteETag(etag), Meta: d.src.Meta, ModTime: aws.ToTime(at)}
	o.Match = o.ETag
	if d.head != nil {
		o.Meta = decodeMeta(d.head.Metadata)
	}
	return o
}

func (d *duplicate) input(acc access, cond Cond) *s3.CopyObjectInput {
	o := d.s.o
	in := &s3.CopyObjectInput{
		Bucket: acc.bucket, Key: aws.String(d.dst.Key),
		CopySource: copySource(d.src.Location), CopySourceIfMatch: quoteETag(d.src.ETag),
		ServerSideEncryption: types.ServerSideEncryption(o.SSE), SSEKMSKeyId: nonEmpty(o.SSEKMSKeyID),
		StorageClass: types.StorageClass(o.StorageClass), RequestPayer: d.s.payer(),
		ExpectedBucketOwner: d.s.owner(), ExpectedSourceBucketOwner: d.s.owner(),
	}
	in.IfMatch, in.IfNoneMatch = conditionHeaders(cond)
	if d.opts.Meta != nil {
		in.MetadataDirective, in.Metadata = types.MetadataDirectiveReplace, encodeMeta(d.opts.Meta)
		// What else the directive would drop.
		in.ContentType, in.ContentEncoding = d.head.ContentType, d.head.ContentEncoding
		in.ContentDisposition, in.ContentLanguage = d.head.ContentDisposition, d.head.ContentLanguage
		in.CacheControl = d.head.CacheControl
	}
	return in
}

// refusal tells whether an answer means that the source is another version: the
// conditions on source and destination have one status, and a range may be past
// the end of what is there now.
func (d *duplicate) refusal(ctx context.Context, err error) error {
	switch status, code := answered(ctx, err); {
	case code == "NoSuchKey":
		return &storeError{sentinel: ErrChanged, text: "the source is gone"}
	case code == "NoSuchUpload", code == "NoSuchBucket":
	case status == http.StatusPreconditionFailed, status == http.StatusBadRequest,
		status == http.StatusNotFound, status == http.StatusRequestedRangeNotSatisfiable:
		if _, lost := d.look(ctx); errors.Is(lost, ErrChanged) {
			return &storeError{sentinel: ErrChanged, text: "the source is another version"}
		}
	}
	return err
}
