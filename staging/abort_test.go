package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// begun is a file with three parts in the store.
func begun(t *testing.T, c *cloud, e *env) *File {
	t.Helper()
	f := e.final(t)
	put(t, f, 0, pattern(1, 3*testPart))
	e.quiet(t)
	if len(c.left()) != 1 || f.Uploaded() != 3*testPart {
		t.Fatalf("uploads %q, %d bytes", c.left(), f.Uploaded())
	}
	c.take()
	return f
}

// TestUploadsThatAreNotNeededAreAborted, and what the file is published by is not.
func TestUploadsThatAreNotNeededAreAborted(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(c *cloud, e *env, f *File) error
		log  []string
		want []string // in the staging directory, beside the lock
	}{
		{"drop", func(_ *cloud, _ *env, f *File) error { return f.Drop() }, []string{"abort"}, nil},
		{"cut to nothing", func(_ *cloud, _ *env, f *File) error { return f.Truncate(t.Context(), 0) }, []string{"abort"}, []string{"f"}},
		{"cut and written anew", func(_ *cloud, _ *env, f *File) error {
			err := f.Truncate(t.Context(), 0)
			put(t, f, 0, pattern(2, 2*testPart))
			return err
		}, []string{"abort", "create", "part 1", "part 2"}, []string{"f"}},
		{"another name", func(_ *cloud, e *env, f *File) error {
			return f.SetTarget(NewWrite{Target: e.loc("g"), Path: "g"})
		}, []string{"abort"}, []string{"f"}},
		{"another condition", func(_ *cloud, e *env, f *File) error {
			return f.SetTarget(NewWrite{Target: e.loc("f"), Path: "f", Final: true})
		}, nil, []string{"f"}},
		{"forgotten", func(_ *cloud, _ *env, f *File) error {
			z := freeze(t, f)
			defer z.Release()
			return z.ForgetUpload(t.Context())
		}, []string{"abort"}, []string{"f"}},
		{"shrunk and put", func(c *cloud, _ *env, f *File) error {
			err := f.Truncate(t.Context(), testPart)
			c.publishFile(t, f)
			return err
		}, []string{"abort"}, nil},
		{"completed", func(c *cloud, _ *env, f *File) error { c.publishFile(t, f); return nil }, []string{"complete"}, nil},
		{"forgotten and completed", func(c *cloud, _ *env, f *File) error {
			z := freeze(t, f)
			defer z.Release()
			err := z.ForgetUpload(t.Context())
			return errors.Join(err, c.publish(t.Context(), z))
		}, []string{"abort", "complete", "create", "part 1", "part 2", "part 3"}, nil},
		{"torn", func(_ *cloud, _ *env, f *File) error { return f.SetState(Torn, "killed") }, []string{"abort"}, []string{"f"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, e := newCloud(t, testPart)
			f := begun(t, c, e)
			if err := tt.do(c, e, f); err != nil {
				t.Fatal(err)
			}
			e.quiet(t)
			c.wantLog(t, tt.name, tt.log...)
			if len(f.Record().Aborts) > 0 {
				t.Errorf("to abort: %v", f.Record().Aborts)
			}
			want := []string{"lock"}
			if tt.want != nil {
				want = sorted("lock", f.ID())
			}
			if got := names(t, e.dir); !slices.Equal(got, want) {
				t.Errorf("staging directory has %q, want %q", got, want)
			}
			if err := e.area.AbortUploads(t.Context()); err != nil {
				t.Error(err)
			}
			c.wantLog(t, "nothing is left to abort")
		})
	}
}

// TestAbortWaitsForParts: one that is still being made would outlive it.
func TestAbortWaitsForParts(t *testing.T) {
	for name, do := range map[string]func(f *File) error{
		"drop": func(f *File) error { return f.Drop() },
		"cut":  func(f *File) error { return f.Truncate(t.Context(), 0) },
	} {
		for _, op := range []string{"create", "part"} {
			t.Run(name+" while "+op, func(t *testing.T) {
				c, e := newCloud(t, testPart)
				b := c.block(t, op)
				f := e.final(t)
				put(t, f, 0, pattern(1, 3*testPart))
				b.wait(t, 1)
				if err := do(f); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(e.area.path(f.ID()), dataName)); name == "drop" && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the spool of a dropped write: %v", err)
				}
				if err := e.area.AbortUploads(t.Context()); err != nil { // the cloud fails the test if it aborts
					t.Error(err)
				}
				b.release()
				e.quiet(t)
				if left := c.left(); len(left) > 0 {
					t.Errorf("uploads %q are left", left)
				}
				if name == "drop" && !slices.Equal(names(t, e.dir), []string{"lock"}) {
					t.Errorf("staging directory has %q", names(t, e.dir))
				}
			})
		}
	}
}

