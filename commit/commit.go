// Package commit makes a staged file visible in the store, wholly or not at all.
//
// A commit checks the format, freezes the file, and asks the store for one
// conditional step: a rename of the spool where the store can take the file as
// it is ([objectstore.Adopter]); elsewhere a Put, the completion of a multipart
// upload whose parts went up while the file was written, or a copy of the object
// that the file is a copy of. Before a request the record says "publishing", since
// what came of it cannot be seen from the spool. An adopted file needs no such
// note: whether the spool still has its bytes tells whether the rename took effect,
// after a crash too.
//
// A publish to a store of requests waits for no disk: until the store has the bytes
// nothing is acknowledged, and then it has them. The record has the spool's checksum,
// so that what a power loss damaged is never published; what stays here after a
// failure is made durable then.
//
// Guarantees: no reader ever sees a part; an answer that was lost is settled by
// looking for our write id before anything is sent again, so that a version is
// published once; on every error the bytes are kept and the record says why;
// replaying a commit, at any point where it may have ended, is harmless; the
// partition of what is published is registered ([Registrar]) before its record goes,
// that of what is renamed before it is moved.
package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"time"

	"github.com/lakefs-mount/lakefs-mount/format"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Sentinels. The store's own ([objectstore.ErrExist], ErrChanged, ErrUnavailable,
// ErrPermission, ErrNoSpace…) pass through.
var (
	// ErrFormat: the file is not a complete one of its partition's format.
	ErrFormat = errors.New("not of its partition's format")
	// ErrEmpty: an empty file where the format has none. It stays staged, which
	// is no failure: some writers open twice.
	ErrEmpty = fmt.Errorf("empty: %w", ErrFormat)
	// ErrBusy: a program has the file open.
	ErrBusy = errors.New("the file is open")
	// ErrNoWrite: no staged write has that id.
	ErrNoWrite = errors.New("no such staged write")
)

// Values of Options.CheckFormat.
const (
	CheckStrict = "strict" // the default: a file that fails is not published
	CheckWarn   = "warn"   // it is, and a line is logged
	CheckOff    = "off"
)

// Registrar makes the catalog know of a partition (catalogview.View).
type Registrar interface {
	// Register registers the partition of an object that was published at a path of
	// the tree, or is about to be moved there, and lies at a location of the store
	// then; nothing is done for one that is registered, and for what lies in no
	// partition of a catalog. It may be called again. It may be called concurrently.
	Register(ctx context.Context, path string, at objectstore.Location) error
	// RegisterAll is Register for many at once, by path, with as few requests as the
	// catalog allows. It tries all; the error has a method ByPath() map[string]error of
	// what could not be done.
	RegisterAll(ctx context.Context, at map[string]objectstore.Location) error
}

// Options of a Committer. Store and Area must be set.
type Options struct {
	Store       objectstore.Store
	Area        *staging.Area
	Log         *slog.Logger
	CheckFormat string        // CheckStrict, CheckWarn or CheckOff; "": CheckStrict
	Retry       time.Duration // how long a store that does not answer is asked again; 0: 30 s
	Registrar   Registrar     // nil: nothing is registered
}

// Committer publishes staged files. Its methods may be called concurrently;
// those for one target wait for one another.
type Committer struct {
	store     objectstore.Store
	area      *staging.Area
	log       *slog.Logger
	check     string
	retry     time.Duration
	registrar Registrar
	targets   targetLocks
	atOnce    int                                                        // files of a batch
	verify    func(format, name string, r io.ReaderAt, size int64) error // format.Check
}

