package catalogview_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// partitionedOn is a table sales.days of n partitions, day=0 and on, and keys.
func partitionedOn(t *testing.T, server *gluetest.Server, n int, keys ...table.Column) {
	t.Helper()
	if keys == nil {
		keys = []table.Column{{Name: "day", Type: "int"}}
	}
	server.AddTable("sales", parquetTable(t, "days", "s3://lake/days", keys...))
	for i := range n {
		values := []string{fmt.Sprint(i)}
		for range keys[1:] {
			values = append(values, "x")
		}
		server.AddPartition("sales", "days", parquetPartition(t, values, fmt.Sprintf("s3://lake/days/day=%d", i)))
	}
}

func daysOf(t *testing.T, g *catalogview.Glue) *table.Table {
	t.Helper()
	tab, _, err := g.Table(t.Context(), "sales", "days", "")
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// 2,501 partitions are 10 requests, one page one; none with column schemas.
func TestGluePartitionRequests(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1, 1: 1, 1000: 1, 2501: 10} {
		server := gluetest.New(t)
		partitionedOn(t, server, n)
		g := glueOn(t, server.URL)
		tab := daysOf(t, g)
		if got := len(partitionsOf(t, g, tab)); got != n {
			t.Errorf("%d partitions, want %d", got, n)
		}
		calls := server.Calls("GetPartitions")
		if len(calls) != want {
			t.Errorf("%d partitions: %d requests, want %d", n, len(calls), want)
		}
		for _, c := range calls {
			if c.Input["ExcludeColumnSchema"] != true || c.Input["MaxResults"] != json.Number("1000") || c.Input["Expression"] != nil {
				t.Errorf("asked with %v", c.Input)
			}
		}
	}
}

// TestCase40_PagesOfPartitions: of any size, with empty ones between, each once.
func TestCase40_PagesOfPartitions(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 2501)
	begins := func(c *gluetest.Call) bool { return c.Input["NextToken"] == nil }
	server.Fault(gluetest.Rule{Op: "GetPartitions", If: begins, Times: 7, Fault: gluetest.EmptyPage()})
	server.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 8, Times: 3, Fault: gluetest.Throttle()})
	for _, segments := range []int{1, 2, 10} {
		g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Segments = segments })
		if got := slices.Compact(partitionsOf(t, g, daysOf(t, g))); len(got) != 2501 {
			t.Errorf("%d segments: %d partitions", segments, len(got))
		}
	}
	server.Clear()
	for name, fault := range map[string]gluetest.Fault{
		"throttled": gluetest.Throttle(), "500": gluetest.HTML(http.StatusInternalServerError), "denied": gluetest.Denied(), "repeated": gluetest.RepeatToken(),
	} {
		// Any segment's failure, and not that of the first page.
		rule := server.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 5, Fault: fault})
		g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = time.Second })
		n, last := 0, error(nil)
		for _, last = range g.Partitions(t.Context(), daysOf(t, g), nil) {
			n++
		}
		if last == nil && name != "repeated" || errors.Is(last, objectstore.ErrNotExist) {
			t.Errorf("%s: %d partitions, then %v", name, n, last)
		}
		rule.Remove()
	}
}

// TestEdge09_RepeatedToken is an error, of a listing that would not end.
func TestEdge09_RepeatedToken(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 1001)
	server.Fault(gluetest.Rule{Op: "GetPartitions", Fault: gluetest.RepeatToken()})
	g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Segments = 1 })
	var last error
	for _, last = range g.Partitions(t.Context(), daysOf(t, g), nil) { //nolint:revive // empty-block: the error counts
	}
	if last == nil || !strings.Contains(last.Error(), "read already") {
		t.Errorf("got %v", last)
	}
}

