package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// copyCondition is what is known of a store's condition on the source of a part.
type copyCondition int

const (
	copyUnknown  copyCondition = iota
	copyHonoured               // another version is refused
	copyIgnored                // the version that is there is copied
)

// CopyPart is [Multipart]'s. A store that is not AWS may ignore which version is
// meant: before the first part of a mount one byte is asked for of a version that
// is not there, as this part, which replaces it. A store that copies it, or whose
// answer says nothing, has the source looked at after each part, so that what
// changed before is never taken for the version.
func (s *S3) CopyPart(ctx context.Context, u Upload, number int, src Object, off, n int64) (Part, error) {
	if err := checkCopiedPart(u, number, src, off, n); err != nil {
		return Part{}, err
	}
	p := copiedPart{s: s, upload: u, number: number, src: src, off: off, n: n}
	honoured := s.honoursSource(ctx, p)
	part, err := p.do(ctx)
	if err != nil || honoured {
		return part, err
	}
	d := duplicate{s: s, dst: u.Location, src: src}
	if _, err := d.look(ctx); err != nil {
		return Part{}, err
	}
	return part, nil
}

// checkCopiedPart refuses, without a request, what no store copies.
func checkCopiedPart(u Upload, number int, src Object, off, n int64) error {
	if err := checkPart("copy", u.Location, number, n); err != nil {
		return err
	}
	if err := checkKeyOf("copy", src.Location); err != nil {
		return err
	}
	if secretOf(u.Bucket) != secretOf(src.Bucket) {
		return failS3("copy", u.Location, fmt.Errorf("its credentials are others than those of %s: %w", src.Bucket, ErrCrossDevice))
	}
	if off < 0 || n == 0 || off+n > src.Size {
		return failS3("copy", u.Location, fmt.Errorf("%d bytes at %d of %d are no range: %w", n, off, src.Size, errors.ErrUnsupported))
	}
	return nil
}

// copiedPart is a part that the store makes of bytes that it has.
type copiedPart struct {
	s      *S3
	upload Upload
	number int
	src    Object
	off, n int64
}

// honoursSource tells whether the store is known to copy no other version than
// the one that is meant, and tries to find out.
func (s *S3) honoursSource(ctx context.Context, p copiedPart) bool {
	if s.isAWS() {
		return true
	}
	known := s.copyCondition()
	if known == copyUnknown && s.uploads.probe.TryLock() {
		defer s.uploads.probe.Unlock()
		if known = s.copyCondition(); known == copyUnknown {
			known = p.probe(ctx)
			s.uploads.mu.Lock()
			s.uploads.copies = known
			s.uploads.mu.Unlock()
		}
	}
	return known == copyHonoured
}

func (s *S3) copyCondition() copyCondition {
	s.uploads.mu.Lock()
	defer s.uploads.mu.Unlock()
	return s.uploads.copies
}

// probe asks for a version that can not be there. The condition on the version is
// all that an answer 412 can be about.
func (p copiedPart) probe(ctx context.Context) copyCondition {
	p.src.ETag, p.off, p.n = bogusETag, 0, 1
	in := p.input()
	in.CopySourceRange = aws.String("bytes=0-0")
	_, err := do(ctx, p.s, call{op: "copy", loc: p.upload.Location}, func(ctx context.Context, acc access) (*s3.UploadPartCopyOutput, error) {
		in.Bucket = acc.bucket
		return acc.client.UploadPartCopy(ctx, in)
	})
	switch status, code := answerOf(err); {
	case status == http.StatusPreconditionFailed, code == "PreconditionFailed":
		return copyHonoured
	case err == nil, status == http.StatusBadRequest:
		return copyIgnored
	}
	return copyUnknown
}

func (p copiedPart) input() *s3.UploadPartCopyInput {
	in := &s3.UploadPartCopyInput{
		Key: &p.upload.Key, UploadId: &p.upload.ID, PartNumber: aws.Int32(int32(p.number)), //nolint:gosec // at most MaxParts
		CopySource: copySource(p.src.Location), CopySourceIfMatch: quoteETag(p.src.ETag),
		RequestPayer: p.s.payer(), ExpectedBucketOwner: p.s.owner(), ExpectedSourceBucketOwner: p.s.owner(),
	}
	if p.off != 0 || p.n != p.src.Size { // AWS copies no range of a small object
		in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", p.off, p.off+p.n-1))
	}
	return in
}

// do copies the part.
func (p copiedPart) do(ctx context.Context) (Part, error) {
	in := p.input()
	c := call{op: "copy", loc: p.upload.Location, moves: true, copies: p.n}
	return do(ctx, p.s, c, func(ctx context.Context, acc access) (Part, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.UploadPartCopy(ctx, in)
		if err != nil {
			return Part{}, p.refusal(ctx, err)
		}
		r := out.CopyPartResult
		if r == nil || unquoteETag(r.ETag) == "" {
			return Part{}, badAnswer("an answer without ETag")
		}
		sum := checksums{r.ChecksumCRC32C, r.ChecksumCRC64NVME, r.ChecksumSHA256}.of(p.upload.Checksum)
		return Part{Number: p.number, Size: p.n, ETag: *r.ETag, Checksum: sum}, nil
	})
}

// refusal tells what an error means: the source may be another version, the upload
// gone, or the range none that this store copies.
func (p copiedPart) refusal(ctx context.Context, err error) error {
	d := duplicate{s: p.s, dst: p.upload.Location, src: p.src}
	found := d.refusal(ctx, err)
	var own *storeError
	if errors.As(found, &own) {
		return found
	}
	switch status, code := answered(ctx, err); {
	case code == "InvalidRequest", code == "InvalidArgument":
		return &storeError{sentinel: errors.ErrUnsupported, code: code}
	case status == http.StatusNotFound && code != "NoSuchBucket" && !pageOf(ctx):
		return &storeError{sentinel: errNoUpload, code: code}
	}
	return err
}
