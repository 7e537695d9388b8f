package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// batchAtOnce is how many files of a batch are checked, published and taken back at a
// time.
const batchAtOnce = 16

// batchOfMany is from how many files on what is left of them here is removed later.
const batchOfMany = 512

// Member is one file of a batch.
type Member struct {
	File *staging.File
	// To is where it is to be published: Target, Prefix, Path, Format, Cond and Hold
	// count, as [staging.File.SetTarget] takes them. Cond is that nothing is there.
	To staging.NewWrite
	// Data: it is data of its table (no hidden name, say), so that the partition that
	// To lies in is to be in the catalog.
	Data bool
}

// Together says how the files of a batch are published. The zero value is usable.
type Together struct {
	// Clear are objects that are removed before anything is published (rule 30), exactly
	// these versions: one that was replaced since stays. Location and ETag count. With
	// any a failure takes nothing back (rule 29), and there need be no members.
	Clear []objectstore.Object
	// RegisterLast: partitions are registered once all is published, else before.
	RegisterLast bool
	// Progress, if not nil, is told how many objects are removed and files published, of
	// how many: done grows by one a call, and one call is made at a time. It must not wait.
	Progress func(done, total int)
	// Path is where that is in the mount, for people, where there are no members.
	Path string
}

// PublishAll publishes all members or none, and returns what they are now, in their
// order. The files are clean then, and nothing of them is staged; writers of them wait
// meanwhile. On an error each file is as it was, at its old place.
//
// All of it is checked before anything is asked of the store, and the partitions are
// registered ([Committer.Register]'s errors). Then a record on disk says what is to
// come, and [Committer.Recover] finishes it. While it goes on a reader may see a part.
// If one cannot be published those that were are taken back, on the evidence of their
// write ids; where the store does not answer, or refuses that, the record stays, the
// error says so, and FinishRenames or the next mount takes them back.
//
// With Clear all of these objects are gone, durably, before the first file is published,
// and a crash at any point is made good by publishing all of them. An error that comes
// with objects is of a part: those that were published stay so, their files are clean,
// and the zero Object stands for each that is as it was, at its old place. What was
// removed by then is gone; an error without objects may be of that, too, unless it is
// one of the checks.
//
// A [*RegisterError], of RegisterLast alone, comes with all objects.
func (c *Committer) PublishAll(ctx context.Context, members []Member, how Together) ([]objectstore.Object, error) {
	if len(members)+len(how.Clear) == 0 {
		return nil, nil
	}
	if err := c.settleBatches(ctx, members); err != nil {
		return nil, err
	}
	b := &batch{c: c, how: how, files: make([]*batchFile, len(members))}
	for i, m := range members {
		b.files[i] = &batchFile{Member: m, to: placeOf(m.To)}
	}
	unlock, err := c.targets.lockAll(ctx, b.targets())
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer b.release()
	err = b.publish(ctx)
	if err != nil && !isUnregistered(err) {
		err = fmt.Errorf("publish %d files together: %w", len(members), err)
	}
	return b.objects(), err
}

// objects are what the files are by now; nil if none is published for good.
func (b *batch) objects() []objectstore.Object {
	if !b.kept {
		return nil
	}
	objects := make([]objectstore.Object, len(b.files))
	for i, f := range b.files {
		if f.done {
			objects[i] = f.made
		}
	}
	return objects
}

func placeOf(w staging.NewWrite) staging.Place {
	return staging.Place{Target: w.Target, Prefix: w.Prefix, Path: w.Path, Format: w.Format, Cond: w.Cond, Hold: w.Hold}
}

// batch is one PublishAll, or the publishing of a recovered one's members.
type batch struct {
	c     *Committer
	how   Together
	files []*batchFile
	note  *staging.Batch
	kept  bool // what is done stays so

	mu    sync.Mutex
	steps int // that Progress was told of
}

