package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

var (
	errNoPartition = fmt.Errorf("it lies in no partition of its table: %w", errInvalid)
	errOutside     = fmt.Errorf("it lies outside of what is overwritten: %w", errInvalid)
	errUnfinished  = errors.New("it lies in a staging tree, which its job moves into place, or removes, before a commit")
	errKept        = errors.New("it was not written to its end, or failed (see .lakefs/staged): write it anew, or drop it by lakefs-mount recover --abort")
)

// lookupsAtOnce bounds the look-ups of a commit's directories.
const lookupsAtOnce = 16

// transaction is one commit of a transaction's files.
type transaction struct {
	fs          *FS
	root, table string
	files       []treeFile // that are published, in the order of their paths
	along       []treeFile // that are not, and move to their places: files of local names
	fresh       freshDirectories
	clear       []clearing

	last    catalogview.Target // of the file that was resolved last, in lastDir
	lastDir string
}

// transactionResult is what a job tells of a commit. Bytes counts those of the files,
// and Local the files of local names, which live in the mount alone at their new places.
type transactionResult struct {
	Files      int   `json:"files"`
	Bytes      int64 `json:"bytes"`
	Cleared    int   `json:"cleared"`
	Partitions int   `json:"new_directories"`
	Local      int   `json:"local"`
}

func newTransaction(f *FS, root string) *transaction {
	return &transaction{fs: f, root: root, table: tableOf(root), fresh: freshDirectories{fs: f}}
}

// commit publishes the files at their places, after it has checked all that it can
// ("Several files at once", rules 25 to 31). On an error none of an append is published,
// and the transaction is open as before; an overwrite that has begun keeps what it
// published (rule 29), and the rest is in the transaction. A file whose partition could
// not be registered is published.
func (t *transaction) commit(ctx context.Context, verb, scope string, j *job) (result transactionResult, err error) {
	if err = t.collect(); err != nil {
		return result, err
	}
	held := make([]*stagedNode, 0, len(t.files)+len(t.along))
	for _, s := range slices.Concat(t.files, t.along) {
		held = append(held, s.stagedNode)
	}
	if err = lockAll(held); err != nil {
		return result, err
	}
	defer func() {
		unlockAll(held)
		t.endFiles()
	}()
	for i := range t.files {
		t.files[i].was = t.files[i].file.Record()
	}
	for i := range t.along {
		t.along[i].was = t.along[i].file.Record()
	}
	if err = t.prepare(ctx, verb, scope); err != nil {
		t.fresh.undo(ctx)
		return result, err
	}
	return t.publish(ctx, j)
}

// collect takes down the files. All must be closed, and whole.
func (t *transaction) collect() error {
	f := t.fs
	there := make(map[string]bool)
	for _, s := range f.names.stagedTree(t.root) {
		final, _ := finalPath(s.path)
		there[s.path] = true
		switch {
		case inTree(final):
			return fmt.Errorf("%q: %w", final, errUnfinished)
		case f.holdOf(final) == staging.Local:
			t.along = append(t.along, treeFile{stagedNode: s.node, path: final})
		case !s.node.idle():
			return fmt.Errorf("%q is open: %w", final, errBusy)
		case !s.node.whole(): // its RELEASE may be on its way
			s.node.tear()
			return fmt.Errorf("%q: %w", final, errKept)
		default:
			t.files = append(t.files, treeFile{stagedNode: s.node, path: final})
		}
	}
	for _, w := range f.Area.Files() {
		r := w.Record()
		if below(r.Path, t.root) && !there[r.Path] && w.Dirty() {
			final, _ := finalPath(r.Path)
			return fmt.Errorf("%q: %w", final, errKept)
		}
	}
	slices.SortFunc(t.files, func(x, y treeFile) int { return strings.Compare(x.path, y.path) })
	return nil
}

// prepare finds where the files go, makes the directories for them, and finds what an
// overwrite clears.
func (t *transaction) prepare(ctx context.Context, verb, scope string) error {
	if err := t.makeDirectories(ctx); err != nil {
		return err
	}
	for i := range t.files {
		if err := t.resolve(ctx, &t.files[i]); err != nil {
			return fmt.Errorf("%q: %w", t.files[i].path, err)
		}
	}
	if verb == "overwrite" {
		dirs, err := t.scope(ctx, scope)
		if err == nil {
			err = t.findCleared(ctx, dirs)
		}
		if err != nil {
			return err
		}
	}
	return t.resolveAlong(ctx, verb == "overwrite")
}

// resolve finds where a file goes: data only into a partition (rule 27). Where its
// directory is the last one's, so is all but its name: of 10,000 files it took a tenth of
// the commit.
func (t *transaction) resolve(ctx context.Context, s *treeFile) error {
	dir, base := parent(s.path)
	target, ok := t.beside(dir, base)
	if !ok {
		var err error
		if target, err = t.fs.View.Resolve(ctx, s.path); err != nil {
			return err
		}
		t.last, t.lastDir = target, dir
	}
	if !target.Hidden && target.Level < len(target.Table.Keys) {
		return errNoPartition
	}
	s.to, s.data = newWrite(s.path, target), !target.Hidden
	s.to.Cond = objectstore.Cond{IfNoneMatch: true}
	s.to.Final = false
	return nil
}

