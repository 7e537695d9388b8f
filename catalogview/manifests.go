package catalogview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// sqeDirectory holds a table's manifest; manifestKey is its key below the table.
const (
	sqeDirectory = "_sqe"
	manifestKey  = sqeDirectory + "/table.json"
)

// Manifests is the Source of a root of JSON manifests (rule 41): each directory
// of the root that does not begin with "_" or "." is a database, a directory
// below it with _sqe/table.json a table: a broken one where that is anything but
// a regular file that can be reached without leaving the folder.
//
// Requests: a listing of databases is one List, of tables one List and a Stat a
// directory, [parallel] at a time; Database a List of one entry; Table a Stat
// and a Read, or the Read alone where the store is flat; of a known version the
// Stat first.
type Manifests struct {
	store   objectstore.Store
	root    objectstore.Location
	limits  table.Limits
	secrets []string
	// flat: what is there can be read without looking first, for it can be
	// nothing but an object.
	flat bool
}

var _ Source = (*Manifests)(nil)

// NewManifests returns the Source of the manifests under root (Key "" or
// ending in "/"). It asks the store nothing. Of o it takes Limits and Secrets.
func NewManifests(store objectstore.Store, root objectstore.Location, o Options) *Manifests {
	o = o.orDefault()
	_, trees := store.(objectstore.Directories)
	return &Manifests{store: store, root: root, limits: o.Limits, secrets: o.Secrets, flat: !trees}
}

func (m *Manifests) below(key string) objectstore.Location {
	return objectstore.Location{Bucket: m.root.Bucket, Key: m.root.Key + key}
}

// directories yields the names of the directories right below a prefix.
func (m *Manifests) directories(ctx context.Context, prefix objectstore.Location) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		for e, err := range m.store.List(ctx, prefix, objectstore.ListOptions{Delimiter: true}) {
			if err != nil {
				yield(objectstore.Object{}, err)
				return
			}
			name, ok := entryName(prefix.Key, e)
			if !ok || !e.Prefix || badName(name) {
				continue
			}
			o := e.Object
			o.Key = name
			if !yield(o, nil) {
				return
			}
		}
	}
}

// Databases is [Source]'s.
func (m *Manifests) Databases(ctx context.Context) iter.Seq2[Database, error] {
	return func(yield func(Database, error) bool) {
		for d, err := range m.directories(ctx, m.root) {
			if err != nil {
				yield(Database{}, fmt.Errorf("list databases: %w", err))
				return
			}
			if table.Hidden(d.Key) {
				continue
			}
			if !yield(m.database(d.Key, d.ModTime), nil) {
				return
			}
		}
	}
}

// Database is [Source]'s. Where the store does not let us see whether there is one
// there may be: who has rights on a table has them on it alone. A name like an
// entry's is not guessed.
func (m *Manifests) Database(ctx context.Context, name string) (Database, error) {
	if badName(name) || table.Hidden(name) {
		return Database{}, fmt.Errorf("database %q: %w", name, objectstore.ErrNotExist)
	}
	prefix := m.below(name + "/")
	for e, err := range m.store.List(ctx, prefix, objectstore.ListOptions{Delimiter: true, Limit: 1}) {
		if m.flat && errors.Is(err, objectstore.ErrPermission) && !strings.HasSuffix(name, entrySuffix) {
			d := m.database(name, time.Time{})
			d.Guessed = true
			return d, nil
		}
		if err != nil {
			return Database{}, fmt.Errorf("database %q: %w", name, err)
		}
		var mod time.Time
		if e.Key == prefix.Key {
			mod = e.ModTime
		}
		return m.database(name, mod), nil
	}
	return Database{}, fmt.Errorf("database %q: %w", name, objectstore.ErrNotExist)
}

