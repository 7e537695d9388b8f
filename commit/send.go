package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// way is how a version went to the store.
type way int

const (
	byAdopt way = iota // the spool became the object
	byPut
	byParts // of a multipart upload
	byCopy  // of another object
)

// publishing is one publish, by any number of attempts.
type publishing struct {
	c *Committer
	f *staging.File
	z *staging.Frozen

	plain    bool   // the store was found not to copy
	sound    bool   // the bytes of a recovered write were found to be what they were
	noted    bool   // the record says "publishing"
	together bool   // a batch's record says so
	uploaded string // the upload that the record on disk has complete
	lost     int    // uploads that were gone, and begun anew
}

// maxLost is how many uploads of one publish may be gone: who aborts every one of
// them does so on purpose.
const maxLost = 3

// attempts asks the store until it took the file, refused it, or did not answer
// for too long.
func (p *publishing) attempts(ctx context.Context) (objectstore.Object, way, error) {
	again := retries{limit: p.c.retry}
	var unknown error // of an earlier attempt's outcome
	for {
		obj, by, err := p.attempt(ctx)
		if err == nil {
			return obj, by, nil
		}
		err = p.notMissing(err)
		if by != byAdopt && p.goPlain(ctx, err) {
			continue
		}
		if !isUnclear(ctx, err) && !isConflict(err) {
			return obj, by, join(err, unknown)
		}
		found, settled := p.settle(ctx, by)
		switch {
		case settled == nil:
			p.c.log.LogAttrs(ctx, slog.LevelInfo, "published, though the store's answer was lost",
				slog.String("path", p.z.Record.Path), slog.Any("answer", err))
			return found, by, nil
		case isConflict(err) && !errors.Is(settled, errUnsettled):
			return obj, by, err
		case isConflict(settled):
			return obj, by, settled
		}
		unknown = nil
		if errors.Is(settled, errUnsettled) {
			unknown = settled
		} else if errors.Is(err, objectstore.ErrNoUpload) && p.lost < maxLost {
			p.lost++ // that is an answer: no store is waited for
			continue
		}
		if more, ended := again.next(ctx); !more {
			return obj, by, errors.Join(err, unknown, ended)
		}
	}
}

// notMissing keeps a publish from answering that there is no such file, which is
// said of names: what is missing is the version that this one changes, or is a copy
// of; or, of a new one, the store's answer makes no sense.
func (p *publishing) notMissing(err error) error {
	if !errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrNoBucket) {
		return err
	}
	meaning := objectstore.ErrUnavailable
	if p.z.Record.Base != nil || p.z.Record.Copied != nil {
		meaning = objectstore.ErrChanged
	}
	return fmt.Errorf("%w: %s", meaning, err.Error())
}

// goPlain gives up copying in the store where it, or these credentials, can not:
// true if another attempt, which sends the bytes, is worth it.
func (p *publishing) goPlain(ctx context.Context, err error) bool {
	cannot := errors.Is(err, errors.ErrUnsupported) || errors.Is(err, objectstore.ErrPermission) || errors.Is(err, objectstore.ErrCrossDevice)
	if !cannot || p.plain || !p.z.Copies() {
		return false
	}
	p.c.log.LogAttrs(ctx, slog.LevelInfo, "the store does not copy: the bytes are sent",
		slog.String("path", p.z.Record.Path), slog.Any("error", err))
	p.plain = true
	p.z.Plain()
	return true
}

// attempt asks the store once.
func (p *publishing) attempt(ctx context.Context) (objectstore.Object, way, error) {
	opts := objectstore.PutOptions{Cond: p.z.Record.Cond, Meta: Meta(p.z.Record)}
	if adopter, ok := p.c.store.(objectstore.Adopter); ok {
		if obj, err := p.adopt(ctx, adopter, opts); !errors.Is(err, objectstore.ErrCrossDevice) {
			return obj, byAdopt, err
		}
	}
	if src, whole := p.z.WholeCopy(); whole && !p.plain && src.Size <= objectstore.MaxPutSize {
		obj, err := p.copy(ctx, src, opts)
		return obj, byCopy, err
	}
	if parts, ok := p.c.store.(objectstore.Multipart); ok && p.z.TakesParts() {
		obj, err := p.parts(ctx, parts, opts)
		return obj, byParts, err
	}
	obj, err := p.put(ctx, opts)
	return obj, byPut, err
}

