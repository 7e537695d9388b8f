package mounttest

import (
	"errors"
	iofs "io/fs"
	"path"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// What other programs do with the lake's store, past the mount: the tests' view
// of what is published, and their part as a foreign writer. Names are those in
// the mount ("sales/orders/dt=1/f"), of tables at their usual location. A name
// that is not there is an error that is [io/fs.ErrNotExist]. All of it may be
// called concurrently.

// store is where a warehouse lies. Names are slash-separated, below its root.
type store interface {
	read(name string) (string, error)
	// names are those directly in dir, sorted. A folder has no names of a
	// directory that is not there; an object store cannot tell it from an empty one.
	names(dir string) ([]string, error)
	tree(dir string) (map[string]string, error) // all files below dir, by path below it
	info(name string) (StoredFile, error)
	put(name, content string) error // whole or not at all, replacing what is there
	remove(name string) error
	seed(files map[string]string) error // see Options.Files
}

// StoredFile is what the store says of one file.
type StoredFile struct {
	Size    int64
	ModTime time.Time
	ETag    string // tells versions apart; a folder's has inode, size and time
}

// dataName is the name below the root of the file that is at name in the mount.
func dataName(name string) string { return path.Join("_data", name) }

func manifestName(table string) string { return path.Join(table, "_sqe", "table.json") }

// Stored is the content of a file, whole.
func (l *Lake) Stored(name string) (string, error) { return l.store.read(dataName(name)) }

// StoredNames are the sorted names directly in dir. On a folder the directory
// must be there.
func (l *Lake) StoredNames(dir string) []string {
	l.t.Helper()
	names, err := l.store.names(dataName(dir))
	if err != nil {
		l.t.Errorf("names in the store: %v", err)
	}
	return names
}

// StoredInfo is what the store says of a file.
func (l *Lake) StoredInfo(name string) (StoredFile, error) { return l.store.info(dataName(name)) }

// StoredTree are all files below dir, by path below it.
func (l *Lake) StoredTree(dir string) (map[string]string, error) {
	return l.store.tree(dataName(dir))
}

// PutStored replaces a file, or makes it, as another program would: whoever
// looks sees the old content or the new one.
func (l *Lake) PutStored(name, content string) {
	l.t.Helper()
	if err := l.store.put(dataName(name), content); err != nil {
		l.t.Errorf("put into the store: %v", err)
	}
}

// RemoveStored removes a file as another program would.
func (l *Lake) RemoveStored(name string) {
	l.t.Helper()
	if err := l.store.remove(dataName(name)); err != nil {
		l.t.Errorf("remove from the store: %v", err)
	}
}

// StoredManifest is the manifest of a table ("sales/orders"), which must have one.
func (l *Lake) StoredManifest(table string) string {
	l.t.Helper()
	raw, err := l.store.read(manifestName(table))
	if err != nil {
		l.t.Fatalf("manifest in the store: %v", err)
	}
	return raw
}

// HasManifest tells whether the store has a manifest of the table.
func (l *Lake) HasManifest(table string) bool {
	l.t.Helper()
	_, err := l.store.info(manifestName(table))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		l.t.Fatalf("manifest in the store: %v", err)
	}
	return err == nil
}

// PutManifest replaces the manifest of a table, or makes it.
func (l *Lake) PutManifest(table, content string) {
	l.t.Helper()
	if err := l.store.put(manifestName(table), content); err != nil {
		l.t.Errorf("put a manifest into the store: %v", err)
	}
}

// AddTables makes further tables in the warehouse, as another program would.
func (l *Lake) AddTables(tables ...Table) {
	l.t.Helper()
	files, err := warehouse.Files(tables...)
	must(l.t, err)
	must(l.t, l.store.seed(files))
}
