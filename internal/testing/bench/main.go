// Command bench measures a mount beside go-fuse's own loopback file system on
// the same folder: what a user does (ls, cp, large reads and writes), the same
// operations on both, in turns, as ratios of one run. It prints one table.
//
// The folder lies in memory by default, so that it is the file systems that are
// compared and not the disk: the loopback answers close(2) before its bytes are
// durable, lakefs-mount after.
//
// With -write it measures writing to a bucket: versitygw, its data in memory, behind
// a proxy that makes it far away (20 ms to the first byte, 90 MiB/s a connection). A
// plain program with the AWS SDK does the same work beside the mount, in turns; the
// table tells seconds, ratios, requests, bytes, and whose processor time it took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	dir := flag.String("dir", "/dev/shm", "where the folder is made")
	rounds := flag.Int("rounds", 0, "how often each case runs, on each file system in turns (default 5, of -read 3)")
	large := flag.Int64("large", 1<<30, "bytes of the large file")
	serve := flag.Bool("serve-loopback", false, "serve the loopback: MOUNTPOINT DIR")
	write := flag.Bool("write", false, "measure writing to an S3 store, and not the folder")
	read := flag.Bool("read", false, "measure reading from an S3 store, beside other mounts")
	process := flag.String("child", "", "run one of the bench's own processes")
	far := farFlags()
	w, rd := writeFlags(), readFlags()
	flag.Parse()
	if *rounds == 0 {
		*rounds = map[bool]int{true: 3, false: 5}[*read]
	}
	far.dir, far.rounds, far.large = *dir, *rounds, *large
	w.options, rd.options = *far, *far
	var err error
	switch {
	case *serve:
		err = serveLoopback(flag.Arg(0), flag.Arg(1))
	case *process != "":
		err = child(*process, flag.Args())
	case *write:
		err = interruptible(func(ctx context.Context) error { return runWrite(ctx, *w) })
	case *read:
		err = interruptible(func(ctx context.Context) error { return runRead(ctx, *rd) })
	default:
		err = run(*dir, *rounds, *large)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// farFlags are the flags of the benchmarks of a store that is far away.
func farFlags() *options {
	o := &options{}
	flag.DurationVar(&o.firstByte, "first-byte", 20*time.Millisecond, "store: from a request to its answer")
	flag.DurationVar(&o.list, "list", 30*time.Millisecond, "store: from a listing's request to its answer")
	flag.Int64Var(&o.rate, "rate", 90<<20, "store: bytes a second of a connection; 0: no limit")
	flag.StringVar(&o.only, "only", "", "store: only the cases whose name contains this")
	flag.StringVar(&o.flags, "flags", "", "store: further flags of the mount")
	flag.StringVar(&o.bin, "bin", "", "store: the lakefs-mount that is measured (default: it is built)")
	flag.BoolVar(&o.json, "json", false, "store: print JSON")
	return o
}

// writeFlags are the flags of the write benchmark alone.
func writeFlags() *writeOptions {
	o := &writeOptions{}
	flag.StringVar(&o.disk, "disk", ".cache", "write: where the state directory on a disk is made")
	flag.IntVar(&o.files, "files", 100, "write: files of cp -r")
	flag.IntVar(&o.tiny, "tiny", tinyWrites, "write: writes of 4 KiB")
	flag.IntVar(&o.together, "together", 10_000, "write: files of one commit")
	return o
}

// readFlags are the flags of the read benchmark alone.
func readFlags() *readOptions {
	o := &readOptions{}
	flag.StringVar(&o.peers, "peers", "", "read: only those whose name begins with one of these, by commas: ours,plain,rclone (default: all that are there)")
	flag.BoolVar(&o.quick, "quick", false, "read: only the cases that do not take long")
	flag.StringVar(&o.docs, "docs", "", "read: also write benchmarks.md and benchmarks.svg into this directory")
	flag.StringVar(&o.results, "results", "", "read: a file where results are kept, so that a report is of several runs")
	flag.StringVar(&o.keep, "keep", ".cache", "read: where the Parquet file is kept for the next run")
	return o
}

// interruptible runs what ends, and cleans up, by SIGINT and SIGTERM too.
func interruptible(do func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, farTimeout)
	defer cancel()
	return do(ctx)
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
