package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// outcomes are what the moments came to.
type outcomes struct {
	mu                                                          sync.Mutex
	moments, atRequest, acknowledged, cut, finished, kept, orph int
}

func (o *outcomes) add(other *outcomes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moments += other.moments
	o.atRequest += other.atRequest
	o.acknowledged += other.acknowledged
	o.cut += other.cut
	o.finished += other.finished
	o.kept += other.kept
	o.orph += other.orph
}

func (o *outcomes) String() string {
	return fmt.Sprintf("killed at %d moments (%d of them a request's), %d writes acknowledged, %d cut off (of which %d came out new), %d kept staged, %d uploads orphaned",
		o.moments, o.atRequest, o.acknowledged, o.cut, o.finished, o.kept, o.orph)
}

// world is a lake under load, and what must be in it.
type world struct {
	*rig
	sum  outcomes
	dice *rand.Rand // the test's goroutine alone

	ended atomic.Pointer[time.Time] // when the daemon of the moment was killed

	mu     sync.Mutex
	n      int               // names of contents
	have   map[string][]byte // what was acknowledged last, by name
	maybe  map[string][]byte // what was begun and not acknowledged; an empty one: removed
	log    appends
	names  int               // of new files
	first  map[string]string // names that files are renamed from before they are published
	closed map[string]bool   // those of first that were closed, and not renamed
	synced []byte            // of an incomplete file, which fsync acknowledged
	second *mounttest.Lake   // another mount of the bucket, with an unpublished file

	txn       tree // the files of the commit that was cut off, by name; nil: none was
	txnClosed int  // of them, the first ones, were closed
}

// appends is what was appended to the log: whole pieces, each once.
type appends struct {
	acknowledged, cut map[string]bool
	fragments         []string // parts of pieces: their writes were cut, and published by hand
	odd               int64    // their bytes, in all
	cuts              []int    // the lengths of those that were published in this moment
}

const (
	pieceSize  = 500              // of what is appended to the log
	worldLarge = 2*partBytes + 77 // three parts
	worldPart  = "db/text/dt=2026-01-01"
	incomplete = "db/parquet/dt=2026-01-01/cut.parquet"
	theirs     = "db/text/dt=2026-01-02/theirs.csv"
)

func newWorld(t *testing.T, s3 bool, life time.Duration, dice *rand.Rand) *world {
	t.Helper()
	w := &world{
		rig: newRig(t, rigOptions{s3: s3, limit: life, flags: []string{"--io-timeout=20s"}}), dice: dice,
		have: make(map[string][]byte), maybe: make(map[string][]byte),
		first: make(map[string]string), closed: make(map[string]bool),
		log: appends{acknowledged: make(map[string]bool), cut: make(map[string]bool)},
	}
	w.atRandom = true
	w.part = worldPart
	if s3 {
		w.PutStored(path.Dir(theirs)+"/.other", "another's\n")
		w.beginForeign(worldPart+"/large.csv", worldPart+"/theirs.csv")
	}
	w.Start()
	w.watch()
	if s3 {
		w.spare = w.Key(theirs)
		w.second = w.Second(partSize()...)
		if err := w.agent.do(w.other("hold")); err != nil {
			t.Fatalf("the other mount: %v", err)
		}
	}
	return w
}

// other is the task of the file that the other mount has open all the time.
func (w *world) other(do string) task {
	return task{Do: do, Path: w.second.Path(theirs), Name: "of the other mount", Size: worldLarge}
}

// end asserts that the other mount was left alone.
func (w *world) end() {
	w.t.Helper()
	w.sum.orph = w.orphaned
	if w.second == nil || w.t.Failed() {
		return
	}
	if err := w.agent.do(w.other("release")); err != nil {
		w.t.Errorf("the other mount's file: %v", err)
	}
	got, err := w.Stored(theirs)
	if err != nil || got != string(content("of the other mount", worldLarge)) {
		w.t.Errorf("the other mount's file: %s, %v", brief([]byte(got)), err)
	}
	w.second.Unmount()
	w.spare = ""
	w.wantUploads()
	w.endForeign()
}

