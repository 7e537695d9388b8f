package main

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// readCase is one thing that a user does with a mount that nobody has used.
type readCase struct {
	name     string
	data     []string
	measures []measure
	bytes    int64   // that are asked for
	slow     bool    // not of a quick run
	near     bool    // with the store itself, past the proxy
	streams  bool    // also with a peer's settings for throughput
	few      bool    // also with few connections of the plain program
	primed   bool    // a first run of each contender is not measured: it asks the store what the next are told by the proxy
	peak     float64 // goal: MiB of resident memory, at most
	requests int     // goal: at most
	excess   float64 // goal: bytes fetched for each that is asked for, at most

	before func(ctx context.Context, dir string) error                           // in the mount, not measured
	mount  func(ctx context.Context, m *coldMount) ([]float64, error)            // values of the measures
	stored func(ctx context.Context, m *coldMount) bool                          // what was written is in the store; asked at the end of mount
	after  func(ctx context.Context, m *coldMount) error                         // compares, where that is not part of mount
	plain  func(ctx context.Context, endpoint string, conns int) (timing, error) // nil: there is no such program
}

// measure is one figure of a case. Its goals are zero where there are none.
type measure struct {
	name         string // "": the case's
	unit         string
	lower        bool    // the lower, the better
	peers, limit float64 // goal: how much better than the best peer, and than the plain program, at least
	most, least  float64 // goal: absolute
}

func rate(m measure) measure { m.unit = "MiB/s"; return m }

func seconds(m measure) measure { m.unit, m.lower = "s", true; return m }

func millis(m measure) measure { m.unit, m.lower = "ms", true; return m }

// readCases are those that are asked for.
func (r *readRig) readCases() []readCase {
	all := slices.Concat(r.sequentialCases(), r.randomCases(), r.manyCases(), r.listCases(), r.writeCases())
	return slices.DeleteFunc(all, func(c readCase) bool {
		return !strings.Contains(c.name, r.far.only) || r.o.quick && c.slow
	})
}

func (r *readRig) sequentialCases() []readCase {
	large := r.far.large
	key := func(name string, size int64) string { return tableKey + name + ":" + strconv.FormatInt(size, 10) }
	whole := func(ctx context.Context, m *coldMount) ([]float64, error) {
		return speed(large)(r.dd(ctx, filepath.Join(m.data, largeData)))
	}
	get := func(ctx context.Context, endpoint string, conns int) (timing, error) {
		return r.throughput(ctx, endpoint, conns, large, key(largeData, large))
	}
	check := func(ctx context.Context, m *coldMount) error {
		return r.check(ctx, filepath.Join(m.data, largeData), largeSeed)
	}
	var four []string
	for i := range readers {
		four = append(four, key(fourData+"/"+strconv.Itoa(i), large/2))
	}
	return []readCase{
		{
			name: "sequential " + mib(large), data: []string{largeData}, bytes: large, streams: true, few: true, peak: 220,
			measures: []measure{rate(measure{peers: 1.6, limit: 0.7})}, mount: whole, plain: get, after: check,
		},
		{
			name: "4 readers, " + mib(large/2) + " each", data: []string{fourData}, bytes: readers * large / 2, streams: true, few: true, peak: 256,
			measures: []measure{rate(measure{peers: 1.25, limit: 0.7})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				var group errgroup.Group
				began := time.Now()
				for i := range readers {
					group.Go(func() error {
						_, err := r.dd(ctx, filepath.Join(m.data, fourData, strconv.Itoa(i)))
						return err
					})
				}
				err := group.Wait()
				return speed(readers*large/2)(since(began), err)
			},
			plain: func(ctx context.Context, endpoint string, conns int) (timing, error) {
				return r.throughput(ctx, endpoint, conns, readers*large/2, four...)
			},
		},
		{
			name: "sequential, no proxy", data: []string{largeData}, bytes: large, slow: true, near: true, streams: true, few: true,
			measures: []measure{rate(measure{peers: 1.3})}, mount: whole, plain: get,
		},
		{
			name: "read again", data: []string{largeData}, bytes: large,
			measures: []measure{rate(measure{least: 2000})},
			before: func(ctx context.Context, dir string) error {
				_, err := r.dd(ctx, filepath.Join(dir, largeData))
				return err
			},
			mount: whole,
		},
	}
}

