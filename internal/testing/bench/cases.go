package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	manyFiles  = 10_000
	smallFiles = 1_000
	smallSize  = 4_000
	tinyWrites = 20_000
)

// testCase is one thing that a user does, on the table's directory.
type testCase struct {
	name   string
	goal   float64
	before func(r *rig, dir string) error // not measured
	do     func(r *rig, dir string) error
}

func cases() []testCase {
	return []testCase{
		{"ls -l, 10,000 files, cold", 0.8, dropCaches, list},
		{"ls -l again", 0.8, nil, list},
		{"write 128 KiB steps", 0.8, newName, write(128 << 10)},
		{"write 1 MiB steps", 0.8, newName, write(1 << 20)},
		{"write 4 KiB steps", 0.8, newName, tiny},
		{"read 128 KiB steps", 2, dropPages, read(128 << 10)},
		{"read 1 MiB steps", 2, dropPages, read(1 << 20)},
		{"read again, 128 KiB", 0.8, nil, read(128 << 10)},
		{"cp -r 1,000 files in", 0.8, newName, copyIn},
		{"cp -r 1,000 files out", 0.8, outBefore, copyOut},
	}
}

// measure runs every case on every system in turns.
func (r *rig) measure(rounds int) ([]result, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	var results []result
	for _, c := range cases() {
		res := result{name: c.name, goal: c.goal, times: map[string][]time.Duration{}}
		for i := range rounds {
			for j := range r.systems {
				s := r.systems[(i+j)%len(r.systems)]
				if c.before != nil {
					if err := c.before(r, s.root); err != nil {
						return nil, fmt.Errorf("%s, %s: %w", c.name, s.name, err)
					}
				}
				began := time.Now()
				if err := c.do(r, s.root); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", c.name, s.name, err)
				}
				res.times[s.name] = append(res.times[s.name], time.Since(began))
			}
		}
		results = append(results, res)
	}
	return results, nil
}

// prepare makes what is read, in the folder itself.
func (r *rig) prepare() error {
	for _, d := range []string{filepath.Join(r.data, "many"), filepath.Join(r.data, "small"), filepath.Join(r.work, "small")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	for i := range manyFiles {
		if err := os.WriteFile(filepath.Join(r.data, "many", strconv.Itoa(i)), nil, 0o644); err != nil {
			return err
		}
	}
	for i := range smallFiles {
		for _, d := range []string{filepath.Join(r.data, "small"), filepath.Join(r.work, "small")} {
			if err := os.WriteFile(filepath.Join(d, strconv.Itoa(i)), make([]byte, smallSize), 0o644); err != nil {
				return err
			}
		}
	}
	return writeFile(filepath.Join(r.data, "large"), 1<<20, r.large)
}

func writeFile(path string, step, size int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buf := make([]byte, step)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	for done := int64(0); done < size && err == nil; done += step {
		_, err = f.Write(buf)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func list(_ *rig, dir string) error { return command("ls", "-l", filepath.Join(dir, "many")) }

// dropCaches makes the kernel forget names and attributes.
func dropCaches(*rig, string) error {
	if os.Geteuid() != 0 {
		return nil // the figures are then those of a warm cache, for all alike
	}
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0)
}

// newName gives what is written a name that nobody has seen, and removes what
// was written last.
func newName(r *rig, _ string) error {
	if r.name != "" {
		if err := os.RemoveAll(filepath.Join(r.data, r.name)); err != nil {
			return err
		}
	}
	r.turn++
	r.name = "w" + strconv.Itoa(r.turn)
	return nil
}

func write(step int64) func(*rig, string) error {
	return func(r *rig, dir string) error { return writeFile(filepath.Join(dir, r.name), step, r.large) }
}

func tiny(r *rig, dir string) error {
	return writeFile(filepath.Join(dir, r.name), 4<<10, tinyWrites*4<<10)
}

// dropPages makes the kernel forget the large file's pages of this mount.
func dropPages(_ *rig, dir string) error {
	f, err := os.Open(filepath.Join(dir, "large"))
	if err != nil {
		return err
	}
	err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func read(step int) func(*rig, string) error {
	return func(_ *rig, dir string) error {
		fd, err := unix.Open(filepath.Join(dir, "large"), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }() // read only
		buf := make([]byte, step)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n == 0 {
				return err
			}
		}
	}
}

func copyIn(r *rig, dir string) error {
	return command("cp", "-r", filepath.Join(r.work, "small"), filepath.Join(dir, r.name))
}

func outBefore(r *rig, dir string) error {
	if err := os.RemoveAll(filepath.Join(r.work, "out")); err != nil {
		return err
	}
	return dropCaches(r, dir)
}

func copyOut(r *rig, dir string) error {
	return command("cp", "-r", filepath.Join(dir, "small"), filepath.Join(r.work, "out"))
}
