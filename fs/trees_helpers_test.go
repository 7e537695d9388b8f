package fs_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// watchTree watches dir; the function that it returns ends the watch and tells the
// names that came or went in it.
func watchTree(t *testing.T, dir string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_MOVED_FROM); err != nil {
		t.Fatal(err)
	}
	return func() (names []string) {
		defer func() { _ = unix.Close(fd) }()
		buf := make([]byte, 64<<10)
		n, err := unix.Read(fd, buf)
		if err != nil {
			return nil // EAGAIN: nothing
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			length := int(b[12]) | int(b[13])<<8
			names = append(names, unix.ByteSliceToString(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]))
			b = b[unix.SizeofInotifyEvent+length:]
		}
		return names
	}
}
