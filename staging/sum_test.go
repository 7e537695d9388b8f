package staging

import (
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestSecureSumsUpWhatIsNotOnTheDisk(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f *File, want []byte) ([]byte, error)
	}{
		{"in order", func(_ *File, want []byte) ([]byte, error) { return want, nil }},
		{"patched", func(f *File, want []byte) ([]byte, error) {
			copy(want[5:], "patch")
			_, err := f.WriteAt(t.Context(), []byte("patch"), 5)
			return want, err
		}},
		{"grown", func(f *File, want []byte) ([]byte, error) {
			return append(want, make([]byte, 10)...), f.Truncate(t.Context(), int64(len(want)+10))
		}},
		{"allocated", func(f *File, want []byte) ([]byte, error) {
			return append(want, make([]byte, 10)...), f.Allocate(t.Context(), int64(len(want)), 10, false)
		}},
		{"cut", func(f *File, want []byte) ([]byte, error) { return want[:9], f.Truncate(t.Context(), 9) }},
		{"cut to nothing", func(f *File, _ []byte) ([]byte, error) { return nil, f.Truncate(t.Context(), 0) }},
		{"written anew", func(f *File, _ []byte) ([]byte, error) {
			err := f.Truncate(t.Context(), 0)
			put(t, f, 0, []byte("new"))
			return []byte("new"), err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, e := newCloud(t, 1<<20)
			syncs := 0
			e.opts.Step = func(op, _ string) error {
				if op == "sync" {
					syncs++
				}
				return nil
			}
			e.reopen(t)
			f := e.final(t)
			want := pattern(1, 500)
			put(t, f, 0, want)
			want, err := tt.change(f, want)
			if err != nil {
				t.Fatal(err)
			}
			z := freeze(t, f)
			if err := z.Secure(t.Context()); err != nil {
				t.Fatal(err)
			}
			sum := encodeSum(crc32.Checksum(want, crc32.MakeTable(crc32.Castagnoli)))
			if z.Record.Sum != sum || f.Record().Sum != sum || syncs != 0 {
				t.Errorf("sum %q, want %q; %d syncs", z.Record.Sum, sum, syncs)
			}
			if err := errors.Join(z.SetState(Publishing, "", true), z.Sound(t.Context())); err != nil {
				t.Error(err)
			}
			z.Release()
			e.reopen(t)
			f = only(t, e.area)
			z = freeze(t, f)
			if err := z.Sound(t.Context()); err != nil || f.Record().Sum != sum || !f.Record().Whole {
				t.Errorf("recovered: %v, %+v", err, f.Record())
			}
			if err := c.publish(t.Context(), z); err != nil {
				t.Error(err)
			}
			z.Release()
			if f.Record().Sum != "" {
				t.Error("a published file has a checksum of bytes to be")
			}
			c.wantObject(t, e, want)
		})
	}
}

// TestSoundTellsLostBytes: the machine stopped before they were on the disk.
func TestSoundTellsLostBytes(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"zeros": func(path string) error { return errors.Join(os.Truncate(path, 100), os.Truncate(path, 500)) },
		"short": func(path string) error { return os.Truncate(path, 100) },
		"none":  func(path string) error { return os.Truncate(path, 0) },
	} {
		_, e := newCloud(t, 1<<20)
		f := e.final(t)
		put(t, f, 0, pattern(1, 500))
		z := freeze(t, f)
		if err := errors.Join(z.Secure(t.Context()), z.SetState(Publishing, "", true)); err != nil {
			t.Fatal(err)
		}
		z.Release()
		if err := damage(filepath.Join(e.area.path(f.ID()), dataName)); err != nil {
			t.Fatal(err)
		}
		e.reopen(t)
		z = freeze(t, only(t, e.area))
		if err := z.Sound(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
		z.Release()
	}
}

// TestSumGoesWithTheBytes that it is of, on disk too: a recovery would take what was
// written since for damage.
func TestSumGoesWithTheBytes(t *testing.T) {
	for name, change := range map[string]func(f *File) error{
		"write":    func(f *File) error { _, err := f.WriteAt(t.Context(), []byte("x"), 3); return err },
		"append":   func(f *File) error { _, err := f.Append(t.Context(), []byte("x")); return err },
		"truncate": func(f *File) error { return f.Truncate(t.Context(), 3) },
		"sync":     func(f *File) error { return f.Sync(t.Context()) },
		"torn":     func(f *File) error { return f.SetState(Torn, "killed") },
		"failed": func(f *File) error {
			z := freeze(t, f)
			defer z.Release()
			return z.SetState(Failed, "the store is down", true)
		},
	} {
		_, e := newCloud(t, 1<<20)
		f := e.final(t)
		put(t, f, 0, pattern(1, 500))
		z := freeze(t, f)
		if err := errors.Join(z.Secure(t.Context()), z.SetState(Publishing, "", true)); err != nil || f.Record().Sum == "" {
			t.Fatal(err)
		}
		z.Release()
		if err := change(f); err != nil {
			t.Fatal(err)
		}
		if f.Record().Sum != "" {
			t.Errorf("%s: a sum of other bytes is in the record", name)
		}
		e.reopen(t)
		if rec := only(t, e.area).Record(); rec.Sum != "" {
			t.Errorf("%s: a sum of other bytes is on the disk", name)
		}
	}
}

// TestKeptBytesAreOnTheDisk: after a publish that failed, and of a torn file.
func TestKeptBytesAreOnTheDisk(t *testing.T) {
	for name, keep := range map[string]func(f *File) error{
		"torn": func(f *File) error { return f.SetState(Torn, "killed") },
		"failed": func(f *File) error {
			z := freeze(t, f)
			defer z.Release()
			return errors.Join(z.Secure(t.Context()), z.SetState(Failed, "the store is down", true))
		},
		"unsettled": func(f *File) error {
			z := freeze(t, f)
			defer z.Release()
			return z.SetUnsettled("the store is down")
		},
	} {
		for _, broken := range []bool{false, true} {
			_, e := newCloud(t, 1<<20)
			syncs := 0
			e.opts.Step = func(op, _ string) error {
				if op == "sync" {
					if syncs++; broken {
						return errors.New("broken disk")
					}
				}
				return nil
			}
			e.reopen(t)
			f := e.final(t)
			put(t, f, 0, pattern(1, 500))
			if err := keep(f); err != nil || syncs != 1 {
				t.Errorf("%s: %v, %d syncs, want 1", name, err, syncs)
			}
			if (f.Poisoned() != nil) != broken {
				t.Errorf("%s: broken %v: poison %v", name, broken, f.Poisoned())
			}
			if rec := f.Record(); rec.Sum != "" && !broken || rec.State == Staged {
				t.Errorf("%s: %+v", name, rec)
			}
		}
	}
}

// TestSecureOverAnOlderObject fetches nothing.
func TestSecureOverAnOlderObject(t *testing.T) {
	c, e := newCloud(t, 1<<20)
	base := e.object(t, pattern(1, 5*blockSize))
	f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base, Cond: objectstore.Cond{IfMatch: base.Match}})
	put(t, f, 0, make([]byte, blockSize))
	z := freeze(t, f)
	if err := errors.Join(z.Secure(t.Context()), z.SetState(Publishing, "", true)); err != nil {
		t.Fatal(err)
	}
	if rec := f.Record(); rec.Sum != "" || rec.Whole || f.unsynced || c.reads != 0 {
		t.Errorf("%+v, unsynced %v, %d bytes fetched", rec, f.unsynced, c.reads)
	}
	z.Release()
}
