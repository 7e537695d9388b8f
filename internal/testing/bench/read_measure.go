package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"
)

const (
	runLimit = 120 * time.Second // of one run: then it is too slow to wait for
	slowRun  = 15 * time.Second  // who takes longer is measured once
)

// figures are of one run of one contender.
type figures struct {
	Values   []float64      `json:"values"`                 // of the case's measures
	Peak     float64        `json:"peak_rss_mib,omitempty"` // VmHWM
	CPU      float64        `json:"cpu"`                    // seconds, of the daemon or the plain program
	Requests map[string]int `json:"requests,omitempty"`
	Fetched  int64          `json:"fetched"`           // bytes of bodies from the store
	Sent     int64          `json:"sent"`              // and to it
	Early    bool           `json:"early,omitempty"`   // ended before what it wrote was stored
	Problem  string         `json:"problem,omitempty"` // why there are no values
	took     time.Duration
}

// readRow is a line of the table.
type readRow struct {
	Case string             `json:"case"`
	Unit string             `json:"unit"`
	By   map[string]outcome `json:"by"` // contenders
	m    measure
	c    readCase
}

// outcome is what a contender reached.
type outcome struct {
	figures
	Value   float64   `json:"value"` // median
	Samples []float64 `json:"samples,omitempty"`
}

// runCase runs a case with every contender in turns.
func (r *readRig) runCase(ctx context.Context, c readCase, who []reader) ([]readRow, error) {
	say("%s", c.name)
	runs := map[string][]figures{}
	for i := range r.far.rounds {
		for j := range who {
			w := who[(i+j)%len(who)]
			if !c.takes(w) || i > 0 && !repeated(runs[w.name]) {
				continue
			}
			f, err := r.runOnce(ctx, c, w, i == 0)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				f.Problem = err.Error()
				say("%s, %s: %v", c.name, w.name, err)
			}
			runs[w.name] = append(runs[w.name], f)
		}
	}
	rows := make([]readRow, 0, len(c.measures))
	for i, m := range c.measures {
		row := readRow{Case: c.name, Unit: m.unit, By: map[string]outcome{}, m: m, c: c}
		if m.name != "" {
			row.Case += ": " + m.name
		}
		for name, all := range runs {
			row.By[name] = summary(all, i)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// takes tells whether the case is one for a contender.
func (c readCase) takes(w reader) bool {
	switch {
	case w.name == plain:
		return c.plain != nil
	case w.name == plainFew:
		return c.plain != nil && c.few
	}
	return c.streams || !w.streams
}

// repeated tells whether a contender is to be measured again.
func repeated(runs []figures) bool {
	if len(runs) == 0 {
		return false
	}
	last := runs[len(runs)-1]
	return last.Problem == "" && last.took < slowRun
}

// summary is the run of the median value of a measure.
func summary(runs []figures, i int) outcome {
	good := slices.DeleteFunc(slices.Clone(runs), func(f figures) bool { return f.Problem != "" || len(f.Values) <= i })
	if len(good) == 0 {
		return outcome{figures: runs[len(runs)-1], Value: math.NaN()}
	}
	slices.SortFunc(good, func(a, b figures) int {
		switch {
		case a.Values[i] < b.Values[i]:
			return -1
		case a.Values[i] > b.Values[i]:
			return 1
		}
		return 0
	})
	o := outcome{figures: good[len(good)/2]}
	o.Value = o.Values[i]
	for _, f := range good {
		o.Samples = append(o.Samples, f.Values[i])
		o.Peak = max(o.Peak, f.Peak)
	}
	return o
}

// MarshalJSON leaves out a value that is none.
func (o outcome) MarshalJSON() ([]byte, error) {
	type bare outcome
	if math.IsNaN(o.Value) {
		o.Value = 0
	}
	return json.Marshal(bare(o))
}

// runOnce runs a case once, in a mount of its own.
func (r *readRig) runOnce(ctx context.Context, c readCase, w reader, compare bool) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	endpoint := r.endpoint()
	if c.near {
		endpoint = r.server.Endpoint
	}
	began := time.Now()
	defer func() {
		f.took = time.Since(began)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("more than %v", runLimit)
		}
	}()
	if w.conns > 0 {
		return r.runPlain(ctx, c, w, endpoint)
	}
	m, err := r.cold(ctx, w, endpoint)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if c.before != nil {
		if err = c.before(ctx, m.data); err != nil {
			return f, err
		}
	}
	r.proxy.Reset()
	was := cpu(m.cmd.Process.Pid)
	if f.Values, err = c.mount(ctx, m); err != nil {
		return f, err
	}
	f.CPU, f.Peak = (cpu(m.cmd.Process.Pid) - was).Seconds(), m.memory("VmHWM:")
	r.traffic(&f)
	if c.after != nil && compare {
		err = c.after(ctx, m)
	}
	return f, err
}

func (r *readRig) runPlain(ctx context.Context, c readCase, w reader, endpoint string) (f figures, err error) {
	r.proxy.Reset()
	t, err := c.plain(ctx, endpoint, w.conns)
	f.Values, f.CPU, f.Peak = t.Values, t.CPU, t.Peak
	r.traffic(&f)
	return f, err
}

// traffic tells what passed the proxy since it was reset.
func (r *readRig) traffic(f *figures) {
	f.Requests = r.proxy.Counts()
	for _, q := range r.proxy.Log() {
		f.Sent += q.Received
		f.Fetched += q.Sent
	}
}

// program runs one that prints a timing.
func program(ctx context.Context, name string, args ...string) (t timing, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &t)
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}
