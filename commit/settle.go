package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// settleTime bounds one look at what came of a publish. It begins when the
// publish's own time may be over.
const settleTime = 15 * time.Second

// overtaken is the ETag of a version of ours that was replaced before its own
// could be learned. No object has it, so that a publish over it meets ErrChanged.
const overtaken = "overtaken"

// settle finds out what came of an attempt that was refused or not answered: nil
// and the object if it took effect, errNotDone if the store can be asked again,
// ErrChanged or ErrExist if another's version is there, or errUnsettled.
func (p *publishing) settle(ctx context.Context, by way) (objectstore.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if by != byAdopt {
		return p.c.settlePut(ctx, p.z.Record, spoolOf(ctx, p.f))
	}
	// A rename takes the spool away: no better evidence, whoever came after.
	if _, err := os.Lstat(p.z.Path); !errors.Is(err, iofs.ErrNotExist) {
		return objectstore.Object{}, errNotDone
	}
	return p.c.adopted(ctx, p.z.Record), nil
}

// adopted returns the object that the rename of r's spool made.
func (c *Committer) adopted(ctx context.Context, r staging.Record) objectstore.Object {
	obj, err := c.store.Stat(ctx, r.Target)
	if err == nil && isOurs(obj, r) {
		return obj
	}
	return overtakenObject(r)
}

func overtakenObject(r staging.Record) objectstore.Object {
	return objectstore.Object{Location: r.Target, Size: r.Size, ETag: overtaken, Match: overtaken}
}

// isOurs tells whether obj is the version that r was to make, on the evidence
// of the write id. The version that r began as bears the same id where this file
// made it: only then the ETag decides, for a store may give two versions with the
// same bytes the same one.
func isOurs(obj objectstore.Object, r staging.Record) bool {
	if obj.Meta[objectstore.MetaWriteID] != r.ID {
		return false
	}
	if r.Base == nil || r.Base.Meta != nil && r.Base.Meta[objectstore.MetaWriteID] != r.ID {
		return true
	}
	return !isBase(obj, r)
}

// bearing is obj as the base of r's next version: with the id that it bears,
// also where the store's answer did not tell.
func bearing(obj objectstore.Object, r staging.Record) objectstore.Object {
	meta := maps.Clone(obj.Meta)
	if meta == nil {
		meta = make(map[string]string, 1)
	}
	meta[objectstore.MetaWriteID] = r.ID
	obj.Meta = meta
	return obj
}

func isBase(obj objectstore.Object, r staging.Record) bool {
	if match := r.Cond.IfMatch; match != "" && (obj.Match == match || obj.ETag == match) {
		return true
	}
	return r.Base != nil && r.Base.Location == obj.Location && r.Base.ETag == obj.ETag
}

// settlePut settles a publish of r in requests, whose bytes are to be read from data.
func (c *Committer) settlePut(ctx context.Context, r staging.Record, data io.ReaderAt) (objectstore.Object, error) {
	obj, err := c.store.Stat(ctx, r.Target)
	return c.judgePut(ctx, r, obj, err, data)
}

// judgePut is settlePut with the store's answer: obj or err is at r's target.
func (c *Committer) judgePut(ctx context.Context, r staging.Record, obj objectstore.Object, err error, data io.ReaderAt) (objectstore.Object, error) {
	switch {
	case errors.Is(err, objectstore.ErrNotExist) && r.Cond.IfMatch != "":
		return obj, fmt.Errorf("the file was removed meanwhile: %w", objectstore.ErrChanged)
	case errors.Is(err, objectstore.ErrNotExist):
		return obj, errNotDone
	case err != nil:
		return obj, fmt.Errorf("%w: %w", errUnsettled, err)
	case isOurs(obj, r):
		return obj, nil
	case isBase(obj, r):
		return obj, errNotDone
	case isBehindOurs(obj, r):
		return overtakenObject(r), nil
	}
	if _, told := obj.Meta[objectstore.MetaWriteID]; !told && obj.Size == r.Size {
		// Nobody's id: a store that keeps none, or a file of others. That its
		// bytes are ours is what was asked for, either way.
		same, err := c.sameBytes(ctx, obj, obj.Size, data)
		if err != nil {
			return obj, fmt.Errorf("%w: %w", errUnsettled, err)
		}
		if same {
			return obj, nil
		}
	}
	switch {
	case r.Cond.IfNoneMatch:
		return obj, fmt.Errorf("another's file has the name: %w", objectstore.ErrExist)
	case r.Cond.IfMatch != "":
		return obj, fmt.Errorf("another's version is there: %w", objectstore.ErrChanged)
	}
	return obj, errNotDone
}

// sameBytes compares the first size bytes of the object with the spool.
func (c *Committer) sameBytes(ctx context.Context, obj objectstore.Object, size int64, data io.ReaderAt) (bool, error) {
	_, body, err := c.store.Read(ctx, obj, 0, size)
	if err != nil {
		return false, err
	}
	defer func() { _ = body.Close() }() // only read
	theirs, ours := make([]byte, 1<<20), make([]byte, 1<<20)
	for off := int64(0); off < size; {
		n := min(int64(len(theirs)), size-off)
		if _, err := io.ReadFull(body, theirs[:n]); err != nil {
			return false, err
		}
		if m, err := data.ReadAt(ours[:n], off); int64(m) < n {
			return false, err
		}
		if !bytes.Equal(theirs[:n], ours[:n]) {
			return false, nil
		}
		off += n
	}
	return true, nil
}
