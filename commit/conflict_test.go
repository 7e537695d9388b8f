package commit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// TestOvertakenBeforeItsAnswer: ours took effect, its answer was lost, and another
// replaced it before we looked. An append must not be sent a second time.
func TestOvertakenBeforeItsAnswer(t *testing.T) {
	for _, way := range []string{adopt, flat} {
		t.Run(way, func(t *testing.T) { overtakenBeforeItsAnswer(t, newWorld(t, way)) })
	}
}

func overtakenBeforeItsAnswer(t *testing.T, w *world) {
	t.Helper()
	base := w.object("one\n")
	f, err := w.area.Create(t.Context(), w.newWrite(&base))
	if err == nil {
		_, err = f.Append(t.Context(), []byte("mine\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	once := false
	w.answer = func(op string) error {
		switch {
		case once:
		case op == "adopt":
			once = true
			w.object("one\nmine\ntheirs\n")
			return objectstore.ErrUnavailable
		case op == "put":
			once = true
			appendBehind(w.mem, w.loc(target), "theirs\n")
			return objectstore.ErrUnavailable
		}
		return nil
	}
	if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "one\nmine\ntheirs\n" {
		t.Fatalf("Commit: %v, the lake has %q", err, w.lake())
	}
	w.answer = nil
	if _, err := f.Append(t.Context(), []byte("more\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "one\nmine\ntheirs\nmore\n" {
		t.Errorf("next append: %v, the lake has %q", err, w.lake())
	}
}

// TestCase25 is cases.md 25: two rewrite one file, two create one name. The
// loser's bytes are kept and listed.
func TestCase25TwoWriters(t *testing.T) {
	for _, way := range ways() {
		for _, base := range []bool{false, true} {
			w := newWorld(t, way)
			var old *objectstore.Object
			want := objectstore.ErrExist
			if base {
				o := w.object("old")
				old, want = &o, objectstore.ErrChanged
			}
			f := w.create(old, "mine")
			w.object("theirs")
			_, err := w.c.Commit(t.Context(), f)
			if !errors.Is(err, want) || w.lake() != "theirs" {
				t.Errorf("%s, base %v: Commit: %v, want %v; the lake has %q", way, base, err, want, w.lake())
			}
			if rec := f.Record(); rec.State != staging.Failed || rec.Error == "" || bytesOf(t, f) != "mine" {
				t.Errorf("%s, base %v: record %+v", way, base, rec)
			}
		}
	}
}

func TestRemovedMeanwhileIsChanged(t *testing.T) {
	for i := range 2 * len(ways()) {
		way, appending := ways()[i/2], i%2 == 1
		w := newWorld(t, way)
		base := w.object("old\n")
		f, err := w.area.Create(t.Context(), w.newWrite(&base))
		if err != nil {
			t.Fatal(err)
		}
		if appending {
			_, err = f.Append(t.Context(), []byte("x"))
		} else {
			_, err = f.WriteAt(t.Context(), []byte("x"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.remove()
		if _, err := w.c.Commit(t.Context(), f); !errors.Is(err, objectstore.ErrChanged) || w.lake() != "absent" {
			t.Errorf("%s, appending %v: %v, want ErrChanged; the lake has %q", way, appending, err, w.lake())
		}
	}
}

// TestCase69Appenders is cases.md 69: two mounts, many lines each, every one
// published by a commit of its own; all are there, the name new.
func TestCase69Appenders(t *testing.T) {
	for way, lines := range map[string]int{adopt: 200, put: 50, flat: 50} {
		t.Run(way, func(t *testing.T) {
			first, second := newWorld(t, way), newWorld(t, way)
			second.share(first)
			appendBoth(t, lines, first.echo, second.echo)
			checkLines(t, first.lake(), lines)
			if left := len(first.leftovers()) + len(second.leftovers()); left != 0 {
				t.Errorf("%d writes are left staged", left)
			}
		})
	}
}

// share makes w a second mount of other's lake.
func (w *world) share(other *world) {
	w.t.Helper()
	w.close()
	w.root = other.root
	if w.way == flat {
		w.mem = other.mem
		w.start()
		return
	}
	_ = w.folder.Close()
	folder, err := objectstore.NewFolder(other.root)
	if err != nil {
		w.t.Fatal(err)
	}
	w.folder = folder
	w.start()
}

// appendBoth lets two append their lines at the same time, one by one.
func appendBoth(t *testing.T, lines int, first, second func(line string) error) {
	t.Helper()
	var wg sync.WaitGroup
	for n, echo := range []func(string) error{first, second} {
		wg.Go(func() {
			for i := range lines {
				if err := echo(fmt.Sprintf("%d-%03d\n", n, i)); err != nil {
					t.Errorf("line %d-%03d: %v", n, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// checkLines checks that each line of both is there once.
func checkLines(t *testing.T, text string, lines int) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(got) != 2*lines {
		t.Errorf("%d lines, want %d", len(got), 2*lines)
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 2*lines {
		t.Errorf("%d distinct lines, want %d", n, 2*lines)
	}
}

// echo is one `echo line >> f`.
func (w *world) echo(line string) error {
	ctx := w.t.Context()
	for {
		n := w.newWrite(nil)
		base, err := w.backing().Stat(ctx, w.loc(target))
		if err == nil {
			n = w.newWrite(&base)
		} else if !errors.Is(err, objectstore.ErrNotExist) {
			return err
		}
		n.Append = true
		f, err := w.area.Create(ctx, n)
		if errors.Is(err, objectstore.ErrChanged) {
			continue // replaced between the look and the open
		}
		if err != nil {
			return err
		}
		if _, err := f.Append(ctx, []byte(line)); err != nil {
			return err
		}
		if _, err := w.c.Commit(ctx, f); err != nil {
			return err
		}
		return f.Drop()
	}
}

func TestAppendOfNothingToAnothersNewFileIsDone(t *testing.T) {
	w := newWorld(t, adopt)
	n := w.newWrite(nil)
	n.Append = true
	f, err := w.area.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	w.object("theirs")
	obj, err := w.c.Commit(t.Context(), f)
	if err != nil || obj.Size != 6 || w.lake() != "theirs" || f.Dirty() || len(w.leftovers()) != 0 {
		t.Errorf("`: >> f` after another's create: %+v, %v; the lake has %q, %q staged", obj, err, w.lake(), w.leftovers())
	}
}

func TestCommitsOfOneTargetWaitForOneAnother(t *testing.T) {
	w := newWorld(t, adopt)
	var mu sync.Mutex
	inside, worst := 0, 0
	w.before = func(op string) error {
		if op == "adopt" {
			mu.Lock()
			inside++
			worst = max(worst, inside)
			mu.Unlock()
		}
		return nil
	}
	w.answer = func(op string) error {
		if op == "adopt" {
			mu.Lock()
			inside--
			mu.Unlock()
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range 8 {
		n := w.newWrite(nil)
		n.Cond = objectstore.Cond{}
		f, err := w.area.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(w, f, strconv.Itoa(i), 0); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := w.c.Commit(t.Context(), f); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if worst != 1 || len(w.c.targets.held) != 0 {
		t.Errorf("%d at once, %d locks left", worst, len(w.c.targets.held))
	}
}
