package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// copyRename is a rename by a copy and the removal of its source. What it makes
// at the target bears the write id of its record.
type copyRename struct {
	c        *Committer
	note     *staging.Rename
	rec      staging.Record
	src      objectstore.Object // with its metadata
	replaces bool               // something is at the target, or may be
}

func (c *Committer) renameByCopy(ctx context.Context, asked Move) (objectstore.Object, error) {
	if asked.From.Location == asked.To {
		if asked.Cond.IfNoneMatch {
			return objectstore.Object{}, objectstore.ErrExist
		}
		return asked.From, nil
	}
	m := &copyRename{c: c}
	var err error
	if m.src, err = c.withMeta(ctx, asked.From); err != nil {
		return objectstore.Object{}, err
	}
	if m.replaces, err = c.replaces(ctx, asked.To, asked.Cond); err != nil {
		return objectstore.Object{}, err
	}
	if err = c.registerFirst(ctx, asked); err != nil {
		return objectstore.Object{}, err
	}
	m.note, err = c.area.BeginRename(staging.NewRename{Target: asked.To, Path: asked.Path, Source: m.src, Cond: asked.Cond})
	if err != nil {
		return objectstore.Object{}, err
	}
	m.rec = m.note.Record()
	return m.run(ctx)
}

// withMeta is src with its metadata, which a listing does not tell, and its time
// as a HEAD tells it.
func (c *Committer) withMeta(ctx context.Context, src objectstore.Object) (objectstore.Object, error) {
	if src.Meta != nil {
		return src, nil
	}
	now, err := c.store.Stat(ctx, src.Location)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return src, fmt.Errorf("it was removed meanwhile: %w", objectstore.ErrChanged)
	case err != nil:
		return src, err
	case now.ETag != src.ETag:
		return src, fmt.Errorf("another's version has the old name: %w", objectstore.ErrChanged)
	}
	if src.Meta, src.ModTime = now.Meta, now.ModTime; src.Meta == nil {
		src.Meta = make(map[string]string) // known: there is none
	}
	return src, nil
}

// replaces tells whether a copy to dst may replace something.
func (c *Committer) replaces(ctx context.Context, dst objectstore.Location, cond objectstore.Cond) (bool, error) {
	if cond != (objectstore.Cond{}) {
		return cond.IfMatch != "", nil
	}
	_, err := c.store.Stat(ctx, dst)
	if errors.Is(err, objectstore.ErrNotExist) {
		return false, nil
	}
	return true, err
}

func (m *copyRename) run(ctx context.Context) (objectstore.Object, error) {
	obj, err := m.copy(ctx)
	if errors.Is(err, errUnsettled) {
		return obj, fmt.Errorf("tried again later: %w", err)
	}
	if err != nil {
		if m.c.abortCopy(ctx, m.note) == nil {
			m.c.forget(ctx, m.note)
		}
		return obj, err
	}
	unclear, err := m.c.removeSource(ctx, m.rec)
	if unclear {
		m.c.log.LogAttrs(ctx, slog.LevelWarn, "a renamed object may be at both names: it is tried again, and lakefs-mount recover --publish ID does so at once",
			slog.String("id", m.rec.ID), slog.String("from", m.src.Key), slog.String("to", m.rec.Target.Key), slog.Any("error", err))
		return obj, fmt.Errorf("copied; the removal of the old name is tried again later: %w", err)
	}
	if err != nil {
		err = m.takeBack(ctx, obj, err)
	}
	m.c.forget(ctx, m.note)
	return obj, err
}

