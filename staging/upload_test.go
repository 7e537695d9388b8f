package staging

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestUploadGoesOn where an earlier one was cut off, and sends nothing twice.
func TestUploadGoesOn(t *testing.T) {
	c, e := newCloud(t, testPart)
	f := e.create(t, NewWrite{Target: e.loc("f")})
	want := pattern(1, 9*testPart+1)
	put(t, f, 0, want)
	z := freeze(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	var sent atomic.Int64
	c.hook(func(_ context.Context, op string, _ int) error {
		if op == "part" && sent.Add(1) == 5 {
			cancel()
		}
		return nil
	})
	if _, _, err := z.Upload(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Upload: %v", err)
	}
	before := c.take()
	u, parts, err := z.Upload(t.Context())
	if err != nil || len(parts) != 10 {
		t.Fatalf("Upload: %d parts, %v", len(parts), err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(before, c.take())))
	if len(all) != 11 || len(slices.Compact(slices.Clone(all))) != 11 {
		t.Errorf("requests %q: want each part once", all)
	}
	u2, parts2, err := z.Upload(t.Context())
	c.wantLog(t, "again")
	if err != nil || u2 != u || !slices.Equal(parts2, parts) || !slices.Equal(z.Record.Parts, parts) {
		t.Errorf("Upload again: %v, %v, %v", u2, parts2, err)
	}
	z.Release()
	copy(want[3*testPart:], "later")
	put(t, f, 3*testPart, []byte("later"))
	c.publishFile(t, f)
	c.wantLog(t, "after a write", "part 4", "complete")
	c.wantObject(t, e, want)
}

func TestUploadOverAnOlderObject(t *testing.T) {
	const part, old = 3 * blockSize, 10*3*blockSize + 100
	for _, tt := range []struct {
		name    string
		change  func(f *File, want []byte) ([]byte, error)
		log     []string
		fetched int64
	}{
		{"append", func(f *File, want []byte) ([]byte, error) {
			_, err := f.Append(t.Context(), pattern(3, part))
			return append(want, pattern(3, part)...), err
		}, []string{"part 11", "part 12"}, 100},
		{"patch", func(f *File, want []byte) ([]byte, error) {
			copy(want[part+5:], "patch")
			_, err := f.WriteAt(t.Context(), []byte("patch"), part+5)
			return want, err
		}, []string{"part 2"}, part},
		{"cut", func(f *File, want []byte) ([]byte, error) {
			return want[:5*part+5], f.Truncate(t.Context(), 5*part+5)
		}, []string{"part 6"}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, e := newCloud(t, part)
			base := e.object(t, pattern(1, old))
			f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base, Final: true})
			want, err := tt.change(f, pattern(1, old))
			if err != nil {
				t.Fatal(err)
			}
			z := freeze(t, f)
			if !z.TakesParts() || !z.Copies() {
				t.Error("no parts, or none copied")
			}
			if err := c.publish(t.Context(), z); err != nil {
				t.Fatal(err)
			}
			z.Release()
			if c.reads != tt.fetched {
				t.Errorf("%d bytes fetched, want %d", c.reads, tt.fetched)
			}
			log := slices.DeleteFunc(c.take(), func(s string) bool { return strings.HasPrefix(s, "copy") })
			if wantLog := append([]string{"complete", "create"}, tt.log...); !slices.Equal(log, wantLog) {
				t.Errorf("requests %q, want %q and copies", log, wantLog)
			}
			c.wantObject(t, e, want)
		})
	}
}

// TestPlain: a store that does not copy gets the bytes.
func TestPlain(t *testing.T) {
	const part = 2 * blockSize
	c, e := newCloud(t, part)
	want := pattern(1, 5*part)
	base := e.object(t, want)
	f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base})
	copy(want[part:], "patch")
	put(t, f, part, []byte("patch"))
	c.hook(func(_ context.Context, op string, _ int) error {
		if op == "copy" {
			return errors.ErrUnsupported
		}
		return nil
	})
	z := freeze(t, f)
	if _, _, err := z.Upload(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("Upload: %v", err)
	}
	z.Plain()
	if z.Copies() || !z.TakesParts() {
		t.Error("after Plain it would copy, or needs no parts")
	}
	if err := c.publish(t.Context(), z); err != nil {
		t.Fatal(err)
	}
	z.Release()
	c.wantObject(t, e, want)
}

func TestTooManyParts(t *testing.T) {
	_, e := newCloud(t, 10)
	f := e.create(t, NewWrite{Target: e.loc("f")})
	const largest = 10 * objectstore.MaxParts
	if err := f.Truncate(t.Context(), largest); err != nil {
		t.Fatal(err)
	}
	wantTooLarge(t, "Truncate", f.Truncate(t.Context(), largest+1))
	wantTooLarge(t, "Allocate", f.Allocate(t.Context(), largest, 1, false))
	if f.Size() != largest || f.Poisoned() != nil {
		t.Errorf("refused, it has %d bytes, poisoned: %v", f.Size(), f.Poisoned())
	}
	poisoned := e.create(t, NewWrite{Target: e.loc("poisoned")})
	_, err := poisoned.WriteAt(t.Context(), []byte{1, 2}, largest-1)
	wantTooLarge(t, "WriteAt", err)
	wantTooLarge(t, "after it", poisoned.Poisoned())
	f.area.opts.PartSize = 0 // as of an earlier mount, with other parts
	if err = f.Truncate(t.Context(), largest+1); err != nil {
		t.Fatal(err)
	}
	f.area.opts.PartSize = 10
	z := freeze(t, f)
	defer z.Release()
	if !z.TakesParts() {
		t.Error("TakesParts: false")
	}
	_, _, err = z.Upload(t.Context())
	wantTooLarge(t, "Upload", err)
}

// TestOlderObjectIsGone while it is copied.
func TestOlderObjectIsGone(t *testing.T) {
	_, e := newCloud(t, 2*blockSize)
	base := e.object(t, pattern(1, 10*blockSize))
	f := e.create(t, NewWrite{Target: e.loc("f"), Base: &base})
	put(t, f, 0, pattern(2, 2*blockSize))
	e.object(t, pattern(3, 10*blockSize))
	z := freeze(t, f)
	defer z.Release()
	if _, _, err := z.Upload(t.Context()); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("Upload: %v, want ErrChanged", err)
	}
}
