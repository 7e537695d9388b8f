package fs

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Hadoop's local file system keeps the checksums of NAME in .NAME.crc, believes them
// whoever wrote NAME since, and fails with a ChecksumException then. So one that is of
// this mount goes when its NAME becomes another file.

// summed returns the path of the file whose checksums path has; ok is false for any
// other name.
func summed(path string) (of string, ok bool) {
	dir, base := parent(path)
	name, ok := strings.CutSuffix(base, ".crc")
	if !ok || len(name) < 2 || name[0] != '.' {
		return "", false
	}
	return child(dir, name[1:]), true
}

// sumsOf returns the local file with the checksums of path, or nil, and whether a
// program has it open.
func (f *FS) sumsOf(path string) (s *stagedNode, open bool) {
	dir, base := parent(path)
	s, _, _ = f.names.stagedAt(child(dir, "."+base+".crc"), 0)
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != staging.Local {
		return nil, false
	}
	return s, s.handles > 0
}

// dropSums removes the checksums of path, which is another file from now on, or none.
func (f *FS) dropSums(path string) {
	if s, open := f.sumsOf(path); s != nil && !open {
		f.removeSums(s)
	}
}

func (f *FS) removeSums(s *stagedNode) {
	ctx, cancel := f.background()
	defer cancel()
	path := s.path()
	if err := f.unlinkStaged(ctx, path); err != nil {
		f.Log.Warn("old checksums of a file that changed stay", attrPath(path), slog.Any("error", err))
	}
}

// settleSums is for a file at path that is o from now on, by a write that began
// then: checksums that were made since are its own, be they still written, and hold as
// long as o does; older ones go.
func (f *FS) settleSums(path string, o objectstore.Object, began time.Time) {
	s, open := f.sumsOf(path)
	if s == nil {
		return
	}
	s.mu.Lock()
	own := !s.opened.Before(began)
	if own {
		s.sums = versionOf(o)
	}
	s.mu.Unlock()
	if !own && !open {
		f.removeSums(s)
	}
}

// moveSums is for a file that is renamed: its checksums are, by all that is known of
// Hadoop, about to follow it.
func (f *FS) moveSums(path string) {
	if s, _ := f.sumsOf(path); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sums = ""
	}
}

// sumsMoved ties checksums that got the name path to the file that they are of now.
func (f *FS) sumsMoved(ctx context.Context, path string) {
	of, ok := summed(path)
	if !ok {
		return
	}
	s, _ := f.sumsOf(of)
	n, err := f.lookup(ctx, of)
	if s == nil || err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums = versionOf(n.Object)
}

// outdated reports whether s has checksums of a version that is not there any more,
// and removes them then.
func (f *FS) outdated(ctx context.Context, s *stagedNode) bool {
	s.mu.Lock()
	of := s.sums
	s.mu.Unlock()
	if of == "" {
		return false
	}
	path, _ := summed(s.path())
	if w, _, _ := f.names.stagedAt(path, 0); w != nil {
		return false
	}
	n, err := f.lookup(ctx, path)
	if err == nil && versionOf(n.Object) == of {
		return false
	}
	if err != nil && !supersedes(err) {
		return false // not known: what was true is believed
	}
	f.removeSums(s)
	return true
}
