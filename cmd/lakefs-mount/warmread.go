package main

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	warmReaders = 32       // files at once
	warmLarge   = 8        // of them larger than warmSmall
	warmSmall   = 64 << 10 // bytes: more is answer's bytes than waiting for the answer
	warmPiece   = 1 << 20  // bytes of a read: the most that the kernel asks a mount for at once
)

// warmer reads files through their mounts.
type warmer struct {
	p    *program
	read atomic.Int64 // bytes

	mu     sync.Mutex // guards result and bar's line
	bar    *progress
	result warmed
}

// warmFile is a file to read.
type warmFile struct {
	path string
	size int64
}

// run lists what is to be read, and reads it. It returns when all is done, or at
// once when ctx is: what is being read then ends with the process.
func (w *warmer) run(ctx context.Context, places []place) {
	var files []warmFile
	var total int64
	var listed atomic.Int64
	w.bar = w.p.newSteps("files")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.bar.steps(ctx, func(context.Context) (int64, int64) { return listed.Load(), 0 }, func() error {
			for _, at := range places {
				w.list(ctx, at, func(f warmFile) {
					files = append(files, f)
					total += f.size
					listed.Add(1)
				})
			}
			return nil
		})
	}()
	if !ended(ctx, done) {
		return
	}
	w.bar.clear()
	w.warnOfCache(total)
	done = make(chan struct{})
	w.mu.Lock()
	w.bar = w.p.newProgress(total)
	w.mu.Unlock()
	go func() {
		defer close(done)
		_ = w.bar.during(ctx, func(context.Context) { w.bar.show(min(w.read.Load(), total)) }, func() error {
			w.readAll(ctx, files)
			return nil
		})
	}()
	ended(ctx, done)
	w.bar.clear()
}

// outcome is what was done so far.
func (w *warmer) outcome() warmed {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.result
	r.Bytes = w.read.Load()
	r.Failed = slices.Clone(r.Failed)
	return r
}

// ended waits for done; false: ctx was done before.
func ended(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// list finds the files at and below a place, without what is no data: entries, control
// files and symbolic links.
func (w *warmer) list(ctx context.Context, from place, found func(warmFile)) {
	err := filepath.WalkDir(from.path, func(at string, e iofs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			w.fail(at, err)
			if e != nil && e.IsDir() {
				return iofs.SkipDir
			}
			return nil
		case e.IsDir() && e.Name() == ".lakefs":
			return iofs.SkipDir
		case !e.Type().IsRegular() || isEntry(from.mount.path, at):
			return nil
		}
		info, err := e.Info()
		if err != nil {
			w.fail(at, err)
			return nil
		}
		found(warmFile{at, info.Size()})
		return nil
	})
	if err != nil && ctx.Err() == nil {
		w.fail(from.path, err)
	}
}

// isEntry tells NAME.json beside a directory NAME, of a database or of a table: what
// lies deeper in the mount is data.
func isEntry(mountpoint, path string) bool {
	dir, found := strings.CutSuffix(path, ".json")
	below, err := filepath.Rel(mountpoint, path)
	return found && err == nil && strings.Count(below, "/") < 2 && isDirectory(dir)
}

func (w *warmer) readAll(ctx context.Context, files []warmFile) {
	next := make(chan warmFile)
	large := make(chan struct{}, warmLarge)
	var readers sync.WaitGroup
	for range min(warmReaders, len(files)) {
		readers.Go(func() {
			buf := make([]byte, warmPiece)
			for f := range next {
				if err := w.readOne(ctx, f, buf, large); err != nil && ctx.Err() == nil {
					w.fail(f.path, err)
				}
			}
		})
	}
	for _, f := range files {
		select {
		case next <- f:
		case <-ctx.Done():
		}
	}
	close(next)
	readers.Wait()
}

// readOne reads a file, in its turn where it is large.
func (w *warmer) readOne(ctx context.Context, f warmFile, buf []byte, large chan struct{}) error {
	if f.size > warmSmall {
		select {
		case large <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-large }()
	}
	return w.readFile(ctx, f.path, buf)
}

// readFile reads a file past the page cache, from which the mount would be asked
// nothing; where that is not possible, the page cache is told to forget it before
// and after.
func (w *warmer) readFile(ctx context.Context, path string, buf []byte) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT|unix.O_NOFOLLOW, 0)
	if errors.Is(err, iofs.ErrInvalid) {
		if f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0); err == nil {
			forget(f)
			defer forget(f)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read alone
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		w.read.Add(int64(n))
		if errors.Is(err, io.EOF) {
			w.mu.Lock()
			w.result.Files++
			w.mu.Unlock()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func forget(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) } // advice

// fail names a path that could not be read, at once.
func (w *warmer) fail(path string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bar.clear()
	reason := printable(bare(err).Error())
	w.result.Failed = append(w.result.Failed, warmFailure{path, reason})
	w.p.errorf("lakefs-mount: %q: %s\n", path, reason)
}
