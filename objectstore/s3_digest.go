package objectstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// sumBuffer bytes are read at a time to sum a body up.
const sumBuffer = 64 << 10

// Names of S3Options.Checksum.
const (
	sumCRC32C    = "crc32c"
	sumCRC64NVME = "crc64nvme"
	sumSHA256    = "sha256"
	sumNone      = "none"
)

// polyCRC64NVME is the reversed polynomial.
const polyCRC64NVME = 0x9a6c_9329_ac4b_c9b5

// digest is what the headers tell of a body ahead of it. A trailer would spare
// reading the source twice, but many stores refuse aws-chunked bodies.
type digest struct {
	checksum string // base64, of the algorithm of S3Options; "": none
	payload  string // hexadecimal SHA-256, for the signature; "": not signed
}

// digestOf reads size bytes of r. Payload asks for what is signed where TLS
// does not protect the body.
func digestOf(ctx context.Context, r io.ReaderAt, size int64, algorithm string, payload bool) (digest, error) {
	sum, sign := newSum(algorithm), hash.Hash(nil)
	var hashes []io.Writer
	if sum != nil {
		hashes = append(hashes, sum)
	}
	switch {
	case payload && algorithm == sumSHA256:
		sign = sum // one pass tells both
	case payload:
		sign = sha256.New()
		hashes = append(hashes, sign)
	}
	if len(hashes) == 0 {
		return digest{}, ctx.Err()
	}
	if err := copyAll(ctx, io.MultiWriter(hashes...), r, size); err != nil {
		return digest{}, err
	}
	var d digest
	if sum != nil {
		d.checksum = base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	if sign != nil {
		d.payload = hex.EncodeToString(sign.Sum(nil))
	}
	return d, nil
}

// signed spares the SDK reading the body for its signature.
func (d digest) signed(o *s3.Options) {
	if d.payload == "" {
		return
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		set := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(v4.SetPayloadHash(ctx, d.payload), in)
		}
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("PayloadDigest", set), middleware.Before)
	})
}

// checksums is a checksum in the field of its algorithm, as requests and answers have it.
type checksums struct{ crc32c, crc64nvme, sha256 *string }

// sumsOf puts a checksum into its field; "" into none.
func sumsOf(algorithm, sum string) checksums {
	switch sum := nonEmpty(sum); algorithm {
	case sumSHA256:
		return checksums{sha256: sum}
	case sumCRC64NVME:
		return checksums{crc64nvme: sum}
	default:
		return checksums{crc32c: sum}
	}
}

// of is the checksum of an algorithm; "": it is not there.
func (s checksums) of(algorithm string) string {
	switch algorithm {
	case sumCRC32C:
		return aws.ToString(s.crc32c)
	case sumCRC64NVME:
		return aws.ToString(s.crc64nvme)
	case sumSHA256:
		return aws.ToString(s.sha256)
	}
	return ""
}

// newSum is nil for no checksum. NewS3 has checked the name.
func newSum(algorithm string) hash.Hash {
	switch algorithm {
	case sumNone:
		return nil
	case sumCRC64NVME:
		return crc64.New(crc64.MakeTable(polyCRC64NVME))
	case sumSHA256:
		return sha256.New()
	}
	return crc32.New(crc32.MakeTable(crc32.Castagnoli))
}

// copyAll writes size bytes of r to w. A shorter source is io.ErrUnexpectedEOF.
func copyAll(ctx context.Context, w io.Writer, r io.ReaderAt, size int64) error {
	buf := make([]byte, min(size, sumBuffer))
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if _, failed := w.Write(buf[:n]); failed != nil {
			return failed
		}
		off += int64(n)
		if off < size && (err != nil || n == 0) {
			return sourceError(size, off, err)
		}
	}
	return nil
}

// sourceError is what went wrong with a source of size bytes at off.
func sourceError(size, off int64, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("source of %d bytes ends at %d: %w", size, off, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read source: %w", err)
}

// streamed is size bytes of r as the transport takes them; nil without any.
func streamed(r io.ReaderAt, size int64, failure *sourceFailure) io.Reader {
	if size == 0 {
		return nil
	}
	return &body{source: io.NewSectionReader(r, 0, size), failed: failure.set}
}

// body is the source as the transport takes it. An error of the source is kept,
// for the transport tells it as one of its own. One goroutine at a time reads
// it; it may be another than the one that looks at the error afterwards.
type body struct {
	source *io.SectionReader
	failed func(error)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if n > 0 || err == nil {
		return n, nil
	}
	at, _ := b.source.Seek(0, io.SeekCurrent) // a SectionReader's can not fail
	if errors.Is(err, io.EOF) && at == b.source.Size() {
		return 0, io.EOF
	}
	err = sourceError(b.source.Size(), at, err)
	b.failed(err)
	return 0, err
}

// Seek is the SDK's: it looks how long a body is.
func (b *body) Seek(off int64, whence int) (int64, error) { return b.source.Seek(off, whence) }
