// Package metrics counts what a mount does, and writes it in the Prometheus
// text exposition format.
//
// Every series exists from the start: the values of a label are a fixed set
// given when the family is made, so that no path and no table name can ever
// become one, and the size of the output is known. A value outside of the set
// is counted under [Other]. Counting is atomic, takes no lock and allocates
// nothing; all methods may be called concurrently. The order of the output is
// the order in which the families were made, and the given order of values.
//
// Making a family with a bad or a second name is a programmer's error and panics.
package metrics

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Other is the label value that stands for all that were not foreseen.
const Other = "other"

// Label is a name and all values that it may have; Other is always added.
type Label struct {
	Name   string
	Values []string
}

// Registry holds families of metrics. The zero value is ready.
type Registry struct {
	mu struct {
		sync.Mutex
		families []*family
	}
}

// family is one metric name: its series are in the order of labels' values, the
// last label fastest.
type family struct {
	name, help, kind string
	labels           []Label
	series           []series
}

// series writes the samples of one combination of label values.
type series interface {
	write(w *writer, name, labels string)
}

func (r *Registry) add(f *family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !validName(f.name) {
		panic(fmt.Sprintf("metrics: bad name %q", f.name))
	}
	for _, l := range f.labels {
		if !validName(l.Name) {
			panic(fmt.Sprintf("metrics: %s: bad label %q", f.name, l.Name))
		}
	}
	if slices.ContainsFunc(r.mu.families, func(g *family) bool { return g.name == f.name }) {
		panic(fmt.Sprintf("metrics: %s made twice", f.name))
	}
	r.mu.families = append(r.mu.families, f)
}