// fresh names a content that there was not before.
func (w *world) fresh() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return fmt.Sprintf("%s %d", w.t.Name(), w.n)
}

// attempt has a task done that makes name what raw is.
func (w *world) attempt(k task, changes map[string][]byte) error {
	w.mu.Lock()
	for name, raw := range changes {
		w.maybe[name] = raw
	}
	w.mu.Unlock()
	o, err := w.agent.ask(k)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if o.Done == 1 {
			w.closed[path.Base(k.Steps[0].Path)] = true
		}
		return err
	}
	w.sum.acknowledged++
	for name, raw := range changes {
		delete(w.maybe, name)
		if w.have[name] = raw; raw == nil {
			delete(w.have, name)
		}
	}
	return nil
}

func (w *world) at(name string) string { return w.Path(worldPart + "/" + name) }

// writers are the programs: each does one thing after the other until it fails.
func (w *world) writers() map[string]func() error {
	return map[string]func() error{
		"new": func() error {
			w.mu.Lock()
			w.names++
			name := fmt.Sprintf("new%d.csv", w.names%12)
			_, there := w.have[name]
			w.mu.Unlock()
			if there {
				return w.attempt(task{Do: "unlink", Path: w.at(name)}, map[string][]byte{name: nil})
			}
			return w.put(name, smallSize, false)
		},
		"synced":                   func() error { return w.put("synced.csv", 5000, true) },
		"over":                     func() error { return w.put("over.csv", 200_000, false) },
		"large":                    func() error { return w.put("large.csv", worldLarge, false) },
		"rename":                   w.rename,
		"over by a temporary name": func() error { return w.replace("replaced.csv", "sed"+"aB3_x9") },
		"over by a lock":           func() error { return w.replace("index.csv", "index.csv.lock") },
		"transaction":              w.transact,
		"log 1":                    func() error { return w.append("log.csv") },
		"log 2":                    func() error { return w.append("log.csv") },
	}
}

func (w *world) put(name string, size int, sync bool) error {
	id := w.fresh()
	return w.attempt(task{Do: "create", Path: w.at(name), Name: id, Size: size, Sync: sync}, map[string][]byte{name: content(id, size)})
}

// replace writes a file under another name, and renames it to its own.
func (w *world) replace(name, first string) error {
	id := w.fresh()
	k := task{Do: "steps", Steps: []task{
		{Do: "create", Path: w.at(first), Name: id, Size: smallSize},
		{Do: "rename", Path: w.at(first), To: w.at(name)},
	}}
	w.mu.Lock()
	w.first[first] = name
	w.mu.Unlock()
	return w.attempt(k, map[string][]byte{name: content(id, smallSize)})
}

// rename moves an object to and fro, and writes it anew where there is none.
func (w *world) rename() error {
	w.mu.Lock()
	from, to := "here.csv", "there.csv"
	if w.have[from] == nil {
		from, to = to, from
	}
	raw := w.have[from]
	w.mu.Unlock()
	if raw == nil {
		return w.put("here.csv", smallSize, false)
	}
	return w.attempt(task{Do: "rename", Path: w.at(from), To: w.at(to)}, map[string][]byte{from: nil, to: raw})
}

func (w *world) append(name string) error {
	piece := "\n" + w.fresh() + "\x00" // a line that nothing else has in it
	raw := content(piece, pieceSize)
	w.mu.Lock()
	w.log.cut[string(raw)] = true
	w.mu.Unlock()
	err := w.agent.do(task{Do: "append", Path: w.at(name), Name: piece, Size: pieceSize})
	if err == nil {
		w.mu.Lock()
		delete(w.log.cut, string(raw))
		w.log.acknowledged[string(raw)] = true
		w.sum.acknowledged++
		w.mu.Unlock()
	}
	return err
}

