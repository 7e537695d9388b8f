package metrics_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
)

func TestWriteTextIsTheExpositionFormat(t *testing.T) {
	var r metrics.Registry
	c := r.CounterVec("x_total", "Counts \\ of\nx.", metrics.Label{Name: "a", Values: []string{"p", `q"\`}}, metrics.Label{Name: "b", Values: []string{"u"}})
	c.With("p", "u").Add(3)
	c.With(`q"\`, "nobody knows").Inc()
	c.With("p").Inc()
	c.With("p", "u").Add(-7)
	r.Gauge("y", "A gauge.").Set(-4)
	r.GaugeFunc("z", "A function.").Bind(func() int64 { return 42 })
	r.CounterFunc("unbound_total", "Not bound.")

	want := `# HELP x_total Counts \\ of\nx.
# TYPE x_total counter
x_total{a="p",b="u"} 3
x_total{a="p",b="other"} 1
x_total{a="q\"\\",b="u"} 0
x_total{a="q\"\\",b="other"} 1
x_total{a="other",b="u"} 0
x_total{a="other",b="other"} 0
# HELP y A gauge.
# TYPE y gauge
y -4
# HELP z A function.
# TYPE z gauge
z 42
# HELP unbound_total Not bound.
# TYPE unbound_total counter
unbound_total 0
`
	if got := text(t, &r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHistogramBucketsAreCumulative(t *testing.T) {
	var r metrics.Registry
	h := r.HistogramVec("h_seconds", "H.", metrics.Label{Name: "op", Values: []string{"read"}})
	for _, d := range []time.Duration{-time.Second, 50 * time.Microsecond, 51 * time.Microsecond, time.Second, time.Hour} {
		h.With("read").Observe(d)
	}
	got := text(t, &r)
	for _, want := range []string{
		"# TYPE h_seconds histogram\n",
		`h_seconds_bucket{op="read",le="5e-05"} 2` + "\n",
		`h_seconds_bucket{op="read",le="0.0001"} 3` + "\n",
		`h_seconds_bucket{op="read",le="0.5"} 3` + "\n",
		`h_seconds_bucket{op="read",le="1"} 4` + "\n",
		`h_seconds_bucket{op="read",le="60"} 4` + "\n",
		`h_seconds_bucket{op="read",le="+Inf"} 5` + "\n",
		`h_seconds_sum{op="read"} 3601.000101` + "\n",
		`h_seconds_count{op="read"} 5` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}

func TestFamiliesWithBadOrSecondNamesPanic(t *testing.T) {
	for name, create := range map[string]func(*metrics.Registry){
		"empty":     func(r *metrics.Registry) { r.Counter("", "") },
		"dash":      func(r *metrics.Registry) { r.Counter("a-b", "") },
		"digit":     func(r *metrics.Registry) { r.Counter("1a", "") },
		"bad label": func(r *metrics.Registry) { r.CounterVec("a", "", metrics.Label{Name: "x y"}) },
		"twice":     func(r *metrics.Registry) { r.Counter("a", ""); r.Gauge("a", "") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			create(new(metrics.Registry))
		})
	}
}

func TestSetHasEveryNameOnceAndAStableOrder(t *testing.T) {
	got := text(t, &metrics.NewSet().Registry)
	if again := text(t, &metrics.NewSet().Registry); got != again {
		t.Error("two sets are written in different order")
	}
	for _, name := range []string{
		"fuse_operations_total", "fuse_operation_seconds", "store_requests_total", "store_bytes_total",
		"cache_hits_total", "cache_misses_total", "memory_bytes", "publishes_total", "staged_writes", "staged_bytes",
	} {
		if n := strings.Count(got, "# TYPE lakefs_mount_"+name+" "); n != 1 {
			t.Errorf("lakefs_mount_%s: %d families, want 1", name, n)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) lakefs_mount_[a-z_]+ .+|lakefs_mount_[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+)$`)
	for l := range strings.Lines(got) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("not of the format: %q", l)
		}
	}
}

func TestCountingIsAtomicAndAllocatesNothing(t *testing.T) {
	s := metrics.NewSet()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				s.Operations.With("read", metrics.OutcomeOK).Inc()
				s.OperationSeconds.With("read").Observe(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if got := s.Operations.With("read", "ok").Value(); got != 4000 {
		t.Errorf("operations: got %d, want 4000", got)
	}
	if got := s.OperationSeconds.With("read").Sum(); got != 4*time.Second {
		t.Errorf("seconds: got %v, want 4s", got)
	}
	if n := testing.AllocsPerRun(100, func() {
		s.Operations.With("read", metrics.OutcomeOK).Inc()
		s.OperationSeconds.With("write").Observe(time.Second)
		s.OpenHandles.Add(1)
	}); n != 0 {
		t.Errorf("allocations: got %v, want 0", n)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteTextReturnsTheWritersError(t *testing.T) {
	if err := metrics.NewSet().WriteText(full{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func BenchmarkOperation(b *testing.B) {
	s := metrics.NewSet()
	b.ReportAllocs()
	for b.Loop() {
		s.Operations.With("write", metrics.OutcomeOK).Inc()
		s.OperationSeconds.With("write").Observe(time.Millisecond)
	}
}

func text(t *testing.T, r *metrics.Registry) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
