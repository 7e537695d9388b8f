package staging

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// older is an object of some blocks, the last of which is short.
func older() []byte { return bytes.Repeat([]byte("older\n"), (5*blockSize+100)/6) }

// TestOwnOutlivesTheOlderVersion: what was written can be read when the version
// below it is gone, block by block, and nothing else is taken for it.
func TestOwnOutlivesTheOlderVersion(t *testing.T) {
	whole, size := older(), int64(len(older()))
	for what, c := range map[string]struct {
		change func(t *testing.T, f *File)
		want   []Range
	}{
		"nothing":     {func(*testing.T, *File) {}, nil},
		"in a block":  {func(t *testing.T, f *File) { t.Helper(); mustWrite(t, f, 2*blockSize+7, "new") }, []Range{{2 * blockSize, 3 * blockSize}}},
		"over blocks": {func(t *testing.T, f *File) { t.Helper(); mustWrite(t, f, 2*blockSize-1, "new") }, []Range{{blockSize, 3 * blockSize}}},
		"two places": {func(t *testing.T, f *File) {
			t.Helper()
			mustWrite(t, f, 0, "new")
			mustWrite(t, f, 3*blockSize, "new")
		}, []Range{{0, blockSize}, {3 * blockSize, 4 * blockSize}}},
		"at the end": {func(t *testing.T, f *File) { t.Helper(); mustWrite(t, f, size, "new") }, []Range{{5 * blockSize, size + 3}}},
		"far past the end": {func(t *testing.T, f *File) {
			t.Helper()
			mustWrite(t, f, 9*blockSize, "new")
		}, []Range{{6 * blockSize, 9*blockSize + 3}}},
		"cut": {func(t *testing.T, f *File) {
			t.Helper()
			mustWrite(t, f, 0, "new")
			if err := f.Truncate(t.Context(), 2*blockSize); err != nil {
				t.Error(err)
			}
		}, []Range{{0, blockSize}}},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			base := e.object(t, whole)
			f := e.create(t, NewWrite{Target: base.Location, Base: &base})
			mustWrite(t, f, 4*blockSize, string(whole[4*blockSize:4*blockSize+1])) // so that there is a spool
			c.change(t, f)
			now := readAll(t, f)
			e.reopen(t)
			if err := os.Remove(filepath.Join(e.root, "f")); err != nil {
				t.Fatal(err)
			}
			f = only(t, e.area)
			want := normal(append(slices.Clone(c.want), Range{4 * blockSize, min(5*blockSize, int64(len(now)))}))
			wantOwn(t, f, now, want)
			_, err := f.ReadAt(t.Context(), make([]byte, len(now)), 0)
			if !errors.Is(err, objectstore.ErrNotExist) && !errors.Is(err, objectstore.ErrChanged) {
				t.Errorf("the whole is read: %v", err)
			}
		})
	}
}

// normal is ranges in order, none of which is empty or touches the next.
func normal(all []Range) []Range {
	slices.SortFunc(all, func(a, b Range) int { return int(a.From - b.From) })
	var out []Range
	for _, r := range all {
		switch last := len(out) - 1; {
		case r.From >= r.To:
		case last >= 0 && out[last].To >= r.From:
			out[last].To = max(out[last].To, r.To)
		default:
			out = append(out, r)
		}
	}
	return out
}

// wantOwn asserts that f has these ranges of now, and zeros elsewhere.
func wantOwn(t *testing.T, f *File, now []byte, want []Range) {
	t.Helper()
	own, err := f.Own()
	if err != nil || !slices.Equal(own, want) {
		t.Errorf("Own: %v, %v; want %v", own, err, want)
	}
	bare := make([]byte, len(now))
	for _, r := range want {
		copy(bare[r.From:r.To], now[r.From:r.To])
	}
	got := make([]byte, len(now)+1)
	if n, err := f.ReadOwn(got, 0); n != len(now) || !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], bare) {
		t.Errorf("ReadOwn of all: %d bytes of %d, %v; want what was written over zeros", n, len(now), err)
	}
	if n, err := f.ReadOwn(got[:1000], blockSize-500); n != 1000 || err != nil || !bytes.Equal(got[:n], bare[blockSize-500:][:n]) {
		t.Errorf("ReadOwn over a border: %d, %v", n, err)
	}
	if _, _, err := f.OwnRun(int64(len(now))); !errors.Is(err, io.EOF) {
		t.Errorf("OwnRun at the end: %v, want io.EOF", err)
	}
}

// TestOwnOfAWholeFile is all of it.
func TestOwnOfAWholeFile(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	if own, err := f.Own(); err != nil || len(own) != 0 {
		t.Errorf("of an empty file: %v, %v", own, err)
	}
	mustWrite(t, f, 3*blockSize, "x")
	wantOwn(t, f, readAll(t, f), []Range{{0, 3*blockSize + 1}})
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Own(); !errors.Is(err, ErrDropped) {
		t.Errorf("of a dropped file: %v, want ErrDropped", err)
	}
}
