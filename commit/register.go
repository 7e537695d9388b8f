package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// RegisterError says that an object is published, whole, and that its partition
// could not be registered in the catalog: engines that ask the catalog do not see
// it. Nothing is staged any more. The next publish into the partition tries again.
// Of objects that were published together it is of the first by path.
//
// It unwraps to objectstore.ErrPermission where the catalog refused it, and else to
// nothing: that a table is gone from the catalog must not read as if the file were.
type RegisterError struct {
	Path  string // of the object, in the tree
	More  int    // others that were published with it and are in partitions that are not registered
	Cause error
}

func (e *RegisterError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(", nor those of %d others", e.More)
	}
	return fmt.Sprintf("%q is published, but its partition is not registered in the catalog%s: %v"+
		" (it is tried again while mounted, and by the next publish into it)", e.Path, more, e.Cause)
}

// Unwrap returns objectstore.ErrPermission or nil.
func (e *RegisterError) Unwrap() error {
	if errors.Is(e.Cause, objectstore.ErrPermission) {
		return objectstore.ErrPermission
	}
	return nil
}

// unmovedError says that a partition could not be registered in the catalog, and
// that nothing was moved into it for that. It unwraps as RegisterError does.
type unmovedError struct {
	path  string // of the object, in the tree
	cause error
}

func (e *unmovedError) Error() string {
	return fmt.Sprintf("nothing is moved to %q: its partition cannot be registered in the catalog: %v", e.path, e.cause)
}

func (e *unmovedError) Unwrap() error {
	if errors.Is(e.cause, objectstore.ErrPermission) {
		return objectstore.ErrPermission
	}
	return nil
}

// Log lines of a recovery. The Registrar of a mount keeps what it failed to register.
const (
	notRegistered    = "a partition is not registered: it is tried again while mounted, and by the next publish into it"
	notRegisteredYet = "a partition is not registered yet: its write stays staged, and the next mount tries again"
)

// registerTime bounds one registration. The catalog's own limits end it earlier.
const registerTime = time.Minute

// register registers the partition of what is at path, at loc, by now: nil or a
// *RegisterError. Of a publish it is called between it and the removal of its record,
// so that a crash in between is made good by Recover.
func (c *Committer) register(ctx context.Context, path string, loc objectstore.Location) error {
	if c.registrar == nil || path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	if err := c.registrar.Register(ctx, path, loc); err != nil {
		return &RegisterError{Path: path, Cause: err}
	}
	return nil
}

// registerAll is register for objects that were published together, by path of the
// tree, each directory once as far as its caller knows: nil or a *RegisterError.
func (c *Committer) registerAll(ctx context.Context, at map[string]objectstore.Location) error {
	if c.registrar == nil || len(at) == 0 {
		return nil
	}
	// So long for each request of a hundred partitions.
	ctx, cancel := context.WithTimeout(ctx, registerTime*time.Duration(1+len(at)/100))
	defer cancel()
	err := c.registrar.RegisterAll(ctx, at)
	if err == nil {
		return nil
	}
	failed := &RegisterError{Path: slices.Min(slices.Collect(maps.Keys(at))), More: len(at) - 1, Cause: err}
	var told interface{ ByPath() map[string]error }
	if errors.As(err, &told) && len(told.ByPath()) > 0 {
		all := told.ByPath()
		failed.Path = slices.Min(slices.Collect(maps.Keys(all)))
		failed.More, failed.Cause = len(all)-1, all[failed.Path]
	}
	return failed
}

// Register registers the partition that an object is about to be moved into: at
// path of the tree, to loc. The error is that of [Committer.Rename]. It may be
// called again.
func (c *Committer) Register(ctx context.Context, path string, loc objectstore.Location) error {
	return unmoved(c.register(ctx, path, loc))
}

// unmoved is a registration's error, if there is one, as that of what was to follow it.
func unmoved(err error) error {
	if failed := (*RegisterError)(nil); errors.As(err, &failed) {
		return &unmovedError{path: failed.Path, cause: failed.Cause}
	}
	return err
}

// registerFirst is Register for a rename, unless its caller did it.
func (c *Committer) registerFirst(ctx context.Context, m Move) error {
	if m.Registered {
		return nil
	}
	return c.Register(ctx, m.Path, m.To)
}

// registerLate is register for what nobody waits for: a failure is logged, and
// again is why the next Recover is to do it once more: the catalog did not answer,
// or ctx ended before it did. Whoever ends the program knows, and is told nothing.
func (c *Committer) registerLate(ctx context.Context, path string, loc objectstore.Location) (again error) {
	return c.registeredLate(ctx, c.register(ctx, path, loc))
}

// registeredLate is registerLate with the registration's error.
func (c *Committer) registeredLate(ctx context.Context, err error) (again error) {
	var failed *RegisterError
	if !errors.As(err, &failed) {
		return nil
	}
	path := failed.Path
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil, errors.Is(failed.Cause, objectstore.ErrUnavailable):
		c.log.LogAttrs(ctx, slog.LevelError, notRegisteredYet, slog.String("path", path), slog.Any("error", err))
		return err
	}
	c.log.LogAttrs(ctx, slog.LevelError, notRegistered, slog.String("path", path), slog.Any("error", err))
	return nil
}

func isUnregistered(err error) bool {
	var e *RegisterError
	return errors.As(err, &e)
}
