package staging

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestAppendIsToldFromWriting(t *testing.T) {
	e := newEnv(t)
	for _, tt := range []struct {
		name string
		new  NewWrite
		do   func(f *File) error
		want bool
	}{
		{"nothing", NewWrite{}, func(*File) error { return nil }, false},
		{"opened for appending", NewWrite{Append: true}, func(*File) error { return nil }, true},
		{"write at the end", NewWrite{}, func(f *File) error { _, err := f.WriteAt(t.Context(), []byte("x"), 0); return err }, false},
		{"append", NewWrite{}, func(f *File) error { _, err := f.Append(t.Context(), []byte("x")); return err }, true},
		{"truncate to its size", NewWrite{Append: true}, func(f *File) error { return f.Truncate(t.Context(), 0) }, true},
		{"truncate of a plain new one", NewWrite{}, func(f *File) error { return f.Truncate(t.Context(), 0) }, false},
		{"extend", NewWrite{Append: true}, func(f *File) error { return f.Truncate(t.Context(), 9) }, false},
	} {
		f := e.create(t, tt.new)
		if err := tt.do(f); err != nil || f.Record().Append != tt.want {
			t.Errorf("%s: error %v, Append %v, want %v", tt.name, err, f.Record().Append, tt.want)
		}
	}
}

func TestPublishedGoesOnAsTheNextVersion(t *testing.T) {
	for _, adopt := range []bool{true, false} {
		e := newEnv(t)
		f := e.create(t, NewWrite{Cond: objectstore.Cond{IfNoneMatch: true}})
		mustWrite(t, f, 0, "version 1")
		z, err := f.Freeze(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err = z.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(e.root, "f")
		if adopt {
			err = os.Rename(z.Path, target)
		} else {
			data, _ := io.ReadAll(io.NewSectionReader(z.ReaderAt(), 0, z.Size))
			err = os.WriteFile(target, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		obj, err := e.store.Stat(t.Context(), e.loc("f"))
		if err != nil {
			t.Fatal(err)
		}
		z.Published(obj, adopt)
		z.Release()
		if f.Dirty() || string(readAll(t, f)) != "version 1" {
			t.Errorf("adopt %v: dirty %v, bytes %q", adopt, f.Dirty(), readAll(t, f))
		}
		if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) {
			t.Errorf("adopt %v: staging directory has %q after the publish", adopt, got)
		}
		mustWrite(t, f, 8, "2")
		if got, _ := os.ReadFile(target); string(got) != "version 1" {
			t.Errorf("adopt %v: a later write reached the published file: %q", adopt, got)
		}
		rec := f.Record()
		if !f.Dirty() || rec.Base == nil || rec.Base.ETag != obj.ETag || rec.Cond.IfMatch != obj.Match {
			t.Errorf("adopt %v: next version: dirty %v, %+v", adopt, f.Dirty(), rec)
		}
		e.reopen(t)
		if got := string(readAll(t, only(t, e.area))); got != "version 2" {
			t.Errorf("adopt %v: next version after a crash: %q", adopt, got)
		}
	}
}

func TestRebaseMovesTheAppendedBytes(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, []byte("one\n"))
	f := e.create(t, NewWrite{Base: &base})
	if _, err := f.Append(t.Context(), []byte("mine\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer := e.object(t, []byte("one\ntwo\n"))
	z, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Rebase(t.Context(), newer); err != nil {
		t.Fatalf("Rebase: %v", err)
	}
	if z.Record.Cond.IfMatch != newer.Match || z.Size != 13 {
		t.Errorf("after Rebase: %+v", z.Record)
	}
	z.Release()
	e.reopen(t)
	g := only(t, e.area)
	if got := string(readAll(t, g)); got != "one\ntwo\nmine\n" {
		t.Errorf("bytes after a crash: %q", got)
	}
	if got := names(t, e.area.path(g.ID())); len(got) != 4 { // blocks, data.ID, write.json and the file of the one before
		t.Errorf("files after Rebase: %q", got)
	}
}

// TestRebasedWriteNeedsNoBase: the newer object may be replaced as well, and
// where there was none at first there are no blocks.
func TestRebasedWriteNeedsNoBase(t *testing.T) {
	for _, from := range []string{"", "one\n"} {
		e := newEnv(t)
		var w NewWrite
		if from != "" {
			base := e.object(t, []byte(from))
			w.Base = &base
		}
		f := e.create(t, w)
		if _, err := f.Append(t.Context(), []byte("mine\n")); err != nil {
			t.Fatal(err)
		}
		theirs := strings.Repeat("x", 3*blockSize)
		newer := e.object(t, []byte(theirs))
		z, err := f.Freeze(t.Context())
		if err == nil {
			err = z.Rebase(t.Context(), newer)
		}
		if err != nil {
			t.Fatal(err)
		}
		z.Release()
		e.object(t, []byte("replaced again"))
		e.reopen(t)
		if got := string(readAll(t, only(t, e.area))); got != theirs+"mine\n" {
			t.Errorf("from %q: %d bytes after a crash, want %d", from, len(got), len(theirs)+5)
		}
	}
}

func TestAWriteElsewhereIsKnownToRecovery(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, []byte("one\n"))
	for _, do := range []func(f *File) error{
		func(f *File) error { _, err := f.WriteAt(t.Context(), []byte("O"), 0); return err },
		func(f *File) error { return f.Truncate(t.Context(), 2) },
		func(f *File) error { return f.Allocate(t.Context(), 0, 100, false) },
	} {
		f := e.create(t, NewWrite{Base: &base, Append: true})
		_, err := f.Append(t.Context(), []byte("two\n"))
		if err == nil {
			err = do(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.reopen(t)
		f, _ = e.area.Find(f.ID())
		if f.Record().Append {
			t.Error("a recovery would take what was written elsewhere for appended")
		}
	}
}
