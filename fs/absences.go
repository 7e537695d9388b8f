package fs

import (
	"slices"
	"strings"
	"sync"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
)

// maxAbsences bounds the names of which the kernel may keep that nothing is there.
const maxAbsences = 10_000

// absences are the names of which the kernel was told, for a while, that nothing is
// there: what a commit publishes under one of them is to be seen when it returns. The
// zero value is none. Its methods may be called concurrently.
type absences struct {
	mu    sync.Mutex
	until map[string]time.Time // by path
}

// note tells whether the kernel may keep that nothing is at path.
func (a *absences) note(path string, ttl time.Duration) bool {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.until) >= maxAbsences {
		for p, until := range a.until {
			if until.Before(now) {
				delete(a.until, p)
			}
		}
		if len(a.until) >= maxAbsences {
			return false
		}
	}
	if a.until == nil {
		a.until = make(map[string]time.Time)
	}
	a.until[path] = now.Add(ttl)
	return true
}

// take forgets path, and tells whether the kernel may still keep that nothing is there.
func (a *absences) take(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, kept := a.until[path]
	delete(a.until, path)
	return kept && time.Now().Before(until)
}

// tellKernel makes the kernel ask again for the names that a commit changed, where it
// knows something of them, and for no other. To drop a name the kernel waits for who is
// at work in its directory, and does so even while this process is being killed; as they
// then wait for it, nobody would be answered any more. So there is to be as little of it
// as can be, and none while files are held.
func (t *transaction) tellKernel() {
	f := t.fs
	names := t.directories()
	for _, s := range slices.Concat(t.files, t.along) {
		names = append(names, s.path)
	}
	for _, path := range names {
		if f.absences.take(path) {
			f.dropDentry(path, false)
		}
	}
	for _, c := range t.clear {
		f.dropDentry(c.path, true)
	}
}

// dropDentry makes the kernel ask again for one name; known: only if it has a node there.
func (f *FS) dropDentry(path string, known bool) {
	dir, base := parent(path)
	in := f.inodeAt(dir)
	if in == nil || known && in.GetChild(base) == nil {
		return
	}
	_ = in.NotifyEntry(base) // ENOENT: the kernel did not have it
}

// inodeAt returns the node at path, nil if the kernel has none.
func (f *FS) inodeAt(path string) *gofs.Inode {
	in := f.root.EmbeddedInode()
	if path == "" {
		return in
	}
	for base := range strings.SplitSeq(path, "/") {
		if in = in.GetChild(base); in == nil {
			return nil
		}
	}
	return in
}
