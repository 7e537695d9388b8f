package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// entryOf is the entry of sales.orders, with some text replaced, and its version.
func (s suite) entryOf(replace ...string) (entry []byte, etag string) {
	s.t.Helper()
	_, raw, err := s.h.Source.Table(s.t.Context(), "sales", "orders", "")
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(raw.Bytes))
	if len(replace) > 0 && text == string(raw.Bytes) {
		s.t.Fatalf("the entry has nothing of %q:\n%s", replace, text)
	}
	return []byte(text), raw.ETag
}

func (s suite) putTable() {
	t, src, ctx := s.t, s.h.Source, s.t.Context()
	fill(t, s.h)
	entry, etag := s.entryOf("data/orders", "data/elsewhere")
	refusal := errors.New("refused")
	var asked *table.Table
	refuse := func(_ context.Context, tab *table.Table) error {
		asked = tab
		return refusal
	}
	for what, c := range map[string]struct {
		w    catalogview.EntryWrite
		name string
		want error
	}{
		"of another version": {catalogview.EntryWrite{Entry: entry, Base: "another"}, "orders", objectstore.ErrChanged},
		"new, and there":     {catalogview.EntryWrite{Entry: entry}, "orders", objectstore.ErrExist},
		"not accepted":       {catalogview.EntryWrite{Entry: entry, Base: etag, Accept: refuse}, "orders", refusal},
		"not there":          {catalogview.EntryWrite{Entry: bytes.ReplaceAll(entry, []byte(`"orders"`), []byte(`"orders_none"`)), Base: etag}, "orders_none", objectstore.ErrChanged},
		"no JSON":            {catalogview.EntryWrite{Entry: entry[:len(entry)/2], Base: etag}, "orders", catalogview.ErrEntry},
		"of another table":   {catalogview.EntryWrite{Entry: entry}, "orders_new", catalogview.ErrEntry},
	} {
		if _, _, err := src.PutTable(ctx, "sales", c.name, c.w); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
	if asked == nil || !strings.Contains(asked.Location, "data/elsewhere") {
		t.Errorf("asked about %+v", asked)
	}
	if _, now := s.entryOf(); now != etag {
		t.Error("a write that was refused changed the entry")
	}
	tab, raw, err := src.PutTable(ctx, "sales", "orders", catalogview.EntryWrite{Entry: entry, Base: etag})
	if err != nil || !strings.Contains(tab.Location, "data/elsewhere") || raw.ETag == etag || len(raw.Bytes) == 0 {
		t.Fatalf("PutTable: %+v, %+v, %v", tab, raw, err)
	}
	if after, now := s.entryOf(); now != raw.ETag || !bytes.Equal(after, raw.Bytes) {
		t.Errorf("the entry is %q, PutTable returned %q", now, raw.ETag)
	}
	fresh, _ := s.entryOf(`"orders"`, `"orders_new"`)
	if tab, _, err = src.PutTable(ctx, "sales", "orders_new", catalogview.EntryWrite{Entry: fresh}); err != nil || tab.Name != "orders_new" {
		t.Fatalf("PutTable of a new one: %+v, %v", tab, err)
	}
	same(t, "Tables(sales)", tables(t, src, "sales"), []string{"broken", "orders", "orders_new", "orders_old"})

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err = src.PutTable(ended, "sales", "orders", catalogview.EntryWrite{Entry: entry, Base: raw.ETag}); !errors.Is(err, context.Canceled) {
		t.Errorf("PutTable of a caller who left: %v", err)
	}
}

// putTableAtOnce: of many writers that replace one version, one succeeds.
func (s suite) putTableAtOnce() {
	if s.h.LooseVersions {
		s.t.Skip("the catalog compares no versions")
	}
	fill(s.t, s.h)
	_, etag := s.entryOf()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	entries := make([][]byte, len(errs))
	for i := range entries {
		entries[i], _ = s.entryOf("data/orders", "data/writer"+string(rune('a'+i)))
	}
	for i, entry := range entries {
		wg.Go(func() {
			_, _, errs[i] = s.h.Source.PutTable(s.t.Context(), "sales", "orders", catalogview.EntryWrite{Entry: entry, Base: etag})
		})
	}
	wg.Wait()
	good := 0
	for i, err := range errs {
		switch {
		case err == nil:
			good++
			s.entryOf("data/writer"+string(rune('a'+i)), "it is the one that is there")
		case !errors.Is(err, objectstore.ErrChanged):
			s.t.Errorf("writer %d: %v, want ErrChanged", i, err)
		}
	}
	if good != 1 {
		s.t.Errorf("%d writers of one version succeeded", good)
	}
}

func (s suite) deleteTable() {
	t, src, ctx := s.t, s.h.Source, s.t.Context()
	fill(t, s.h)
	_, etag := s.entryOf()
	for _, c := range []struct {
		name, base string
		want       error
	}{
		{"orders", "another", objectstore.ErrChanged},
		{"orders", etag, nil},
		{"orders", etag, objectstore.ErrNotExist},
		{"orders", "", objectstore.ErrNotExist},
		{"orders_old", "", nil},
		{"broken", "", nil},
	} {
		if err := src.DeleteTable(ctx, "sales", c.name, c.base); !errors.Is(err, c.want) {
			t.Errorf("DeleteTable(%s, %q): got %v, want %v", c.name, c.base, err, c.want)
		}
	}
	same(t, "Tables(sales)", tables(t, src, "sales"), nil)
}

func (s suite) setFormat() {
	t, src, ctx := s.t, s.h.Source, s.t.Context()
	tab := s.partitioned()
	avro, err := table.ParseFormatChange("AVRO")
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"7", "eu"}
	err = src.SetFormat(ctx, tab, values, avro)
	switch {
	case s.h.PutPartition == nil:
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("SetFormat of a partition: %v, want ErrUnsupported", err)
		}
	case s.h.FixedPartitions:
	case err != nil:
		t.Error(err)
	default:
		var p table.Partition
		if p, _, err = src.Partition(ctx, tab, values); err != nil || p.Format != "avro" || p.Location != place(0) {
			t.Errorf("the partition is %+v, %v", p, err)
		}
		if p, _, err = src.Partition(ctx, tab, []string{"7", "us west"}); err != nil || p.Format != "parquet" {
			t.Errorf("its neighbour is %+v, %v", p, err)
		}
		if err = src.SetFormat(ctx, tab, []string{"70", "eu"}, avro); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("SetFormat of no partition: %v, want ErrNotExist", err)
		}
	}
	orc, err := table.ParseFormatChange("ORC")
	if err != nil {
		t.Fatal(err)
	}
	before := s.listed(tab)
	if err = src.SetFormat(ctx, tab, nil, orc); err != nil {
		t.Fatal(err)
	}
	now, _, err := src.Table(ctx, tab.Database, tab.Name, "")
	if err != nil || now.Format != "orc" || now.Location != tab.Location || len(now.Keys) != len(tab.Keys) {
		t.Errorf("the table is %+v, %v", now, err)
	}
	same(t, "Partitions", s.listed(now), before)
	if err = src.SetFormat(ctx, &table.Table{Database: "sales", Name: "nope"}, nil, orc); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("SetFormat of no table: %v, want ErrNotExist", err)
	}
}
