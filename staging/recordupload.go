package staging

import (
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// validateUploads holds what the record has of uploads, copies and checksums.
func (r *Record) validateUploads() error {
	switch {
	case r.Copied != nil && (r.CopiedSize < 0 || r.CopiedSize > maxSize || r.CopiedSize > r.Copied.Size):
		return fmt.Errorf("%d bytes copied of %d", r.CopiedSize, r.Copied.Size)
	case r.Copied == nil && r.CopiedSize != 0:
		return errors.New("bytes copied of nothing")
	case r.Sum != "" && !isSum(r.Sum):
		return fmt.Errorf("checksum %q", r.Sum)
	case len(r.Aborts) > objectstore.MaxParts:
		return fmt.Errorf("%d uploads to abort", len(r.Aborts))
	case r.Upload == nil && len(r.Parts) > 0:
		return errors.New("parts of no upload")
	}
	if r.Upload != nil {
		if err := validateUpload(*r.Upload); err != nil {
			return err
		}
	}
	for _, u := range r.Aborts {
		if err := validateUpload(u); err != nil {
			return err
		}
	}
	return r.validateParts()
}

func validateUpload(u objectstore.Upload) error {
	if u.Bucket == "" || u.Key == "" || u.ID == "" {
		return fmt.Errorf("upload %q of %q", u.ID, u.Key)
	}
	return nil
}

func (r *Record) validateParts() error {
	if len(r.Parts) > objectstore.MaxParts {
		return fmt.Errorf("%d parts", len(r.Parts))
	}
	last := 0
	for _, p := range r.Parts {
		if p.Number <= last || p.Number > objectstore.MaxParts || p.Size <= 0 || p.Size > objectstore.MaxPartSize || p.ETag == "" {
			return fmt.Errorf("part %d of %d bytes after part %d", p.Number, p.Size, last)
		}
		last = p.Number
	}
	return nil
}

// withoutBytes is the record of what is left of a write when its bytes are gone:
// uploads to abort.
func (r Record) withoutBytes() Record {
	return Record{
		Version: r.Version, ID: r.ID, State: Aborting,
		Target: r.Target, Path: r.Path, Prefix: r.Prefix, Size: r.Size,
		Created: r.Created, Changed: r.Changed, Error: r.Error, Aborts: r.Aborts,
	}
}

// loadUpload keeps the upload of a publish that was under way, where it has every
// byte of size: nothing was written since. Any other upload is to be aborted.
func (f *File) loadUpload() {
	r := &f.rec
	if r.Upload == nil {
		return
	}
	var sum int64
	s := newSending()
	s.plan = []piece{} // of no bytes as they are now: the parts may be of another grid
	for _, p := range r.Parts {
		s.parts[p.Number-1] = &sentPart{piece: piece{off: sum, n: p.Size}, part: p, done: true}
		sum += p.Size
	}
	if r.State != Publishing || r.Upload.Location != r.Target || len(r.Parts) == 0 || f.lost || sum != r.Size || sum != f.size {
		f.abandonLocked()
		return
	}
	s.upload, s.named, s.stopped = r.Upload, true, true
	f.sending = s
}

// loadAborting finds the uploads that an earlier mount had yet to abort.
func (a *Area) loadAborting(rec Record) {
	f := a.newFile(rec)
	f.onDisk, f.durable, f.dropped, f.bare = true, true, true, true
	f.abandonLocked()
	if len(f.rec.Aborts) == 0 {
		_ = f.removeBare() // else the next Open does
		return
	}
	a.aborting[f.id] = f
}
