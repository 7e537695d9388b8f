package fs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	defaultRenameLimit = 1000
	renamesAtOnce      = 16
)

// errTreeTooLarge makes mv copy, and a program that does not read of it.
var errTreeTooLarge = fmt.Errorf("more objects than --rename-limit: %w", errPartitionMove)

// tree moves a directory of a store that has none: object by object, in
// parallel. It is no single step, so others may see a part of it; if one object
// cannot be moved, those that were are moved back.
func (m *move) tree(ctx context.Context, from catalogview.Node, to objectstore.Location) error {
	if err := m.emptyTarget(ctx, to); err != nil {
		return err
	}
	objects, err := m.objectsBelow(ctx, from.Location())
	if err != nil {
		return err
	}
	moved := make([]objectstore.Object, len(objects))
	if err := m.moveAll(ctx, objects, moved, from.Location(), to); err != nil {
		return errors.Join(err, m.moveBack(context.WithoutCancel(ctx), objects, moved))
	}
	for i, o := range objects {
		m.fs.Attr.Move(attrKey(o.Location), o.ETag, attrKey(moved[i].Location), moved[i].ETag)
		m.fs.View.Removed(o.Location)
		m.fs.verified.drop(o.Location)
		m.fs.View.Wrote(moved[i])
		m.fs.verified.note(moved[i])
	}
	m.fs.View.Removed(from.Location())
	m.fs.changedIn(from.Location())
	m.fs.changedIn(to)
	m.fs.warnLocal(m.to, m.fs.local.move(m.from, m.to, len(objects) > 0))
	m.fs.keepLocal(m.from)
	return nil
}

// emptyTarget: a directory replaces an empty one only.
func (m *move) emptyTarget(ctx context.Context, to objectstore.Location) error {
	if len(m.fs.local.children(m.to)) > 0 || m.fs.names.stagedBelow(m.to) {
		return objectstore.ErrNotEmpty
	}
	for e, err := range m.fs.Store.List(ctx, to, objectstore.ListOptions{Limit: 2}) {
		if err != nil {
			return err
		}
		if e.Key != to.Key {
			return objectstore.ErrNotEmpty
		}
	}
	return nil
}

// objectsBelow lists what is to be moved, if all of it may be.
func (m *move) objectsBelow(ctx context.Context, dir objectstore.Location) ([]objectstore.Object, error) {
	limit := m.fs.RenameLimit
	if limit == 0 {
		limit = defaultRenameLimit
	}
	var objects []objectstore.Object
	for e, err := range m.fs.Store.List(ctx, dir, objectstore.ListOptions{Limit: limit + 1}) {
		if err != nil {
			return nil, err
		}
		if err := m.fs.mayChange(e.Object, WriteOverwrite); err != nil {
			return nil, err
		}
		if objects = append(objects, e.Object); len(objects) > limit {
			return nil, errTreeTooLarge
		}
	}
	return objects, nil
}

func (m *move) moveAll(ctx context.Context, objects, moved []objectstore.Object, from, to objectstore.Location) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(renamesAtOnce)
	for i, o := range objects {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			dst := objectstore.Location{Bucket: to.Bucket, Key: to.Key + strings.TrimPrefix(o.Key, from.Key)}
			obj, err := m.moveOne(ctx, dst, o)
			moved[i] = obj
			return err
		})
	}
	return g.Wait()
}

// moveOne moves one object. A directory's own, which others made ("p/"), has
// nothing in it to lose.
func (m *move) moveOne(ctx context.Context, dst objectstore.Location, o objectstore.Object) (objectstore.Object, error) {
	if !strings.HasSuffix(o.Key, "/") {
		return m.fs.Committer.Rename(ctx, dst, o, objectstore.Cond{IfNoneMatch: true})
	}
	obj, err := m.fs.Store.Copy(ctx, dst, o, objectstore.PutOptions{})
	if err != nil {
		return obj, err
	}
	return obj, m.fs.deleteOne(ctx, o.Location)
}

// moveBack undoes what moveAll did before it failed.
func (m *move) moveBack(ctx context.Context, objects, moved []objectstore.Object) error {
	var problems []error
	for i, o := range moved {
		if o.Key == "" {
			continue
		}
		if _, err := m.moveOne(ctx, objects[i].Location, o); err != nil {
			problems = append(problems, fmt.Errorf("%q stays at its new name: %w", o.Key, err))
			m.fs.View.Wrote(o)
		}
		m.fs.superseded(objects[i].Location)
	}
	return errors.Join(problems...)
}
