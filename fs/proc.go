package fs

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// processTable reads facts of processes below root ("/proc").
type processTable struct {
	root string
	// device is our mount's device number as mountinfo writes it, "" if not
	// known; nil as "". Two mounts of one lake have the same inode numbers.
	device func() string
}

func (p processTable) file(pid uint32, name ...string) string {
	return filepath.Join(append([]string{p.root, strconv.FormatUint(uint64(pid), 10)}, name...)...)
}

// small reads a file below /proc whole, if it has under 2 KiB: three system
// calls, where os.ReadFile makes five; a close costs a dozen of these.
func small(path string, buf *[2048]byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd) // read only
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// threadGroup returns the process that thread tid belongs to; 0 if not known
// (another pid namespace, or it has ended). It does not wait: neither call takes
// the lock of a process in execve.
func (p processTable) threadGroup(tid uint32) uint32 {
	if tid == 0 {
		return 0
	}
	if fd, err := unix.PidfdOpen(int(tid), 0); err == nil { // for a group's leader only
		_ = unix.Close(fd) // nothing was written
		return tid
	}
	var buf [2048]byte
	b, err := small(p.file(tid, "status"), &buf)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(strings.TrimSpace(string(line)), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// Flags and fields of /proc/PID/stat (see proc(5)).
const (
	pfExiting    = 0x4
	pfSignaled   = 0x400
	statFlags    = 9 - 3 // fields are counted from the state, the third
	statExitCode = 52 - 3
)

// parseStat returns the flags and the exit code of a /proc/PID/stat line.
func parseStat(b []byte) (flags uint64, exit int, ok bool) {
	i := bytes.LastIndexByte(b, ')') // the command may hold anything
	if i < 0 {
		return 0, 0, false
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) <= statExitCode {
		return 0, 0, false
	}
	flags, err := strconv.ParseUint(fields[statFlags], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	exit, err = strconv.Atoi(fields[statExitCode])
	return flags, exit, err == nil
}

// tears tells whether death by sig leaves what was being written unfinished.
// SIGPIPE and SIGHUP do not: "seq … 2>err.log | head -1" would lose err.log.
func tears(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGKILL,
		syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS:
		return true
	}
	return false
}

// ending is what /proc/PID/stat says of a process's end.
type ending int

const (
	endUnknown ending = iota // the process is gone, or /proc cannot be read
	endNone                  // it lives, or ends in a way that does not tear
	endKilled                // it is ending by a signal that tears what it writes
)

// ending reads whether pid is ending by a signal.
func (p processTable) ending(pid uint32) ending {
	var buf [2048]byte
	b, err := small(p.file(pid, "stat"), &buf)
	if err != nil {
		return endUnknown
	}
	flags, exit, ok := parseStat(b)
	switch {
	case !ok:
		return endUnknown
	case flags&pfExiting != 0 && flags&pfSignaled != 0 && tears(syscall.Signal(exit&0x7f)):
		return endKilled
	}
	return endNone
}

// ours tells whether the mount that pid knows as id may be this one: it is
// unless its mountinfo names another device.
func (p processTable) ours(pid uint32, id string) bool {
	if p.device == nil || p.device() == "" {
		return true
	}
	b, err := os.ReadFile(p.file(pid, "mountinfo"))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == id {
			return f[2] == p.device()
		}
	}
	return true
}

// deviceAt returns the device number of the last FUSE mount at path, as
// mountinfo writes it; "" if there is none.
func (p processTable) deviceAt(path string) string {
	b, err := os.ReadFile(filepath.Join(p.root, "self", "mountinfo"))
	if err != nil {
		return ""
	}
	escaped := strings.NewReplacer(escapes()...).Replace(path)
	device := ""
	for line := range strings.Lines(string(b)) {
		left, right, _ := strings.Cut(line, " - ")
		if f := strings.Fields(left); len(f) > 4 && f[4] == escaped && strings.HasPrefix(right, "fuse") {
			device = f[2]
		}
	}
	return device
}
