package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestNewFileIsOnDiskAndFoundAgain(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{Format: "parquet", Cond: objectstore.Cond{IfNoneMatch: true}, Attributes: Attributes{Mode: 0o640, UID: 7}})
	mustWrite(t, f, 3, "abc")
	if !f.Dirty() || !f.Touched() {
		t.Errorf("Dirty %v, Touched %v; want both", f.Dirty(), f.Touched())
	}
	want := f.Record()
	if got := names(t, e.area.path(f.ID())); !slices.Equal(got, []string{"data", "write.json"}) {
		t.Errorf("files of a new write: %q", got)
	}
	e.reopen(t)
	g := only(t, e.area)
	if got := string(readAll(t, g)); got != "\x00\x00\x00abc" {
		t.Errorf("bytes after a crash: %q", got)
	}
	got := g.Record()
	if got.ID != want.ID || got.Mode != 0o640 || got.UID != 7 || got.Format != "parquet" || got.State != Staged || !got.Cond.IfNoneMatch || got.Target != want.Target || got.Size != 6 {
		t.Errorf("record after a crash: %+v", got)
	}
	if !g.Recovered() || !g.Dirty() {
		t.Error("a found write is neither recovered nor dirty")
	}
}

func TestOpenForWritingThatChangesNothingLeavesNothing(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, []byte("old"))
	f := e.create(t, NewWrite{Base: &base})
	if f.Dirty() || f.Touched() {
		t.Error("an untouched overwrite is dirty or touched")
	}
	if got := string(readAll(t, f)); got != "old" {
		t.Errorf("reads %q, want the old bytes", got)
	}
	if err := f.Sync(t.Context()); err != nil {
		t.Errorf("Sync: %v", err)
	}
	if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) {
		t.Errorf("staging directory has %q", got)
	}
	if err := f.Drop(); err != nil {
		t.Errorf("Drop: %v", err)
	}
}

func TestCreateChecksTheBaseAndTheTarget(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, []byte("old"))
	e.object(t, []byte("newer"))
	if _, err := e.area.Create(t.Context(), NewWrite{Target: e.loc("f"), Base: &base}); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("Create over a replaced base: %v, want ErrChanged", err)
	}
	// Rule 27: a target stays inside its table.
	for _, key := range []string{"", "t/", "u/f", "t/../u/f"} {
		if _, err := e.area.Create(t.Context(), NewWrite{Target: e.loc(key), Prefix: e.loc("t/")}); !errors.Is(err, objectstore.ErrName) {
			t.Errorf("Create with target %q: %v, want ErrName", key, err)
		}
	}
	if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) {
		t.Errorf("refused writes left %q", got)
	}
}

func TestTruncateToZeroAndWholeBlocksFetchNothing(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, bytes.Repeat([]byte("x"), 3*blockSize))
	f := e.create(t, NewWrite{Base: &base})
	f.cur.base.pin = failingPin{}
	if err := f.Truncate(t.Context(), 0); err != nil {
		t.Errorf("Truncate(0): %v", err)
	}
	g := e.create(t, NewWrite{Base: &base})
	g.cur.base.pin = failingPin{}
	if _, err := g.WriteAt(t.Context(), make([]byte, 3*blockSize), 0); err != nil {
		t.Errorf("WriteAt of whole blocks: %v", err)
	}
	if err := g.Sync(t.Context()); err != nil {
		t.Errorf("Sync with nothing missing: %v", err)
	}
	h := e.create(t, NewWrite{Base: &base})
	h.cur.base.pin = failingPin{}
	if _, err := h.WriteAt(t.Context(), []byte("y"), 5); !errors.Is(err, errPin) || !errors.Is(h.Poisoned(), errPin) {
		t.Errorf("WriteAt in a block that cannot be fetched: %v, poison %v", err, h.Poisoned())
	}
}

var errPin = errors.New("planted")

type failingPin struct{}

func (failingPin) ReadAt(context.Context, []byte, int64) (int, error) { return 0, errPin }

func (failingPin) Close() error { return nil }

func TestPoisonIsSticky(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	mustWrite(t, f, 0, "abc")
	_ = f.cur.spool.file.Close()
	_, err := f.WriteAt(t.Context(), []byte("d"), 3)
	if err == nil || !errors.Is(f.Poisoned(), err) {
		t.Fatalf("WriteAt: %v, Poisoned: %v", err, f.Poisoned())
	}
	if err := f.Truncate(t.Context(), 0); !errors.Is(err, f.Poisoned()) {
		t.Errorf("Truncate of a poisoned file: %v", err)
	}
	if err := f.Sync(t.Context()); !errors.Is(err, f.Poisoned()) {
		t.Errorf("Sync of a poisoned file: %v", err)
	}
	if _, err := f.Freeze(t.Context()); !errors.Is(err, f.Poisoned()) {
		t.Errorf("Freeze of a poisoned file: %v", err)
	}
	e.reopen(t)
	if got := only(t, e.area).Record(); got.State != Failed || got.Error == "" {
		t.Errorf("record of a poisoned file: %s, %q", got.State, got.Error)
	}
}

