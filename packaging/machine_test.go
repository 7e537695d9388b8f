package packaging_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// machine is a fresh Debian with systemd as its first process, in namespaces of its
// own: what it mounts is seen in it alone, and ends with it. It shares the network.
type machine struct {
	t     *testing.T
	root  string    // its file system
	first *exec.Cmd // unshare, whose child is systemd
	pid   string    // systemd's, seen from here
}

// bootScript lays out what a first process expects, and becomes it.
const bootScript = `set -e
cd /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/run"
mount -t tmpfs tmpfs "$1/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
mkdir "$1/dev/pts" "$1/dev/shm"
while read -r name major minor; do mknod -m 666 "$1/dev/$name" c $major $minor; done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
END
mount --make-rshared "$1"
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" /lib/systemd/systemd --system --log-target=journal systemd.unified_cgroup_hierarchy=1
`

// freshRoot is a Debian that nothing but its own packages was installed in, laid out
// anew. What debootstrap makes, in minutes, is kept in .cache.
func freshRoot(t *testing.T) string {
	t.Helper()
	kept := filepath.Join(mounttest.ModuleRoot(t), ".cache", "fresh", "bookworm.tar")
	if _, err := os.Stat(kept); err != nil {
		if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
			t.Fatal(err)
		}
		made := t.TempDir()
		command(t, 15*time.Minute, "unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus", "bookworm", made)
		command(t, 5*time.Minute, "tar", "-C", made, "--one-file-system", "--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", "-cf", kept+".new", ".")
		if err := os.Rename(kept+".new", kept); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	command(t, 5*time.Minute, "tar", "-C", root, "-xf", kept)
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/resolv.conf"), resolver, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// boot starts the machine of a root, and waits until systemd has.
func boot(t *testing.T, root string) *machine {
	t.Helper()
	m := &machine{t: t, root: root}
	m.start()
	t.Cleanup(m.cut)
	return m
}

func (m *machine) start() {
	m.t.Helper()
	// It ends when this process does, whatever ends that.
	m.first = exec.Command("unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--propagation=private", "--kill-child", //nolint:noctx // cut ends it
		"sh", "-c", bootScript, "boot", m.root)
	log, err := os.Create(filepath.Join(m.t.TempDir(), "boot"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has its own
	m.first.Stdout, m.first.Stderr = log, log
	m.first.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.first.Start(); err != nil {
		m.t.Fatal(err)
	}
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", m.first.Process.Pid)
	waitFor(m.t, time.Minute, "the machine to start", func() bool {
		pids, _ := os.ReadFile(children)
		m.pid = strings.TrimSpace(string(pids))
		name, _ := os.ReadFile("/proc/" + m.pid + "/comm")
		if strings.TrimSpace(string(name)) != "systemd" {
			return false
		}
		out, _ := m.try("systemctl is-system-running")
		return strings.HasPrefix(out, "running") || strings.HasPrefix(out, "degraded")
	})
}

// cut takes the power away: everything in the machine is gone at once, its mounts too.
func (m *machine) cut() {
	if m.first == nil {
		return
	}
	_ = m.first.Process.Kill() // --kill-child: systemd dies of it, and all others with systemd
	_ = m.first.Wait()
	m.first = nil
}

// in has t fail for what the machine does, until the returned function is called.
func (m *machine) in(t *testing.T) func() {
	t.Helper()
	outer := m.t
	m.t = t
	return func() { m.t = outer }
}

// try runs a script in the machine, as root in /.
func (m *machine) try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "--target", m.pid, "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--root",
		"env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "sh", "-ec", script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try of a script that has to work.
func (m *machine) run(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager -n 30 -u 'lakefs-mount@*'")
		m.t.Fatalf("%s\n%v\n%s\n%s", script, err, out, journal)
	}
	return out
}

// waitFor waits until what is awaited is true.
func waitFor(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !is(); {
		if pause.For(t.Context(), 50*time.Millisecond) != nil || time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// command runs a program that has to work, and returns what it printed.
func command(t *testing.T, limit time.Duration, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = mounttest.ModuleRoot(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
