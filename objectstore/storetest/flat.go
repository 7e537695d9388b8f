package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// maxKey is the longest key of a flat store, in bytes.
const maxKey = 1024

// RunFlat holds stores whose keys are strings, with no directories behind them,
// to what a path can not express: each key is one of its own, byte for byte.
// Open returns an empty bucket (Key ""). Known names the tests that the server
// behind the store is known to fail, with the reason; nil: none.
func RunFlat(t *testing.T, open Opener, known map[string]string) {
	t.Helper()
	run(t, open, known, []test{
		{"FlatKeys", testFlatKeys},
		{"FlatList", testFlatList},
		{"FlatCopy", testFlatCopy},
		{"FlatDelete", testFlatDelete},
		{"FlatPlaceholder", testFlatPlaceholder},
		{"ControlBytes", testControlBytes},
		{"KeyLength", testKeyLength},
		{"Pages", testPages},
	})
}

// flatKeys are keys that differ from one another as strings only.
func flatKeys() []string {
	return []string{
		"a", "a/", "a/b", "n//x", "n/x", "n///x", "/lead", "lead", "//", ".", "..", "./a", "x/../y", "y", "x/./y",
		"%", "%zz", "%20", " ", "+", "%2B", "k=a%2Fb", "k=a/b", "k=a%252Fb", "e\u0301", "\u00e9", "🦆", "\\", "\"q\"",
		"'", "sp ace ", "new\nline", "tab\t", "?", "#", "?versionId=1", "&amp;", "<a>", "]]>", "*", "~", "a:b", "a;b", "=?utf-8?q?a?=",
		strings.Repeat("l", 300), strings.Repeat("m/", maxKey/2-1) + "m",
	}
}

func content(key string) []byte { return []byte("bytes of " + key) }

func putFlat(t *testing.T, f fixture, keys []string) {
	t.Helper()
	for _, key := range keys {
		f.put(t, key, content(key))
	}
}

func testFlatKeys(f fixture) {
	t := f.t
	putFlat(t, f, flatKeys())
	for _, key := range flatKeys() {
		if o := f.stat(t, key); o.Location != f.at(key) {
			t.Errorf("Stat of %q tells of %q", key, o.Key)
		}
		f.want(t, key, content(key))
	}
}

func testFlatList(f fixture) {
	t := f.t
	putFlat(t, f, flatKeys())
	want := slices.Sorted(slices.Values(flatKeys()))
	wantKeys(t, f.list(t, "", objectstore.ListOptions{}), want...)
	wantKeys(t, f.list(t, "a/", objectstore.ListOptions{Delimiter: true}), "a/b")
	wantKeys(t, f.list(t, "n/", objectstore.ListOptions{Delimiter: true}), "n//", "n/x")
	wantKeys(t, f.list(t, "n//", objectstore.ListOptions{Delimiter: true}), "n///", "n//x")
	wantKeys(t, f.list(t, "/", objectstore.ListOptions{Delimiter: true}), "//", "/lead")
	// One level: what has a slash is folded.
	level := map[string]bool{}
	for _, key := range want {
		if dir, _, deep := strings.Cut(key, "/"); deep {
			key = dir + "/"
		}
		level[key] = true
	}
	wantKeys(t, f.list(t, "", objectstore.ListOptions{Delimiter: true}), slices.Sorted(maps.Keys(level))...)
	for _, after := range want {
		i, _ := slices.BinarySearch(want, after)
		wantKeys(t, f.list(t, "", objectstore.ListOptions{StartAfter: after}), want[i+1:]...)
	}
}

func testFlatCopy(f fixture) {
	t := f.t
	for _, key := range flatKeys() {
		src := f.put(t, key, content(key))
		to := "to/" + key
		if len(to) > maxKey {
			to = "to"
		}
		o, err := f.Copy(t.Context(), f.at(to), src, objectstore.PutOptions{})
		if err != nil {
			t.Errorf("copy of %q: %v", key, err)
			continue
		}
		if o.Location != f.at(to) || o.Size != src.Size {
			t.Errorf("copy of %q tells %+v", key, o)
		}
		f.want(t, to, content(key))
	}
}

func testFlatDelete(f fixture) {
	t := f.t
	left := slices.Sorted(slices.Values(flatKeys()))
	putFlat(t, f, left)
	// One by one, then the rest at once.
	for _, key := range slices.Clone(left[:len(left)/2]) {
		remove(t, f, key)
		left = left[1:]
		wantKeys(t, f.list(t, "", objectstore.ListOptions{}), left...)
	}
	deleteAll(t, f, left)
	wantKeys(t, f.list(t, "", objectstore.ListOptions{}))
}