// moment is one life of the daemon under load, its end, and a look at what is left.
func (w *world) moment() {
	w.t.Helper()
	w.sum.moments++
	if w.gate != nil {
		w.gate.forget()
	}
	var done sync.WaitGroup
	for name, step := range w.writers() {
		done.Go(func() {
			var err error
			for err == nil {
				err = step()
			}
			// An EIO of the daemon's own is in its log.
			kernels := errors.Is(err, errIO) && !strings.Contains(w.Log(), "level=ERROR")
			if !errors.Is(err, errDead) && !kernels {
				w.t.Errorf("%s failed by another thing than the daemon's end, %v since: %v", name, w.sinceEnd(), err)
			}
		})
	}
	done.Go(w.sync)
	w.ended.Store(nil)
	w.strike()
	now := time.Now()
	w.ended.Store(&now)
	w.killed()
	done.Wait()
	w.sum.cut += len(w.maybe)
	w.Start()
	w.watch()
	if w.gate != nil {
		w.gate.settled(w.t)
	}
	w.look()
}

// sinceEnd is how long ago the daemon was killed; negative: it was not.
func (w *world) sinceEnd() time.Duration {
	if at := w.ended.Load(); at != nil {
		return time.Since(*at)
	}
	return -1
}

// sync leaves an incomplete file behind, which fsync made durable.
func (w *world) sync() {
	id := w.fresh()
	raw := content(id, smallSize)
	if w.agent.do(task{Do: "hold", Path: w.Path(incomplete), Name: id, Size: len(raw), Sync: true}) == nil {
		w.synced = raw
	}
}

// strike waits for the random moment.
func (w *world) strike() {
	life := time.Duration(w.dice.Int64N(int64(longestLife)))
	if w.gate == nil || w.dice.IntN(2) == 0 {
		<-time.After(life)
		return
	}
	kind := []fault{killBefore, killAfter}[w.dice.IntN(2)]
	w.gate.begin(plan{below: w.Key(worldPart), kind: kind, at: 1 + w.dice.IntN(40), writing: true})
	within(time.Second, func() bool {
		w.gate.mu.Lock()
		defer w.gate.mu.Unlock()
		return w.gate.hit != nil
	})
	if w.gate.end() != nil {
		w.sum.atRequest++
	}
}

// look asserts that each file is what was acknowledged, or what was begun, and takes
// what it is for acknowledged.
func (w *world) look() {
	w.t.Helper()
	w.publishLog()
	got := w.snapshot()
	w.wantLog(got["log.csv"])
	delete(got, "log.csv")
	for name := range got {
		_, begun := w.maybe[name]
		if w.have[name] == nil && !begun {
			w.t.Errorf("%s is in the store, and nobody wrote it: %s", name, brief(got[name]))
		}
	}
	w.wantFiles(got)
	w.wantOneName(got)
	w.wantTransaction(got)
	w.dropLocal(got)
	w.drop(got)
	if w.t.Failed() {
		w.t.Logf("moment %d, LAKEFS_CRASH_SEED=%d\n%s", w.sum.moments, seed(), w.trace())
	}
	clear(w.maybe)
	clear(w.closed)
	w.have = got
}

// publishLog publishes what is staged of the log: one who closed it while the other
// had it open was told that it is durable. The last write of it may be cut, as it can
// be on any disk when a program is killed.
func (w *world) publishLog() {
	w.t.Helper()
	for _, s := range w.kept() {
		if s.Path != worldPart+"/log.csv" {
			continue
		}
		if n := s.Size % pieceSize; (n-w.log.odd)%pieceSize != 0 {
			w.log.cuts = append(w.log.cuts, int((n-w.log.odd+pieceSize)%pieceSize))
		}
		if err := w.agent.do(task{Do: "tell", Path: w.Path(".lakefs/ctl"), Name: "recover publish " + s.ID}); err != nil {
			w.t.Errorf("publish %+v: %v", s, err)
		}
	}
}

// snapshot is what the store has.
func (w *world) snapshot() tree {
	w.t.Helper()
	files, err := w.StoredTree(worldPart)
	if err != nil {
		w.t.Fatal(err)
	}
	got := make(tree, len(files))
	for name, text := range files {
		got[name] = []byte(text)
	}
	return got
}