// copy makes the target, until it is there, refused, or not answered too long.
func (m *copyRename) copy(ctx context.Context) (objectstore.Object, error) {
	meta := maps.Clone(m.src.Meta)
	if meta == nil {
		meta = make(map[string]string, 1)
	}
	meta[objectstore.MetaWriteID] = m.rec.ID
	opts := objectstore.PutOptions{Cond: m.rec.Cond, Meta: meta, Begun: m.uploading(ctx)}
	again := retries{limit: m.c.retry}
	for {
		obj, err := m.c.store.Copy(ctx, m.rec.Target, m.src, opts)
		if err == nil || !isUnclear(ctx, err) && !isConflict(err) {
			return obj, err
		}
		found, settled := m.c.settleCopy(ctx, m.rec)
		switch {
		case settled == nil:
			return found, nil
		case errors.Is(settled, errUnsettled):
			err = errors.Join(err, settled)
		case isConflict(err):
			return obj, err
		}
		if more, ended := again.next(ctx); !more {
			return obj, errors.Join(err, ended)
		}
	}
}

// settleCopy looks for the copy of a rename: nil if it is at the target,
// errNotDone if not, errUnsettled.
func (c *Committer) settleCopy(ctx context.Context, r staging.Record) (objectstore.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	obj, err := c.store.Stat(ctx, r.Target)
	switch {
	case err == nil && obj.Meta[objectstore.MetaWriteID] == r.ID:
		return obj, nil
	case err == nil || errors.Is(err, objectstore.ErrNotExist):
		return obj, errNotDone
	}
	return obj, fmt.Errorf("%w: %w", errUnsettled, err)
}

// removeSource ends a rename whose copy is there. Another's version at the old
// name stays. unclear: a removal was asked for whose outcome is not known.
func (c *Committer) removeSource(ctx context.Context, r staging.Record) (unclear bool, err error) {
	deleter, ok := c.store.(objectstore.VersionDeleter)
	if !ok {
		return false, objectstore.ErrCrossDevice
	}
	again := retries{limit: c.retry}
	for {
		err := deleter.DeleteVersion(ctx, *r.Source)
		switch {
		case err == nil || errors.Is(err, objectstore.ErrNotExist):
			return false, nil
		case errors.Is(err, objectstore.ErrChanged):
			c.logReplaced(ctx, r)
			return false, nil
		case !isUnclear(ctx, err):
			return unclear, err
		}
		unclear = true
		if more, ended := again.next(ctx); !more {
			return true, errors.Join(err, ended)
		}
	}
}

func (c *Committer) logReplaced(ctx context.Context, r staging.Record) {
	c.log.LogAttrs(ctx, slog.LevelInfo, "renamed; another's version has the old name by now",
		slog.String("from", r.Source.Key), slog.String("to", r.Target.Key))
}

// takeBack removes the copy after the store refused to remove the source. It does
// not where the copy replaced something, which nobody can bring back, nor where
// the source is not seen: a reader would find neither. No removal of the source is
// under way any more.
func (m *copyRename) takeBack(ctx context.Context, obj objectstore.Object, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	err := errors.New("it replaced what was there")
	if !m.replaces {
		err = m.removeCopy(ctx, obj)
	}
	if err == nil {
		return fmt.Errorf("remove the old name: %w", cause)
	}
	m.c.log.LogAttrs(ctx, slog.LevelError, "a rename stopped half-way: the object is at both names",
		slog.String("from", m.src.Key), slog.String("to", m.rec.Target.Key), slog.Any("error", cause), slog.Any("copy_stays", err))
	return fmt.Errorf("remove the old name: %w (the object is at both names: %w)", cause, err)
}

func (m *copyRename) removeCopy(ctx context.Context, obj objectstore.Object) error {
	now, err := m.c.store.Stat(ctx, m.src.Location)
	if err != nil {
		return err
	}
	if !isVersion(now, m.src) {
		return objectstore.ErrChanged
	}
	deleter, _ := m.c.store.(objectstore.VersionDeleter)
	return deleter.DeleteVersion(ctx, obj)
}

// forget drops the note of a rename. That it could not is no error: the next
// Recover finds nothing to do.
func (c *Committer) forget(ctx context.Context, r *staging.Rename) {
	if err := r.Drop(); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "the note of a rename stays in the staging directory",
			slog.String("id", r.Record().ID), slog.Any("error", err))
	}
}
