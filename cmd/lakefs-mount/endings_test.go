package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const notesDir = "sales/notes/dt=2026-01-01"

// needsRoot skips tests that mount by themselves.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mount(2) is root's")
	}
}

// lineCount is how many lines of the mount table have the text.
func lineCount(t *testing.T, text string) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), text)
}

// mustShell is shell for scripts that must succeed.
func mustShell(t *testing.T, script string) {
	t.Helper()
	if out, errs, code := shell(t, script); code != 0 {
		t.Fatalf("%s\nexit code %d: %s%s", script, code, out, errs)
	}
}

// TestTermUnmountsWhereTheMountIsByNow: with a directory above it renamed, with a part of
// it bound elsewhere, and with nothing left to unmount.
func TestTermUnmountsWhereTheMountIsByNow(t *testing.T) {
	needsRoot(t)
	for _, tt := range []struct{ name, script string }{
		{"renamed", `mv $DIR $DIR.now; mkdir -p $ROOT`},
		{"bound", `mkdir $DIR/bound; mount --bind $ROOT/sales $DIR/bound`},
		{"detached by another", `exec 3<$ROOT/sales/notes/dt=2026-01-01/a.csv; umount -l $ROOT`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lake := mounttest.New(t, sales(t))
			dir := filepath.Join(filepath.Dir(lake.Root), "around")
			lake.Root = filepath.Join(dir, "a lake")
			if err := os.MkdirAll(lake.Root, 0o755); err != nil {
				t.Fatal(err)
			}
			lake.Start()
			lake.MustSh("echo 2,two > " + notesDir + "/b.csv")
			mustShell(t, fmt.Sprintf(`set -e; DIR=%s; ROOT=%s; PID=%d; %s`, dir, shellQuote(lake.Root), lake.Pid(), strings.ReplaceAll(tt.script, "$ROOT", `"$ROOT"`)))
			if tt.name != "detached by another" { // that one ends by itself
				lake.Signal(syscall.SIGTERM)
			}
			if code := lake.Wait(); code != exitOK {
				t.Errorf("the mount ended with %d: %s", code, lake.Log())
			}
			if n := lineCount(t, dir); n != 0 {
				t.Errorf("%d mounts are left", n)
				_, _, _ = shell(t, "umount -l "+dir+".now/*") // what a failure leaves
			}
			if got, err := lake.Stored(notesDir + "/b.csv"); err != nil || got != "2,two\n" {
				t.Errorf("the lake has %q (%v)", got, err)
			}
		})
	}
}

// TestTermLeavesWhatLiesOverTheMount: another's mount is not taken for ours.
func TestTermLeavesWhatLiesOverTheMount(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	lake := mounttest.Mount(t, sales(t))
	lake.MustSh("echo 2,two > " + notesDir + "/b.csv")
	mustShell(t, "mount -t tmpfs none "+lake.Root+"; echo other > "+lake.Root+"/file")
	t.Cleanup(func() { _ = unix.Unmount(lake.Root, unix.MNT_DETACH) })
	lake.Signal(syscall.SIGTERM)
	if code := lake.Wait(); code != exitFailed || !strings.Contains(lake.Log(), "type tmpfs lies over it") {
		t.Errorf("the mount ended with %d: %s", code, lake.Log())
	}
	if raw, err := os.ReadFile(filepath.Join(lake.Root, "file")); err != nil || string(raw) != "other\n" {
		t.Errorf("the other mount has %q (%v)", raw, err)
	}
	mustShell(t, "umount "+lake.Root) // the dead one is ours, and the next mount's
	lake.Start()
	if got := lake.MustSh("cat " + notesDir + "/b.csv"); got != "2,two\n" {
		t.Errorf("after the remount the file is %q", got)
	}
}

// TestTermDoesNotWaitForACopyOfTheMount in a mount namespace that a program took along.
func TestTermDoesNotWaitForACopyOfTheMount(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	lake := mounttest.Mount(t, sales(t))
	copied := filepath.Join(t.TempDir(), "copied")
	// It lets go of the mounts of tests beside this one.
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "private", "sh", "-c",
		"awk '$0 ~ / - fuse/ && $5 != \""+lake.Root+"\" {print $5}' /proc/self/mountinfo | while read -r m; do umount -l $m; done; : > "+copied+"; exec sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lake.Eventually("the namespace is copied", 0, func() bool { _, err := os.Stat(copied); return err == nil })
	lake.Signal(syscall.SIGTERM)
	if code := lake.Wait(); code != exitOK || lake.Mounted() || !strings.Contains(lake.Log(), "another mount namespace") {
		t.Errorf("the mount ended with %d, mounted %v: %s", code, lake.Mounted(), lake.Log())
	}
	_ = cmd.Process.Kill() // the test's end would
	_ = cmd.Wait()
}

// TestTwoMountsAtTheSameMoment at one mount point: one is there, or none; never two.
func TestTwoMountsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	t.Cleanup(func() { mounttest.Detach(lake.Root) })
	for range 3 {
		script := ""
		for i := range 2 {
			script += fmt.Sprintf("%s mount --daemon --state-dir=%s.%d %s %s & p%d=$!\n", lake.Binary(), lake.State, i, lake.Source, lake.Root, i)
		}
		_, errs, code := shell(t, script+"wait $p0; a=$?; wait $p1; [ $((a + $?)) -ge 1 ]")
		n := lineCount(t, " "+lake.Root+" ")
		if code != 0 || n > 1 || !strings.Contains(errs, "in use") {
			t.Errorf("exit code %d, %d mounts: %s", code, n, errs)
		}
		if n == 1 {
			if r := lake.Run("unmount", lake.Root); r.Code != 0 {
				t.Fatal(r.Err)
			}
		}
	}
}

