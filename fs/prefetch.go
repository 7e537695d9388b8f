package fs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// maxTrackers directories are watched at once, the last used.
	maxTrackers = 8
	// maxCharted is the most names of a directory whose order is looked for.
	maxCharted = 100_000
	// minOpens different files of a directory are opened before it is looked at.
	minOpens = 3
	// prefetchBytes may be fetched and unread of all directories, and half the cache's
	// window: beyond that what was fetched first is dropped for what comes next.
	prefetchBytes = 32 << 20
	// prefetchIdle after the last open of a directory, reading it is over.
	prefetchIdle = 2 * time.Second
)

// prefetcher fetches the small files of a directory that will be opened next, where
// files are being opened in order (see course): who copies a directory waits for one
// file's answer at a time, and a store answers many at once. It does what their opens
// would do: one GET of the whole object, which tells that the version is there; an
// open that finds that done asks for nothing.
//
// It only ever uses what the view knows, asks for nothing else, and tells nobody what
// it finds wrong: that is the open's. Bytes are the cache's, as speculation, so that
// readers' go before them, and those that nobody came for go first.
//
// mu is taken before flat's and names', and held across no request.
type prefetcher struct {
	fs      *FS
	limit   int             // files of a directory
	ctx     context.Context //nolint:containedctx // of what is fetched: it ends with the mount
	end     context.CancelFunc
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		closed   bool
		trackers map[objectstore.Location]*tracker
		clock    uint64
	}
}

// tracker watches one directory. Guarded by prefetcher.mu.
type tracker struct {
	dir      objectstore.Location
	path     string // when it was begun
	used     uint64 // prefetcher.mu.clock at the last open
	idle     *time.Timer
	first    []string // names that were opened so far, while there is no course
	charting bool
	strikes  int // of the course before
	parts    int // likewise: its partly
	course   *course
	slots    map[string]*slot // of the pending files
}

// slot is one file that is fetched.
type slot struct {
	release context.CancelFunc // lets go of what was fetched
	asked   chan struct{}      // closed when the store has told its version, or failed
	fetched bool               // the store is sending it; to be read after asked
}

func newPrefetcher(f *FS) *prefetcher {
	p := &prefetcher{fs: f, limit: f.PrefetchFiles}
	if _, local := f.Store.(objectstore.Opener); local || !f.flat || f.MetadataTTL <= 0 || f.Cache == nil {
		p.limit = 0
	}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.mu.trackers = make(map[objectstore.Location]*tracker)
	return p
}

// close ends all that runs, and waits for it. Nothing is fetched after it.
func (p *prefetcher) close() {
	p.mu.Lock()
	p.mu.closed = true
	for _, t := range p.mu.trackers {
		p.forgetLocked(t)
	}
	p.mu.Unlock()
	p.end()
	p.running.Wait()
}

// opening takes that a program opens o at path, and waits for its version where the
// store is being asked for that already. done is to be called once it was opened.
func (p *prefetcher) opening(ctx context.Context, o objectstore.Object, path string) (done func()) {
	s := p.follow(o, path)
	if s == nil {
		return func() {}
	}
	select {
	case <-s.asked:
		if s.fetched {
			p.fs.Metrics.PrefetchedUsed.Inc()
		}
	case <-ctx.Done():
	}
	return s.release
}

// follow takes that o is opened, and returns its slot, if it has one; the caller
// releases it.
func (p *prefetcher) follow(o objectstore.Object, path string) *slot {
	above, base := parent(path)
	dir, ok := directoryOf(o.Location, base)
	if p.limit <= 0 || !ok || inTransaction(path) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.trackLocked(dir, above)
	if t == nil {
		return nil
	}
	s := t.slots[base]
	delete(t.slots, base)
	if t.course == nil {
		p.chartLocked(t, base)
	} else {
		p.followLocked(t, base)
	}
	return s
}

