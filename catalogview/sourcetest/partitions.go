package sourcetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// registered are the partitions of the table that partitioned makes, whose
// location is "data/N" by their place here.
func registered() [][]string {
	return [][]string{
		{"7", "eu"},
		{"7", "us west"},
		{"07", "eu"},
		{"8", "it's"},
		{"8", `a/b\'c=d%`},
		{"8", "é\u2028"},
		{"8", "EU"},
		{"9", table.HiveNull},
		{"9", "null"},
		{"9", ""},
		{table.HiveNull, "eu"},
	}
}

func place(i int) string { return fmt.Sprintf("s3://bucket/data/%d", i) }

// partitioned is a table with the partitions of registered, or where the catalog
// has none without.
func (s suite) partitioned() *table.Table {
	t, h := s.t, s.h
	fill(t, h)
	if h.PutPartition != nil {
		h.Put(t, Table{Database: "sales", Name: "days", Location: "s3://bucket/days", Keys: []table.Column{
			{Name: "day", Type: "int"}, {Name: "region", Type: "string"},
		}})
		for i, values := range registered() {
			h.PutPartition(t, "sales", "days", values, place(i))
		}
	}
	name := "days"
	if h.PutPartition == nil {
		name = "orders"
	}
	tab, _, err := h.Source.Table(t.Context(), "sales", name, "")
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// listed is what Partitions yields, sorted, each as values and location.
func (s suite) listed(tab *table.Table, prefix ...string) []string {
	s.t.Helper()
	var got []string
	for p, err := range s.h.Source.Partitions(s.t.Context(), tab, prefix) {
		if err != nil {
			s.t.Fatalf("Partitions(%q): %v", prefix, err)
		}
		got = append(got, fmt.Sprintf("%q at %s", p.Values, p.Location))
	}
	slices.Sort(got)
	return got
}

func (s suite) partitions() {
	tab := s.partitioned()
	ctx := s.t.Context()
	if s.h.PutPartition == nil {
		same(s.t, "Partitions", s.listed(tab), nil)
		if _, _, err := s.h.Source.Partition(ctx, tab, []string{"7"}); !errors.Is(err, objectstore.ErrNotExist) {
			s.t.Errorf("Partition: got %v, want ErrNotExist", err)
		}
		return
	}
	for _, prefix := range [][]string{nil, {"7"}, {"07"}, {"8"}, {"9"}, {table.HiveNull}, {"10"}, {""}, {"x"}, {"7", "eu"}, {"8", "it's"}, {"9", ""}} {
		same(s.t, fmt.Sprintf("Partitions(%q)", prefix), s.listed(tab, prefix...), below(prefix))
	}
	for i, values := range registered() {
		s.partition(tab, values, place(i))
	}
	for _, values := range [][]string{{"7", "EU"}, {"7", "us"}, {"10", "eu"}, {"7"}, {}, {"7", "eu", "x"}, {"7", "eu\x00"}} {
		if p, _, err := s.h.Source.Partition(ctx, tab, values); !errors.Is(err, objectstore.ErrNotExist) {
			s.t.Errorf("Partition(%q): got %+v, %v, want ErrNotExist", values, p, err)
		}
	}
}

// below is what listed should be.
func below(prefix []string) []string {
	var want []string
	for i, values := range registered() {
		if slices.Equal(values[:len(prefix)], prefix) {
			want = append(want, fmt.Sprintf("%q at %s", values, place(i)))
		}
	}
	slices.Sort(want)
	return want
}

// partition checks one partition and its entry.
func (s suite) partition(tab *table.Table, values []string, location string) {
	p, raw, err := s.h.Source.Partition(s.t.Context(), tab, values)
	if err != nil || !slices.Equal(p.Values, values) || p.Location != location {
		s.t.Errorf("Partition(%q): got %+v, %v, want it at %s", values, p, err, location)
		return
	}
	var entry struct{ Partition struct{ Values []string } }
	err = json.Unmarshal(raw.Bytes, &entry)
	if err != nil || !slices.Equal(entry.Partition.Values, values) || raw.Size != int64(len(raw.Bytes)) || raw.ETag == "" || !bytes.HasSuffix(raw.Bytes, []byte("\n")) {
		s.t.Errorf("Partition(%q): entry %+v, %v:\n%s", values, raw, err, raw.Bytes)
	}
}

func (s suite) lines() {
	tab := s.partitioned()
	var got, want []string
	for line, err := range s.h.Source.PartitionLines(s.t.Context(), tab) {
		if err != nil {
			s.t.Fatal(err)
		}
		var entry struct{ Values []string }
		if err := json.Unmarshal(line, &entry); err != nil || bytes.Contains(line, []byte("\n")) {
			s.t.Errorf("line %q: %v", line, err)
		}
		got = append(got, fmt.Sprintf("%q", entry.Values))
	}
	if s.h.PutPartition != nil {
		for _, values := range registered() {
			want = append(want, fmt.Sprintf("%q", values))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	same(s.t, "PartitionLines", got, want)
}

func (s suite) partitionsEndEarly() {
	tab := s.partitioned()
	if s.h.PutPartition == nil {
		return
	}
	for _, err := range s.h.Source.Partitions(s.t.Context(), tab, nil) {
		if err != nil {
			s.t.Error(err)
		}
		break
	}
	for _, err := range s.h.Source.PartitionLines(s.t.Context(), tab) {
		if err != nil {
			s.t.Error(err)
		}
		break
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	wrong := func(method string, err error) {
		if err == nil || errors.Is(err, objectstore.ErrNotExist) {
			s.t.Errorf("%s: got %v, want an error that is not ErrNotExist", method, err)
		}
	}
	for _, prefix := range [][]string{nil, {"7"}} {
		var last error
		for _, err := range s.h.Source.Partitions(ctx, tab, prefix) {
			last = err
		}
		wrong("Partitions", last)
	}
	_, _, err := s.h.Source.Partition(ctx, tab, []string{"7", "eu"})
	wrong("Partition", err)
	_, err = s.registerOne(ctx, tab, []string{"11", "eu"}, "s3://bucket/x")
	wrong("Register", err)
	wrong("Deregister", s.h.Source.Deregister(ctx, tab, []string{"7", "eu"}))
}

// registerOne registers one partition.
func (s suite) registerOne(ctx context.Context, tab *table.Table, values []string, location string) (string, error) {
	done := s.h.Source.Register(ctx, tab, []catalogview.NewPartition{{Values: values, Location: location}})
	if len(done) != 1 {
		s.t.Errorf("Register of one: told of %d", len(done))
		return "", nil
	}
	return done[0].Location, done[0].Err
}

func (s suite) register() {
	tab := s.partitioned()
	ctx := s.t.Context()
	if s.h.PutPartition == nil {
		if at, err := s.registerOne(ctx, tab, []string{"7"}, "here"); err != nil || at != "here" {
			s.t.Errorf("Register: got %q, %v", at, err)
		}
		same(s.t, "Partitions after Register", s.listed(tab), nil)
		return
	}
	values, location := []string{"11", "a/b'c"}, "s3://bucket/days/day=11/region=a%2Fb%27c"
	for _, ask := range []string{location, "s3://bucket/elsewhere"} {
		if at, err := s.registerOne(ctx, tab, values, ask); err != nil || at != location {
			s.t.Errorf("Register at %s: got %q, %v, want %s", ask, at, err, location)
		}
	}
	same(s.t, "Partitions", s.listed(tab, "11"), []string{fmt.Sprintf("%q at %s", values, location)})
	s.partition(tab, values, location)
	if at, err := s.registerOne(ctx, tab, []string{"7", "eu"}, "s3://bucket/elsewhere"); err != nil || at != place(0) {
		s.t.Errorf("Register of what is there: got %q, %v, want %s", at, err, place(0))
	}
	if _, err := s.registerOne(ctx, tab, []string{"7"}, "s3://bucket/elsewhere"); err == nil {
		s.t.Error("Register with too few values: no error")
	}
	p, _, err := s.h.Source.Partition(ctx, tab, values)
	if err != nil || p.Format != tab.Format || p.InputFormat != tab.InputFormat {
		s.t.Errorf("a new partition: got format %q, %q, %v, want the table's %q, %q", p.Format, p.InputFormat, err, tab.Format, tab.InputFormat)
	}
}

// registerMany: each is told of, in its place, whatever becomes of the others.
func (s suite) registerMany() {
	tab := s.partitioned()
	ctx := s.t.Context()
	var all []catalogview.NewPartition
	var want []string
	for i := range 101 {
		values := []string{"13", fmt.Sprintf("r%03d", i)}
		all = append(all, catalogview.NewPartition{Values: values, Location: place(1000 + i)})
		want = append(want, fmt.Sprintf("%q at %s", values, place(1000+i)))
	}
	if s.h.PutPartition == nil {
		s.wantEach(all, s.h.Source.Register(ctx, tab, all))
		return
	}
	there := catalogview.NewPartition{Values: []string{"7", "eu"}, Location: "s3://bucket/elsewhere"}
	few := catalogview.NewPartition{Values: []string{"7"}}
	for range 2 { // the second time all are there
		done := s.h.Source.Register(ctx, tab, append(all[:101:101], there, few))
		if len(done) != 103 || done[101].Err != nil || done[101].Location != place(0) || done[102].Err == nil {
			s.t.Fatalf("%d are told of; what is there, and one with too few values: %+v", len(done), done[min(101, len(done)):])
		}
		s.wantEach(all, done[:101])
		same(s.t, "Partitions", s.listed(tab, "13"), want)
	}
	if s.h.LoosePartitions {
		return
	}
	s.h.Drop(s.t, tab.Database, tab.Name)
	for i, got := range s.h.Source.Register(ctx, tab, all[:2]) {
		if got.Err == nil {
			s.t.Errorf("Register of %q where the table went: %+v", all[i].Values, got)
		}
	}
}

// wantEach wants all to be registered as they were to be.
func (s suite) wantEach(all []catalogview.NewPartition, done []catalogview.Registered) {
	s.t.Helper()
	for i, got := range done {
		if got.Err != nil || got.Location != all[i].Location {
			s.t.Fatalf("%q: got %+v, want %s", all[i].Values, got, all[i].Location)
		}
	}
	if len(done) != len(all) {
		s.t.Fatalf("told of %d, want %d", len(done), len(all))
	}
}

// registerAtOnce: one of many writers registers, and all learn of that one.
func (s suite) registerAtOnce() {
	tab := s.partitioned()
	if s.h.PutPartition == nil {
		return
	}
	const writers = 20
	at, errs := make([]string, writers), make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			at[i], errs[i] = s.registerOne(s.t.Context(), tab, []string{"12", "eu"}, place(100+i))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(at)
	if got := slices.Compact(at); len(got) != 1 || !strings.HasPrefix(got[0], "s3://bucket/data/1") {
		s.t.Fatalf("%d writers learned of the locations %q", writers, got)
	}
	same(s.t, "Partitions", s.listed(tab, "12"), []string{fmt.Sprintf("%q at %s", []string{"12", "eu"}, at[0])})
}

func (s suite) deregister() {
	tab := s.partitioned()
	ctx := s.t.Context()
	if s.h.PutPartition == nil {
		if err := s.h.Source.Deregister(ctx, tab, []string{"7"}); err != nil {
			s.t.Errorf("Deregister: %v", err)
		}
		return
	}
	before := s.listed(tab, "7")
	if err := s.h.Source.Deregister(ctx, tab, []string{"7"}); err == nil {
		s.t.Error("Deregister with too few values: no error")
	}
	same(s.t, "Partitions", s.listed(tab, "7"), before)
	for _, what := range []string{"one that is there", "one that is not"} {
		if err := s.h.Source.Deregister(ctx, tab, []string{"7", "eu"}); err != nil {
			s.t.Errorf("Deregister of %s: %v", what, err)
		}
		if _, _, err := s.h.Source.Partition(ctx, tab, []string{"7", "eu"}); !errors.Is(err, objectstore.ErrNotExist) {
			s.t.Errorf("Deregister of %s: Partition says %v, want ErrNotExist", what, err)
		}
	}
	if after := s.listed(tab, "7"); len(after) != len(before)-1 {
		s.t.Errorf("Deregister left the partitions %q of %q", after, before)
	}
	s.h.Drop(s.t, tab.Database, tab.Name)
	if err := s.h.Source.Deregister(ctx, tab, []string{"7", "us"}); err != nil {
		s.t.Errorf("Deregister where the table went: %v", err)
	}
}
