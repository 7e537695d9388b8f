package catalogview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// flatStore is a store of plain keys in order, as S3 is: a key may be "a" and
// "a/b" at once, or hold "//". It has no directories of its own.
type flatStore struct {
	objectstore.Store // nil: what is not below is not asked for
	keys              map[string]string
}

func (f *flatStore) object(bucket, key string) objectstore.Object {
	return objectstore.Object{
		Location: objectstore.Location{Bucket: bucket, Key: key},
		Size:     int64(len(f.keys[key])), ETag: fmt.Sprintf("%q", f.keys[key]),
	}
}

func (f *flatStore) Stat(_ context.Context, loc objectstore.Location) (objectstore.Object, error) {
	if _, ok := f.keys[loc.Key]; !ok {
		return objectstore.Object{}, objectstore.ErrNotExist
	}
	return f.object(loc.Bucket, loc.Key), nil
}

func (f *flatStore) Read(_ context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	if _, ok := f.keys[o.Key]; !ok {
		return o, nil, objectstore.ErrNotExist
	}
	b := []byte(f.keys[o.Key])
	off = min(off, int64(len(b)))
	return f.object(o.Bucket, o.Key), io.NopCloser(bytes.NewReader(b[off:min(off+n, int64(len(b)))])), nil
}

func (f *flatStore) List(_ context.Context, prefix objectstore.Location, o objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	entries := map[string]objectstore.Entry{}
	for key := range f.keys {
		rest, ok := strings.CutPrefix(key, prefix.Key)
		if !ok {
			continue
		}
		if i := strings.IndexByte(rest, '/'); o.Delimiter && i >= 0 {
			key = prefix.Key + rest[:i+1]
			entries[key] = objectstore.Entry{Object: objectstore.Object{Location: objectstore.Location{Bucket: prefix.Bucket, Key: key}}, Prefix: true}
			continue
		}
		entries[key] = objectstore.Entry{Object: f.object(prefix.Bucket, key)}
	}
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return func(yield func(objectstore.Entry, error) bool) {
		for i, key := range keys {
			if o.Limit > 0 && i == o.Limit || !yield(entries[key], nil) {
				return
			}
		}
	}
}

func flatView(t *testing.T, keys ...string) (*View, *flatStore) {
	t.Helper()
	f := &flatStore{keys: map[string]string{"db/t/_sqe/table.json": manifestOf("db/t", "data", []string{"day:int"}, nil)}}
	for _, k := range keys {
		key, content, _ := strings.Cut(k, "|")
		f.keys["data/"+key] = content
	}
	o := Options{TTL: -1, NegativeTTL: -1, Roots: []string{"/wh"}, EvalSymlinks: func(p string) (string, error) { return p, nil }}
	v := NewView(NewManifests(f, objectstore.Location{Bucket: "/wh"}, o), f, o)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v, f
}

func TestCase58ADirectoryWinsOverAnObject(t *testing.T) {
	keys := []string{"out|file", "out/x|1", "out/|", "out-1|2", "out!|3", "out.d/y|4", "outer|5", "out-1/z|6"}
	v, _ := flatView(t, keys...)
	wantLs(t, v, "db/t", "out/", "out-1/", "out!", "out.d/", "outer")
	wantLs(t, v, "db/t/out", "x")
	if n := lookup(t, v, "db/t/out"); n.Kind != KindDirectory {
		t.Errorf("got %s", n.Kind)
	}
	s, err := v.Status(t.Context(), "db/t")
	slices.Sort(s.HiddenObjects)
	if err != nil || !slices.Equal(s.HiddenObjects, []string{"out", "out-1"}) {
		t.Errorf("Status: %+v, %v", s, err)
	}
	for _, keys := range [][]string{{"out|", "out/x|1"}, {"out|1", "out/|"}, {"out/|"}, {"out/|", "out/x|1"}} {
		v, _ = flatView(t, keys...)
		wantLs(t, v, "db/t", "out/")
	}
	v, _ = flatView(t, "out|1", "\xff\xff|2", "a|3", "a-|4", "a--|5")
	wantLs(t, v, "db/t", "out", "\xff\xff", "a", "a-", "a--")
}

