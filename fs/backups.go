package fs

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// backups are the renames that are held back, by the old path. The mutex is a leaf.
type backups struct {
	mu sync.Mutex
	m  map[string]*away
}

// at returns the rename of path that is held back, or nil.
func (b *backups) at(path string) *away {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.m[path]
}

func (b *backups) add(a *away) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = make(map[string]*away)
	}
	b.m[a.from] = a
}

// drop ends a: its old path means what the store has there.
func (b *backups) drop(a *away) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m[a.from] == a {
		delete(b.m, a.from)
	}
}

// all returns those for which belongs, in the order in which they are locked.
func (b *backups) all(belongs func(a *away) bool) []*away {
	b.mu.Lock()
	defer b.mu.Unlock()
	var some []*away
	for _, a := range b.m {
		if belongs(a) {
			some = append(some, a)
		}
	}
	slices.SortFunc(some, func(x, y *away) int { return strings.Compare(x.from, y.from) })
	return some
}

// lockedBackups stay as they are until unlock.
type lockedBackups []*away

func (l lockedBackups) unlock() {
	for _, a := range l {
		a.lock.Unlock()
	}
}

// from and to return the one of that path, or nil.
func (l lockedBackups) from(path string) *away {
	return l.find(func(a *away) bool { return a.from == path })
}

func (l lockedBackups) to(path string) *away {
	return l.find(func(a *away) bool { return a.to == path })
}

func (l lockedBackups) find(is func(a *away) bool) *away {
	if i := slices.IndexFunc(l, is); i >= 0 {
		return l[i]
	}
	return nil
}

// lockPaths locks those that have to do with one of paths; errBusy if one is being
// ended for longer than publishPatience.
func (b *backups) lockPaths(paths ...string) (lockedBackups, error) {
	concerns := func(a *away) bool { return slices.Contains(paths, a.from) || slices.Contains(paths, a.to) }
	for {
		some := b.all(concerns)
		for i, a := range some {
			if !a.lock.lockSoon() {
				lockedBackups(some[:i]).unlock()
				return nil, errBusyPublish
			}
		}
		if slices.Equal(some, b.all(concerns)) {
			return some, nil
		}
		lockedBackups(some).unlock()
	}
}

// lockFor locks what is held back of path, for the publish of a new file there, which
// nobody may refuse.
func (b *backups) lockFor(path string) (unlock func()) {
	for {
		a := b.at(path)
		if a == nil {
			return func() {}
		}
		a.lock.Lock()
		if b.at(path) == a {
			return a.lock.Unlock
		}
		a.lock.Unlock()
	}
}

// absentAway is the answer to who looks for a file whose rename is held back.
func (b *backups) absentAway(path string) error {
	if b.at(path) == nil {
		return nil
	}
	return fmt.Errorf("%q was renamed: %w", path, objectstore.ErrNotExist)
}

// listed is n as a listing of the store has it, for programs: a file whose rename is
// held back has its new name. ok is false if it has none.
func (b *backups) listed(n catalogview.Node) (as catalogview.Node, ok bool) {
	a := b.at(n.Path)
	if a == nil {
		return n, true
	}
	s, _, _ := a.fs.names.stagedAt(a.to, 0)
	n.Path = a.to
	return n, s != nil
}