// passed opens /dev/fuse and mounts it at the lake's root, as a container's manager does.
func passed(t *testing.T, lake *mounttest.Lake, kind string) *os.File {
	t.Helper()
	needsRoot(t)
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions", f.Fd())
	if err := unix.Mount("passed", lake.Root, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.Detach(lake.Root) })
	return f
}

// TestPassedDescriptorIsServed: /dev/fd/N, in the foreground, in the background, and by a
// user who sees the mount and may not touch it.
func TestPassedDescriptorIsServed(t *testing.T) {
	mounttest.FolderOnly(t, "it is given to another user")
	for _, way := range []string{"foreground", "daemon", "user"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			lake := mounttest.New(t, sales(t))
			f := passed(t, lake, fsType)
			args := []string{lake.Binary(), "mount", "--state-dir=" + lake.State, lake.Source, "/dev/fd/3"}
			switch way {
			case "daemon":
				args = append(args, "--daemon")
			case "user":
				program := filepath.Join(filepath.Dir(lake.Root), "program")
				mustShell(t, "cp "+lake.Binary()+" "+program+"; chmod 755 "+filepath.Dir(program)+" "+filepath.Dir(filepath.Dir(program))+"; chown -R 65534 "+lake.State+" "+lake.Source)
				args[0] = program
				args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"}, args...)
			}
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			said := &strings.Builder{}
			cmd.Dir, cmd.ExtraFiles, cmd.Stderr, cmd.WaitDelay = t.TempDir(), []*os.File{f}, said, time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			write := "cat " + notesDir + "/a.csv; echo 2,two > " + notesDir + "/b.csv; cat " + notesDir + "/b.csv"
			if way == "user" { // who mounted it is root: its files are another's
				write = "cat " + notesDir + "/a.csv; echo 2,two; echo 2,two | setpriv --reuid=0 tee " + notesDir + "/b.csv >/dev/null"
			}
			if r := lake.Sh(write); r.Code != 0 || r.Out != "1,one\n2,two\n" {
				t.Errorf("exit code %d: %q %q", r.Code, r.Out, r.Err)
			}
			var err error
			if way == "daemon" {
				err = cmd.Wait()
				if r := lake.Run("unmount", lake.Root); r.Code != 0 {
					t.Errorf("unmount: %s", r.Err)
				}
			} else {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				err = cmd.Wait()
			}
			if err != nil {
				t.Errorf("%v: %s", err, said)
			}
			if got, err := lake.Stored(notesDir + "/b.csv"); err != nil || got != "2,two\n" {
				t.Errorf("the lake has %q (%v)", got, err)
			}
			if seen := lake.Mounted(); seen != (way == "user") {
				t.Errorf("mounted: %v", seen)
			}
		})
	}
}

func TestBadDescriptors(t *testing.T) {
	mounttest.FolderOnly(t, "its mistakes are about descriptors")
	lake := mounttest.New(t, sales(t))
	mount := lake.Binary() + " mount --state-dir=" + lake.State + " $D " + lake.Source + " /dev/fd/"
	for _, tt := range []struct {
		name, script string
		want         []string
	}{
		{"closed", mount + "9", []string{"/dev/fd/9", "not open", "FD_CLOEXEC"}},
		{"another file", "exec 9</dev/null; " + mount + "9", []string{"/dev/fd/9", "no descriptor of /dev/fuse"}},
		{"not mounted", "exec 9<>/dev/fuse; " + mount + "9", []string{"not of a mount", "mount(2)"}},
		{"no state directory", "exec 9<>/dev/fuse; " + lake.Binary() + " mount $D " + lake.Source + " /dev/fd/9", []string{"--state-dir DIR"}},
	} {
		for _, flag := range []string{"", "--daemon"} {
			out, errs, code := shell(t, "D="+flag+"; "+tt.script)
			if code != exitFailed || out != "" || strings.Count(errs, "lakefs-mount: ") != 1 {
				t.Errorf("%s %s: exit code %d: %s%s", tt.name, flag, code, out, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%s %s: %q lacks %q", tt.name, flag, errs, want)
				}
			}
		}
	}
}

// TestDeadMountOfAnotherProgramIsLeft: the message has the command that clears it.
func TestDeadMountOfAnotherProgramIsLeft(t *testing.T) {
	t.Parallel()
	lake := mounttest.New(t, sales(t))
	if err := passed(t, lake, "fuse.another").Close(); err != nil {
		t.Fatal(err)
	}
	const told = "clear it: "
	r := lake.Run("mount", "--daemon", "--state-dir="+lake.State, lake.Source, lake.Root)
	_, command, found := strings.Cut(strings.TrimSpace(r.Err), told)
	if r.Code != exitFailed || !found || lineCount(t, " "+lake.Root+" ") != 1 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	mustShell(t, command)
	lake.Start()
}
