package fs

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// execLimit is the last step of the wait for a child to exec: some quarter of a
// second in all.
const execLimit = 128 * time.Millisecond

// closingProcess is what a FLUSH needs to know of the process that closes.
type closingProcess struct {
	end  ending
	held bool // it, or a living descendant, still has the file open for writing
}

// closing asks how pid ends, and unless ino is 0, whether ino is still held. One
// look for both: handing a question to another thread costs as much as the answer.
func (p processTable) closing(pid uint32, ino uint64) question[closingProcess] {
	return ask(func(over *atomic.Bool) closingProcess {
		c := closingProcess{end: p.ending(pid)}
		if c.end != endKilled && ino != 0 {
			c.held = p.held(pid, ino, over)
		}
		return c
	})
}

// closeFacts asks who closes a descriptor of inode ino by thread tid, and who still
// holds it. It was opened by thread openedBy of process opener; wrote are those who
// wrote. doubt is what was not found out in time.
func (p processTable) closeFacts(tid, opener, openedBy uint32, ino uint64, wrote *writerGroups) (fl flushFacts, doubt *question[closingProcess]) {
	if tid == 0 || opener == 0 {
		return flushFacts{opener: true}, nil // another pid namespace: all that can be told
	}
	closer := opener
	if tid != openedBy {
		if closer = p.threadGroup(tid); closer == 0 {
			closer = tid // no answer in time: the thread tells of its own end at least
		}
	}
	if closer != opener {
		ino = 0
	}
	look := p.closing(closer, ino)
	now, inTime := look.answer(procLimit)
	switch {
	case !inTime: // inside execve, by all likelihood: the RELEASE asks again
		return flushFacts{held: true}, &look
	case now.end == endKilled && (closer == opener || wrote.has(closer)):
		return flushFacts{killed: true, opener: closer == opener}, nil
	case closer != opener:
		return flushFacts{}, nil
	}
	return flushFacts{opener: true, held: now.held}, nil
}

// hold is how a process has a file open for writing.
type hold int

const (
	holdNone hold = iota
	holdExec      // by descriptors that its execve will close
	holdOpen
)

// held tells whether pid or a living descendant has inode ino open for writing.
// A program of many threads closes a file while another thread starts a child,
// which has all that is open until its execve: that is waited for, but not for
// long, for the child may be one that never does.
func (p processTable) held(pid uint32, ino uint64, over *atomic.Bool) bool {
	for wait := time.Millisecond; ; wait *= 2 {
		h := p.family(pid, ino, over)
		if h != holdExec || wait > execLimit {
			return h != holdNone
		}
		<-time.After(wait)
	}
}

// family tells how pid or a living descendant holds ino; of a descendant, what
// its execve will close is holdExec. The look has no other bound than its asker's
// patience: with as many workers as a program may have, whom it left out would
// make each of its closes one that is published when nobody waits.
func (p processTable) family(pid uint32, ino uint64, over *atomic.Bool) hold {
	found := p.holds(pid, ino, true)
	if found != holdNone {
		return holdOpen
	}
	self := uint32(os.Getpid())
	for todo := p.children(pid); len(todo) > 0; todo = todo[1:] {
		if over.Load() {
			return holdOpen
		}
		if todo[0] == self {
			// Who started the mount writes into it. The mount itself has a descriptor of
			// each staged file, and none of its own: with 5,000 the look took 25 ms.
			continue
		}
		found = max(found, p.holds(todo[0], ino, false))
		if found == holdOpen {
			return found
		}
		todo = append(todo, p.children(todo[0])...)
	}
	return found
}

// holds tells how pid has ino open for writing; nobody is known to where /proc
// cannot be read. Inode numbers are 63-bit hashes of the path, alike for all
// versions of a name. The mode of the link in fd tells in one call what cannot
// write; most of a program's descriptors cannot. The text of a link tells of more
// that is no file, at a third of the price of an fdinfo; but where pid is inside
// execve reading it waits for the execve, and that perhaps for a FLUSH of quite
// another mount: links is for a process that is known not to be.
func (p processTable) holds(pid uint32, ino uint64, links bool) hold {
	dir, err := unix.Open(p.file(pid, "fd"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return holdNone
	}
	defer func() { _ = unix.Close(dir) }() // read only
	var names, text [2048]byte
	found := holdNone
	for {
		n, err := unix.ReadDirent(dir, names[:])
		if err != nil || n == 0 {
			return found
		}
		_, _, fds := unix.ParseDirent(names[:n], -1, nil)
		for _, fd := range fds {
			if !mayWrite(dir, fd) || links && noFile(dir, fd) {
				continue
			}
			if found = max(found, p.through(pid, fd, ino, &text)); found == holdOpen {
				return found
			}
		}
	}
}

// through tells how pid holds ino by descriptor fd; text is room to read in.
func (p processTable) through(pid uint32, fd string, ino uint64, text *[2048]byte) hold {
	b, err := small(p.file(pid, "fdinfo", fd), text)
	if err != nil {
		return holdNone // closed by now
	}
	mount, h := heldBy(b, ino)
	if h != holdNone && !p.ours(pid, mount) {
		return holdNone
	}
	return h
}

// mayWrite tells whether a descriptor can, by the mode of its link.
func mayWrite(dir int, fd string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, fd, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IWUSR != 0
}

// noFile tells whether a descriptor is a pipe, a socket or the like, by the text
// of its link: of a file it is a path.
func noFile(dir int, fd string) bool {
	var text [8]byte
	n, err := unix.Readlinkat(dir, fd, text[:])
	return err == nil && n > 0 && text[0] != '/' && text[0] != '('
}

// heldBy tells whether a /proc/PID/fdinfo text is of ino, opened for writing, and
// through which mount, by its id in the process's own namespace.
func heldBy(info []byte, ino uint64) (mount string, h hold) {
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
	switch {
	case inode != ino || flags&syscall.O_ACCMODE == syscall.O_RDONLY:
		return mount, holdNone
	case flags&syscall.O_CLOEXEC != 0:
		return mount, holdExec
	}
	return mount, holdOpen
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
