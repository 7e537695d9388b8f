package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// slowRun is of who is measured once: to repeat it would take the whole run's time.
const slowRun = 15 * time.Second

// limit is how long one run may take: then it is too slow to wait for.
func (o readOptions) limit() time.Duration {
	if o.quick {
		return 8 * time.Second
	}
	return 2 * time.Minute
}

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

// runCase runs a case with every contender in turns.
func (r *readRig) runCase(ctx context.Context, c readCase, who []reader) ([]readRow, error) {
	say("%s", c.name)
	if c.primed {
		r.prime(ctx, c, who)
	}
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
	for i := range c.measures {
		rows = append(rows, c.row(i, runs))
	}
	return rows, nil
}

// prime runs a case once with every contender, which nobody measures.
func (r *readRig) prime(ctx context.Context, c readCase, who []reader) {
	for _, w := range who {
		if c.takes(w) {
			_, _ = r.runOnce(ctx, c, w, false) // what fails now fails again
		}
	}
}

// takes tells whether the case is one for a contender.
func (c readCase) takes(w reader) bool {
	switch w.name {
	case plain:
		return c.plain != nil
	case plainFew:
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

// runOnce runs a case once, in a mount of its own.
func (r *readRig) runOnce(ctx context.Context, c readCase, w reader, compare bool) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.limit())
	defer cancel()
	endpoint := r.endpoint()
	if c.near {
		endpoint = r.server.Endpoint
	}
	began := time.Now()
	defer func() {
		f.took = time.Since(began)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("more than %v", r.o.limit())
		}
	}()
	if w.conns > 0 {
		return r.runPlain(ctx, c, w, endpoint)
	}
	m, err := r.cold(ctx, w, endpoint)
	if err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, m.close(), r.clean(ctx, c))
		if err != nil && m.said.Len() > 0 {
			say("%s said: %s", w.name, m.said.String())
		}
	}()
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
	f.Early = c.stored != nil && !c.stored(ctx, m)
	if c.after != nil && compare && !f.Early {
		err = c.after(ctx, m)
	}
	return f, err
}

// clean removes what a run wrote.
func (r *readRig) clean(ctx context.Context, c readCase) error {
	if c.stored == nil {
		return nil
	}
	return r.forget(context.WithoutCancel(ctx))
}

func (r *readRig) runPlain(ctx context.Context, c readCase, w reader, endpoint string) (f figures, err error) {
	r.proxy.Reset()
	t, err := c.plain(ctx, endpoint, w.conns)
	f.Values, f.CPU, f.Peak = t.Values, t.CPU, t.Peak
	r.traffic(&f)
	return f, errors.Join(err, r.clean(ctx, c))
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
	if t, err = timingOf(exec.CommandContext(ctx, name, args...)); err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// timingOf runs cmd, which prints a timing.
func timingOf(cmd *exec.Cmd) (t timing, err error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &t)
	}
	return t, err
}