// database makes the entry of a database: manifests have none.
func (m *Manifests) database(name string, mod time.Time) Database {
	var entry struct {
		Database struct {
			Name        string
			LocationURI string `json:"LocationUri"`
		}
	}
	entry.Database.Name = name
	entry.Database.LocationURI = uri(m.root) + name
	if strings.HasPrefix(m.root.Bucket, "/") { // a folder
		entry.Database.LocationURI = "file://" + strings.TrimSuffix(m.root.Bucket, "/") + "/" + m.root.Key + name
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(entry); err != nil {
		panic(err) // two strings always encode
	}
	return Database{Name: name, Raw: Raw{
		Bytes: b.Bytes(), Size: int64(b.Len()), ETag: hashTag(b.Bytes()), ModTime: mod,
	}}
}

func hashTag(b []byte) string {
	h := fnv.New64a()
	h.Write(b)
	return strconv.FormatUint(h.Sum64(), 16)
}

// Tables is [Source]'s.
func (m *Manifests) Tables(ctx context.Context, database string) iter.Seq2[TableInfo, error] {
	return func(yield func(TableInfo, error) bool) {
		if badName(database) || table.Hidden(database) {
			return
		}
		names, err := m.names(ctx, database)
		if err != nil {
			yield(TableInfo{}, fmt.Errorf("list tables of %q: %w", database, err))
			return
		}
		// Some at a time, so that a consumer that has enough ends it soon.
		for batch := range slices.Chunk(names, 4*parallel) {
			for _, t := range m.statAll(ctx, database, batch) {
				switch {
				case errors.Is(t.err, objectstore.ErrNotExist):
					continue
				case ctx.Err() != nil:
					yield(TableInfo{}, fmt.Errorf("list tables of %q: %w", database, context.Cause(ctx)))
					return
				}
				// A manifest that cannot be asked for fails alone, where it is loaded.
				if !yield(t.TableInfo, nil) {
					return
				}
			}
		}
	}
}

// names returns the directories of a database.
func (m *Manifests) names(ctx context.Context, database string) ([]string, error) {
	var names []string
	for d, err := range m.directories(ctx, m.below(database+"/")) {
		if err != nil {
			return nil, err
		}
		names = append(names, d.Key)
	}
	return names, nil
}

// asked is what a listing of tables learns of one.
type asked struct {
	TableInfo
	err error
}

// statAll asks for manifests in parallel; the order is that of names.
func (m *Manifests) statAll(ctx context.Context, database string, names []string) []asked {
	all := make([]asked, len(names))
	inParallel(len(names), func(i int) {
		all[i].Name = names[i]
		all[i].Raw, all[i].err = m.Stat(ctx, database, names[i])
	})
	return all
}

// Stat returns a table's entry without Bytes, by one Stat of the store.
func (m *Manifests) Stat(ctx context.Context, database, name string) (Raw, error) {
	o, err := m.stat(ctx, database, name)
	if fault := m.irregular(err, database, name); fault != "" {
		return faultRaw(fault), nil
	}
	if err != nil {
		return Raw{}, err
	}
	return m.rawOf(o), nil
}

func (m *Manifests) rawOf(o objectstore.Object) Raw {
	return Raw{Size: min(o.Size, m.limits.MaxBytes), ETag: o.ETag, ModTime: o.ModTime}
}

// mayBe says that a table can have the name.
func (m *Manifests) mayBe(database, name string) bool {
	return !badName(database) && !badName(name) && !table.Hidden(database) && name != sqeDirectory
}

func (m *Manifests) stat(ctx context.Context, database, name string) (objectstore.Object, error) {
	if !m.mayBe(database, name) {
		return objectstore.Object{}, fmt.Errorf("table %q: %w", database+"/"+name, objectstore.ErrNotExist)
	}
	o, err := m.store.Stat(ctx, m.below(database+"/"+name+"/"+manifestKey))
	if errors.Is(err, objectstore.ErrDirectory) {
		err = objectstore.ErrNotExist
	}
	if err != nil {
		return o, fmt.Errorf("manifest of %q: %w", database+"/"+name, err)
	}
	return o, nil
}

// Table is [Source]'s. Raw.Bytes are the manifest's, unchanged; of one over the
// cap the first bytes up to it. Whether a known version is still the one is a Stat.
func (m *Manifests) Table(ctx context.Context, database, name, known string) (*table.Table, Raw, error) {
	if known != "" {
		if raw, err := m.Stat(ctx, database, name); err != nil || raw.ETag == known {
			return nil, raw, err
		}
	}
	if m.flat {
		return m.whole(ctx, database, name)
	}
	const tries = 20 // it may be replaced between Stat and Read
	for try := 1; ; try++ {
		o, err := m.stat(ctx, database, name)
		if fault := m.irregular(err, database, name); fault != "" {
			return table.NewBroken(database, name, table.ClassBroken, "manifest: "+fault), faultRaw(fault), nil
		}
		if err != nil {
			return nil, Raw{}, err
		}
		raw := m.rawOf(o)
		_, raw.Bytes, err = m.read(ctx, o, raw.Size)
		if errors.Is(err, objectstore.ErrChanged) && try < tries {
			continue
		}
		if err != nil {
			return nil, Raw{}, fmt.Errorf("manifest of %q: %w", database+"/"+name, err)
		}
		return m.parse(database, name, o.Size, raw), raw, nil
	}
}

// whole is Table by one request: the answer tells of which version it is.
func (m *Manifests) whole(ctx context.Context, database, name string) (*table.Table, Raw, error) {
	if !m.mayBe(database, name) {
		return nil, Raw{}, fmt.Errorf("table %q: %w", database+"/"+name, objectstore.ErrNotExist)
	}
	loc := m.below(database + "/" + name + "/" + manifestKey)
	o, b, err := m.read(ctx, objectstore.Object{Location: loc}, m.limits.MaxBytes)
	if errors.Is(err, objectstore.ErrDirectory) {
		err = objectstore.ErrNotExist
	}
	if err != nil {
		return nil, Raw{}, fmt.Errorf("manifest of %q: %w", database+"/"+name, err)
	}
	raw := m.rawOf(o)
	raw.Bytes = b
	return m.parse(database, name, o.Size, raw), raw, nil
}

func (m *Manifests) parse(database, name string, size int64, raw Raw) *table.Table {
	if size > m.limits.MaxBytes {
		return table.TooLarge(database, name, size, m.limits)
	}
	return m.checkSecret(table.ParseManifest(database, name, raw.Bytes, m.limits))
}

// read returns the first n bytes of o, or all if it has fewer, and o as the
// answer has it.
func (m *Manifests) read(ctx context.Context, o objectstore.Object, n int64) (objectstore.Object, []byte, error) {
	if n == 0 {
		return o, nil, nil
	}
	o, body, err := m.store.Read(ctx, o, 0, n)
	if err != nil {
		return o, nil, err
	}
	b := make([]byte, min(n, o.Size))
	_, err = io.ReadFull(body, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return o, b, errors.Join(err, body.Close())
}

// Partitions is [Source]'s: manifests hold no partitions (rule 54).
func (m *Manifests) Partitions(context.Context, *table.Table, []string) iter.Seq2[table.Partition, error] {
	return func(func(table.Partition, error) bool) {}
}

// Partition is [Source]'s.
func (m *Manifests) Partition(_ context.Context, t *table.Table, values []string) (table.Partition, Raw, error) {
	return table.Partition{}, Raw{}, fmt.Errorf("partition %q of %q: %w", values, t.Database+"/"+t.Name, objectstore.ErrNotExist)
}

// PartitionLines is [Source]'s.
func (m *Manifests) PartitionLines(context.Context, *table.Table) iter.Seq2[[]byte, error] {
	return func(func([]byte, error) bool) {}
}

// Register is [Source]'s: a no-op (rule 54).
func (m *Manifests) Register(_ context.Context, _ *table.Table, all []NewPartition) []Registered {
	done := make([]Registered, len(all))
	for i, p := range all {
		done[i].Location = p.Location
	}
	return done
}

// Deregister is [Source]'s: a no-op, for the directories are the partitions.
func (m *Manifests) Deregister(context.Context, *table.Table, []string) error { return nil }

// checkSecret: rule 54.
func (m *Manifests) checkSecret(t *table.Table) *table.Table {
	if t.Secret == "" || slices.Contains(m.secrets, t.Secret) {
		return t
	}
	return table.NewBroken(t.Database, t.Name, table.ClassBroken,
		fmt.Sprintf("manifest: sqe.secret names %.200q, which is no profile of the settings", t.Secret))
}
