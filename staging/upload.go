package staging

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TakesParts tells whether the file is to be published by a multipart upload: one
// is under way and the file is still large enough for it, it has two parts or more,
// or ranges of an older object that the store can copy by itself.
func (z *Frozen) TakesParts() bool {
	f := z.file
	if _, ok := f.area.multipart(); !ok || f.cur.spool == nil {
		return false
	}
	if _, _, ok := f.complete(); ok {
		return true
	}
	off, n := partAt(minParts-1, f.area.opts.PartSize)
	return f.size >= off+n || f.size > objectstore.MaxPutSize || z.Copies()
}

// Copies tells whether the publish would have the store copy something.
func (z *Frozen) Copies() bool {
	if _, whole := z.WholeCopy(); whole {
		return true
	}
	f := z.file
	if _, ok := f.area.multipart(); !ok || f.cur.spool == nil {
		return false
	}
	plan, err := f.plan()
	return err == nil && copies(plan)
}

func copies(plan []piece) bool {
	for _, p := range plan {
		if p.copied {
			return true
		}
	}
	return false
}

// Plain has the store copy nothing more: what is left of an older object is fetched
// and sent.
func (z *Frozen) Plain() { z.file.plain = true }

// WholeCopy is the object that the file is a copy of, byte for byte; false if it is
// none, or its bytes are in the spool.
func (z *Frozen) WholeCopy() (objectstore.Object, bool) {
	f := z.file
	rec, l := f.Record(), f.cur
	src := rec.Copied
	if src == nil || f.plain || rec.CopiedSize != src.Size || rec.Size != src.Size || l.base == nil {
		return objectstore.Object{}, false
	}
	if l.baseSize != src.Size || l.have.missing.Load() != l.have.blocks {
		return objectstore.Object{}, false
	}
	return *src, true
}

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
	u, parts, err := z.file.upload(ctx)
	if err != nil {
		return objectstore.Upload{}, nil, fmt.Errorf("upload %s: %w", z.file.id, err)
	}
	z.sent = true
	z.Record = z.file.Record()
	return u, parts, nil
}

// ForgetUpload gives the upload up: the next Upload begins another. It is aborted,
// if it is there.
func (z *Frozen) ForgetUpload(ctx context.Context) error {
	f := z.file
	f.mu.Lock()
	s := f.sending
	f.mu.Unlock()
	if s != nil {
		if err := f.settle(ctx, s); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.abandonLocked()
	f.mu.Unlock()
	z.sent = false
	err := f.saveRecord(false)
	f.queueAbort()
	z.Record = f.Record()
	return err
}

func (f *File) upload(ctx context.Context) (objectstore.Upload, []objectstore.Part, error) {
	store, ok := f.area.multipart()
	if !ok {
		return objectstore.Upload{}, nil, errors.ErrUnsupported
	}
	if u, parts, ok := f.complete(); ok {
		return u, parts, nil
	}
	plan, err := f.plan()
	if err == nil && len(plan) == 0 {
		err = fmt.Errorf("an empty file has no parts: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return objectstore.Upload{}, nil, err
	}
	s := f.planned(plan)
	if err = f.settle(ctx, s); err == nil {
		err = f.begin(ctx, store, s)
	}
	if err == nil {
		err = f.sendRest(ctx, store, s)
	}
	if err != nil {
		return objectstore.Upload{}, nil, err
	}
	return f.collect(s)
}

// complete is the upload, if it has every byte of the file as it is.
func (f *File) complete() (objectstore.Upload, []objectstore.Part, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec.Upload == nil || f.rec.Parts == nil {
		return objectstore.Upload{}, nil, false
	}
	return *f.rec.Upload, f.rec.Parts, true
}

// plan says of which parts the file is made. While the bytes do not change it is the
// one that an earlier Upload began with: filling the spool takes spans away that
// were unchanged, and would move the borders of parts that are there.
func (f *File) plan() ([]piece, error) {
	f.mu.Lock()
	s, changes := f.sending, f.changes
	f.mu.Unlock()
	holds := s != nil && s.plan != nil && s.planned == changes
	if holds && (!f.plain || !copies(s.plan)) {
		return s.plan, nil
	}
	return planParts(f.size, f.unchanged(), f.area.opts.PartSize)
}

// planned is the sending that is to have the parts of plan.
func (f *File) planned(plan []piece) *sending {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sending == nil {
		f.sending = newSending()
	}
	f.sending.plan, f.sending.planned = plan, f.changes
	return f.sending
}

// unchanged lists the spans that the spool has not, where the store can copy them
// from the object under it.
func (f *File) unchanged() []span {
	l := f.cur
	if f.plain || l.whole() || l.base == nil || f.under() == nil {
		return nil
	}
	var spans []span
	for from := int64(0); from < l.have.blocks; {
		end, has := l.have.run(from)
		if !has {
			spans = append(spans, span{from * blockSize, min(end*blockSize, l.baseSize, f.size)})
		}
		from = end
	}
	return spans
}

// under is the object that lies under the spool.
func (f *File) under() *objectstore.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec.Copied != nil {
		return f.rec.Copied
	}
	return f.rec.Base
}

// begin makes sure that there is an upload which the record on disk names.
func (f *File) begin(ctx context.Context, store objectstore.Multipart, s *sending) error {
	f.mu.Lock()
	there, named := s.upload != nil, s.named
	f.mu.Unlock()
	switch {
	case named:
		return nil
	case there:
		return f.saveUpload(s)
	}
	return f.createUpload(ctx, store, s)
}

// sendRest brings what is missing of the plan into the store.
func (f *File) sendRest(ctx context.Context, store objectstore.Multipart, s *sending) error {
	g, parts := errgroup.WithContext(ctx)
	g.SetLimit(f.area.opts.Parallel)
	var filled error
	for i, p := range s.plan {
		if f.isThere(s, i) {
			continue
		}
		if !p.copied {
			if filled = f.fillSpan(parts, p.off, p.off+p.n); filled != nil {
				break
			}
		}
		g.Go(func() error { return f.sendPiece(parts, store, s, i) })
	}
	if err := g.Wait(); err != nil || filled == nil {
		return err
	}
	if isNoSpace(filled) {
		return f.fail(ctx, "fill", filled)
	}
	return filled
}

func (f *File) isThere(s *sending, index int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := s.lookUp(index, s.plan[index])
	return ok
}

// sendPiece sends a part of the plan, or has it copied.
func (f *File) sendPiece(ctx context.Context, store objectstore.Multipart, s *sending, index int) error {
	if err := f.area.work.acquire(ctx); err != nil {
		return err
	}
	defer f.area.work.release()
	p := s.plan[index]
	var part objectstore.Part
	var err error
	if p.copied {
		part, err = store.CopyPart(ctx, *s.upload, index+1, *f.under(), p.off, p.n)
	} else {
		part, err = store.UploadPart(ctx, *s.upload, index+1, io.NewSectionReader(f.cur.spool.file, p.off, p.n), p.n)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.parts[index] = &sentPart{piece: p, part: part, done: true}
	return nil
}

// collect notes in the record what the upload consists of.
func (f *File) collect(s *sending) (objectstore.Upload, []objectstore.Part, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := make([]objectstore.Part, len(s.plan))
	for i, p := range s.plan {
		part, ok := s.lookUp(i, p)
		if !ok {
			return objectstore.Upload{}, nil, fmt.Errorf("part %d is not there", i+1)
		}
		parts[i] = part
	}
	f.rec.Parts, f.stale = parts, true
	return *s.upload, parts, nil
}