// TestAbortsOutliveTheirBytes, and the mount.
func TestAbortsOutliveTheirBytes(t *testing.T) {
	for _, published := range []bool{false, true} {
		c, e := newCloud(t, testPart)
		f := begun(t, c, e)
		c.hook(func(_ context.Context, op string, _ int) error {
			if op == "abort" {
				return objectstore.ErrUnavailable
			}
			return nil
		})
		if published {
			if err := f.Truncate(t.Context(), 5); err != nil {
				t.Fatal(err)
			}
			c.publishFile(t, f)
		} else if err := f.Drop(); err != nil {
			t.Fatal(err)
		}
		e.quiet(t)
		if err := e.area.AbortUploads(t.Context()); !errors.Is(err, objectstore.ErrUnavailable) {
			t.Errorf("AbortUploads: %v", err)
		}
		if got := names(t, e.area.path(f.ID())); !slices.Equal(got, []string{recordName, recordTemp}) {
			t.Errorf("the write's directory has %q", got)
		}
		e.reopen(t)
		if files := e.area.Files(); len(files) > 0 {
			t.Errorf("%d writes are shown", len(files))
		}
		if n, _ := e.area.Usage(); n > 0 {
			t.Errorf("%d writes on disk", n)
		}
		c.wantLog(t, "Open asks no store")
		c.hook(nil)
		if err := e.area.AbortUploads(t.Context()); err != nil {
			t.Error(err)
		}
		c.wantLog(t, "then", "abort")
		if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) || len(c.left()) > 0 {
			t.Errorf("staging directory has %q, the store %q", got, c.left())
		}
	}
}

// TestAPublishedFileGoesOnBesideItsAborts: its next version takes the directory over.
func TestAPublishedFileGoesOnBesideItsAborts(t *testing.T) {
	c, e := newCloud(t, testPart)
	f := begun(t, c, e)
	var down atomic.Bool
	down.Store(true)
	c.hook(func(_ context.Context, op string, _ int) error {
		if op == "abort" && down.Load() {
			return objectstore.ErrUnavailable
		}
		return nil
	})
	if err := f.Truncate(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	c.publishFile(t, f)
	put(t, f, 0, []byte("next"))
	e.quiet(t)
	want := append([]byte("next"), pattern(1, 5)[4])
	e.reopen(t)
	f = only(t, e.area)
	if rec := f.Record(); len(rec.Aborts) != 1 || rec.State != Staged || !slices.Equal(readAll(t, f), want) {
		t.Errorf("after a crash: %+v, %q", rec, readAll(t, f))
	}
	down.Store(false)
	if err := e.area.AbortUploads(t.Context()); err != nil || len(f.Record().Aborts) > 0 {
		t.Errorf("AbortUploads: %v, %+v", err, f.Record().Aborts)
	}
	c.publishFile(t, f)
	c.wantObject(t, e, want)
}

// TestPoisonEndsTheUpload: nothing of the file is published any more.
func TestPoisonEndsTheUpload(t *testing.T) {
	c, e := newCloud(t, testPart)
	broken := false
	e.opts.Step = func(op, path string) error {
		if broken && op == "write" && path == dataName {
			return errors.New("broken disk")
		}
		return nil
	}
	e.reopen(t)
	f := begun(t, c, e)
	broken = true
	if _, err := f.WriteAt(t.Context(), []byte("x"), 0); err == nil {
		t.Fatal("no error")
	}
	e.quiet(t)
	c.wantLog(t, "poisoned", "abort")
	if got := readAll(t, f); !slices.Equal(got, pattern(1, 3*testPart)) {
		t.Error("the bytes are others")
	}
}
