package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// readRow is a line of the table.
type readRow struct {
	Case  string             `json:"case"`
	Unit  string             `json:"unit"`
	Lower bool               `json:"lower,omitempty"` // the lower, the better
	Bytes int64              `json:"bytes,omitempty"` // that were asked for
	Goals goals              `json:"goals"`
	By    map[string]outcome `json:"by"` // contenders
}

// goals are what the mount is to reach; zero: none.
type goals struct {
	Peers    float64 `json:"peers,omitempty"` // how much better than the best peer, at least
	Plain    float64 `json:"plain,omitempty"` // and than the plain program
	Most     float64 `json:"most,omitempty"`
	Least    float64 `json:"least,omitempty"`
	Peak     float64 `json:"peak_rss_mib,omitempty"` // at most
	Requests int     `json:"requests,omitempty"`     // at most
	Excess   float64 `json:"excess,omitempty"`       // bytes fetched for one that is asked for, at most
	CPU      bool    `json:"cpu,omitempty"`          // no more processor time than any peer
}

// outcome is what a contender reached: the run of the median value.
type outcome struct {
	figures
	Value   float64   `json:"value"`
	Samples []float64 `json:"samples,omitempty"`
}

func (o outcome) failed() bool { return o.Problem != "" }

// row is the line of one of the case's measures.
func (c readCase) row(i int, runs map[string][]figures) readRow {
	m := c.measures[i]
	w := readRow{Case: c.name, Unit: m.unit, Lower: m.lower, Bytes: c.bytes, By: map[string]outcome{}}
	w.Goals = goals{Peers: m.peers, Plain: m.limit, Most: m.most, Least: m.least}
	if m.name != "" {
		w.Case += ": " + m.name
	}
	if i == 0 { // those are of the whole case
		w.Goals.Peak, w.Goals.Requests, w.Goals.Excess, w.Goals.CPU = c.peak, c.requests, c.excess, m.unit == "MiB/s"
	}
	for name, all := range runs {
		w.By[name] = summary(all, i)
	}
	return w
}

// summary is the run of the median value of a measure.
func summary(runs []figures, i int) outcome {
	good := slices.DeleteFunc(slices.Clone(runs), func(f figures) bool { return f.Problem != "" })
	if len(good) == 0 {
		return outcome{figures: runs[len(runs)-1]}
	}
	slices.SortFunc(good, func(a, b figures) int { return cmp.Compare(a.Values[i], b.Values[i]) })
	o := outcome{figures: good[len(good)/2]}
	o.Value = o.Values[i]
	for _, f := range good {
		o.Samples = append(o.Samples, f.Values[i])
		o.Peak = max(o.Peak, f.Peak)
		o.Early = o.Early || f.Early
	}
	return o
}

// isPeer tells whether a contender is another mount.
func isPeer(name string) bool { return name != ours && name != plain && name != plainFew }

// best is the best peer, "" without one. One who had not stored what it wrote is none.
func (w readRow) best() string {
	best := ""
	for name, o := range w.By {
		if isPeer(name) && !o.failed() && !o.Early && (best == "" || w.better(o, w.By[best]) > 1) {
			best = name
		}
	}
	return best
}

// better is how much better a is than b.
func (w readRow) better(a, b outcome) float64 {
	if w.Lower {
		a, b = b, a
	}
	return a.Value / b.Value
}

// ratio is how much better the mount is than another; 0: that is not known.
func (w readRow) ratio(name string) float64 {
	us, found := w.By[ours]
	o, there := w.By[name]
	if !found || !there || us.failed() || o.failed() || us.Value == 0 || o.Value == 0 {
		return 0
	}
	return w.better(us, o)
}

// each is a figure for each unit of the bytes that were asked for.
func (w readRow) each(figure float64, unit int64) float64 {
	if w.Bytes == 0 {
		return 0
	}
	return figure / float64(w.Bytes) * float64(unit)
}

// cpu is a contender's processor seconds a GiB.
func (w readRow) cpu(name string) float64 { return w.each(w.By[name].CPU, 1<<30) }

// excess is how many bytes a contender fetched for one that was asked for.
func (w readRow) excess(name string) float64 { return w.each(float64(w.By[name].Fetched), 1) }

// frugal is the least processor time of a peer; 0: there is none.
func (w readRow) frugal() float64 {
	least := 0.0
	for name, o := range w.By {
		if isPeer(name) && !o.failed() && (least == 0 || w.cpu(name) < least) {
			least = w.cpu(name)
		}
	}
	return least
}

// verdicts are the goals, each in words and whether it is met. A goal that cannot be
// told, for want of a peer, is left out.
func (w readRow) verdicts() (texts []string, missed int) {
	us, there := w.By[ours]
	if !there {
		return nil, 0
	}
	say := func(met bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if !met || us.failed() {
			missed++
			text += " MISSED"
		}
		texts = append(texts, text)
	}
	g := w.Goals
	if x := w.ratio(w.best()); g.Peers > 0 && x > 0 {
		say(x >= g.Peers, "≥ %g × best peer", g.Peers)
	}
	if x := w.ratio(plain); g.Plain > 0 && x > 0 {
		say(x >= g.Plain, "≥ %g × plain", g.Plain)
	}
	if g.Most > 0 {
		say(us.Value <= g.Most, "≤ %g %s", g.Most, w.Unit)
	}
	if g.Least > 0 {
		say(us.Value >= g.Least, "≥ %g %s", g.Least, w.Unit)
	}
	if g.Peak > 0 {
		say(us.Peak <= g.Peak, "RSS ≤ %g MiB", g.Peak)
	}
	if n := us.total(); g.Requests > 0 {
		say(n <= g.Requests, "≤ %d requests", g.Requests)
	}
	if g.Excess > 0 {
		say(w.excess(ours) <= g.Excess, "fetched ≤ %.3g × asked", g.Excess)
	}
	if least := w.frugal(); g.CPU && least > 0 {
		say(w.cpu(ours) <= least, "CPU ≤ any peer")
	}
	return texts, missed
}

// total is how many requests there were.
func (f figures) total() int {
	n := 0
	for _, k := range f.Requests {
		n += k
	}
	return n
}

// names are the contenders, the mount first, then the plain program.
func (w readRow) names() []string {
	names := make([]string, 0, len(w.By))
	for name := range w.By {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return names
}

func rank(name string) string {
	switch {
	case name == ours:
		return "0"
	case !isPeer(name):
		return "1" + name
	}
	return "2" + name
}