// directoryOf is where the directory of the object named base lies.
func directoryOf(loc objectstore.Location, base string) (dir objectstore.Location, ok bool) {
	cut := len(loc.Key) - len(base)
	if cut < 0 || loc.Key[cut:] != base || cut > 0 && loc.Key[cut-1] != '/' {
		return dir, false
	}
	return objectstore.Location{Bucket: loc.Bucket, Key: loc.Key[:cut]}, true
}

// trackLocked returns the directory's tracker, which is the last used now.
func (p *prefetcher) trackLocked(dir objectstore.Location, path string) *tracker {
	if p.mu.closed {
		return nil
	}
	t := p.mu.trackers[dir]
	if t == nil {
		p.makeRoomLocked()
		t = &tracker{dir: dir, path: path, slots: make(map[string]*slot)}
		t.idle = time.AfterFunc(prefetchIdle, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.forgetLocked(t)
		})
		p.mu.trackers[dir] = t
	} else {
		t.idle.Reset(prefetchIdle)
	}
	p.mu.clock++
	t.used = p.mu.clock
	return t
}

func (p *prefetcher) makeRoomLocked() {
	if len(p.mu.trackers) < maxTrackers {
		return
	}
	var oldest *tracker
	for _, t := range p.mu.trackers {
		if oldest == nil || t.used < oldest.used {
			oldest = t
		}
	}
	p.forgetLocked(oldest)
}

// forgetLocked ends the watch of a directory. What is being fetched comes to its end.
func (p *prefetcher) forgetLocked(t *tracker) {
	t.idle.Stop()
	if p.mu.trackers[t.dir] == t {
		delete(p.mu.trackers, t.dir)
	}
	if t.course != nil {
		t.course.clear()
	}
	t.settle()
}

// settle lets go of what is no longer pending, and of a course that is lost.
func (t *tracker) settle() {
	if t.course == nil {
		return
	}
	for name, s := range t.slots {
		if _, is := t.course.pending[name]; !is {
			delete(t.slots, name)
			s.release()
		}
	}
	if t.course.lost {
		t.strikes, t.parts, t.course = t.course.strikes, t.course.partly, nil
	}
}

// chartLocked takes one of the first opens, and with enough of them makes the course,
// aside: there may be many names.
func (p *prefetcher) chartLocked(t *tracker, base string) {
	if n := len(t.first); n == 0 || t.first[n-1] != base {
		t.first = append(t.first[max(n+1-recentOpens, 0):], base)
	}
	if len(t.first) < minOpens || t.charting {
		return
	}
	t.charting = true
	first := t.first
	t.first = nil
	p.running.Go(func() {
		c := p.chart(t, first)
		p.mu.Lock()
		defer p.mu.Unlock()
		t.charting = false
		if c == nil || p.mu.trackers[t.dir] != t {
			return // asked again when further files were opened
		}
		c.strikes, c.partly, t.course = t.strikes, t.parts, c
		met := t.first // meanwhile
		t.first = nil
		for _, name := range met {
			if t.course != nil {
				p.followLocked(t, name)
			}
		}
	})
}

// chart makes the course of a directory after its first opens; nil where its names
// are not known.
func (p *prefetcher) chart(t *tracker, first []string) *course {
	names := p.fs.View.Nearby(objectstore.Location{Bucket: t.dir.Bucket, Key: t.dir.Key + first[0]}, maxCharted)
	if len(names) == 0 {
		return nil
	}
	c := newCourse(names, p.limit, func(name string) uint64 { return p.fs.inodeOf(child(t.path, name)) })
	for _, name := range first {
		c.opened(name, room{})
	}
	if c.lead == nil {
		c.byInode()
	}
	return c
}

