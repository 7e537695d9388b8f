package catalogview

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// fakeCatalog is a catalog of one database "db" with tables and partitions of its
// own, which counts what it is asked.
type fakeCatalog struct {
	mu         sync.Mutex
	tables     map[string]*table.Table
	partitions map[string]map[string]table.Partition // table, valuesKey
	counts     map[string]int
	prefixes   [][]string // of the listings of partitions
	// on is called before each answer, without the lock; an error is the answer.
	on func(ctx context.Context, op string) error
	// elsewhere: another registers this location first.
	elsewhere string
}

var _ Source = (*fakeCatalog)(nil)

func newFakeCatalog() *fakeCatalog {
	return &fakeCatalog{tables: map[string]*table.Table{}, partitions: map[string]map[string]table.Partition{}, counts: map[string]int{}}
}

// table puts a table in; keys are "name:type".
func (c *fakeCatalog) table(name, location string, keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &table.Table{
		Database: "db", Name: name, Kind: table.Hive, Format: "parquet", InputFormat: "P", Location: location,
		NullName: table.HiveNull, Readable: true, Writable: true,
	}
	for _, k := range keys {
		key, typ, _ := strings.Cut(k, ":")
		t.Keys = append(t.Keys, table.Column{Name: key, Type: typ})
		t.Partitions = table.PartitionsInCatalog
	}
	c.tables[name] = t
	c.partitions[name] = map[string]table.Partition{}
}

// partition registers one.
func (c *fakeCatalog) partition(name, location string, values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partitions[name][valuesKey(values)] = table.Partition{Values: values, Location: location, Format: "parquet", InputFormat: "P"}
}

func (c *fakeCatalog) ask(ctx context.Context, op string) error {
	c.mu.Lock()
	c.counts[op]++
	on := c.on
	c.mu.Unlock()
	if on != nil {
		if err := on(ctx, op); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *fakeCatalog) setOn(on func(ctx context.Context, op string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = on
}

// requests runs f and returns how many requests of each kind came meanwhile.
func (c *fakeCatalog) requests(f func()) map[string]int {
	c.mu.Lock()
	c.counts = map[string]int{}
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func fakeRaw(text string) Raw {
	return Raw{Bytes: []byte(text), Size: int64(len(text)), ETag: hashTag([]byte(text))}
}

func (c *fakeCatalog) Databases(ctx context.Context) iter.Seq2[Database, error] {
	return func(yield func(Database, error) bool) {
		d, err := c.Database(ctx, "db")
		yield(d, err)
	}
}

func (c *fakeCatalog) Database(_ context.Context, name string) (Database, error) {
	if name != "db" {
		return Database{}, objectstore.ErrNotExist
	}
	return Database{Name: "db", Raw: fakeRaw("{}")}, nil
}

func (c *fakeCatalog) Tables(ctx context.Context, _ string) iter.Seq2[TableInfo, error] {
	return func(yield func(TableInfo, error) bool) {
		if err := c.ask(ctx, "tables"); err != nil {
			yield(TableInfo{}, err)
			return
		}
		c.mu.Lock()
		all := maps.Clone(c.tables)
		c.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			raw := fakeRaw(fmt.Sprint(name, all[name].Location))
			raw.Bytes = nil
			if !yield(TableInfo{Name: name, Raw: raw, Table: all[name]}, nil) {
				return
			}
		}
	}
}

func (c *fakeCatalog) Table(ctx context.Context, _, name, known string) (*table.Table, Raw, error) {
	if err := c.ask(ctx, "table"); err != nil {
		return nil, Raw{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[name]
	if t == nil {
		return nil, Raw{}, objectstore.ErrNotExist
	}
	raw := fakeRaw(fmt.Sprint(name, t.Location))
	if raw.ETag == known {
		return nil, raw, nil
	}
	return t, raw, nil
}

func (c *fakeCatalog) Partitions(ctx context.Context, t *table.Table, prefix []string) iter.Seq2[table.Partition, error] {
	return func(yield func(table.Partition, error) bool) {
		c.mu.Lock()
		all := maps.Clone(c.partitions[t.Name])
		c.prefixes = append(c.prefixes, prefix)
		c.mu.Unlock()
		if err := c.ask(ctx, "partitions"); err != nil {
			yield(table.Partition{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if hasPrefix(all[key].Values, prefix) && !yield(all[key], nil) {
				return
			}
		}
	}
}

func (c *fakeCatalog) Partition(ctx context.Context, t *table.Table, values []string) (table.Partition, Raw, error) {
	if err := c.ask(ctx, "partition"); err != nil {
		return table.Partition{}, Raw{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.partitions[t.Name][valuesKey(values)]
	if !ok {
		return p, Raw{}, objectstore.ErrNotExist
	}
	return p, fakeRaw(fmt.Sprintf("%q", values)), nil
}

func (c *fakeCatalog) PartitionLines(ctx context.Context, t *table.Table) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for p, err := range c.Partitions(ctx, t, nil) {
			if !yield(fmt.Appendf(nil, "%q", p.Values), err) {
				return
			}
		}
	}
}

// Register is one request for a hundred.
func (c *fakeCatalog) Register(ctx context.Context, t *table.Table, all []NewPartition) []Registered {
	var done []Registered
	for chunk := range slices.Chunk(all, 100) {
		err := c.ask(ctx, "register")
		for _, p := range chunk {
			done = append(done, Registered{Location: c.registerOne(t, p, err), Err: err})
		}
	}
	return done
}

func (c *fakeCatalog) registerOne(t *table.Table, p NewPartition, failed error) string {
	if failed != nil {
		return ""
	}
	if c.elsewhere != "" {
		p.Location = c.elsewhere
	}
	c.mu.Lock()
	old, there := c.partitions[t.Name][valuesKey(p.Values)]
	c.mu.Unlock()
	if there {
		return old.Location
	}
	c.partition(t.Name, p.Location, p.Values...)
	return p.Location
}

func (c *fakeCatalog) Deregister(ctx context.Context, t *table.Table, values []string) error {
	if err := c.ask(ctx, "deregister"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.partitions[t.Name], valuesKey(values))
	return nil
}

func (c *fakeCatalog) PutTable(context.Context, string, string, EntryWrite) (*table.Table, Raw, error) {
	return nil, Raw{}, errors.ErrUnsupported
}

func (c *fakeCatalog) DeleteTable(context.Context, string, string, string) error {
	return errors.ErrUnsupported
}

func (c *fakeCatalog) SetFormat(context.Context, *table.Table, []string, table.FormatChange) error {
	return errors.ErrUnsupported
}

// catalogView is the view of an empty fake catalog over an empty store of plain keys,
// whatever the bucket.
func catalogView(t *testing.T, change func(*Options)) (*View, *fakeCatalog, *pageStore) {
	t.Helper()
	c, s := newFakeCatalog(), newPageStore()
	o := Options{Rootless: true, Register: true}
	if change != nil {
		change(&o)
	}
	v := NewView(c, s, o)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v, c, s
}
