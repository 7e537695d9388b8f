package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/lakefs-mount/lakefs-mount/fs"
)

// readyFlag names the descriptor on which a daemon tells its parent that the
// mount is ready.
const readyFlag = "ready-fd"

// optionsFlag says to a daemon that its flags were given as mount options.
const optionsFlag = "by-options"

// readyWord is what it writes there.
const readyWord = "ready"

// daemonize runs this program again, detached, and returns when its mount is
// ready. Until then the child prints its errors where this process does.
func (p *program) daemonize(ctx context.Context, r *request) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer read.Close() //nolint:errcheck // read to its end
	cmd, err := p.startDaemon(ctx, r, write)
	if err = errors.Join(err, write.Close()); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	forward := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it may have ended
	word, err := io.ReadAll(read)
	if forward() && err == nil && string(word) == readyWord {
		return cmd.Process.Release()
	}
	return p.daemonFailed(ctx, r, cmd.Wait())
}

// daemonFailed tells why a daemon that has ended so was never ready, if it did not tell
// itself, and leaves nothing mounted.
func (p *program) daemonFailed(ctx context.Context, r *request, ended error) error {
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.Exited() && exit.ExitCode() == exitFailed {
		return errReported
	}
	err := errors.New("the daemon ended before the mount was ready")
	if ended != nil {
		err = fmt.Errorf("%w: %w", err, ended)
	}
	// It looked whether another mount was there before it made its own.
	if e, found, _ := mountedAt(r.mountpoint); found && e.ours() && !answers(ctx, r.mountpoint) {
		err = errors.Join(err, detach(context.WithoutCancel(ctx), r.mountpoint))
	}
	return err
}

// startDaemon starts the child, with ready as its descriptor 3. It outlives ctx.
func (p *program) startDaemon(ctx context.Context, r *request, ready *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	own := []string{"mount", "--" + readyFlag + "=3", "--" + optionsFlag + "=" + strconv.FormatBool(r.options)}
	files, mountpoint := []*os.File{ready}, r.mountpoint
	if fd, passed := fs.PassedDescriptor(mountpoint); passed {
		if err := passedUsable(fd); err != nil {
			return nil, err
		}
		files, mountpoint = append(files, os.NewFile(uintptr(fd), mountpoint)), "/dev/fd/4"
	}
	args := slices.Concat(own, r.settings.Flags(), []string{"--", r.source.String(), mountpoint})
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = p.environ
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// tellReady tells the parent of a daemon that the mount is there.
func tellReady(ready *os.File) error {
	if ready == nil {
		return nil
	}
	_, err := ready.WriteString(readyWord)
	if err = errors.Join(err, ready.Close()); err != nil {
		return fmt.Errorf("tell that the mount is ready: %w", err)
	}
	return nil
}
