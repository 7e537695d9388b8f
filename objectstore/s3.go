package objectstore

import (
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// S3Options of an [S3]. Config must be set; the zero values of the others are
// usable.
type S3Options struct {
	// Config has the credentials and the region. Its HTTP client and retries are
	// not used: S3 has its own.
	Config aws.Config
	// Secrets are the credentials of the buckets that a [Location] names as SECRET@NAME.
	Secrets map[string]aws.Config

	Endpoint            string // base URL; "": AWS
	PathStyle           bool   // buckets in the path; always so for an endpoint that is an IP address or localhost, and for buckets with dots
	FixedRegion         bool   // the region was chosen by the user: it is not looked for
	RequesterPays       bool
	SSE, SSEKMSKeyID    string // server-side encryption of what is written: AES256, aws:kms, aws:kms:dsse
	StorageClass        string
	ExpectedBucketOwner string
	Checksum            string // of what is written: crc32c ("", the default), crc64nvme, sha256, none
	RootCAs             *x509.CertPool

	// Timeout bounds each call, and each wait for the next byte of a body; 0: 60 s.
	Timeout time.Duration
	Log     *slog.Logger
	// Observe is told of each HTTP request, retries included, when its answer's
	// headers came or it failed. It is called concurrently, and must not block.
	Observe func(S3Request)
	// Sent is told of the bytes of each request's body as they go out, retries
	// included. It is called concurrently, and must not block.
	Sent func(n int)
	// Received is told of the bytes of objects as they are read, each once. It is
	// called concurrently, and must not block.
	Received func(n int)
}

// S3Request is one HTTP request as it went.
type S3Request struct {
	Operation string // stat, list, read, put, copy, delete; of uploads upload (begin one), part, complete, abort
	Retry     bool   // an earlier one of the same call failed
	Status    int    // HTTP status; 0: no answer
	Err       error  // as the call would return it; nil: success
	Elapsed   time.Duration
	Bytes     int64  // of the object, sent
	ID        string // the store's request id
}
