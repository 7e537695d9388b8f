package fs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// heldIn asks what a close asks, and waits for as long as it takes.
func heldIn(p processTable, pid uint32, ino uint64) bool {
	return p.held(pid, ino, new(atomic.Bool))
}

// tree is a /proc of a test's own.
type tree struct {
	t    *testing.T
	root string
}

func (f tree) put(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// process makes one with these children.
func (f tree) process(pid int, children string) {
	f.t.Helper()
	f.put(strconv.Itoa(pid)+"/task/"+strconv.Itoa(pid)+"/children", children)
	if err := os.MkdirAll(filepath.Join(f.root, strconv.Itoa(pid), "fd"), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

// opens gives a process descriptor 3, on inode 77, with these flags.
func (f tree) opens(pid int, flags string) {
	f.t.Helper()
	dir := filepath.Join(f.root, strconv.Itoa(pid))
	if err := os.Symlink("/mnt/f", filepath.Join(dir, "fd", "3")); err != nil && !os.IsExist(err) {
		f.t.Fatal(err)
	}
	f.put(strconv.Itoa(pid)+"/fdinfo/3", "pos:\t0\nflags:\t"+flags+"\nmnt_id:\t29\nino:\t77\n")
}

// closes takes it away.
func (f tree) closes(pid int) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.root, strconv.Itoa(pid), "fd", "3")); err != nil {
		f.t.Fatal(err)
	}
}

const (
	writes     = "0100001"
	writesExec = "02100001"
)

func TestHeldBy(t *testing.T) {
	for text, want := range map[string]hold{
		"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t77\n":  holdOpen,
		"pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t77\n":  holdOpen,
		"pos:\t0\nflags:\t02100002\nmnt_id:\t29\nino:\t77\n": holdExec,
		"pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t77\n":  holdNone,
		"pos:\t0\nflags:\t02100000\nmnt_id:\t29\nino:\t77\n": holdNone,
		"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t78\n":  holdNone,
		"": holdNone,
	} {
		if mount, got := heldBy([]byte(text), 77); got != want || (got != holdNone && mount != "29") {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// The real /proc: this process and a child hold a file, and then do not.
func TestHeldByProcessAndChild(t *testing.T) {
	p := processTable{root: "/proc"}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	ino := st.Sys().(*syscall.Stat_t).Ino
	me := uint32(os.Getpid())
	if !heldIn(p, me, ino) {
		t.Error("own descriptor: not held")
	}
	if got := p.holds(me, ino, false); got != holdExec {
		t.Errorf("own descriptor, close-on-exec: %v, want %v", got, holdExec)
	}
	child := exec.CommandContext(t.Context(), "sleep", "60")
	child.Stdout = f
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !heldIn(p, me, ino) {
		t.Error("child's descriptor: not held")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = child.Process.Wait()
	if heldIn(p, me, ino) {
		t.Error("nobody's descriptor: held")
	}
}

// Whoever starts many workers still has its files published when it closes them.
func TestHeldIsFoundOutAmongAnyNumberOfDescendants(t *testing.T) {
	f := tree{t, t.TempDir()}
	children := ""
	for pid := 100; pid < 400; pid++ {
		f.process(pid, "")
		children += strconv.Itoa(pid) + " "
	}
	f.process(7, children)
	f.process(250, "500 501 ")
	f.process(500, "")
	p := processTable{root: f.root} // 501 has ended
	if heldIn(p, 7, 77) {
		t.Error("by none of 300 children: held")
	}
	f.opens(500, writes)
	if !heldIn(p, 7, 77) {
		t.Error("by a child's child: not held")
	}
	f.closes(500)
	f.opens(399, writes)
	if !heldIn(p, 7, 77) {
		t.Error("by the last child: not held")
	}
	given := new(atomic.Bool)
	given.Store(true)
	if !p.held(7, 77, given) {
		t.Error("a look that was given up does not take the file for held")
	}
}

// A program may close a file while another of its threads is starting a child,
// which has the file until its execve.
func TestHeldWaitsForAChildsExec(t *testing.T) {
	f := tree{t, t.TempDir()}
	f.process(7, "8 9 ")
	f.process(8, "")
	f.process(9, "")
	p := processTable{root: f.root}
	synctest.Test(t, func(t *testing.T) {
		f.opens(8, writesExec)
		time.AfterFunc(100*time.Millisecond, func() { f.closes(8) })
		if began := time.Now(); heldIn(p, 7, 77) || time.Since(began) > 200*time.Millisecond {
			t.Errorf("a child that execs: held, or after %s", time.Since(began))
		}
		f.opens(8, writesExec) // it never execs
		if began := time.Now(); !heldIn(p, 7, 77) || time.Since(began) > 2*execLimit {
			t.Errorf("a child that does not exec: not held, or after %s", time.Since(began))
		}
		f.opens(9, writes)
		if began := time.Now(); !heldIn(p, 7, 77) || time.Since(began) != 0 {
			t.Errorf("a child that keeps it: not held, or after %s", time.Since(began))
		}
		f.closes(8)
		f.closes(9)
		f.opens(7, writesExec)
		if began := time.Now(); !heldIn(p, 7, 77) || time.Since(began) != 0 {
			t.Errorf("a duplicate of the opener's own: not held, or after %s", time.Since(began))
		}
	})
}

// Two mounts of one lake have the same inode numbers: which of them a process
// writes through is told by its own mount table.
func TestHeldThroughAnotherMountIsNotHeld(t *testing.T) {
	f := tree{t, t.TempDir()}
	f.put("self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"+
		"29 20 0:55 / /mnt/a\\040lake rw - fuse.lakefs-mount /w rw\n30 20 0:56 / /mnt/b rw - fuse.lakefs-mount /w rw\n")
	f.put("7/mountinfo", "129 20 0:55 / /x rw - fuse.lakefs-mount /w rw\n130 20 0:56 / /y rw - fuse.lakefs-mount /w rw\n")
	f.process(7, "")
	f.opens(7, writes)
	here := processTable{root: f.root}
	here.device = func() string { return here.deviceAt("/mnt/a lake") }
	for mount, want := range map[string]bool{"129": true, "130": false, "131": true} {
		f.put("7/fdinfo/3", "pos:\t0\nflags:\t0100001\nmnt_id:\t"+mount+"\nino:\t77\n")
		if held := heldIn(here, 7, 77); held != want {
			t.Errorf("through mount %s: held %v, want %v", mount, held, want)
		}
	}
	if got := here.deviceAt("/mnt/none"); got != "" {
		t.Errorf("device of no mount: %q", got)
	}
}
