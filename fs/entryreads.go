package fs

import (
	"container/list"
	"sync"

	"golang.org/x/sys/unix"
)

// maxEntryReads bounds what is remembered of who read which version of an entry.
const maxEntryReads = 1024

// program is a process. Numbers of processes are used again; the second one tells such
// apart where the kernel does (since 6.9).
type program struct {
	pid uint32 // thread group; 0: not known
	id  uint64
}

// programOf is the process of thread tid. It waits for no process in execve.
func (p processTable) programOf(tid uint32) program {
	one := program{pid: p.threadGroup(tid)}
	if one.pid == 0 {
		return one
	}
	fd, err := unix.PidfdOpen(int(one.pid), 0)
	if err != nil {
		return one
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		one.id = st.Ino
	}
	_ = unix.Close(fd) // nothing was written
	return one
}

// entryReads remembers which version of an entry a process read last: what it writes is
// a change of that one, and not of what others made of it since. The zero value is
// empty.
type entryReads struct {
	mu    sync.Mutex
	m     map[entryReader]*list.Element // of entryRead
	order list.List                     // the latest first
}

type entryReader struct {
	by   program
	path string
}

type entryRead struct {
	entryReader
	version string
	wrote   bool // it made the version
}

// note remembers that by has read version of the entry at path.
func (r *entryReads) note(by program, path, version string) {
	r.remember(by, path, version, r.made(by, path, version))
}

// noteWritten remembers that by has made version of the entry at path.
func (r *entryReads) noteWritten(by program, path, version string) {
	r.remember(by, path, version, true)
}

// made reports whether version of the entry at path is the last that by made: its text,
// an editor's buffer, is of that version, whatever older one it names.
func (r *entryReads) made(by program, path, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.m[entryReader{by, path}]; e != nil {
		read, _ := e.Value.(entryRead)
		return read.wrote && read.version == version
	}
	return false
}

func (r *entryReads) remember(by program, path, version string, wrote bool) {
	if by.pid == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = make(map[entryReader]*list.Element)
	}
	at := entryReader{by, path}
	if e := r.m[at]; e != nil {
		r.order.Remove(e)
	}
	r.m[at] = r.order.PushFront(entryRead{at, version, wrote})
	if r.order.Len() > maxEntryReads {
		oldest, _ := r.order.Remove(r.order.Back()).(entryRead)
		delete(r.m, oldest.entryReader)
	}
}

// forget is for a process that has removed the entry at path: what it writes there next
// is a new one.
func (r *entryReads) forget(by program, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := entryReader{by, path}
	if e := r.m[at]; e != nil {
		r.order.Remove(e)
		delete(r.m, at)
	}
}

// version is what by read last of the entry at path; else there, which is known to be
// the catalog's ("": it has none).
func (r *entryReads) version(by program, path, there string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.m[entryReader{by, path}]; e != nil {
		read, _ := e.Value.(entryRead)
		return read.version
	}
	return there
}
