package catalogview

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// maxProjected bounds how many values of a projected key are listed.
const maxProjected = 10_000

// partitions sends the partitions of a directory of partitions, and settles which
// directories of the store are not to be shown beside them.
func (l *lister) partitions(ctx context.Context) error {
	b := l.b
	if b.part != nil || len(b.comps) >= len(b.table.Keys) {
		return nil
	}
	switch b.table.Partitions {
	case table.PartitionsInCatalog:
		return l.registered(ctx)
	case table.PartitionsProjected:
		return l.projected(ctx)
	}
	return nil
}

// registered sends the partitions that the catalog has. Not shown beside them are
// directories with partitions in them, and unless they are to be discovered those
// that would be partitions by their names.
func (l *lister) registered(ctx context.Context) error {
	b := l.b
	level := len(b.comps)
	values, ok := b.values(level)
	for n := level; !ok; { // a directory of the store, with no partitions of the catalog's
		n--
		values, ok = b.values(n)
	}
	list, err := l.v.partitionsOf(ctx, b.entry, values)
	if err != nil {
		return fmt.Errorf("list %q: %w", b.path, err)
	}
	l.count.listed = list
	names, ways := make(map[string]bool), make(map[string]bool)
	l.here = make(map[string]bool)
	dir := b.directory()
	list.each(func(p table.Partition) bool {
		q := l.v.settle(b.entry, p)
		way := wayTo(dir, q)
		if way != "" {
			ways[way] = true
		}
		if len(values) == level && hasPrefix(p.Values, values) && hasPrefix(q.names, b.comps) {
			if l.v.leaves(b.entry, q) {
				ways[q.names[level]] = true
				return true
			}
			err = l.partition(q, names)
			if level == len(b.table.Keys)-1 && way == q.names[level] {
				l.here[way] = true
			}
		}
		return err == nil
	})
	l.skip = func(name string) bool {
		switch {
		case names[name], ways[name]:
			return true
		case l.ordinary(name), l.v.o.Discover:
			return false
		}
		l.count.unregistered = append(l.count.unregistered, name)
		return true
	}
	return err
}

// countEmpty counts the partitions that are to lie right here, where the store has no
// directory. The store has been listed.
func (l *lister) countEmpty() {
	for name := range l.here {
		if _, there := l.dirs[maphash.String(l.seed, name)]; !there {
			l.count.empty = append(l.count.empty, name)
		}
	}
	slices.Sort(l.count.empty)
}

// ordinary says that a directory is no partition by its name.
func (l *lister) ordinary(name string) bool {
	_, err := l.b.table.ParsePartition(name, len(l.b.comps))
	return errors.Is(err, table.ErrNotPartition)
}

// partition sends the directory that leads to a partition, if it is the first of
// its name.
func (l *lister) partition(p *partition, names map[string]bool) error {
	level := len(l.b.comps)
	name := p.names[level]
	if names[name] {
		return nil
	}
	names[name] = true
	l.found = true
	if badName(name) {
		l.count.unreachable++
		return nil
	}
	c := l.b.child(name)
	if level == len(l.b.table.Keys)-1 {
		c.part, c.at, c.tail = p, p.place, nil
	}
	return l.send(c.partitionNode())
}

// wayTo returns the name in a directory that leads to a partition's location; ""
// where that does not lie in it.
func wayTo(dir objectstore.Location, p *partition) string {
	if p.refused != nil || p.place.Bucket != dir.Bucket {
		return ""
	}
	rest, ok := strings.CutPrefix(p.place.Key, dir.Key)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// projected sends the values of a key that is projected. With a template no
// directory of the table's own location is a partition; else those are that are in
// range.
func (l *lister) projected(ctx context.Context) error {
	b, now := l.b, l.v.o.Now()
	level := len(b.comps)
	values, ok := b.values(level)
	if !ok || !b.inRange(values, now) {
		return nil
	}
	p := b.table.Projection
	l.skip = func(name string) bool {
		if l.ordinary(name) {
			return p.Templated() && !table.Hidden(name)
		}
		value, ok := b.table.PartitionText(name, level)
		if ok && !p.Templated() && p.InRange(level, value, now) {
			return false
		}
		l.count.unregistered = append(l.count.unregistered, name)
		return true
	}
	if !p.Templated() {
		return nil
	}
	l.found = true
	all, total := p.Values(level, maxProjected, now)
	l.count.injected = total < 0
	l.count.unlisted = max(0, total-maxProjected)
	for value := range all {
		name := b.table.PartitionName(value, level)
		if badName(name) {
			l.count.unreachable++
			continue
		}
		n := b.child(name).partitionNode()
		if level == len(b.table.Keys)-1 {
			part, err := l.v.partition(ctx, b.entry, append(values[:level:level], value))
			if err != nil {
				continue // it went out of range just now
			}
			c := b.child(name)
			c.part, c.at, c.tail = part, part.place, nil
			n = c.partitionNode()
		}
		if err := l.send(n); err != nil {
			return err
		}
	}
	return nil
}

// noFile refuses a table's location that is a file, where that was not looked for
// when the table was loaded.
func (v *View) noFile(ctx context.Context, b below) error {
	if !v.o.Rootless || b.place.Key == "" {
		return nil
	}
	fault, err := v.noDirectory(ctx, b.place)
	if err != nil || fault == "" {
		return err
	}
	return &VerdictError{
		Table: b.id(), Class: table.ClassBroken,
		Reason: fmt.Sprintf("location %.300q %s", maskUserinfo(b.table.Location), fault),
	}
}

// noPartitionFile refuses a registered partition whose location is a file. Nothing lies
// below it.
func (v *View) noPartitionFile(ctx context.Context, b below) error {
	file := objectstore.Location{Bucket: b.at.Bucket, Key: strings.TrimSuffix(b.at.Key, "/")}
	if v.trees || b.part.Location == "" || file.Key == "" || strings.HasSuffix(file.Key, "/") {
		return nil
	}
	_, err := v.store.Stat(ctx, file)
	switch {
	case err == nil:
		return &VerdictError{
			Table: b.path, Class: table.ClassBroken,
			Reason: fmt.Sprintf("location %.300q is a file", maskUserinfo(b.part.Location)),
		}
	case noObject(err), errors.Is(err, objectstore.ErrPermission), errors.Is(err, objectstore.ErrNoBucket):
		return nil
	}
	return fmt.Errorf("location of %q: %w", b.path, err)
}