// A prefix goes as an expression, in no segments, and is looked at again.
func TestGluePartitionExpression(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 1500, table.Column{Name: "day", Type: "int"}, table.Column{Name: "Region", Type: "string"})
	server.AddPartition("sales", "days", parquetPartition(t, []string{"7", "it's"}, "s3://lake/its"))
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	for _, c := range []struct {
		prefix []string
		want   any
		n      int
	}{
		{[]string{"7"}, "day=7", 2},
		{[]string{"07"}, "day=7", 0}, // and filtered: it is no 07
		{[]string{"7", "it's"}, "day=7 AND Region='it''s'", 1},
		{[]string{"7", `a\b`}, "day=7", 0},
		{[]string{"x", "it's"}, "Region='it''s'", 0},
		{[]string{"7", strings.Repeat("x", 3000)}, nil, 0},
		{[]string{"x"}, nil, 0},
		{[]string{table.HiveNull}, nil, 0},
	} {
		server.Reset()
		if got := partitionsOf(t, g, tab, c.prefix...); len(got) != c.n {
			t.Errorf("prefix %.20q: %q, want %d", c.prefix, got, c.n)
		}
		for i, call := range server.Calls("GetPartitions") {
			if call.Input["Expression"] != c.want || c.want != nil && (i > 0 || call.Input["Segment"] != nil) {
				t.Errorf("prefix %.20q asked as %v, want %v", c.prefix, call.Input, c.want)
			}
		}
	}
}

// TestCase74_OneNullPartition makes the service refuse every expression on its
// key; the listing is right all the same. So for a key whose type it does not know.
func TestCase74_OneNullPartition(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 1200)
	server.AddPartition("sales", "days", parquetPartition(t, []string{table.HiveNull}, "s3://lake/null"))
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	refused := server.Fault(gluetest.Rule{Op: "GetPartitions", If: func(c *gluetest.Call) bool { return c.Input["Expression"] != nil }})
	if got, want := partitionsOf(t, g, tab, "7"), []string{`["7"] s3://lake/days/day=7`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := partitionsOf(t, g, tab, table.HiveNull), []string{`["` + table.HiveNull + `"] s3://lake/null`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if refused.Hits() != 1 {
		t.Errorf("%d expressions, want 1", refused.Hits())
	}
	for _, code := range []string{"InvalidInputException", "InvalidStateException"} {
		server.Clear()
		server.Fault(gluetest.Rule{If: func(c *gluetest.Call) bool { return c.Input["Expression"] != nil }, Fault: gluetest.Error(400, code, "no")})
		if got := partitionsOf(t, g, tab, "7"); len(got) != 1 {
			t.Errorf("%s: %q", code, got)
		}
	}
	server.Clear()
	server.Fault(gluetest.Rule{Op: "GetPartitions", Fault: gluetest.Denied()})
	for _, err := range g.Partitions(t.Context(), tab, []string{"7"}) {
		if !errors.Is(err, objectstore.ErrPermission) {
			t.Errorf("denied: %v", err)
		}
	}
}

// A service that answers each segment with all, and each expression with all, as
// emulators do, changes nothing.
func TestGluePartitionsOfAnEmulator(t *testing.T) {
	t.Parallel()
	page := func(from, to int, token string) string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, parquetPartition(t, []string{fmt.Sprint(i)}, fmt.Sprintf("s3://lake/%d", i)))
		}
		return fmt.Sprintf(`{"Partitions":[%s],"NextToken":%s}`, strings.Join(all, ","), token)
	}
	first, second := page(0, 30, `"2"`), page(30, 60, `null`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := first
		if bytes.Contains(body, []byte("NextToken")) {
			answer = second
		}
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	g := glueOn(t, server.URL)
	tab := table.ParseGlue("sales", "days", []byte(parquetTable(t, "days", "s3://lake/days", table.Column{Name: "day", Type: "int"})))
	if got := slices.Compact(partitionsOf(t, g, tab)); len(got) != 60 || len(partitionsOf(t, g, tab)) != 60 {
		t.Errorf("%d partitions, want 60", len(got))
	}
	if got := partitionsOf(t, g, tab, "31"); !slices.Equal(got, []string{`["31"] s3://lake/31`}) {
		t.Errorf("got %q", got)
	}
}

