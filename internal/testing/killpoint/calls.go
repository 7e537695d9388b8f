package killpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call that changes a disk.
type call struct {
	name string
	fd   int // index of the argument that is the changed file's descriptor; -1: none
	path int // index of the argument that is its path; -1: none
}

// calls by number. The older forms (rename, unlink, …) are not Go's.
func calls() map[int32]call {
	return map[int32]call{
		unix.SYS_OPENAT:          {"create", -1, 1}, // with O_CREAT or O_TRUNC
		unix.SYS_MKDIRAT:         {"mkdir", -1, 1},
		unix.SYS_RENAMEAT:        {"rename", -1, 3},
		unix.SYS_RENAMEAT2:       {"rename", -1, 3},
		unix.SYS_LINKAT:          {"link", -1, 3},
		unix.SYS_SYMLINKAT:       {"symlink", -1, 2},
		unix.SYS_UNLINKAT:        {"unlink", -1, 1},
		unix.SYS_WRITE:           {"write", 0, -1},
		unix.SYS_PWRITE64:        {"write", 0, -1},
		unix.SYS_PWRITEV:         {"write", 0, -1},
		unix.SYS_COPY_FILE_RANGE: {"copy", 2, -1},
		unix.SYS_SENDFILE:        {"copy", 0, -1},
		unix.SYS_SPLICE:          {"copy", 2, -1},
		unix.SYS_FTRUNCATE:       {"truncate", 0, -1},
		unix.SYS_FALLOCATE:       {"allocate", 0, -1},
		unix.SYS_FSYNC:           {"fsync", 0, -1},
		unix.SYS_FDATASYNC:       {"fsync", 0, -1},
		unix.SYS_FCHMOD:          {"chmod", 0, -1},
		unix.SYS_FCHMODAT:        {"chmod", -1, 1},
		unix.SYS_UTIMENSAT:       {"utimes", 0, -1},
		unix.SYS_FSETXATTR:       {"setxattr", 0, -1},
		unix.SYS_FREMOVEXATTR:    {"removexattr", 0, -1},
	}
}

const (
	offsetNumber = 0          // of struct seccomp_data
	offsetFlags  = 16 + 8*2   // the third argument's low half (little endian)
	retAllow     = 0x7fff0000 // SECCOMP_RET_ALLOW
	retNotify    = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
)

// filter hands over the calls, and openat only where it makes or empties a file.
func filter() []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	give := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	program := []unix.SockFilter{
		load(offsetNumber),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT, Jf: 4},
		load(offsetFlags),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.O_CREAT | unix.O_TRUNC, Jf: 1},
		give(retNotify),
		give(retAllow),
	}
	for nr := range calls() {
		if nr != unix.SYS_OPENAT {
			program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 1}, give(retNotify))
		}
	}
	return append(program, give(retAllow))
}

// listen puts the calling thread, and what it becomes, under the filter. The
// kernel before 5.19 may show a call twice that a signal interrupts.
func listen() (int, error) {
	rules := filter()
	program := unix.SockFprog{Len: uint16(len(rules)), Filter: &rules[0]}
	const listener, killable = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	var errno unix.Errno
	for _, flags := range []uintptr{listener | killable, listener} {
		var fd uintptr
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
		if errno == 0 {
			return int(fd), nil
		}
	}
	return -1, errno
}

// describe says what a call does to which file; counts is false for what
// changes no disk.
func describe(n *notification) (what string, counts bool) {
	c := calls()[n.nr]
	if c.path >= 0 {
		return c.name + " " + textAt(n.pid, n.args[c.path]), true
	}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[c.fd])))
	if err != nil || !strings.HasPrefix(file, "/") || strings.HasPrefix(file, "/dev/") && !strings.HasPrefix(file, "/dev/shm/") {
		return "", false
	}
	return c.name + " " + file, true
}

// textAt reads the C string at an address of a process.
func textAt(pid uint32, address uint64) string {
	memory, err := os.Open("/proc/" + strconv.Itoa(int(pid)) + "/mem")
	if err != nil {
		return "?"
	}
	defer memory.Close() //nolint:errcheck // only read
	buf := make([]byte, 512)
	n, _ := memory.ReadAt(buf, int64(address))
	text, _, _ := strings.Cut(string(buf[:n]), "\x00")
	return text
}
