package objectstore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Stat is [Store]'s: one HEAD. The answer to it has no code: a bucket that is
// not there is a missing object too.
func (s *S3) Stat(ctx context.Context, loc Location) (Object, error) {
	if loc.Key == "" { // the bucket is no object
		return Object{}, failS3("stat", loc, ErrNotExist)
	}
	if err := checkS3Key(loc.Key); err != nil {
		return Object{}, failS3("stat", loc, err)
	}
	return s.head(ctx, call{op: "stat", loc: loc, quick: true}, "")
}

// head asks for the headers of an object, of one version where etag is not "".
func (s *S3) head(ctx context.Context, c call, etag string) (Object, error) {
	in := &s3.HeadObjectInput{
		Key: aws.String(c.loc.Key), RequestPayer: s.payer(), ExpectedBucketOwner: s.owner(),
	}
	if etag != "" {
		in.IfMatch = quoteETag(etag)
	}
	return do(ctx, s, c, func(ctx context.Context, acc access) (Object, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.HeadObject(ctx, in)
		if err != nil {
			return Object{}, err
		}
		o := headObject(c.loc, out)
		if out.ContentLength == nil {
			return Object{}, badAnswer("an answer without length")
		}
		if o.ETag == "" {
			return Object{}, noETag
		}
		return o, nil
	})
}

func headObject(loc Location, out *s3.HeadObjectOutput) Object {
	o := Object{Location: loc, Size: aws.ToInt64(out.ContentLength), ETag: unquoteETag(out.ETag), Meta: decodeMeta(out.Metadata)}
	o.Match, o.ModTime = o.ETag, aws.ToTime(out.LastModified)
	return o
}
