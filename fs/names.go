package fs

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// name is what the mount knows of one path: its inode number, and who is
// writing there. It lives while a node of it lives, or a write. All fields are
// guarded by names.mu.
type name struct {
	path string
	ino  uint64
	refs int  // living nodes (see held), and writes
	gone bool // unlinked or replaced: the path means another file now
	// loc is where the published object lies; a rename moves it.
	loc objectstore.Location

	// staged is the unpublished file that the name leads to; nil where the
	// published one does.
	staged  *stagedNode
	writers map[*stagedNode]struct{} // every version that is being written
	indexed bool                     // in names.within
}

// names is the registry of paths in use. Its mutex is a leaf: nothing is
// called, and nothing waited for, while it is held.
type names struct {
	mu     sync.Mutex
	byPath map[string]*name
	inos   map[uint64]*name       // every living name, the gone ones too
	byID   map[string]*stagedNode // every version that is being written, by write id
	// within has the names that lead to unpublished files, by directory.
	within map[string]*stagedWithin
	// Threads that were answered ESTALE: writers, and what they are given next;
	// readers.
	pending map[turn]*promised
	turned  map[turn]*turnedAway
}

func newNames() *names {
	return &names{byPath: make(map[string]*name), inos: make(map[uint64]*name), byID: make(map[string]*stagedNode), within: make(map[string]*stagedWithin), pending: make(map[turn]*promised), turned: make(map[turn]*turnedAway)}
}

// inodeHash is the inode number that a path has unless another living name has it.
func inodeHash(path string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	ino := h.Sum64() &^ (1 << 63)
	return max(ino, rootIno+1)
}

// free returns the first inode number from path's hash on that no other name holds.
func (t *names) free(path string) uint64 {
	ino := inodeHash(path)
	for {
		n := t.inos[ino]
		if n == nil || (n.path == path && !n.gone) {
			return ino
		}
		ino++
	}
}

// acquire returns the path's name with one reference more.
func (t *names) acquire(path string) *name {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byPath[path]
	if n == nil {
		n = &name{path: path, ino: t.free(path)}
		t.byPath[path], t.inos[n.ino] = n, n
	}
	n.refs++
	return n
}

// held ties a node to its name for as long as the kernel knows the node. go-fuse
// may hand a node out again at the moment that the kernel forgets it, so a node
// is told each time that it is handed out, and holds one reference at most.
type held struct {
	name *name
	on   bool // guarded by names.mu
}

// hold takes the node's reference unless it has it.
func (t *names) hold(h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.on {
		return
	}
	h.on = true
	h.name.refs++
	if !h.name.gone && t.byPath[h.name.path] == nil && t.inos[h.name.ino] == nil {
		t.byPath[h.name.path], t.inos[h.name.ino] = h.name, h.name
	}
}

// forget gives the node's reference back.
func (t *names) forget(h *held) {
	t.mu.Lock()
	was := h.on
	h.on = false
	t.mu.Unlock()
	if was {
		t.release(h.name)
	}
}

// release gives back a reference. A name that a rename gave another inode
// number than its path's stays, so that the number stays for the mount's life.
func (t *names) release(n *name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.refs--
	if n.refs > 0 || (!n.gone && n.ino != inodeHash(n.path)) {
		return
	}
	t.dropNumber(n)
	if t.byPath[n.path] == n {
		delete(t.byPath, n.path)
	}
}

// dropNumber frees n's inode number, unless it has passed to another name.
func (t *names) dropNumber(n *name) {
	if t.inos[n.ino] == n {
		delete(t.inos, n.ino)
	}
}

// inode returns the number that path has, or would have, without holding it.
func (t *names) inode(path string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byPath[path]; n != nil {
		return n.ino
	}
	return t.free(path)
}

// pathOf returns the current path of n, and whether n is still its name.
func (t *names) pathOf(n *name) (path string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.path, !n.gone
}

// links is the link count of n's file: a descriptor of a file that has no name
// any more tells so.
func (t *names) links(n *name) uint32 {
	if _, ok := t.pathOf(n); !ok {
		return 0
	}
	return 1
}

// locate notes where n's object lies.
func (t *names) locate(n *name, loc objectstore.Location) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.loc = loc
}

// location returns where n's object lies.
func (t *names) location(n *name) objectstore.Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.loc
}

// find calls f with path's name, or nil, under the lock.
func (t *names) find(path string, f func(n *name)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.byPath[path])
}

