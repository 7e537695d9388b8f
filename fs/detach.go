package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// place is where a mount is in the mount table.
type place struct {
	path string
	over string // the type of what is mounted over it, which an unmount there would take; "": nothing
}

// escapes are the characters of a path that mountinfo writes in octal.
func escapes() []string {
	return []string{" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`}
}

// unescape undoes them.
func unescape(path string) string {
	back := escapes()
	slices.Reverse(back)
	return strings.NewReplacer(back...).Replace(path)
}

// places are where the file system of the device is mounted by now, in order of
// mounting: its mount point may have been renamed with a directory above it, and root may
// have mounted a part of it elsewhere too.
func (p processTable) places(device string) ([]place, error) {
	b, err := os.ReadFile(filepath.Join(p.root, "self", "mountinfo"))
	if err != nil {
		return nil, err
	}
	var found []place
	at := map[string]int{} // by the id of its line
	for line := range strings.Lines(string(b)) {
		left, right, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(left), strings.Fields(right)
		if len(f) < 5 || len(kind) == 0 {
			continue
		}
		path := unescape(f[4])
		if i, on := at[f[1]]; on && found[i].path == path { // at the root of the one that it is mounted in
			found[i].over = kind[0]
		}
		if f[2] == device {
			at[f[0]] = len(found)
			found = append(found, place{path: path})
		}
	}
	return found, nil
}

// ownDevice returns the device number of the mount that this process serves, as mountinfo
// writes it, by its descriptor of /dev/fuse; "" if the kernel does not tell (before Linux 6.18).
func (p processTable) ownDevice() string {
	dir := filepath.Join(p.root, "self", "fd")
	descriptors, _ := os.ReadDir(dir) // none: not told
	for _, d := range descriptors {
		if to, err := os.Readlink(filepath.Join(dir, d.Name())); err != nil || to != "/dev/fuse" {
			continue
		}
		var buf [2048]byte
		b, _ := small(filepath.Join(p.root, "self", "fdinfo", d.Name()), &buf) // it may be closed by now
		for line := range strings.Lines(string(b)) {
			if n, found := strings.CutPrefix(line, "fuse_connection:"); found {
				return "0:" + strings.TrimSpace(n)
			}
		}
	}
	return ""
}

// Device returns the mount's device number as mountinfo writes it; "" if it is not known.
func (m *Mount) Device() string { return m.fs.proc.device() }

// Unmount detaches the mount: at once if nothing uses it; else it tries until ctx is
// done, and then detaches lazily, so that programs that still have files open get errors
// and the mount point is free. busy tells which it was. What somebody else has mounted
// over it is left alone, and an error. That it is mounted nowhere any more is none.
func (m *Mount) Unmount(ctx context.Context) (busy bool, err error) {
	for {
		err = m.unmount(ctx, false)
		if err == nil || errors.Is(err, ErrPassed) {
			return false, err
		}
		select {
		case <-ctx.Done():
			return true, m.Detach(context.WithoutCancel(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ErrPassed is of the mount of a PassedDescriptor, and this process does not see it or
// may not unmount it. Who mounted it does; it is dead when this process has ended.
var ErrPassed = errors.New("who mounted it unmounts it")

// Detach takes the mount out of the tree at once, whoever uses it.
func (m *Mount) Detach(ctx context.Context) error { return m.unmount(ctx, true) }

func (m *Mount) unmount(ctx context.Context, lazily bool) error {
	var places []place
	if device := m.fs.proc.device(); device != "" {
		var err error
		if places, err = m.fs.proc.places(device); err != nil {
			return fmt.Errorf("find the mount: %w", err)
		}
	}
	_, passed := PassedDescriptor(m.mountpoint)
	switch {
	case passed && (len(places) == 0 || os.Geteuid() != 0):
		return ErrPassed
	case m.fs.proc.device() == "":
		places = []place{{path: m.mountpoint}}
	}
	var problems []error
	for _, at := range slices.Backward(places) {
		err := at.unmount(ctx, lazily)
		switch {
		case notMounted(err): // with another place that it was a copy of
			continue
		case passed && errors.Is(err, os.ErrPermission):
			return ErrPassed
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (at place) unmount(ctx context.Context, lazily bool) error {
	if at.over != "" {
		return fmt.Errorf("unmount %q: a mount of type %s lies over it; unmount first that, then this: umount, umount -l", at.path, at.over)
	}
	if os.Geteuid() != 0 {
		return fusermount(ctx, at.path, lazily)
	}
	flags := unix.UMOUNT_NOFOLLOW
	if lazily {
		flags |= unix.MNT_DETACH
	}
	if err := unix.Unmount(at.path, flags); err != nil {
		return fmt.Errorf("unmount %q: %w", at.path, err)
	}
	return nil
}

// fusermount unmounts as an ordinary user.
func fusermount(ctx context.Context, mountpoint string, lazily bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	args := []string{"-u", "--", mountpoint}
	if lazily {
		args = slices.Insert(args, 1, "-z")
	}
	out, err := exec.CommandContext(ctx, "fusermount3", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3 -u %q: %w: %s", mountpoint, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// PassedDescriptor tells whether a mount point is /dev/fd/N: not a directory, but the
// descriptor N of /dev/fuse, which another program opened, mounted and passed on.
func PassedDescriptor(mountpoint string) (fd int, passed bool) {
	name, found := strings.CutPrefix(mountpoint, "/dev/fd/")
	if !found {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 10, 31)
	return int(n), err == nil && n > 2 && strconv.FormatUint(n, 10) == name
}
