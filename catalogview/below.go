package catalogview

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// below is a path at or below a table.
type below struct {
	*entry
	path  string
	comps []string // below the table
	// at is where the first components lead, tail are the rest: at is the table's
	// place, or that of the partition that the path lies in.
	at    place
	tail  []string
	other bool       // the catalog has the partition under another name
	part  *partition // registered or projected; its directory is at; nil: none
}

// below finds the table of a path of two components or more, and the partition.
// Errors: none, the table has no directory, it or the partition cannot be read.
func (v *View) below(ctx context.Context, comps []string) (below, error) {
	b, err := v.tableOf(ctx, comps)
	if err != nil {
		return b, err
	}
	return v.enter(ctx, b)
}

// tableOf is below without the partition: at is the table's place.
func (v *View) tableOf(ctx context.Context, comps []string) (below, error) {
	p := strings.Join(comps, "/")
	if _, err := v.getDatabase(ctx, comps[0]); err != nil {
		return below{}, err
	}
	e, err := v.getTable(ctx, comps[0], comps[1])
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return below{}, notExist(p)
	case err != nil && ctx.Err() != nil:
		return below{}, err
	case err != nil:
		e = unloaded(comps[0], comps[1], err)
	case !e.table.HasDirectory():
		return below{}, notExist(p)
	}
	b := below{entry: e, path: p, comps: comps[2:], at: e.place, tail: comps[2:]}
	return b, e.verdict()
}

// location of the path as a directory (Key "" or ending in "/").
func (b below) directory() objectstore.Location { return b.at.down(b.tail) }

// object is the location of the path as an object.
func (b below) object() objectstore.Location {
	loc := b.directory()
	loc.Key = strings.TrimSuffix(loc.Key, "/")
	return loc
}

// child is the path of a name in the directory b, where that is no partition.
func (b below) child(name string) below {
	b.path = join(b.path, name)
	b.comps = append(b.comps[:len(b.comps):len(b.comps)], name)
	b.tail = append(b.tail[:len(b.tail):len(b.tail)], name)
	b.part = nil
	return b
}

func (b below) base() string { return b.comps[len(b.comps)-1] }

// partitionLevels returns how many of the first n components are partitions;
// what is below one that is none is an ordinary tree. An error is rule 45's.
func (b below) partitionLevels(n int) (int, error) {
	for i, c := range b.comps[:n] {
		_, err := b.table.ParsePartition(c, i)
		switch {
		case errors.Is(err, table.ErrNotPartition):
			return i, nil
		case err != nil && b.table.Partitions == table.PartitionsOnDisk:
			return i, &VerdictError{
				Table: b.id() + "/" + strings.Join(b.comps[:i+1], "/"), Class: table.ClassBroken, Reason: err.Error(), Err: err,
			}
		}
	}
	return n, nil
}

// hidden says that the path is not data: some component of it is hidden.
func (b below) hidden() bool {
	partitions := true
	for i, c := range b.comps {
		if partitions && !b.table.HiddenAt(c, i) {
			if i < len(b.comps)-1 {
				_, err := b.table.ParsePartition(c, i)
				partitions = !errors.Is(err, table.ErrNotPartition)
			}
			continue
		}
		if table.Hidden(c) {
			return true
		}
	}
	return false
}

// unlisted says that a name in the directory b is never listed, though found.
func (v *View) unlisted(b below, name string) bool {
	return table.StagingTree(name) && !b.isPartition(name) || name == sqeDirectory && v.at.inSQE(b.at, append(b.tail[:len(b.tail):len(b.tail)], name))
}

// isPartition says that a name in the directory b is a partition.
func (b below) isPartition(name string) bool {
	n, err := b.partitionLevels(len(b.comps))
	return err == nil && n == len(b.comps) && n < len(b.table.Keys) && !b.table.HiddenAt(name, n)
}

func (b below) directoryNode(loc objectstore.Object) Node {
	return Node{
		Kind: KindDirectory, Path: b.path, Object: loc, ModTime: loc.ModTime,
		Table: b.table, Level: len(b.comps),
	}
}

func (b below) objectNode(o objectstore.Object) Node {
	return Node{
		Kind: KindObject, Path: b.path, Object: o, Size: o.Size, ETag: o.ETag, ModTime: o.ModTime,
		Table: b.table, Level: len(b.comps),
	}
}

// lookupBelow finds a name below a table: a directory wins over an object.
func (v *View) lookupBelow(ctx context.Context, b below) (Node, error) {
	if _, err := b.partitionLevels(len(b.comps) - 1); err != nil {
		return Node{}, err
	}
	for _, c := range b.comps {
		if c == controlName {
			return Node{}, notExist(b.path)
		}
	}
	if b.table.Partitions != table.PartitionsOnDisk {
		return v.lookupPartitioned(ctx, b)
	}
	return v.lookupStored(ctx, b)
}

// lookupStored finds what the store has at a path.
func (v *View) lookupStored(ctx context.Context, b below) (Node, error) {
	if v.trees {
		return v.lookupTree(ctx, b)
	}
	return v.lookupFlat(ctx, b, v.flat.find)
}