// New returns a Committer.
func New(o Options) *Committer {
	c := &Committer{
		store: o.Store, area: o.Area, log: o.Log, check: o.CheckFormat, retry: o.Retry,
		registrar: o.Registrar, atOnce: batchAtOnce, verify: format.Check,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.check == "" {
		c.check = CheckStrict
	}
	if c.retry == 0 {
		c.retry = 30 * time.Second
	}
	c.targets.held = make(map[objectstore.Location]*targetLock)
	return c
}

// Commit publishes f and returns the object that it is now. Writers of f wait
// meanwhile; its next version begins as that object. A file with nothing to
// publish: the object that it is already. On an error the file is kept, failed
// with the reason; but when ctx ended, or with ErrEmpty, it stays staged.
//
// Appends that meet another's version (objectstore.ErrChanged, or ErrExist for a
// new file) go behind it, as often as it takes. Other writes fail with it.
//
// A [*RegisterError] comes with the object: it is published, f is clean, and its
// partition is not in the catalog.
func (c *Committer) Commit(ctx context.Context, f *staging.File) (objectstore.Object, error) {
	return c.commit(ctx, f, true)
}

// commit is Commit. told: its error is an answer to who asked for the publish. One
// that is then not settled must not be sent again without being asked for.
func (c *Committer) commit(ctx context.Context, f *staging.File, told bool) (objectstore.Object, error) {
	if err := c.settleBatchOf(ctx, f); err != nil {
		return objectstore.Object{}, err
	}
	target := f.Record().Target
	for {
		unlock, err := c.targets.lock(ctx, target)
		if err != nil {
			return objectstore.Object{}, err
		}
		obj, moved, err := c.commitAs(ctx, f, target, told)
		unlock()
		if moved == target {
			return obj, err
		}
		target = moved // renamed while this waited
	}
}

// commitAs commits f if its target is still the one that the caller locked.
func (c *Committer) commitAs(ctx context.Context, f *staging.File, target objectstore.Location, told bool) (objectstore.Object, objectstore.Location, error) {
	z, err := f.Freeze(ctx)
	if err != nil {
		return objectstore.Object{}, target, fmt.Errorf("publish %q: %w", f.Record().Path, err)
	}
	defer z.Release()
	if now := z.Record.Target; now != target {
		return objectstore.Object{}, now, nil
	}
	if z.Clean {
		return baseOf(z.Record), target, nil
	}
	obj, err := c.commitUnsettled(ctx, f, z)
	switch {
	case isUnregistered(err):
		// published: there is nothing to keep
	case err != nil:
		if told || !errors.Is(err, errUnsettled) {
			c.note(ctx, z, err)
		} // else it stays "publishing": the next recovery settles it
		err = fmt.Errorf("publish %q: %w", z.Record.Path, err)
	}
	return obj, target, err
}

func baseOf(r staging.Record) objectstore.Object {
	if r.Base == nil {
		return objectstore.Object{Location: r.Target}
	}
	return *r.Base
}

// note writes into the record why the file was not published.
func (c *Committer) note(ctx context.Context, z *staging.Frozen, cause error) {
	state, reason := staging.Failed, cause.Error()
	unsettled := errors.Is(cause, errUnsettled)
	switch {
	case errors.Is(cause, ErrEmpty):
		state, reason = z.Record.State, ""
	case unsettled:
	case ctx.Err() != nil && errors.Is(cause, ctx.Err()):
		state, reason = staging.Staged, ""
	}
	if state != staging.Failed && state == z.Record.State && reason == z.Record.Error {
		return
	}
	var err error
	if unsettled {
		err = z.SetUnsettled(reason)
	} else {
		err = z.SetState(state, reason, z.Record.State == staging.Publishing)
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "the reason of a failed publish is not on disk",
			slog.String("id", z.Record.ID), slog.Any("error", err), slog.Any("reason", cause))
	}
}

// Check is the format check alone, of the bytes as they are now: ErrFormat,
// ErrEmpty, or the error of reading them. Nothing is logged, and of CheckWarn the
// error is as of CheckStrict: it tells whether the file is whole, not whether it may
// be published.
func (c *Committer) Check(ctx context.Context, f *staging.File) error {
	rec := f.Record()
	if rec.Format == "" || c.check == CheckOff {
		return nil
	}
	return c.checkFormat(ctx, f, rec)
}

// checkAs says why f is not to be published where rec says that it is to be: as Check,
// but what Options.CheckFormat lets pass is logged, if so asked, and nil.
func (c *Committer) checkAs(ctx context.Context, f *staging.File, rec staging.Record) error {
	if rec.Format == "" || c.check == CheckOff {
		return nil
	}
	err := c.checkFormat(ctx, f, rec)
	switch {
	case !errors.Is(err, ErrFormat):
		return err
	case c.check != CheckWarn && !errors.Is(err, ErrEmpty):
		return fmt.Errorf("%w (%s)", err, keptAdvice(f.Record()))
	case c.check != CheckWarn:
		return err
	}
	c.log.LogAttrs(ctx, slog.LevelWarn, "published although the format check fails",
		slog.String("path", rec.Path), slog.Any("error", err))
	return nil
}

func (c *Committer) checkFormat(ctx context.Context, f *staging.File, rec staging.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the check of %q panicked: %v", ErrFormat, rec.Path, p)
		}
	}()
	err = c.verify(rec.Format, path.Base(rec.Target.Key), fileReader(func(p []byte, off int64) (int, error) {
		return f.ReadAt(ctx, p, off)
	}), rec.Size)
	if bad := (*format.Error)(nil); errors.As(err, &bad) {
		if rec.Size == 0 {
			return fmt.Errorf("%q: %w", rec.Path, ErrEmpty)
		}
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

// keptAdvice is what to do with a file that failed the check. One that stays in its
// directory of the mount alone is listed there, and recover has to be asked for it.
func keptAdvice(kept staging.Record) string {
	if kept.Hold == staging.Local {
		return "not published, and where it was: write it again; lakefs-mount recover --all --save DIR copies it out"
	}
	return "kept, not published: write it again; lakefs-mount recover --save DIR copies it out"
}

// fileReader is a function as an io.ReaderAt.
type fileReader func(p []byte, off int64) (int, error)

func (r fileReader) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

var _ io.ReaderAt = fileReader(nil)
