package fs

// The close rule decides what a FLUSH or a RELEASE of a file that is being
// written means. It is pure: facts in, a decision out.
//
// The kernel sends FLUSH for every close of a duplicate, from whatever process,
// and gives no sign of the last one; only FLUSH's answer reaches close(2). So a
// FLUSH publishes when it comes from the process that opened the file and
// neither that process nor a living descendant can still write through the
// descriptor; else the RELEASE does, whose failure nobody sees. A process that
// is being killed by a signal leaves a torn file, unless it never wrote.

// onKilled says what becomes of a file whose writer is killed.
type onKilled int

const (
	killedStage   onKilled = iota // torn: kept, shown, not published
	killedPublish                 // published as if closed
)

// flushFacts are what is known of a FLUSH.
type flushFacts struct {
	opener bool // from the process that opened this handle (or /proc cannot tell)
	killed bool // from a process that is being killed by a signal
	held   bool // the opener or a living descendant still holds a writable descriptor
	again  bool // the handle was closed before
}

// closes says that the handle has no user any more that could be seen: its
// RELEASE is on its way, but an open that follows at once overtakes it.
func (fl flushFacts) closes() bool { return fl.opener && !fl.held && !fl.killed }

// fileFacts are what is known of the file.
type fileFacts struct {
	publishable bool // there is something that the store does not have
	touched     bool // a write, truncate or allocate ever happened
	refused     bool // these very bytes were to be published, and could not: somebody was told
}

// decision is what to do.
type decision int

const (
	doNothing decision = iota
	doDefer            // leave it to a later FLUSH or to RELEASE
	doDurable          // another writer is open: make the bytes durable in the spool
	doTear             // mark the file torn
	doPublish
)

// closeRule is the state of one staged file's writers. The caller guards it.
type closeRule struct {
	writers  int // handles that can write, until their RELEASE
	closed   int // of these, those that a FLUSH has closed
	torn     bool
	unlinked bool
	onKilled onKilled
}

// opened notes a writing handle.
func (r *closeRule) opened() { r.writers++ }

// needsFacts tells whether a FLUSH could do anything, before the facts, which
// cost reads of /proc, are gathered.
func (r *closeRule) needsFacts(f fileFacts) bool {
	return f.publishable && !r.torn && !r.unlinked
}

// flush decides on a FLUSH of a writing handle.
func (r *closeRule) flush(fl flushFacts, f fileFacts) decision {
	if !r.needsFacts(f) {
		return doNothing
	}
	if fl.killed && f.touched && r.onKilled == killedStage {
		r.torn = true
		return doTear
	}
	others := r.writers - r.closed
	if !fl.again {
		others--
	}
	switch {
	case !fl.opener, fl.held:
		return doDefer
	case others > 0:
		return doDurable
	}
	return doPublish
}

// close notes that a FLUSH closed a handle, reopen that it is used all the same.
func (r *closeRule) close()  { r.closed++ }
func (r *closeRule) reopen() { r.closed-- }

// release decides on the RELEASE of a writing handle. What a close was told to
// have failed must not take effect after it.
func (r *closeRule) release(f fileFacts) decision {
	r.writers--
	if r.writers > 0 || !r.needsFacts(f) || f.refused {
		return doNothing
	}
	return doPublish
}
