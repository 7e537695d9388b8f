package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// mountAnswer is what a mount told: the files of its .lakefs by name, and why it did not
// tell others; "" is the mount itself, asked whether it is served.
type mountAnswer struct {
	Files map[string][]byte `json:"files"`
	Errno map[string]int    `json:"errno"`
}

// file is one of them, or its error.
func (a mountAnswer) file(name string) ([]byte, error) {
	if errno := a.Errno[name]; errno != 0 {
		return nil, syscall.Errno(errno)
	}
	return a.Files[name], nil
}

// askAside has a process of its own read files of a mount's .lakefs, for as long as the
// mount takes. The kernel does not let go of who waits for an answer to a request that the
// mount has taken, not even for SIGKILL: a command that asked by itself could be
// unable to end. The other process is left behind then, and ends with its answer.
func askAside(mountpoint string, names ...string) (mountAnswer, error) {
	cmd := exec.Command("/proc/self/exe", append([]string{"ask", mountpoint}, names...)...) //nolint:noctx // nothing could end it
	out, err := cmd.Output()
	var answer mountAnswer
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		return mountAnswer{}, fmt.Errorf("ask the mount at %q aside: %w", mountpoint, err)
	}
	return answer, nil
}

// askBounded is askAside for at most answerTimeout.
func askBounded(ctx context.Context, mountpoint string, names ...string) (mountAnswer, error) {
	return bounded(ctx, answerTimeout, func() (mountAnswer, error) { return askAside(mountpoint, names...) })
}

// askCommand is the process of askAside: nobody else calls it.
func (p *program) askCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ask MOUNTPOINT FILE…", Hidden: true, Args: arguments(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			answer := mountAnswer{Files: map[string][]byte{}, Errno: map[string]int{}}
			if err := unix.Statfs(args[0], new(unix.Statfs_t)); err != nil {
				answer.Errno[""] = errnoOf(err)
			}
			for _, name := range args[1:] {
				raw, err := readControlNow(args[0], name)
				if err != nil {
					answer.Errno[name] = errnoOf(err)
					continue
				}
				answer.Files[name] = raw
			}
			return json.NewEncoder(p.stdout).Encode(answer)
		},
	}
}

func errnoOf(err error) int {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return int(errno)
	}
	return 1 << 16 // no error of the system, and unknown to all
}
