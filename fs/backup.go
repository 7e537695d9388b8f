package fs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Editors rename a file to a backup name, write it anew, and remove the backup. Made
// at once, the store would have no such file for a while. So the rename of a published
// file to a backup name of its own is held back: to programs of this mount it has taken
// place, and in the store nothing has. The backup is a staged file that begins as the
// object. In a bucket it has the bytes from the rename on, for others may replace the
// object; elsewhere a descriptor of it. It ends in one of these ways:
//
//   - A new file is published in the old one's place: an overwrite of the object. The
//     backup has bytes of its own by then, and is a file of a temporary name from then
//     on. A new file that is refused is like any other, and the wait begins anew.
//   - Others replaced or removed the object: the backup is a file of a temporary name.
//   - The backup is removed, and so is the object; or it is renamed back.
//   - Nothing of this happens in TemporaryLinger, or the mount ends, or another rename
//     needs it: then the rename is made.
//
// Killed before, the mount has renamed nothing, and what bytes the backup had are kept.

// away is a file whose rename is held back. Its lock keeps it as it is; it comes before
// any stagedNode.commit.
type away struct {
	fs         *FS
	from, to   string
	old        objectstore.Object // which is at from in the store
	target     catalogview.Target // of to
	attributes staging.Attributes // which the backup began with
	lock       commitLock

	// Guarded by lock. backup is what to leads to, one of its reservations is ours;
	// nil: it is an ordinary file by now, or none. owed: none, so that the object is to
	// go too, unless a new file takes its place.
	backup *stagedNode
	owed   bool

	waits atomic.Uint64 // waits that began; the last one counts
}

// madeOf reports whether base is a name of p that is made of name by a pattern's "*". A
// numbered one (f.~1~) is one of f, where "*~" is a pattern.
func (p Patterns) madeOf(base, name string) bool {
	base, name = bytewise(base), bytewise(name)
	for _, one := range p.list {
		m := one.name.FindStringSubmatch(base)
		if m == nil || one.star == 0 || !one.hasLetter(m) || one.beside != "" {
			continue
		}
		if stem := m[one.star]; stem == name || base == stem+"~" && numbered(stem, name) {
			return true
		}
	}
	return false
}

// numbered reports whether stem is name, ".~" and a number.
func numbered(stem, name string) bool {
	number, ok := strings.CutPrefix(stem, name+".~")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// isNumbered reports whether the backup is a numbered one.
func (a *away) isNumbered() bool {
	_, name := parent(a.from)
	_, base := parent(a.to)
	stem, ok := strings.CutSuffix(base, "~")
	return ok && numbered(stem, name)
}

// holdsBack reports whether the rename of a published file is to be held back. Of one
// that somebody writes to it is not, nor of an object that would take long to fetch.
func (m *move) holdsBack(n catalogview.Node) bool {
	f := m.fs
	dir, name := parent(m.from)
	newDir, base := parent(m.to)
	return m.old == nil && dir == newDir && f.BackupNames.madeOf(base, name) && !f.draining.Load() &&
		(!f.flat || n.Object.Size <= staging.DetachMax) &&
		f.holdOf(m.from) == staging.Unheld && len(f.names.writersAt(m.from)) == 0
}

// errAtOnce: a rename is not held back.
var errAtOnce = errors.New("the rename is made at once")

// holdBack renames a published file for programs of this mount alone. errAtOnce: it does
// not, for the name, or as the bytes can not be kept.
func (m *move) holdBack(ctx context.Context, n catalogview.Node) error {
	if !m.holdsBack(n) {
		return errAtOnce
	}
	f := m.fs
	old, err := f.Store.Stat(ctx, n.Object.Location)
	if supersedes(err) || err == nil && old.ETag != n.Object.ETag {
		f.superseded(n.Object.Location)
	}
	if err == nil {
		err = f.mayChange(old, WriteOverwrite)
	}
	if err != nil {
		return err
	}
	w := newWrite(m.to, m.target)
	w.Base, w.Cond = &old, objectstore.Cond{IfNoneMatch: true}
	w.Hold, w.Final = staging.Temporary, false
	w.Attributes = f.baseAttributes(old)
	w.Attributes.MTimeSet = true
	file, err := f.Area.Create(ctx, w)
	if err != nil {
		return err
	}
	if f.flat {
		if err := file.Separate(ctx); err != nil {
			f.Log.InfoContext(ctx, "a rename to a backup name does not wait", attrPath(m.from), slog.Any("error", err))
			return errors.Join(errAtOnce, file.Drop())
		}
	}
	a := &away{fs: f, from: m.from, to: m.to, old: old, target: m.target, attributes: w.Attributes, lock: newCommitLock()}
	m.renamed(nil, old.Location)
	a.backup = f.nodeOf(file, m.to, true)
	f.backups.add(a)
	f.changedIn(old.Location)
	f.dropSums(m.to)
	a.wait()
	return nil
}

// wait has the rename made after a while, if nothing has become of it by then.
func (a *away) wait() {
	if a.fs.draining.Load() {
		return // Drain makes it, or leaves it
	}
	turn := a.waits.Add(1)
	time.AfterFunc(a.fs.TemporaryLinger, func() { a.lingered(turn) })
}

func (a *away) lingered(turn uint64) {
	a.fs.publishing.begin()
	defer a.fs.publishing.end()
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.waits.Load() != turn || a.fs.backups.at(a.from) != a || a.fs.draining.Load() {
		return
	}
	if a.replacing() || a.backup != nil && a.backup.isWritten() {
		a.wait()
		return
	}
	ctx, cancel := a.fs.lasting()
	defer cancel()
	_ = a.make(ctx) // it is logged
}

// replacing reports whether a new file is being written in the old one's place.
func (a *away) replacing() bool { return len(a.fs.names.writersAt(a.from)) > 0 }

// isWritten reports whether somebody has the file open for writing.
func (s *stagedNode) isWritten() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writing) > 0
}

// endBackups makes the renames that are held back, but for those in whose place a file
// is being written.
func (f *FS) endBackups() {
	over := make(chan struct{})
	slots := make(chan struct{}, lingersAtOnce)
	all := f.backups.all(func(*away) bool { return true })
	for _, a := range all {
		go func() {
			defer func() { over <- struct{}{} }()
			slots <- struct{}{}
			defer func() { <-slots }()
			a.lock.Lock()
			defer a.lock.Unlock()
			if f.backups.at(a.from) != a || a.replacing() {
				return
			}
			ctx, cancel := f.lasting()
			defer cancel()
			_ = a.make(ctx) // it is logged
		}()
	}
	for range all {
		<-over
	}
}