// stagedAt returns the unpublished file that path leads to for thread tid: the
// one its redirect promised, else the new one. busy tells that the name has a
// writer, so that what is answered for it must not be cached.
func (t *names) stagedAt(path string, tid uint32) (s *stagedNode, turned, busy bool) {
	t.find(path, func(n *name) {
		at := turn{path, tid}
		turned = t.turned[at] != nil
		if p := t.pending[at]; p != nil {
			s, busy = p.node, true
			return
		}
		if n != nil {
			s, busy = n.staged, len(n.writers) > 0
		}
	})
	return s, turned, busy
}

// addWriter registers s as a version of its name that is being written;
// visible makes it what the name leads to.
func (t *names) addWriter(s *stagedNode, visible bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := s.name
	if n.writers == nil {
		n.writers = make(map[*stagedNode]struct{})
	}
	n.writers[s] = struct{}{}
	t.byID[s.file.ID()] = s
	if visible {
		t.lead(n, s)
	}
}

// dropWriter ends s's registration.
func (t *names) dropWriter(s *stagedNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(s.name.writers, s)
	delete(t.byID, s.file.ID())
	if s.name.staged == s {
		t.lead(s.name, nil)
	}
}

// hide makes the name lead to the published file again (or to none).
func (t *names) hide(s *stagedNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.name.staged == s {
		t.lead(s.name, nil)
	}
}

// remove makes path mean nothing any more; its nodes live on, nameless, and
// its writers are returned, for they must not publish.
func (t *names) remove(path string) []*stagedNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removeLocked(path)
}

// writersAt returns all who write at path.
func (t *names) writersAt(path string) []*stagedNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byPath[path]
	if n == nil {
		return nil
	}
	return slices.Collect(maps.Keys(n.writers))
}

// removeTree is remove of path and all names below it, none of which leads to a writer.
func (t *names) removeTree(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.byPath {
		if p == path || strings.HasPrefix(p, path+"/") {
			t.removeLocked(p)
		}
	}
}

func (t *names) removeLocked(path string) []*stagedNode {
	n := t.byPath[path]
	if n == nil {
		return nil
	}
	t.lead(n, nil)
	n.gone = true
	delete(t.byPath, path)
	if n.refs <= 0 {
		t.dropNumber(n)
	}
	lost := make([]*stagedNode, 0, len(n.writers))
	for s := range n.writers {
		lost = append(lost, s)
	}
	return lost
}

// move makes the name at from, and all below it, the names of to, which lies at
// loc (a directory's ends in "/"); what was at to is gone. It returns the
// writers that lost their name, and those that moved.
func (t *names) move(from, to string, loc objectstore.Location) (lost, moved []*stagedNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from == to {
		return nil, nil
	}
	lost = t.removeLocked(to)
	var below []*name
	for p, n := range t.byPath {
		if p == from || strings.HasPrefix(p, from+"/") {
			below = append(below, n)
		}
	}
	if t.byPath[from] == nil { // not held by a node: its number moves all the same
		n := &name{path: from, ino: t.free(from)}
		t.byPath[from], t.inos[n.ino] = n, n
		below = append(below, n)
	}
	for _, n := range below {
		delete(t.byPath, n.path)
	}
	for _, n := range below {
		below := strings.TrimPrefix(n.path, from)
		leads := n.staged
		t.lead(n, nil)
		n.path = to + below
		t.lead(n, leads)
		n.loc = objectstore.Location{Bucket: loc.Bucket, Key: strings.TrimSuffix(loc.Key, "/") + below}
		t.byPath[n.path] = n
		for s := range n.writers {
			moved = append(moved, s)
		}
	}
	return lost, moved
}

// appender returns a version of n that an O_APPEND open may join, reserved for
// it, or nil.
func (t *names) appender(n *name) *stagedNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range n.writers {
		if s.join() {
			return s
		}
	}
	return nil
}

// waiting returns a version of n that nobody has open and that has no bytes
// yet, reserved for one open, or nil.
func (t *names) waiting(n *name) *stagedNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range n.writers {
		if s.refill() {
			return s
		}
	}
	return nil
}

// generation tells versions of one inode number apart: a hash of what makes
// the version (an ETag, a write id, some content).
func generation(version string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(version))
	return max(h.Sum64(), 1)
}

// versionOf tells an object's versions apart: by the ETag, and by the size. A
// server that looks at a file's size and at its ETag one after the other tells of
// the size of one version and the ETag of the next when they are replaced between
// the two; a node that was made of that would be the next version's for good.
func versionOf(o objectstore.Object) string {
	return o.ETag + "\x00" + strconv.FormatInt(o.Size, 10)
}

// attrKey is an object's key in the attribute store.
func attrKey(l objectstore.Location) string { return l.Bucket + "\x00" + l.Key }

// writerOf returns the node of write id, or nil.
func (t *names) writerOf(id string) *stagedNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}