// beside is the target of a data file in the directory of the last one that was
// resolved, whose name is no shorter.
func (t *transaction) beside(dir, base string) (target catalogview.Target, ok bool) {
	if t.lastDir != dir || t.last.Hidden || table.Hidden(base) || t.last.Level < len(t.last.Table.Keys) {
		return target, false
	}
	target = t.last
	at, was := parent(target.Location.Key)
	target.Location.Key = child(at, base)
	return target, len(base) <= len(was)
}

// endFiles lets go of what was published: each file's spool goes, which on a disk takes
// longer than all else that is done for it here.
func (t *transaction) endFiles() {
	var g errgroup.Group
	g.SetLimit(lookupsAtOnce)
	for _, s := range t.files {
		g.Go(func() error {
			s.end()
			return nil
		})
	}
	_ = g.Wait() // none fails
}

// makeDirectories checks the names of the directories that the files need, and makes
// those that are new.
func (t *transaction) makeDirectories(ctx context.Context) error {
	dirs := t.directories()
	there := make([]bool, len(dirs))
	g, over := errgroup.WithContext(ctx)
	g.SetLimit(lookupsAtOnce)
	for i, path := range dirs {
		g.Go(func() error {
			t.fs.stays(path)
			n, err := t.fs.lookup(over, path)
			switch {
			case errors.Is(err, objectstore.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !n.Kind.Directory():
				return fmt.Errorf("%q: %w", path, errNotDirectory)
			}
			there[i] = true
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, path := range dirs {
		if there[i] {
			continue
		}
		if err := t.fresh.add(ctx, path); err != nil && !t.madeMeanwhile(ctx, path, err) {
			return err
		}
	}
	return nil
}

// madeMeanwhile tells whether a directory could not be made because another commit, say,
// just did.
func (t *transaction) madeMeanwhile(ctx context.Context, path string, err error) bool {
	if !errors.Is(err, table.ErrEqual) && !errors.Is(err, objectstore.ErrExist) {
		return false
	}
	n, err := t.fs.lookup(ctx, path)
	return err == nil && n.Kind.Directory()
}

// directories are those that the files lie in below the table, each behind the one that
// it lies in.
func (t *transaction) directories() []string {
	seen := map[string]struct{}{}
	for _, s := range slices.Concat(t.files, t.along) {
		for dir, _ := parent(s.path); dir != t.table; dir, _ = parent(dir) {
			if _, ok := seen[dir]; ok {
				break
			}
			seen[dir] = struct{}{}
		}
	}
	return sortedKeys(seen)
}

// publish is commit once all is known and checked.
func (t *transaction) publish(ctx context.Context, j *job) (result transactionResult, err error) {
	f := t.fs
	began := false // something was removed, or published
	how := commit.Together{RegisterLast: true, Path: t.table, Progress: func(done, total int) {
		began = began || done > 0
		j.progress(int64(done), int64(total))
	}}
	for _, c := range t.clear {
		f.detach(c.object)
		how.Clear = append(how.Clear, c.object)
	}
	members := make([]commit.Member, len(t.files))
	for i, s := range t.files {
		members[i] = commit.Member{File: s.file, To: s.to, Data: s.data}
	}
	// A crash from here on ends the transaction, by whichever side; what is staged in
	// it is found by its record.
	dirs := append(f.local.below(t.root), t.root)
	half := f.local.isHalf(t.root)
	f.warnLocal(t.root, f.local.remove(t.root))
	objects, err := f.Committer.PublishAll(ctx, members, how)
	if began {
		t.cleared() // or not all of it: what is known is asked anew
	}
	left := t.landed(objects)
	if left > 0 || err != nil && unregistered(err) == nil {
		if len(t.clear) > 0 && left < len(t.files) {
			half = true
			err = fmt.Errorf("%w (%d of %d files are published, and what they replace is gone: commit the rest)", err, len(t.files)-left, len(t.files))
		}
		for _, dir := range dirs {
			f.warnLocal(dir, f.local.make(dir))
		}
		if half {
			f.warnLocal(t.root, f.local.halve(t.root))
		}
		if left == len(t.files) {
			t.fresh.undo(ctx)
		}
		for _, s := range t.files {
			f.superseded(s.to.Target)
		}
		return t.result(left), err
	}
	t.fresh.own()
	t.moveAlong(ctx)
	f.dropKept(ctx, t.root)
	f.endTransaction(ctx, t.root)
	return t.result(0), err
}

func (t *transaction) result(left int) transactionResult {
	r := transactionResult{Cleared: len(t.clear)}
	if left == len(t.files) && left > 0 {
		return transactionResult{}
	}
	r.Files, r.Partitions = len(t.files)-left, len(t.fresh.fresh)
	if left == 0 {
		r.Local = len(t.along)
	}
	for _, s := range t.files {
		if s.done {
			r.Bytes += s.size
		}
	}
	return r
}

// landed gives the files that were published their final names, and returns how many
// were not.
func (t *transaction) landed(objects []objectstore.Object) (left int) {
	for i := range t.files {
		s := &t.files[i]
		if i >= len(objects) || objects[i].Key == "" {
			left++
			continue
		}
		s.done, s.size = true, objects[i].Size
		t.fs.names.remove(s.was.Path) // nobody has it open, and a look-up of the new name finds the object
		t.fs.remember(s.path, objects[i], s.was.Attributes)
		t.fs.dropSums(s.path)
	}
	return left
}
