package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

func state(f *staging.File) staging.State { return f.Record().State }

// TestCase21LostAnswer is cases.md 21: the publish takes effect, the answer is
// lost. It is our own: published once, no error.
func TestCase21LostAnswer(t *testing.T) {
	for _, way := range ways() {
		for _, base := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/base=%v", way, base), func(t *testing.T) {
				w := newWorld(t, way)
				var old *objectstore.Object
				if base {
					o := w.object("old")
					old = &o
				}
				f := w.create(old, "new")
				w.answer = func(op string) error {
					if op == "adopt" || op == "put" {
						return fmt.Errorf("timeout: %w", objectstore.ErrUnavailable)
					}
					return nil
				}
				obj, err := w.c.Commit(t.Context(), f)
				if err != nil || w.lake() != "new" {
					t.Fatalf("Commit: %v, the lake has %q", err, w.lake())
				}
				if n := w.count("store adopt") + w.count("store put"); n != 1 {
					t.Errorf("sent %d times", n)
				}
				if now := w.stat(); now.ETag != obj.ETag || f.Dirty() {
					t.Errorf("object %+v, the store has %+v; dirty %v", obj, now, f.Dirty())
				}
				// The next version is one more, though the id is the same.
				w.answer = nil
				if err := write(w, f, "N", 0); err != nil {
					t.Fatal(err)
				}
				if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "New" {
					t.Errorf("next version: %v, the lake has %q", err, w.lake())
				}
			})
		}
	}
}

// TestCase16StoreDown is cases.md 16 as far as commit goes: retried with growing
// pauses up to the limit, then ErrUnavailable, the bytes kept and failed.
func TestCase16StoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, put)
		f := w.create(nil, "new")
		w.before = func(op string) error {
			if op == "put" {
				return objectstore.ErrUnavailable
			}
			return nil
		}
		start := time.Now()
		_, err := w.c.Commit(t.Context(), f)
		if !errors.Is(err, objectstore.ErrUnavailable) || state(f) != staging.Failed || !f.Dirty() {
			t.Errorf("Commit: %v, state %s", err, state(f))
		}
		if took := time.Since(start); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("gave up after %v, want some 30 s", took)
		}
		if n := w.count("store put"); n < 10 || n > 30 {
			t.Errorf("asked %d times", n)
		}
		w.before = nil
		if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "new" {
			t.Errorf("Commit once the store is back: %v", err)
		}
		w.close()
	})
}

func TestTransientFailureIsRetried(t *testing.T) {
	for _, way := range ways() {
		w := newWorld(t, way)
		f := w.create(nil, "new")
		left := 2
		w.before = func(op string) error {
			if op != "stat" && left > 0 {
				left--
				return objectstore.ErrUnavailable
			}
			return nil
		}
		if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "new" {
			t.Errorf("%s: Commit: %v, the lake has %q", way, err, w.lake())
		}
	}
}

func TestFormatIsCheckedBeforeAnythingIsSent(t *testing.T) {
	parquet := "PAR1\x15\x02\x19\x1c\x48\x01r\x00\x16\x00\x19\x0c\x00\x0d\x00\x00\x00PAR1" // a schema and no rows
	for _, tt := range []struct {
		name, check, data string
		err               error
		state             staging.State
		logged            bool
	}{
		{"complete", CheckStrict, parquet, nil, staging.Staged, false},
		{"cut", CheckStrict, parquet[:10], ErrFormat, staging.Failed, false},
		{"empty", CheckStrict, "", ErrEmpty, staging.Staged, false},
		{"cut, by default", "", parquet[:10], ErrFormat, staging.Failed, false},
		{"cut, warned", CheckWarn, parquet[:10], nil, staging.Staged, true},
		{"empty, warned", CheckWarn, "", nil, staging.Staged, true},
		{"cut, not checked", CheckOff, parquet[:10], nil, staging.Staged, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, adopt)
			var log bytes.Buffer
			w.c = New(Options{Store: adopting{&calls{w: w, Store: w.folder}}, Area: w.area, CheckFormat: tt.check, Log: slog.New(slog.NewTextHandler(&log, nil))})
			n := w.newWrite(nil)
			n.Format = "parquet"
			f, err := w.area.Create(t.Context(), n)
			if err == nil && tt.data != "" {
				_, err = f.WriteAt(t.Context(), []byte(tt.data), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			whole := tt.err
			if tt.check == CheckWarn {
				whole = ErrFormat
			}
			if err = w.c.Check(t.Context(), f); !errors.Is(err, whole) || log.Len() > 0 {
				t.Errorf("Check: %v, want %v; logged %q", err, whole, log.String())
			}
			_, err = w.c.Commit(t.Context(), f)
			if !errors.Is(err, tt.err) || state(f) != tt.state || (w.lake() == "absent") != (tt.err != nil) {
				t.Errorf("Commit: %v, want %v; state %s; the lake has %q", err, tt.err, state(f), w.lake())
			}
			if lines := strings.Count(log.String(), "\n"); (lines == 1) != tt.logged || lines > 1 {
				t.Errorf("logged %q", log.String())
			}
		})
	}
	if !errors.Is(ErrEmpty, ErrFormat) {
		t.Error("ErrEmpty is no ErrFormat")
	}
}

