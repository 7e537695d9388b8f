package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

const (
	defaultRenameLimit = 1000
	renamesAtOnce      = 16
)

// These make mv copy, and a program that does not read of it.
var (
	errTreeTooLarge = fmt.Errorf("more objects than --rename-limit: %w", errPartitionMove)
	errFormatMove   = fmt.Errorf("each of the directory's files is to be checked for the format of the new name: %w", errPartitionMove)
)

// mayMoveFiles says why the files of a directory, as it is at from, do not move
// with it: at the new name they would be taken for files of a format that they were
// never checked for, or they are data of a table that takes new files only.
func (m *move) mayMoveFiles(ctx context.Context, n catalogview.Node, from catalogview.Target) error {
	to, err := m.fs.View.Resolve(ctx, m.to)
	if err != nil {
		return err // also of an empty directory that is there: its table may be read-only
	}
	if insertOnly(n) && !from.Hidden {
		if data, err := m.hasData(ctx, n.Location()); err != nil {
			return err
		} else if data {
			return table.ErrInsertOnly
		}
	}
	if to.Format != from.Format && m.fs.Committer.ChecksFormat(to.Format) {
		return errFormatMove
	}
	return nil
}

// hasData reports whether a file that is not hidden lies in or below dir.
func (m *move) hasData(ctx context.Context, dir objectstore.Location) (bool, error) {
	for e, err := range m.fs.Store.List(ctx, dir, objectstore.ListOptions{}) {
		if errors.Is(err, objectstore.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		below := strings.TrimPrefix(e.Key, dir.Key)
		if !strings.HasSuffix(e.Key, "/") && !slices.ContainsFunc(strings.Split(below, "/"), table.Hidden) {
			return true, nil
		}
	}
	return false, nil
}

// tree moves a directory of a store that has none: object by object, in
// parallel. It is no single step, so others may see a part of it; if one object
// cannot be moved, those that were are moved back.
func (m *move) tree(ctx context.Context, from catalogview.Node, to objectstore.Location) error {
	if err := m.emptyTarget(ctx, to); err != nil {
		return err
	}
	objects, markers, err := m.objectsBelow(ctx, from.Location())
	if err != nil {
		return err
	}
	if err := m.register(ctx, objects, from.Location(), to); err != nil {
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
	if err := m.moveMarkers(ctx, markers, from.Location()); err != nil {
		return err
	}
	m.fs.View.Removed(from.Location())
	m.fs.changedIn(from.Location())
	m.fs.changedIn(to)
	m.fs.warnLocal(m.to, m.fs.local.move(m.from, m.to, len(objects) > 0))
	m.fs.keepLocal(m.from)
	return nil
}

// register registers the partition that the tree moves into, before any of it does.
// It takes one object that is data, if there is one, as its cause.
func (m *move) register(ctx context.Context, objects []objectstore.Object, from, to objectstore.Location) error {
	for _, o := range objects {
		below := strings.TrimPrefix(o.Key, from.Key)
		if slices.ContainsFunc(strings.Split(below, "/"), table.Hidden) {
			continue
		}
		dst := objectstore.Location{Bucket: to.Bucket, Key: to.Key + below}
		return m.fs.Committer.Register(ctx, m.to+"/"+below, dst)
	}
	return nil
}

// emptyTarget: a directory replaces an empty one only.
func (m *move) emptyTarget(ctx context.Context, to objectstore.Location) error {
	if m.fs.holdsLocal(m.to) {
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
// markers are the empty objects of directories ("p/"), which others made.
func (m *move) objectsBelow(ctx context.Context, dir objectstore.Location) (objects, markers []objectstore.Object, err error) {
	limit := m.fs.RenameLimit
	if limit == 0 {
		limit = defaultRenameLimit
	}
	for e, err := range m.fs.Store.List(ctx, dir, objectstore.ListOptions{Limit: limit + 1}) {
		if err != nil {
			return nil, nil, err
		}
		if err := m.fs.mayChange(e.Object, WriteOverwrite); err != nil {
			return nil, nil, err
		}
		if strings.HasSuffix(e.Key, "/") && e.Size == 0 {
			markers = append(markers, e.Object)
		} else {
			objects = append(objects, e.Object)
		}
		if len(objects)+len(markers) > limit {
			return nil, nil, errTreeTooLarge
		}
	}
	return objects, markers, nil
}

// moveMarkers makes the directories that markers stand for directories of the
// mount at the new name: this program writes no markers, and a server need not
// copy them.
func (m *move) moveMarkers(ctx context.Context, markers []objectstore.Object, from objectstore.Location) error {
	for _, o := range markers {
		below := strings.TrimSuffix(strings.TrimPrefix(o.Key, from.Key), "/")
		if err := m.fs.deleteOne(ctx, o.Location); err != nil {
			return err
		}
		path := m.to
		if below != "" {
			path = child(path, below)
		}
		m.fs.warnLocal(path, m.fs.local.make(path))
		m.fs.View.Removed(o.Location)
	}
	return nil
}

// moveAll fills moved with what was moved. A move that has begun is never broken
// off for the failure of another: it would leave its object at both names.
func (m *move) moveAll(ctx context.Context, objects, moved []objectstore.Object, from, to objectstore.Location) error {
	g, over := errgroup.WithContext(ctx)
	g.SetLimit(renamesAtOnce)
	for i, o := range objects {
		g.Go(func() error {
			if err := over.Err(); err != nil {
				return err
			}
			below := strings.TrimPrefix(o.Key, from.Key)
			dst := objectstore.Location{Bucket: to.Bucket, Key: to.Key + below}
			obj, err := m.moveOne(ctx, m.to+"/"+below, dst, o)
			if err != nil { // taken back, or left to the next mount
				m.fs.superseded(o.Location)
				m.fs.superseded(dst)
				return err
			}
			moved[i] = obj
			return nil
		})
	}
	return g.Wait()
}

// moveOne moves one object; to path, whose partition is registered, if that is told:
// a recovery of the move asks once more.
func (m *move) moveOne(ctx context.Context, path string, dst objectstore.Location, o objectstore.Object) (objectstore.Object, error) {
	return m.fs.Committer.Rename(ctx, commit.Move{From: o, To: dst, Cond: objectstore.Cond{IfNoneMatch: true}, Path: path, Registered: true})
}

// moveBack undoes what moveAll did before it failed.
func (m *move) moveBack(ctx context.Context, objects, moved []objectstore.Object) error {
	var problems []error
	for i, o := range moved {
		if o.Key == "" {
			continue
		}
		if _, err := m.moveOne(ctx, "", objects[i].Location, o); err != nil {
			problems = append(problems, fmt.Errorf("%q stays at its new name: %w", o.Key, err))
			m.fs.View.Wrote(o)
		}
		m.fs.superseded(objects[i].Location)
	}
	return errors.Join(problems...)
}
