package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lakefs-mount/lakefs-mount/fs"
)

// look is what a mount told of itself at a moment.
type look struct {
	at      time.Time
	metrics map[string]*dto.MetricFamily // of .lakefs/stats, by name
	jobs    []fs.JobStatus
	cost    float64 // bytes that were read for it, which the mount counts as any program's
}

// errEnded: the mount is not there any more.
var errEnded = errors.New("it has ended")

// lookAt asks a mount. It waits for as long as the mount makes it wait.
func lookAt(e tableEntry) (look, error) {
	now, found, err := mountedAt(e.path)
	if err != nil {
		return look{}, err
	}
	if !found || now.device != e.device {
		return look{}, fmt.Errorf("the mount at %q: %w; see: lakefs-mount status", e.path, errEnded)
	}
	answer, err := askAside(e.path, "stats", "jobs.json")
	if err != nil {
		return look{}, err
	}
	raw, err := answer.file("stats")
	if err != nil {
		return look{}, lookError(e, err)
	}
	l, err := parseLook(raw)
	if err != nil {
		return look{}, fmt.Errorf("the statistics of the mount at %q: %w", e.path, err)
	}
	l.at, l.cost = time.Now(), float64(len(raw))
	var all struct {
		Jobs []fs.JobStatus `json:"jobs"`
	}
	// An older mount has none.
	if raw, err = answer.file("jobs.json"); err == nil && json.Unmarshal(raw, &all) == nil {
		l.cost += float64(len(raw))
		l.jobs = slices.DeleteFunc(all.Jobs, func(j fs.JobStatus) bool { return j.Ended != nil })
	}
	return l, nil
}

// lookError says what became of a mount that did not tell.
func lookError(e tableEntry, err error) error {
	now, found, tableErr := mountedAt(e.path)
	switch {
	case errors.Is(err, iofs.ErrPermission):
		return fmt.Errorf("the mount at %q is another user's, who alone may look at it (mount it with --allow-other)", e.path)
	case tableErr == nil && (!found || now.device != e.device):
		return fmt.Errorf("the mount at %q: %w; see: lakefs-mount status", e.path, errEnded)
	}
	return fmt.Errorf("the mount at %q does not answer (%w): see: lakefs-mount status", e.path, bare(err))
}

// boundedLook is lookAt for at most answerTimeout.
func boundedLook(ctx context.Context, e tableEntry) (look, error) {
	l, err := bounded(ctx, answerTimeout, func() (look, error) { return lookAt(e) })
	if errors.Is(err, errNoAnswer) {
		err = fmt.Errorf("the mount at %q: %w", e.path, err)
	}
	return l, err
}

// parseLook reads the text of .lakefs/stats.
func parseLook(stats []byte) (look, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(stats))
	return look{metrics: families}, err
}

// labelled tells whether a series has the value of the label; "": any.
func labelled(m *dto.Metric, label, value string) bool {
	return value == "" || labelOf(m, label) == value
}

func labelOf(m *dto.Metric, label string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == label {
			return l.GetValue()
		}
	}
	return ""
}

// sum adds the series of a counter or a gauge whose label has the value ("": all).
func (l look) sum(name, label, value string) (total float64) {
	for _, m := range l.metrics[name].GetMetric() {
		if labelled(m, label, value) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return total
}

// version is that of the mount's program.
func (l look) version() string {
	for _, m := range l.metrics["lakefs_mount_build_info"].GetMetric() {
		return labelOf(m, "version")
	}
	return ""
}

// distribution is how many things took how long.
type distribution struct {
	bounds []float64 // upper ones in seconds, rising; the last is +Inf
	counts []float64 // of what took up to the bound
	failed float64   // how many of all did
}

func (d distribution) count() float64 {
	if len(d.counts) == 0 {
		return 0
	}
	return d.counts[len(d.counts)-1]
}

// distributions are those of a histogram by kind, its label "operation"; one without the
// label has one, "".
func (l look) distributions(name string) map[string]distribution {
	all := map[string]distribution{}
	for _, m := range l.metrics[name].GetMetric() {
		kind := labelOf(m, "operation")
		d, h := all[kind], m.GetHistogram()
		if d.counts == nil {
			d.counts = make([]float64, len(h.GetBucket()))
			for _, b := range h.GetBucket() {
				d.bounds = append(d.bounds, b.GetUpperBound())
			}
		}
		for i, b := range h.GetBucket() {
			if i < len(d.counts) { // each series of one name has the same
				d.counts[i] += float64(b.GetCumulativeCount())
			}
		}
		if labelOf(m, "outcome") == "error" {
			d.failed += float64(h.GetSampleCount())
		}
		all[kind] = d
	}
	return all
}

// since is what came after the earlier one.
func (d distribution) since(earlier distribution) distribution {
	if len(earlier.counts) != len(d.counts) {
		return d
	}
	after := distribution{bounds: d.bounds, counts: slices.Clone(d.counts), failed: d.failed - earlier.failed}
	for i, n := range earlier.counts {
		after.counts[i] -= n
	}
	return after
}

// quantile estimates the time in seconds that the part q of all stayed below, as
// Prometheus does: evenly spread between two bounds, and no more than the last finite one.
func (d distribution) quantile(q float64) float64 {
	rank, low, before := q*d.count(), 0.0, 0.0
	for i, n := range d.counts {
		if n >= rank && n > before {
			if math.IsInf(d.bounds[i], 1) {
				return low
			}
			return low + (d.bounds[i]-low)*(rank-before)/(n-before)
		}
		low, before = d.bounds[i], n
	}
	return low
}
