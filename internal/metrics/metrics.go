// Package metrics counts what a mount does, for Prometheus.
//
// Every series exists from the start: the values of a label are a fixed list given
// when the family is made, so that no path and no table name can ever become one, and
// what a scrape costs is known. A value outside of its list is counted as the last of
// it. Children of the vectors are resolved when they are made: counting takes no lock
// and allocates nothing. All methods may be called concurrently.
//
// Making a family with a bad or a second name is a programmer's error and panics.
package metrics

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Other is the last value of a label whose values may grow in another package.
const Other = "other"

// Label is a name and all values that it may have.
type Label struct {
	Name   string
	Values []string
}

// Family has the series of one metric by its label values.
type Family[T any] struct {
	labels []Label
	series []T // the last label fastest
}

// newFamily makes a series for each combination of values.
func newFamily[T any](labels []Label, create func(prometheus.Labels) T) *Family[T] {
	n := 1
	for _, l := range labels {
		n *= len(l.Values)
	}
	f := &Family[T]{labels: labels, series: make([]T, n)}
	for i := range f.series {
		values, at := prometheus.Labels{}, i
		for _, l := range slices.Backward(labels) {
			values[l.Name] = l.Values[at%len(l.Values)]
			at /= len(l.Values)
		}
		f.series[i] = create(values)
	}
	return f
}

// With returns the series of the values, given in the order of the labels; an unknown
// or missing one is the last of its label.
func (f *Family[T]) With(values ...string) T {
	at := 0
	for i := range f.labels {
		known := f.labels[i].Values
		j := -1
		if i < len(values) {
			j = slices.Index(known, values[i])
		}
		if j < 0 {
			j = len(known) - 1
		}
		at = at*len(known) + j
	}
	return f.series[at]
}

// Counter only grows. The zero value counts, and is shown by nobody.
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

// Func is a metric whose value another package keeps: it is asked for at each
// scrape, and is 0 until Bind.
type Func struct{ f atomic.Pointer[func() int64] }

// Bind sets the function that tells the value; it must be safe to call at any
// time from then on, and quick.
func (f *Func) Bind(value func() int64) { f.f.Store(&value) }

func (f *Func) value() float64 {
	if p := f.f.Load(); p != nil {
		return float64((*p)())
	}
	return 0
}

// WriteText writes all metrics in the Prometheus text exposition format 0.0.4, by
// name. Values are read one by one: two of them need not be of the same instant.
func (s *Set) WriteText(w io.Writer) error {
	families, err := s.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range families {
		if _, err = expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	return nil
}

func (s *Set) counters(name, help string, labels ...Label) *Family[*Counter] {
	return newFamily(labels, func(l prometheus.Labels) *Counter {
		c := new(Counter)
		s.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: l},
			func() float64 { return float64(c.Value()) }))
		return c
	})
}

func (s *Set) counter(name, help string) *Counter { return s.counters(name, help).With() }

func (s *Set) counterFunc(name, help string) *Func {
	f := new(Func)
	s.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f.value))
	return f
}

func (s *Set) gaugeFuncs(name, help string, labels ...Label) *Family[*Func] {
	return newFamily(labels, func(l prometheus.Labels) *Func {
		f := new(Func)
		s.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: l}, f.value))
		return f
	})
}

func (s *Set) gaugeFunc(name, help string) *Func { return s.gaugeFuncs(name, help).With() }

// histograms makes histograms of seconds.
func (s *Set) histograms(name, help string, labels ...Label) *Family[prometheus.Observer] {
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i] = l.Name
	}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets()}, names)
	s.MustRegister(v)
	return newFamily(labels, v.With)
}

// buckets are the upper bounds of all histograms, in seconds: from what memory answers
// to what ran into its deadline. A step is about three times the one before, as exact
// as the times of a network are: a series costs a line for each.
func buckets() []float64 {
	return []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60}
}