func (w *world) wantFiles(got tree) {
	w.t.Helper()
	names := sortedKeys(w.have)
	for name := range w.maybe {
		if w.have[name] == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		old, fresh := w.have[name], w.maybe[name]
		_, begun := w.maybe[name]
		switch raw := got[name]; {
		case begun && bytes.Equal(raw, fresh) && (raw == nil) == (fresh == nil):
			w.sum.finished++
		case bytes.Equal(raw, old) && (raw == nil) == (old == nil):
		default:
			w.t.Errorf("%s is %s; acknowledged: %s; begun (%v): %s", name, brief(raw), brief(old), begun, brief(fresh))
		}
	}
}

// wantOneName asserts that the object that is renamed to and fro is at one name.
func (w *world) wantOneName(got tree) {
	w.t.Helper()
	_, here := got["here.csv"]
	_, there := got["there.csv"]
	was := w.have["here.csv"] != nil || w.have["there.csv"] != nil
	if here && there || !here && !there && was {
		w.t.Errorf("the renamed object is at here: %v, at there: %v", here, there)
	}
}

// wantLog asserts that each piece that was acknowledged is in the log once, that no
// other is in it more than once, and that nothing else is.
func (w *world) wantLog(raw []byte) {
	w.t.Helper()
	seen := make(map[string]bool)
	odd := 0
	for len(raw) > 0 {
		piece := string(raw[:min(pieceSize, len(raw))])
		if !w.log.acknowledged[piece] && !w.log.cut[piece] {
			if piece = w.fragment(raw); piece == "" {
				w.t.Errorf("nobody wrote this in the log: %s", brief(raw))
				return
			}
			odd += len(piece)
			raw = raw[len(piece):]
			continue
		}
		if seen[piece] {
			w.t.Errorf("a piece is twice in the log: %s", brief([]byte(piece)))
		}
		seen[piece] = true
		raw = raw[pieceSize:]
	}
	for piece := range w.log.acknowledged {
		if !seen[piece] {
			w.t.Errorf("an acknowledged piece is not in the log: %s", brief([]byte(piece)))
		}
	}
	w.sum.cut += len(w.log.cut)
	w.sum.finished += len(seen) - len(w.log.acknowledged)
	w.log.acknowledged, w.log.odd, w.log.cuts = seen, int64(odd), nil
	clear(w.log.cut)
}

// fragment is the part of a piece that raw begins with: one of before, or one whose
// write was cut and which has been published by hand; "": none.
func (w *world) fragment(raw []byte) string {
	for _, old := range w.log.fragments {
		if strings.HasPrefix(string(raw), old) {
			return old
		}
	}
	for _, n := range w.log.cuts {
		for piece := range w.log.cut {
			if len(raw) >= n && piece[:n] == string(raw[:n]) {
				w.log.fragments = append(w.log.fragments, piece[:n])
				return piece[:n]
			}
		}
	}
	return w.otherFragment(raw)
}

// otherFragment is fragment where the length is not known: a recovery has put one
// cut write behind another.
func (w *world) otherFragment(raw []byte) string {
	for piece := range w.log.cut {
		n := 0
		for n < len(raw) && n < len(piece) && raw[n] == piece[n] {
			n++
		}
		for ; n >= leastFragment; n-- { // the next may go on with the same byte
			if w.begins(raw[n:]) {
				w.log.fragments = append(w.log.fragments, piece[:n])
				return piece[:n]
			}
		}
	}
	return ""
}

// leastFragment bytes tell whose a fragment is.
const leastFragment = 8

// begins tells whether raw is empty, or begins with a piece or what may be a fragment.
func (w *world) begins(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	piece := raw[:min(pieceSize, len(raw))]
	known := w.log.acknowledged[string(piece)] || w.log.cut[string(piece)]
	for _, old := range w.log.fragments {
		known = known || strings.HasPrefix(string(raw), old)
	}
	for cut := range w.log.cut {
		known = known || len(raw) >= leastFragment && strings.HasPrefix(cut, string(raw[:leastFragment]))
	}
	return known
}