// deleteAll removes keys in one call and fails unless each is told of once.
func deleteAll(t *testing.T, f fixture, keys []string) {
	t.Helper()
	locs := make([]objectstore.Location, len(keys))
	for i, key := range keys {
		locs[i] = f.at(key)
	}
	var told []objectstore.Location
	for loc, err := range f.Delete(t.Context(), locs) {
		if err != nil {
			t.Errorf("Delete of %q: %v", loc.Key, err)
		}
		told = append(told, loc)
	}
	if !slices.Equal(told, locs) {
		t.Errorf("%d outcomes, want each of %d once, in their order", len(told), len(locs))
	}
}

// testFlatPlaceholder: the object "a/" is neither "a" nor the directory's.
func testFlatPlaceholder(f fixture) {
	t := f.t
	f.put(t, "a/", []byte("of the placeholder"))
	f.missing(t, "a")
	f.put(t, "a/b", []byte("of b"))
	f.put(t, "a", []byte("of a"))
	f.want(t, "a/", []byte("of the placeholder"))
	var got []string
	for e, err := range f.List(t.Context(), f.at("a/"), objectstore.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Key)
	}
	slices.Sort(got)
	if want := []string{"a/", "a/b"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	remove(t, f, "a/")
	f.missing(t, "a/")
	f.want(t, "a", []byte("of a"))
	f.want(t, "a/b", []byte("of b"))
	remove(t, f, "a")
	f.want(t, "a/b", []byte("of b"))
}

// testControlBytes: keys that can not be written in XML.
func testControlBytes(f fixture) {
	t := f.t
	names := []string{"\x01", "a\x01", "a\x02", "a\x1f", "a\x7f", "a\r", "a\r\n", "a\uffff", "plain"}
	putFlat(t, f, names)
	slices.Sort(names)
	wantKeys(t, f.list(t, "", objectstore.ListOptions{}), names...)
	for _, key := range names {
		f.want(t, key, content(key))
	}
	deleteAll(t, f, names)
	wantKeys(t, f.list(t, "", objectstore.ListOptions{}))
}

func testKeyLength(f fixture) {
	t := f.t
	longest := strings.Repeat("é", maxKey/2)
	src := f.put(t, longest, []byte("1"))
	f.want(t, longest, []byte("1"))
	remove(t, f, longest)
	long := longest + "x"
	_, err := f.putCond(t, long, []byte("1"), objectstore.Cond{})
	wantErr(t, "Put", err, objectstore.ErrName)
	_, err = f.Copy(t.Context(), f.at(long), src, objectstore.PutOptions{})
	wantErr(t, "Copy", err, objectstore.ErrName)
	_, err = f.Stat(t.Context(), f.at(long))
	wantErr(t, "Stat", err, objectstore.ErrName)
	for _, err := range f.Delete(t.Context(), []objectstore.Location{f.at(long)}) {
		wantErr(t, "Delete", err, objectstore.ErrName)
	}
}

// testPages lists what fills one page exactly, needs one more entry than a
// page, and needs three.
func testPages(f fixture) {
	t := f.t
	const page = 1000
	var all, a, b []string
	for i := range page {
		a = append(a, fmt.Sprintf("p/a/%04d/", i))
	}
	for i := range page + 1 {
		b = append(b, fmt.Sprintf("p/b/%04d/", i))
	}
	for _, dir := range slices.Concat(a, b) {
		all = append(all, dir+"f")
	}
	for i := range page / 2 {
		all = append(all, fmt.Sprintf("p/c%04d", i))
	}
	putMany(t, f, all)
	one := objectstore.ListOptions{Delimiter: true}
	wantKeys(t, f.list(t, "p/a/", one), a...)
	wantKeys(t, f.list(t, "p/b/", one), b...)
	wantKeys(t, f.list(t, "p/", one), slices.Concat([]string{"p/a/", "p/b/"}, all[2*page+1:])...)
	wantKeys(t, f.list(t, "p/a/", objectstore.ListOptions{}), all[:page]...)
	wantKeys(t, f.list(t, "p/b/", objectstore.ListOptions{}), all[page:2*page+1]...)
	wantKeys(t, f.list(t, "p/", objectstore.ListOptions{}), all...)
	wantKeys(t, f.list(t, "p/", objectstore.ListOptions{StartAfter: all[700]}), all[701:]...)
	wantKeys(t, f.list(t, "p/", objectstore.ListOptions{StartAfter: all[700], Limit: 1500}), all[701:2201]...)
	wantKeys(t, f.list(t, "p/b/", objectstore.ListOptions{Delimiter: true, StartAfter: b[500]}), b[501:]...)
	deleteAll(t, f, all)
	wantKeys(t, f.list(t, "p/", objectstore.ListOptions{}))
}

func putMany(t *testing.T, f fixture, keys []string) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(16)
	for _, key := range keys {
		g.Go(func() error {
			_, err := f.Put(t.Context(), f.at(key), bytes.NewReader(nil), 0, objectstore.PutOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
