package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func testStat(f fixture) {
	t := f.t
	before := time.Now().Add(-2 * time.Second)
	made := f.put(t, "a/b", []byte("12345"))
	got := f.stat(t, "a/b")
	if got.Location != f.at("a/b") || got.Size != 5 || got.ETag == "" || got.Match == "" {
		t.Errorf("Stat = %+v", got)
	}
	if got.ETag != made.ETag || got.Match != made.Match {
		t.Errorf("Stat tells version %s %s, Put told %s %s", got.ETag, got.Match, made.ETag, made.Match)
	}
	if got.ModTime.Before(before) || got.ModTime.After(time.Now().Add(2*time.Second)) {
		t.Errorf("ModTime = %v, made just now", got.ModTime)
	}
}

func testStatMissing(f fixture) {
	t := f.t
	f.put(t, "dir/file", nil)
	for _, key := range []string{"no", "no/no", "dir", "dir/no", "dir/file/", "dir/file/below", "no/"} {
		f.missing(t, key)
	}
}

// list returns keys below the directory to entries; the directory's own is left out.
func (f fixture) list(t *testing.T, key string, opts objectstore.ListOptions) map[string]objectstore.Entry {
	t.Helper()
	got := map[string]objectstore.Entry{}
	for e, err := range f.List(t.Context(), f.at(key), opts) {
		if err != nil {
			t.Fatal(err)
		}
		rel, ok := strings.CutPrefix(e.Key, f.dir.Key)
		if !ok || e.Bucket != f.dir.Bucket {
			t.Errorf("List(%q) tells %+v", key, e.Location)
		}
		if _, ok := got[rel]; ok {
			t.Errorf("List(%q) tells %q twice", key, rel)
		}
		if rel != key {
			got[rel] = e
		}
	}
	return got
}

func keys(m map[string]objectstore.Entry) []string { return slices.Sorted(maps.Keys(m)) }

func wantKeys(t *testing.T, got map[string]objectstore.Entry, want ...string) {
	t.Helper()
	if !slices.Equal(keys(got), want) {
		t.Errorf("keys = %q, want %q", keys(got), want)
	}
}

func testListMissing(f fixture) {
	t := f.t
	f.put(t, "file", nil)
	for _, key := range []string{"no/", "no/no/", "file/"} {
		for e, err := range f.List(t.Context(), f.at(key), objectstore.ListOptions{}) {
			t.Errorf("List(%q) yields %+v, %v; want nothing", key, e, err)
		}
	}
}

func testListDelimiter(f fixture) {
	t := f.t
	one := f.put(t, "d/one", []byte("1"))
	f.put(t, "d/sub/two", nil)
	f.put(t, "d/sub/three", nil)
	f.put(t, "dd", nil)
	got := f.list(t, "d/", objectstore.ListOptions{Delimiter: true})
	wantKeys(t, got, "d/one", "d/sub/")
	if e := got["d/one"]; e.Prefix || e.Size != 1 || e.ETag != one.ETag || !e.ModTime.Equal(f.stat(t, "d/one").ModTime) {
		t.Errorf("object entry = %+v, made as %+v", e, one)
	}
	if e := got["d/sub/"]; !e.Prefix || e.Size != 0 {
		t.Errorf("directory entry = %+v", e)
	}
}

func testListRecursive(f fixture) {
	t := f.t
	for _, key := range []string{"d/1", "d/a/2", "d/a/b/3", "e/4"} {
		f.put(t, key, []byte(key))
	}
	got := f.list(t, "d/", objectstore.ListOptions{})
	for key, e := range got {
		if e.Prefix {
			t.Errorf("%q is a Prefix entry, without Delimiter", key)
		}
		if strings.HasSuffix(key, "/") { // a directory that is an object too
			delete(got, key)
		}
	}
	wantKeys(t, got, "d/1", "d/a/2", "d/a/b/3")
}

func testListLimit(f fixture) {
	t := f.t
	for i := range 5 {
		f.put(t, fmt.Sprint("d/", i), nil)
	}
	n := 0
	for _, err := range f.List(t.Context(), f.at("d/"), objectstore.ListOptions{Delimiter: true, Limit: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("Limit 3 yields %d entries", n)
	}
}

func testListStartAfter(f fixture) {
	t := f.t
	for _, key := range []string{"d/a", "d/b", "d/c", "d/d/e"} {
		f.put(t, key, nil)
	}
	opts := objectstore.ListOptions{Delimiter: true, StartAfter: f.at("d/b").Key}
	wantKeys(t, f.list(t, "d/", opts), "d/c", "d/d/")
	opts.StartAfter = f.at("d/z").Key
	wantKeys(t, f.list(t, "d/", opts))
}

func testListStops(f fixture) {
	t := f.t
	for i := range 3 {
		f.put(t, fmt.Sprint("d/", i), nil)
	}
	for _, err := range f.List(t.Context(), f.at("d/"), objectstore.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
		break // going on would panic
	}
}

// testListMany needs more than one page, or buffer, of any store.
func testListMany(f fixture) {
	t := f.t
	const n, writers = 1100, 20
	want := make([]string, n)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				want[i] = fmt.Sprintf("d/%s%05d", strings.Repeat("x", 60), i)
				if _, err := f.putCond(t, want[i], nil, objectstore.Cond{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantKeys(t, f.list(t, "d/", objectstore.ListOptions{Delimiter: true}), want...)
}
