package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// logFileMax is the size in bytes at which a daemon's log is put aside, as
// NAME.1, and begun anew.
const logFileMax = 10 << 20

// logPatience bounds how long a line may wait for whoever reads the log.
const logPatience = time.Second

var errLogStuck = errors.New("nobody reads the log")

// logSink is where the log goes: to a stream, or from toFile on to a file whose
// size is bounded. A reader that stands still (a pager, a terminal with Ctrl-S) costs
// lines, and never the mount: what logs them would wait for it with a request of a
// program, or with the signals.
type logSink struct {
	stuck atomic.Bool // a line is being written for longer than logPatience
	mu    struct {
		sync.Mutex
		w    io.Writer
		path string // of the file; "" while it is a stream
		size int64
	}
}

func newLogSink(w io.Writer) *logSink {
	s := &logSink{}
	s.mu.w = w
	return s
}

// Write is io.Writer's. A line that is not taken is lost.
func (s *logSink) Write(p []byte) (int, error) {
	if s.stuck.Load() {
		return 0, errLogStuck
	}
	line, done := slices.Clone(p), make(chan error, 1)
	go func() {
		_, err := s.write(line)
		done <- err // first: who waits looks once more
		s.stuck.Store(false)
	}()
	select {
	case err := <-done:
		return len(p), err
	case <-time.After(logPatience):
		s.stuck.Store(true)
	}
	select {
	case err := <-done:
		s.stuck.Store(false)
		return len(p), err
	default:
		return 0, errLogStuck
	}
}

func (s *logSink) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.path != "" && s.mu.size+int64(len(p)) > logFileMax {
		if err := s.openLocked(s.mu.path); err != nil {
			return 0, err
		}
	}
	n, err := s.mu.w.Write(p)
	s.mu.size += int64(n)
	return n, err
}

// toFile turns the log, and whatever else this process prints, to the file at
// path. An older one is put aside. What was standard output and error is closed.
func (s *logSink) toFile(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(path); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	s.mu.w = os.Stderr
	s.mu.path = path
	return nil
}

// openLocked begins a new file as descriptors 1 and 2.
func (s *logSink) openLocked(path string) error {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.mu.size = 0
	return errors.Join(unix.Dup3(int(f.Fd()), 1, 0), unix.Dup3(int(f.Fd()), 2, 0), f.Close())
}
