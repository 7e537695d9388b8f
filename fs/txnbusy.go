package fs

import (
	"sync"
	"time"
)

// transactions are those that are being committed, or changed. The zero value is none.
// Its methods may be called concurrently.
type transactions struct {
	mu    sync.Mutex
	busy  map[string]bool          // by path
	users map[string]int           // changes of names in it that are under way
	left  map[string]chan struct{} // closed by the last of users, for who is about to commit
}

// init is called with mu held.
func (t *transactions) init() {
	if t.busy == nil {
		t.busy, t.users, t.left = make(map[string]bool), make(map[string]int), make(map[string]chan struct{})
	}
}

// begin is false if one is being committed, or what changes a name in it does not end
// for publishPatience. From its beginning on nobody enters, and at its end nobody is
// there: what a commit finds is all, and stays.
func (t *transactions) begin(root string) bool {
	t.mu.Lock()
	if t.busy[root] {
		t.mu.Unlock()
		return false
	}
	t.init()
	t.busy[root] = true
	if t.users[root] == 0 {
		t.mu.Unlock()
		return true
	}
	left := make(chan struct{})
	t.left[root] = left
	t.mu.Unlock()
	patience := time.NewTimer(publishPatience)
	defer patience.Stop()
	select {
	case <-left:
		return true
	case <-patience.C:
		t.end(root)
		return false
	}
}

// enter keeps the transactions that paths lie in from being committed until leave is
// called; errTransactionBusy if one is. Who changes a name in one looks for it after
// that, or he has in hand what a commit has taken meanwhile.
func (t *transactions) enter(paths ...string) (leave func(), err error) {
	var roots []string
	for _, path := range paths {
		if root, ok := transactionOf(path); ok {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return func() {}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, root := range roots {
		if t.busy[root] {
			return nil, errTransactionBusy
		}
	}
	t.init()
	for _, root := range roots {
		t.users[root]++
	}
	return func() { t.leave(roots) }, nil
}

func (t *transactions) leave(roots []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, root := range roots {
		if t.users[root]--; t.users[root] > 0 {
			continue
		}
		delete(t.users, root)
		if left := t.left[root]; left != nil {
			close(left)
			delete(t.left, root)
		}
	}
}

func (t *transactions) end(root string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, root)
	delete(t.left, root)
}

// committing reports whether path lies in a transaction that is being committed.
func (t *transactions) committing(path string) bool {
	root, ok := transactionOf(path)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[root]
}
