package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// output is standard output. It keeps the first error of a write, for most of what is
// printed goes on without looking. It may be used concurrently.
type output struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

// Write writes text, also behind an error: a full file system may have room again for
// what tells of the end.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.to.Write(text)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err //nolint:wrapcheck // an io.Writer's
}

// check is how a command ended that returned err, what it printed looked at too. That
// nobody reads it any more is not told.
func (o *output) check(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(o.err, unix.EPIPE) { //nolint:forbidigo // of a pipe
		return err
	}
	lost := fmt.Errorf("not all was printed: standard output: %w", bare(o.err))
	switch {
	case err == nil, errors.Is(err, errReported), errors.Is(err, bare(o.err)):
		return lost
	}
	return fmt.Errorf("%w; %w", err, lost)
}

// stdoutFile is standard output where that is a file, as a terminal is.
func (p *program) stdoutFile() (*os.File, bool) {
	to := p.stdout
	if o, ok := to.(*output); ok {
		to = o.to
	}
	f, ok := to.(*os.File)
	return f, ok
}