func TestGivingUpIsNoPoison(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.WriteAt(ctx, []byte("x"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteAt of a frozen file with an ended context: %v", err)
	}
	done := make(chan error)
	go func() { _, err := f.WriteAt(t.Context(), []byte("y"), 0); done <- err }()
	select {
	case err := <-done:
		t.Errorf("a write went through a Frozen: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if f.Size() != 0 {
		t.Error("size changed under a Frozen")
	}
	z.Release()
	z.Release() // once more is harmless
	if err := <-done; err != nil || f.Poisoned() != nil {
		t.Errorf("write after Release: %v, poison %v", err, f.Poisoned())
	}
}

func TestAppendersNeverOverwriteOneAnother(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, []byte("first\n"))
	f := e.create(t, NewWrite{Base: &base})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := f.Append(t.Context(), fmt.Appendf(nil, "%d-%02d\n", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := strings.Split(string(readAll(t, f)), "\n")
	slices.Sort(lines)
	if lines = slices.Compact(lines); len(lines) != 202 { // "", "first" and 200
		t.Errorf("%d distinct lines, want 202", len(lines))
	}
	if !f.Record().Append {
		t.Error("appends alone, and Record.Append is false")
	}
	mustWrite(t, f, 0, "F")
	if f.Record().Append {
		t.Error("a write elsewhere, and Record.Append is true")
	}
}

func TestSeekFindsDataAndHoles(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	mustWrite(t, f, 1<<20, "data")
	if err := f.Truncate(t.Context(), 4<<20); err != nil {
		t.Fatal(err)
	}
	base := e.object(t, make([]byte, 2*blockSize+5))
	g := e.create(t, NewWrite{Base: &base})
	if err := g.Truncate(t.Context(), 8*blockSize); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		f      *File
		off    int64
		whence int
		want   int64
		err    error
	}{
		{"hole at the start", f, 0, unix.SEEK_HOLE, 0, nil},
		{"data after a hole", f, 0, unix.SEEK_DATA, 1 << 20, nil},
		{"hole after data", f, 1 << 20, unix.SEEK_HOLE, 1<<20 + 4096, nil},
		{"no data to the end", f, 2 << 20, unix.SEEK_DATA, 0, io.EOF},
		{"past the end", f, 5 << 20, unix.SEEK_HOLE, 0, io.EOF},
		{"base is data", g, 7, unix.SEEK_DATA, 7, nil},
		{"hole behind base", g, 7, unix.SEEK_HOLE, 3 * blockSize, nil},
		{"no data behind base", g, 4 * blockSize, unix.SEEK_DATA, 0, io.EOF},
	} {
		if got, err := tt.f.Seek(tt.off, tt.whence); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %v; want %d, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

func TestAllocateExtendsOrNot(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	if err := f.Allocate(t.Context(), 0, 1<<20, true); err != nil || f.Size() != 0 || !f.Touched() {
		t.Errorf("Allocate keeping the size: %v, size %d, touched %v", err, f.Size(), f.Touched())
	}
	if err := f.Allocate(t.Context(), 100, 50, false); err != nil || f.Size() != 150 {
		t.Errorf("Allocate: %v, size %d; want 150", err, f.Size())
	}
	if _, bytes := e.area.Usage(); bytes < 1<<20 {
		t.Errorf("usage %d after an allocation of 1 MiB", bytes)
	}
}

func TestDropIsIdempotentAndFinal(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	mustWrite(t, f, 0, "x")
	for range 2 {
		if err := f.Drop(); err != nil {
			t.Errorf("Drop: %v", err)
		}
	}
	if _, err := f.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, ErrDropped) {
		t.Errorf("ReadAt after Drop: %v", err)
	}
	if _, err := f.WriteAt(t.Context(), []byte("y"), 0); !errors.Is(err, ErrDropped) {
		t.Errorf("WriteAt after Drop: %v", err)
	}
	if err := f.SetState(Torn, "x"); !errors.Is(err, ErrDropped) {
		t.Errorf("SetState after Drop: %v", err)
	}
	if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) {
		t.Errorf("after Drop: %q", got)
	}
}

func TestSetTargetAndAttributesReachTheDisk(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	f.SetAttributes(Attributes{Mode: 0o600, MTime: day, MTimeSet: true})
	odd := "t/caf\xe9"
	if err := f.SetTarget(NewWrite{Target: e.loc(odd), Prefix: e.loc("t/"), Path: "db/" + odd}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetTarget(NewWrite{Target: e.loc("u/f"), Prefix: e.loc("t/")}); !errors.Is(err, objectstore.ErrName) {
		t.Errorf("SetTarget out of the table: %v", err)
	}
	if err := f.SetState(Torn, "killed by signal 9"); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	got := only(t, e.area).Record()
	if got.Target.Key != odd || got.Path != "db/"+odd || got.State != Torn || got.Mode != 0o600 || !got.MTime.Equal(day) || !got.MTimeSet {
		t.Errorf("record: %+v", got)
	}
}

func TestWriteAllocatesNothing(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	p, ctx := make([]byte, 4096), t.Context()
	var off int64
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := f.WriteAt(ctx, p, off); err != nil {
			t.Fatal(err)
		}
		off += int64(len(p))
	}); n != 0 {
		t.Errorf("WriteAt allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := f.ReadAt(ctx, p, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("ReadAt allocates %v times", n)
	}
}
