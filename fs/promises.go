package fs

import "time"

// pendingLife is how long a look-up that a redirect promised to a thread is
// kept; the thread's next request comes within microseconds unless it died.
const pendingLife = 10 * time.Second

// turnedAway is a reader whose OPEN met a superseded version. Its next LOOKUP
// opens the version that it is given, so that it cannot be superseded again
// before the OPEN that follows: the kernel retries once only.
type turnedAway struct {
	version opened
	pinned  bool
	which   string // see versionOf
}

// turn is a thread that a redirect sent to look path up again. It is not the
// name's: a rename over the path makes another name of it before the second
// look-up.
type turn struct {
	path   string
	thread uint32
}

// promised is what a writer's second look-up is given. A rename over the path, or
// an unlink, meanwhile does not matter: its open came first, and its bytes go
// where those of any writer of a replaced file go.
type promised struct{ node *stagedNode }

// promise makes s the answer to tid's next LOOKUPs of its path, until the OPEN
// that follows; expired is called if none comes.
func (t *names) promise(s *stagedNode, tid uint32, expired func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, p := turn{s.name.path, tid}, &promised{node: s}
	t.pending[at] = p
	time.AfterFunc(pendingLife, func() {
		t.mu.Lock()
		open := t.pending[at] == p
		if open {
			delete(t.pending, at)
		}
		t.mu.Unlock()
		if open {
			expired()
		}
	})
}

// keep ends what promise began: tid has come for s. It reports whether the
// promise was still open.
func (t *names) keep(s *stagedNode, tid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, p := range t.pending { // few, and not for long
		if at.thread == tid && p.node == s {
			delete(t.pending, at)
			return true
		}
	}
	return false
}

// turnAway notes that tid was answered ESTALE for n; false if it was already.
func (t *names) turnAway(n *name, tid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := turn{n.path, tid}
	if t.turned[at] != nil {
		return false
	}
	entry := &turnedAway{}
	t.turned[at] = entry
	time.AfterFunc(pendingLife, func() { t.endTurn(at, entry) })
	return true
}

// endTurn forgets entry when it is still the turn's, and closes what it holds.
func (t *names) endTurn(at turn, entry *turnedAway) {
	t.mu.Lock()
	var v opened
	if t.turned[at] == entry {
		delete(t.turned, at)
		v = entry.version
	}
	t.mu.Unlock()
	v.close()
}

// pin keeps v, the version which of path, for the OPEN that tid was turned away
// to. It reports false, and does not take v, if tid waits no more.
func (t *names) pin(path string, tid uint32, which string, v opened) bool {
	t.mu.Lock()
	entry := t.turned[turn{path, tid}]
	if entry == nil {
		t.mu.Unlock()
		return false
	}
	old := entry.version
	entry.version, entry.which, entry.pinned = v, which, true
	t.mu.Unlock()
	old.close()
	return true
}

// unpin hands over what pin kept of version which, if it did, and ends the turn.
func (t *names) unpin(n *name, tid uint32, which string) (v opened, ok bool) {
	t.mu.Lock()
	at := turn{n.path, tid}
	entry := t.turned[at]
	if entry != nil && entry.pinned && entry.which == which {
		v, ok = entry.version, true
		entry.version, entry.pinned = opened{}, false
	}
	t.mu.Unlock()
	if entry != nil {
		t.endTurn(at, entry)
	}
	return v, ok
}
