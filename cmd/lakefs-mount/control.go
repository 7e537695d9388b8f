package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// answerTimeout bounds how long a mount may take to answer a question about itself.
const answerTimeout = 10 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", answerTimeout)

// bounded runs op, which touches a mount and may hang, for at most limit. An op
// that outlives it ends with the mount.
func bounded[T any](ctx context.Context, limit time.Duration, op func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := op()
		done <- outcome{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
		return *new(T), errNoAnswer
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}

// answers tells whether a daemon serves the mount at path; one that takes too
// long does. It asks by statfs, which the kernel never answers from a cache: a
// stat of a mount that has just died may look well.
func answers(ctx context.Context, path string) bool {
	err := askMount(ctx, path)
	return err == nil || errors.Is(err, errNoAnswer)
}

func askMount(ctx context.Context, path string) error {
	_, err := bounded(ctx, answerTimeout, func() (struct{}, error) {
		return struct{}{}, unix.Statfs(path, new(unix.Statfs_t))
	})
	return err
}

// readControl reads a file of the mount's .lakefs/.
func readControl(ctx context.Context, mountpoint, name string) ([]byte, error) {
	return bounded(ctx, answerTimeout, func() ([]byte, error) { return readControlNow(mountpoint, name) })
}

// readControlNow is readControl for as long as the mount takes.
func readControlNow(mountpoint, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(mountpoint, ".lakefs", name))
}

// writeControl gives the mount a command, and returns its error. limit bounds
// the wait for the outcome.
func writeControl(ctx context.Context, mountpoint, command string, limit time.Duration) error {
	if err := writeLine(ctx, rootControl(mountpoint), command, limit); err != nil {
		return fmt.Errorf("%s: %w", mountpoint, bare(err))
	}
	return nil
}

// rootControl is the control file of the mount as a whole.
func rootControl(mountpoint string) string { return filepath.Join(mountpoint, ".lakefs", "ctl") }

// writeLine writes a command into a control file, and returns its error as it came.
func writeLine(ctx context.Context, control, command string, limit time.Duration) error {
	_, err := bounded(ctx, limit, func() (struct{}, error) {
		f, err := os.OpenFile(control, os.O_WRONLY, 0)
		if err != nil {
			return struct{}{}, err
		}
		_, err = f.WriteString(command + "\n")
		return struct{}{}, errors.Join(err, f.Close())
	})
	return err
}

// longControl is writeControl for a command that takes as long as bytes move: it is
// waited for while the mount answers other questions, and at most for limit.
func longControl(ctx context.Context, mountpoint, command string, limit time.Duration) error {
	if err := longLine(ctx, mountpoint, rootControl(mountpoint), command, limit); err != nil {
		return fmt.Errorf("%s: %w", mountpoint, bare(err))
	}
	return nil
}

// longLine is longControl for any control file of the mount; its error is as it came.
func longLine(ctx context.Context, mountpoint, control, command string, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		tick := time.NewTicker(answerTimeout)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := askMount(ctx, mountpoint); err != nil {
				cancel(err)
			}
		}
	})
	return writeLine(ctx, control, command, limit)
}
