package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

func (p *program) unmountCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unmount [flags] MOUNTPOINT",
		Aliases: []string{"umount"},
		Short:   "Finish what is being published, then unmount",
		Args:    arguments(1, 1),

		ValidArgsFunction: completeMountPoint,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := mountPoint(args[0])
			if err != nil {
				return err
			}
			return p.unmount(cmd.Context(), path)
		},
	}
}

func (p *program) unmount(ctx context.Context, path string) error {
	e, found, err := mountedAt(path)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("unmount %q: nothing is mounted there; see: lakefs-mount status", path)
	case !e.ours():
		return fmt.Errorf("unmount %q: this is a mount of %s (type %s), not of lakefs-mount; use: umount %s", path, e.source, e.fsType, shellQuote(path))
	case !answers(ctx, path):
		return detach(ctx, path)
	}
	p.awaitJobs(ctx, path) // the programs that asked for them have control files open
	if busy := lastingHolders(ctx, path); len(busy) > 0 {
		return busyError(path, busy)
	}
	kept := 0
	if !e.ro { // else there is nothing to drain, and no way to say so
		if kept, err = p.drain(ctx, path); err != nil {
			return err
		}
	}
	open := transactionsOf(ctx, path)
	awaitExit := exitOf(servant(ctx, path))
	if err := unmountFree(ctx, path); err != nil {
		return err
	}
	if err := p.awaitEnd(ctx, e); err != nil {
		return err
	}
	awaitExit(answerTimeout)
	for _, t := range open {
		p.errorf("open, kept for the next mount: the transaction %s (%d files)\n", quoted(t.Path), t.Files)
	}
	if kept > 0 {
		return fmt.Errorf("unmount %q: it is unmounted, %d not published: after the next mount see lakefs-mount recover", path, kept)
	}
	return nil
}

// servant is the process that serves the mount; 0 where that is not known, as
// in another pid namespace.
func servant(ctx context.Context, path string) int {
	raw, err := readControl(ctx, path, "status.json")
	if err != nil {
		return 0
	}
	var status struct {
		Mount struct {
			PID int `json:"pid"`
		} `json:"mount"`
	}
	if json.Unmarshal(raw, &status) != nil || status.Mount.PID <= 0 {
		return 0
	}
	if usedBelow(filepath.Join("/proc", strconv.Itoa(status.Mount.PID)), "/dev/fuse") == "" {
		return 0
	}
	return status.Mount.PID
}

// exitOf returns a function that waits until the process has ended, so that
// its state directory is free when unmount returns.
func exitOf(pid int) func(limit time.Duration) {
	fd, err := unix.PidfdOpen(pid, 0)
	if pid == 0 || err != nil {
		return func(time.Duration) {}
	}
	return func(limit time.Duration) {
		defer unix.Close(fd) //nolint:errcheck // nothing was written
		for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100) // interrupted: once more
			if n > 0 {
				return
			}
		}
	}
}

// drain has the mount finish its publishes. What its writers left unpublished
// (killed, failed) is kept, named and counted, and no reason to stay mounted.
func (p *program) drain(ctx context.Context, path string) (kept int, err error) {
	drainErr := longControl(ctx, path, "drain", fs.DrainLimit+answerTimeout)
	if drainErr == nil {
		return 0, nil
	}
	list, err := stagedIn(ctx, path)
	left := list.Staged
	if err != nil || len(left) == 0 {
		return 0, fmt.Errorf("drain %w", drainErr)
	}
	for _, w := range left {
		if w.Open {
			return 0, fmt.Errorf("unmount %q: %q is being written; see: lakefs-mount status %s", path, w.Path, shellQuote(path))
		}
	}
	for _, w := range left {
		p.errorf("not published (%s), kept: %s\n", w.State, nameOf(w))
	}
	return len(left), nil
}

// awaitEnd waits until the mount is out of the table, for which the kernel and
// fusermount3 may take a moment.
func (p *program) awaitEnd(ctx context.Context, e tableEntry) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		now, found, err := mountedAt(e.path)
		if err != nil || !found || now.device != e.device {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("unmount %q: %w", e.path, errNoAnswer)
		}
	}
}

// holder is a process that keeps a mount busy.
type holder struct {
	pid  int
	name string
	path string // one of those it uses there: a control file only if there is no other
}

func busyError(path string, busy []holder) error {
	var names []string
	for _, h := range busy[:min(len(busy), 5)] {
		names = append(names, fmt.Sprintf("%s (pid %d) uses %q", h.name, h.pid, h.path))
	}
	if more := len(busy) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("unmount %q: busy: %s; end them, or detach it while they go on: %s", path, strings.Join(names, ", "), detachCommand(path))
}

// How long those who have nothing but control files open may take to close them, and how
// often that is looked at.
const (
	controlGrace = 2 * time.Second
	controlEvery = 20 * time.Millisecond
)

// lastingHolders are the holders of a mount. Where each uses control files alone, whose
// commands may just have ended, they are given a moment.
func lastingHolders(ctx context.Context, path string) []holder {
	for deadline := time.Now().Add(controlGrace); ; {
		busy := holders(path)
		lasts := func(h holder) bool { return !isControl(h.path) }
		if len(busy) == 0 || slices.ContainsFunc(busy, lasts) || time.Now().After(deadline) || pause.For(ctx, controlEvery) != nil {
			return busy
		}
	}
}

// unmountFree unmounts what nobody has in use for long. Who looks at control files again
// and again, as top does, is in the way for moments.
func unmountFree(ctx context.Context, path string) error {
	for deadline := time.Now().Add(controlGrace); ; {
		err := unmountNow(ctx, path)
		if err == nil {
			return nil
		}
		if busy := lastingHolders(ctx, path); len(busy) > 0 {
			return busyError(path, busy)
		}
		if time.Now().After(deadline) || pause.For(ctx, controlEvery) != nil {
			return fmt.Errorf("unmount %q: %w; if nothing uses it: %s", path, err, detachCommand(path))
		}
	}
}

// isControl tells whether a path in a mount is that of a control file: what lies right in
// .lakefs, and each ctl of what lies deeper.
func isControl(path string) bool {
	i := strings.LastIndex(path, "/.lakefs/")
	if i < 0 {
		return false
	}
	rest := strings.TrimSuffix(path[i+len("/.lakefs/"):], " (deleted)") // with the transaction that it committed
	return filepath.Base(rest) == "ctl" || !strings.Contains(rest, "/") && strings.Contains(rest, ".")
}

// holders are the processes that have a file, a directory or their root below
// path open, as far as this user may see, by pid.
func holders(path string) []holder {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []holder
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if used := usedBelow(filepath.Join("/proc", e.Name()), path); used != "" {
			comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
			found = append(found, holder{pid: pid, name: strings.TrimSpace(string(comm)), path: used})
		}
	}
	slices.SortFunc(found, func(a, b holder) int { return cmp.Compare(a.pid, b.pid) })
	return found
}

// usedBelow is a path below mountpoint that the process uses, that of a control file only
// if it uses nothing else; "" if none.
func usedBelow(proc, mountpoint string) string {
	var links []string                                      // open files first: they say most
	descriptors, _ := os.ReadDir(filepath.Join(proc, "fd")) // another user's: not to be seen
	for _, d := range descriptors {
		links = append(links, filepath.Join("fd", d.Name()))
	}
	links = append(links, "exe", "cwd", "root")
	control := ""
	for _, l := range links {
		target, err := os.Readlink(filepath.Join(proc, l))
		switch {
		case err != nil || !within(target, mountpoint):
		case isControl(target):
			control = target
		default:
			return target
		}
	}
	return control
}
