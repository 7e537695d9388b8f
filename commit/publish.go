package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

const (
	firstPause  = 50 * time.Millisecond
	longPause   = 3 * time.Second
	rebasePause = 10 * time.Millisecond
)

var (
	// errNotDone: the store was asked, and what was sent did not take effect.
	errNotDone = errors.New("not done")
	// errUnsettled: whether it took effect could not be found out.
	errUnsettled = fmt.Errorf("whether the publish took effect is not known: %w", objectstore.ErrUnavailable)
)

// isConflict: another's version, or none, is where ours was to go.
func isConflict(err error) bool {
	return errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrExist)
}

// isUnclear: the store may have done what it was asked, or not.
func isUnclear(ctx context.Context, err error) bool {
	return errors.Is(err, objectstore.ErrUnavailable) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// commitFrozen publishes z, going behind others' versions where it only appends.
func (c *Committer) commitFrozen(ctx context.Context, f *staging.File, z *staging.Frozen) (objectstore.Object, error) {
	for {
		obj, by, err := c.checked(ctx, f, z)
		if err == nil {
			return obj, c.published(ctx, z, obj, by == byAdopt)
		}
		if !isConflict(err) || !z.Record.Append || errors.Is(err, errUnsettled) {
			return objectstore.Object{}, err
		}
		if err := c.rebase(ctx, z); err != nil {
			return objectstore.Object{}, err
		}
		if base := z.Record.Base; base != nil && z.Size == base.Size {
			z.Published(*base, false) // opened for appending, and nothing appended
			return *base, nil
		}
	}
}

// published ends a publish that made obj. The partition is registered first, while
// the record is there: a [*RegisterError] is all that can go wrong. The end of ctx
// does not end that: the object is in the store.
func (c *Committer) published(ctx context.Context, z *staging.Frozen, obj objectstore.Object, adopted bool) error {
	err := c.register(context.WithoutCancel(ctx), z.Record.Path, z.Record.Target)
	z.Published(bearing(obj, z.Record), adopted)
	return err
}

// checked publishes z if the format check passes.
func (c *Committer) checked(ctx context.Context, f *staging.File, z *staging.Frozen) (objectstore.Object, way, error) {
	if err := c.checkAs(ctx, f, f.Record()); err != nil {
		return objectstore.Object{}, byAdopt, err
	}
	p := publishing{c: c, f: f, z: z}
	return p.attempts(ctx)
}

// rebase moves the appended bytes behind the version that is there now. The
// pause lets one of many appenders be done while the others wait; ctx bounds it.
func (c *Committer) rebase(ctx context.Context, z *staging.Frozen) error {
	again := retries{limit: c.retry}
	for {
		if err := pause.For(ctx, rand.N(rebasePause)); err != nil {
			return err
		}
		now, err := c.store.Stat(ctx, z.Record.Target)
		if err == nil {
			err = z.Rebase(ctx, now)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, objectstore.ErrNotExist) && z.Record.Cond.IfNoneMatch:
			return nil // who had the name is gone again: it is free
		case errors.Is(err, objectstore.ErrNotExist):
			return fmt.Errorf("the file was removed meanwhile: %w", objectstore.ErrChanged)
		case errors.Is(err, objectstore.ErrChanged):
			continue // once more by another
		case !isUnclear(ctx, err):
			return err
		}
		if more, ended := again.next(ctx); !more {
			return errors.Join(err, ended)
		}
	}
}

// join is err, with other if there is one.
func join(err, other error) error {
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}

// retries paces attempts at what the store did not answer. The time that counts
// begins with the first failure: a store that retries by itself may have used up
// as much before it.
type retries struct {
	limit time.Duration
	first time.Time
	wait  time.Duration
}

// next pauses before another attempt; false if there is to be none, with ctx's
// error if it ended.
func (r *retries) next(ctx context.Context) (more bool, err error) {
	if r.wait == 0 {
		r.first, r.wait = time.Now(), firstPause
	}
	if time.Since(r.first) >= r.limit {
		return false, ctx.Err()
	}
	err = pause.For(ctx, r.wait/2+rand.N(r.wait/2))
	r.wait = min(2*r.wait, longPause)
	return err == nil, err
}
