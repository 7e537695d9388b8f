package fs

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// procLimit is how long a look below /proc/PID may wait for a lock. A process
// inside execve holds one that such a read waits for, and execve itself waits
// for our answer to the FLUSH of a close-on-exec descriptor.
const procLimit = 50 * time.Millisecond

// busyLimit bounds a look that waits for no lock: the machine is busy, and a
// close that did not wait for it would answer before the file is published.
const busyLimit = 2 * time.Second

// maxDescendants bounds the search for processes that inherited a descriptor;
// past it the file counts as held.
const maxDescendants = 64

// question is a look below /proc that runs aside. It ends by itself once the
// process that it looks at has left execve.
type question[T any] struct {
	done   chan T
	thread *atomic.Int32 // that looks
}

// ask begins a look.
func ask[T any](f func() T) question[T] {
	q := question[T]{done: make(chan T, 1), thread: new(atomic.Int32)}
	go func() {
		runtime.LockOSThread() // so that the thread's state is this look's
		defer runtime.UnlockOSThread()
		q.thread.Store(int32(unix.Gettid()))
		q.done <- f()
	}()
	return q
}

// answer waits for it: up to limit while the look waits for a lock, longer
// while it does not. It may be had once.
func (q question[T]) answer(limit time.Duration) (v T, ok bool) {
	busy, tick := time.NewTimer(max(limit, busyLimit)), time.NewTicker(limit)
	defer busy.Stop()
	defer tick.Stop()
	for {
		select {
		case v = <-q.done:
			return v, true
		case <-busy.C:
			return v, false
		case <-tick.C:
			if t := q.thread.Load(); t == 0 || !stopped(t) {
				continue
			}
			select {
			case v = <-q.done: // the thread is another's by now
				return v, true
			default:
				return v, false
			}
		}
	}
}

// stopped tells whether a thread of this process waits for a lock in the
// kernel, and not just for a processor.
func stopped(thread int32) bool {
	var buf [2048]byte
	b, err := small("/proc/self/task/"+strconv.Itoa(int(thread))+"/stat", &buf)
	i := bytes.LastIndexByte(b, ')')
	return err != nil || i < 0 || i+2 >= len(b) || b[i+2] == 'D'
}

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

// closingProcess is what a FLUSH needs to know of the process that closes.
type closingProcess struct {
	end  ending
	held bool // it, or a living descendant, still has the file open for writing
}

// closing asks how pid ends, and unless ino is 0, whether ino is still held. One
// look for both: handing a question to another thread costs as much as the answer.
func (p processTable) closing(pid uint32, ino uint64) question[closingProcess] {
	return ask(func() closingProcess {
		c := closingProcess{end: p.ending(pid)}
		if c.end != endKilled && ino != 0 {
			c.held = p.held(pid, ino)
		}
		return c
	})
}

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

// held tells whether pid or a living descendant has inode ino open for writing.
// Where /proc cannot be read nobody is known to.
func (p processTable) held(pid uint32, ino uint64) bool {
	todo, seen := []uint32{pid}, 1
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		open, err := p.writes(pid, ino)
		if open || (err != nil && !os.IsNotExist(err)) {
			return open
		}
		children := p.children(pid)
		if seen += len(children); seen > maxDescendants {
			return true
		}
		todo = append(todo, children...)
	}
	return false
}

// writes tells whether pid has a descriptor open on ino that can write.
// Inode numbers are 63-bit hashes of the path, alike for all versions of a name.
// The mode of the link in fd tells in one call what cannot write; most of a
// program's descriptors cannot.
func (p processTable) writes(pid uint32, ino uint64) (bool, error) {
	dir, err := unix.Open(p.file(pid, "fd"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(dir) }() // read only
	var buf [2048]byte
	info := p.file(pid, "fdinfo") + "/"
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil || n == 0 {
			return false, err
		}
		_, _, fds := unix.ParseDirent(buf[:n], -1, nil)
		for _, fd := range fds {
			var st unix.Stat_t
			if err := unix.Fstatat(dir, fd, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IWUSR == 0 || noFile(dir, fd) {
				continue
			}
			var text [2048]byte
			b, err := small(info+fd, &text)
			if err != nil {
				continue
			}
			if mount, ok := writableOn(b, ino); ok && p.ours(pid, mount) {
				return true, nil
			}
		}
	}
}

// noFile tells whether a descriptor is a pipe, a socket or the like, by the text
// of its link: of a file it is a path.
func noFile(dir int, fd string) bool {
	var text [8]byte
	n, err := unix.Readlinkat(dir, fd, text[:])
	return err == nil && n > 0 && text[0] != '/' && text[0] != '('
}

// writableOn tells whether a /proc/PID/fdinfo text is of ino, opened for
// writing, and through which mount, by its id in the process's own namespace.
func writableOn(info []byte, ino uint64) (mount string, ok bool) {
	var flags, inode uint64
	for line := range bytes.SplitSeq(info, []byte("\n")) {
		key, value, _ := bytes.Cut(line, []byte(":\t"))
		switch string(key) {
		case "flags":
			flags, _ = strconv.ParseUint(string(value), 8, 64)
		case "ino":
			inode, _ = strconv.ParseUint(string(value), 10, 64)
		case "mnt_id":
			mount = string(value)
		}
	}
	return mount, inode == ino && flags&syscall.O_ACCMODE != syscall.O_RDONLY
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
	escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
	device := ""
	for line := range strings.Lines(string(b)) {
		left, right, _ := strings.Cut(line, " - ")
		if f := strings.Fields(left); len(f) > 4 && f[4] == escaped && strings.HasPrefix(right, "fuse") {
			device = f[2]
		}
	}
	return device
}

// children returns the living children of all threads of pid.
func (p processTable) children(pid uint32) []uint32 {
	tasks := p.file(pid, "task")
	only := strconv.FormatUint(uint64(pid), 10)
	threads := []string{only}
	var st unix.Stat_t
	if err := unix.Stat(tasks, &st); err != nil {
		return nil
	}
	if st.Nlink != 3 { // more than one thread: a link each, and two of the directory
		list, err := os.ReadDir(tasks)
		if err != nil {
			return nil
		}
		threads = threads[:0]
		for _, t := range list {
			threads = append(threads, t.Name())
		}
	}
	var kids []uint32
	for _, t := range threads {
		kids = appendChildren(kids, tasks+"/"+t+"/children")
	}
	return kids
}

// appendChildren reads a children file: the only one here that may be long.
func appendChildren(kids []uint32, path string) []uint32 {
	var buf [2048]byte
	b, err := small(path, &buf)
	if len(b) == len(buf) {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return kids
	}
	for f := range strings.FieldsSeq(string(b)) {
		if n, err := strconv.ParseUint(f, 10, 32); err == nil {
			kids = append(kids, uint32(n))
		}
	}
	return kids
}