// lookupTree asks a store whose directories exist by themselves.
func (v *View) lookupTree(ctx context.Context, b below) (Node, error) {
	o, err := v.store.Stat(ctx, b.object())
	if err == nil {
		return v.objectOrMarker(b, o)
	}
	if !noObject(err) || errors.Is(err, objectstore.ErrHidden) {
		return Node{}, fmt.Errorf("look up %q: %w", b.path, err)
	}
	if errors.Is(err, objectstore.ErrDirectory) {
		d, err := v.store.Stat(ctx, b.directory())
		if err == nil {
			return b.directoryNode(d), nil
		}
		if !noObject(err) {
			return Node{}, fmt.Errorf("look up %q: %w", b.path, err)
		}
	}
	return v.lookupMarked(ctx, b)
}

type findFlat = func(ctx context.Context, dir objectstore.Location, name string) (answer, error)

// lookupFlat looks up in a store whose directories are prefixes.
func (v *View) lookupFlat(ctx context.Context, b below, find findFlat) (Node, error) {
	dir := b.at.down(b.tail[:len(b.tail)-1])
	a, err := find(ctx, dir, b.base())
	switch {
	case err != nil:
		return Node{}, fmt.Errorf("look up %q: %w", b.path, err)
	case a.is == isDirectory:
		return b.directoryNode(objectstore.Object{Location: b.directory(), ModTime: a.item.mtime}), nil
	case a.is == isObject:
		return v.objectOrMarker(b, a.item.object(dir))
	}
	return Node{}, notExist(b.path)
}

// askFlat asks a store whose directories are prefixes for a name. A directory
// wins over an object, and is there whatever the rights on the object are.
func (v *View) askFlat(ctx context.Context, dir objectstore.Location, name string) (answer, error) {
	file := dir
	file.Key += name
	dir.Key += name + "/"
	o, fileErr, there, dirErr := v.both(ctx, file, dir)
	if noObject(dirErr) {
		dirErr = nil
	}
	denied := errors.Is(dirErr, objectstore.ErrPermission) // nothing would be seen below
	switch {
	case there:
		return answer{is: isDirectory}, nil
	case dirErr != nil && !denied:
		return answer{}, dirErr
	case fileErr == nil:
		return answer{is: isObject, item: item{name: name, size: o.Size, etag: o.ETag, mtime: o.ModTime}}, nil
	case !noObject(fileErr):
		return answer{}, fileErr
	case denied:
		return answer{}, dirErr
	}
	return v.askMarker(ctx, file, name)
}

// askMarker asks for a directory that is there by its X_$folder$ alone.
func (v *View) askMarker(ctx context.Context, marker objectstore.Location, name string) (answer, error) {
	if len(name)+len(markerSuffix) > maxName {
		return answer{is: isAbsent}, nil
	}
	marker.Key += markerSuffix
	o, err := v.store.Stat(ctx, marker)
	switch {
	case err == nil && o.Size == 0:
		return answer{is: isDirectory, item: item{mtime: o.ModTime}}, nil
	case err == nil || noObject(err):
		return answer{is: isAbsent}, nil
	}
	return answer{}, err
}

// objectOrMarker: a zero-byte X_$folder$ is the directory X, and not itself.
func (v *View) objectOrMarker(b below, o objectstore.Object) (Node, error) {
	if isMarker(b.base(), o.Size) {
		return Node{}, notExist(b.path)
	}
	return b.objectNode(o), nil
}

func isMarker(name string, size int64) bool {
	return size == 0 && strings.HasSuffix(name, markerSuffix) && name != markerSuffix
}

// lookupMarked finds a directory that is there by its X_$folder$ alone.
func (v *View) lookupMarked(ctx context.Context, b below) (Node, error) {
	marker := b.object()
	marker.Key += markerSuffix
	if len(b.base())+len(markerSuffix) > maxName {
		return Node{}, notExist(b.path)
	}
	o, err := v.store.Stat(ctx, marker)
	switch {
	case err == nil && o.Size == 0:
		return b.directoryNode(objectstore.Object{Location: b.directory(), ModTime: o.ModTime}), nil
	case err == nil || noObject(err):
		return Node{}, notExist(b.path)
	}
	return Node{}, fmt.Errorf("look up %q: %w", b.path, err)
}

// Marker returns the zero-byte X_$folder$ of a directory X below a table, by
// which X is there whatever lies in it. ErrNotExist: it has none.
func (v *View) Marker(ctx context.Context, dir Node) (objectstore.Object, error) {
	loc := dir.Location()
	loc.Key = strings.TrimSuffix(loc.Key, "/") + markerSuffix
	if dir.Kind != KindDirectory || len(path.Base(loc.Key)) > maxName {
		return objectstore.Object{}, notExist(dir.Path + markerSuffix)
	}
	o, err := v.store.Stat(ctx, loc)
	switch {
	case err == nil && o.Size == 0:
		return o, nil
	case err == nil || noObject(err):
		return objectstore.Object{}, notExist(dir.Path + markerSuffix)
	}
	return objectstore.Object{}, fmt.Errorf("marker of %q: %w", dir.Path, err)
}