// followLocked tells the course of an open, and fetches what it answers.
func (p *prefetcher) followLocked(t *tracker, base string) {
	guesses := make(map[string]catalogview.Guess)
	fetch, _ := t.course.opened(base, p.roomLocked(t, guesses))
	t.settle()
	if t.course == nil {
		return
	}
	for _, name := range fetch {
		ctx, release := context.WithCancel(p.fs.operations.New(p.ctx))
		s := &slot{release: release, asked: make(chan struct{})}
		t.slots[name] = s
		p.running.Go(func() {
			defer release()
			p.failed(t, name, p.fetch(ctx, s, guesses[name]))
		})
	}
}

// roomLocked is what may be fetched in t's directory, and puts the versions into
// guesses.
func (p *prefetcher) roomLocked(t *tracker, guesses map[string]catalogview.Guess) room {
	r := room{files: 2 * p.limit, bytes: min(prefetchBytes, p.fs.Cache.Window()/2)}
	for _, other := range p.mu.trackers {
		if other != t && other.course != nil {
			r.files -= len(other.course.pending)
			r.bytes -= other.course.bytes
		}
	}
	r.size = func(name string) (int64, bool) {
		g, ok := p.fs.View.Guess(objectstore.Location{Bucket: t.dir.Bucket, Key: t.dir.Key + name})
		if !ok || g.Object.Size > p.fs.Cache.Whole() || p.fs.changing(child(t.path, name)) {
			return 0, false
		}
		guesses[name] = g
		return g.Object.Size, true
	}
	return r
}

// changing tells whether a file is being written at path.
func (f *FS) changing(path string) bool {
	s, _, busy := f.names.stagedAt(path, 0)
	return s != nil || busy || f.drafts.busy(path)
}

// fetch does what an open of g's version does before it is read, and keeps what came
// until ctx ends.
func (p *prefetcher) fetch(ctx context.Context, s *slot, g catalogview.Guess) error {
	h := p.fs.openCache(g.Object, nil)
	defer h.Close()
	err := p.ask(ctx, h, s, g)
	close(s.asked)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

func (p *prefetcher) ask(ctx context.Context, h *cache.Handle, s *slot, g catalogview.Guess) error {
	work, cancel := context.WithTimeout(ctx, p.fs.RequestTimeout)
	defer cancel()
	asked, err := h.BeginAhead(work)
	if s.fetched = asked && err == nil; s.fetched {
		p.fs.Metrics.PrefetchedFiles.Inc()
		p.fs.Metrics.PrefetchedBytes.Add(g.Object.Size)
	}
	if err = p.fs.confirm(work, g.Object, asked, err); err == nil {
		p.fs.verified.note(g.Object)
		p.fs.View.Confirm(g)
	}
	return err
}

// failed takes how a fetch ended.
func (p *prefetcher) failed(t *tracker, name string, err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || t.slots[name] == nil {
		return // it was given up, or its own open asks
	}
	p.fs.Log.Debug("prefetch", attrPath(child(t.path, name)), slog.Any("error", err))
	ill := !supersedes(err) && !errors.Is(err, objectstore.ErrPermission) && !errors.Is(err, cache.ErrNoMemory)
	t.course.failed(name, ill)
	t.settle()
}

// closed takes that a descriptor on o at path is closed, which was read up to an offset.
func (p *prefetcher) closed(o objectstore.Object, path string, read int64) {
	_, base := parent(path)
	dir, ok := directoryOf(o.Location, base)
	if p.limit <= 0 || !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.mu.trackers[dir]; t != nil && t.course != nil {
		t.course.closed(o.Size, read)
	}
}

// partly tells whether o is likely to be read in part, as the last files in its
// directory were.
func (p *prefetcher) partly(o objectstore.Object) bool {
	if p.limit <= 0 || o.Size <= glance {
		return false
	}
	dir := objectstore.Location{Bucket: o.Bucket, Key: o.Key[:strings.LastIndexByte(o.Key, '/')+1]}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.mu.trackers[dir]
	return t != nil && t.course != nil && t.course.partly >= maxPartly
}
