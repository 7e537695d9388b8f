package commit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// outcome is what a scenario was told before its process ended.
type outcome struct {
	promised string // bytes that Sync acknowledged
	done     string // bytes that Commit acknowledged
}

// theirs is what another's append makes.
const theirs = "one\ntwo\n"

// scenario is a life of a file. It stops at the first error.
type scenario struct {
	name   string
	before string   // what the lake holds; "absent"
	lake   []string // what a reader may see, ever, the last being the end
	staged []string // what may be staged in the place of promised bytes
	run    func(w *world, o *outcome) error
}

var (
	block = strings.Repeat("0123456789abcdef", 8<<10) // one block of staging
	large = block + strings.ToUpper(block) + "end"    // three parts of a world's uploads
)

func scenarios() []scenario {
	return []scenario{
		{"new", "absent", []string{"absent", "new"}, nil, func(w *world, o *outcome) error {
			return w.life(o, nil, func(f *staging.File) error { return write(w, f, "new", 0) })
		}},
		{"overwrite", "old", []string{"old", "new"}, nil, func(w *world, o *outcome) error {
			base := w.stat()
			return w.life(o, &base, func(f *staging.File) error {
				if err := f.Truncate(w.t.Context(), 0); err != nil {
					return err
				}
				return write(w, f, "new", 0)
			})
		}},
		{"patch", block + block + "tail", []string{block + block + "tail", block + "XY" + block[2:] + "tail"}, nil, func(w *world, o *outcome) error {
			base := w.stat()
			return w.life(o, &base, func(f *staging.File) error { return write(w, f, "XY", int64(len(block))) })
		}},
		{"append behind another's", "one\n", []string{"one\n", "one\ntwo\n", "one\ntwo\nmine\n"}, []string{"one\nmine\n", "one\ntwo\nmine\n"}, func(w *world, o *outcome) error {
			base := w.stat()
			return w.life(o, &base, func(f *staging.File) error {
				if _, err := f.Append(w.t.Context(), []byte("mine\n")); err != nil {
					return err
				}
				w.object(theirs)
				return nil
			})
		}},
		{"large", "absent", []string{"absent", large}, nil, func(w *world, o *outcome) error {
			return w.life(o, nil, func(f *staging.File) error { return write(w, f, large, 0) })
		}},
		{"append to a large one", large, []string{large, large + "mine\n"}, nil, func(w *world, o *outcome) error {
			return w.unsynced(o, func(f *staging.File) error {
				_, err := f.Append(w.t.Context(), []byte("mine\n"))
				return err
			})
		}},
		{"patch of a large one", large, []string{large, "XY" + large[2:]}, nil, func(w *world, o *outcome) error {
			return w.unsynced(o, func(f *staging.File) error { return write(w, f, "XY", 0) })
		}},
		{"two versions", "absent", []string{"absent", "v1", "v2"}, nil, func(w *world, o *outcome) error {
			f, err := w.area.Create(w.t.Context(), w.newWrite(nil))
			if err != nil {
				return err
			}
			for _, v := range []string{"v1", "v2"} {
				if err := write(w, f, v, 0); err != nil {
					return err
				}
				if err := w.publish(o, f, v == "v2"); err != nil {
					return err
				}
			}
			return f.Drop()
		}},
	}
}

func write(w *world, f *staging.File, data string, off int64) error {
	_, err := f.WriteAt(w.t.Context(), []byte(data), off)
	return err
}

