package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"
)

// machine is where the figures are from.
type machine struct {
	Processor string `json:"processor"`
	Count     int    `json:"processors"`
	Memory    int    `json:"memory_gib"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	Program   string `json:"program"`
	Store     string `json:"store"`
}

// String is a line for each of the machine, the program and the store.
func (m machine) String() string {
	return fmt.Sprintf("%d x %s, %d GiB, Linux %s, %s\n%s\n%s", m.Count, m.Processor, m.Memory, m.Kernel, m.Go, m.Program, m.Store)
}

func (r *farStore) machine() machine {
	m := machine{Count: runtime.NumCPU(), Go: runtime.Version(), Processor: runtime.GOARCH, Store: "versitygw " + storeVersion() + ", posix"}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(raw), "model name"); found {
			m.Processor = strings.Trim(strings.SplitN(rest, "\n", 2)[0], "\t: ")
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.Memory = int(math.Round(statusLine(raw, "MemTotal:") / 1024))
	}
	if out, err := exec.Command(r.bin, "version").Output(); err == nil { //nolint:noctx // prints and ends
		m.Program = strings.TrimSpace(string(out))
	}
	return m
}

// storeVersion is the server's, by the module that it is built from.
func storeVersion() string {
	raw, err := os.ReadFile("tools/versitygw/go.mod")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(raw), "github.com/versity/versitygw ")
	version, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(strings.TrimSuffix(version, "// indirect"))
}

// report writes what was measured.
func (r *writeRig) report(rows []row) error {
	if !r.o.json {
		return r.table(os.Stdout, rows)
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"machine": r.machine(), "rounds": r.o.rounds, "first_byte_ms": r.o.firstByte.Milliseconds(),
		"bytes_per_second": r.o.rate, "flags": r.o.flags, "rows": rows,
	})
}

func (r *writeRig) table(to io.Writer, rows []row) error {
	m := r.machine()
	_, _ = fmt.Fprintf(to, "%s, in %s, %v to the first byte, %d MiB/s a connection; medians of %d\n\n", // as the table: its Flush tells
		m, r.o.dir, r.o.firstByte, r.o.rate>>20, r.o.rounds)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "case\tcompared with\tseconds\tours\tseconds\tratio\tgoal\t\tof CPU\tsent MiB\tfetched MiB\tpeak RSS MiB\t") // kept by w until Flush
	for _, c := range rows {
		s := middle(c.Samples)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.3f\t%s\t%.3f\t%.2f\t%s\t%s\t%s\t%.1f\t%.1f\t%.0f\t\n", c.Case, c.Base, c.BaseSeconds, c.Ours, c.Seconds,
			c.Ratio, c.goalText(), map[bool]string{true: "", false: "missed"}[c.met()], c.cpuText(), float64(s.Sent)/(1<<20), float64(s.Fetched)/(1<<20), c.Peak)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(to, "\nprocessor seconds and requests of the median run")
	for _, c := range rows {
		if len(c.BaseSamples) > 0 {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t\n", c.Case, c.Base, middle(c.BaseSamples))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t\n", c.Case, c.Ours, middle(c.Samples))
	}
	return w.Flush()
}

func (w row) cpuText() string {
	if w.CPURatio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", w.CPURatio)
}

func (w row) goalText() string {
	switch {
	case w.Goal == 0:
		return "-"
	case w.AtMost:
		return fmt.Sprintf("<= %.2f", w.Goal)
	}
	return fmt.Sprintf(">= %.2f", w.Goal)
}

// String is the sample's processor time and requests.
func (s sample) String() string {
	names := make([]string, 0, len(s.Requests))
	for op, n := range s.Requests {
		names = append(names, fmt.Sprintf("%s %d", op, n))
	}
	slices.Sort(names)
	return fmt.Sprintf("mount %.2f, proxy %.2f, store %.2f, program %.2f, other %.2f\t%s",
		s.CPU.Mount, s.CPU.Proxy, s.CPU.Store, s.CPU.Program, s.CPU.Other, strings.Join(names, ", "))
}
