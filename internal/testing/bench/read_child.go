package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	randomReads  = 256
	randomSize   = 256 << 10
	parquetTail  = 64 << 10
	parquetReads = 20
	parquetBytes = parquetTail + parquetReads<<20
)

// readChild runs a child of the read benchmark.
func readChild(ctx context.Context, name string, args []string) (timing, error) {
	var err error
	number := func(i int) int64 {
		n, problem := strconv.ParseInt(args[i], 10, 64)
		err = errors.Join(err, problem)
		return n
	}
	var do func() (timing, error)
	switch name {
	case "read-random":
		threads := int(number(1))
		do = func() (timing, error) { return readRandom(args[0], threads) }
	case "read-first":
		do = func() (timing, error) { return readFirst(args[0]) }
	case "read-parquet":
		do = func() (timing, error) { return readParquet(args[0]) }
	case "read-turns":
		do = func() (timing, error) { return readTurns(args[0]) }
	case "read-check":
		seed := uint64(number(1))
		do = func() (timing, error) { return timing{}, readCheck(args[0], seed) }
	default:
		return plainChild(ctx, name, args)
	}
	if err != nil {
		return timing{}, err
	}
	return do()
}

// places are where a file is read, on pages. They are the same in every run.
func places(n int, size, piece int64) []int64 {
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	at := make([]int64, n)
	for i := range at {
		at[i] = source.Int64N((size-piece)>>12) << 12
	}
	return at
}

// random reads the pieces at places by some threads, each some of them, and
// compares them when the time is taken.
func random(size int64, threads int, read func(p []byte, off int64) error) (timing, error) {
	at := places(randomReads, size, randomSize)
	buf := make([]byte, randomReads*randomSize)
	for i := 0; i < len(buf); i += 4096 {
		buf[i] = 1 // memory that is there
	}
	took := make([]float64, randomReads)
	piece := func(i int) []byte { return buf[i*randomSize : (i+1)*randomSize] }
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	var group errgroup.Group
	for t := range threads {
		group.Go(func() error {
			for i := t; i < randomReads; i += threads {
				asked := time.Now()
				if err := read(piece(i), at[i]); err != nil {
					return err
				}
				took[i] = 1000 * since(asked)
			}
			return nil
		})
	}
	err := group.Wait()
	t := timing{Work: since(began), CPU: usage(unix.RUSAGE_SELF) - computed, Peak: peak()}
	for i := range at {
		err = errors.Join(err, same(piece(i), largeSeed, at[i]))
	}
	slices.Sort(took)
	t.Values = []float64{took[len(took)/2], randomReads / t.Work}
	return t, err
}

// opened is a file and its size. It stays open: the process ends soon.
func opened(path string) (*os.File, int64, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// full is a ReadAt that is an error when it is short.
func full(f *os.File) func(p []byte, off int64) error {
	return func(p []byte, off int64) error {
		_, err := f.ReadAt(p, off)
		return err
	}
}

func readRandom(path string, threads int) (timing, error) {
	f, size, err := opened(path)
	if err != nil {
		return timing{}, err
	}
	return random(size, threads, full(f))
}

// readFirst opens a file and reads a byte.
func readFirst(path string) (timing, error) {
	p := make([]byte, 1)
	began := time.Now()
	f, err := os.Open(filepath.Clean(path))
	if err == nil {
		_, err = f.Read(p)
	}
	took := since(began)
	if err == nil {
		want := make([]byte, 8)
		pattern(want, largeSeed, 0)
		if p[0] != want[0] {
			err = errDiffers
		}
	}
	return timing{Work: took, Values: []float64{1000 * took}}, err
}

// parquet reads as engines read a Parquet file: its end, then here and there.
func parquet(size int64, read func(p []byte, off int64) error) (timing, error) {
	tail := make([]byte, parquetTail)
	at := places(parquetReads, size, 1<<20)
	buf := make([]byte, parquetReads<<20)
	for i := 0; i < len(buf); i += 4096 {
		buf[i] = 1 // memory that is there
	}
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	err := read(tail, size-parquetTail)
	for i, off := range at {
		if err == nil {
			err = read(buf[i<<20:(i+1)<<20], off)
		}
	}
	t := timing{Work: since(began), CPU: usage(unix.RUSAGE_SELF) - computed, Peak: peak()}
	t.Values = []float64{1000 * t.Work}
	if err != nil {
		return t, err
	}
	err = same(tail, largeSeed, size-parquetTail)
	for i, off := range at {
		err = errors.Join(err, same(buf[i<<20:(i+1)<<20], largeSeed, off))
	}
	return t, err
}

// readParquet counts what it takes to open the file too.
func readParquet(path string) (timing, error) {
	began := time.Now()
	f, size, err := opened(path)
	if err != nil {
		return timing{}, err
	}
	open := since(began)
	t, err := parquet(size, full(f))
	t.Work += open
	t.Values = []float64{1000 * t.Work}
	return t, err
}

// readTurns reads the files of a directory, all open at once, by 1 MiB each.
func readTurns(dir string) (timing, error) {
	buf := make([]byte, 1<<20)
	began := time.Now()
	files := make([]*os.File, openFiles)
	var size int64
	for i := range files {
		var err error
		if files[i], size, err = opened(filepath.Join(dir, smallName(i))); err != nil {
			return timing{}, err
		}
	}
	for off := int64(0); off < size; off += int64(len(buf)) {
		for i, f := range files {
			p := buf[:min(int64(len(buf)), size-off)]
			if _, err := f.ReadAt(p, off); err != nil {
				return timing{}, err
			}
			if err := same(p[:64], openSeed+uint64(i), off); err != nil {
				return timing{}, err
			}
		}
	}
	return timing{Work: since(began)}, nil
}

// readCheck compares a whole file.
func readCheck(path string, seed uint64) error {
	f, size, err := opened(path)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size; off += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), size-off)]
		if _, err := f.ReadAt(p, off); err != nil {
			return err
		}
		if err := same(p, seed, off); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
