package objectstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// CompleteUpload is [Multipart]'s. An upload whose object is there already, by the
// write id in opts.Meta, was completed before: that object is returned.
//
// Where the store said that it sums objects up by FULL_OBJECT, the checksum that
// the parts' make goes along, and the size. A store that finds another makes no
// object, and that is ErrNoUpload: what it has is not what was sent. One that never
// found an object right is asked for no checksum of later uploads.
//
// Where the store is not AWS it is looked before whether the condition holds, for
// some ignore conditions here that they keep on PutObject; and after an overwrite
// what is there, for one (versitygw) answers that it completed an upload that it
// does not have, if it only has an object of that key.
func (s *S3) CompleteUpload(ctx context.Context, u Upload, parts []Part, opts PutOptions) (Object, error) {
	c, err := newCompletion(s, u, parts)
	if err != nil {
		return Object{}, failS3("complete", u.Location, err)
	}
	c.meta = opts.Meta
	return c.do(ctx, opts.Cond, opts.Meta[MetaWriteID])
}

// completion makes an object of parts.
type completion struct {
	s     *S3
	up    Upload
	parts []types.CompletedPart
	size  int64
	sum   string // of the object; "": the store is told none
	meta  map[string]string
}

func newCompletion(s *S3, u Upload, parts []Part) (*completion, error) {
	parts = slices.SortedFunc(slices.Values(parts), func(a, b Part) int { return cmp.Compare(a.Number, b.Number) })
	if len(parts) == 0 {
		return nil, errors.New("an upload without parts makes no object")
	}
	c := &completion{s: s, up: u, parts: make([]types.CompletedPart, len(parts))}
	for i, p := range parts {
		if i > 0 && parts[i-1].Number == p.Number {
			return nil, fmt.Errorf("part %d is there twice", p.Number)
		}
		if err := checkPart("complete", u.Location, p.Number, p.Size); err != nil {
			return nil, err
		}
		sums := sumsOf(u.Checksum, p.Checksum)
		c.parts[i] = types.CompletedPart{
			PartNumber: aws.Int32(int32(p.Number)), ETag: aws.String(p.ETag), //nolint:gosec // at most MaxParts
			ChecksumCRC32C: sums.crc32c, ChecksumCRC64NVME: sums.crc64nvme, ChecksumSHA256: sums.sha256,
		}
		c.size += p.Size
	}
	if u.FullObject {
		c.sum = combined(u.Checksum, parts)
	}
	return c, nil
}

// combined is the checksum of the parts one after another; "": it is not known.
func combined(algorithm string, parts []Part) string {
	c, ok := combinerOf(algorithm)
	if !ok {
		return ""
	}
	var whole uint64
	for _, p := range parts {
		raw, err := base64.StdEncoding.DecodeString(p.Checksum)
		if err != nil || len(raw) != c.bytes() {
			return ""
		}
		whole = c.combine(whole, bigEndian(raw), p.Size)
	}
	raw := binary.BigEndian.AppendUint64(nil, whole)
	return base64.StdEncoding.EncodeToString(raw[8-c.bytes():])
}

func bigEndian(b []byte) (v uint64) {
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// do completes the upload.
func (c *completion) do(ctx context.Context, cond Cond, id string) (Object, error) {
	w := write{s: c.s, op: "complete", dst: c.up.Location, cond: cond, id: id, looks: !c.s.isAWS(), unclear: id != "", copies: c.size}
	return w.do(ctx, func(ctx context.Context, acc access) (Object, error) {
		in := c.input(w.sent())
		in.Bucket = acc.bucket
		out, err := acc.client.CompleteMultipartUpload(ctx, in)
		if err != nil {
			if wrong := c.refusal(ctx, err); wrong != nil {
				return w.settle(ctx, wrong)
			}
			return Object{}, err
		}
		o := Object{Location: c.up.Location, Size: c.size, ETag: unquoteETag(out.ETag), Meta: c.meta}
		if o.ETag == "" {
			return Object{}, badAnswer("an answer without ETag")
		}
		o.Match, o.ModTime = o.ETag, dateOf(out.ResultMetadata)
		return o, c.made(ctx, o, w)
	})
}

// made is nil if the object o is there as far as can be told.
func (c *completion) made(ctx context.Context, o Object, w write) error {
	if !c.s.isAWS() && !w.cond.IfNoneMatch {
		now, err := c.s.Stat(ctx, o.Location)
		mine := now.ETag == o.ETag
		if w.id != "" {
			mine = now.Meta[MetaWriteID] == w.id
		}
		// Another may have overwritten it since, but not by the version before it.
		// Without a condition whoever comes last has it: the caller may be that.
		if err == nil && !mine && (w.cond.IfMatch == "" || now.ETag == w.cond.IfMatch) {
			return &storeError{sentinel: errNoUpload, text: "version " + printable(now.ETag) + " is there after an answer of success"}
		}
	}
	c.took()
	return nil
}

func (c *completion) input(cond Cond) *s3.CompleteMultipartUploadInput {
	in := &s3.CompleteMultipartUploadInput{
		Key: &c.up.Key, UploadId: &c.up.ID, MultipartUpload: &types.CompletedMultipartUpload{Parts: c.parts},
		RequestPayer: c.s.payer(), ExpectedBucketOwner: c.s.owner(),
	}
	in.IfMatch, in.IfNoneMatch = conditionHeaders(cond)
	if c.up.FullObject { // a store that knows it knows the size too
		in.ChecksumType, in.MpuObjectSize = types.ChecksumTypeFullObject, &c.size
		sums := sumsOf(c.up.Checksum, c.sum)
		in.ChecksumCRC32C, in.ChecksumCRC64NVME = sums.crc32c, sums.crc64nvme
	}
	return in
}

// refusal is what an error means that says that the store's object would be another
// than what was sent; nil: it does not.
func (c *completion) refusal(ctx context.Context, err error) error {
	_, code := answered(ctx, err)
	wrong := corrupt(code)
	if c.up.FullObject {
		wrong = wrong || code == "InvalidRequest" || code == "InvalidArgument" || code == "NotImplemented"
	}
	if !wrong {
		return nil
	}
	c.s.uploads.mu.Lock()
	proved := c.s.uploads.proved
	c.s.uploads.mu.Unlock()
	err = &storeError{sentinel: errNoUpload, code: code, text: "the store has other bytes than were sent"}
	if c.up.FullObject && !proved {
		c.s.withoutChecksum(ctx, err)
	}
	return err
}

// took notes that the store compared an object's checksum, and found it right.
func (c *completion) took() {
	if c.sum == "" {
		return
	}
	c.s.uploads.mu.Lock()
	defer c.s.uploads.mu.Unlock()
	c.s.uploads.proved = true
}
