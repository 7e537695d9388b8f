package fs

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// procLimit bounds a look below /proc/PID. A process inside execve holds a lock
// that such a read waits for, and execve itself waits for our answer to the
// FLUSH of a close-on-exec descriptor: no answer in time means "inside execve".
const procLimit = 50 * time.Millisecond

// maxDescendants bounds the search for processes that inherited a descriptor;
// past it the file counts as held.
const maxDescendants = 64

// aside runs f on its own, and gives up waiting for it after procLimit. f ends
// by itself once the process that it looks at has left execve.
func aside[T any](f func() T) (T, bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(procLimit)
	defer timer.Stop()
	select {
	case v := <-done:
		return v, true
	case <-timer.C:
		var zero T
		return zero, false
	}
}

// processTable reads facts of processes below root ("/proc").
type processTable struct{ root string }

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
// (another pid namespace, or it has ended).
func (p processTable) threadGroup(tid uint32) uint32 {
	if tid == 0 {
		return 0
	}
	id, _ := aside(func() uint32 {
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
	})
	return id
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

// killed tells whether pid is ending by a signal that tears what it writes.
// known is false when there was no answer in time.
func (p processTable) killed(pid uint32) (killed, known bool) {
	return aside(func() bool {
		var buf [2048]byte
		b, err := small(p.file(pid, "stat"), &buf)
		if err != nil {
			return false
		}
		flags, exit, ok := parseStat(b)
		return ok && flags&pfExiting != 0 && flags&pfSignaled != 0 && tears(syscall.Signal(exit&0x7f))
	})
}

// held tells whether pid or a living descendant has inode ino open for writing.
// known is false when there was no answer in time, or /proc cannot be read.
func (p processTable) held(pid uint32, ino uint64) (held, known bool) {
	type answer struct{ held, known bool }
	a, inTime := aside(func() answer {
		todo, seen := []uint32{pid}, 1
		for len(todo) > 0 {
			pid := todo[0]
			todo = todo[1:]
			open, err := p.writes(pid, ino)
			if open || (err != nil && !os.IsNotExist(err)) {
				return answer{held: open, known: open}
			}
			children := p.children(pid)
			if seen += len(children); seen > maxDescendants {
				return answer{held: true, known: true}
			}
			todo = append(todo, children...)
		}
		return answer{known: true}
	})
	if !inTime {
		return true, true // inside execve: a later FLUSH or the RELEASE will tell
	}
	return a.held, a.known
}

// writes tells whether pid has a descriptor open on ino that can write.
// Inode numbers are 63-bit hashes of the path, alike for all versions of a name.
func (p processTable) writes(pid uint32, ino uint64) (bool, error) {
	dir, err := os.Open(p.file(pid, "fdinfo"))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	fds, err := dir.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	var buf [2048]byte
	at := dir.Name() + "/"
	for _, fd := range fds {
		b, err := small(at+fd, &buf)
		if err == nil && writableOn(b, ino) {
			return true, nil
		}
	}
	return false, nil
}

// writableOn tells whether a /proc/PID/fdinfo text is of ino, opened for writing.
func writableOn(info []byte, ino uint64) bool {
	var flags, inode uint64
	for line := range bytes.SplitSeq(info, []byte("\n")) {
		key, value, _ := bytes.Cut(line, []byte(":\t"))
		switch string(key) {
		case "flags":
			flags, _ = strconv.ParseUint(string(value), 8, 64)
		case "ino":
			inode, _ = strconv.ParseUint(string(value), 10, 64)
		}
	}
	return inode == ino && flags&syscall.O_ACCMODE != syscall.O_RDONLY
}

// children returns the living children of all threads of pid.
func (p processTable) children(pid uint32) []uint32 {
	tasks, err := os.ReadDir(p.file(pid, "task"))
	if err != nil {
		return nil
	}
	var kids []uint32
	for _, t := range tasks {
		b, err := os.ReadFile(p.file(pid, "task", t.Name(), "children"))
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.ParseUint(f, 10, 32); err == nil {
				kids = append(kids, uint32(n))
			}
		}
	}
	return kids
}
