package main

import (
	"bufio"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// fuseUsable tells whether this user can mount a FUSE file system at all.
func fuseUsable(allowOther bool) error {
	if err := deviceUsable("/dev/fuse"); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		return errors.New("fusermount3 is not in PATH, and only root can mount without it; install it: apt-get install fuse3 (or dnf install fuse3)")
	}
	if allowOther && !userMayAllowOther("/etc/fuse.conf") {
		return errors.New("--allow-other is not permitted to this user; let root add the line user_allow_other to /etc/fuse.conf")
	}
	return nil
}

// passedUsable tells whether the descriptor of a mount point /dev/fd/N is one of
// /dev/fuse, and keeps it from the programs that this one starts.
func passedUsable(fd int) error {
	var st unix.Stat_t
	what := "is no descriptor of /dev/fuse"
	if err := unix.Fstat(fd, &st); err != nil {
		what = "is not open"
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) != fuseMajor || unix.Minor(st.Rdev) != fuseMinor {
		return fmt.Errorf("mount point \"/dev/fd/%d\": %d %s; pass on the one that was given to mount(2), fd=%d, without FD_CLOEXEC", fd, fd, what, fd)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, false); err != nil { // requests are waited for
		return fmt.Errorf("mount point \"/dev/fd/%d\": %w", fd, err)
	}
	return nil
}

// Device numbers of /dev/fuse.
const (
	fuseMajor = 10
	fuseMinor = 229
)

func deviceUsable(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, iofs.ErrNotExist):
		return fmt.Errorf("%s is not there: this kernel or container has no FUSE; load it: modprobe fuse (of a container: --device /dev/fuse --cap-add SYS_ADMIN)", device)
	case errors.Is(err, iofs.ErrPermission):
		return fmt.Errorf("%s cannot be opened by this user; let root permit it: chmod 666 %s (or add the user to the group fuse)", device, device)
	}
	return fmt.Errorf("%s: %w; load FUSE: modprobe fuse", device, bare(err))
}

// userMayAllowOther looks for user_allow_other in fusermount3's settings.
func userMayAllowOther(conf string) bool {
	f, err := os.Open(conf)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "user_allow_other" {
			return true
		}
	}
	return false
}
