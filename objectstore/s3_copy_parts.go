package objectstore

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// Parts of a copy.
const (
	minPart      = 5 << 20 // what stores take, but for the last
	copyPart     = 256 << 20
	maxParts     = 10_000
	copyParallel = 8
	abortTime    = 15 * time.Second
)

// partSize is that of each part but the last of a copy of size bytes. A limit
// that a test lowered lowers it too.
func (s *S3) partSize(size int64) int64 {
	return max(min(copyPart, max(s.copyMax(), minPart)), (size+maxParts-1)/maxParts)
}

// parts copies by a multipart upload, which is aborted on any error.
func (d *duplicate) parts(ctx context.Context) (Object, error) {
	id, err := d.begin(ctx)
	if err != nil {
		return Object{}, err
	}
	parts, err := d.copyParts(ctx, id)
	if err == nil && !d.s.isAWS() {
		_, err = d.look(ctx) // the store may have ignored the condition on each part
	}
	if err == nil {
		var o Object
		if o, err = d.complete(ctx, id, parts); err == nil {
			return o, nil
		}
	}
	if left := d.abort(ctx, id); left != nil {
		d.s.log.LogAttrs(ctx, slog.LevelWarn, "an upload is left unfinished in the store", slog.String("upload", id), slog.Any("err", left))
	}
	return Object{}, err
}

func (d *duplicate) begin(ctx context.Context) (id string, err error) {
	o := d.s.o
	in := &s3.CreateMultipartUploadInput{
		Key: aws.String(d.dst.Key), Metadata: d.head.Metadata,
		ContentType: d.head.ContentType, ContentEncoding: d.head.ContentEncoding,
		ContentDisposition: d.head.ContentDisposition, ContentLanguage: d.head.ContentLanguage, CacheControl: d.head.CacheControl,
		ServerSideEncryption: types.ServerSideEncryption(o.SSE), SSEKMSKeyId: nonEmpty(o.SSEKMSKeyID),
		StorageClass: types.StorageClass(o.StorageClass), RequestPayer: d.s.payer(), ExpectedBucketOwner: d.s.owner(),
	}
	if d.opts.Meta != nil {
		in.Metadata = encodeMeta(d.opts.Meta)
	}
	return do(ctx, d.s, call{op: "copy", loc: d.dst}, func(ctx context.Context, acc access) (string, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.CreateMultipartUpload(ctx, in)
		if err == nil && aws.ToString(out.UploadId) == "" {
			err = badAnswer("an answer without an upload id")
		}
		if err != nil {
			return "", err
		}
		return *out.UploadId, nil
	})
}

// copyParts copies all parts, several at a time. After one that failed none begins;
// those under way are waited for, since a part that the store is still making would
// outlive the abort.
func (d *duplicate) copyParts(ctx context.Context, id string) ([]types.CompletedPart, error) {
	size := d.s.partSize(d.src.Size)
	parts := make([]types.CompletedPart, (d.src.Size+size-1)/size)
	g, well := errgroup.WithContext(ctx)
	g.SetLimit(copyParallel)
	for i := range parts {
		g.Go(func() (err error) {
			if well.Err() != nil {
				return nil //nolint:nilerr // the group has the cause
			}
			from := int64(i) * size
			parts[i], err = d.copyPart(ctx, id, int32(i+1), from, min(from+size, d.src.Size)) //nolint:gosec // at most maxParts
			return err
		})
	}
	return parts, g.Wait()
}

// copyPart copies the bytes [from, to).
func (d *duplicate) copyPart(ctx context.Context, id string, n int32, from, to int64) (types.CompletedPart, error) {
	in := &s3.UploadPartCopyInput{
		Key: aws.String(d.dst.Key), UploadId: &id, PartNumber: &n,
		CopySourceIfMatch: quoteETag(d.src.ETag), CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1)),
		RequestPayer: d.s.payer(), ExpectedBucketOwner: d.s.owner(), ExpectedSourceBucketOwner: d.s.owner(),
	}
	c := call{op: "copy", loc: d.dst, moves: true}
	return do(ctx, d.s, c, func(ctx context.Context, acc access) (types.CompletedPart, error) {
		in.Bucket, in.CopySource = acc.bucket, d.source()
		out, err := acc.client.UploadPartCopy(ctx, in)
		if err != nil {
			return types.CompletedPart{}, d.refusal(ctx, err)
		}
		r := out.CopyPartResult
		if r == nil || aws.ToString(r.ETag) == "" {
			return types.CompletedPart{}, badAnswer("an answer without ETag")
		}
		return types.CompletedPart{
			PartNumber: &n, ETag: r.ETag, ChecksumCRC32: r.ChecksumCRC32, ChecksumCRC32C: r.ChecksumCRC32C,
			ChecksumCRC64NVME: r.ChecksumCRC64NVME, ChecksumSHA1: r.ChecksumSHA1, ChecksumSHA256: r.ChecksumSHA256,
		}, nil
	})
}

// complete makes the object of its parts.
func (d *duplicate) complete(ctx context.Context, id string, parts []types.CompletedPart) (Object, error) {
	in := &s3.CompleteMultipartUploadInput{
		Key: aws.String(d.dst.Key), UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		RequestPayer: d.s.payer(), ExpectedBucketOwner: d.s.owner(),
	}
	in.IfMatch, in.IfNoneMatch = conditionHeaders(d.opts.Cond)
	w := d.write()
	return w.do(ctx, func(ctx context.Context, acc access) (Object, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.CompleteMultipartUpload(ctx, in)
		if err != nil {
			return Object{}, err
		}
		if unquoteETag(out.ETag) == "" {
			return Object{}, badAnswer("an answer without ETag")
		}
		at := dateOf(out.ResultMetadata)
		return d.made(out.ETag, &at), nil
	})
}

// abort frees what a failed copy left. It has a little time of its own.
func (d *duplicate) abort(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	in := &s3.AbortMultipartUploadInput{
		Key: aws.String(d.dst.Key), UploadId: &id, RequestPayer: d.s.payer(), ExpectedBucketOwner: d.s.owner(),
	}
	_, err := do(ctx, d.s, call{op: "copy", loc: d.dst}, func(ctx context.Context, acc access) (struct{}, error) {
		in.Bucket = acc.bucket
		_, err := acc.client.AbortMultipartUpload(ctx, in)
		if status, code := answered(ctx, err); code == "NoSuchUpload" || status == http.StatusNotFound {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}
