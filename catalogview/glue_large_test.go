package catalogview_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// heap is the largest heap that was seen.
type heap uint64

func (h *heap) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*h = max(*h, heap(m.HeapInuse))
}

// 100,000 partitions of 170 columns are listed in bounded memory: with those of
// the listing kept, and the server's in this process too.
func TestGlueManyPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 partitions")
	}
	const count, limit = 100_000, 256 << 20
	server := gluetest.New(t)
	server.AddTable("sales", parquetTable(t, "days", "s3://lake/days", table.Column{Name: "day", Type: "string"}))
	server.AddMany("sales", "days", gluetest.Many{
		Count: count, Values: func(i int) []string { return []string{fmt.Sprint(i)} }, Columns: 170,
	})
	g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = 10 * time.Minute })
	tab := daysOf(t, g)
	var h heap
	all := make([]table.Partition, 0, count)
	for p, err := range g.Partitions(t.Context(), tab, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, p); len(all)%500 == 0 {
			h.look()
		}
	}
	if len(all) != count || h > limit {
		t.Errorf("%d partitions in %d MiB", len(all), h>>20)
	}
	t.Logf("partitions: %d MiB", h>>20)
	h = 0
	n := 0
	for line, err := range g.PartitionLines(t.Context(), tab) {
		if err != nil {
			t.Fatal(err)
		}
		if len(line) < 170*10 {
			t.Fatalf("line %s", line)
		}
		if n++; n%500 == 0 {
			h.look()
		}
		if n == 10_000 { // it is the same from page to page
			break
		}
	}
	if n != 10_000 || h > limit {
		t.Errorf("%d lines in %d MiB", n, h>>20)
	}
	t.Logf("lines: %d MiB", h>>20)
}
