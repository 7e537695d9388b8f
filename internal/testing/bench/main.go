// Command bench measures a mount beside go-fuse's own loopback file system on
// the same folder: what a user does (ls, cp, large reads and writes), the same
// operations on both, in turns, as ratios of one run. It prints one table.
//
// The folder lies in memory by default, so that it is the file systems that are
// compared and not the disk: the loopback answers close(2) before its bytes are
// durable, lakefs-mount after.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	dir := flag.String("dir", "/dev/shm", "where the folder is made")
	rounds := flag.Int("rounds", 5, "how often each case runs, on each file system in turns")
	large := flag.Int64("large", 1<<30, "bytes of the large file")
	serve := flag.Bool("serve-loopback", false, "serve the loopback: MOUNTPOINT DIR")
	flag.Parse()
	var err error
	if *serve {
		err = serveLoopback(flag.Arg(0), flag.Arg(1))
	} else {
		err = run(*dir, *rounds, *large)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(dir string, rounds int, large int64) (err error) {
	work, err := os.MkdirTemp(dir, "lakefs-mount-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	rig, err := newRig(work, large)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	if err = rig.start(); err != nil {
		return err
	}
	results, err := rig.measure(rounds)
	if err != nil {
		return err
	}
	return rig.print(results)
}

// result is one case's durations by file system.
type result struct {
	name  string
	goal  float64 // the least ratio of the loopback's time to passthrough's, or to plain's
	times map[string][]time.Duration
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// print writes the table. A ratio is the loopback's time over ours: over 1 is faster.
func (r *rig) print(results []result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "case\tloopback\tlakefs-mount\tratio\tno passthrough\tratio\tgoal\t") // kept by w until Flush
	for _, c := range results {
		loop, ours, plain := median(c.times[loopback]), median(c.times[mounted]), median(c.times[noPassthrough])
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%.2f\t%.1f\t\n", c.name, round(loop), round(ours), ratio(loop, ours),
			round(plain), ratio(loop, plain), c.goal)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range r.systems {
		fmt.Printf("%-16s idle RSS %5.1f MiB, after the run %6.1f MiB\n", s.name, s.idle, s.rss()) //nolint:forbidigo // a program's own output
	}
	return nil
}

func round(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

func ratio(loop, ours time.Duration) float64 { return float64(loop) / float64(ours) }

// command runs a program to its end.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput() //nolint:noctx // ends with the bench
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

func build(dir, name, pkg string) (string, error) {
	bin := filepath.Join(dir, name)
	return bin, command("go", "build", "-o", bin, pkg)
}
