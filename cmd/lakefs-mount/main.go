// Command lakefs-mount mounts a data lake's catalog as a file system.
//
// It is the only place that reads flags and the environment, and the only one
// that knows every package: wire.go puts them together. A running mount is
// reached through the files under its .lakefs/ alone.
//
// Exit codes: 0 done; 1 it was tried and did not work; 2 it was asked for in a
// way that cannot be understood. Every error names the thing and the remedy.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// program is what a run of the command has of the world around it.
type program struct {
	name    string // the base name that it was called by
	args    []string
	environ []string
	stdout  io.Writer
	stderr  io.Writer
}

func main() {
	p := &program{
		name: filepath.Base(os.Args[0]), args: os.Args[1:], environ: os.Environ(),
		stdout: os.Stdout, stderr: os.Stderr,
	}
	code := make(chan int)
	go func() { code <- p.run(context.Background()) }()
	os.Exit(<-code)
}

// init keeps the first thread for main, which does nothing but wait. It is the one that
// the kernel has take a signal; while it waited for an answer of a mount, Ctrl-C would
// wait as long.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // later main may be on another thread

// usageError is a call that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported: what went wrong has been printed already.
var errReported = errors.New("reported")

// run is main with an exit code.
func (p *program) run(ctx context.Context) int {
	out := &output{to: p.stdout}
	p.stdout = out
	cmd := p.rootCommand() //nolint:contextcheck // ExecuteContext below hands it over
	if strings.HasPrefix(p.name, "mount.") {
		cmd = p.mountHelperCommand() //nolint:contextcheck // as above
	}
	cmd.SetArgs(p.args)
	cmd.SetOut(p.stdout)
	cmd.SetErr(p.stderr)
	err := out.check(cmd.ExecuteContext(ctx))
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		p.errorf("lakefs-mount: %v\nSee %s --help.\n", err, cmd.CommandPath())
		return exitUsage
	}
	p.errorf("lakefs-mount: %v\n", err)
	return exitFailed
}

// printf writes for the user. That nobody reads it any more is no reason to stop; what
// else goes wrong with it run tells in the end.
func (p *program) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stdout, format, args...)
}

func (p *program) errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, format, args...)
}

// getenv is os.Getenv of the environment that the program was given.
func (p *program) getenv(name string) string {
	for _, kv := range p.environ {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			return value
		}
	}
	return ""
}
