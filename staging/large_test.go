package staging

import (
	"errors"
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestTooLarge(t *testing.T) {
	for _, withBase := range []bool{false, true} {
		e := newEnv(t)
		refuse := false
		e.opts.Step = func(op, _ string) error {
			if refuse && op == "truncate" {
				return unix.EFBIG
			}
			return nil
		}
		e.reopen(t)
		w := NewWrite{Target: e.loc("f"), Append: true}
		if withBase {
			base := e.object(t, []byte("old"))
			w.Base = &base
		}
		f := e.create(t, w)
		if !withBase {
			mustWrite(t, f, 0, "old")
		}
		changes, appended := f.Changes(), f.Record().Append
		refuse = true
		wantTooLarge(t, "Truncate", f.Truncate(t.Context(), 20<<40))
		wantTooLarge(t, "Allocate", f.Allocate(t.Context(), math.MaxInt64-5, 6, false))
		if f.Poisoned() != nil || f.Changes() != changes || f.Record().Append != appended || f.Record().State != Staged {
			t.Errorf("base %v: after a refused change: poison %v, %d changes, %+v", withBase, f.Poisoned(), f.Changes(), f.Record())
		}
		if got := readAll(t, f); string(got) != "old" {
			t.Errorf("base %v: after a refused change: %q", withBase, got)
		}
		if writes, _ := e.area.Usage(); withBase && writes != 0 {
			t.Errorf("%d writes on disk for a change that was refused", writes)
		}
		refuse = false
		if _, err := f.Append(t.Context(), []byte("new")); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, f); string(got) != "oldnew" {
			t.Errorf("base %v: %q", withBase, got)
		}
		_, err := f.WriteAt(t.Context(), []byte("12"), math.MaxInt64-1)
		wantTooLarge(t, "WriteAt", err)
		wantTooLarge(t, "the poison", f.Poisoned())
	}
}

// The disk's own refusal, on a file system that has a limit.
func TestTooLargeForDisk(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{Target: e.loc("f")})
	err := f.Truncate(t.Context(), 1<<62)
	if err == nil {
		t.Skip("this file system takes 2^62 bytes")
	}
	wantTooLarge(t, "Truncate", err)
	wantTooLarge(t, "Allocate", f.Allocate(t.Context(), 1<<62, 1, false))
	if f.Poisoned() != nil {
		t.Errorf("poisoned: %v", f.Poisoned())
	}
	_, err = f.WriteAt(t.Context(), []byte("x"), 1<<62)
	wantTooLarge(t, "WriteAt", err)
	wantTooLarge(t, "the poison", f.Poisoned())
}

func wantTooLarge(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, objectstore.ErrTooLarge) {
		t.Errorf("%s: %v, want ErrTooLarge", what, err)
	}
}
