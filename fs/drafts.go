package fs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Bounds of all drafts, which are in memory. That of one is the catalog's bound of an
// entry.
const (
	maxDrafts     = 64
	maxDraftBytes = 64 << 20
)

var errDrafts = fmt.Errorf("too much of catalog entries is being written at once (%d files, %d MiB): %w", maxDrafts, maxDraftBytes>>20, objectstore.ErrNoSpace)

// drafts is the registry of the catalog entries that are being written. Its mutex is a
// leaf. The zero value has none.
type drafts struct {
	reads entryReads

	mu      sync.Mutex
	names   map[*draftNode]draftName // of all that have not ended
	at      map[string]*draftNode    // those that a path leads to: new ones, and temporary names
	pending map[turn]*draftNode      // promised to threads that were answered ESTALE
	bytes   int64
	serial  uint64
}

// draftName is where a draft is to be written; of a temporary name nowhere.
type draftName struct {
	path      string
	temporary bool
	gone      bool // unlinked, or replaced: it is written nowhere
	opener    program
}

// table is the path of the table whose entry is at path.
func entryOwner(path string) string { return strings.TrimSuffix(path, ".json") }

// add registers s; visible makes its path lead there.
func (t *drafts) add(s *draftNode, n draftName, visible bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := int64(len(s.data))
	if len(t.names) >= maxDrafts || t.bytes+size > maxDraftBytes {
		return errDrafts
	}
	if t.names == nil {
		t.names, t.at, t.pending = make(map[*draftNode]draftName), make(map[string]*draftNode), make(map[turn]*draftNode)
	}
	if visible && t.at[n.path] != nil {
		return objectstore.ErrExist
	}
	t.names[s] = n
	t.bytes += size
	t.serial++
	s.id = t.serial
	if visible {
		t.at[n.path] = s
	}
	return nil
}

// grow takes n bytes more for a draft, or gives them back.
func (t *drafts) grow(n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.bytes+n > maxDraftBytes {
		return errDrafts
	}
	t.bytes += n
	return nil
}

// dropIdle drops the temporary name that has waited longest for its rename, closed, so
// that another draft has room; false if there is none.
func (t *drafts) dropIdle() bool {
	type waiting struct {
		s     *draftNode
		path  string
		since time.Time
	}
	t.mu.Lock()
	names := maps.Clone(t.names)
	t.mu.Unlock()
	var all []waiting
	for s, n := range names {
		if since, ok := s.waitsSince(); ok && n.temporary && !n.gone {
			all = append(all, waiting{s, n.path, since})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return a.since.Compare(b.since) })
	return slices.ContainsFunc(all, func(w waiting) bool { return w.s.dropWaiting(w.path) })
}

// end takes s out, whose size is given back.
func (t *drafts) end(s *draftNode, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, there := t.names[s]
	if !there {
		return
	}
	t.bytes -= size
	if t.at[n.path] == s {
		delete(t.at, n.path)
	}
	delete(t.names, s)
}

// name is s's; one that has ended has none any more.
func (t *drafts) name(s *draftNode) (n draftName, there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, there = t.names[s]
	return n, there
}

// found is the draft that path leads to for thread tid; nil: to none.
func (t *drafts) found(path string, tid uint32) *draftNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.pending[turn{path, tid}]; s != nil {
		return s
	}
	return t.at[path]
}

// visible is the draft that path leads to for all.
func (t *drafts) visible(path string) *draftNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[path]
}

// has tells whether the opener of n has a draft of that name already.
func (t *drafts) has(n draftName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.names {
		if o.path == n.path && o.opener == n.opener {
			return true
		}
	}
	return false
}

// busy tells whether somebody writes the entry at path: what is answered of the name
// is not to be kept.
func (t *drafts) busy(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.names {
		if n.path == path {
			return true
		}
	}
	return false
}

// hide makes s's path lead to the catalog's entry, or to none.
func (t *drafts) hide(s *draftNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if path := t.names[s].path; t.at[path] == s {
		delete(t.at, path)
	}
}

// move gives s another name; what path led to has none any more, and is returned.
func (t *drafts) move(s *draftNode, to draftName, visible bool) (lost *draftNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, there := t.names[s]
	if !there {
		return nil
	}
	if t.at[from.path] == s {
		delete(t.at, from.path)
	}
	if lost = t.at[to.path]; lost != nil {
		t.loseLocked(lost)
	}
	t.names[s] = to
	if visible {
		t.at[to.path] = s
	}
	return lost
}

// remove takes path from all who write there: they write nothing. They are returned.
func (t *drafts) remove(path string) (lost []*draftNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, n := range t.names {
		if n.path == path && !n.gone {
			t.loseLocked(s)
			lost = append(lost, s)
		}
	}
	return lost
}

func (t *drafts) loseLocked(s *draftNode) {
	n := t.names[s]
	n.gone = true
	t.names[s] = n
	if t.at[n.path] == s {
		delete(t.at, n.path)
	}
}

// promise makes s, which is reserved, the answer to tid's next LOOKUPs of its path,
// until the OPEN that follows; without one it is abandoned after a while.
func (t *drafts) promise(s *draftNode, tid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := turn{t.names[s].path, tid}
	t.pending[at] = s
	time.AfterFunc(pendingLife, func() {
		if t.claim(s, tid) {
			s.release()
			s.end()
		}
	})
}

// claim ends a promise of s to tid, and tells whether it was open.
func (t *drafts) claim(s *draftNode, tid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, p := range t.pending {
		if at.thread == tid && p == s {
			delete(t.pending, at)
			return true
		}
	}
	return false
}

// open lists the paths of what is not written yet, but for temporary names.
func (t *drafts) open() []string {
	t.mu.Lock()
	all := make(map[*draftNode]draftName, len(t.names))
	for s, n := range t.names {
		all[s] = n
	}
	t.mu.Unlock()
	var paths []string
	for s, n := range all {
		if !n.temporary && !n.gone && s.unwritten() {
			paths = append(paths, n.path)
		}
	}
	return paths
}
