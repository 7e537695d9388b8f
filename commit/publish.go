package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
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

// way is how a version went to the store.
type way int

const (
	byAdopt way = iota
	byPut
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
	if err := c.Check(ctx, f); err != nil {
		return objectstore.Object{}, byAdopt, err
	}
	return c.attempts(ctx, z)
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

// attempts asks the store until it took z, refused it, or did not answer for
// too long.
func (c *Committer) attempts(ctx context.Context, z *staging.Frozen) (objectstore.Object, way, error) {
	again := retries{limit: c.retry}
	var unknown error // of an earlier attempt's outcome
	for {
		obj, by, err := c.attempt(ctx, z)
		if err == nil {
			return obj, by, nil
		}
		if !isUnclear(ctx, err) && !isConflict(err) {
			return obj, by, join(err, unknown)
		}
		found, settled := c.settle(ctx, z, by)
		switch {
		case settled == nil:
			c.log.LogAttrs(ctx, slog.LevelInfo, "published, though the store's answer was lost",
				slog.String("path", z.Record.Path), slog.Any("answer", err))
			return found, by, nil
		case isConflict(err) && !errors.Is(settled, errUnsettled):
			return obj, by, err
		case isConflict(settled):
			return obj, by, settled
		}
		unknown = nil
		if errors.Is(settled, errUnsettled) {
			unknown = settled
		}
		if more, ended := again.next(ctx); !more {
			return obj, by, errors.Join(err, unknown, ended)
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

// attempt asks the store once.
func (c *Committer) attempt(ctx context.Context, z *staging.Frozen) (objectstore.Object, way, error) {
	if err := z.Fill(ctx); err != nil {
		return objectstore.Object{}, byAdopt, err
	}
	opts := objectstore.PutOptions{Cond: z.Record.Cond, Meta: metaOf(z.Record)}
	if adopter, ok := c.store.(objectstore.Adopter); ok {
		obj, err := adopter.Adopt(ctx, z.Record.Target, z.Path, opts)
		if errors.Is(err, objectstore.ErrUnavailable) {
			// The store's fsync may be what failed, and the kernel tells such an
			// error to each descriptor once: ask on ours before the next attempt,
			// whose fsync would succeed over lost pages.
			if sealErr := z.Seal(ctx); sealErr != nil {
				return obj, byAdopt, errors.Join(sealErr, err)
			}
		}
		if !errors.Is(err, objectstore.ErrCrossDevice) {
			return obj, byAdopt, err
		}
	}
	if err := z.Seal(ctx); err != nil {
		return objectstore.Object{}, byPut, err
	}
	if z.Record.State != staging.Publishing {
		if err := z.SetState(staging.Publishing, "", true); err != nil {
			return objectstore.Object{}, byPut, err
		}
	}
	obj, err := c.store.Put(ctx, z.Record.Target, z.ReaderAt(), z.Size, opts)
	return obj, byPut, err
}

// metaOf is what travels with the object.
func metaOf(r staging.Record) map[string]string {
	meta := map[string]string{
		objectstore.MetaWriteID: r.ID,
		objectstore.MetaMode:    strconv.FormatUint(uint64(r.Mode&0o7777), 8),
		objectstore.MetaUID:     strconv.FormatUint(uint64(r.UID), 10),
		objectstore.MetaGID:     strconv.FormatUint(uint64(r.GID), 10),
	}
	if behind := lineage(r.Base); r.Append && len(behind) > 0 {
		meta[metaBehind] = strings.Join(behind, ",")
	}
	if r.MTimeSet {
		meta[objectstore.MetaMTime] = formatTime(r.MTime)
	}
	return meta
}

// formatTime is t in seconds since 1970, with nine decimals if it has a fraction.
func formatTime(t time.Time) string {
	sec, nsec := t.Unix(), t.Nanosecond()
	sign := ""
	if sec < 0 {
		sign, sec = "-", -sec
		if nsec > 0 {
			sec, nsec = sec-1, 1e9-nsec
		}
	}
	if nsec == 0 {
		return fmt.Sprintf("%s%d", sign, sec)
	}
	return fmt.Sprintf("%s%d.%09d", sign, sec, nsec)
}