// What does not parse is broken, and logged once.
func TestGluePartitionsThatDoNotParse(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 1500)
	for _, values := range [][]string{{}, {"1", "2"}, {"1", "2", "3"}} {
		server.AddPartition("sales", "days", parquetPartition(t, values, "s3://lake/x"))
	}
	var log bytes.Buffer
	g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	usable, broken := 0, 0
	for p, err := range g.Partitions(t.Context(), daysOf(t, g), nil) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Broken == "":
			usable++
		default:
			broken++
		}
	}
	if usable != 1500 || broken != 3 {
		t.Errorf("%d partitions and %d broken ones, want 1500 and 3", usable, broken)
	}
	if n := strings.Count(log.String(), "can not be used"); n != 1 || !strings.Contains(log.String(), "sales/days") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// A caller that has enough, or leaves, ends all segments.
func TestGluePartitionsEnd(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 2501)
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	hung := server.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 3, Fault: gluetest.Hang()})
	for _, after := range []int{1, 1001} { // in the first page, and behind it
		n := 0
		for _, err := range g.Partitions(t.Context(), tab, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == after {
				for end := time.Now().Add(10 * time.Second); after > 1 && hung.Hits() == 0 && time.Now().Before(end); {
					runtime.Gosched() // until a segment is under way
				}
				break
			}
		}
		if n != after {
			t.Errorf("%d partitions, want %d", n, after)
		}
	}
	if hung.Hits() == 0 {
		t.Error("no segment was under way")
	}
}

// The entries of all partitions, each on a line, whole and exact.
func TestGluePartitionLines(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	for i := range 1100 {
		server.AddPartition("sales", "days", fmt.Sprintf("{\"Values\":[\"%d\"],\n \"CreationTime\":1.795981949713E9, \"New\":{\"n\":1.50,\"s\":\"<&>\"},\"StorageDescriptor\":{\"Columns\":[{\"Name\":\"id\"}]}}", i))
	}
	g := glueOn(t, server.URL)
	n := 0
	for line, err := range g.PartitionLines(t.Context(), daysOf(t, g)) {
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"Values":["%d"],"CreationTime":"2026-11-29T19:52:29.713000+00:00","New":{"n":1.50,"s":"<&>"},"StorageDescriptor":{"Columns":[{"Name":"id"}]},`, n)
		if !strings.HasPrefix(string(line), want) || bytes.Contains(line, []byte("\n")) {
			t.Fatalf("line %d: %s, want %s", n, line, want)
		}
		n++
	}
	if n != 1100 {
		t.Errorf("%d lines", n)
	}
	if got := len(server.Calls("GetPartitions")); got != 2 {
		t.Errorf("%d requests", got)
	}
}

// Each partition is one line, however often the pages have it.
func TestGluePartitionLinesRepeated(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 2501)
	server.Fault(gluetest.Rule{Op: "GetPartitions", Fault: gluetest.Edit(func(body []byte) []byte {
		again := parquetPartition(t, []string{"7"}, "s3://lake/again")
		return bytes.Replace(body, []byte(`"Partitions":[`), []byte(`"Partitions":[`+again+","), 1)
	})})
	g := glueOn(t, server.URL)
	lines, seen := 0, map[string]bool{}
	for line, err := range g.PartitionLines(t.Context(), daysOf(t, g)) {
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Values []string }
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		lines++
		seen[fmt.Sprint(p.Values)] = true
	}
	if lines != 2501 || len(seen) != 2501 {
		t.Errorf("%d lines of %d partitions, want 2501", lines, len(seen))
	}
}

// Of pages that are too large smaller ones are asked for.
func TestGluePagesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 3)
	large := server.Fault(gluetest.Rule{
		Op: "GetPartitions", If: func(c *gluetest.Call) bool { return c.Input["MaxResults"] != json.Number("10") },
		Fault: gluetest.Edit(func([]byte) []byte { return bytes.Repeat([]byte(" "), 33<<20) }),
	})
	g := glueOn(t, server.URL)
	if got := len(partitionsOf(t, g, daysOf(t, g))); got != 3 || large.Hits() != 2 {
		t.Errorf("%d partitions after %d pages that were too large", got, large.Hits())
	}
}
