package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var _ Multipart = (*S3)(nil)

// uploads is what a mount has learned of a store's uploads; the zero value knows
// nothing.
type uploads struct {
	mu     sync.Mutex
	plain  bool // no checksum is asked for: it was refused
	proved bool // an object was compared by its checksum, and was right
	copies copyCondition
	probe  sync.Mutex // held by the one CopyPart that finds out copies
}

// CreateUpload is [Multipart]'s. The object will have opts.Meta, the type of all
// objects made here, and what the options say of encryption and storage class.
//
// Checksums are S3Options.Checksum: its CRCs for parts and, where the store says so,
// the whole object; SHA-256 for parts. A store that refuses to hear of them is asked
// again without, once a mount: its parts go with their SHA-256 in the signature.
//
// An answer that was lost leaves an upload that nobody knows: it holds no part, and
// a lifecycle rule removes it.
func (s *S3) CreateUpload(ctx context.Context, loc Location, opts PutOptions) (Upload, error) {
	return s.createUpload(ctx, loc, &s3.CreateMultipartUploadInput{
		ContentType: aws.String(contentType), Metadata: encodeMeta(opts.Meta),
	})
}

// createUpload fills in what all uploads have.
func (s *S3) createUpload(ctx context.Context, loc Location, in *s3.CreateMultipartUploadInput) (Upload, error) {
	if err := checkKeyOf("upload", loc); err != nil {
		return Upload{}, err
	}
	in.Key = aws.String(loc.Key)
	in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryption(s.o.SSE), nonEmpty(s.o.SSEKMSKeyID)
	in.StorageClass = types.StorageClass(s.o.StorageClass)
	in.RequestPayer, in.ExpectedBucketOwner = s.payer(), s.owner()
	algorithm := s.uploadChecksum()
	u, err := s.beginUpload(ctx, loc, in, algorithm)
	if algorithm == "" || !refusesChecksum(err) {
		return u, err
	}
	u, again := s.beginUpload(ctx, loc, in, "")
	if again != nil {
		return Upload{}, again
	}
	s.withoutChecksum(ctx, err)
	return u, nil
}

// beginUpload makes one call.
func (s *S3) beginUpload(ctx context.Context, loc Location, in *s3.CreateMultipartUploadInput, algorithm string) (Upload, error) {
	in.ChecksumAlgorithm, in.ChecksumType = checksumHeaders(algorithm)
	return do(ctx, s, call{op: "upload", loc: loc}, func(ctx context.Context, acc access) (Upload, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.CreateMultipartUpload(ctx, in)
		if err == nil && aws.ToString(out.UploadId) == "" {
			err = badAnswer("an answer without an upload id")
		}
		if err != nil {
			return Upload{}, err
		}
		u := Upload{Location: loc, ID: *out.UploadId, Checksum: algorithm}
		u.FullObject = in.ChecksumType != "" && out.ChecksumType == types.ChecksumTypeFullObject
		return u, nil
	})
}

// uploadChecksum is the algorithm that uploads are begun with; "": none.
func (s *S3) uploadChecksum() string {
	s.uploads.mu.Lock()
	defer s.uploads.mu.Unlock()
	switch {
	case s.uploads.plain, s.o.Checksum == sumNone:
		return ""
	case s.o.Checksum == "":
		return sumCRC32C
	}
	return s.o.Checksum
}

// checksumHeaders ask for an algorithm. SHA-256 of parts can not be combined to
// that of the object.
func checksumHeaders(algorithm string) (types.ChecksumAlgorithm, types.ChecksumType) {
	switch algorithm {
	case sumCRC32C:
		return types.ChecksumAlgorithmCrc32c, types.ChecksumTypeFullObject
	case sumCRC64NVME:
		return types.ChecksumAlgorithmCrc64nvme, types.ChecksumTypeFullObject
	case sumSHA256:
		return types.ChecksumAlgorithmSha256, ""
	}
	return "", ""
}

// refusesChecksum: an error that may be about the checksum's headers.
func refusesChecksum(err error) bool {
	switch status, code := answerOf(err); code {
	case "NotImplemented", "InvalidArgument", "InvalidRequest", "InvalidHeader", "UnexpectedContent", "BadRequest", "MalformedXML":
		return true
	case "":
		return status == http.StatusBadRequest || status == http.StatusNotImplemented
	}
	return false
}