func validName(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// vec finds a series by its label values.
type vec[T any] struct {
	labels []Label
	series []T
}

// newVec makes a series for each combination of values and registers the family.
func newVec[T series](r *Registry, f *family, create func() T) vec[T] {
	n := 1
	labels := make([]Label, 0, len(f.labels))
	for _, l := range f.labels {
		l.Values = slices.Clone(l.Values)
		if !slices.Contains(l.Values, Other) {
			l.Values = append(l.Values, Other)
		}
		labels = append(labels, l)
		n *= len(l.Values)
	}
	f.labels = labels
	v := vec[T]{labels: f.labels}
	for range n {
		s := create()
		v.series = append(v.series, s)
		f.series = append(f.series, s)
	}
	r.add(f)
	return v
}

// with returns the series of values, given in the order of the labels; an
// unknown or missing one is Other.
func (v *vec[T]) with(values []string) T {
	at := 0
	for i := range v.labels {
		known := v.labels[i].Values
		j := -1
		if i < len(values) {
			j = slices.Index(known, values[i])
		}
		if j < 0 {
			j = slices.Index(known, Other)
		}
		at = at*len(known) + j
	}
	return v.series[at]
}

// Counter only grows.
type Counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n; a negative n is ignored.
func (c *Counter) Add(n int64) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

// Value is the present count.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Gauge goes up and down.
type Gauge struct{ n atomic.Int64 }

// Set replaces the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value is the present value.
func (g *Gauge) Value() int64 { return g.n.Load() }

// Func is a metric whose value another package keeps: it is asked for at each
// WriteText, and is 0 until Bind.
type Func struct{ f atomic.Pointer[func() int64] }

// Bind sets the function that tells the value; it must be safe to call at any
// time from then on, and quick.
func (f *Func) Bind(value func() int64) { f.f.Store(&value) }

// Value asks for the value.
func (f *Func) Value() int64 {
	if p := f.f.Load(); p != nil {
		return (*p)()
	}
	return 0
}

// Histogram counts durations by buckets of fixed upper bounds.
type Histogram struct {
	bounds  []time.Duration // ascending
	buckets []atomic.Uint64 // one more than bounds: the last has no bound
	sum     atomic.Int64    // nanoseconds
}

// Observe counts one duration; a negative one counts as 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Since observes the time since start.
func (h *Histogram) Since(start time.Time) { h.Observe(time.Since(start)) }

// DefaultBuckets are the upper bounds of a histogram that is given none: from a
// request answered from memory to one that ran into its deadline.
func DefaultBuckets() []time.Duration {
	return []time.Duration{
		50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
		25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
		500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
		10 * time.Second, 30 * time.Second, 60 * time.Second,
	}
}

type (
	// CounterVec is a family of counters by label values.
	CounterVec struct{ v vec[*Counter] }
	// GaugeVec is a family of gauges by label values.
	GaugeVec struct{ v vec[*Gauge] }
	// FuncVec is a family of functions by label values.
	FuncVec struct{ v vec[*Func] }
	// HistogramVec is a family of histograms by label values.
	HistogramVec struct{ v vec[*Histogram] }
)

// With returns the counter of the label values, in the order of the labels.
func (v *CounterVec) With(values ...string) *Counter { return v.v.with(values) }

// With returns the gauge of the label values, in the order of the labels.
func (v *GaugeVec) With(values ...string) *Gauge { return v.v.with(values) }

// With returns the function of the label values, in the order of the labels.
func (v *FuncVec) With(values ...string) *Func { return v.v.with(values) }

// With returns the histogram of the label values, in the order of the labels.
func (v *HistogramVec) With(values ...string) *Histogram { return v.v.with(values) }

// Counter makes a counter without labels. Its name should end in _total.
func (r *Registry) Counter(name, help string) *Counter {
	return r.CounterVec(name, help).With()
}

// CounterVec makes a counter for each combination of label values.
func (r *Registry) CounterVec(name, help string, labels ...Label) *CounterVec {
	f := &family{name: name, help: help, kind: "counter", labels: labels}
	return &CounterVec{newVec(r, f, func() *Counter { return new(Counter) })}
}

// Gauge makes a gauge without labels.
func (r *Registry) Gauge(name, help string) *Gauge { return r.GaugeVec(name, help).With() }

// GaugeVec makes a gauge for each combination of label values.
func (r *Registry) GaugeVec(name, help string, labels ...Label) *GaugeVec {
	f := &family{name: name, help: help, kind: "gauge", labels: labels}
	return &GaugeVec{newVec(r, f, func() *Gauge { return new(Gauge) })}
}

// CounterFunc makes a counter that another package keeps.
func (r *Registry) CounterFunc(name, help string) *Func {
	f := &family{name: name, help: help, kind: "counter"}
	v := newVec(r, f, func() *Func { return new(Func) })
	return v.with(nil)
}

// GaugeFunc makes a gauge that another package keeps.
func (r *Registry) GaugeFunc(name, help string) *Func {
	return r.GaugeFuncVec(name, help).With()
}

// GaugeFuncVec makes a gauge that another package keeps, for each combination
// of label values.
func (r *Registry) GaugeFuncVec(name, help string, labels ...Label) *FuncVec {
	f := &family{name: name, help: help, kind: "gauge", labels: labels}
	return &FuncVec{newVec(r, f, func() *Func { return new(Func) })}
}

// Histogram makes a histogram without labels. Its name should end in _seconds.
func (r *Registry) Histogram(name, help string) *Histogram { return r.HistogramVec(name, help).With() }

// HistogramVec makes a histogram with DefaultBuckets for each combination of
// label values. Its name should end in _seconds.
func (r *Registry) HistogramVec(name, help string, labels ...Label) *HistogramVec {
	bounds := DefaultBuckets()
	f := &family{name: name, help: help, kind: "histogram", labels: labels}
	return &HistogramVec{newVec(r, f, func() *Histogram {
		return &Histogram{bounds: bounds, buckets: make([]atomic.Uint64, len(bounds)+1)}
	})}
}

// Sum is the total of all observed durations, Count their number.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.sum.Load()) }

// Count is the number of observed durations.
func (h *Histogram) Count() uint64 {
	var n uint64
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

func seconds(d time.Duration) float64 {
	return math.Round(d.Seconds()*1e9) / 1e9
}
