package fs

import (
	"context"
	"errors"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Others' staging trees lie in the store's directories, and no listing shows them: a
// directory with nothing else is empty to a program, and nothing of them may go. So its
// rmdir answers 0, as that of a table does, and the directory stays: rm -r would fail
// after it removed all files, and with it the job that overwrites a partition.

// bare is ErrNotEmpty if something lies in the store's directory dir that a listing
// shows: anything but own, its marker "p/", others' staging trees, and directories with
// nothing but such trees in them. trees reports whether there are any.
func (f *FS) bare(ctx context.Context, dir objectstore.Location) (own []objectstore.Object, trees bool, err error) {
	for e, err := range f.Store.List(ctx, dir, objectstore.ListOptions{Delimiter: true}) {
		switch {
		case err != nil:
			return nil, false, err
		case e.Key == dir.Key && !e.Prefix && e.Size == 0:
			own = append(own, e.Object)
			continue
		case !e.Prefix:
			return nil, false, objectstore.ErrNotEmpty
		}
		if table.StagingTree(baseIn(dir, e)) {
			trees = true
			continue
		}
		_, within, err := f.bare(ctx, e.Location)
		if err == nil && !within {
			err = objectstore.ErrNotEmpty // an empty directory, which is listed
		}
		if err != nil {
			return nil, false, err
		}
		trees = true
	}
	return own, trees, nil
}

// baseIn is the name of what a listing of dir has.
func baseIn(dir objectstore.Location, e objectstore.Entry) string {
	return strings.TrimSuffix(strings.TrimPrefix(e.Key, dir.Key), "/")
}

// tableBare is ErrNotEmpty if a table shows anything but directories in which nothing is
// but others' staging trees.
func (f *FS) tableBare(ctx context.Context, path string) error {
	for n, err := range f.View.ReadDir(ctx, path) {
		if err == nil && (n.Kind != catalogview.KindDirectory || n.Registered) {
			err = objectstore.ErrNotEmpty
		}
		if err != nil {
			return err
		}
		_, trees, err := f.bare(ctx, n.Location())
		if errors.Is(err, objectstore.ErrNotExist) {
			continue // gone meanwhile
		}
		if err == nil && !trees {
			err = objectstore.ErrNotEmpty
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteUnlessTrees removes an empty directory of a store that has directories. With
// others' staging trees in it, it stays.
func (f *FS) deleteUnlessTrees(ctx context.Context, n catalogview.Node) error {
	err := f.deleteDirectory(ctx, n)
	if !errors.Is(err, objectstore.ErrNotEmpty) {
		return err
	}
	if _, trees, failed := f.bare(ctx, n.Location()); failed == nil && trees {
		return nil
	}
	return err
}