func (r *readRig) randomCases() []readCase {
	large := r.far.large
	var all []readCase
	for threads, goal := range map[int]float64{1: 40, 4: 165} {
		n := strconv.Itoa(threads)
		all = append(all, readCase{
			name: "random 256 KiB, threads: " + n, data: []string{largeData}, bytes: randomReads * randomSize, excess: 1.3, slow: threads == 1,
			measures: []measure{millis(measure{name: "p50", most: 25}), {name: "IOPS", unit: "1/s", least: goal}},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				return values(r.childTiming(ctx, "read-random", filepath.Join(m.data, largeData), n, ""))
			},
			plain: func(ctx context.Context, endpoint string, _ int) (timing, error) {
				return r.childTiming(ctx, "get-random", endpoint, n, strconv.FormatInt(large, 10))
			},
		})
	}
	slices.SortFunc(all, func(a, b readCase) int { return strings.Compare(a.name, b.name) })
	first := func(ctx context.Context, m *coldMount) ([]float64, error) {
		return values(r.childTiming(ctx, "read-first", filepath.Join(m.data, largeData), "", ""))
	}
	bare := func(ctx context.Context, endpoint string, _ int) (timing, error) {
		return r.childTiming(ctx, "get-first", endpoint, strconv.FormatInt(large, 10), "")
	}
	return append(all,
		readCase{name: "first byte, cold mount", data: []string{largeData}, measures: []measure{millis(measure{most: 60})}, mount: first, plain: bare},
		readCase{
			name: "first byte, known directory", data: []string{largeData}, measures: []measure{millis(measure{most: 30})}, mount: first, plain: bare,
			before: func(ctx context.Context, dir string) error { _, err := r.timed(ctx, "ls", "-l", dir); return err },
		},
		readCase{
			name: "Parquet pattern", data: []string{tailData}, bytes: parquetBytes, excess: 24.0 / (float64(parquetBytes) / (1 << 20)),
			measures: []measure{millis(measure{most: 700})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				return values(r.childTiming(ctx, "read-parquet", filepath.Join(m.data, tailData), "", ""))
			},
			plain: func(ctx context.Context, endpoint string, _ int) (timing, error) {
				return r.childTiming(ctx, "get-parquet", endpoint, strconv.FormatInt(large, 10), "")
			},
		},
		readCase{
			name: "DuckDB, sum of a column", data: []string{wideData}, bytes: large / wideColumns, slow: true,
			measures: []measure{seconds(measure{peers: 1.3})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				t, err := r.sumChecked(ctx, filepath.Join(m.data, wideData))
				return []float64{t.Work}, err
			},
		})
}

// dd reads a file.
func (r *readRig) dd(ctx context.Context, path string) (float64, error) {
	return r.timed(ctx, "dd", "if="+path, "of=/dev/null", "bs=1M", "status=none")
}

// check reads a file once more, and compares it.
func (r *readRig) check(ctx context.Context, path string, seed int) error {
	_, err := r.childTiming(ctx, "read-check", path, strconv.Itoa(seed), "")
	return err
}

// throughput is what a plain program reaches that gets objects, KEY:SIZE.
func (r *readRig) throughput(ctx context.Context, endpoint string, conns int, size int64, keys ...string) (timing, error) {
	t, err := r.childTiming(ctx, append([]string{"get", endpoint, strconv.Itoa(conns)}, keys...)...)
	t.Values, _ = speed(size)(t.Work, err) // the same error
	return t, err
}

// speed makes MiB/s of seconds.
func speed(size int64) func(took float64, err error) ([]float64, error) {
	return func(took float64, err error) ([]float64, error) {
		if err != nil {
			return nil, err
		}
		return []float64{float64(size) / (1 << 20) / took}, nil
	}
}

// values are those of a child.
func values(t timing, err error) ([]float64, error) { return t.Values, err }
