package objectstore

import (
	"context"
	"errors"
	"io"
)

// What stores take of multipart uploads, in bytes and in number.
const (
	MinPartSize = 5 << 20 // of each part but the last
	MaxPartSize = 5 << 30 // of any part
	MaxParts    = 10_000  // of an upload
	MaxPutSize  = 5 << 30 // of an object made by one Put
)

// ErrNoUpload says that the multipart upload is not there any more: it was completed,
// or aborted by others, or one of its parts is not what it was. Nothing that was sent
// with it counts, unless a Stat finds the object; AbortUpload frees what may be
// left of it. Errors that wrap it wrap [ErrUnavailable] too.
var ErrNoUpload = errors.New("no such multipart upload")

// Upload names a multipart upload of an object that is not there yet. It can be
// kept on disk, and used by another process.
type Upload struct {
	Location
	ID string `json:"id"`
	// Checksum is the algorithm that its parts are summed up by (crc32c, crc64nvme,
	// sha256); "": none, which says nothing of what else protects them on the way.
	Checksum string `json:"checksum,omitempty"`
	// FullObject: the store sums the object up by it too (a CRC), and compares.
	FullObject bool `json:"full_object,omitempty"`
}

// Part is a part of an upload that the store has. It can be kept on disk.
type Part struct {
	Number   int    `json:"number"`             // 1 to MaxParts
	Size     int64  `json:"size"`               // bytes
	ETag     string `json:"etag"`               // as the store takes it back
	Checksum string `json:"checksum,omitempty"` // base64, of Upload.Checksum; "": the store did not tell (a copied part)
}

// Multipart is a Store that takes an object in parts, which nobody sees before the
// upload is completed.
type Multipart interface {
	// CreateUpload begins an upload of loc, which will have opts.Meta; opts.Cond
	// is of no account yet.
	CreateUpload(ctx context.Context, loc Location, opts PutOptions) (Upload, error)

	// UploadPart sends size bytes of r as part number of u; one that is there is
	// replaced. ErrNoUpload.
	UploadPart(ctx context.Context, u Upload, number int, r io.ReaderAt, size int64) (Part, error)

	// CopyPart makes part number of u from n bytes of src's version from off on,
	// within the store. ErrChanged if src is no longer there; ErrNoUpload;
	// errors.ErrUnsupported, ErrPermission and ErrCrossDevice where the store can
	// not: the bytes are to be sent.
	CopyPart(ctx context.Context, u Upload, number int, src Object, off, n int64) (Part, error)

	// CompleteUpload makes the object of parts, in the order of their numbers,
	// under opts.Cond, whole or not at all. opts.Meta is that of CreateUpload; by
	// its write id an answer that was lost is settled. ErrUnavailable: it may have
	// happened; ErrNoUpload; ErrExist and ErrChanged as Put.
	CompleteUpload(ctx context.Context, u Upload, parts []Part, opts PutOptions) (Object, error)

	// AbortUpload frees what the store has of u. One that is not there is a success.
	// A part that is still on its way, or being copied, may outlive it: callers wait
	// for their parts first.
	AbortUpload(ctx context.Context, u Upload) error
}
