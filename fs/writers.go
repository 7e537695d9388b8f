package fs

import (
	"sync"
	"sync/atomic"
)

// maxWriterGroups bounds the processes that are remembered of one file; past it
// any may have written.
const maxWriterGroups = 64

// writerGroups are the processes that wrote to a file. A process that is killed
// and only held the descriptor, as a background job of a shell does, leaves
// nothing unfinished in it.
type writerGroups struct {
	last    atomic.Uint32 // thread of the last write, noted already
	mu      sync.Mutex
	threads map[uint32]struct{}
	groups  map[uint32]struct{}
	any     bool // a writer could not be told
}

// opened spares the question for the thread that opens, whose process is told.
func (w *writerGroups) opened(tid, group uint32) {
	if group == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(tid, group)
}

// note remembers the process of thread tid. It asks /proc once a thread, and
// costs a load for who writes again.
func (w *writerGroups) note(tid uint32, p processTable) {
	if tid != 0 && w.last.Load() == tid {
		return
	}
	w.mu.Lock()
	_, known := w.threads[tid]
	w.mu.Unlock()
	if !known {
		group := p.threadGroup(tid)
		w.mu.Lock()
		w.add(tid, group)
		w.mu.Unlock()
	}
	w.last.Store(tid)
}

// add records a thread and its process; the caller holds mu.
func (w *writerGroups) add(tid, group uint32) {
	if w.threads == nil {
		w.threads, w.groups = make(map[uint32]struct{}), make(map[uint32]struct{})
	}
	if group == 0 || len(w.threads) >= maxWriterGroups { // written back from a mapping, or too many
		w.any = true
		return
	}
	w.threads[tid], w.groups[group] = struct{}{}, struct{}{}
}

// has reports whether process group wrote, or may have.
func (w *writerGroups) has(group uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.groups[group]
	return ok || w.any
}
