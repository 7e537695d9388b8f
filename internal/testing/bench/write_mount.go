package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lakeMount is one lakefs-mount on the store.
type lakeMount struct {
	system
	state string // its kind: "on disk"
}

// mount starts a mount for each kind of state directory, and the loopback.
func (r *writeRig) mount(ctx context.Context) error {
	for _, at := range []struct{ name, state string }{{"disk", r.disk}, {"tmpfs", r.work}} {
		m, err := r.lake(at.name, at.state)
		if err != nil {
			return err
		}
		r.mounts = append(r.mounts, m)
		if err = m.start(ctx); err != nil {
			return err
		}
	}
	loop, behind := filepath.Join(r.work, "loop"), filepath.Join(r.work, "behind")
	if err := errors.Join(os.Mkdir(loop, 0o755), os.Mkdir(behind, 0o755)); err != nil {
		return err
	}
	r.loop = &system{name: loopback, root: loop, cmd: exec.Command(r.self, "-serve-loopback", loop, behind)} //nolint:noctx // ends with the bench
	return r.loop.start(ctx)
}

func (r *writeRig) lake(name, state string) (*lakeMount, error) {
	mnt := filepath.Join(r.work, "mnt-"+name)
	state = filepath.Join(state, "state-"+name)
	if err := errors.Join(os.Mkdir(mnt, 0o755), os.Mkdir(state, 0o700)); err != nil {
		return nil, err
	}
	m := &lakeMount{state: name}
	m.name, m.root = "state on "+name, filepath.Join(mnt, "db", "t")
	m.cmd = r.lakeCommand(r.endpoint(), state, mnt)
	return m, nil
}

// environ is the environment less the settings of the program.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "LAKEFS_MOUNT_") })
}

// start runs the mount, in a group of its own: a terminal's Ctrl-C is for the
// bench, which unmounts.
func (s *system) start(ctx context.Context) error {
	if s.cmd.Stderr == nil {
		s.cmd.Stderr = os.Stderr
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := errors.Join(ctx.Err(), s.await()); err != nil {
		return err
	}
	s.idle = s.memory("VmRSS:")
	return nil
}

func (m *lakeMount) close() error { return (&rig{systems: []*system{&m.system}}).close() }

// memory is a line of the process's status, in MiB.
func (s *system) memory(line string) float64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	return statusLine(b, line)
}

// statusLine is a line of /proc/PID/status, in MiB.
func statusLine(status []byte, line string) float64 {
	_, rest, _ := strings.Cut(string(status), line)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}

// cpu is the time that a process has computed.
func cpu(pid int) time.Duration {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * tick
}
