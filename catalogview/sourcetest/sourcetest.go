// Package sourcetest holds every catalogview.Source to its contract.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Table is one entry to be put into a catalog under test, in whatever form the
// catalog has: a Parquet table at Location with one int key "day", or with
// Broken an entry that cannot load.
type Table struct {
	Database, Name, Location string
	Broken                   bool
	// Keys are its keys in place of "day"; only where the catalog has partitions.
	Keys []table.Column
}

// Harness is a catalog that is empty at first.
type Harness struct {
	Source catalogview.Source
	// Create makes an empty database.
	Create func(t *testing.T, database string)
	// Put makes or replaces a table's entry; its database is there.
	Put func(t *testing.T, tab Table)
	// Drop removes a table's entry.
	Drop func(t *testing.T, database, name string)
	// PutPartition registers a partition of a table. nil: the catalog has no
	// partitions of its own.
	PutPartition func(t *testing.T, database, name string, values []string, location string)
	// LooseVersions: the catalog compares no versions, so that what two write at once may
	// both be taken. FixedPartitions: it changes no partition. LoosePartitions: it takes
	// those of a table that is not there.
	LooseVersions, FixedPartitions, LoosePartitions bool
}

// suite is one test over a catalog of its own.
type suite struct {
	t *testing.T
	h Harness
}

// Run runs the suite; each test gets a catalog of its own from makeHarness.
func Run(t *testing.T, makeHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(suite)
	}{
		{"Empty", suite.empty},
		{"Listings", suite.listings},
		{"Entries", suite.entries},
		{"Absent", suite.absent},
		{"BrokenFailsAlone", suite.broken},
		{"Changes", suite.changes},
		{"EarlyBreak", suite.earlyBreak},
		{"Cancelled", suite.cancelled},
		{"Concurrent", suite.concurrent},
		{"Partitions", suite.partitions},
		{"PartitionLines", suite.lines},
		{"PartitionsEndEarly", suite.partitionsEndEarly},
		{"Register", suite.register},
		{"RegisterAtOnce", suite.registerAtOnce},
		{"RegisterMany", suite.registerMany},
		{"Deregister", suite.deregister},
		{"PutTable", suite.putTable},
		{"PutTableAtOnce", suite.putTableAtOnce},
		{"DeleteTable", suite.deleteTable},
		{"SetFormat", suite.setFormat},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(suite{t, makeHarness(t)}) })
	}
}

func fill(t *testing.T, h Harness) {
	t.Helper()
	for _, db := range []string{"sales", "sales_old", "empty"} {
		h.Create(t, db)
	}
	h.Put(t, Table{Database: "sales", Name: "orders", Location: "data/orders"})
	h.Put(t, Table{Database: "sales", Name: "orders_old", Location: "data/orders_old"})
	h.Put(t, Table{Database: "sales", Name: "broken", Broken: true})
	h.Put(t, Table{Database: "sales_old", Name: "orders", Location: "data/other"})
}

