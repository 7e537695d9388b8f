package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func (r *readRig) manyCases() []readCase {
	get := func(sink bool) func(ctx context.Context, endpoint string, conns int) (timing, error) {
		return func(ctx context.Context, endpoint string, conns int) (timing, error) {
			to := ""
			if !sink {
				to = filepath.Join(r.work, r.name())
			}
			t, err := r.childTiming(ctx, "get-many", endpoint, tableKey+smallData+"/", strconv.Itoa(conns), to)
			if to != "" {
				_ = os.RemoveAll(to) // in memory, and removed with all the rest
			}
			return t, err
		}
	}
	return []readCase{
		{
			name: "cp -r out, 1,000 x 64 KiB", data: []string{smallData}, bytes: smallFiles * manySize, requests: 1010,
			measures: []measure{seconds(measure{most: 3})}, plain: get(false), mount: r.copyOut,
		},
		{
			name: "grep -r, 1,000 x 64 KiB", data: []string{smallData}, slow: true, bytes: smallFiles * manySize, requests: 1010,
			measures: []measure{seconds(measure{most: 3})}, plain: get(true), mount: r.grep,
		},
		{
			name: "50 open files, 1 MiB in turn", data: []string{openData}, slow: true, bytes: openFiles * r.far.large / 64, streams: true, peak: 256,
			measures: []measure{rate(measure{peers: 1.1})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				t, err := r.childTiming(ctx, "read-turns", filepath.Join(m.data, openData), "", "")
				return speed(openFiles*r.far.large/64)(t.Work, err)
			},
			plain: func(ctx context.Context, endpoint string, conns int) (timing, error) {
				size := ":" + strconv.FormatInt(r.far.large/64, 10)
				var keys []string
				for i := range openFiles {
					keys = append(keys, tableKey+openData+"/"+smallName(i)+size)
				}
				return r.throughput(ctx, endpoint, conns, openFiles*r.far.large/64, keys...)
			},
		},
	}
}

func (r *readRig) copyOut(ctx context.Context, m *coldMount) ([]float64, error) {
	to := filepath.Join(r.work, r.name())
	took, err := r.timed(ctx, "cp", "-r", filepath.Join(m.data, smallData), to)
	if err != nil {
		return nil, err
	}
	for i := range smallFiles {
		got, err := os.ReadFile(filepath.Join(to, smallName(i)))
		if err != nil {
			return nil, err
		}
		if string(got) != string(small(i)) {
			return nil, fmt.Errorf("%w: %s", errDiffers, smallName(i))
		}
	}
	return []float64{took}, os.RemoveAll(to)
}

func (r *readRig) grep(ctx context.Context, m *coldMount) ([]float64, error) {
	cmd := exec.CommandContext(ctx, "grep", "-rlaF", needle, filepath.Join(m.data, smallData))
	cmd.Env = append(environ(), "LC_ALL=C")
	began := time.Now()
	out, err := cmd.Output()
	took := since(began)
	if found := strings.Count(string(out), "\n"); err == nil && found != smallFiles/10 {
		err = fmt.Errorf("%w: grep found %d files, want %d", errDiffers, found, smallFiles/10)
	}
	return []float64{took}, err
}

func (r *readRig) listCases() []readCase {
	list := func(data string) func(ctx context.Context, endpoint string, _ int) (timing, error) {
		return func(ctx context.Context, endpoint string, _ int) (timing, error) {
			return r.childTiming(ctx, "list", endpoint, tableKey+data+"/", "")
		}
	}
	one := func(data string, names int, long string) func(ctx context.Context, m *coldMount) ([]float64, error) {
		return func(ctx context.Context, m *coldMount) ([]float64, error) {
			got, err := r.ls(ctx, long, filepath.Join(m.data, data), names)
			return got[:1], err
		}
	}
	return []readCase{
		{
			name: "ls -f of 10,000", data: []string{manyData}, slow: true, requests: 11,
			measures: []measure{seconds(measure{most: 0.45})}, mount: one(manyData, manyFiles, "-f"), plain: list(manyData),
		},
		{
			name: "ls -l of 10,000", data: []string{manyData}, requests: 11,
			measures: []measure{seconds(measure{most: 0.5})}, mount: one(manyData, manyFiles, "-l"), plain: list(manyData),
		},
		{
			name: "ls -f of 100,000", data: []string{hugeData}, slow: true, primed: true,
			measures: []measure{seconds(measure{most: 1.5}), seconds(measure{name: "first name", most: 0.15})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				return r.ls(ctx, "-f", filepath.Join(m.data, hugeData), hugeFiles)
			},
			plain: list(hugeData),
		},
		{
			name: "idle RSS", measures: []measure{{unit: "MiB", lower: true, most: 30}},
			mount: func(_ context.Context, m *coldMount) ([]float64, error) {
				if _, err := os.Stat(m.data); err != nil {
					return nil, err
				}
				return []float64{m.memory("VmRSS:")}, nil
			},
		},
	}
}

// ls lists a directory of so many files, and tells when it was done and when the
// first name came.
func (r *readRig) ls(ctx context.Context, how, dir string, names int) ([]float64, error) {
	cmd := exec.CommandContext(ctx, "ls", how, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return []float64{0, 0}, err
	}
	began := time.Now()
	if err = cmd.Start(); err != nil {
		return []float64{0, 0}, err
	}
	in := bufio.NewReader(out)
	_, _ = in.Peek(1) // an error comes again
	first := since(began)
	raw, err := io.ReadAll(in)
	if waited := cmd.Wait(); waited != nil {
		err = waited
	}
	took := since(began)
	if found := strings.Count(string(raw), "part-"); err == nil && found != names {
		err = fmt.Errorf("%w: ls found %d names, want %d", errDiffers, found, names)
	}
	return []float64{took, first}, err
}