func TestPanicInTheCheckIsAFailedCheck(t *testing.T) {
	w := newWorld(t, adopt)
	w.c.verify = func(string, string, io.ReaderAt, int64) error { panic("planted") }
	n := w.newWrite(nil)
	n.Format = "parquet"
	f, err := w.area.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(w, f, "x", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Commit(t.Context(), f); !errors.Is(err, ErrFormat) || state(f) != staging.Failed {
		t.Errorf("Commit: %v, state %s", err, state(f))
	}
}

func TestContextErrorLeavesItStaged(t *testing.T) {
	for _, way := range ways() {
		w := newWorld(t, way)
		f := w.create(nil, "new")
		ctx, cancel := context.WithCancel(t.Context())
		w.before = func(op string) error {
			if op == "put" || op == "adopt" {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		if _, err := w.c.Commit(ctx, f); !errors.Is(err, context.Canceled) || state(f) != staging.Staged || w.lake() != "absent" {
			t.Errorf("%s: %v, state %s, the lake has %q", way, err, state(f), w.lake())
		}
		w.before = nil
		if _, err := w.c.Commit(t.Context(), f); err != nil || w.lake() != "new" {
			t.Errorf("%s: once more: %v", way, err)
		}
	}
}

func TestRefusedIsNotRetried(t *testing.T) {
	for _, want := range []error{objectstore.ErrPermission, objectstore.ErrNoSpace, objectstore.ErrName} {
		w := newWorld(t, put)
		f := w.create(nil, "new")
		w.before = func(op string) error {
			if op == "put" {
				return want
			}
			return nil
		}
		if _, err := w.c.Commit(t.Context(), f); !errors.Is(err, want) || state(f) != staging.Failed || w.count("store put") != 1 {
			t.Errorf("%v, want %v; state %s, asked %d times", err, want, state(f), w.count("store put"))
		}
	}
}

func TestNothingToPublishSendsNothing(t *testing.T) {
	w := newWorld(t, adopt)
	base := w.object("old")
	f, err := w.area.Create(t.Context(), w.newWrite(&base))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := w.c.Commit(t.Context(), f)
	if err != nil || obj.ETag != base.ETag || w.count("store adopt") != 0 {
		t.Errorf("Commit of an untouched file: %+v, %v", obj, err)
	}
}

func TestAttributesTravel(t *testing.T) {
	w := newWorld(t, adopt)
	f := w.create(nil, "x")
	mtime := time.Unix(-2, 250_000_000)
	f.SetAttributes(staging.Attributes{Mode: 0o604, MTime: mtime, MTimeSet: true})
	obj, err := w.c.Commit(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(w.root, target))
	if err != nil || st.Mode().Perm() != 0o604 || !st.ModTime().Equal(mtime) || !obj.ModTime.Equal(mtime) {
		t.Errorf("published as %v %v, %v; want 0604 and %v", st.Mode(), st.ModTime(), err, mtime)
	}
	if got := obj.Meta[objectstore.MetaWriteID]; got != f.ID() {
		t.Errorf("write id %q, want %q", got, f.ID())
	}
}

func TestFormatTime(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want string
	}{
		{time.Unix(0, 0), "0"},
		{time.Unix(5, 1), "5.000000001"},
		{time.Unix(-2, 250_000_000), "-1.750000000"},
		{time.Unix(-1, 500_000_000), "-0.500000000"},
		{time.Unix(-7, 0), "-7"},
	} {
		if got := formatTime(tt.t); got != tt.want {
			t.Errorf("formatTime(%v) = %q, want %q", tt.t, got, tt.want)
		}
	}
}
