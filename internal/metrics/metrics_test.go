package metrics_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
)

func newSet() *metrics.Set { return metrics.NewSet(metrics.Build{Version: "v1", Go: "go1"}) }

func text(t *testing.T, s *metrics.Set) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// want checks that each line is there.
func want(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestCountsAreShownByLabels(t *testing.T) {
	s := newSet()
	s.StoreRequests.With("put", metrics.OutcomeOK).Observe(0.001)
	s.StoreRequests.With("put", metrics.OutcomeOK).Observe(0.5)
	s.StoreRequests.With("put", metrics.OutcomeOK).Observe(3600)
	s.StoreRequests.With("a new one", metrics.OutcomeError).Observe(1)
	s.StoreBytes.With(metrics.DirectionWritten).Add(7)
	s.StoreBytes.With(metrics.DirectionWritten).Add(-7)
	s.StoreSent.Add(1 << 53)
	s.OpenHandles.Add(2)
	s.OpenHandles.Add(-1)
	s.Memory.With(metrics.HolderHeap).Bind(func() int64 { return 42 })
	want(t, text(t, s),
		"# TYPE lakefs_mount_store_request_seconds histogram",
		`lakefs_mount_store_request_seconds_bucket{operation="put",outcome="ok",le="0.001"} 1`,
		`lakefs_mount_store_request_seconds_bucket{operation="put",outcome="ok",le="0.3"} 1`,
		`lakefs_mount_store_request_seconds_bucket{operation="put",outcome="ok",le="1"} 2`,
		`lakefs_mount_store_request_seconds_bucket{operation="put",outcome="ok",le="60"} 2`,
		`lakefs_mount_store_request_seconds_bucket{operation="put",outcome="ok",le="+Inf"} 3`,
		`lakefs_mount_store_request_seconds_sum{operation="put",outcome="ok"} 3600.501`,
		`lakefs_mount_store_request_seconds_count{operation="put",outcome="ok"} 3`,
		`lakefs_mount_store_request_seconds_count{operation="other",outcome="error"} 1`,
		`lakefs_mount_store_request_seconds_count{operation="abort",outcome="canceled"} 0`,
		`lakefs_mount_store_bytes_total{direction="written"} 7`,
		`lakefs_mount_store_bytes_total{direction="read"} 0`,
		`lakefs_mount_store_sent_bytes_total 9.007199254740992e+15`,
		`lakefs_mount_open_handles 1`,
		`lakefs_mount_memory_bytes{holder="heap"} 42`,
		`lakefs_mount_memory_bytes{holder="budget"} 0`,
		`lakefs_mount_build_info{goversion="go1",revision="",version="v1"} 1`,
	)
	for _, of := range []string{"process_open_fds", "go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(text(t, s), "\n"+of+" ") {
			t.Errorf("no metric %s", of)
		}
	}
}

// TestEverySeriesIsThereFromTheStart: counting makes none.
func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	s := newSet()
	names := func() string {
		var b strings.Builder
		for line := range strings.Lines(text(t, s)) {
			if strings.HasPrefix(line, "lakefs_mount_") {
				b.WriteString(line[:strings.LastIndexByte(line, ' ')] + "\n")
			}
		}
		return b.String()
	}
	before := names()
	for range 2 {
		s.Operations.With("read", metrics.OutcomeOK).Observe(1)
		s.Operations.With("what is this", "and this").Observe(1)
		s.CatalogRequests.With().Observe(1)
		s.Publishes.With(metrics.OutcomeCanceled).Observe(1)
	}
	if after := names(); after != before {
		t.Errorf("the series changed from\n%s\nto\n%s", before, after)
	}
	if n := strings.Count(before, "\n"); n > 3000 {
		t.Errorf("%d series: a scrape of a mount costs too much", n)
	}
}

func TestCountingIsAtomicAndAllocatesNothing(t *testing.T) {
	s := newSet()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				s.Operations.With("read", metrics.OutcomeOK).Observe(0.001)
				s.StoreRetries.Inc()
			}
		})
	}
	wg.Wait()
	want(t, text(t, s), `lakefs_mount_fuse_operation_seconds_count{operation="read",outcome="ok"} 4000`)
	if got := s.StoreRetries.Value(); got != 4000 {
		t.Errorf("retries: got %d, want 4000", got)
	}
	if n := testing.AllocsPerRun(100, func() { operation(s) }); n != 0 {
		t.Errorf("allocations: got %v, want 0", n)
	}
}

// operation counts what a read does.
func operation(s *metrics.Set) {
	s.Operations.With("write", metrics.OutcomeOK).Observe(time.Millisecond.Seconds())
	s.FileBytes.With(metrics.DirectionRead).Add(1 << 20)
	s.OpenHandles.Add(1)
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteTextReturnsTheWritersError(t *testing.T) {
	if err := newSet().WriteText(full{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func BenchmarkOperation(b *testing.B) {
	s := newSet()
	b.ReportAllocs()
	for b.Loop() {
		operation(s)
	}
}

// BenchmarkWriteText is what a look at .lakefs/stats costs.
func BenchmarkWriteText(b *testing.B) {
	s := newSet()
	var out bytes.Buffer
	if err := s.WriteText(&out); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		if err := s.WriteText(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
