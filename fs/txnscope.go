package fs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// clearing is an object that an overwrite removes.
type clearing struct {
	path   string
	object objectstore.Object
}

// cleared makes names and attributes follow what an overwrite removed, or may have.
func (t *transaction) cleared() {
	for _, c := range t.clear {
		t.fs.Attr.Delete(attrKey(c.object.Location))
		t.fs.vanished(c.path, c.object.Location)
		t.fs.superseded(c.object.Location)
		t.fs.dropSums(c.path)
		if len(t.fs.names.writersAt(c.path)) == 0 {
			t.fs.names.remove(c.path)
		}
	}
}

// dynamicOverwrite reports whether an overwrite of a table clears the partitions that it
// writes alone (rule 30).
func dynamicOverwrite(t *table.Table) bool {
	return len(t.Keys) > 0 && !strings.EqualFold(t.Parameters[table.DynamicOverwrite], "false")
}

// scope are the directories that an overwrite clears.
func (t *transaction) scope(ctx context.Context, scope string) ([]string, error) {
	n, err := t.fs.View.Lookup(ctx, t.table)
	if err != nil {
		return nil, err
	}
	switch scope = strings.Trim(scope, "/"); {
	case scope == "*":
		return []string{t.table}, nil
	case scope != "":
		return t.staticScope(ctx, n, scope)
	case !dynamicOverwrite(n.Table):
		return []string{t.table}, nil
	}
	written := make(map[string]struct{})
	for _, s := range t.files {
		if s.data {
			parts := strings.Split(s.path, "/")
			written[strings.Join(parts[:2+len(n.Table.Keys)], "/")] = struct{}{}
		}
	}
	return sortedKeys(written), nil
}

// staticScope is a prefix of partitions, as it is given. All files must lie in it.
func (t *transaction) staticScope(ctx context.Context, n catalogview.Node, scope string) ([]string, error) {
	for i, base := range strings.Split(scope, "/") {
		if i >= len(n.Table.Keys) || n.Table.HiddenAt(base, i) {
			return nil, fmt.Errorf("%q is no prefix of partitions: %w", scope, errInvalid)
		}
		if _, err := n.Table.ParsePartition(base, i); errors.Is(err, table.ErrNotPartition) {
			return nil, fmt.Errorf("%q is no prefix of partitions: %w", scope, errInvalid)
		}
	}
	dir := child(t.table, scope)
	if _, err := t.fs.View.Resolve(ctx, dir); err != nil {
		return nil, err
	}
	for _, s := range t.files {
		if !below(s.path, dir) {
			return nil, fmt.Errorf("%q: %w", s.path, errOutside)
		}
	}
	return []string{dir}, nil
}

// findCleared lists the data in the directories: what is hidden stays, and directories
// and staging trees do (rule 31). An overwrite that publishes nothing removes others'
// files for nothing in their place, and needs the level for that.
func (t *transaction) findCleared(ctx context.Context, dirs []string) error {
	need := WriteOverwrite
	if len(t.files) == 0 {
		need = WriteDelete
	}
	seen := make(map[objectstore.Location]bool)
	for _, dir := range dirs {
		t.fs.View.Refresh(dir)
		err := t.walk(ctx, dir, func(n catalogview.Node) error {
			if seen[n.Location()] {
				return nil
			}
			seen[n.Location()] = true
			if len(seen) > staging.MaxMembers {
				return fmt.Errorf("over %d files would be cleared: %w", staging.MaxMembers, objectstore.ErrTooLarge)
			}
			t.clear = append(t.clear, clearing{path: n.Path, object: n.Object})
			return t.fs.mayChange(n.Object, need)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// walk calls found with each data file in and below dir. A directory that is not there
// has none.
func (t *transaction) walk(ctx context.Context, dir string, found func(catalogview.Node) error) error {
	for n, err := range t.fs.View.ReadDir(ctx, dir) {
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		_, base := parent(n.Path)
		switch {
		case n.Table != nil && n.Table.HiddenAt(base, n.Level-1):
		case n.Kind == catalogview.KindDirectory:
			err = t.walk(ctx, n.Path, found)
		case n.Kind == catalogview.KindObject:
			err = found(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
