package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"

	"github.com/lakefs-mount/lakefs-mount/format"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// ChecksFormat reports whether files of the format are checked: CheckFormat is not
// CheckOff, and the format is one that can be.
func (c *Committer) ChecksFormat(want string) bool {
	return c.check != CheckOff && format.Checked(want)
}

// ChecksAlike reports whether a file of the format that passes under one base name
// passes under the other: which names say that it is compressed is part of the check.
func (c *Committer) ChecksAlike(want, name, other string) bool {
	return c.check == CheckOff || format.SameCodec(want, name, other)
}

// CheckObject is the check for a published object that is to be renamed to where
// files of the given format count: ErrFormat, or the error of reading it.
func (c *Committer) CheckObject(ctx context.Context, o objectstore.Object, want, as string) error {
	if want == "" || c.check == CheckOff {
		return nil
	}
	pin, err := objectstore.Pin(ctx, c.store, o)
	if err != nil {
		return err
	}
	defer func() { _ = pin.Close() }() // read only: nothing to lose
	err = format.Check(want, path.Base(as), fileReader(func(p []byte, off int64) (int, error) {
		return pin.ReadAt(ctx, p, off)
	}), o.Size)
	if bad := (*format.Error)(nil); !errors.As(err, &bad) {
		return err
	}
	if c.check == CheckWarn {
		c.log.LogAttrs(ctx, slog.LevelWarn, "renamed although the format check fails",
			slog.String("key", o.Key), slog.Any("error", err))
		return nil
	}
	return fmt.Errorf("%w: %w (not renamed: write it anew as what its new name and place take)", ErrFormat, err)
}
