package staging

import (
	"context"
	"errors"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TakesParts tells whether the file is to be published by a multipart upload: one
// is under way and the file is still large enough for it, it has two parts or more,
// or ranges of an older object that the store can copy by itself.
func (z *Frozen) TakesParts() bool { return false }

// Upload brings all bytes into the store that are not there yet, as parts of an
// upload that is begun where there is none: parts of the spool that were not sent,
// or were changed since, and parts copied from the older object, several at a time.
// Nothing that is there is sent again, also when it is called again. The record
// names the upload, durably, before a part is sent, and has the parts afterwards
// (on disk with the next SetState).
//
// Errors are the store's: objectstore.ErrNoUpload (see ForgetUpload), ErrChanged
// where the older object is gone, ErrTooLarge for more parts than an upload takes;
// errors.ErrUnsupported, ErrPermission or ErrCrossDevice from a copied part (see
// Plain).
func (z *Frozen) Upload(ctx context.Context) (objectstore.Upload, []objectstore.Part, error) {
	return objectstore.Upload{}, nil, errors.ErrUnsupported
}

// ForgetUpload gives the upload up: the next Upload begins another. It is aborted,
// if it is there.
func (z *Frozen) ForgetUpload(ctx context.Context) error { return nil }

// Plain has the store copy nothing more: what is left of an older object is fetched
// and sent.
func (z *Frozen) Plain() {}

// WholeCopy is the object that the file is a copy of, byte for byte; false if it is
// none, or its bytes are in the spool.
func (z *Frozen) WholeCopy() (objectstore.Object, bool) { return objectstore.Object{}, false }

// Copies tells whether the publish would have the store copy something.
func (z *Frozen) Copies() bool { return false }

// Secure makes it possible to publish the bytes anew after a crash: a whole spool
// gets its checksum into the record (Record.Sum), which costs no fsync, for nothing
// is acknowledged before the store has the bytes; one over an older object is made
// durable as it is. The record reaches the disk with the next SetState.
func (z *Frozen) Secure(ctx context.Context) error { return z.file.seal(ctx) }

// Sound reads a recovered write's spool, where the record has its checksum, and
// returns ErrDamaged if the bytes are others: the machine stopped before they were
// on the disk. Nothing of it may be published then.
func (z *Frozen) Sound(ctx context.Context) error { return nil }

// CopyFrom makes n bytes of src's version, from off on, the file's bytes from off
// on, without reading them where the store can copy them itself; it returns how
// many it took. errors.ErrUnsupported, with nothing changed: write them.
func (f *File) CopyFrom(ctx context.Context, src objectstore.Object, off, at, n int64) (int64, error) {
	return 0, errors.ErrUnsupported
}

// Uploaded returns how many bytes of the file the store has by now, of an upload
// that nobody sees yet.
func (f *File) Uploaded() int64 { return 0 }

// AbortUploads frees what the uploads take that records name and nobody needs
// ([Record].Aborts), those of earlier mounts too. What could not be is tried again
// by the next call, or the next mount.
func (a *Area) AbortUploads(ctx context.Context) error { return nil }