func TestCase56UnreachableKeysAreCounted(t *testing.T) {
	v, _ := flatView(t, "A/ok|1", "A//B|2", "A/./x|3", "A/../x|4", "/lead|5", "A/"+strings.Repeat("x", 256)+"|6", "A/n\x00l|7", "B|8", ".lakefs/x|9", ".lakefs|9")
	wantLs(t, v, "db/t", "A/", "B")
	wantLs(t, v, "db/t/A", "ok")
	for path, want := range map[string]int{"db/t": 1, "db/t/A": 5} {
		s, err := v.Status(t.Context(), path)
		if err != nil || s.UnreachableKeys != want {
			t.Errorf("Status(%s): %+v, %v, want %d unreachable", path, s, err, want)
		}
	}
	if s, err := v.Status(t.Context(), "db/t"); err != nil || s.Shadowed != 2 {
		t.Errorf("Status: %+v, %v, want 2 shadowed", s, err)
	}
}

func TestFlatMarkers(t *testing.T) {
	v, _ := flatView(t, "a_$folder$|", "b/f|1", "b_$folder$|", "c|1", "c_$folder$|", "d_$folder$|bytes", "_temporary_$folder$|", "e/|", "_$folder$|")
	wantLs(t, v, "db/t", "a/", "b/", "c", "d_$folder$", "e/", "_$folder$")
	wantLs(t, v, "db/t/a")
	wantLs(t, v, "db/t/e")
	for path, want := range map[string]Kind{"a": KindDirectory, "b": KindDirectory, "c": KindObject, "d_$folder$": KindObject, "e": KindDirectory} {
		if n := lookup(t, v, "db/t/"+path); n.Kind != want {
			t.Errorf("%s: got %s, want %s", path, n.Kind, want)
		}
	}
	_, err := v.Lookup(t.Context(), "db/t/b_$folder$")
	wantErr(t, "a marker by name", err, objectstore.ErrNotExist)
}

// strayStore lists a key outside the prefix that was asked for.
type strayStore struct{ *flatStore }

func (s strayStore) List(ctx context.Context, prefix objectstore.Location, o objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		if !yield(objectstore.Entry{Object: s.object(prefix.Bucket, "elsewhere/x")}, nil) {
			return
		}
		for e, err := range s.flatStore.List(ctx, prefix, o) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestAKeyOutsideThePrefixIsDropped(t *testing.T) {
	v, f := flatView(t, "a|1")
	v = NewView(v.src, strayStore{f}, v.o)
	wantLs(t, v, "db/t", "a")
	s, err := v.Status(t.Context(), "db/t")
	if err != nil || s.UnreachableKeys != 0 {
		t.Errorf("Status: %+v, %v", s, err)
	}
}

func TestReadDirStopsWhenItsConsumerDoes(t *testing.T) {
	v, _ := flatView(t, "a|1", "b|1", "c/x|1")
	for _, path := range []string{"", "db", "db/t"} {
		n := 0
		for _, err := range v.ReadDir(t.Context(), path) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: %d nodes", path, n)
		}
	}
}

func TestAListingThatFailsInTheMiddleEndsInItsError(t *testing.T) {
	v, f := flatView(t, "a/x|1", "b/x|1")
	v = NewView(v.src, cutStore{f}, v.o)
	n, failed := 0, error(nil)
	for _, err := range v.ReadDir(t.Context(), "db/t") {
		if failed != nil {
			t.Fatal("something follows the error")
		}
		if failed = err; err == nil {
			n++
		}
	}
	if n != 1 || !errors.Is(failed, objectstore.ErrUnavailable) {
		t.Errorf("got %d nodes and %v", n, failed)
	}
}

// cutStore fails after the first entry of a listing.
type cutStore struct{ *flatStore }

func (s cutStore) List(ctx context.Context, prefix objectstore.Location, o objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		for e, err := range s.flatStore.List(ctx, prefix, o) {
			if !yield(e, err) {
				return
			}
			yield(objectstore.Entry{}, objectstore.ErrUnavailable)
			return
		}
	}
}