// batchFile is one file of a batch, held from the writers of it.
type batchFile struct {
	Member
	to   staging.Place
	z    *staging.Frozen // nil: not held
	was  staging.Record  // before the batch
	made objectstore.Object
	by   way
	done bool // made is in the store
	// unclear: whether a request that was sent took effect may show later.
	unclear bool
	// Of a recovered file, whose Member.File is nil if it is gone:
	member *staging.BatchMember
	sound  bool // its bytes are what they were
}

// targets are all locations that a batch changes.
func (b *batch) targets() []objectstore.Location {
	all := make([]objectstore.Location, 0, len(b.files)+len(b.how.Clear))
	for _, f := range b.files {
		all = append(all, f.to.Target)
	}
	for _, o := range b.how.Clear {
		all = append(all, o.Location)
	}
	return all
}

// step tells of one that is done.
func (b *batch) step() {
	if b.how.Progress == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps++
	b.how.Progress(b.steps, len(b.files)+len(b.how.Clear))
}

// each runs do for the files, several at a time, until one fails: none that has begun is
// broken off for another's failure.
func (b *batch) each(ctx context.Context, do func(ctx context.Context, f *batchFile) error) error {
	return inParallel(ctx, b.c.atOnce, b.files, do)
}

// inParallel does it on goroutines that each take one after the other: a new one for
// each file would grow its stack anew, which took an eighth of the processor's time.
func inParallel[T any](ctx context.Context, atOnce int, all []T, do func(ctx context.Context, t T) error) error {
	g, over := errgroup.WithContext(ctx)
	var taken atomic.Int64
	for range min(atOnce, len(all)) {
		g.Go(func() error {
			for over.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(all) {
					break
				}
				if err := do(ctx, all[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (b *batch) publish(ctx context.Context) error {
	err := b.prepare(ctx)
	if err == nil {
		b.note, err = b.c.area.NewBatch(b.plan())
	}
	if err == nil {
		err = b.note.Begin()
	}
	if err == nil {
		err = b.publishNoted(ctx)
	}
	return err
}

// prepare does what is done before anything is on disk: nothing is to be taken back.
func (b *batch) prepare(ctx context.Context) error {
	err := b.hold(ctx)
	if err == nil {
		_, err = b.c.area.NewBatch(b.plan()) // what it has to say of them is checked
	}
	if err == nil {
		err = b.each(ctx, b.check)
	}
	if err == nil && !b.how.RegisterLast {
		err = unmoved(b.register(ctx))
	}
	if err == nil {
		err = b.each(ctx, b.secure)
	}
	return err
}

// hold freezes the files, in the order in which [staging.Area.BeginMove] does.
func (b *batch) hold(ctx context.Context) error {
	order := byAge(b.files)
	for i, f := range order {
		if i > 0 && order[i-1].File == f.File {
			return fmt.Errorf("%q twice: %w", f.to.Path, objectstore.ErrExist)
		}
		z, err := f.File.Freeze(ctx)
		if err != nil {
			return fmt.Errorf("%q: %w", f.to.Path, err)
		}
		f.z, f.was = z, z.Record
		if z.Clean || z.Record.Base != nil {
			return fmt.Errorf("%q is published already: %w", z.Record.Path, errors.ErrUnsupported)
		}
	}
	return nil
}

// byAge is the files in the order of [staging.Area.Files].
func byAge(files []*batchFile) []*batchFile {
	order := slices.DeleteFunc(slices.Clone(files), func(f *batchFile) bool { return f.File == nil })
	slices.SortFunc(order, func(x, y *batchFile) int { return staging.CompareAge(x.File, y.File) })
	return order
}

func (b *batch) release() {
	for _, f := range b.files {
		if f.z != nil {
			f.z.Release()
			f.z = nil
		}
	}
}

func (b *batch) plan() staging.BatchPlan {
	p := staging.BatchPlan{Members: b.members(), RegisterLast: b.how.RegisterLast, Path: b.how.Path}
	for _, o := range b.how.Clear {
		p.Clear = append(p.Clear, staging.Cleared{Target: o.Location, ETag: o.ETag})
	}
	return p
}

// members is what the record says of the files.
func (b *batch) members() []staging.BatchMember {
	all := make([]staging.BatchMember, len(b.files))
	for i, f := range b.files {
		all[i] = staging.BatchMember{
			ID: f.was.ID, From: f.was.Place(), To: f.to, Data: f.Data, Size: f.z.Size, Sum: f.z.Record.Sum,
		}
	}
	return all
}

func (b *batch) check(ctx context.Context, f *batchFile) error {
	return b.c.checkAs(ctx, f.File, f.z.Record.At(f.to))
}

// register registers the partitions of what is data; once a part of it is published for
// good, of that.
func (b *batch) register(ctx context.Context) error {
	first := make(partitions)
	for _, f := range b.files {
		if f.Data && (f.done || !b.kept) {
			first.add(f.to)
		}
	}
	return b.c.registerAll(ctx, first.paths())
}

// partitions are the first files of directories, by those.
type partitions map[string]staging.Place

func (p partitions) add(at staging.Place) {
	if dir := path.Dir(at.Path); p[dir].Path == "" {
		p[dir] = at
	}
}

// paths is p as registerAll takes it.
func (p partitions) paths() map[string]objectstore.Location {
	all := make(map[string]objectstore.Location, len(p))
	for _, at := range p {
		all[at.Path] = at.Target
	}
	return all
}

// secure makes it possible to publish the bytes anew after a crash. A store that takes
// the spool itself has them made durable in any case.
func (b *batch) secure(ctx context.Context, f *batchFile) error {
	secure := f.z.Secure
	if _, adopts := b.c.store.(objectstore.Adopter); adopts {
		secure = f.z.Seal
	}
	if err := secure(ctx); err != nil {
		return fmt.Errorf("%q: %w", f.was.Path, err)
	}
	return nil
}

// publishNoted removes what goes first, publishes the files, and drops the note.
func (b *batch) publishNoted(ctx context.Context) error {
	for _, f := range b.files {
		f.z.MoveTo(f.to)
	}
	err := b.clear(ctx)
	if err == nil {
		err = b.each(ctx, b.publishOne)
	}
	if err == nil {
		err = b.note.SetState(staging.BatchMoved, "")
	}
	if err != nil && len(b.how.Clear) > 0 {
		return b.keep(context.WithoutCancel(ctx), err)
	}
	if err != nil {
		return b.takeBack(context.WithoutCancel(ctx), err)
	}
	b.kept = true
	var told error
	if b.how.RegisterLast {
		told = b.register(context.WithoutCancel(ctx)) // while the record is there
	}
	b.leave(ctx)
	if err := b.note.Drop(); err != nil { // the next mount does
		b.c.log.LogAttrs(ctx, slog.LevelWarn, "the record of files that are published together stays", slog.Any("error", err))
	}
	return told
}

// leave removes what is left here of the files that are published. Of many that takes
// its time: a disk removes some side by side.
func (b *batch) leave(ctx context.Context) {
	_ = b.each(context.WithoutCancel(ctx), func(_ context.Context, f *batchFile) error {
		switch {
		case !f.done || f.z == nil:
		case len(b.files) < batchOfMany:
			f.z.Published(bearing(f.made, f.z.Record), f.by == byAdopt)
		default:
			f.z.PublishedOfMany(bearing(f.made, f.z.Record), f.by == byAdopt)
		}
		return nil
	})
}

func (b *batch) publishOne(ctx context.Context, f *batchFile) error {
	if f.done {
		return nil
	}
	p := publishing{c: b.c, f: f.File, z: f.z, together: true, sound: f.sound}
	obj, by, err := p.attempts(ctx)
	if err != nil {
		f.unclear = isUnclear(ctx, err)
		return fmt.Errorf("%q: %w", f.to.Path, err)
	}
	f.made, f.by, f.done = obj, by, true
	b.step()
	return nil
}
