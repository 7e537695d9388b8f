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

// sumsOf returns the local file with the checksums of path, if there is one that
// nobody has open.
func (f *FS) sumsOf(path string) *stagedNode {
	dir, base := parent(path)
	s, _, _ := f.names.stagedAt(child(dir, "."+base+".crc"), 0)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != staging.Local || s.handles > 0 {
		return nil
	}
	return s
}

// dropSums removes the checksums of path, which is another file from now on, or none.
func (f *FS) dropSums(path string) {
	s := f.sumsOf(path)
	if s == nil {
		return
	}
	ctx, cancel := f.background()
	defer cancel()
	if err := f.unlinkStaged(ctx, s.path()); err != nil {
		f.Log.Warn("old checksums of a file that changed stay", attrPath(s.path()), slog.Any("error", err))
	}
}

// settleSums is for a file at path that is o from now on, by a write that began
// then: checksums that were made since are its own, and hold as long as o does; older
// ones go.
func (f *FS) settleSums(path string, o objectstore.Object, began time.Time) {
	s := f.sumsOf(path)
	switch {
	case s == nil:
	case s.file.Record().Created.Before(began):
		f.dropSums(path)
	default:
		s.mu.Lock()
		s.sums = versionOf(o)
		s.mu.Unlock()
	}
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
	f.dropSums(path)
	return true
}