// withoutChecksum notes that the store takes no checksums of uploads.
func (s *S3) withoutChecksum(ctx context.Context, err error) {
	s.uploads.mu.Lock()
	was := s.uploads.plain
	s.uploads.plain = true
	s.uploads.mu.Unlock()
	if !was {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the object store takes no checksums of uploads: they are made without", slog.Any("err", err))
	}
}

// UploadPart is [Multipart]'s: one request, streamed from r, which is read once
// before for its checksum and again for each request. What a store finds to be
// other bytes than were summed up is sent once more.
func (s *S3) UploadPart(ctx context.Context, u Upload, number int, r io.ReaderAt, size int64) (Part, error) {
	if err := checkPart("part", u.Location, number, size); err != nil {
		return Part{}, err
	}
	algorithm := u.Checksum
	if algorithm == "" {
		algorithm = sumNone
	}
	// Something is to tell the store that the bytes are right.
	signed := !s.isTLS() || u.Checksum == "" && s.o.Checksum != sumNone
	d, err := digestOf(ctx, r, size, algorithm, signed)
	if err != nil {
		return Part{}, failS3("part", u.Location, err)
	}
	p := sentPart{upload: u, number: number, source: r, size: size, digest: d}
	return do(ctx, s, call{op: "part", loc: u.Location, moves: true}, func(ctx context.Context, acc access) (Part, error) {
		return p.send(ctx, s, acc)
	})
}

// checkPart refuses, without a request, what is no part.
func checkPart(op string, loc Location, number int, size int64) error {
	switch {
	case number < 1 || number > MaxParts:
		return failS3(op, loc, fmt.Errorf("part %d: an upload has parts 1 to %d: %w", number, MaxParts, ErrTooLarge))
	case size < 0 || size > MaxPartSize:
		return failS3(op, loc, fmt.Errorf("%d bytes are more than a part takes, %d: %w", size, int64(MaxPartSize), ErrTooLarge))
	}
	return nil
}

// sentPart is one part on its way to the store, by any number of requests.
type sentPart struct {
	upload  Upload
	number  int
	source  io.ReaderAt
	size    int64
	digest  digest
	digests digests
}

// send makes one request.
func (p *sentPart) send(ctx context.Context, s *S3, acc access) (Part, error) {
	var source sourceFailure
	in := &s3.UploadPartInput{
		Bucket: acc.bucket, Key: &p.upload.Key, UploadId: &p.upload.ID, PartNumber: aws.Int32(int32(p.number)), //nolint:gosec // at most MaxParts
		ContentLength: &p.size, Body: streamed(p.source, p.size, &source),
		RequestPayer: s.payer(), ExpectedBucketOwner: s.owner(),
	}
	sums := sumsOf(p.upload.Checksum, p.digest.checksum)
	in.ChecksumCRC32C, in.ChecksumCRC64NVME, in.ChecksumSHA256 = sums.crc32c, sums.crc64nvme, sums.sha256
	out, err := acc.client.UploadPart(ctx, in, p.digest.signed)
	if err = source.or(err); err != nil {
		if _, code := answered(ctx, err); corrupt(code) {
			err = p.digests.refused(code)
		}
		return Part{}, err
	}
	return p.taken(out)
}

// taken is the part as the answer tells it.
func (p *sentPart) taken(out *s3.UploadPartOutput) (Part, error) {
	if unquoteETag(out.ETag) == "" {
		return Part{}, badAnswer("an answer without ETag")
	}
	theirs := checksums{out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumSHA256}.of(p.upload.Checksum)
	if theirs != "" && theirs != p.digest.checksum {
		return Part{}, p.digests.refused("")
	}
	return Part{Number: p.number, Size: p.size, ETag: *out.ETag, Checksum: p.digest.checksum}, nil
}

// AbortUpload is [Multipart]'s.
func (s *S3) AbortUpload(ctx context.Context, u Upload) error {
	in := &s3.AbortMultipartUploadInput{Key: &u.Key, UploadId: &u.ID, RequestPayer: s.payer(), ExpectedBucketOwner: s.owner()}
	_, err := do(ctx, s, call{op: "abort", loc: u.Location}, func(ctx context.Context, acc access) (struct{}, error) {
		in.Bucket = acc.bucket
		_, err := acc.client.AbortMultipartUpload(ctx, in)
		return struct{}{}, err
	})
	if errors.Is(err, ErrNoUpload) || errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}