func (w *world) stat() objectstore.Object {
	o, err := w.backing().Stat(w.t.Context(), w.loc(target))
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// life creates, changes, syncs, publishes and drops a file.
func (w *world) life(o *outcome, base *objectstore.Object, change func(*staging.File) error) error {
	f, err := w.area.Create(w.t.Context(), w.newWrite(base))
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	if err := w.publish(o, f, true); err != nil {
		return err
	}
	return f.Drop()
}

// unsynced is life over what is there, without a Sync.
func (w *world) unsynced(o *outcome, change func(*staging.File) error) error {
	base := w.stat()
	f, err := w.area.Create(w.t.Context(), w.newWrite(&base))
	if err == nil {
		err = change(f)
	}
	if err == nil {
		err = w.publish(o, f, false)
	}
	if err != nil {
		return err
	}
	return f.Drop()
}

func (w *world) publish(o *outcome, f *staging.File, sync bool) error {
	if sync {
		if err := f.Sync(w.t.Context()); err != nil {
			return err
		}
		o.promised = bytesOf(w.t, f)
	}
	if _, err := w.c.Commit(w.t.Context(), f); err != nil {
		return err
	}
	o.done = w.lake()
	return nil
}

// TestCrashAtEveryStep ends the process before and after each call of the store
// and before each change of the staging directory, then recovers: all or
// nothing, one version's bytes exactly, and nothing promised is lost.
func TestCrashAtEveryStep(t *testing.T) {
	for _, way := range ways() {
		for _, s := range scenarios() {
			t.Run(fmt.Sprintf("%s/%s", way, s.name), func(t *testing.T) {
				steps := s.play(t, way, 0, 0)
				if steps < 8 {
					t.Fatalf("%d steps: the seams are gone", steps)
				}
				for k := 1; k <= steps; k++ {
					s.play(t, way, k, 0)
				}
			})
		}
	}
}

// TestCrashInRecovery ends the recovery at each of its steps too.
func TestCrashInRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("many runs")
	}
	for _, s := range scenarios() {
		if s.name != "overwrite" && s.name != "append behind another's" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			steps := s.play(t, put, 0, 0)
			every := 1
			if s.name != "overwrite" {
				every = 3 // each run costs the disk some ten fsyncs
			}
			for k := 1; k <= steps; k += every {
				for j := 1; s.play(t, put, k, j) >= j; {
					j++
				}
			}
		})
	}
}

// play runs the scenario with an end at step k of it (0: none), recovers with an
// end at step j of that, recovers again, and checks. It returns the steps of the
// scenario, or with j those of its recovery.
func (s scenario) play(t *testing.T, way string, k, j int) int {
	t.Helper()
	w := newWorld(t, way)
	if s.before != "absent" {
		w.object(s.before)
	}
	w.steps, w.dieAt = 0, k
	var o outcome
	err := s.run(w, &o)
	if k == 0 && err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	steps := w.steps
	seen := w.lake()
	if j > 0 {
		w.restart()
		w.steps, w.dieAt = 0, j
		_, _ = w.c.Recover(t.Context())
		steps = w.steps
	}
	w.restart()
	if _, err := w.c.Recover(t.Context()); err != nil {
		t.Fatalf("step %d: Recover: %v", k, err)
	}
	s.check(t, w, o, fmt.Sprintf("step %d, recovery's %d", k, j), seen)
	// Once more changes nothing.
	before, kept := w.lake(), w.leftovers()
	w.restart()
	if _, err := w.c.Recover(t.Context()); err != nil || w.lake() != before || !slices.Equal(w.leftovers(), kept) {
		t.Errorf("step %d: a second Recover is not harmless: %v", k, err)
	}
	w.close()
	return steps
}

func (s scenario) check(t *testing.T, w *world, o outcome, when, seen string) {
	t.Helper()
	end := s.lake[len(s.lake)-1]
	got := w.lake()
	for _, lake := range []string{seen, got} {
		if !slices.Contains(s.lake, lake) {
			t.Fatalf("%s: a reader sees %d bytes %.40q, no version", when, len(lake), lake)
		}
	}
	if o.done != "" && slices.Index(s.lake, got) < slices.Index(s.lake, o.done) {
		t.Errorf("%s: Commit acknowledged %.40q, and the lake has %.40q", when, o.done, got)
	}
	if w.parts != nil && w.parts.left() > w.lostUploads() {
		t.Errorf("%s: %d uploads are left in the store, %d that nobody can know", when, w.parts.left(), w.lostUploads())
	}
	if got != s.before && got != theirs && !w.knows("db/t/f", target) {
		t.Errorf("%s: published, and its partition is not registered", when)
	}
	for _, f := range w.area.Files() {
		z, err := f.Freeze(t.Context())
		if errors.Is(err, staging.ErrDamaged) {
			t.Errorf("%s: left damaged: %+v", when, f.Record())
		}
		if err == nil {
			z.Release()
		}
	}
	if got == end {
		if left := w.leftovers(); len(left) > 0 {
			t.Errorf("%s: published, and %q are staged", when, left)
		}
		return
	}
	if o.promised == "" {
		return
	}
	for _, f := range w.area.Files() {
		if b := bytesOf(t, f); b == o.promised || slices.Contains(s.staged, b) {
			return
		}
	}
	t.Errorf("%s: what Sync acknowledged is neither published nor staged; the lake has %.40q", when, got)
}