func (p *publishing) adopt(ctx context.Context, adopter objectstore.Adopter, opts objectstore.PutOptions) (objectstore.Object, error) {
	if err := p.z.Fill(ctx); err != nil {
		return objectstore.Object{}, err
	}
	obj, err := adopter.Adopt(ctx, p.z.Record.Target, p.z.Path, opts)
	if errors.Is(err, objectstore.ErrUnavailable) {
		// The store's fsync may be what failed, and the kernel tells such an
		// error to each descriptor once: ask on ours before the next attempt,
		// whose fsync would succeed over lost pages.
		if sealErr := p.z.Seal(ctx); sealErr != nil {
			return obj, errors.Join(sealErr, err)
		}
	}
	return obj, err
}

func (p *publishing) put(ctx context.Context, opts objectstore.PutOptions) (objectstore.Object, error) {
	err := p.z.Fill(ctx)
	if err == nil {
		err = p.checkSound(ctx)
	}
	if err == nil {
		err = p.note(ctx, false)
	}
	if err != nil {
		return objectstore.Object{}, err
	}
	return p.c.store.Put(ctx, p.z.Record.Target, p.z.ReaderAt(), p.z.Size, opts)
}

// parts completes a multipart upload once the store has all parts, most of which
// went up while the file was written.
func (p *publishing) parts(ctx context.Context, store objectstore.Multipart, opts objectstore.PutOptions) (objectstore.Object, error) {
	if len(p.z.Record.Parts) == 0 { // else everything is there, whatever the spool has
		err := p.checkSound(ctx)
		if err == nil {
			err = p.note(ctx, false) // the parts that are left may take their time
		}
		if err != nil {
			return objectstore.Object{}, err
		}
	}
	u, parts, err := p.z.Upload(ctx)
	if err == nil && p.uploaded != u.ID {
		if err = p.note(ctx, true); err == nil {
			p.uploaded = u.ID
		}
	}
	var obj objectstore.Object
	if err == nil {
		obj, err = store.CompleteUpload(ctx, u, parts, opts)
	}
	if errors.Is(err, objectstore.ErrNoUpload) {
		p.uploaded = ""
		if forget := p.z.ForgetUpload(ctx); forget != nil {
			return obj, errors.Join(forget, err)
		}
	}
	return obj, err
}

func (p *publishing) copy(ctx context.Context, src objectstore.Object, opts objectstore.PutOptions) (objectstore.Object, error) {
	if err := p.note(ctx, true); err != nil {
		return objectstore.Object{}, err
	}
	return p.c.store.Copy(ctx, p.z.Record.Target, src, opts)
}

// note has the record say "publishing" before the store is asked, for what came of
// it cannot be seen from the spool. A kill of the process loses nothing of that; a
// power loss may, where it is not durable: then the write is found staged, and
// whoever publishes it anew finds it published.
func (p *publishing) note(ctx context.Context, durable bool) error {
	if (p.noted || p.together) && !durable {
		return nil
	}
	err := p.z.Secure(ctx)
	if err == nil {
		err = p.z.SetState(staging.Publishing, "", durable)
	}
	p.noted = p.noted || err == nil
	return err
}

// checkSound keeps bytes that a power loss damaged from being published.
func (p *publishing) checkSound(ctx context.Context) error {
	if p.sound || !p.f.Recovered() || p.z.Record.Sum == "" {
		return nil
	}
	err := p.z.Sound(ctx)
	p.sound = err == nil
	return err
}
