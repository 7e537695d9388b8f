package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// sample is one run of one contender.
type sample struct {
	Seconds  float64        `json:"seconds"`
	Peak     float64        `json:"peak_rss_mib,omitempty"` // of a process of its own
	Requests map[string]int `json:"requests,omitempty"`     // by operation
	Sent     int64          `json:"sent"`                   // bytes of bodies to the store
	Fetched  int64          `json:"fetched"`                // and from it
	CPU      load           `json:"cpu"`
}

// load is who computed how long, in seconds.
type load struct {
	Mount   float64 `json:"mount"`
	Proxy   float64 `json:"proxy"`
	Store   float64 `json:"store"`
	Program float64 `json:"program"` // dd, cp, or the plain program
	Other   float64 `json:"other"`   // others on the machine, and the kernel's own threads
}

// total is what the work took, whoever did it.
func (l load) total() float64 { return l.Mount + l.Proxy + l.Store + l.Program }

// row is a line of the table.
type row struct {
	Case        string   `json:"case"`
	Ours        string   `json:"ours"`
	Base        string   `json:"base"`
	Seconds     float64  `json:"seconds"`             // median
	BaseSeconds float64  `json:"base_seconds"`        // median
	Ratio       float64  `json:"ratio"`               // base over ours; with AtMost ours over base
	CPURatio    float64  `json:"cpu_ratio,omitempty"` // the same of all processor time: less moved by others on the machine
	Goal        float64  `json:"goal,omitempty"`
	AtMost      bool     `json:"at_most,omitempty"`
	Peak        float64  `json:"peak_rss_mib"` // of the mount, ever
	Samples     []sample `json:"samples"`
	BaseSamples []sample `json:"base_samples,omitempty"`
}

func (r *writeRig) measureAll(ctx context.Context) ([]row, error) {
	var rows []row
	for _, c := range r.cases() {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", c.name)
		all := append([]contender{c.base}, c.ours...)
		samples := make([][]sample, len(all))
		for i := range r.o.rounds {
			for j := range all {
				k := (i + j) % len(all)
				s, err := r.measure(ctx, all[k])
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", c.name, all[k].name, err)
				}
				samples[k] = append(samples[k], s)
			}
		}
		for k, o := range c.ours {
			rows = append(rows, c.row(o, samples[k+1], samples[0]))
		}
	}
	return rows, nil
}

func (c writeCase) row(o contender, ours, base []sample) row {
	w := row{
		Case: c.name, Ours: o.name, Base: c.base.name, Goal: c.goal, AtMost: c.atMost, Samples: ours, BaseSamples: base,
		Seconds: middle(ours).Seconds, BaseSeconds: middle(base).Seconds, Peak: middle(ours).Peak,
	}
	if o.daemon != nil {
		w.Peak = o.daemon.memory("VmHWM:")
	}
	w.Ratio = w.BaseSeconds / w.Seconds
	if all := middle(ours).CPU.total(); all > 0 {
		w.CPURatio = middle(base).CPU.total() / all
	}
	if c.atMost {
		w.Ratio = w.Seconds / w.BaseSeconds
		if w.CPURatio > 0 {
			w.CPURatio = 1 / w.CPURatio
		}
	}
	if c.base.fixed > 0 {
		w.BaseSamples, w.CPURatio = nil, 0
	}
	return w
}

// met tells whether the row reaches its goal.
func (w row) met() bool { return w.Goal == 0 || w.AtMost == (w.Ratio <= w.Goal) }

// middle is the sample of the median time.
func middle(s []sample) sample {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b sample) int { return int(1e6 * (a.Seconds - b.Seconds)) })
	return s[len(s)/2]
}

func (c contender) run(ctx context.Context) (t timing, err error) {
	if c.timing == nil {
		t.Work, err = c.seconds(ctx)
		return t, err
	}
	return c.timing(ctx)
}

// measure runs a contender once.
func (r *writeRig) measure(ctx context.Context, c contender) (s sample, err error) {
	if c.fixed > 0 {
		return sample{Seconds: c.fixed}, nil
	}
	if c.before != nil {
		if err = c.before(ctx); err != nil {
			return s, err
		}
	}
	r.proxy.Reset()
	was := r.times(c.daemon)
	t, err := c.run(ctx)
	if err != nil {
		return s, err
	}
	s.Seconds, s.Peak = t.Work, t.Peak
	s.CPU = r.times(c.daemon).less(was)
	if t.CPU > 0 {
		s.CPU.Program = t.CPU
	}
	s.Requests = r.proxy.Counts()
	for _, q := range r.proxy.Log() {
		s.Sent += q.Received
		s.Fetched += q.Sent
	}
	return s, nil
}

// times are the loads so far; Other is all that the machine did.
func (r *writeRig) times(daemon *system) load {
	l := load{Store: cpu(r.server.Pid()).Seconds(), Proxy: usage(unix.RUSAGE_SELF), Program: usage(unix.RUSAGE_CHILDREN), Other: busy()}
	if daemon != nil {
		l.Mount = cpu(daemon.cmd.Process.Pid).Seconds()
	}
	return l
}

func (l load) less(was load) load {
	d := load{Mount: l.Mount - was.Mount, Proxy: l.Proxy - was.Proxy, Store: l.Store - was.Store, Program: l.Program - was.Program}
	d.Other = max(0, l.Other-was.Other-d.Mount-d.Proxy-d.Store-d.Program)
	return d
}

// usage is the time that this process, or its children that have ended, computed.
func usage(who int) float64 {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// busy is the time that all processors computed.
func busy() float64 {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var user, nice, system, idle, wait, irq, soft float64
	if _, err := fmt.Sscanf(string(raw), "cpu %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &wait, &irq, &soft); err != nil {
		return 0
	}
	return (user + nice + system + irq + soft) / 100
}