func databases(t *testing.T, s catalogview.Source) []string {
	t.Helper()
	var names []string
	for d, err := range s.Databases(t.Context()) {
		if err != nil {
			t.Fatalf("Databases: %v", err)
		}
		if len(d.Raw.Bytes) == 0 || d.Raw.Size != int64(len(d.Raw.Bytes)) || d.Raw.ETag == "" {
			t.Errorf("Databases: entry of %s: %+v", d.Name, d.Raw)
		}
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

func tables(t *testing.T, s catalogview.Source, db string) []string {
	t.Helper()
	var names []string
	for tab, err := range s.Tables(t.Context(), db) {
		if err != nil {
			t.Fatalf("Tables(%s): %v", db, err)
		}
		if tab.Raw.Bytes != nil {
			t.Errorf("Tables(%s): %s has Bytes", db, tab.Name)
		}
		names = append(names, tab.Name)
	}
	slices.Sort(names)
	return names
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (s suite) empty() {
	t, h := s.t, s.h
	same(t, "Databases", databases(t, h.Source), nil)
	same(t, "Tables of none", tables(t, h.Source, "nope"), nil)
}

func (s suite) listings() {
	t, h := s.t, s.h
	fill(t, h)
	same(t, "Databases", databases(t, h.Source), []string{"empty", "sales", "sales_old"})
	same(t, "Tables(sales)", tables(t, h.Source, "sales"), []string{"broken", "orders", "orders_old"})
	same(t, "Tables(sales_old)", tables(t, h.Source, "sales_old"), []string{"orders"})
	same(t, "Tables(empty)", tables(t, h.Source, "empty"), nil)
}

func (s suite) entries() {
	t, h := s.t, s.h
	fill(t, h)
	ctx := t.Context()
	for d, err := range h.Source.Databases(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.Source.Database(ctx, d.Name)
		if err != nil || got.Name != d.Name || string(got.Raw.Bytes) != string(d.Raw.Bytes) || got.Raw.ETag != d.Raw.ETag {
			t.Errorf("Database(%s): got %+v, %v, listed %+v", d.Name, got, err, d)
		}
	}
	for info, err := range h.Source.Tables(ctx, "sales") {
		if err != nil {
			t.Fatal(err)
		}
		s.entry("sales", info)
	}
	tab, _, err := h.Source.Table(ctx, "sales", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	if tab.Kind != table.Hive || tab.Format != "parquet" || !tab.Writable || len(tab.Keys) != 1 || tab.Keys[0].Name != "day" ||
		!strings.HasSuffix(strings.TrimSuffix(tab.Location, "/"), "data/orders") {
		t.Errorf("Table(orders): %+v", tab)
	}
}

// entry checks that all methods tell the same of a table.
func (s suite) entry(db string, info catalogview.TableInfo) {
	ctx := s.t.Context()
	none, raw, err := s.h.Source.Table(ctx, db, info.Name, info.Raw.ETag)
	if err != nil || none != nil || raw.Bytes != nil || raw.ETag != info.Raw.ETag || raw.Size != info.Raw.Size {
		s.t.Errorf("Table(%s) of a known version: got %v, %+v, %v, listed %+v", info.Name, none, raw, err, info.Raw)
	}
	tab, full, err := s.h.Source.Table(ctx, db, info.Name, "")
	if err != nil || full.ETag != raw.ETag || full.Size != raw.Size || int64(len(full.Bytes)) != raw.Size {
		s.t.Errorf("Table(%s): entry %d bytes %+v, %v", info.Name, len(full.Bytes), full.ETag, err)
	}
	if tab.Database != db || tab.Name != info.Name {
		s.t.Errorf("Table(%s): is %s.%s", info.Name, tab.Database, tab.Name)
	}
}

func (s suite) absent() {
	t, h := s.t, s.h
	fill(t, h)
	ctx := t.Context()
	for _, name := range []string{"nope", "", ".", "..", "sales/orders", "sales\x00", "Sales", strings.Repeat("x", 300)} {
		if _, err := h.Source.Database(ctx, name); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("Database(%.20q): got %v, want ErrNotExist", name, err)
		}
		for _, known := range []string{"", "1"} {
			if _, _, err := h.Source.Table(ctx, "sales", name, known); !errors.Is(err, objectstore.ErrNotExist) {
				t.Errorf("Table(sales, %.20q, %q): got %v, want ErrNotExist", name, known, err)
			}
		}
		if _, _, err := h.Source.Table(ctx, name, "orders", ""); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("Table(%.20q, orders): got %v, want ErrNotExist", name, err)
		}
	}
}

func (s suite) broken() {
	t, h := s.t, s.h
	fill(t, h)
	tab, raw, err := h.Source.Table(t.Context(), "sales", "broken", "")
	if err != nil {
		t.Fatalf("Table(broken): %v", err)
	}
	if tab.Kind != table.Broken || tab.Reason == "" || tab.Class == table.ClassNone || len(raw.Bytes) == 0 {
		t.Errorf("Table(broken): %+v, %d bytes", tab, len(raw.Bytes))
	}
}

func (s suite) changes() {
	t, h := s.t, s.h
	fill(t, h)
	ctx := t.Context()
	_, before, err := h.Source.Table(ctx, "sales", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	h.Put(t, Table{Database: "sales", Name: "orders", Location: "data/moved"})
	tab, after, err := h.Source.Table(ctx, "sales", "orders", before.ETag)
	if err != nil || after.ETag == before.ETag || !strings.Contains(tab.Location, "data/moved") {
		t.Errorf("after Put: ETag %s to %s, location %q, %v", before.ETag, after.ETag, tab.Location, err)
	}
	h.Drop(t, "sales", "orders")
	if _, _, err = h.Source.Table(ctx, "sales", "orders", ""); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("after Drop: %v", err)
	}
	same(t, "after Drop", tables(t, h.Source, "sales"), []string{"broken", "orders_old"})
}

func (s suite) earlyBreak() {
	t, h := s.t, s.h
	fill(t, h)
	n := 0
	for _, err := range h.Source.Databases(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		n++
		break
	}
	for _, err := range h.Source.Tables(t.Context(), "sales") {
		if err != nil {
			t.Error(err)
		}
		n++
		break
	}
	if n != 2 {
		t.Errorf("got %d items, want 2", n)
	}
}

func (s suite) cancelled() {
	t, h := s.t, s.h
	fill(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, err := range h.Source.Databases(ctx) {
		last = err
	}
	if last == nil || errors.Is(last, objectstore.ErrNotExist) {
		t.Errorf("Databases: got %v, want an error that is not ErrNotExist", last)
	}
	last = nil
	for _, err := range h.Source.Tables(ctx, "sales") {
		last = err
	}
	if last == nil || errors.Is(last, objectstore.ErrNotExist) {
		t.Errorf("Tables: got %v, want an error that is not ErrNotExist", last)
	}
	if _, _, err := h.Source.Table(ctx, "sales", "orders", ""); err == nil || errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("Table: got %v, want an error that is not ErrNotExist", err)
	}
}

func (s suite) concurrent() {
	fill(s.t, s.h)
	var wg sync.WaitGroup
	failures := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := s.round(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		s.t.Error(err)
	}
}

// round reads a table and lists its database.
func (s suite) round() error {
	ctx := s.t.Context()
	if _, _, err := s.h.Source.Table(ctx, "sales", "orders", ""); err != nil {
		return fmt.Errorf("get a table: %w", err)
	}
	n := 0
	for _, err := range s.h.Source.Tables(ctx, "sales") {
		if err != nil {
			return fmt.Errorf("list tables: %w", err)
		}
		n++
	}
	if n != 3 {
		return fmt.Errorf("%d tables listed, want 3", n)
	}
	return nil
}
