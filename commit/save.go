package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Saved is the copy of a kept write that Save made.
type Saved struct {
	Path string
	Size int64
	// Partial: the version that the write changed is gone, and the copy has zeros in
	// the place of its bytes: wherever Own does not say that they are the write's.
	Partial bool
	Own     []staging.Range // of a partial copy
}

// errOlderGone is that a write cannot be read whole any more.
var errOlderGone = errors.New("the version that it changed is gone")

// PartialName is what a copy of a part of base is called. It is never base.
func PartialName(base string) string {
	const suffix, longest = ".partial", 255
	cut := min(len(base), longest-len(suffix))
	for cut < len(base) && cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return base[:cut] + suffix
}

// SaveNames are the names that a copy of base may have in a directory, the first that
// is free: partitions have files of the same name.
func SaveNames(base, id string) []string { return []string{base, base + "~" + id[:8]} }

// Save copies a kept write's bytes into the directory dir under their base name, or
// another of SaveNames, durably. Where the version that the write changed is gone, what
// was written is copied, under PartialName. It replaces nothing (io/fs.ErrExist), and
// the write stays staged. A write all of whose bytes were the older version's is an
// error.
func (c *Committer) Save(ctx context.Context, id, dir string) (saved Saved, err error) {
	f, err := c.find(id)
	if err != nil {
		return Saved{}, err
	}
	rec := f.Record()
	base := path.Base(rec.Target.Key)
	if rec.Target.Key == "" {
		base = id // its record is damaged
	}
	for _, name := range SaveNames(base, id) {
		if saved, err = saveAs(ctx, f, filepath.Join(dir, name)); !errors.Is(err, objectstore.ErrExist) {
			break
		}
	}
	if err != nil {
		return Saved{}, fmt.Errorf("save %q: %w", rec.Path, err)
	}
	return saved, nil
}

func saveAs(ctx context.Context, f *staging.File, to string) (Saved, error) {
	saved := Saved{Path: to, Size: f.Size()}
	err := save(saved, f.Record(), func(p []byte, off int64) (int, error) {
		n, readErr := f.ReadAt(ctx, p, off)
		if errors.Is(readErr, objectstore.ErrChanged) || errors.Is(readErr, objectstore.ErrNotExist) {
			readErr = fmt.Errorf("%w: %w", errOlderGone, readErr)
		}
		return n, readErr
	})
	if errors.Is(err, errOlderGone) {
		saved.Path = filepath.Join(filepath.Dir(to), PartialName(filepath.Base(to)))
		saved.Own, err = saveOwn(ctx, f, saved, err)
		saved.Partial = true
	}
	return saved, err
}

// saveOwn saves what of f is its own; gone is why the whole could not be.
func saveOwn(ctx context.Context, f *staging.File, to Saved, gone error) ([]staging.Range, error) {
	own, err := f.Own()
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("none of its bytes are its own: %w", gone)
	}
	return own, save(to, f.Record(), func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return f.ReadOwn(p, off)
	})
}

func save(to Saved, rec staging.Record, from fileReader) error {
	mode := os.FileMode(rec.Mode&0o777) | 0o600
	out, err := os.OpenFile(to.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	w := &sparse.Writer{File: out} // a sparse write stays one
	_, err = io.CopyBuffer(w, io.NewSectionReader(from, 0, to.Size), make([]byte, 1<<20))
	if err == nil {
		err = w.Finish()
	}
	if err == nil {
		err = out.Sync()
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(to.Path) // a part of it would look like the whole
	}
	return err
}
